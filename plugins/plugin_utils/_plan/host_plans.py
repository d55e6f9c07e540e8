# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The text of hosts/*.json: one join per node, because a fleet has ten thousand of them.

Nodes with the same zone, interfaces and PCI addresses share a template; only names, slots and addresses are filled in.
None of these values can need quoting: the input checks allow no quote, backslash or percent sign in them.
"""

from __future__ import annotations

import functools
import json
import typing as t

from ...module_utils._fabric.lock import HOST_PLAN_SCHEMA, digest_of
from ...module_utils._fabric.numbers import vlan_interface
from ...module_utils._fabric.shapes import HostPlan
from .._fabric.model import Block, Fabric, FabricPlan, address_text
from .._fabric.totals import rdma_prefixes
from .blocks import named_blocks
from .lock import Lock, freeze

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


def sysctls(fabric: Fabric, interfaces: t.Sequence[str]) -> dict[str, str]:
    """Return the per-interface settings of a host in slash notation (interface names may hold dots)."""
    families = fabric.families
    found: dict[str, str] = {}
    for interface in interfaces:
        if 4 in families:
            found.update((f"net/ipv4/conf/{interface}/{key}", value) for key, value in IPV4_SYSCTLS)
        if 6 in families:
            found.update((f"net/ipv6/conf/{interface}/{key}", value) for key, value in IPV6_SYSCTLS)
    return found


def render_host_plans(plan: FabricPlan) -> dict[str, str]:
    """Return the text of each host plan by file name."""
    blocks: dict[int, list[Block]] = {}
    for block in plan.blocks:
        blocks.setdefault(block.zone, []).append(block)
    head = _head(plan)
    cables = functools.cache(lambda zone, own: _cables(plan.fabric, zone, own))
    template = functools.cache(
        lambda zone, interfaces, pcis: _template(plan.fabric, interfaces, pcis, blocks.get(zone, []), head)
    )
    texts: dict[str, str] = {}
    for node in plan.nodes:
        values = [node.name, node.slot, cables(node.zone, node.cables)]
        for block in blocks.get(node.zone, ()):
            values += _addresses(block, node.slot)
        texts[f"{node.host}.json"] = template(node.zone, node.interfaces, node.pcis) % tuple(values)
    return texts


def _head(plan: FabricPlan) -> str:
    """Write the part that all host plans share, with %s for node, slot and cables."""
    fabric = plan.fabric
    prefixes = [str(prefix) for prefix in rdma_prefixes(fabric, plan.blocks)]
    return (
        f'{{\n  "schema": {HOST_PLAN_SCHEMA},\n'
        f'  "frozen_digest": "{digest_of(freeze(fabric))}",\n'
        f'  "fabric": "{fabric.name}",\n  "node": "%s",\n  "slot": %s,\n%s'
        f'  "network": "{fabric.network}",\n  "rdma_mode": "{fabric.attached.rdma_mode}",\n'
        f'  "policy": "{fabric.policy}",\n'
        + (f'  "lossless": {json.dumps(fabric.lossless._asdict())},\n' if fabric.lossless else "")
        + f'  "rdma_prefixes": {json.dumps(prefixes)},\n'
    )


def _cables(fabric: Fabric, zone: int, own: tuple[tuple[str, str], ...]) -> str:
    """Return the leaf and port that each rail's cable is planned to end in, as lines of a host plan; none without."""
    where, own = fabric.zones[zone], own or (("", ""),) * len(fabric.rails)
    lines = [
        f'    "{rail.name}": {json.dumps({"leaf": leaf or where.leaf(index) or None, "port": port or None})}'
        for index, (rail, (leaf, port)) in enumerate(zip(fabric.rails, own, strict=True))
        if leaf or port or where.leaf(index)
    ]
    return '  "cables": {\n' + ",\n".join(lines) + "\n  },\n" if lines else ""


def _template(
    fabric: Fabric, interfaces: t.Sequence[str], pcis: t.Sequence[str | None], blocks: t.Sequence[Block], head: str
) -> str:
    """Write the host plan of a zone and profile of interfaces, with %s for what only the slot decides."""
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
            f'    {{"name": "{rail.name}", "index": {rail.index}, "interface": "{interfaces[position]}", '
            + (f'"vlan": {rail.vlan}, ' if rail.vlan else "")
            + f'"pci": {json.dumps(pcis[position])}, "mtu": {fabric.mtu}, "table": {rail.table}, '
            f'"rule_priority": {rail.rule_priority},\n     "addresses": ['
            + (f"\n       {addresses}\n     " if addresses else "")
            + "]}"
        )
    settings = sysctls(fabric, [vlan_interface(*pair) for pair in zip(interfaces, vlans, strict=True)])
    lines = ",\n".join(f'    "{key}": "{value}"' for key, value in settings.items())
    return (
        head
        + '  "sysctls": {'
        + (f"\n{lines}\n  " if lines else "")
        + '},\n  "rails": [\n'
        + ",\n".join(rails)
        + "\n  ]\n}\n"
    )


def _addresses(block: Block, slot: int) -> list[str]:
    """Return the texts of a slot's address, subnet and gateway, where there is one."""
    subnet = block.subnet_first(slot)
    numbers = [block.host(slot) or 0, subnet]
    if block.gateway_offset is not None:
        numbers.append(subnet + block.gateway_offset)
    return [address_text(block.family, number) for number in numbers]


def edited(lock: Lock, pieces: t.Iterable[HostPlan]) -> list[str]:
    """Return what does not follow from the lock in host plans: somebody changed an address by hand. One each at most.

    :param lock: the fabric's.
    :param pieces: host plans that are of that lock.
    """
    blocks = named_blocks(lock.fabric)
    found = []
    for piece in pieces:
        entry = lock.nodes[piece["node"]]
        for rail in piece["rails"]:
            for row in rail["addresses"]:
                block = blocks.get((entry.zone, rail["name"], row["family"]))
                follows = _addresses(block, entry.slot) if block else []
                has = [row["address"], row["subnet"].partition("/")[0], *([row["gateway"]] if row["gateway"] else [])]
                if has != follows:
                    wanted = follows[0] if follows else "no address of that family"
                    found.append(f"{piece['node']} {rail['name']}: {row['address']} in {row['subnet']}, not {wanted}")
    return found
