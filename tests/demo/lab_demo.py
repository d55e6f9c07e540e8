# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole path on two QEMU guests with a real RDMA subsystem and a real Kubernetes: bare guests to pods that do RDMA.

    lab_demo.py                 two guests, eight rails each, otherwise inventory/guests
    lab_demo.py --rails 2       fewer rails: faster on a slow machine
    lab_demo.py --hosts-only    without the cluster

Where the programs of a cluster are not at hand it says so and ends at the hosts. The guests are emulated: what they
measure says that RDMA flows, not how fast a NIC is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

from progress import paint, say, step
from stage import CHECKOUT, Failure, Stage, cause, changed, main, packages, prepare

FOLDER = CHECKOUT / "tests/output/lab-demo"
# What lab.py ends with when packages or programs cannot be had.
NOT_HERE = 77


def inventory(rails: int) -> Path:
    """Write the inventory: that of the guests, with so many rails."""
    folder = FOLDER / "inventory"
    shutil.copytree(CHECKOUT / "inventory/guests", folder)
    rows = [{"name": f"rail{rail}", "interface": f"ens{rail}np0", "gpu": rail - 1} for rail in range(1, rails + 1)]
    # JSON is YAML; the last file of a folder that sets a variable wins.
    (folder / "group_vars/all/rails.yml").write_text(json.dumps({"fabric_rails": rows}) + "\n", encoding="utf-8")
    return folder


def measured() -> None:
    """Print what each rail measured."""
    for path in sorted((FOLDER / "verify/fabric/hosts").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for check in result["checks"]:
            if check["id"] in ("traffic_read_lat", "traffic_write_bw"):
                say(f"     {result['host']} {check['rail']:<6} {check['id'][8:]:<9} {check['observed']}")


def pods_measured() -> None:
    """Print what pods measured between each other, over each rail."""
    verdict = json.loads((FOLDER / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    for check in verdict["cluster"]["checks"]:
        if check["id"] == "pod_read_lat":
            say(f"     pod on {check['node']} {check['rail']:<6} {check['observed']}")


def can_have_cluster(stage: Stage) -> bool:
    """Build the image of the nodes; without what it needs, say why there will be no pods."""
    done = step("the image of the nodes", stage.lab("image", "--cluster"), log=stage.log, timeout=3600)
    if done.code == NOT_HERE:
        say(f"  Without pods: {done.output.strip().splitlines()[-1].removeprefix('lab: ')}")
    elif done.code:
        raise Failure("The image of the nodes was not built.", *cause(done.output), stage.log)
    return not done.code


def show(stage: Stage, rails: int, *, cluster: bool) -> None:
    """Plan, start the guests, run site twice, reboot, verify again."""
    where = str(inventory(rails))
    name = f"guests{os.getpid() % 100000}"
    say(paint("\n1. The plan.", "1"))
    stage.run("plan", ["ansible-playbook", "-i", where, "railops.rdma.plan"])
    nodes = ", each a node of a real Kubernetes" if cluster else ""
    say(paint(f"\n2. Two guests{nodes}: Debian, systemd, a kernel with ib_core and soft-RoCE.", "1"))
    options = ["--kind", "guests", "--nodes", "2", "--rails", str(rails), "--plan", str(FOLDER / "plan/fabric")]
    options += ["--cluster"] if cluster else []
    with stage.started("start the lab", name, *options, timeout=1500) as lab:

        def play(title: str, playbook: str) -> str:
            book = ["ansible-playbook", "-i", where, "-i", lab, playbook]
            return stage.run(title, stage.lab("exec", name, "--", *book), timeout=3000)

        what = "pods" if cluster else "RDMA"
        say(paint(f"\n3. From bare guests to {what}: ansible-playbook railops.rdma.site", "1"))
        say(f"     {changed(play('site', 'railops.rdma.site'))} changes")
        measured()
        if cluster:
            play("the test application: a pod with all rails on each node", "railops.rdma.test_application")
        if again := changed(play("site again", "railops.rdma.site")):
            raise Failure(
                f"The second run of site changed {again} things.",
                "A role is not idempotent on this machine.",
                "Read which tasks are `changed` in the second run, and report it.",
                stage.log,
            )
        say("     0 changes")
        if cluster:
            pods_measured()
        say(paint("\n4. All hosts reboot; nothing runs but the verification.", "1"))
        ad_hoc = ["ansible", "-i", where, "-i", lab, "gpu_nodes", "-m", "ansible.builtin.reboot"]
        stage.run("reboot", stage.lab("exec", name, "--", *ad_hoc, "-a", "reboot_timeout=600"), timeout=900)
        if cluster:
            stage.run("all nodes and pods are back", stage.lab("wait", name), timeout=1200)
        play("verify", "railops.rdma.verify")
        measured()
        if cluster:
            pods_measured()


def demo() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rails", type=int, default=8, choices=range(1, 9), metavar="1..8")
    parser.add_argument("--hosts-only", action="store_true", help="without a cluster")
    args = parser.parse_args()
    begun = time.monotonic()
    say(paint("railops.rdma: from bare guests to RDMA traffic on every rail", "1"))
    long = "Eight minutes" if args.hosts_only else "Half an hour or more (--hosts-only: eight minutes)"
    say(f"{long} on two cores with nothing beside it; five more at the first time, which builds the guests' image.")
    packages.provide("guests")
    missing = [package.gives for package in packages.lacking("guests")]
    if os.geteuid() != 0 or missing:
        raise Failure(
            "The guests were not started.",
            f"They need root{' and ' + ', '.join(missing) if missing else ''}.",
            "sudo make lab. Without root there is make demo, which shows plan, diff and report.",
        )
    prepare()
    stage = Stage(FOLDER)
    show(stage, args.rails, cluster=not args.hosts_only and can_have_cluster(stage))
    say(stage.picture())
    stage.places()
    say(f"  {time.monotonic() - begun:.0f} seconds\n")


if __name__ == "__main__":
    main(demo)
