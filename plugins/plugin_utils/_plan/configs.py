# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the SpiderMultusConfigs."""

from __future__ import annotations

import typing as t

from ...module_utils._fabric.facts import PodNetwork
from ...module_utils._fabric.labels import CONFIG, DECLARED, RESOURCE, SPIDERPOOL
from ...module_utils._fabric.numbers import vlan_interface
from .._fabric.model import FabricPlan, Node, Rail
from .._fabric.names import Body, config_name, full_resource, inject_value, interfaces_of, manifest, profiles
from .pools import pool_names

_COORDINATOR = {
    "mode": "auto",
    "podDefaultRouteNIC": "",
    "podMACPrefix": "",
    "podRPFilter": 0,
    "tunePodRoutes": True,
    "txQueueLen": 0,
    "vethLinkAddress": "",
}


def _blocks(mtu: int, rail: Rail, interface: str, resource: str, ippools: Body) -> dict[str, Body]:
    """Return what is in the block of each attachment, every field there.

    :param resource: the rail's, and `ippools` its pools.
    """
    parent: Body = {
        "ippools": ippools,
        # The host owns its VLAN's interface. With a vlanID Spiderpool would chain its plugin ifacer, which refuses one
        # VLAN on two interfaces of a node, and would make a bare interface where the host's is missing.
        "master": [vlan_interface(interface, rail.vlan)],
        "mtu": mtu,
        "rdmaResourceName": resource,
        "vlanID": 0,
    }
    return {
        "macvlan": parent,
        "ipvlan": parent,
        "sriov": {
            "ippools": ippools,
            "maxTxRateMbps": 0,
            "minTxRateMbps": 0,
            "mtu": mtu,
            "rdmaIsolation": True,
            "resourceName": resource,
            "vlanID": rail.vlan,
        },
        "ibsriov": {
            "enableIbKubernetes": False,
            "ippools": ippools,
            "linkState": "enable",
            "pkey": "",
            "rdmaIsolation": True,
            "resourceName": resource,
        },
        "ipoib": {"ippools": ippools, "master": interface},
    }


def has_pools(plan: FabricPlan, rail: Rail) -> bool:
    """Return whether pods have addresses on a rail: a subnet may have just the node's, and LID only has none."""
    return any(block.pod_offsets for block in plan.blocks if block.rail == rail.index - 1)


def _config(plan: FabricPlan, rail: Rail, interface: str, profile: str) -> Body:
    fabric = plan.fabric
    notes = {}
    resource = full_resource(plan, rail, profile)
    names = {"ipv4": pool_names(plan, rail, 4), "ipv6": pool_names(plan, rail, 6)}
    # An empty list would be gone after the webhook, and a difference for ever.
    ippools: Body = {**{family: found for family, found in names.items() if found}, "matchMasterSubnet": False}
    if fabric.inject:
        key, value = fabric.inject
        notes[key] = inject_value(value, profile)
    if not fabric.attached.names_resource:
        # The block has no field for the resource, and Spiderpool injects none: authors of pods read it here.
        notes[RESOURCE] = resource
    block, addresses = fabric.attached.block, has_pools(plan, rail)
    spec = {
        "chainCNIJsonData": [],
        "cniType": fabric.attachment,
        "coordinator": _COORDINATOR,
        "disableIPAM": not addresses,
        # Without addresses the coordinator has nothing to tune, and refuses to start.
        "enableCoordinator": addresses,
        block: _blocks(fabric.mtu, rail, interface, resource, ippools)[block],
    }
    return manifest(SPIDERPOOL, CONFIG, fabric, config_name(fabric, rail, profile), spec, notes=notes)


def multus_configs(plan: FabricPlan) -> list[Body]:
    """Return the SpiderMultusConfigs: one a rail, and one a rail and name profile where a parent is named."""
    return [
        _config(plan, rail, interfaces_of(plan.fabric, nodes)[rail.index - 1], profile)
        for profile, nodes in parents(plan).items()
        for rail in plan.fabric.rails
    ]


def parents(plan: FabricPlan) -> t.Mapping[str, t.Sequence[Node]]:
    """Return the name profiles for which pods' networks differ, with their nodes."""
    # A virtual function is found by its resource, so no name of an interface is in these.
    attached = plan.fabric.attached
    return {DECLARED: ()} if attached.own_device else profiles(plan) if attached.pods else {}


def pod_networks(plan: FabricPlan) -> dict[str, list[PodNetwork]]:
    """Return what pods get by the networks of the rails, by name profile."""
    fabric = plan.fabric
    return {
        profile: [
            PodNetwork(
                rail=rail.name,
                name=f"{fabric.namespace}/{config_name(fabric, rail, profile)}",
                attachment=fabric.attachment,
                resource=full_resource(plan, rail, profile),
                ask=not (fabric.backend.injects and fabric.attached.names_resource),
                addresses=has_pools(plan, rail),
                routes=has_pools(plan, rail),
                mtu=fabric.mtu if fabric.network == "roce" else 0,
            )
            for rail in fabric.rails
        ]
        for profile in parents(plan)
    }


def injection_order(plan: FabricPlan) -> tuple[str, ...]:
    """Return the rails' names in the order in which an injected pod gets them as net1, net2 and so on.

    Spiderpool sorts by the first parent (macvlan, ipvlan) or resource (sriov) as text, else by the config's name.
    """
    fabric = plan.fabric

    def key(rail: Rail) -> tuple[str, str]:
        first = {"interface": rail.parent, "resource": f"{fabric.resource_prefix}/{rail.resource}"}
        return first.get(fabric.attached.injected_by, ""), f"{fabric.namespace}/{config_name(fabric, rail)}"

    return tuple(rail.name for rail in sorted(fabric.rails, key=key))
