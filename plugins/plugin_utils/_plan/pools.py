# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the SpiderIPPools and SpiderReservedIPs.

Pools are many and of one shape: they are written from a template, with values that never need quotes (IPv4 addresses,
our own names) or always have them (node names, IPv6).
"""

from __future__ import annotations

import typing as t

from ...module_utils._errors import Problem
from ...module_utils._fabric.marks import KEPT, LABEL_FABRIC, LABEL_MANAGER, POOL, RESERVED, SPIDERPOOL
from ...module_utils._fabric.model import MAX_POOL, address_text, octets_text, range_text
from ...module_utils._fabric.names import metadata, pool_name, pool_stem
from ...module_utils._fabric.numbers import MANAGER
from .text import HEADING, scalar

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...module_utils._fabric.model import Block, Fabric, Node, Plan, Rail, Range
    from .bodies import ReservedIP


def _pool_template(fabric: Fabric, family: int, gateway: bool, nodes: bool) -> str:
    """Return the text of a pool with fields for name, gateway, ranges, nodes and subnet, in this order."""
    quote = '"' if family == 6 else ""
    return "".join(
        (
            f"---\napiVersion: {SPIDERPOOL}\nkind: {POOL}\nmetadata:\n  name: %s\n  labels:\n",
            f"    {LABEL_MANAGER}: {MANAGER}\n    {LABEL_FABRIC}: {scalar(fabric.name)}\n",
            "spec:\n  default: false\n  disable: false\n",
            f"  gateway: {quote}%s{quote}\n" if gateway else "",
            f"  ipVersion: {family}\n  ips:\n%s",
            "  nodeName:\n%s" if nodes else "",
            f"  subnet: {quote}%s{quote}\n",
        )
    )


def _ips(family: int, ranges: Sequence[Range]) -> str:
    quote = '"' if family == 6 else ""
    return "".join(f"    - {quote}{range_text(family, span)}{quote}\n" for span in ranges)


def _pool(template: str, name: str, block: Block, slot: int, ranges: Sequence[Range], nodes: str) -> str:
    family, first = block.family, block.subnet_first(slot)
    gateway = () if block.gateway_offset is None else (address_text(family, first + block.gateway_offset),)
    subnet = f"{address_text(family, first)}/{block.subnet_length}"
    return template % (name, *gateway, _ips(family, ranges), *((nodes,) if nodes else ()), subnet)


def _node_line(name: str) -> str:
    return f'    - "{name}"\n'


def _pools_per_node(block: Block, stem: str, template: str, nodes: Sequence[Node]) -> Iterator[str]:
    """Write the pools of a rail whose nodes have a subnet each: tens of thousands in a big fleet, of one shape.

    The usual one is a range of IPv4 addresses that share their first three octets with the gateway: one line writes it.
    """
    parts = template.split("%s")
    usual = block.family == 4 and block.subnet_size <= 256 and len(block.pod_offsets) == 1 and len(parts) == 6
    low, high = block.pod_offsets[0]
    switch, length = block.gateway_offset or 0, block.subnet_length
    for node in nodes:
        name, slot = pool_name(stem, node.name), node.slot
        if usual and low < high and slot not in block.cuts:
            a, b, c, d, e, f = parts
            first = block.subnet_first(slot)
            net, last, ips = octets_text(first >> 8), first & 255, "    - "
            yield (
                f"{a}{name}{b}{net}{last + switch}{c}{ips}{net}{last + low}-{net}{last + high}\n{d}"
                f'{ips}"{node.name}"\n{e}{net}{last}/{length}{f}'
            )
            continue
        for part, ranges in enumerate(block.pools(slot)):
            yield _pool(template, pool_name(stem, node.name, part), block, slot, ranges, _node_line(node.name))


def render_pools(plan: Plan) -> str:
    """Return the text of ippools.yaml."""
    fabric = plan.fabric
    parts = [HEADING]
    nodes = {zone: plan.nodes_of(zone) for zone in range(len(fabric.zones))}
    for block in plan.blocks:
        # A pool with an empty nodeName would be open to every node of the cluster.
        if not block.pod_offsets or (fabric.zoned and not nodes[block.zone]):
            continue
        named = block.per_node or fabric.zoned
        stem = pool_stem(fabric, fabric.rails[block.rail], block.family)
        template = _pool_template(fabric, block.family, block.gateway_offset is not None, named)
        if block.per_node:
            parts.extend(_pools_per_node(block, stem, template, nodes[block.zone]))
            continue
        lines = "".join(_node_line(node.name) for node in nodes[block.zone]) if named else ""
        for part, ranges in enumerate(block.pools()):
            parts.append(_pool(template, pool_name(stem, fabric.zones[block.zone].name, part), block, 0, ranges, lines))
    return "".join(parts)


def pool_names(plan: Plan, rail: Rail, family: int) -> list[str]:
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


def reserved_ips(fabric: Fabric) -> list[ReservedIP]:
    """Return the SpiderReservedIPs: one a family.

    Spiderpool expands them address by address at every allocation, so a range above MAX_POOL addresses is left out; the
    plan's own pools keep clear of it anyway.
    """
    made: list[ReservedIP] = []
    for family in (4, 6):
        ranges = [
            range_text(family, (first, last))
            for other, first, last in fabric.reserved
            if other == family and last - first < MAX_POOL
        ]
        if ranges:
            name = pool_name(f"{fabric.name}-reserved-v{family}")
            made.append(
                {
                    "apiVersion": SPIDERPOOL,
                    "kind": RESERVED,
                    "metadata": metadata(fabric, name, namespaced=False),
                    "spec": {"ipVersion": family, "ips": ranges},
                }
            )
    return made


def name_problems(plan: Plan) -> list[Problem]:
    """Find names that would make two objects one, or let a wildcard catch another rail's pools."""
    fabric = plan.fabric
    problems = []
    stems = {
        f"{pool_stem(fabric, rail, family)}-": f"fabric_rails[{rail.index - 1}].name"
        for rail in fabric.rails
        for family in fabric.families
    }
    for stem, place in stems.items():
        if len(stem) > KEPT:
            problems.append(
                Problem(
                    place,
                    f"Pool names begin with {stem!r}, {len(stem)} characters; shortened names keep {KEPT}.",
                    f"Make fabric_name or the rail's name {len(stem) - KEPT} characters shorter.",
                )
            )
        problems.extend(
            Problem(place, f"The wildcard {stem}* would catch the pools of {other}.", "Rename one of the two rails.")
            for other in stems
            if other != stem and other.startswith(stem)
        )
    owners: dict[str, str] = {}
    for block in plan.blocks[:1] if plan.fabric.mode == "exclusive" else ():
        stem = pool_stem(fabric, fabric.rails[block.rail], block.family)
        parts = max((len(block.pools(node.slot)) for node in plan.nodes[:1]), default=1)
        for node in plan.nodes:
            for part in range(parts):
                name = pool_name(stem, node.name, part)
                if owners.setdefault(name, node.name) != node.name:
                    problems.append(
                        Problem(
                            f"node {node.name}",
                            f"Its pool would be {name!r}, as that of node {owners[name]}.",
                            "Give one of the two another fabric_node_name.",
                        )
                    )
    return problems
