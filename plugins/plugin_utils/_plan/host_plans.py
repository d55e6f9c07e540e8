# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The hosts' parts of a plan: hosts/*.json."""

from __future__ import annotations

import functools
import typing as t

from ...module_utils._fabric.lock import HOST_PLAN_SCHEMA, digest_of
from ...module_utils._fabric.neighbors import SOFT_LIMIT, thresholds
from ...module_utils._fabric.numbers import BASES, vlan_interface
from ...module_utils._fabric.shapes import Cable, HostPlan, HostPlanAddress
from ...module_utils._formatting import group_by
from .._fabric.model import Block, Fabric, FabricPlan, Node
from .._fabric.totals import rdma_prefixes
from .lock import freeze
from .topology import leaves_of

IPV4_SYSCTLS = {"arp_announce": "2", "arp_ignore": "1", "ignore_routes_with_linkdown": "1", "rp_filter": "2"}
"""Answer ARP only for the rail's own address, announce only that, and leave a dead rail's routes out.

The kernel takes the maximum of `all` and the interface: 2 means loose whatever `all` is, so it agrees with
Spiderpool's agent, which sets `all` to 0, and with distributions that set 1.
"""

IPV6_SYSCTLS = {"accept_ra": "0", "disable_ipv6": "0", "ignore_routes_with_linkdown": "1", "keep_addr_on_down": "1"}
"""Addresses are planned, not advertised, and survive a link that goes down."""


def sysctls(fabric: Fabric, interfaces: t.Sequence[str]) -> dict[str, str]:
    """Return the per-interface settings of a host in slash notation (interface names may hold dots)."""
    return {
        f"net/ipv{family}/conf/{interface}/{key}": value
        for interface in interfaces
        for family in fabric.families
        for key, value in (IPV4_SYSCTLS if family == 4 else IPV6_SYSCTLS).items()
    }


def host_plans(plan: FabricPlan) -> dict[str, HostPlan]:
    """Return each host's part of the plan by file name."""
    fabric, vlans = plan.fabric, [rail.vlan for rail in plan.fabric.rails]
    blocks = group_by(((block.zone, fabric.rails[block.rail].name), block) for block in plan.blocks)
    digest, prefixes = digest_of(freeze(fabric)), [str(prefix) for prefix in rdma_prefixes(fabric, plan.blocks)]
    own = functools.cache(lambda *interfaces: sysctls(fabric, interfaces))
    usual = fabric.metric_base == BASES["metric"]
    made: dict[str, HostPlan] = {}
    for node in plan.nodes:
        cables = _cables(fabric, node)
        used = [position for position in range(len(fabric.rails)) if position not in node.out]
        rails = [
            {
                "name": rail.name,
                "index": rail.index,
                "interface": interface,
                **({"vlan": rail.vlan} if rail.vlan else {}),
                "pci": pci,
                "mtu": fabric.mtu,
                "table": fabric.table_base + rail.index,
                "rule_priority": fabric.rule_base + rail.index,
                **({} if usual else {"metric": fabric.metric_base + rail.index}),
                "addresses": [_address(block, node.slot) for block in blocks.get((node.zone, rail.name), ())],
            }
            for rail, interface, pci in zip(fabric.rails, node.interfaces, node.pcis, strict=True)
        ]
        out = {"reason": node.reason, "rails": [rails[position] for position in sorted(node.out)]}
        piece: dict[str, t.Any] = {
            "schema": HOST_PLAN_SCHEMA,
            "frozen_digest": digest,
            "fabric": fabric.name,
            "node": node.name,
            "slot": node.slot,
            **({"cables": cables} if cables else {}),
            "network": fabric.network,
            **({"rdma_mode": mode} if (mode := fabric.attached.rdma_mode) else {}),
            "policy": fabric.policy,
            **({"lossless": fabric.lossless._asdict()} if fabric.lossless else {}),
            "rdma_prefixes": prefixes,
            "sysctls": {
                **own(*(vlan_interface(node.interfaces[position], vlans[position]) for position in used)),
                **_tables(fabric, node.zone),
            },
            "rails": [rails[position] for position in used],
            **({"out_of_service": out} if node.out else {}),
        }
        made[f"{node.host}.json"] = t.cast("HostPlan", piece)
    return made


def _tables(fabric: Fabric, zone: int) -> dict[str, str]:
    """Return the settings of the neighbor tables of a zone's hosts, where they are asked for and needed."""
    count = fabric.neighbors(zone) if fabric.neighbor_tables else 0
    found = [thresholds(count, family) for family in fabric.families if count > SOFT_LIMIT]
    return {key: value for one in found for key, value in one.items()}


def _cables(fabric: Fabric, node: Node) -> dict[str, Cable]:
    """Return the leaf and port that each rail's cable is planned to end in, where one is known."""
    own = node.cables or (("", ""),) * len(fabric.rails)
    return {
        rail.name: {"leaf": leaf or None, "port": port or None}
        for rail, leaf, (_own, port) in zip(fabric.rails, leaves_of(fabric, node), own, strict=True)
        if (leaf or port) and rail.index - 1 not in node.out
    }


def _address(block: Block, slot: int) -> HostPlanAddress:
    """Return what a host has of a block."""
    address, subnet, gateway = block.texts(slot)
    return {"family": block.family, "address": address, "subnet": subnet, "gateway": gateway or None}
