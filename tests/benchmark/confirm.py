# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a changed host waits for its confirmation in a large batch, and whether any is taken back. Needs root.

Hosts are namespaces, Ansible has its default number of forks, and no gateway answers. The baseline are two tasks, one
that changes all hosts of the batch and one that confirms, which is what most playbooks do.

    confirm.py            200 hosts, and the baseline with 40
    confirm.py 24 12      other numbers
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from table import Row, enter_environment, env, show

TIMER = 60
Json = dict[str, t.Any]
PLAN = "{{ playbook_dir }}/plan"
ROLE: list[Json] = [
    {
        "ansible.builtin.include_role": {"name": "railops.rdma.rail_network"},
        "vars": {
            "rail_network_confirm_timeout": TIMER,
            "rail_network_gateways": "report",
            "rail_network_persist": False,
        },
    }
]
TWO_TASKS: list[Json] = [
    {"railops.rdma.policy_route": {"plan_dir": PLAN, "confirm_timeout": TIMER}, "register": "result"},
    {"ansible.builtin.meta": "reset_connection"},
    {"railops.rdma.policy_route": {"confirm": "{{ result.token }}"}, "ignore_errors": True},
]


def waits(hosts: int, tasks: list[Json]) -> tuple[list[float], int, float]:
    """Return how long each of so many hosts waited, how many were taken back, and the time of the whole play."""
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, want_of

    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name, Fabric(f"c{hosts}", hosts, 1) as fabric:
        folder = Path(name)
        fabric.inventory(folder, [plan_of(want_of(0, 1, six=False), slot) for slot in range(hosts)])
        play = {"hosts": "all", "gather_facts": False, "connection": "local", "tasks": tasks}
        (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
        argv = [
            str(Path(sys.executable).parent / "ansible-playbook"),
            "-i",
            "inventory",
            "play.yml",
            "-e",
            f"rail_network_plan_dir={folder}/plan",
        ]
        environ = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(env.tree()), "ANSIBLE_NOCOLOR": "1"}
        began = time.monotonic()
        done = subprocess.run(argv, cwd=folder, env=environ, capture_output=True, text=True, check=False, timeout=3600)
        took = time.monotonic() - began
        timers = [host.timer() for host in fabric.hosts]
        if done.returncode:
            sys.exit((done.stdout + done.stderr)[-3000:])
    kept = [(timer["confirmed"] - timer["ready"]) / 1e9 for timer in timers if "confirmed" in timer]
    return kept, sum("fired" in timer for timer in timers), took


def plan_of(want: Json, slot: int) -> Json:
    """Return the plan of one host of many: eight subnets of 32 addresses in each of the third numbers."""
    base, first = f"172.17.{slot // 8}", slot % 8 * 32
    four = {"address": f"{base}.{first + 2}", "subnet": f"{base}.{first}/27", "gateway": f"{base}.{first + 1}"}
    want["rails"][0]["addresses"] = [four]
    return want


def main() -> None:
    """Measure and print."""
    if os.geteuid() != 0:
        print("confirmation: skipped, it needs root and network namespaces.")
        return
    enter_environment("pyroute2")
    many, few = (int(text) for text in (sys.argv[1:] or ["200", "40"]))
    ours, taken_back, took = waits(many, ROLE)
    theirs, theirs_back, _took = waits(few, TWO_TASKS)
    longest, theirs_longest = max(ours, default=TIMER), max([*theirs, TIMER] if theirs_back else theirs)
    rows = [
        Row(
            f"{many} hosts, default forks, silent gateways, timer of {TIMER} s: taken back / {few} hosts by two tasks",
            f"{taken_back}",
            f"{theirs_back}",
            "",
            "0",
            taken_back == 0 and len(ours) == many,
        ),
        Row.within(
            f"longest wait for a confirmation, {many} hosts / {few} hosts by two tasks",
            f"{longest:.1f} s",
            f"{theirs_longest:.1f} s",
            longest / theirs_longest,
            1,
        ),
    ]
    show("confirmation", rows)
    print(f"{many} hosts took {took:.0f} s in all.")


if __name__ == "__main__":
    main()
