# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of hosts/*.json: one join per node, because a fleet has ten thousand of them.

Nodes with the same zone, interfaces and PCI addresses share a template; only names, slots and addresses are filled in.
None of these values can need quoting: the input checks allow no quote, backslash or percent sign in them.
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils._fabric.lock import SLICE_SCHEMA, canonical, sha256
from ...module_utils._fabric.model import address_text
from ...module_utils._fabric.numbers import vlan_interface
from ...module_utils._fabric.totals import rdma_prefixes
from .lock import freeze

if t.TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...module_utils._fabric.model import Block, Fabric, Node, Plan

    # Gives a node's address, subnet and gateway texts by its slot.
    Fill = Callable[[int], "tuple[str, ...]"]

IPV4_SYSCTLS = (
    ("arp_announce", "2"),
    ("arp_ignore", "1"),
    ("ignore_routes_with_linkdown", "1"),
    ("rp_filter", "2"),
)
"""Answer ARP only for the rail's own address, announce only that, and leave a dead rail's routes out.

The kernel takes the maximum of `all` and the interface: 2 means loose whatever `all` is, so it agrees with
Spiderpool's agent, which sets `all` to 0, and with distributions that set 1.
"""

IPV6_SYSCTLS = (
    ("accept_ra", "0"),
    ("ignore_routes_with_linkdown", "1"),
    ("keep_addr_on_down", "1"),
)
"""Addresses are planned, not advertised, and survive a link that goes down."""


def sysctls(fabric: Fabric, interfaces: Sequence[str]) -> dict[str, str]:
    """Return the per-interface settings of a host in slash notation (interface names may hold dots)."""
    families = fabric.families
    found: dict[str, str] = {}
    for interface in interfaces:
        if 4 in families:
            found.update((f"net/ipv4/conf/{interface}/{key}", value) for key, value in IPV4_SYSCTLS)
        if 6 in families:
            found.update((f"net/ipv6/conf/{interface}/{key}", value) for key, value in IPV6_SYSCTLS)
    return found


def render_slices(plan: Plan) -> dict[str, str]:
    """Return the text of each host's slice by file name."""
    blocks: dict[int, list[Block]] = {}
    for block in plan.blocks:
        blocks.setdefault(block.zone, []).append(block)
    fills = {zone: [_fill(block) for block in owned] for zone, owned in blocks.items()}
    templates: dict[tuple[object, ...], list[str]] = {}
    cables: dict[tuple[object, ...], str] = {}
    head = _head(plan)
    texts: dict[str, str] = {}
    for node in plan.nodes:
        key = (node.zone, node.interfaces, node.pcis)
        template = templates.get(key)
        if template is None:
            text = _template(plan.fabric, node, blocks.get(node.zone, []), head)
            # What stands between the fields, and room for these.
            template = templates[key] = [part for piece in text.split("%s") for part in (piece, "")][:-1]
        if (node.zone, node.cables) not in cables:
            cables[node.zone, node.cables] = _cables(plan.fabric, node)
        values = [node.name, str(node.slot), cables[node.zone, node.cables]]
        for fill in fills.get(node.zone, ()):
            values += fill(node.slot)
        template[1::2] = values
        texts[f"{node.host}.json"] = "".join(template)
    return texts


def _head(plan: Plan) -> str:
    """Write the part that all slices share, with %s for node, slot and cables."""
    fabric = plan.fabric
    prefixes = [str(prefix) for prefix in rdma_prefixes(fabric, plan.blocks)]
    return (
        f'{{\n  "schema": {SLICE_SCHEMA},\n'
        f'  "frozen_digest": "{sha256(canonical(freeze(fabric)))}",\n'
        f'  "fabric": "{fabric.name}",\n  "node": "%s",\n  "slot": %s,\n%s'
        f'  "network": "{fabric.network}",\n  "rdma_mode": "{fabric.attached.rdma_mode}",\n'
        f'  "policy": "{fabric.policy}",\n'
        + (f'  "lossless": {json.dumps(fabric.lossless._asdict())},\n' if fabric.lossless else "")
        + f'  "rdma_prefixes": {json.dumps(prefixes)},\n'
    )


def _cables(fabric: Fabric, node: Node) -> str:
    """Return the leaf and port that each rail's cable is planned to end in, as lines of the slice; none without any."""
    zone, own = fabric.zones[node.zone], node.cables or (("", ""),) * len(fabric.rails)
    lines = [
        f'    "{rail.name}": {json.dumps({"leaf": leaf or zone.leaf(index) or None, "port": port or None})}'
        for index, (rail, (leaf, port)) in enumerate(zip(fabric.rails, own, strict=True))
        if leaf or port or zone.leaf(index)
    ]
    return '  "cables": {\n' + ",\n".join(lines) + "\n  },\n" if lines else ""


def _template(fabric: Fabric, node: Node, blocks: Sequence[Block], head: str) -> str:
    """Write the slice of a zone and profile of interfaces, with %s for what only the slot decides."""
    rails = []
    vlans = [rail.vlan for rail in fabric.rails]
    for position, rail in enumerate(fabric.rails):
        addresses = ",\n       ".join(
            f'{{"family": {block.family}, "address": "%s", "subnet": "%s/{block.subnet_length}", "gateway": '
            + ('"%s"}' if block.gateway_offset is not None else "null}")
            for block in blocks
            if block.rail == position
        )
        rails.append(
            f'    {{"name": "{rail.name}", "index": {rail.index}, "interface": "{node.interfaces[position]}", '
            + (f'"vlan": {rail.vlan}, ' if rail.vlan else "")
            + f'"pci": {json.dumps(node.pcis[position])}, "mtu": {fabric.mtu}, "table": {rail.table}, '
            f'"rule_priority": {rail.rule_priority},\n     "addresses": ['
            + (f"\n       {addresses}\n     " if addresses else "")
            + "]}"
        )
    settings = sysctls(fabric, [vlan_interface(*pair) for pair in zip(node.interfaces, vlans, strict=True)])
    lines = ",\n".join(f'    "{key}": "{value}"' for key, value in settings.items())
    return (
        head
        + '  "sysctls": {'
        + (f"\n{lines}\n  " if lines else "")
        + '},\n  "rails": [\n'
        + ",\n".join(rails)
        + "\n  ]\n}\n"
    )


def _fill(block: Block) -> Fill:
    """Return the function that gives the texts of a slot in this block; the shape is worked out once."""
    family = block.family
    first = block.aggregate.network
    step = block.subnet_size if block.per_node else 0
    switch = block.gateway_offset
    usual = block.host_offsets[0][0] if block.per_node else None

    def fill(slot: int) -> tuple[str, ...]:
        subnet = first + slot * step
        host = block.host(slot) if usual is None or slot in block.cuts else subnet + usual
        texts = (address_text(family, host or 0), address_text(family, subnet))
        return texts if switch is None else (*texts, address_text(family, subnet + switch))

    return fill
