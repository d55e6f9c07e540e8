# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Totals of a plan: prefixes that the rails lead to, pools, pod addresses of a node. Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from ...module_utils._formatting import group_by
from .model import Block, Fabric, Node, Prefix


def rdma_prefixes(fabric: Fabric, blocks: t.Sequence[Block]) -> tuple[Prefix, ...]:
    """Return what the rails' tables lead to, IPv4 first.

    Style `prefixes`: exactly the aggregates, joined where they touch, so that nothing else in the supernet is caught.
    Style `default_route`: the guides' RDMA subnet, which is the supernet, for their exclusion rule needs exactly one.
    """
    wanted = {block.aggregate for block in blocks}
    if fabric.policy == "default_route":
        supernets = {prefix for zone in fabric.zones for prefix in zone.supernets}
        used = {net for net in supernets if any(net.contains(prefix) for prefix in wanted)}
        wanted = {prefix for prefix in wanted if not any(net.contains(prefix) for net in used)} | used
    return join_prefixes(wanted)


def join_prefixes(prefixes: t.Iterable[Prefix]) -> tuple[Prefix, ...]:
    """Join networks to the fewest that cover exactly the same addresses."""
    kinds: dict[int, t.Any] = {4: ipaddress.IPv4Network, 6: ipaddress.IPv6Network}
    given = group_by((one.family, kinds[one.family]((one.network, one.length))) for one in prefixes)
    return tuple(
        Prefix(family, int(net.network_address), net.prefixlen)
        for family in sorted(given)
        for net in ipaddress.collapse_addresses(given[family])
    )


def pool_count(fabric: Fabric, nodes: t.Iterable[Node], blocks: t.Iterable[Block]) -> int:
    """Count the pools that the plan makes."""
    if not fabric.backend.pool_per_node:
        return len({(block.rail, block.family) for block in blocks})
    slots = group_by((node.zone, node.slot) for node in nodes)
    count = 0
    for block in blocks:
        used = slots.get(block.zone, [])
        if not block.per_node:
            count += len(block.pools())
            continue
        plain = len(block.pools(next((slot for slot in used if slot not in block.cuts), used[0]))) if used else 0
        count += plain * len(used) + sum(len(block.pools(slot)) - plain for slot in block.cuts.keys() & used)
    return count


def pods_per_node(block: Block) -> int:
    """Return how many pod addresses a node can count on in a block; cut subnets have fewer."""
    count = sum(high - low + 1 for low, high in block.pod_offsets)
    return count if block.per_node else count // block.slots
