# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to nv-ipam: a CIDRPool per rail and family, a NetworkAttachmentDefinition per rail.

The API server checks no CIDRPool: it stores an invalid spec, which removes all addresses of the rail. This file
therefore meets the requirements of nv-ipam's controller and daemon (Mellanox/nvidia-k8s-ipam v0.4.0, api/v1alpha1,
pkg/ipam-node):

- each node has its prefix by name, a retired one stays reserved; a selector excludes other nodes;
- exclusions do not overlap, for a daemon refuses the pool then; each lies inside of one node's prefix, for a longer one
  counts for nothing;
- no index is above 31 bits, and no more than a million addresses of a node are excluded, for its daemon passes them
  one by one: in large IPv6 subnets pods have all that is left (`Backend.rest_is_pods`).
"""

from __future__ import annotations

import json
import typing as t

from ...module_utils import _intervals as intervals
from ...module_utils._errors import Problem
from ...module_utils._fabric.labels import CIDR_POOL, KEEP_POOL, NETWORK, NETWORK_RESOURCE, NV_IPAM
from .._fabric.model import WIDTH, Block, FabricPlan, Prefix, Rail, Range, address_text
from .._fabric.names import config_name, full_resource, interfaces_of, manifest, node_label, pool_name, pool_stem
from .chain import network_config
from .configs import parents
from .text import documents

Json = dict[str, t.Any]

MOST_INDEX = (1 << 31) - 1
MOST_BYTES = 1_450_000
"""Of a CIDRPool with its status: etcd takes 1.5 MiB, and the API's own fields want room."""


def _covering(prefixes: list[Prefix]) -> Prefix:
    """Return the smallest network that holds all of them."""
    first, last = min(prefixes), max(prefix.last for prefix in prefixes)
    bits = (first.network ^ last).bit_length()
    return Prefix(first.family, first.network >> bits << bits, WIDTH[first.family] - bits)


def _cut(block: Block, slot: int) -> t.Iterator[Range]:
    """Yield the addresses that the pods of one node do not have beside."""
    first = block.subnet_first(slot)
    usual = [(first + low, first + high) for low, high in block.pod_offsets]
    yield from intervals.subtract(usual, block.pods(slot))


def cidr_pools(plan: FabricPlan) -> list[Json]:
    """Return the CIDRPools: one a rail and family, with the prefixes of all zones."""
    blocks: dict[tuple[int, int], dict[int, Block]] = {}
    for block in plan.blocks:
        blocks.setdefault((block.rail, block.family), {})[block.zone] = block
    pairs = [(rail, family) for rail in plan.fabric.rails for family in plan.fabric.families]
    return [_cidr_pool(plan, *pair, found) for pair in pairs if (found := blocks.get((pair[0].index - 1, pair[1])))]


def _cidr_pool(plan: FabricPlan, rail: Rail, family: int, blocks: dict[int, Block]) -> Json:
    fabric = plan.fabric
    one = next(iter(blocks.values()))
    spec: Json = {
        "cidr": str(_covering([block.aggregate for block in blocks.values()])),
        "perNodeNetworkPrefix": one.subnet_length,
    }
    if one.gateway_offset is not None:
        spec["gatewayIndex"] = one.gateway_offset
    # Offsets that no pod may have, the same on every node; a daemon's own default excludes IPv4's broadcast address.
    if excluded := intervals.subtract([(1, one.subnet_size - (1 if family == 6 else 2))], one.pod_offsets):
        spec["perNodeExclusions"] = [{"startIndex": low, "endIndex": high} for low, high in excluded]
    used = {(node.zone, node.slot) for node in plan.nodes}
    cut = [
        {"startIP": address_text(family, low), "endIP": address_text(family, high)}
        for zone, block in blocks.items()
        for slot in sorted(block.cuts)
        if (zone, slot) in used
        for low, high in _cut(block, slot)
    ]
    if cut:
        spec["exclusions"] = cut
    spec["staticAllocations"] = [
        {"nodeName": node.name, "prefix": str(blocks[node.zone].subnet(node.slot))} for node in plan.nodes
    ] + [{"prefix": str(blocks[one.zone].subnet(one.slot))} for one in plan.retired]
    expression = {"key": node_label(fabric), "operator": "Exists"}
    spec["nodeSelector"] = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return manifest(NV_IPAM, CIDR_POOL, fabric, pool_name(pool_stem(fabric, rail, family)), spec, notes=KEEP_POOL)


def _networks(plan: FabricPlan) -> t.Iterator[Json]:
    """Yield each NetworkAttachmentDefinition."""
    fabric = plan.fabric
    for profile, nodes in parents(plan).items():
        for rail in fabric.rails:
            name = config_name(fabric, rail, profile)
            # Multus finds the virtual function by it. Of a shared device the pod itself asks for the resource.
            notes = {NETWORK_RESOURCE: full_resource(plan, rail, profile)} if fabric.attached.own_device else {}
            pools = [pool_name(pool_stem(fabric, rail, family)) for family in fabric.families]
            interface = interfaces_of(fabric, nodes)[rail.index - 1]
            config = network_config(fabric, rail, name, interface, pools)
            yield manifest(*NETWORK, fabric, name, {"config": config}, notes=notes)


def files(plan: FabricPlan) -> dict[str, str]:
    """Return the files of the plan's folder `cluster/`: name -> text."""
    return {"cidrpools.yaml": documents(cidr_pools(plan)), "networks.yaml": documents(_networks(plan))}


def problems(plan: FabricPlan) -> t.Iterator[Problem]:
    """Yield pools that the API would reject, now or with their later status."""
    last = (plan.fabric.reserved_per_subnet or {"last": 0})["last"]
    if last and (lengths := _lengths_without_end(plan)):
        text = f"nv-ipam cannot keep the last {last} addresses of IPv6 subnets of /{lengths[0]} from pods."
        fix = "Set last to 0, or a longer IPv6 fabric_node_prefix. [nv_ipam_last]"
        yield Problem("fabric_reserved_per_subnet", text, fix)
    for pool in cidr_pools(plan):
        name = pool["metadata"]["name"]
        if (index := pool["spec"].get("gatewayIndex", 0)) > MOST_INDEX:
            text = f"Its offset in {name} would be {index}; nv-ipam knows offsets up to {MOST_INDEX}."
            fix = "Give first or none, or a longer IPv6 fabric_node_prefix. [nv_ipam_offset]"
            yield Problem("fabric_gateway", text, fix)
        rows = [{**row, "gateway": row["prefix"]} for row in pool["spec"]["staticAllocations"] if "nodeName" in row]
        size = len(json.dumps([pool, rows], separators=(",", ":")))
        if size > MOST_BYTES:
            text = (
                f"{name} would have {size:,} bytes with its status, for {len(plan.nodes):,} nodes; {MOST_BYTES:,} fit."
            )
            fix = "Make two fabrics of it, or give the nodes shorter names. [nv_ipam_size]"
            yield Problem("fabric_ipam", text, fix)


def _lengths_without_end(plan: FabricPlan) -> list[int]:
    """Return the lengths of the subnets whose pods get each address behind the node's."""
    rest_is_pods = plan.fabric.backend.rest_is_pods
    return sorted({one.subnet_length for one in plan.blocks if rest_is_pods(one.family, one.subnet_length)})


def warnings(plan: FabricPlan) -> list[str]:
    """Return what these pools cannot say."""
    return [
        f"In IPv6 subnets of /{length} pods have every address behind the node's: nv-ipam cannot keep any from them."
        for length in _lengths_without_end(plan)
    ]
