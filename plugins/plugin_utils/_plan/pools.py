# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the SpiderIPPools and SpiderReservedIPs.

Pools are many and of one shape: they are written from a template, with values that never need quotes (IPv4 addresses,
our own names) or always have them (node names, IPv6).
"""

from __future__ import annotations

import typing as t

from ...module_utils import _intervals as intervals
from ...module_utils._errors import Problem
from ...module_utils._fabric.labels import (
    KEEP_POOL,
    LABEL_FABRIC,
    LABEL_MANAGER,
    POOL,
    RESERVED,
    SPIDERPOOL,
    STEM_LENGTH,
)
from ...module_utils._fabric.numbers import MANAGER
from .._fabric.model import MAX_POOL, Block, Fabric, FabricPlan, Node, Rail, address_text, range_text
from .._fabric.names import Body, manifest, pool_name, pool_stem
from .text import HEADING, scalar


def _node_name(nodes: t.Sequence[Node]) -> str:
    return "  nodeName:\n" + "".join([f'    - "{node.name}"\n' for node in nodes])


def _pools(fabric: Fabric, block: Block, owners: t.Iterable[tuple[str, int, str, str]]) -> t.Iterator[str]:
    """Write the pools of a rail.

    :param owners: name, slot, the lines of its nodes (empty where all nodes share the pools), and `disable`.
    """
    family, gateway = block.family, block.gateway_offset
    quote = '"' if family == 6 else ""
    stem = pool_stem(fabric, fabric.rails[block.rail], family)
    notes = "".join(f"    {key}: {value}\n" for key, value in KEEP_POOL.items())
    head = (
        f"  annotations:\n{notes}"
        f"  labels:\n    {LABEL_MANAGER}: {MANAGER}\n    {LABEL_FABRIC}: {scalar(fabric.name)}\n"
        "spec:\n  default: false\n  disable: "
    )
    usual = intervals.split(block.pod_offsets, MAX_POOL)
    for owner, slot, nodes, disabled in owners:
        first = block.subnet_first(slot)
        subnet = address_text(family, first)
        by = f"  gateway: {quote}{address_text(family, first + gateway)}{quote}\n" if gateway is not None else ""
        base, pools = (0, block.pools(slot)) if slot in block.cuts else (first, usual)
        for part, ranges in enumerate(pools):
            spans = [(base + low, base + high) for low, high in ranges]
            ips = "".join([f"    - {quote}{range_text(family, span)}{quote}\n" for span in spans])
            yield (
                f"---\napiVersion: {SPIDERPOOL}\nkind: {POOL}\nmetadata:\n  name: {pool_name(stem, owner, part)}\n"
                f"{head}{disabled}\n{by}  ipVersion: {family}\n  ips:\n{ips}{nodes}"
                f"  subnet: {quote}{subnet}/{block.subnet_length}{quote}\n"
            )


def render_pools(plan: FabricPlan) -> str:
    """Return the text of ippools.yaml."""
    fabric = plan.fabric
    made = [HEADING]
    nodes = [plan.nodes_of(zone) for zone in range(len(fabric.zones))]
    own = [[(node, _node_name([node])) for node in members] for members in nodes]
    for block in plan.blocks:
        # A pool with an empty nodeName would be open to every node of the cluster.
        if not block.pod_offsets or (fabric.zoned and not nodes[block.zone]):
            continue
        zone = fabric.zones[block.zone].name
        shared = [(zone, 0, _node_name(nodes[block.zone]) if zone else "", "false")]
        # A pool of a rail that is out of service keeps its addresses, and Spiderpool gives none of them.
        single = (
            (node.name, node.slot, lines, "true" if block.rail in node.out else "false")
            for node, lines in own[block.zone]
        )
        made.extend(_pools(fabric, block, single if block.per_node else shared))
    return "".join(made)


def pool_names(plan: FabricPlan, rail: Rail, family: int) -> list[str]:
    """Return what a config lists as a rail's pools: a wildcard when nodes have their own, else the exact names."""
    fabric = plan.fabric
    stem = pool_stem(fabric, rail, family)
    names: list[str] = []
    for block in plan.blocks:
        if block.rail != rail.index - 1 or block.family != family or not block.pod_offsets:
            continue
        if block.per_node:
            return [f"{stem}-*"]
        if fabric.zoned and not plan.nodes_of(block.zone):
            continue
        zone = fabric.zones[block.zone].name
        names.extend(pool_name(stem, zone, part) for part in range(len(block.pools())))
    return names


def reserved_ips(fabric: Fabric) -> list[Body]:
    """Return the SpiderReservedIPs: one a family.

    Spiderpool expands them address by address at every allocation, so a range above MAX_POOL addresses is left out; the
    plan's own pools keep clear of it anyway.
    """
    made: list[Body] = []
    for family in (4, 6):
        ranges = [
            range_text(family, (first, last))
            for other, first, last in fabric.reserved
            if other == family and last - first < MAX_POOL
        ]
        if ranges:
            name = pool_name(f"{fabric.name}-reserved-v{family}")
            spec = {"ipVersion": family, "ips": ranges}
            made.append(manifest(SPIDERPOOL, RESERVED, fabric, name, spec, namespaced=False))
    return made


def name_problems(plan: FabricPlan) -> t.Iterator[Problem]:
    """Yield names that would make two objects one, or let a wildcard catch another rail's pools."""
    fabric = plan.fabric
    stems = {
        f"{pool_stem(fabric, rail, family)}-": f"fabric_rails[{rail.index - 1}].name"
        for rail in fabric.rails
        for family in fabric.families
    }
    for stem, place in stems.items():
        if len(stem) > STEM_LENGTH:
            problem = f"Pool names begin with {stem!r}, {len(stem)} characters; shortened names keep {STEM_LENGTH}."
            fix = f"Make fabric_name or the rail's name {len(stem) - STEM_LENGTH} characters shorter. [pool_name_long]"
            yield Problem(place, problem, fix)
        for other in stems:
            if other != stem and other.startswith(stem):
                problem = f"The wildcard {stem}* would catch the pools of {other}."
                yield Problem(place, problem, "Rename one of the two rails. [pool_wildcard]")
    owners: dict[str, str] = {}
    for block in plan.blocks[:1] if plan.fabric.mode == "exclusive" else ():
        stem = pool_stem(fabric, fabric.rails[block.rail], block.family)
        parts = max((len(block.pools(node.slot)) for node in plan.nodes[:1]), default=1)
        for node in plan.nodes:
            for part in range(parts):
                name = pool_name(stem, node.name, part)
                if owners.setdefault(name, node.name) != node.name:
                    problem = f"Its pool would be {name!r}, as that of node {owners[name]}."
                    fix = "Give one of the two another fabric_node_name. [pool_name_duplicate]"
                    yield Problem(f"node {node.name}", problem, fix)
