# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Check a plan by its files alone, with netaddr's sets. Knows nothing of the planner: it shares no code with it.

The files are those that hosts, cluster and switches get: hosts/*.json, cluster/ippools.yaml or cluster/cidrpools.yaml,
switch/prefixes.csv.
"""

from __future__ import annotations

import csv
import functools
import io
import json
import typing as t
from collections import defaultdict
from itertools import pairwise

import yaml
from netaddr import IPAddress, IPNetwork, IPRange, IPSet

from ansible_collections.railops.rdma.tests.unit import nv_ipam

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
POOL_LIMIT = 4096


class Pool(t.NamedTuple):
    name: str
    subnet: IPNetwork
    gateway: IPAddress | None
    ranges: list[IPRange]
    nodes: frozenset[str]


def planned_rails(data: dict[str, t.Any]) -> list[dict[str, t.Any]]:
    """A host's rails, those out of service too: their numbers stay reserved."""
    return [*data["rails"], *data.get("out_of_service", {"rails": []})["rails"]]


def check_out_of_service(files: dict[str, str], raw: dict[str, t.Any], rails: list[str]) -> list[str]:
    """Rails out of service are in their host's plan apart, off in their own pools, and in no list of the others."""
    wrong = []
    hosts = {
        path[len("hosts/") : -len(".json")]: json.loads(text) for path, text in files.items() if path[:6] == "hosts/"
    }
    off = set()
    for host, data in hosts.items():
        given = raw["out_of_service"].get(host, {"rails": []})["rails"]
        out = [rail for rail in rails if given == "all" or rail in given]
        have = [rail["name"] for rail in data.get("out_of_service", {"rails": []})["rails"]]
        if have != out or [rail["name"] for rail in data["rails"]] != [rail for rail in rails if rail not in out]:
            wrong.append(f"{host}: {have} are out of service, not {out}")
        names = {part for key in data["sysctls"] for part in key.split("/")} | {*data.get("cables", ())}
        gone = {rail["interface"] for rail in planned_rails(data) if rail["name"] in out} | {*out}
        wrong += [f"{host}: {name} is out of service and has settings" for name in sorted(names & gone)]
        off |= {
            (data["node"], one["subnet"])
            for rail in planned_rails(data)
            if rail["name"] in out
            for one in rail["addresses"]
        }
    for obj in _documents(files.get("cluster/ippools.yaml", "")):
        owner = (*obj["spec"].get("nodeName", ()), obj["spec"]["subnet"])
        if obj["spec"]["disable"] != (owner in off and raw["mode"] == "exclusive"):
            wrong.append(f"{obj['metadata']['name']}: disable is {obj['spec']['disable']}")
    return wrong


def _ranges(items: list[str]) -> list[IPRange]:
    return [IPRange(*(item.split("-") if "-" in item else (item, item))) for item in items]


def _sum(ranges: list[IPRange]) -> int:
    return sum(one.last - one.first + 1 for one in ranges)


def pools_of(files: dict[str, str]) -> list[Pool]:
    if "cluster/cidrpools.yaml" in files:
        return _node_pools(files)
    found = []
    # A fabric of hosts only has no folder cluster/.
    for obj in yaml.load_all(files.get("cluster/ippools.yaml", ""), Loader=LOADER):
        if not obj:
            continue
        spec = obj["spec"]
        gateway = IPAddress(spec["gateway"]) if "gateway" in spec else None
        nodes = frozenset(spec.get("nodeName", ()))
        found.append(Pool(obj["metadata"]["name"], IPNetwork(spec["subnet"]), gateway, _ranges(spec["ips"]), nodes))
    return found


@functools.lru_cache(maxsize=2)
def _documents(text: str) -> list[dict[str, t.Any]]:
    return [obj for obj in yaml.load_all(text, Loader=LOADER) if obj]


def _cidr_pools(files: dict[str, str]) -> tuple[list[dict[str, t.Any]], dict[str, dict[str, str]]]:
    """Return the CIDRPools, and the labels of the cluster's nodes: the plan's, and one of which it knows nothing."""
    groups = json.loads(files["facts.json"])["node_labels"]
    labels = {node: group["labels"] for group in groups for node in group["nodes"]}
    labels["a-stranger"] = {"kubernetes.io/hostname": "a-stranger"}
    return _documents(files["cluster/cidrpools.yaml"]), labels


def _node_pools(files: dict[str, str]) -> list[Pool]:
    """Return what each node hands out of each CIDRPool."""
    pools, labels = _cidr_pools(files)
    found = []
    for pool in pools:
        for entry in nv_ipam.reconcile(pool, labels):
            name, version = f"{pool['metadata']['name']} on {entry.node}", IPNetwork(entry.prefix).version
            try:
                spans = nv_ipam.handed_out(pool, entry).spans
            except nv_ipam.Refusal:
                spans = []
            ranges = [IPRange(IPAddress(low, version), IPAddress(high, version)) for low, high in spans]
            gateway = IPAddress(entry.gateway) if entry.gateway else None
            found.append(Pool(name, IPNetwork(entry.prefix), gateway, ranges, frozenset([entry.node])))
    return found


def _check_cidr_pools(files: dict[str, str]) -> list[str]:
    pools, labels = _cidr_pools(files)
    wrong = [text for pool in pools for text in nv_ipam.refused(pool) or nv_ipam.risks(pool, labels)]
    retired = sum(entry.get("retired", False) for entry in json.loads(files["plan.json"])["nodes"].values())
    for pool in pools:
        held = [row["prefix"] for row in pool["spec"]["staticAllocations"] if "nodeName" not in row]
        if len(held) != retired:
            wrong.append(f"{pool['metadata']['name']}: {held} are held back for {retired} retired nodes")
    return wrong


def _without(spans: list[tuple[int, int]], holes: list[tuple[int, int]]) -> list[tuple[int, int]]:
    for low, high in holes:
        cut = []
        for first, last in spans:
            cut += [(first, min(last, low - 1)), (max(first, high + 1), last)]
        spans = sorted({one for one in cut if one[0] <= one[1]})
    return spans


def _first(spans: list[tuple[int, int]], count: int | None) -> list[tuple[int, int]]:
    taken = []
    for low, high in spans:
        if count is not None and (high := min(high, low + count - 1)) < low:
            break
        taken.append((low, high))
        count = None if count is None else count - (high - low + 1)
    return taken


def _ends(low: int, high: int, ends: t.Mapping[str, int] | None) -> list[tuple[int, int]]:
    """Return the spans that are reserved at both ends of the usable addresses, which may be empty."""
    first, last = (ends or {}).get("first", 0), (ends or {}).get("last", 0)
    return [span for span in ((low, low + first - 1), (high - last + 1, high)) if span[0] <= span[1]]


def check_pods_per_node(
    files: dict[str, str], *, reserved: list[str], pods_per_node: int | None, ends: t.Mapping[str, int] | None = None
) -> list[str]:
    """Where CIDRPools give pods their addresses: each node has exactly the plan's, by docs/guides/fabric.md.

    In a subnet the gateway has its offset and the node the first that is free. Pods have what follows up to the last
    usable offset of the IPv4 subnet beside it, at most `pods_per_node`; in long IPv6 subnets all that follows. What is
    reserved is unused, and a node whose address it is has another.
    """
    wrong = []
    have = {(pool.subnet, *pool.nodes): [(one.first, one.last) for one in pool.ranges] for pool in pools_of(files)}
    kept = [
        (net.version, net.first, net.last)
        for net in (IPNetwork(text) if "/" in text else _ranges([text])[0] for text in reserved)
    ]
    for data in (json.loads(text) for path, text in files.items() if path.startswith("hosts/")):
        for rail in planned_rails(data):
            size4 = next((IPNetwork(one["subnet"]).size for one in rail["addresses"] if one["family"] == 4), None)
            for one in rail["addresses"]:
                subnet = IPNetwork(one["subnet"])
                taken = [(int(IPAddress(one["gateway"])),) * 2] if one["gateway"] else []
                size = min(subnet.size, size4 or subnet.size)
                usable = (subnet.first + 1, subnet.first + size - 2)
                taken += _ends(*usable, ends)
                free = _without([usable], taken)
                node = free[0][0]
                pods = _first(_without(free, [(node, node)]), pods_per_node or (None if size4 else 28))
                if subnet.version == 6 and subnet.size > nv_ipam.MOST_WALKED:
                    pods = _without([(pods[0][0], subnet.last)], taken)
                own = int(IPAddress(one["address"]))
                pods = _without(pods, [(own, own), *(span for version, *span in kept if version == subnet.version)])
                if have.pop((subnet, data["node"]), None) != pods:
                    wrong.append(f"{data['node']} {rail['name']}: pods of {subnet} do not have {pods}")
    return [*wrong, *(f"{key} has no user" for key in have)]


def check(
    files: dict[str, str],
    *,
    mode: str,
    reserved: list[str],
    foreign: list[str],
    ends: t.Mapping[str, int] | None = None,
) -> list[str]:
    """Return what is wrong with a plan, as sentences.

    :param ends: how many usable addresses are reserved at each end of a subnet.
    """
    host_plans = [json.loads(text) for path, text in files.items() if path.startswith("hosts/")]
    pools = pools_of(files)
    hosts: list[IPAddress] = []
    gateways: set[IPAddress] = set()
    subnets: dict[tuple[str, str, int], IPNetwork] = {}
    wrong = _check_cidr_pools(files) if "cluster/cidrpools.yaml" in files else []
    for data in host_plans:
        for rail in planned_rails(data):
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
    wrong += _check_ends(handed, subnets, ends)
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
            wrong.append(f"{pool.name}: gateway {pool.gateway} has no user")
        users = {node for (node, _rail, _family), subnet in subnets.items() if subnet == pool.subnet}
        if not (users & pool.nodes if pool.nodes else users):
            wrong.append(f"{pool.name}: {pool.subnet} is no node's subnet")
    return wrong


def _handed_out(hosts, pools) -> IPSet:
    """The addresses of nodes and pods; built in one go, for a set is joined again at every addition."""
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


def _check_ends(handed, subnets, ends) -> list[str]:
    """The first and the last usable addresses of each subnet, as many as reserved, belong to no node and no pod."""
    wrong = []
    for net in set(subnets.values()):
        low, high = (net.first, net.last) if net.size == 2 else (net.first + 1, net.last - 1)
        for begin, end in _ends(low, high, ends):
            span = IPSet(IPRange(IPAddress(begin, net.version), IPAddress(end, net.version)))
            if taken := handed & span:
                wrong.append(f"reserved ends of {net} are handed out: {list(taken.iter_cidrs())[:3]}")
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
