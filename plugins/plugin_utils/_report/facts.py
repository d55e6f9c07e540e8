# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report's content as plain data: counted once, shown by `markdown` as text and by the page's script."""

from __future__ import annotations

import typing as t
from collections import Counter

from ...module_utils._fabric.labels import DECLARED
from .._fabric.model import Block, FabricPlan, Node, range_text
from .._fabric.names import profiles
from .._fabric.totals import pods_per_node, pool_count, rdma_prefixes

MODES = {
    "shared": "one subnet per rail, shared by all nodes",
    "exclusive": "one subnet per node and rail",
    "flat": "one subnet, a part of it per rail",
}
NETWORKS = {"roce": "RoCE", "infiniband": "InfiniBand"}


class ZoneRow(t.NamedTuple):
    """A zone as reports show it."""

    name: str
    group: str
    supernets: list[str]
    leaves: list[str]
    """The leaf of each rail."""
    slots: tuple[int, int, int, int]
    """Used, retired and free slots, and all of them."""


class PlanReport:
    """All that a report shows, counted once."""

    def __init__(self, plan: FabricPlan) -> None:
        self.plan, fabric, blocks = plan, plan.fabric, plan.blocks
        self.zones = [*_zones(plan)]
        _used, self.retired, self.free, self.slots = map(sum, zip(*(zone.slots for zone in self.zones), strict=True))
        self.pools = pool_count(fabric, plan.nodes, blocks)
        self.pods = min((pods_per_node(block) for block in blocks if block.family == fabric.families[0]), default=0)
        """Pod addresses of a node on one rail, in the first family; the least of all rails and zones."""
        self.rdma = rdma_prefixes(fabric, blocks)
        self.profiles = profiles(plan)


def _zones(plan: FabricPlan) -> t.Iterator[ZoneRow]:
    used, retired = Counter(node.zone for node in plan.nodes), Counter(slot.zone for slot in plan.retired)
    for index, zone in enumerate(plan.fabric.zones):
        leaves = [zone.leaf(rail) for rail in range(len(plan.fabric.rails))]
        slots = used[index], retired[index], zone.max_nodes - used[index] - retired[index], zone.max_nodes
        yield ZoneRow(zone.name, zone.group, [str(prefix) for prefix in zone.supernets], leaves, slots)


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
            _address, _subnet, gateway = block.texts(0)
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
    "Pods per node",
)


CODE_TITLES = ("Interface", "Resource", "Network", "First gateway", "Gateway")
"""Columns of names that machines read."""


def used_columns(titles: t.Sequence[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Drop empty columns."""
    used = [index for index in range(len(titles)) if any(row[index] for row in rows)]
    return [titles[index] for index in used], [[row[index] for index in used] for row in rows]


def rail_table(report: PlanReport) -> tuple[list[str], list[list[str]]]:
    """Return titles and rows of the table of rails."""
    titles = list(RAIL_TITLES)
    if report.plan.fabric.mode != "exclusive":
        titles[titles.index("First gateway")] = "Gateway"
    return used_columns(titles, rail_rows(report))


# --- the page's data --------------------------------------------------------------------------------------------------

WITH_PODS = 1_000
"""Above this many nodes the page has each node's own addresses, and neither gateways nor the pods' ranges."""


def _addresses(node: Node, blocks: t.Sequence[t.Sequence[Block]], pods: bool) -> list[list[str]]:
    """Return a text per rail and family: the node's address, its gateway and its pods' addresses, `|` between them."""

    def text(block: Block) -> str:
        address, _subnet, gateway = block.texts(node.slot)
        ranges = ", ".join(range_text(block.family, span) for span in block.pods(node.slot)) if pods else ""
        return f"{address}/{block.subnet_length}" + (f"|{gateway}|{ranges}" if pods else "")

    return [[text(block) for block in rail] for rail in blocks]


def _nodes(report: PlanReport) -> t.Iterator[list[t.Any]]:
    """Yield name, zone, slot, profile, addresses and own cables of each node."""
    plan = report.plan
    profile = {nodes[0].interfaces: index for index, nodes in enumerate(report.profiles.values()) if nodes}
    blocks: dict[int, list[list[Block]]] = {}
    for block in plan.blocks:
        blocks.setdefault(block.zone, [[] for _rail in plan.fabric.rails])[block.rail].append(block)
    for node in plan.nodes:
        addresses = _addresses(node, blocks.get(node.zone, ()), len(plan.nodes) <= WITH_PODS)
        yield [node.name, node.zone, node.slot, profile[node.interfaces], addresses, node.cables]


def _tiles(report: PlanReport) -> t.Iterator[tuple[int, str]]:
    yield len(report.plan.nodes), f"of {report.slots:,} slots are nodes"
    yield report.free, "more nodes still fit" if report.free != 1 else "more node still fits"
    if report.retired:
        yield report.retired, "retired slots"
    if len(report.zones) > 1:
        yield len(report.zones), "zones"
    yield len(report.plan.fabric.rails), "rails"
    if report.plan.fabric.pod_addresses:
        yield report.pods, "pod addresses per node and rail"
        yield report.pools, "pools in the cluster"


def page_data(report: PlanReport) -> dict[str, t.Any]:
    """Return all that the page shows of the plan; every text of it is shown as text."""
    plan, profiles = report.plan, report.profiles
    titles, rows = rail_table(report)
    nets = ", ".join(str(prefix) for prefix in report.rdma)
    return {
        "name": plan.fabric.name,
        "subtitle": subtitle(plan),
        "rails": [rail.name for rail in plan.fabric.rails],
        "tiles": list(_tiles(report)),
        "warnings": plan.warnings,
        "zones": [zone._asdict() for zone in report.zones],
        "table": {"titles": titles, "rows": rows, "code": CODE_TITLES},
        "routes": f"Traffic to {nets} leaves through the rail of its source address." if nets else "",
        "growth": "Slots are reserved from day one"
        + (": a subnet can never change in Spiderpool" if plan.fabric.pod_addresses else "")
        + ". Growth only fills free slots.",
        "profiles": [
            {"name": name, "nodes": len(nodes), "interfaces": nodes[0].interfaces if nodes else ()}
            for name, nodes in profiles.items()
        ],
        "declared": list(profiles) == [DECLARED],
        "pods": plan.fabric.pod_addresses,
        "nodes": list(_nodes(report)),
    }
