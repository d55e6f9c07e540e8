# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How long a changed host waits for its confirmation in a large batch, and whether any is rolled back.

Hosts are namespaces, Ansible has its default number of forks, and no gateway answers. The baseline are two tasks, one
that changes all hosts of the batch and one that confirms, which is what most playbooks do.
"""

from __future__ import annotations

import json
import tempfile
import typing as t
from pathlib import Path

from ran import Pair, playbook

MANY, FEW = 40, 16
TIMER = 60
Json = dict[str, t.Any]
PLAN = "{{ playbook_dir }}/plan"
ROLE: list[Json] = [
    {
        "ansible.builtin.include_role": {"name": "railops.rdma.rail_network"},
        "vars": {
            "rail_network_confirm_timeout": TIMER,
            "rail_network_persist": False,
        },
    }
]
TWO_TASKS: list[Json] = [
    {"railops.rdma.policy_route": {"plan_dir": PLAN, "confirm_timeout": TIMER}, "register": "result"},
    {"ansible.builtin.meta": "reset_connection"},
    {"railops.rdma.policy_route": {"confirm": "{{ result.token }}"}, "ignore_errors": True},
]


def longest(hosts: int, tasks: list[Json]) -> tuple[float, int]:
    """Return the longest wait of so many hosts, the timer's where it ran out, and how many were not confirmed."""
    from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, options

    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name, Fabric(f"c{hosts}", hosts, 1) as fabric:
        folder = Path(name)
        fabric.inventory(folder, [plan_of(options(0, 1, six=False), slot) for slot in range(hosts)])
        play = {"hosts": "all", "gather_facts": False, "connection": "local", "tasks": tasks}
        (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
        playbook(folder, "-i", "inventory", "play.yml", "-e", f"rail_network_plan_dir={folder}/plan")
        timers = [host.timer() for host in fabric.hosts]
    waits = [(timer["confirmed"] - timer["ready"]) / 1e9 for timer in timers if "confirmed" in timer]
    return max(waits) if len(waits) == hosts else TIMER, hosts - len(waits)


def plan_of(want: Json, slot: int) -> Json:
    """Return the plan of one host of many: eight subnets of 32 addresses in each of the third numbers."""
    base, first = f"172.17.{slot // 8}", slot % 8 * 32
    four = {"address": f"{base}.{first + 2}", "subnet": f"{base}.{first}/27", "gateway": f"{base}.{first + 1}"}
    want["rails"][0]["addresses"] = [four]
    return want


def waits() -> t.Iterator[dict[str, Pair]]:
    """Measure one task over many hosts, and two over few."""
    while True:
        ours, lost = longest(MANY, ROLE)
        yield {"back": (lost, None), "wait": (ours, longest(FEW, TWO_TASKS)[0])}
