# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks that a fabric fits its networks and overlaps no other. The fabric's single values are valid already."""

from __future__ import annotations

import typing as t

from ...module_utils import _intervals as intervals
from .._fabric.model import WIDTH, Block, Fabric, Prefix, Zone
from .._fabric.totals import rdma_prefixes
from . import blocks as arithmetic
from .check import Checker

MAX_SUBNET_POOLS = 256
"""More pools than this in one subnet are a mistake: 1,048,576 pod addresses."""


Existing = tuple[str, str, Prefix]
"""An existing network: its place in the input, the plan that has it, and the network."""


def check_space(check: Checker, fabric: Fabric) -> None:
    """Check that every rail of every zone has a network, that it is big enough, and that everybody gets an address."""
    _check_rails(check, fabric)
    for index, zone in enumerate(fabric.zones):
        for family in fabric.families:
            _check_supernet(check, fabric, index, zone, family)
    if not check.problems:
        _check_shapes(check, fabric)
    if not check.problems:
        _check_room(check, fabric, arithmetic.build_blocks(fabric))
    if not check.problems:
        _check_policy(check, fabric)


def supernet_place(fabric: Fabric, zone: int) -> str:
    """Return the place of a zone's supernets."""
    return f"fabric_zones[{zone}].supernets" if fabric.zoned else "fabric_supernets"


def _check_rails(check: Checker, fabric: Fabric) -> None:
    """Explicit subnets: not in flat mode, not with several zones, and no family left without a network."""
    for index, rail in enumerate(fabric.rails):
        place = f"fabric_rails[{index}].subnets"
        explicit = {prefix.family for prefix in rail.subnets}
        if rail.subnets and fabric.mode == "flat":
            problem = "A flat fabric has one subnet for all rails."
            check.add(place, problem, "Remove it and set fabric_supernets. [flat_one_subnet]")
        if rail.subnets and len(fabric.zones) > 1:
            fix = "Remove it and give each zone its supernets, or plan each zone as a fabric of its own. [zone_nets]"
            check.add(place, f"{rail.subnets[0]} would be in {len(fabric.zones)} zones at once.", fix)
        for zone in fabric.zones:
            for family in sorted(set(fabric.families) - explicit - {prefix.family for prefix in zone.supernets}):
                fix = f"Give it an IPv{family} subnet, or the fabric an IPv{family} supernet. [rail_family]"
                check.add(place, f"Rail {rail.name!r} has no IPv{family} network, but other rails do.", fix)


def _check_supernet(check: Checker, fabric: Fabric, index: int, zone: Zone, family: int) -> None:
    """Check that the rails' blocks fit in the zone's supernet; say how much is needed when they do not."""
    implicit = [rail.index for rail in fabric.rails if not any(net.family == family for net in rail.subnets)]
    for supernet in zone.supernets:
        if supernet.family != family or not implicit or fabric.mode == "flat":
            continue
        slots = 1
        length = fabric.rail_prefix[family]
        if fabric.mode == "exclusive":
            slots = arithmetic.power_of_two(zone.max_nodes)
            length = fabric.node_prefix[family]
        size = slots << (WIDTH[family] - length)
        blocks = fabric.subnet_offset + max(implicit)
        need = blocks * size
        if need <= supernet.size:
            continue
        each = f"{slots} subnets of /{length}" if fabric.mode == "exclusive" else f"a /{length}"
        longest = WIDTH[family] - (need - 1).bit_length()
        fix = f"Give a /{longest} or larger" if longest >= 8 else "Give fewer nodes or rails"
        check.add(
            supernet_place(fabric, index),
            f"{supernet} is too small: {blocks} rail blocks of {each} need {need} addresses, it has {supernet.size}.",
            f"{fix}, or a longer prefix per {'node' if fabric.mode == 'exclusive' else 'rail'}. [supernet_small]",
        )


def _check_shapes(check: Checker, fabric: Fabric) -> None:
    """Check explicit subnets against the mode, the gateway against each size, and links against the attachment."""
    for index, rail in enumerate(fabric.rails):
        for subnet in rail.subnets:
            if fabric.mode == "exclusive":
                _check_aggregate(check, fabric, index, subnet)
    for family in fabric.families:
        for length, place in sorted(_lengths(fabric, family)):
            size = 1 << (WIDTH[family] - length)
            if size < 4 and fabric.mode != "exclusive":
                problem = f"A /{length} is a link of one node, and the nodes share it in fabric_mode {fabric.mode}."
                check.add(place, problem, "Set a shorter prefix, or fabric_mode exclusive. [prefix_link_shared]")
            elif size < 4 and fabric.attached.needs_addresses:
                problem = f"A /{length} has no address for pods, which attachment {fabric.attachment} needs."
                check.add(place, problem, "Give a shorter prefix. [prefix_no_pods]")
            else:
                _check_gateway(check, fabric, family, size)


def _lengths(fabric: Fabric, family: int) -> set[tuple[int, str]]:
    """Return the lengths of the subnets of a family, each with the place that decides it."""
    if fabric.mode == "exclusive":
        return {(fabric.node_prefix[family], f"fabric_node_prefix.ipv{family}")}
    if fabric.mode == "flat":
        return {
            (net.length, supernet_place(fabric, index))
            for index, zone in enumerate(fabric.zones)
            for net in zone.supernets
            if net.family == family
        }
    found = set()
    for index, rail in enumerate(fabric.rails):
        own = [(net.length, f"fabric_rails[{index}].subnets") for net in rail.subnets if net.family == family]
        found.update(own or [(fabric.rail_prefix[family], f"fabric_rail_prefix.ipv{family}")])
    return found


def _check_aggregate(check: Checker, fabric: Fabric, index: int, subnet: Prefix) -> None:
    length = fabric.node_prefix[subnet.family]
    need = fabric.zones[0].max_nodes << (WIDTH[subnet.family] - length)
    if need > subnet.size:
        longest = WIDTH[subnet.family] - (need - 1).bit_length()
        check.add(
            f"fabric_rails[{index}].subnets",
            f"{subnet} is too small: {fabric.zones[0].max_nodes} subnets of /{length} need {need} addresses and it has "
            f"{subnet.size}.",
            f"Give a /{longest} or larger. [subnet_small]",
        )


def _check_gateway(check: Checker, fabric: Fabric, family: int, size: int) -> None:
    spec = fabric.gateway[family]
    if size == 2 and not isinstance(spec, str):
        fix = "Give first (the even address), last (the odd one) or none. [gateway_on_p2p]"
        check.add("fabric_gateway", f"{spec!r} does not suit a link of two addresses.", fix)
    if isinstance(spec, str) or size == 2:
        return
    window = size
    if family == 6 and 4 in fabric.families:
        window = min(arithmetic.window_beside(fabric, size, length) for length, _place in _lengths(fabric, 4))
    offset = spec if spec >= 0 else window + spec
    if not 1 <= offset <= window - 2:
        problem = f"Offset {spec} is no host address in an IPv{family} subnet of which {window} addresses are used."
        fix = f"Give one from 1 to {window - 2}, or from -{window - 1} to -2. [gateway_offset]"
        check.add("fabric_gateway", problem, fix)


def _check_room(check: Checker, fabric: Fabric, blocks: t.Sequence[Block]) -> None:
    """Check that each slot has a node address and that there are pod addresses, and as many as were asked for."""
    seen: set[tuple[str, str]] = set()
    for block in blocks:
        place = supernet_place(fabric, block.zone)
        if fabric.rails[block.rail].subnets:
            place = f"fabric_rails[{block.rail}].subnets"
        subnet = block.subnet(0)
        hosts = intervals.size(block.host_offsets)
        pods = intervals.size(block.pod_offsets)
        wanted = 1 if block.per_node else block.slots
        key = (place, str(block.family))
        if key in seen:
            continue
        problem = fix = ""
        link = block.subnet_size == 2
        if hosts < wanted:
            problem = f"{subnet} has room for {hosts} of {wanted} node addresses on rail "
            problem += f"{fabric.rails[block.rail].name!r}."
            fix = "Give a larger network, a smaller fabric_max_nodes, or fewer reserved addresses. [subnet_small]"
        elif not pods and not link and fabric.attached.needs_addresses:
            problem = f"{subnet} leaves no address for pods after gateway and {wanted} node(s)."
            place = "fabric_node_prefix" if block.per_node else place
            fix = f"Attachment {fabric.attachment} needs some: give a shorter prefix"
            fix += "" if block.per_node else " or a smaller fabric_max_nodes"
            fix += ". [prefix_no_pods]"
        elif fabric.pods_per_node and not link and pods < fabric.pods_per_node * wanted:
            place = "fabric_pods_per_node"
            problem = f"{fabric.pods_per_node} do not fit: {subnet} leaves {pods} pod addresses for {wanted} node(s)."
            fix = "Give a smaller number or a shorter prefix. [pods_per_node_too_large]"
        elif fabric.backend.pool_per_node and len(block.pools(0)) > MAX_SUBNET_POOLS:
            problem = f"{subnet} would need {len(block.pools(0))} pools; at most {MAX_SUBNET_POOLS} make sense."
            fix = "Limit them with fabric_pods_per_node, or give a longer prefix. [pools_too_many]"
        if problem:
            seen.add(key)
            check.add(place, problem, fix)
        _check_cuts(check, fabric, block)
    if fabric.inject and not check.problems and not (blocks and all(block.pod_offsets for block in blocks)):
        problem = "Injection needs pools, and these rails have none."
        check.add("fabric_inject", problem, "Remove it, or set supernets with room for pods. [injection_no_pools]")


def _check_cuts(check: Checker, fabric: Fabric, block: Block) -> None:
    for slot, cut in sorted(block.cuts.items()):
        what = "the node" if cut.host is None else "pods"
        if cut.host is None or (not cut.pods and block.pod_offsets):
            rail = fabric.rails[block.rail].name
            problem = f"It leaves no address for {what} in {block.subnet(slot)} (slot {slot}, {rail})."
            fix = "Reserve less, or move the fabric with fabric_subnet_offset or another supernet. [no_address_left]"
            check.add("fabric_reserved", problem, fix)


def _check_policy(check: Checker, fabric: Fabric) -> None:
    if fabric.policy != "default_route":
        return
    prefixes = rdma_prefixes(fabric, arithmetic.build_blocks(fabric))
    for family in fabric.families:
        own = [str(prefix) for prefix in prefixes if prefix.family == family]
        if len(own) > 1:
            check.add(
                "fabric_policy",
                f"default_route needs exactly one RDMA prefix per family, and IPv{family} has {len(own)}: "
                f"{', '.join(own[:4])}. With two, every destination matches the exclusion rule of the other.",
                "Use fabric_policy prefixes, or one supernet that holds all rails and zones. [default_route_one]",
            )


def check_overlaps(check: Checker, fabric: Fabric, existing: t.Iterable[Existing]) -> None:
    """Reject networks that overlap each other, an existing network or another cluster's plan."""
    blocks = arithmetic.build_blocks(fabric)
    _check_own(check, fabric, blocks)
    others = [(f"fabric_existing_networks[{index}]", "", prefix) for index, prefix in enumerate(fabric.existing)]
    for place, label, prefix in (*others, *existing):
        what = f"{prefix} of {label}" if label else f"{prefix}"
        if hit := next((block for block in blocks if block.aggregate.overlaps(prefix)), None):
            fix = "Move the fabric with fabric_supernets or fabric_subnet_offset. [subnet_overlaps]"
            check.add(place, f"{what} overlaps {hit.aggregate}, the network of {_rail_text(fabric, hit)}.", fix)
        elif not label and (hits := [net for net in rdma_prefixes(fabric, blocks) if net.overlaps(prefix)]):
            problem = f"{what} overlaps {hits[0]}, which fabric_policy default_route routes over the rails."
            check.add(place, problem, "Set fabric_policy to prefixes, or move fabric_supernets. [subnet_overlaps]")


def _rail_text(fabric: Fabric, block: Block) -> str:
    zone = f" of zone {fabric.zones[block.zone].name!r}" if fabric.zoned else ""
    return f"rail {fabric.rails[block.rail].name!r}{zone}"


def _check_own(check: Checker, fabric: Fabric, blocks: t.Sequence[Block]) -> None:
    """Sweep over all networks in order of their first address; rails of a flat zone share theirs."""
    ordered = sorted(blocks, key=lambda block: (block.aggregate, block.zone, block.rail))
    top: Block | None = None
    for block in ordered:
        if top is None or not block.aggregate.overlaps(top.aggregate):
            top = block
            continue
        if not (fabric.mode == "flat" and block.zone == top.zone):
            place = supernet_place(fabric, block.zone)
            for which in (top, block):
                if any(net == which.aggregate for net in fabric.rails[which.rail].subnets):
                    place = f"fabric_rails[{which.rail}].subnets"
            one, other = _rail_text(fabric, block), _rail_text(fabric, top)
            problem = f"{block.aggregate} of {one} overlaps {top.aggregate} of {other}."
            check.add(place, problem, "Give each rail and zone a network of its own. [rails_overlap]")
