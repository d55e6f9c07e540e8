# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nv-ipam makes of CIDRPools: which node gets which prefix, and which addresses its daemon hands out.

With netaddr alone, from what the project's code does (Mellanox/nvidia-k8s-ipam v0.4.0: pkg/ipam-controller and
api/v1alpha1 for the prefixes and the checks, pkg/ipam-node for the addresses). Knows nothing of the planner.
"""

from __future__ import annotations

import itertools
import typing as t

from netaddr import IPAddress, IPNetwork

Json = dict[str, t.Any]
INT32 = (1 << 31) - 1


class Handed(t.NamedTuple):
    """What a node's daemon hands out of a pool: its prefix, the gateway that is skipped, first and last addresses."""

    prefix: IPNetwork
    gateway: IPAddress | None
    ranges: list[tuple[int, int]]


def problems(pool: Json) -> list[str]:
    """Return what controller and daemon would refuse, and what they would silently pass over."""
    spec = pool["spec"]
    name = pool["metadata"]["name"]
    cidr, length = IPNetwork(spec["cidr"]), spec["perNodeNetworkPrefix"]
    found = []
    if str(cidr.cidr) != str(cidr):
        found.append(f"{name}: network prefix has host bits set")
    if length == 0 or length < cidr.prefixlen or length > cidr._module.width:
        return [*found, f"{name}: prefix {length} does not suit {cidr}"]
    size = 1 << (cidr._module.width - length)
    index = spec.get("gatewayIndex")
    if index is not None and not (0 <= index <= min(size - 1, INT32) and (index > 0 or size <= 2)):
        found.append(f"{name}: gatewayIndex {index}")
    own = [(row["startIndex"], row["endIndex"]) for row in spec.get("perNodeExclusions", ())]
    found += [f"{name}: index exclusion {row}" for row in own if not 0 <= row[0] <= row[1] < min(size, INT32 + 1)]
    names, prefixes = set(), set()
    for row in spec.get("staticAllocations", ()):
        prefix = IPNetwork(row["prefix"])
        if str(prefix.cidr) != str(prefix) or prefix not in cidr or prefix.prefixlen != length:
            found.append(f"{name}: static prefix {prefix}")
        if prefix in prefixes or row.get("nodeName", object()) in names:
            found.append(f"{name}: contains multiple entries for {row}")
        prefixes.add(prefix)
        names.add(row.get("nodeName", object()))
    whole = []
    for row in spec.get("exclusions", ()):
        low, high = IPAddress(row["startIP"]), IPAddress(row["endIP"])
        if low not in cidr or high not in cidr or low > high:
            found.append(f"{name}: exclusion {row}")
        elif IPNetwork(f"{low}/{length}").cidr != IPNetwork(f"{high}/{length}").cidr:
            found.append(f"{name}: exclusion {row} crosses the border of a node's prefix and counts for nothing there")
        first = IPNetwork(f"{low}/{length}").first
        whole.append((first, int(low), int(high)))
    for first, ranges in itertools.groupby(sorted(whole), key=lambda row: row[0]):
        spans = sorted(
            [(low, high) for _first, low, high in ranges] + [(first + low, first + high) for low, high in own]
        )
        found += [
            f"{name}: overlapping exclusions: the daemon refuses the pool"
            for one, other in itertools.pairwise(spans)
            if one[1] >= other[0]
        ]
    if any(one[1] >= other[0] for one, other in itertools.pairwise(sorted(own))):
        found.append(f"{name}: overlapping index exclusions: the daemon refuses the pool")
    terms = (spec.get("nodeSelector") or {}).get("nodeSelectorTerms")
    if not terms:
        found.append(f"{name}: without a selector every node of the cluster draws a prefix")
    return found


def matches(pool: Json, labels: dict[str, str]) -> bool:
    """Whether the pool's selector chooses a node with these labels; of operators only what plans use."""
    return any(
        all(row["operator"] == "Exists" and row["key"] in labels for row in term["matchExpressions"])
        for term in pool["spec"]["nodeSelector"]["nodeSelectorTerms"]
    )


def handed(pool: Json, labels: dict[str, dict[str, str]]) -> dict[str, Handed]:
    """Return what each node hands out, by its name.

    :param labels: of the cluster's nodes, by name.
    """
    spec = pool["spec"]
    cidr = IPNetwork(spec["cidr"])
    static = {row["nodeName"]: IPNetwork(row["prefix"]) for row in spec["staticAllocations"] if "nodeName" in row}
    taken = {IPNetwork(row["prefix"]) for row in spec["staticAllocations"]}
    found = {}
    for node in sorted(name for name, own in labels.items() if matches(pool, own)):
        prefix = static.get(node)
        if prefix is None:
            # Nobody pinned it: the lowest that is free.
            prefix = next(net for net in cidr.subnet(spec["perNodeNetworkPrefix"]) if net not in taken)
            taken.add(prefix)
        index = spec.get("gatewayIndex")
        gateway = None if index is None else IPAddress(prefix.first + index, cidr.version)
        ends = {1: 0, 2: 0}.get(prefix.size, 1)
        last = prefix.last - (ends if cidr.version == 4 else 0)
        holes = [
            (prefix.first + row["startIndex"], prefix.first + row["endIndex"])
            for row in spec.get("perNodeExclusions", ())
        ]
        for row in spec.get("exclusions", ()):
            low, high = int(IPAddress(row["startIP"])), int(IPAddress(row["endIP"]))
            # One that covers the prefix from outside is passed over.
            if prefix.first <= low <= prefix.last or prefix.first <= high <= prefix.last:
                holes.append((low, high))
        if gateway is not None:
            holes.append((int(gateway), int(gateway)))
        ranges, at = [], prefix.first + ends
        for low, high in sorted(holes):
            if low > at:
                ranges.append((at, min(low - 1, last)))
            at = max(at, high + 1)
        if at <= last:
            ranges.append((at, last))
        found[node] = Handed(prefix, gateway, [row for row in ranges if row[0] <= row[1]])
    return found
