# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The whole path on this machine: three nodes with eight rails each, leaves and a spine, all in network namespaces.

Plans the fabric of inventory/demo, brings the hosts' network to the plan, checks the objects (and applies them when
KUBECONFIG is set), verifies, breaks a rail to show how an audit names it, and mends it. Nothing leaves the machine.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from stage import CHECKOUT, COLOUR, Stage, changed, paint, say

FOLDER = CHECKOUT / "tests/output/demo"
INVENTORY = str(CHECKOUT / "inventory/demo")


def show_plan(stage: Stage) -> None:
    """Plan; this part needs no root."""
    say(paint("\n1. The inventory declares the fabric once; a pure planner turns it into files.", "1"))
    output = stage.run("plan", ["ansible-playbook", "-i", INVENTORY, "railops.rdma.plan"])
    summary, _end = json.JSONDecoder().raw_decode(output.partition('"msg": ')[2])
    for line in summary[:-1]:
        say(f"     {line}")
    files = sorted(path.relative_to(FOLDER) for path in (FOLDER / "plan").rglob("*") if path.is_file())
    say(f"     {len(files)} files under {FOLDER / 'plan'}: hosts/*.json, cluster/*.yaml, switch/*.csv, report.html")


def lacking() -> str | None:
    """Say what the second part needs that this machine lacks."""
    if os.geteuid() != 0:
        return "The hosts of the demo are network namespaces, which need root. Run: sudo make demo"
    missing = [name for name in ("ip", "unshare", "nsenter") if shutil.which(name) is None]
    if missing:
        return f"The demo needs {', '.join(missing)}. On Debian or Ubuntu: apt-get install iproute2 util-linux"
    return None


def show_hosts(stage: Stage) -> None:
    """Build the fabric, bring it to the plan, break it, mend it."""
    name = f"demo{os.getpid() % 100000}"
    say(paint("\n2. Three nodes, eight rails, a leaf for each rail and a spine, in network namespaces.", "1"))
    options = ("--kind", "netns", "--nodes", "3", "--plan", str(FOLDER / "plan/fabric"))
    with stage.started("start the lab", name, *options) as inventory:

        def play(title: str, playbook: str, *words: str, fails: bool = False) -> str:
            book = ["ansible-playbook", "-i", INVENTORY, "-i", inventory, f"railops.rdma.{playbook}", *words]
            return stage.run(title, stage.lab("exec", name, "--", *book), fails=fails)

        say(paint("\n3. Hosts, objects and verification: ansible-playbook railops.rdma.site", "1"))
        play("preview: site --check --diff", "site", "--check", "--diff")
        first = play("site", "site")
        say(f"     {changed(first)} changes")
        second = play("site again", "site")
        say(f"     {changed(second)} changes")
        say(paint("\n4. A rule is deleted on node2: the audit names it, the hosts playbook mends it.", "1"))
        stage.run(
            "delete the rule", stage.lab("exec", name, "--host", "node2", "--", "ip", "rule", "del", "pref", "10003")
        )
        play("audit", "audit", fails=True)
        say(picture())
        play("hosts", "hosts", "--limit", "node2")
        play("verify", "verify")


def picture() -> str:
    """Return the verdict as the terminal shows it, coloured where it can."""
    from ansible_collections.railops.rdma.plugins.module_utils import _verdict_text

    verdict = json.loads((FOLDER / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    return _verdict_text.picture(verdict, "fabric", colour=COLOUR)


def main() -> None:
    """Run the demo."""
    if not shutil.which("ansible-playbook"):
        sys.exit("ansible-playbook is not on PATH. Run the demo by: make demo")
    shutil.rmtree(FOLDER, ignore_errors=True)
    stage = Stage(FOLDER)
    say(paint("railops.rdma: from an inventory to verified rails", "1"))
    show_plan(stage)
    need = lacking()
    if need:
        say(f"\n  The report of the plan: {FOLDER / 'plan/fabric/report.html'}")
        sys.exit(f"\n{need}")
    show_hosts(stage)
    say(picture())
    say(f"  report  {FOLDER / 'verify/fabric/report.html'}")
    say(f"  verdict {FOLDER / 'verify/fabric/verdict.json'}")
    say(f"  log     {stage.log}")
    say(f"  {stage.seconds():.0f} seconds\n")


if __name__ == "__main__":
    main()
