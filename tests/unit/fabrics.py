# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fabrics for tests, and short ways to plan them."""

from __future__ import annotations

import json
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._fabric.lock import part_digests
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock as locks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.allocation import Allocation, allocate
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.blocks import build_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.facts import facts_of
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.host_plans import host_plans
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.objects import render_cluster
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import read_input, render
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.switch import render_switch
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.workload import render_workload

if t.TYPE_CHECKING:
    from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import FabricPlan


def rails(count: int = 8) -> list[dict[str, t.Any]]:
    """The rails of the guides' machines."""
    return [{"interface": f"ens{number}np0"} for number in range(1, count + 1)]


def hosts(count: int) -> list[dict[str, t.Any]]:
    return [{"host": f"node{number}"} for number in range(1, count + 1)]


def exclusive(**more: t.Any) -> dict[str, t.Any]:
    """The guides' exclusive fabric."""
    return {"mode": "exclusive", "supernets": ["172.17.0.0/16"], "max_nodes": 8, "rails": rails(), **more}


def shared(**more: t.Any) -> dict[str, t.Any]:
    """The guides' shared fabric."""
    base = {"mode": "shared", "supernets": ["172.17.0.0/16"], "rail_prefix": 24, "subnet_offset": 1, "max_nodes": 53}
    return {**base, "rails": rails(), **more}


class Planned(t.NamedTuple):
    """A plan and all its files, plan.json among them."""

    plan: FabricPlan
    files: dict[str, str]
    allocation: Allocation

    @property
    def lock(self) -> str:
        return self.files["plan.json"]

    def slice(self, host: str) -> dict[str, t.Any]:
        return json.loads(self.files[f"hosts/{host}.json"])

    def address(self, host: str, rail: int, family: int = 4) -> dict[str, t.Any]:
        found = self.slice(host)["rails"][rail - 1]["addresses"]
        return next(one for one in found if one["family"] == family)


def plan(raw: dict[str, t.Any], nodes: t.Any = None, lock: str | None = None, *, report: bool = True) -> Planned:
    """Plan in memory, as the module does it with a folder; without the report, where many plans are made."""
    fabric, options, candidates = read_input(raw, hosts(1) if nodes is None else nodes)
    old = locks.parse_lock(lock, "plan.json", accept=options.accept_lock) if lock else None
    allocation = allocate(fabric, candidates, old, options)
    made = build_plan(fabric, allocation.nodes, allocation.retired, allocation.warnings)
    files = render(made) if report else {f"hosts/{name}": json.dumps(piece) for name, piece in host_plans(made).items()}
    if not report:
        files.update((f"cluster/{name}", text) for name, text in render_cluster(made).items())
        files.update((f"switch/{name}", text) for name, text in render_switch(made).items())
        files.update((f"workload/{name}", text) for name, text in render_workload(made).items())
        files["facts.json"] = json.dumps(facts_of(made))
    files["plan.json"] = locks.write_lock(
        locks.freeze(fabric), locks.entries_of(fabric, made.nodes, made.retired), part_digests(files)
    )[0]
    return Planned(made, files, allocation)
