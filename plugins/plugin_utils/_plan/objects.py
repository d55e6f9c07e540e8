# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the cluster's objects, written in the normal form that the admission webhook would make of them.

So applying them again changes nothing, and a difference is a difference. Pools are many and of one shape: they are
written from a template, with values that never need quotes (IPv4 addresses, our own names) or always have them (node
names, IPv6). Everything else is few and goes through `text`.
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.model import MAX_POOL, address_text, octets_text, range_text
from ...module_utils._fabric.names import (
    DECLARED,
    KEPT,
    LABEL_FABRIC,
    LABEL_MANAGER,
    MANAGER,
    MAX_NAME,
    RESOURCE,
    config_name,
    inject_value,
    labels,
    node_label,
    pool_name,
    pool_stem,
    profiles,
    resource_name,
)
from .text import block as yaml_block
from .text import documents, scalar

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...module_utils._fabric.model import Block, Fabric, Node, Plan, Rail, Range

Json = dict[str, t.Any]

SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"
SRIOV = "sriovnetwork.openshift.io/v1"
SRIOV_ATTACHMENTS = ("sriov", "ib-sriov")
"""Attachments that hand a virtual function to the pod; the others share the device through the device plugin."""
HEADING = (
    "# Made by railops.rdma from the fabric's declaration. Change the declaration and plan again, not this file.\n"
)
DEVICE_PLUGIN_INTERVAL = 300
"""Seconds between two looks of the device plugin for new interfaces: the chart's default."""


# --- pools ----------------------------------------------------------------------------------------------------------


def _pool_template(fabric: Fabric, family: int, gateway: bool, nodes: bool) -> str:
    """Return the text of a pool with fields for name, gateway, ranges, nodes and subnet, in this order."""
    quote = '"' if family == 6 else ""
    return "".join(
        (
            f"---\napiVersion: {SPIDERPOOL}\nkind: SpiderIPPool\nmetadata:\n  name: %s\n  labels:\n",
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
    gateway = block.gateway(slot)
    fields = [name]
    if gateway is not None:
        fields.append(address_text(block.family, gateway))
    fields.append(_ips(block.family, ranges))
    if nodes:
        fields.append(nodes)
    fields.append(str(block.subnet(slot)))
    return template % tuple(fields)


def _node_line(name: str) -> str:
    return f'    - "{name}"\n'


def _add_pools_per_node(parts: list[str], fabric: Fabric, block: Block, nodes: Sequence[Node], odd: set[int]) -> None:
    """Add the pools of a rail whose nodes have a subnet each; nodes on `odd` slots have names that get shortened.

    A big fleet has tens of thousands of pools, nearly all of one shape. Those are not made one by one: their pieces,
    most of them the same strings again and again, go straight into the one `join` that makes the file.
    """
    stem = pool_stem(fabric, fabric.rails[block.rail], block.family)
    template = _pool_template(fabric, block.family, block.gateway_offset is not None, nodes=True)
    pieces = _simple_pieces(template, stem, block)
    odd = odd | block.cuts.keys() if pieces else {node.slot for node in nodes}
    base, size = block.aggregate.network, block.subnet_size
    around, octets = -1, ""
    for node in nodes:
        name, slot = node.name, node.slot
        if slot in odd:
            line = _node_line(name)
            for part, ranges in enumerate(block.pools(slot)):
                parts.append(_pool(template, pool_name(stem, name, part), block, slot, ranges, line))
            continue
        first = base + slot * size
        if first >> 8 != around:
            around = first >> 8
            octets = octets_text(around)
        head, labels, gateway, low, high, end, subnet = pieces[first & 255]
        parts.extend((head, name, labels, octets, gateway, octets, low, octets, high, name, end, octets, subnet))


def _simple_pieces(template: str, stem: str, block: Block) -> dict[int, list[str]]:
    """Return what stands around the fields of a simple pool, by the last octet of its subnet; {} if none is simple.

    Simple is one range of IPv4 addresses that share their first three octets with the gateway. The fields in their
    order: node, the octets of the gateway, of the range's first and last address, node, the octets of the subnet.
    """
    if block.family != 4 or block.subnet_size > 256 or block.gateway_offset is None or len(block.pod_offsets) != 1:
        return {}
    ((low, high),) = block.pod_offsets
    if low == high:
        return {}
    pieces = {}
    for first in range(0, 256, block.subnet_size):
        gateway, pods = f"\0{first + block.gateway_offset}", f"    - \0{first + low}-\0{first + high}\n"
        text = template % (f"{stem}-\0", gateway, pods, _node_line("\0"), f"\0{first}/{block.subnet_length}")
        pieces[first] = text.split("\0")
    return pieces


def _pools_shared(plan: Plan, block: Block) -> Iterator[str]:
    """Write the pools of a rail that all nodes of the zone share."""
    fabric = plan.fabric
    zone = fabric.zones[block.zone]
    nodes = plan.nodes_of(block.zone) if fabric.zoned else ()
    # A pool with an empty nodeName would be open to every node of the cluster.
    if fabric.zoned and not nodes:
        return
    stem = pool_stem(fabric, fabric.rails[block.rail], block.family)
    template = _pool_template(fabric, block.family, block.gateway_offset is not None, nodes=bool(nodes))
    lines = "".join(_node_line(node.name) for node in nodes)
    for part, ranges in enumerate(block.pools()):
        yield _pool(template, pool_name(stem, zone.name, part), block, 0, ranges, lines)


def render_pools(plan: Plan) -> str:
    """Return the text of ippools.yaml."""
    parts = [HEADING]
    fabric = plan.fabric
    nodes = {zone: plan.nodes_of(zone) for zone in range(len(fabric.zones))}
    stems = [pool_stem(fabric, rail, family) for rail in fabric.rails for family in fabric.families]
    room = MAX_NAME - 1 - max(map(len, stems), default=0)
    odd = {
        zone: {node.slot for node in seated if len(node.name) > room or "." in node.name}
        for zone, seated in nodes.items()
    }
    for block in plan.blocks:
        if not block.pod_offsets:
            continue
        if block.per_node:
            _add_pools_per_node(parts, fabric, block, nodes[block.zone], odd[block.zone])
        else:
            parts.extend(_pools_shared(plan, block))
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


# --- configs --------------------------------------------------------------------------------------------------------

_COORDINATOR: Json = {
    "hostRuleTable": 500,
    "mode": "auto",
    "podDefaultRouteNIC": "",
    "podMACPrefix": "",
    "podRPFilter": 0,
    "tunePodRoutes": True,
    "txQueueLen": 0,
    "vethLinkAddress": "",
    "vethMTU": 1500,
}


def _metadata(fabric: Fabric, name: str, *, namespaced: bool = True) -> Json:
    made: Json = {"name": name}
    if namespaced:
        made["namespace"] = fabric.namespace
    return {**made, "labels": labels(fabric)}


def _shares_interfaces(plan: Plan) -> bool:
    """Whether one interface name means different rails on different nodes."""
    rails: dict[str, int] = {}
    return any(
        rails.setdefault(interface, index) != index
        for nodes in profiles(plan).values()
        for node in nodes[:1]
        for index, interface in enumerate(node.interfaces)
    )


def _resource(plan: Plan, rail: Rail, profile: str) -> str:
    """Return the full resource name that a config names."""
    own = plan.fabric.attachment not in SRIOV_ATTACHMENTS and _shares_interfaces(plan)
    return f"{plan.fabric.resource_prefix}/{resource_name(rail, profile if own else DECLARED)}"


def _cni(plan: Plan, rail: Rail, interface: str, profile: str) -> tuple[str, Json]:
    """Return the block's name and the block, every field there."""
    fabric = plan.fabric
    # An empty list would be gone after the webhook, and a difference for ever.
    names = {"ipv4": pool_names(plan, rail, 4), "ipv6": pool_names(plan, rail, 6)}
    ippools = {**{family: found for family, found in names.items() if found}, "matchMasterSubnet": False}
    resource = _resource(plan, rail, profile)
    if fabric.attachment == "ipoib":
        return "ipoib", {"ippools": ippools, "master": interface}
    if fabric.attachment == "ib-sriov":
        return "ibsriov", {
            "enableIbKubernetes": False,
            "ippools": ippools,
            "linkState": "enable",
            "pkey": fabric.pkey,
            "rdmaIsolation": True,
            "resourceName": resource,
        }
    if fabric.attachment == "sriov":
        return "sriov", {
            "ippools": ippools,
            "maxTxRateMbps": 0,
            "minTxRateMbps": 0,
            "mtu": fabric.mtu,
            "rdmaIsolation": True,
            "resourceName": resource,
            "vlanID": fabric.vlan,
        }
    return fabric.attachment, {
        "ippools": ippools,
        "master": [interface],
        "mtu": fabric.mtu,
        "rdmaResourceName": resource,
        "vlanID": fabric.vlan,
    }


def _config(plan: Plan, rail: Rail, interface: str, profile: str) -> Json:
    fabric = plan.fabric
    metadata = _metadata(fabric, config_name(fabric, rail, profile))
    if fabric.inject and fabric.families:
        key, value = fabric.inject
        metadata["annotations"] = {key: inject_value(value, profile)}
    if fabric.attachment == "ipoib":
        # Its block has no field for the resource, and Spiderpool injects none: whoever makes pods reads it here.
        metadata.setdefault("annotations", {})[RESOURCE] = _resource(plan, rail, profile)
    name, block = _cni(plan, rail, interface, profile)
    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderMultusConfig",
        "metadata": metadata,
        "spec": {
            "chainCNIJsonData": [],
            "cniType": fabric.attachment,
            "coordinator": _COORDINATOR,
            "disableIPAM": not fabric.families,
            # Without addresses the coordinator has nothing to tune, and refuses to start.
            "enableCoordinator": bool(fabric.families),
            name: block,
        },
    }


def _interfaces(fabric: Fabric, nodes: Sequence[Node]) -> tuple[str, ...]:
    return nodes[0].interfaces if nodes else tuple(rail.interface for rail in fabric.rails)


def multus_configs(plan: Plan) -> list[Json]:
    """Return the SpiderMultusConfigs: one a rail, and one a rail and name profile where a parent is named."""
    fabric = plan.fabric
    # A virtual function is found by its resource, so no name of an interface is in these.
    groups = {DECLARED: ()} if fabric.attachment in SRIOV_ATTACHMENTS else profiles(plan)
    return [
        _config(plan, rail, _interfaces(fabric, nodes)[rail.index - 1], profile)
        for profile, nodes in groups.items()
        for rail in fabric.rails
    ]


# --- the rest -------------------------------------------------------------------------------------------------------


def reserved_ips(fabric: Fabric) -> list[Json]:
    """Return the SpiderReservedIPs: one a family.

    Spiderpool expands them address by address at every allocation, so a range above MAX_POOL addresses is left out; the
    plan's own pools keep clear of it anyway.
    """
    made = []
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
                    "kind": "SpiderReservedIP",
                    "metadata": _metadata(fabric, name, namespaced=False),
                    "spec": {"ipVersion": family, "ips": ranges},
                }
            )
    return made


def sriov_policies(plan: Plan) -> list[Json]:
    """Return the SriovNetworkNodePolicies: one a rail and name profile, for labelled nodes only.

    Rules of SR-IOV operator 1.3.0, which the chart installs: InfiniBand needs isRdma, there is no rdmaMode.
    """
    fabric = plan.fabric
    if fabric.attachment not in SRIOV_ATTACHMENTS:
        return []
    infiniband = fabric.network == "infiniband"
    made = []
    for profile, nodes in profiles(plan).items():
        for rail in fabric.rails:
            spec: Json = {
                "deviceType": "netdevice",
                "isRdma": True,
                "linkType": "ib" if infiniband else "eth",
                "nicSelector": {"pfNames": [_interfaces(fabric, nodes)[rail.index - 1]]},
                "nodeSelector": {node_label(fabric): profile},
                "numVfs": fabric.vfs,
                "priority": 99,
                "resourceName": rail.resource,
            }
            if not infiniband:
                spec["mtu"] = fabric.mtu
            made.append(
                {
                    "apiVersion": SRIOV,
                    "kind": "SriovNetworkNodePolicy",
                    "metadata": _metadata(fabric, config_name(fabric, rail, profile)),
                    "spec": dict(sorted(spec.items())),
                }
            )
    return made


def device_config(plan: Plan) -> Json:
    """Return the configuration of the RDMA shared device plugin: a resource a rail, found by interface names."""
    fabric = plan.fabric
    link = "infiniband" if fabric.network == "infiniband" else "ether"
    groups = profiles(plan)
    entries: dict[str, Json] = {}
    for profile, nodes in groups.items():
        for rail in fabric.rails:
            name = _resource(plan, rail, profile).partition("/")[2]
            entry = entries.setdefault(
                name,
                {
                    "resourceName": name,
                    "resourcePrefix": fabric.resource_prefix,
                    "rdmaHcaMax": fabric.hca_max,
                    "selectors": {"ifNames": [], "linkTypes": [link]},
                },
            )
            entry["selectors"]["ifNames"].append(_interfaces(fabric, nodes)[rail.index - 1])
    for entry in entries.values():
        entry["selectors"]["ifNames"] = sorted(set(entry["selectors"]["ifNames"]))
    return {"configList": list(entries.values()), "periodicUpdateInterval": DEVICE_PLUGIN_INTERVAL}


def helm_values(plan: Plan) -> Json:
    """Return the values of the Spiderpool chart that follow from the fabric; everything else is the role's."""
    fabric = plan.fabric
    virtual = fabric.attachment in SRIOV_ATTACHMENTS
    shared: Json = {"install": not virtual}
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
        "plugins": {"installCNI": True},
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


def node_labels(plan: Plan) -> Json | None:
    """Return the label of every node, or None where no object selects nodes by it."""
    groups = profiles(plan)
    if plan.fabric.attachment not in SRIOV_ATTACHMENTS and list(groups) == [DECLARED]:
        return None
    return {
        "label": node_label(plan.fabric),
        "nodes": {node.name: profile for profile, nodes in groups.items() for node in nodes},
    }


# --- checks and warnings --------------------------------------------------------------------------------------------


def _check_names(plan: Plan) -> None:
    """Refuse names of rails that would make two objects one, or let a wildcard catch another rail's pools."""
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
    if problems:
        raise InputError(problems)


def injection_order(plan: Plan) -> tuple[str, ...]:
    """Return the rails' names in the order in which an injected pod gets them as net1, net2 and so on.

    Spiderpool sorts by the first parent (macvlan, ipvlan) or resource (sriov) as text, else by the config's name.
    """
    fabric = plan.fabric
    keys = {
        "macvlan": lambda rail: rail.interface,
        "ipvlan": lambda rail: rail.interface,
        "sriov": lambda rail: f"{fabric.resource_prefix}/{rail.resource}",
    }
    key: t.Callable[[Rail], str] = keys.get(fabric.attachment, lambda rail: "")
    ordered = sorted(fabric.rails, key=lambda rail: (key(rail), f"{fabric.namespace}/{config_name(fabric, rail)}"))
    return tuple(rail.name for rail in ordered)


def _listed(nodes: Sequence[Node], limit: int = 5) -> str:
    names = ", ".join(node.name for node in nodes[:limit])
    return names if len(nodes) <= limit else f"{names} and {len(nodes) - limit} more"


def object_warnings(plan: Plan) -> tuple[str, ...]:
    """Return what is worth knowing about the objects before they are applied."""
    fabric = plan.fabric
    found = []
    groups = profiles(plan)
    if len(groups) > 1 or list(groups) != [DECLARED]:
        fits = "; ".join(f"{name}: {_listed(nodes)}" for name, nodes in groups.items())
        found.append(
            f"Nodes name the rails' interfaces in {len(groups)} ways, so a pod has to say which nodes it fits "
            f"(node label {node_label(fabric)}): {fits}. Give the rails stable names to have one way."
        )
    order = injection_order(plan)
    if fabric.inject and order != tuple(rail.name for rail in fabric.rails):
        found.append(
            f"An injected pod gets the rails in the order {', '.join(order)}: Spiderpool sorts them as text. "
            "Software that pairs net1 with the first GPU needs names that sort by rail."
        )
    large = sum(1 for _family, first, last in fabric.reserved if last - first >= MAX_POOL)
    if large:
        found.append(
            f"{large} reserved range{'s' if large > 1 else ''} of {MAX_POOL} addresses or more stay out of the "
            "SpiderReservedIPs, which Spiderpool expands address by address; the plan's own pools keep clear of them."
        )
    return tuple(found)


def render_cluster(plan: Plan) -> dict[str, str]:
    """Return the files of the plan's folder `cluster/`: name -> text.

    :raises InputError: when names of rails or nodes would make two objects one.
    """
    _check_names(plan)
    fabric = plan.fabric
    files = {
        "ippools.yaml": render_pools(plan),
        "multusconfigs.yaml": documents(multus_configs(plan), HEADING),
        "reservedips.yaml": documents(reserved_ips(fabric), HEADING),
        "sriovpolicies.yaml": documents(sriov_policies(plan), HEADING),
        "values.yaml": HEADING + "---\n" + yaml_block(helm_values(plan)),
    }
    marks = node_labels(plan)
    if marks is not None:
        files["nodelabels.json"] = json.dumps(marks, indent=1) + "\n"
    return files
