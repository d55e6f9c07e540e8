# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check a plan by its files alone, with netaddr's sets. Knows nothing of the planner: it shares no code with it.

The files are those that hosts, cluster and switches get: hosts/*.json, cluster/ippools.yaml or cluster/cidrpools.yaml,
switch/prefixes.csv.
"""

from __future__ import annotations

import csv
import io
import json
import typing as t
from collections import defaultdict
from itertools import pairwise

import yaml
from netaddr import IPAddress, IPNetwork, IPRange, IPSet

from ansible_collections.railops.rdma.tests.unit import cidr_pools

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
POOL_LIMIT = 4096


class Pool(t.NamedTuple):
    name: str
    subnet: IPNetwork
    gateway: IPAddress | None
    ranges: list[IPRange]
    nodes: frozenset[str]


def _ranges(items: list[str]) -> list[IPRange]:
    return [IPRange(*(item.split("-") if "-" in item else (item, item))) for item in items]


def _sum(ranges: list[IPRange]) -> int:
    return sum(one.last - one.first + 1 for one in ranges)


def pools_of(files: dict[str, str]) -> list[Pool]:
    if "cluster/cidrpools.yaml" in files:
        return _node_pools(files)
    found = []
    for obj in yaml.load_all(files["cluster/ippools.yaml"], Loader=LOADER):
        if not obj:
            continue
        spec = obj["spec"]
        gateway = IPAddress(spec["gateway"]) if "gateway" in spec else None
        nodes = frozenset(spec.get("nodeName", ()))
        found.append(Pool(obj["metadata"]["name"], IPNetwork(spec["subnet"]), gateway, _ranges(spec["ips"]), nodes))
    return found


def _node_pools(files: dict[str, str]) -> list[Pool]:
    """Return what each node hands out of each CIDRPool; a stranger in the cluster gets nothing."""
    marked = json.loads(files["cluster/nodelabels.json"])
    labels = {node: {marked["label"]: value} for node, value in marked["nodes"].items()}
    labels["stranger"] = {"kubernetes.io/hostname": "stranger"}
    found = []
    for pool in yaml.load_all(files["cluster/cidrpools.yaml"], Loader=LOADER):
        for node, one in cidr_pools.handed(pool, labels).items() if pool else ():
            version = one.prefix.version
            ranges = [IPRange(IPAddress(low, version), IPAddress(high, version)) for low, high in one.ranges]
            name = f"{pool['metadata']['name']} on {node}"
            found.append(Pool(name, one.prefix, one.gateway, ranges, frozenset([node])))
    return found


def check(files: dict[str, str], *, mode: str, reserved: list[str], foreign: list[str]) -> list[str]:
    """Return what is wrong with a plan, as sentences."""
    host_plans = [json.loads(text) for path, text in files.items() if path.startswith("hosts/")]
    pools = pools_of(files)
    hosts: list[IPAddress] = []
    gateways: set[IPAddress] = set()
    subnets: dict[tuple[str, str, int], IPNetwork] = {}
    wrong = []
    for data in host_plans:
        for rail in data["rails"]:
            for one in rail["addresses"]:
                where = f"{data['node']} {rail['name']}"
                subnet, address = IPNetwork(one["subnet"]), IPAddress(one["address"])
                if subnet.cidr != subnet or str(subnet) != one["subnet"]:
                    wrong.append(f"{where}: {one['subnet']} is not canonical")
                if address not in subnet or subnet.version != one["family"]:
                    wrong.append(f"{where}: {address} is not in {subnet}")
                if subnet.size > 2 and address.value in (subnet.first, subnet.last):
                    wrong.append(f"{where}: {address} is network or broadcast address")
                if one["gateway"]:
                    gateway = IPAddress(one["gateway"])
                    gateways.add(gateway)
                    if gateway not in subnet:
                        wrong.append(f"{where}: gateway {gateway} is not in {subnet}")
                hosts.append(address)
                subnets[data["node"], rail["name"], one["family"]] = subnet
    wrong += _check_pools(pools, subnets, gateways)
    handed = _handed_out(hosts, pools)
    wrong += _check_disjoint(hosts, gateways, pools, handed)
    wrong += _check_avoided(handed, subnets, reserved, foreign)
    wrong += _check_partition(subnets, pools, mode)
    wrong += _check_aggregates(files, subnets, mode)
    wrong += _check_prefixes(host_plans, subnets, files)
    return wrong


def _check_pools(pools, subnets, gateways) -> list[str]:
    wrong = []
    for pool in pools:
        by_node = " on " in pool.name
        if (_sum(pool.ranges) > POOL_LIMIT and not by_node) or not pool.ranges:
            wrong.append(f"{pool.name}: {_sum(pool.ranges)} addresses")
        for one in pool.ranges:
            # The daemon of nv-ipam also hands out the last address of an IPv6 prefix.
            last = pool.subnet.last + (by_node and pool.subnet.version == 6)
            if one.first <= pool.subnet.first or one.last >= last:
                wrong.append(f"{pool.name}: {one} leaves {pool.subnet} or touches its ends")
        if any(low.last + 1 >= high.first for low, high in pairwise(pool.ranges)):
            wrong.append(f"{pool.name}: the ranges are not sorted and joined")
        if pool.gateway and pool.gateway not in gateways:
            wrong.append(f"{pool.name}: gateway {pool.gateway} is nobody's")
        users = {node for (node, _rail, _family), subnet in subnets.items() if subnet == pool.subnet}
        if not (users & pool.nodes if pool.nodes else users):
            wrong.append(f"{pool.name}: {pool.subnet} is no node's subnet")
    return wrong


def _handed_out(hosts, pools) -> IPSet:
    """The addresses of nodes and pods; built in one go, for a set is joined anew at every addition."""
    return IPSet([*hosts, *(cidr for pool in pools for one in pool.ranges for cidr in one.cidrs())])


def _check_disjoint(hosts, gateways, pools, handed) -> list[str]:
    """All addresses together must be as many as their set has: then no two are the same."""
    count = len(hosts) + len(gateways) + sum(_sum(pool.ranges) for pool in pools)
    union = handed | IPSet(gateways)
    return [] if union.size == count else [f"{count} addresses are handed out, {union.size} are different"]


def _check_avoided(handed, subnets, reserved, foreign) -> list[str]:
    wrong = []
    kept = IPSet()
    for text in reserved:
        kept.update(IPNetwork(text) if "/" in text else _ranges([text])[0])
    if handed & kept:
        wrong.append(f"reserved addresses are handed out: {list((handed & kept).iter_cidrs())[:3]}")
    for text in foreign:
        if any(net in IPNetwork(text) or IPNetwork(text) in net for net in set(subnets.values())):
            wrong.append(f"foreign network {text} is used")
    return wrong


def _check_partition(subnets, pools, mode) -> list[str]:
    """Subnets are equal or disjoint; who may share one depends on the mode."""
    wrong = []
    owners = defaultdict(set)
    for (node, rail, _family), subnet in subnets.items():
        owners[subnet].add((node, rail))
    nets = sorted(owners)
    for low, high in pairwise(nets):
        if low.version == high.version and low.last >= high.first:
            wrong.append(f"{low} and {high} overlap")
    for subnet, who in owners.items():
        rails = {rail for _node, rail in who}
        if (mode == "exclusive" and len(who) > 1) or (mode == "shared" and len(rails) > 1):
            wrong.append(f"{subnet} is shared by {sorted(who)[:3]}")
    return wrong


def _check_aggregates(files, subnets, mode) -> list[str]:
    """A rail's aggregate holds exactly the subnets of its rail and zone: none outside, no other rail's inside."""
    wrong = []
    lock = json.loads(files["plan.json"])
    zone_of = {node: entry["zone"] for node, entry in lock["nodes"].items()}
    rows = list(csv.DictReader(io.StringIO(files["switch/prefixes.csv"])))
    aggregates = {
        (row["zone"].lstrip("'"), row["rail"], int(row["family"])): IPNetwork(row["aggregate"]) for row in rows
    }
    for (node, rail, family), subnet in subnets.items():
        for key, aggregate in aggregates.items():
            own = key == (zone_of[node], rail, family)
            same = mode == "flat" and key[0] == zone_of[node] and key[2] == family
            if own and subnet not in aggregate:
                wrong.append(f"{subnet} of {node} {rail} is not in {aggregate}")
            if not own and not same and (subnet in aggregate or aggregate in subnet):
                wrong.append(f"{subnet} of {node} {rail} is in {aggregate} of {key}")
    return wrong


def _check_prefixes(host_plans, subnets, files) -> list[str]:
    """Every rail's subnet is reached through the RDMA prefixes, and they are disjoint."""
    wrong = []
    for data in host_plans[:1]:
        nets = [IPNetwork(text) for text in data["rdma_prefixes"]]
        union = IPSet(nets)
        if sum(net.size for net in nets) != union.size:
            wrong.append(f"RDMA prefixes overlap: {nets}")
        for subnet in set(subnets.values()):
            if not any(subnet in net for net in nets):
                wrong.append(f"{subnet} is in no RDMA prefix")
    return wrong
