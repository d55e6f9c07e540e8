# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole path on two QEMU guests with a real RDMA subsystem: RoCE v2 traffic over every rail, by soft-RoCE.

    lab_demo.py                 two guests, eight rails each, the fabric of inventory/demo
    lab_demo.py --rails 2       fewer rails: faster on a slow machine

The guests are emulated: what they measure says that RDMA flows, not how fast a NIC is.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from stage import CHECKOUT, COLOUR, Stage, changed, paint, say

FOLDER = CHECKOUT / "tests/output/lab-demo"
# The image's driver is soft-RoCE: it has no link type and no DCB, and there is no GPU.
SETTINGS = {
    "site_host_roles": ["rdma_driver", "rdma_host", "rail_network"],
    # Both at once, and time for the guard: an emulated processor is slow.
    "site_serial": [2],
    "rail_network_confirm_timeout": 300,
    "verify_devices": True,
    "verify_traffic": "rdma",
    "verify_latency_iterations": 50,
    "verify_bandwidth_iterations": 50,
    "verify_timeout": 90,
}


def inventory(rails: int) -> Path:
    """Write the inventory of the guests: that of the demo, with what guests can do."""
    folder = FOLDER / "inventory"
    shutil.copytree(CHECKOUT / "inventory/demo", folder)
    (folder / "hosts.ini").write_text("[gpu_nodes]\nnode1\nnode2\n", encoding="utf-8")
    (folder / "group_vars/all/site.yml").write_text(json.dumps(SETTINGS), encoding="utf-8")
    path = folder / "group_vars/all/fabric.yml"
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "name: rail" not in line or int(line.split("rail")[1][0]) <= rails]
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")
    return folder


def picture() -> str:
    """Return the verdict as the terminal shows it."""
    from ansible_collections.railops.rdma.plugins.module_utils import _verdict_text

    verdict = json.loads((FOLDER / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    return _verdict_text.picture(verdict, "fabric", colour=COLOUR)


def measured() -> None:
    """Print what each rail measured."""
    for path in sorted((FOLDER / "verify/fabric/hosts").glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        for check in result["checks"]:
            if check["id"] in ("traffic_read_lat", "traffic_write_bw"):
                say(f"     {result['host']} {check['rail']:<6} {check['id'][8:]:<9} {check['observed']}")


def show(stage: Stage, rails: int) -> None:
    """Plan, start the guests, run site twice, reboot, verify again."""
    where = str(inventory(rails))
    name = f"guests{os.getpid() % 100000}"
    say(paint("\n1. The plan.", "1"))
    stage.run("plan", ["ansible-playbook", "-i", where, "railops.rdma.plan"])
    say(
        paint(
            "\n2. Two guests: Debian, systemd, a kernel with ib_core and soft-RoCE (built once).",
            "1",
        )
    )
    options = ("--kind", "guests", "--nodes", "2", "--rails", str(rails), "--plan", str(FOLDER / "plan/fabric"))
    with stage.started("start the lab", name, *options, timeout=1500) as lab:

        def play(title: str, playbook: str) -> str:
            book = ["ansible-playbook", "-i", where, "-i", lab, playbook]
            return stage.run(title, stage.lab("exec", name, "--", *book), timeout=1500)

        say(paint("\n3. From the bare image to RDMA: ansible-playbook railops.rdma.site", "1"))
        say(f"     {changed(play('site', 'railops.rdma.site'))} changes")
        measured()
        if again := changed(play("site again", "railops.rdma.site")):
            sys.exit(f"The second run changed {again} things. The whole output: {stage.log}")
        say("     0 changes")
        say(paint("\n4. All hosts reboot; nothing runs but the verification.", "1"))
        ad_hoc = ["ansible", "-i", where, "-i", lab, "gpu_nodes", "-m", "ansible.builtin.reboot"]
        stage.run("reboot", stage.lab("exec", name, "--", *ad_hoc), timeout=900)
        play("verify", "railops.rdma.verify")
        measured()


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rails", type=int, default=8, choices=range(1, 9), metavar="1..8")
    rails = parser.parse_args().rails
    missing = [tool for tool in ("ip", "qemu-system-x86_64", "debootstrap", "mke2fs") if not shutil.which(tool)]
    if os.geteuid() != 0 or missing:
        sys.exit(
            "Guests need root" + (f" and {', '.join(missing)}" if missing else "") + ". On Debian or Ubuntu:\n"
            "  sudo make deps\n  sudo make lab\nWithout them: sudo make demo, which uses network namespaces."
        )
    shutil.rmtree(FOLDER, ignore_errors=True)
    stage = Stage(FOLDER)
    say(paint("railops.rdma: from a bare image to RDMA traffic on every rail", "1"))
    show(stage, rails)
    say(picture())
    say(f"  report  {FOLDER / 'verify/fabric/report.html'}")
    say(f"  verdict {FOLDER / 'verify/fabric/verdict.json'}")
    say(f"  {stage.seconds():.0f} seconds\n")


if __name__ == "__main__":
    main()
