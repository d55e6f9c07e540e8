# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the cluster's objects, written in the normal form that the admission webhook would make of them.

So applying them again changes nothing, and a difference is a difference.
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.backends import NVIDIA, SPIDER
from ...module_utils._fabric.labels import DECLARED, KUSTOMIZE, POLICY, SRIOV
from ...module_utils._fabric.lock import KUSTOMIZATION
from ...module_utils._formatting import shortened
from .._fabric.model import MAX_POOL, FabricPlan
from .._fabric.names import Body, config_name, full_resource, interfaces_of, labeled, manifest, node_label, profiles
from . import nv_ipam
from .configs import injection_order, multus_configs
from .pools import name_problems, render_pools, reserved_ips
from .text import HEADING, documents
from .text import block as yaml_block

SRIOV_POLICIES = "sriovpolicies.yaml"
DEVICE_PLUGIN_INTERVAL = 300
"""Seconds between two looks of the device plugin for new interfaces: the chart's default."""


class Addressing(t.NamedTuple):
    """The functions of an IPAM backend."""

    problems: t.Callable[[FabricPlan], t.Iterator[Problem]]
    """Yields conflicts with the plan."""
    warnings: t.Callable[[FabricPlan], list[str]]
    files: t.Callable[[FabricPlan], dict[str, str]]
    """Its files in the plan's folder `cluster/`: those of `Backend.objects`, and its device plugin's configuration."""


def _spiderpool(plan: FabricPlan) -> dict[str, str]:
    return {
        "ippools.yaml": render_pools(plan),
        "multusconfigs.yaml": documents(multus_configs(plan)),
        "reservedips.yaml": documents(reserved_ips(plan.fabric)),
        "values.yaml": HEADING + "---\n" + yaml_block(helm_values(plan)),
    }


def _spiderpool_warnings(plan: FabricPlan) -> list[str]:
    fabric = plan.fabric
    found = []
    order = injection_order(plan)
    if fabric.inject and order != tuple(rail.name for rail in fabric.rails):
        found.append(
            f"An injected pod gets the rails in the order {', '.join(order)}: Spiderpool sorts them as text. "
            "Software that pairs net1 with the first GPU needs names that sort by rail."
        )
    if large := sum(1 for _family, first, last in fabric.reserved if last - first >= MAX_POOL):
        found.append(
            f"{large} reserved range{'s' if large > 1 else ''} of {MAX_POOL} addresses or more stay out of the "
            "SpiderReservedIPs, which Spiderpool expands address by address; the plan's own pools keep clear of them."
        )
    return found


def _nv_ipam(plan: FabricPlan) -> dict[str, str]:
    if plan.fabric.attached.own_device:
        return nv_ipam.files(plan)
    # As `config` of rdmaSharedDevicePlugin in a NicClusterPolicy has it.
    return {**nv_ipam.files(plan), "deviceplugin.json": json.dumps(device_config(plan), indent=1) + "\n"}


ADDRESSING = {
    SPIDER: Addressing(name_problems, _spiderpool_warnings, _spiderpool),
    NVIDIA: Addressing(nv_ipam.problems, nv_ipam.warnings, _nv_ipam),
}
"""By fabric_ipam: to add one: a file of this package, a row here, and one in `backends`."""


def sriov_policies(plan: FabricPlan) -> list[Body]:
    """Return the SriovNetworkNodePolicies: one a rail and name profile, for labeled nodes only.

    Rules of SR-IOV operator 1.3.0, which the chart installs: InfiniBand needs isRdma, there is no rdmaMode.
    """
    fabric = plan.fabric
    if not fabric.attached.own_device:
        return []
    infiniband = fabric.network == "infiniband"
    made: list[Body] = []
    known = profiles(plan)
    for value, (profile, nodes) in labeled(plan).items():
        out = nodes[0].out if value != profile else frozenset[int]()
        for rail in (rail for rail in fabric.rails if rail.index - 1 not in out):
            spec: Body = {
                "deviceType": "netdevice",
                "isRdma": True,
                "linkType": "ib" if infiniband else "eth",
                **({} if infiniband else {"mtu": fabric.mtu}),
                "nicSelector": {"pfNames": [interfaces_of(fabric, known[profile])[rail.index - 1]]},
                "nodeSelector": {node_label(fabric): value},
                "numVfs": fabric.vfs,
                "priority": 99,
                "resourceName": rail.resource,
            }
            made.append(manifest(SRIOV, POLICY, fabric, config_name(fabric, rail, value), spec))
    return made


def device_config(plan: FabricPlan) -> Body:
    """Return the configuration of the RDMA shared device plugin: a resource a rail, found by interface names."""
    fabric = plan.fabric
    link = "infiniband" if fabric.network == "infiniband" else "ether"
    interfaces: dict[str, set[str]] = {}
    for profile, nodes in profiles(plan).items():
        for rail, interface in zip(fabric.rails, interfaces_of(fabric, nodes), strict=True):
            name = full_resource(plan, rail, profile).partition("/")[2]
            interfaces.setdefault(name, set()).add(interface)
    entries = [
        {
            "resourceName": name,
            "resourcePrefix": fabric.resource_prefix,
            "rdmaHcaMax": fabric.hca_max,
            "selectors": {"ifNames": sorted(found), "linkTypes": [link]},
        }
        for name, found in interfaces.items()
    ]
    return {"configList": entries, "periodicUpdateInterval": DEVICE_PLUGIN_INTERVAL}


def node_resources(plan: FabricPlan) -> dict[str, dict[str, int]]:
    """Return how many of each resource a node offers, by name profile."""
    fabric, groups = plan.fabric, profiles(plan) if plan.fabric.attached.pods else {}
    if fabric.attached.own_device:
        return {value: dict.fromkeys(fabric.resources, fabric.vfs) for value in (labeled(plan) if groups else ())}
    entries = device_config(plan)["configList"]
    return {
        profile: {
            f"{fabric.resource_prefix}/{entry['resourceName']}": fabric.hca_max
            for entry in entries
            if not set(entry["selectors"]["ifNames"]).isdisjoint(interfaces_of(fabric, nodes))
        }
        for profile, nodes in groups.items()
    }


def helm_values(plan: FabricPlan) -> Body:
    """Return the values of the Spiderpool chart that follow from the fabric; everything else is the role's."""
    fabric = plan.fabric
    virtual = fabric.attached.own_device
    shared: Body = {"install": not virtual}
    if not virtual:
        # With an empty list the plugin crash-loops, so it is never installed without one.
        shared["deviceConfig"] = device_config(plan)
    families = fabric.families or (4,)
    return {
        "ipam": {
            "enableGatewayDetection": any(block.gateway_offset is not None for block in plan.blocks),
            "enableIPv4": 4 in families,
            "enableIPv6": 6 in families,
            # With it on, a pool's subnet could be taken over by a SpiderSubnet of the same CIDR.
            "spiderSubnet": {"enable": False},
        },
        "rdma": {"rdmaSharedDevicePlugin": shared},
        "spiderpoolController": {
            "podResourceInject": {
                "enabled": fabric.inject is not None,
                # Its webhook has failurePolicy Fail: name the namespaces that need it, never all.
                "namespacesInclude": ["default"] if fabric.inject else [],
            }
        },
        "sriov": {"install": virtual, "resourcePrefix": fabric.resource_prefix},
    }


def object_warnings(plan: FabricPlan) -> tuple[str, ...]:
    """Return what is worth knowing about the objects before they are applied."""
    fabric = plan.fabric
    if not fabric.attached.pods:
        return ()
    found = []
    groups = profiles(plan)
    if len(groups) > 1 or list(groups) != [DECLARED]:
        fits = "; ".join(f"{name}: {shortened([node.name for node in nodes], 5)}" for name, nodes in groups.items())
        found.append(
            f"Nodes name the rails' interfaces in {len(groups)} ways, so a pod has to say which nodes it fits "
            f"(node label {node_label(fabric)}): {fits}. Give the rails stable names to have one way."
        )
    return (*found, *ADDRESSING[fabric.ipam].warnings(plan))


def render_cluster(plan: FabricPlan) -> dict[str, str]:
    """Return the files of the plan's folder `cluster/`: name -> text; none where pods do not get to the rails.

    :raises InputError: when names of rails or nodes would make two objects one.
    """
    if not plan.fabric.attached.pods:
        return {}
    give = ADDRESSING[plan.fabric.ipam]
    if problems := list(give.problems(plan)):
        raise InputError(problems)
    files = {
        **give.files(plan),
        SRIOV_POLICIES: documents(sriov_policies(plan)),
    }
    # What `kubectl apply -k`, Argo CD and Flux read: manifests with objects; `site` applies policies node by node.
    listed = [name for name, text in files.items() if "\nkind: " in text and name != SRIOV_POLICIES]
    manifests = "".join(f"  - {name}\n" for name in listed)
    head = f"{HEADING}---\napiVersion: {KUSTOMIZE}\nkind: Kustomization\nresources:\n"
    return {**files, KUSTOMIZATION: head + manifests}
