# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the switches: which networks each leaf announces, and which addresses are its own.

CSV with a header, LF line ends, one row a fact, in a fixed order. People open it in a spreadsheet:
a cell that would be a formula there begins with an apostrophe.
"""

from __future__ import annotations

import csv
import io
import typing as t

from .._fabric.model import Block, FabricPlan
from .._fabric.totals import pods_per_node
from .topology import leaves_of

PREFIX_COLUMNS = ("zone", "leaf", "rail", "family", "aggregate", "vlan", "nodes", "max_nodes", "pods_per_node")
GATEWAY_COLUMNS = ("zone", "leaf", "rail", "family", "node", "slot", "gateway", "subnet", "vlan")
# What a spreadsheet takes for a formula or a command (OWASP, CSV injection).
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "|", "%")


def cell(value: t.Any) -> str:
    """Return a value as text that no spreadsheet evaluates."""
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text


def _where(plan: FabricPlan, block: Block, leaf: str = "") -> tuple[str, str, str, int]:
    zone = plan.fabric.zones[block.zone]
    return zone.name, leaf or zone.leaf(block.rail), plan.fabric.rails[block.rail].name, block.family


def _prefixes(plan: FabricPlan) -> t.Iterator[tuple[t.Any, ...]]:
    for block in plan.blocks:
        nodes = len(plan.nodes_of(block.zone))
        where = _where(plan, block)
        yield (*where, block.aggregate, plan.fabric.rails[block.rail].vlan, nodes, block.slots, pods_per_node(block))


def _gateways(plan: FabricPlan) -> t.Iterator[tuple[t.Any, ...]]:
    leaves = {node.name: leaves_of(plan.fabric, node) for node in plan.nodes} | {"": ("",) * len(plan.fabric.rails)}
    for block in plan.blocks:
        nodes = [(node.name, node.slot) for node in plan.nodes_of(block.zone)] if block.per_node else [("", "")]
        for name, slot in nodes if block.gateway_offset is not None else ():
            _address, subnet, gateway = block.texts(int(slot or 0))
            where = _where(plan, block, leaves[name][block.rail])
            yield (*where, name, slot, gateway, subnet, plan.fabric.rails[block.rail].vlan)


def _csv(rows: t.Iterable[t.Iterable[t.Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([cell(value) for value in row] for row in rows)
    return out.getvalue()


def render_switch(plan: FabricPlan) -> dict[str, str]:
    """Return the files of the plan's folder `switch/`: name -> text.

    `prefixes.csv` has the aggregate per zone, leaf, rail and family, for the leaf to announce; `gateways.csv` the
    switch's own addresses: one a rail, or one a node and rail where each has its own subnet.
    """
    columns = len(PREFIX_COLUMNS) - (not plan.fabric.attached.pods)
    return {
        "prefixes.csv": _csv(row[:columns] for row in (PREFIX_COLUMNS, *_prefixes(plan))),
        "gateways.csv": _csv((GATEWAY_COLUMNS, *_gateways(plan))),
    }
