# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The arithmetic of the plan: from a validated fabric to its blocks. Integers only, no lists of addresses.

Every address is a function of the frozen parameters and of a slot. Blocks of rails follow each other inside the
supernet (rail-major), so that a rail's leaf announces one aggregate.
"""

from __future__ import annotations

import bisect
import itertools
import typing as t

from ...module_utils import _intervals as intervals
from ...module_utils._fabric.neighbors import SOFT_LIMIT, thresholds
from ...module_utils._fabric.numbers import IPOIB_DATAGRAM_MTU
from ...module_utils._fabric.shapes import out_text
from .._fabric.model import WIDTH, Block, Fabric, FabricPlan, Node, Prefix, Rail, Range, Retired, SlotOverride, Zone
from .._fabric.totals import pool_count

DEFAULT_PODS = 28
"""Pod addresses per node and rail where no IPv4 says otherwise: what a /27 leaves after gateway and node."""

SLOW_POOL_COUNT = 1000
"""From here on Spiderpool's webhook, which lists all pools at every create, makes the first apply slow."""

MINUTE_SQUARE = 16_000_000 / 60
"""4,000 pools took an hour on two cores, and the time grows with the square of their number."""


def power_of_two(number: int) -> int:
    """Round up to a power of two."""
    return 1 << max(0, number - 1).bit_length()


def gateway_offset(spec: str | int, window: int) -> int | None:
    """Return the offset of the gateway in a subnet of which `window` addresses are used."""
    if spec == "none":
        return None
    if window == 2:
        return int(spec == "last")
    if spec == "first":
        return 1
    if spec == "last":
        return window - 2
    return int(spec) if int(spec) >= 0 else window + int(spec)


def lay_out(
    span: Range, window: int, gateway: int | None, hosts: int, at_end: bool, limit: int | None, holes: t.Sequence[Range]
) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Deal the offsets of `span` to `hosts` nodes and the pods (at most `limit`); all but the gateway's.

    `window` is the used part of the subnet: its first and last address stay unused (IPv4: network and broadcast; IPv6:
    the subnet-router anycast address, and the same offsets as IPv4's).

    :param gateway: its offset.
    :param at_end: nodes have the last addresses instead of the first.
    """
    if window == 2:
        other = 0 if gateway == 1 else 1
        return intervals.subtract([(other, other)], holes), ()
    excluded = [*holes] if gateway is None else [*holes, (gateway, gateway)]
    free = intervals.subtract([(max(span[0], 1), min(span[1], window - 2))], intervals.merge(excluded))
    if at_end:
        rest, nodes = intervals.take(free, max(0, intervals.size(free) - hosts))
    else:
        nodes, rest = intervals.take(free, hosts)
    if limit is not None:
        rest = intervals.take(rest, limit)[0]
    return nodes, intervals.merge(rest)


def pods_limit(fabric: Fabric, family: int, slots: int) -> int | None:
    """Return the most pod addresses of a subnet (exclusive) or of a rail (shared, flat); None is all that are free."""
    pods = fabric.pods_per_node
    if pods is None and family == 6 and 4 not in fabric.families:
        pods = DEFAULT_PODS
    if pods is None:
        return None
    return pods if fabric.mode == "exclusive" else pods * slots


def aggregate_of(fabric: Fabric, zone: Zone, rail: Rail, family: int) -> Prefix | None:
    """Return the network of a rail in a zone: explicit, or cut from the supernet; None when it does not fit."""
    if subnet := next((net for net in rail.subnets if net.family == family), None):
        return subnet
    for supernet in zone.supernets:
        if supernet.family != family:
            continue
        if fabric.mode == "flat":
            return supernet
        length = fabric.rail_prefix[family]
        if fabric.mode == "exclusive":
            length = fabric.node_prefix[family] - (power_of_two(zone.max_nodes).bit_length() - 1)
        if not supernet.length <= length <= WIDTH[family]:
            return None
        size = 1 << (WIDTH[family] - length)
        found = Prefix(family, supernet.network + (fabric.subnet_offset + rail.index - 1) * size, length)
        return found if supernet.contains(found) else None
    return None


def subnet_length_of(fabric: Fabric, aggregate: Prefix) -> int:
    """Return the length of the subnets inside an aggregate."""
    return fabric.node_prefix[aggregate.family] if fabric.mode == "exclusive" else aggregate.length


def window_beside(fabric: Fabric, size: int, length: int) -> int:
    """Return how many addresses an IPv6 subnet uses beside an IPv4 one, whose offsets it has: no more than that.

    :param size: addresses of the IPv6 subnet.
    :param length: of the IPv4 subnet. A link for hosts only leaves a larger IPv6 subnet offsets of its own.
    """
    beside = 1 << (WIDTH[4] - length)
    return size if beside == 2 and fabric.pods_per_node == 0 else min(size, beside)


def _holes(fabric: Fabric, subnet: Prefix) -> list[Range]:
    """Return the reserved ranges inside a subnet, as offsets."""
    # The ranges are sorted and disjoint: begin with the first that ends in the subnet or behind its beginning.
    begin = bisect.bisect_left(fabric.reserved, (subnet.family, subnet.network), key=lambda span: (span[0], span[2]))
    found: list[Range] = []
    for family, first, last in itertools.islice(fabric.reserved, begin, None):
        if family != subnet.family or first > subnet.last:
            break
        found.append((max(first, subnet.network) - subnet.network, min(last, subnet.last) - subnet.network))
    return found


def _ends(fabric: Fabric, window: int) -> list[Range]:
    """Return the offsets that fabric_reserved_per_subnet reserves at both ends of a subnet."""
    reserved = fabric.reserved_per_subnet or {"first": 0, "last": 0}
    # Both addresses of a link are usable.
    low, high = (0, 1) if window == 2 else (1, window - 2)
    spans = ((low, low + reserved["first"] - 1), (max(0, high - reserved["last"] + 1), high))
    return [*intervals.merge(span for span in spans if span[0] <= span[1])]


def _flat_part(fabric: Fabric, rail: Rail, window: int) -> Range:
    """Return a rail's part of a flat subnet: a power of two of parts, so that adding a rail seldom moves anybody."""
    part = window // power_of_two(fabric.subnet_offset + len(fabric.rails))
    start = (fabric.subnet_offset + rail.index - 1) * part
    return start, start + part - 1


def _cuts(
    fabric: Fabric, aggregate: Prefix, window: int, slots: int, limit: int | None, usual: t.Sequence[Range]
) -> dict[int, SlotOverride]:
    """Lay out again the few subnets that a reserved range cuts into.

    :param usual: the pods' offsets in the other subnets.
    """
    length = fabric.node_prefix[aggregate.family]
    gateway = gateway_offset(fabric.gateway[aggregate.family], window)
    size = 1 << (WIDTH[aggregate.family] - length)
    cuts: dict[int, SlotOverride] = {}
    for first, last in _holes(fabric, aggregate):
        for slot in range(first // size, min(last // size, slots - 1) + 1):
            if slot in cuts:
                continue
            subnet = Prefix(aggregate.family, aggregate.network + slot * size, length)
            holes = [*intervals.merge([*_holes(fabric, subnet), *_ends(fabric, window)])]
            hosts, pods = lay_out((0, window - 1), window, gateway, 1, False, limit, holes)
            if not fabric.backend.pool_per_node:
                # One pool for all nodes: it can keep addresses from a node, and give it none beside the usual ones.
                pods = intervals.subtract(usual, intervals.merge([*holes, *hosts]))
            cuts[slot] = SlotOverride(
                subnet.network + hosts[0][0] if hosts else None,
                tuple((subnet.network + low, subnet.network + high) for low, high in pods),
            )
    return cuts


def build_block(fabric: Fabric, zone: int, rail: int, family: int) -> Block | None:
    """Make one block; None when the rail has no network of the family, or it does not fit its supernet.

    :param zone: and `rail`: their places in the fabric, from 0.
    """
    where = fabric.zones[zone]
    what = fabric.rails[rail]
    aggregate = aggregate_of(fabric, where, what, family)
    if aggregate is None:
        return None
    per_node = fabric.mode == "exclusive"
    length = subnet_length_of(fabric, aggregate)
    if length < aggregate.length:
        return None
    subnet = Prefix(family, aggregate.network, length)
    window = subnet.size
    if family == 6 and (twin := aggregate_of(fabric, where, what, 4)):
        window = window_beside(fabric, window, subnet_length_of(fabric, twin))
    limit = pods_limit(fabric, family, where.max_nodes)
    gateway = gateway_offset(fabric.gateway[family], window)
    if per_node:
        ends = _ends(fabric, window)
        hosts, pods = lay_out((0, window - 1), window, gateway, 1, False, limit, ends)
        if pods and fabric.backend.rest_is_pods(family, length):
            excluded = ends if gateway is None else [*ends, (gateway, gateway)]
            pods = intervals.subtract([(pods[0][0], subnet.size - 1)], intervals.merge(excluded))
    else:
        span = _flat_part(fabric, what, window) if fabric.mode == "flat" else (0, window - 1)
        at_end = fabric.host_addresses == "end"
        holes = intervals.merge([*_holes(fabric, subnet), *_ends(fabric, window)])
        hosts, pods = lay_out(span, window, gateway, where.max_nodes, at_end, limit, holes)
    return Block(
        zone=zone,
        rail=rail,
        family=family,
        aggregate=aggregate,
        subnet_length=length,
        per_node=per_node,
        slots=where.max_nodes,
        gateway_offset=gateway,
        host_offsets=hosts,
        pod_offsets=pods,
        cuts=_cuts(fabric, aggregate, window, where.max_nodes, limit, pods) if per_node else {},
    )


def build_blocks(fabric: Fabric) -> tuple[Block, ...]:
    """Make all blocks of a fabric, sorted by zone, rail and family. Those that do not fit are left out."""
    return tuple(
        block
        for zone in range(len(fabric.zones))
        for rail in range(len(fabric.rails))
        for family in fabric.families
        for block in [build_block(fabric, zone, rail, family)]
        if block is not None
    )


def named_blocks(fabric: Fabric) -> dict[tuple[str, str, int], Block]:
    """Make all blocks of a fabric, by zone's and rail's name and family: an index may move."""
    blocks = build_blocks(fabric)
    return {(fabric.zones[block.zone].name, fabric.rails[block.rail].name, block.family): block for block in blocks}


def rails_out(fabric: Fabric, node: Node) -> list[Rail]:
    """Return the rails of a node that are out of service."""
    return [rail for position, rail in enumerate(fabric.rails) if position in node.out]


def build_plan(
    fabric: Fabric, nodes: tuple[Node, ...], retired: tuple[Retired, ...], warnings: tuple[str, ...] = ()
) -> FabricPlan:
    """Put the plan together and add the warnings that follow from its size.

    :param warnings: of what was done before.
    """
    blocks = build_blocks(fabric)
    found = list(warnings)
    for node in (node for node in nodes if node.out):
        complete = len(node.out) == len(fabric.rails)
        names = "all rails" if complete else ", ".join(rail.name for rail in rails_out(fabric, node))
        found.append(f"{node.name}: {names} {out_text(node.reason)}.")
    if fabric.network == "infiniband" and fabric.mtu > IPOIB_DATAGRAM_MTU:
        found.append(
            f"fabric_mtu {fabric.mtu} needs IPoIB's connected mode, which ConnectX-4 and later do not have in current "
            f"drivers; datagram mode goes up to {IPOIB_DATAGRAM_MTU}."
        )
    several = fabric.mode == "exclusive" or len(fabric.zones) > 1
    for family in fabric.families if several and fabric.network == "roce" else ():
        if fabric.gateway[family] == "none":
            found.append(
                f"fabric_gateway is none: over IPv{family} a rail does not reach the subnets of other nodes and zones. "
                "Set it to the leaf's address, such as first, or fabric_mode to shared without zones."
            )
    count = max(map(fabric.neighbors, range(len(fabric.zones))))
    if blocks and count > SOFT_LIMIT and not fabric.neighbor_tables:
        values = ", ".join(
            f"{key.replace('/', '.')}={value}"
            for family in fabric.families
            for key, value in thresholds(count, family).items()
        )
        found.append(
            f"A host has up to {count} neighbors on its rails, and Linux keeps {SOFT_LIMIT} to 1024 by default. "
            f"Set fabric_neighbor_tables: true, or on each host {values}."
        )
    if (pools := pool_count(fabric, nodes, blocks)) >= SLOW_POOL_COUNT:
        minutes = round(pools * pools / MINUTE_SQUARE)
        time = f"{minutes} minutes" if minutes < 90 else f"{round(minutes / 60)} hours"
        found.append(
            f"The plan has {pools} pools: Spiderpool's webhook lists all of them at every create, so a first apply "
            f"takes about {time}. "
            "Before it is applied, fabric_mode shared or fabric_ipam nv-ipam makes a few pools of them "
            "(docs/guides/ipam-backend.md)."
        )
    for block, slot in [(one, slot) for one in blocks for slot in one.cuts][:5]:
        count, usual = intervals.size(block.pods(slot)), intervals.size(block.pod_offsets)
        if count < usual:
            found.append(
                f"fabric_reserved leaves {count} of {usual} pod addresses in {block.subnet(slot)} "
                f"(slot {slot}, {fabric.rails[block.rail].name})."
            )
    return FabricPlan(fabric, nodes, retired, blocks, tuple(found))
