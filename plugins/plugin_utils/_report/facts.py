# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the report says, as plain data: counted once, shown by `markdown` as Markdown and as HTML.

The HTML's table of nodes gets the blocks' offsets, not every address: a page for 10,000 nodes stays below a megabyte,
and the browser does the same arithmetic as `Block` (a test compares the two).
"""

from __future__ import annotations

import typing as t
from collections import Counter
from dataclasses import dataclass

from .._fabric.model import Block, FabricPlan, Node, Prefix, Zone, address_text
from .._fabric.names import profiles
from .._fabric.totals import pods_per_node, pool_count, rdma_prefixes

MODES = {
    "shared": "one subnet per rail, shared by all nodes",
    "exclusive": "one subnet per node and rail",
    "flat": "one subnet, a part of it per rail",
}
NETWORKS = {"roce": "RoCE", "infiniband": "InfiniBand"}


@dataclass(frozen=True)
class ZoneFacts:
    """What a zone has and what is left of it."""

    zone: Zone
    used: int
    retired: int

    @property
    def free(self) -> int:
        """How many nodes still fit."""
        return self.zone.max_nodes - self.used - self.retired


@dataclass(frozen=True)
class SupernetFacts:
    """One supernet and the networks of the rails inside it; `more` is how many rails of the same size still fit."""

    zone: str
    prefix: Prefix
    parts: tuple[tuple[int, int, int], ...]
    """(rail index from 0, first address, last address)."""
    used: float
    """0 to 1, of the supernet's addresses."""
    more: int


@dataclass(frozen=True)
class PlanReport:
    """All that a report shows."""

    plan: FabricPlan
    zones: tuple[ZoneFacts, ...]
    supernets: tuple[SupernetFacts, ...]
    pools: int
    pods: int
    """Pod addresses of a node on one rail, in the first family; the least of all rails and zones."""
    rdma: tuple[Prefix, ...]
    profiles: t.Mapping[str, tuple[Node, ...]]

    @property
    def free(self) -> int:
        """How many nodes still fit, over all zones."""
        return sum(zone.free for zone in self.zones)

    @property
    def slots(self) -> int:
        """Slots of all zones."""
        return sum(zone.zone.max_nodes for zone in self.zones)

    @property
    def retired(self) -> int:
        """Slots that nobody gets until they are released."""
        return sum(zone.retired for zone in self.zones)


def collect(plan: FabricPlan) -> PlanReport:
    """Count everything once."""
    return PlanReport(
        plan=plan,
        zones=zones_of(plan),
        supernets=_supernets(plan),
        pools=pool_count(plan.fabric, plan.nodes, plan.blocks),
        pods=min((pods_per_node(block) for block in plan.blocks if block.family == plan.fabric.families[0]), default=0),
        rdma=rdma_prefixes(plan.fabric, plan.blocks),
        profiles=profiles(plan),
    )


def zones_of(plan: FabricPlan) -> tuple[ZoneFacts, ...]:
    """Return how full each zone is."""
    used = Counter(node.zone for node in plan.nodes)
    gone = Counter(slot.zone for slot in plan.retired)
    return tuple(ZoneFacts(zone, used[index], gone[index]) for index, zone in enumerate(plan.fabric.zones))


def span_of(block: Block, flat: bool) -> tuple[int, int]:
    """Return the first and last address that a rail has: its network, or in a flat fabric its part of it."""
    used = (*block.host_offsets, *block.pod_offsets)
    if not flat or not used:
        return block.aggregate.network, block.aggregate.last
    first = block.aggregate.network
    return first + min(low for low, _high in used), first + max(high for _low, high in used)


def _supernets(plan: FabricPlan) -> tuple[SupernetFacts, ...]:
    found = []
    flat = plan.fabric.mode == "flat"
    for index, zone in enumerate(plan.fabric.zones):
        for prefix in zone.supernets:
            parts = [
                (block.rail, *span_of(block, flat))
                for block in plan.blocks
                if block.zone == index and prefix.contains(block.aggregate)
            ]
            if not parts:
                continue
            size = min(last - first + 1 for _rail, first, last in parts)
            taken = sum(last - first + 1 for _rail, first, last in parts)
            more = 0 if flat else (prefix.last - max(last for _rail, _first, last in parts)) // size
            found.append(SupernetFacts(zone.name, prefix, tuple(parts), taken / prefix.size, more))
    return tuple(found)


# --- what both reports say ------------------------------------------------------------------------------------------


def subtitle(plan: FabricPlan) -> str:
    """Return the fabric in one line."""
    fabric = plan.fabric
    marks = fabric.lossless
    families = " and ".join(f"IPv{family}" for family in fabric.families) or "LID only, no addresses"
    return ", ".join(
        (
            NETWORKS[fabric.network] + (f" with {fabric.attachment}" if fabric.attached.pods else ""),
            *([f"{fabric.mode}: {MODES[fabric.mode]}"] if fabric.families else ()),
            families,
            f"MTU {fabric.mtu}",
            *([f"RoCE on priority {marks.priority} by DSCP {marks.dscp}, CNP {marks.cnp}"] if marks else ()),
        )
    )


def rail_rows(report: PlanReport) -> list[list[str]]:
    """Return one row a rail, zone and family; the rail's own columns only in its first row."""
    rows = []
    fabric = report.plan.fabric
    resources = fabric.resources if fabric.attached.pods else [""] * len(fabric.rails)
    for number, rail in enumerate(fabric.rails):
        gpu = "" if rail.gpu is None else str(rail.gpu)
        own = [rail.name, rail.parent, gpu, str(fabric.table_base + rail.index), resources[number]]
        blocks = [block for block in report.plan.blocks if block.rail == number]
        if not blocks:
            rows.append([*own, "", "", "", "", ""])
        for index, block in enumerate(blocks):
            zone = report.plan.fabric.zones[block.zone]
            gateway = ""
            if block.gateway_offset is not None:
                gateway = address_text(block.family, block.subnet_first(0) + block.gateway_offset)
            lead = own if index == 0 else [""] * len(own)
            pods = f"{pods_per_node(block):,}" if fabric.attached.pods else ""
            rows.append([*lead, zone.name, zone.leaf(number), str(block.aggregate), gateway, pods])
    return rows


RAIL_TITLES = (
    "Rail",
    "Interface",
    "GPU",
    "Table",
    "Resource",
    "Zone",
    "Leaf",
    "Network",
    "First gateway",
    "Pods a node",
)


CODE_TITLES = ("Interface", "Resource", "Network", "First gateway", "Gateway")
"""Columns of names that machines read."""


def used_columns(titles: t.Sequence[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Drop the columns in which nobody has anything."""
    kept = [index for index in range(len(titles)) if any(row[index] for row in rows)]
    return [titles[index] for index in kept], [[row[index] for index in kept] for row in rows]


def rail_table(report: PlanReport) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the table of rails."""
    titles = list(RAIL_TITLES)
    if report.plan.fabric.mode != "exclusive":
        titles[titles.index("First gateway")] = "Gateway"
    return used_columns(titles, rail_rows(report))


# --- the table of nodes -----------------------------------------------------------------------------------------------


def _block_data(block: Block) -> dict[str, t.Any]:
    """Return a block for the browser; numbers as text, because an IPv6 address does not fit a JavaScript number."""

    def spans(ranges: t.Iterable[tuple[int, int]]) -> list[list[str]]:
        return [[str(low), str(high)] for low, high in ranges]

    made: dict[str, t.Any] = {
        "z": block.zone,
        "r": block.rail,
        "f": block.family,
        "b": str(block.aggregate.network),
        "e": str(block.aggregate.last),
        "l": block.subnet_length,
        "n": int(block.per_node),
        "g": None if block.gateway_offset is None else str(block.gateway_offset),
        "h": spans(block.host_offsets),
        "p": spans(block.pod_offsets),
    }
    if block.cuts:
        made["c"] = {
            str(slot): [None if cut.host is None else str(cut.host), spans(cut.pods)]
            for slot, cut in block.cuts.items()
        }
    return made


def table_data(report: PlanReport) -> dict[str, t.Any]:
    """Return what the browser needs for the table of nodes and its search."""
    plan = report.plan
    names = list(report.profiles)
    profile = {nodes[0].interfaces: index for index, nodes in enumerate(report.profiles.values()) if nodes}
    return {
        "rails": [rail.name for rail in plan.fabric.rails],
        "zones": [zone.name for zone in plan.fabric.zones],
        "families": list(plan.fabric.families),
        "profiles": [
            {"name": name, "interfaces": list(report.profiles[name][0].interfaces) if report.profiles[name] else []}
            for name in names
        ],
        "blocks": [_block_data(block) for block in plan.blocks],
        "nodes": [[node.name, node.zone, node.slot, profile[node.interfaces]] for node in plan.nodes],
        "retired": [[gone.name, gone.zone, gone.slot] for gone in plan.retired],
    }
