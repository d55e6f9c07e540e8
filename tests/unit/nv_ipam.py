# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What NVIDIA's nv-ipam makes of a CIDRPool, with the standard library alone. Knows nothing of the planner.

After Mellanox/nvidia-k8s-ipam at 3ce4a34, function by function:

- `refused`: the checks whose failure empties the status of the whole pool (api/v1alpha1/*validate*.go), and every field
  that the collection does not write;
- `reconcile`: which node gets which prefix (pkg/ipam-controller/controllers/cidrpool);
- `handed_out`: what the daemon of a node hands out (pkg/ipam-node: controllers/cidrpool, allocator);
- `risks`: what is accepted, and still takes addresses away from pods, or gives them to two.

Prefixes are compared as text where the project's code does so.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t
from collections import Counter
from itertools import combinations

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    Network = ipaddress.IPv4Network | ipaddress.IPv6Network
    Address = ipaddress.IPv4Address | ipaddress.IPv6Address

Json = dict[str, t.Any]
Span = tuple[int, int]
Labels = dict[str, str]

INT32 = (1 << 31) - 1
MOST_WALKED = 1 << 20
"""Excluded addresses of a node. Its daemon passes them one by one, each for about a microsecond, and has 5 s."""
NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.\-]*")
LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
FIELDS = {
    *("cidr", "perNodeNetworkPrefix", "gatewayIndex", "exclusions", "perNodeExclusions"),
    *("staticAllocations", "nodeSelector"),
}


class Refusal(Exception):
    """A daemon refuses the pool: the node's pods get no address of it."""


class Allocation(t.NamedTuple):
    """An entry of a pool's status."""

    node: str
    prefix: str
    gateway: str


class HandedOut(t.NamedTuple):
    """What a node hands out of a pool: prefix, gateway, first and last addresses in order."""

    prefix: Network
    gateway: Address | None
    spans: list[Span]


def _network(text: str) -> Network | None:
    """Return a network as net.ParseCIDR reads it, host bits cut off."""
    try:
        return ipaddress.ip_network(text, strict=False) if "/" in text else None
    except ValueError:
        return None


def _address(text: str) -> Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _host_bits(text: str, network: Network) -> bool:
    return _address(text.partition("/")[0]) != network.network_address


def _first(network: Network) -> int:
    """Return the first address that a daemon knows of a node's prefix."""
    return int(network.network_address) + (network.num_addresses > 2)


def _last(network: Network) -> int:
    """Return the last one: the broadcast address of IPv4 is not among them."""
    return int(network.broadcast_address) - (network.version == 4 and network.num_addresses > 2)


def gateway_of(prefix: Network, index: int) -> str:
    """Return the gateway with this index in a prefix (GetGatewayForSubnet); nothing where it has none."""
    if prefix.num_addresses <= 2:
        most = prefix.num_addresses - 1
    elif index == 0:
        return ""
    else:
        most = prefix.num_addresses - (2 if prefix.version == 4 else 1)
    return str(prefix.network_address + index) if index <= most else ""


# --- the controller's checks ------------------------------------------------------------------------------------------


def refused(pool: Json) -> list[str]:
    """Return what makes the controller empty the status of the whole pool."""
    name, spec = pool["metadata"]["name"], pool["spec"]
    found = [] if NAME.fullmatch(name) else ["metadata.name: should be compatible with CNI network name"]
    found += _refused_cidr(spec)
    found += [f"spec.{key}: not written by the collection" for key in sorted(spec.keys() - FIELDS)]
    if "nodeSelector" in spec and _label(spec["nodeSelector"]) is None:
        found.append("spec.nodeSelector: not written so by the collection")
    return [f"{name}: {text}" for text in found]


def _refused_cidr(spec: Json) -> list[str]:
    length, index = spec["perNodeNetworkPrefix"], spec.get("gatewayIndex")
    try:
        network = ipaddress.ip_network(spec["cidr"])
        first = next(network.subnets(new_prefix=length))
    except ValueError as exc:
        return [f"spec.cidr and spec.perNodeNetworkPrefix: {exc}"]
    found = []
    if index is not None and (index < 0 or not gateway_of(first, index)):
        found.append("spec.gatewayIndex: gateway index is outside of the node prefix")
    for row in spec.get("exclusions", ()):
        low, high = _address(row["startIP"]), _address(row["endIP"])
        if low is None or high is None or low not in network or high not in network or high < low:
            found.append(f"spec.exclusions: {row} is no range of {network}")
    most = min(INT32, first.num_addresses - 1)
    for row in spec.get("perNodeExclusions", ()):
        if not 0 <= row["startIndex"] <= row["endIndex"] <= most:
            found.append(f"spec.perNodeExclusions: {row} is no range of the per-node subnet (max: {most})")
    static = spec.get("staticAllocations", ())
    for row in static:
        prefix = _network(row["prefix"])
        if (
            prefix is None
            or _host_bits(row["prefix"], prefix)
            or prefix.network_address not in network
            or prefix.prefixlen != length
            or row.keys() - {"nodeName", "prefix"}
        ):
            found.append(f"spec.staticAllocations: {row} is no prefix of a node as the collection writes it")
    for key in ("nodeName", "prefix"):
        counts = Counter(str(_network(row[key]) or row[key]) for row in static if row.get(key))
        twice = [value for value, count in counts.items() if count > 1]
        found += [f"spec.staticAllocations: contains multiple entries for {key} {value}" for value in twice]
    return found


def _label(selector: Json) -> str | None:
    """Return the label by which a pool chooses nodes; None where the selector says anything else."""
    try:
        ((row,),) = (term["matchExpressions"] for term in selector["nodeSelectorTerms"])
    except (KeyError, ValueError):
        return None
    key: str = row["key"]
    written = {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "Exists"}]}]}
    return key if selector == written and LABEL.fullmatch(key) else None


# --- the controller: which node gets which prefix ---------------------------------------------------------------------


def matches(pool: Json, labels: Labels) -> bool:
    """Whether the pool's selector chooses a node; without one it chooses every node."""
    selector = pool["spec"].get("nodeSelector")
    return selector is None or _label(selector) in labels


def _absolute(spec: Json) -> list[Span]:
    return [
        (int(ipaddress.ip_address(row["startIP"])), int(ipaddress.ip_address(row["endIP"])))
        for row in spec.get("exclusions", ())
    ]


def _by_index(spec: Json, prefix: Network) -> list[Span]:
    """Return the exclusions by index in a node's prefix, cut to what its daemon knows."""
    base, last = int(prefix.network_address), _last(prefix)
    spans = [(base + row["startIndex"], base + row["endIndex"]) for row in spec.get("perNodeExclusions", ())]
    return [(low, min(high, last)) for low, high in spans if low <= last]


def _whole(spec: Json, prefix: Network) -> bool:
    """Whether all addresses of a prefix are excluded (isPrefixFullyExcluded)."""
    first, last = int(prefix.network_address), _last(prefix)
    spans = [(max(low, first), min(high, last)) for low, high in _absolute(spec) if low <= last and high >= first]
    free = first
    for low, high in sorted([*spans, *_by_index(spec, prefix)]):
        if low > free:
            return False
        free = max(free, high + 1)
    return free > last


def _still_valid(pool: Json, entry: Allocation, before: Sequence[Allocation]) -> bool:
    """Whether an entry of the status is kept (CIDRPoolAllocation.Validate)."""
    spec, network = pool["spec"], _network(pool["spec"]["cidr"])
    prefix = _network(entry.prefix)
    if not entry.node or prefix is None or _host_bits(entry.prefix, prefix):
        return False
    index = spec.get("gatewayIndex")
    computed = "" if index is None else gateway_of(prefix, index)
    for row in spec.get("staticAllocations", ()):
        if row.get("nodeName", "") == entry.node:
            return (entry.prefix, entry.gateway) == (row["prefix"], computed)
        if row["prefix"] == entry.prefix:
            return False
    assert network is not None
    alike = [
        one
        for one in before
        if one.node == entry.node or one.prefix == entry.prefix or (entry.gateway and one.gateway == entry.gateway)
    ]
    return (
        prefix.network_address in network
        and prefix.prefixlen == spec["perNodeNetworkPrefix"]
        and entry.gateway == computed
        and len(alike) == 1
    )


def _new(pool: Json, subnets: Iterator[Network], taken: Iterable[str]) -> Network | None:
    """Return the next free prefix: as text, so another spelling of it is another prefix."""
    static = {row["prefix"] for row in pool["spec"].get("staticAllocations", ())}
    for subnet in subnets:
        if str(subnet) not in taken and str(subnet) not in static and not _whole(pool["spec"], subnet):
            return subnet
    return None


def reconcile(pool: Json, nodes: Mapping[str, Labels], before: Sequence[Allocation] = ()) -> list[Allocation]:
    """Return the status after a reconcile.

    :param nodes: the labels of all nodes of the cluster.
    :param before: the status before.
    """
    if refused(pool):
        return []
    spec = pool["spec"]
    chosen = sorted(node for node, labels in nodes.items() if matches(pool, labels))
    status = {
        one.node: one
        for one in before
        if one.node in chosen and _still_valid(pool, one, before) and not _whole(spec, ipaddress.ip_network(one.prefix))
    }
    static = {row["nodeName"]: row for row in spec.get("staticAllocations", ()) if row.get("nodeName")}
    subnets = ipaddress.ip_network(spec["cidr"]).subnets(new_prefix=spec["perNodeNetworkPrefix"])
    index = spec.get("gatewayIndex")
    for node in chosen:
        if node in status:
            continue
        if row := static.get(node):
            text = row["prefix"]
        elif subnet := _new(pool, subnets, {one.prefix for one in status.values()}):
            text = str(subnet)
        else:
            continue
        gateway = "" if index is None else gateway_of(ipaddress.ip_network(text), index)
        status[node] = Allocation(node, text, gateway)
    return [status[node] for node in sorted(status)]


# --- the daemon: which addresses a node hands out ---------------------------------------------------------------------


def _excluded(spec: Json, prefix: Network) -> list[Span]:
    """Return a daemon's exclusions (buildExclusions): what covers the prefix from outside is not among them."""
    base, end = int(prefix.network_address), int(prefix.broadcast_address)
    spans = []
    for low, high in _absolute(spec):
        begins, ends = base <= low <= end, base <= high <= end
        if begins or ends:
            spans.append((low if begins else _first(prefix), high if ends else _last(prefix)))
    return [*spans, *_by_index(spec, prefix)]


def handed_out(pool: Json, entry: Allocation) -> HandedOut:
    """Return what the daemon of a node hands out, by the node's entry in the status.

    :raises Refusal: it hands out nothing.
    """
    prefix = ipaddress.ip_network(entry.prefix)
    spans = _excluded(pool["spec"], prefix)
    for low, high in spans:
        if low > high:
            raise Refusal(f"{entry.node}: RangeStart {low} not in network {prefix}")
    for one, other in combinations(spans, 2):
        if one[0] <= other[1] and other[0] <= one[1]:
            raise Refusal(f"{entry.node}: subnets {one} and {other} overlap")
    gateway = _address(entry.gateway)
    if gateway is not None:
        spans = [*spans, (int(gateway), int(gateway))]
    free, at, last = [], _first(prefix), _last(prefix)
    for low, high in sorted(spans):
        if low > at:
            free.append((at, min(low - 1, last)))
        at = max(at, high + 1)
    if at <= last:
        free.append((at, last))
    return HandedOut(prefix, gateway, free)


# --- what is accepted ------------------------------------------------------------------------------------------------


def risks(pool: Json, nodes: Mapping[str, Labels]) -> list[str]:
    """Return what controller and daemons take, and what does harm all the same.

    :param nodes: the labels of all nodes of the cluster.
    """
    name, spec = pool["metadata"]["name"], pool["spec"]
    static = [row for row in spec.get("staticAllocations", ()) if row.get("nodeName")]
    found = []
    if "nodeSelector" not in spec:
        found.append("without a selector all nodes of the cluster draw prefixes")
    found += [
        f"{row['prefix']} is not written as the controller writes it, so another node may draw it too"
        for row in spec.get("staticAllocations", ())
        if row["prefix"] != str(ipaddress.ip_network(row["prefix"]))
    ]
    named = {row["nodeName"] for row in static}
    for entry in reconcile(pool, nodes):
        prefix = ipaddress.ip_network(entry.prefix)
        if entry.node not in named:
            found.append(f"{entry.node} draws {entry.prefix}, which no plan gave it")
        try:
            handed_out(pool, entry)
        except Refusal as exc:
            found.append(f"invalid config for pool: {exc}")
        base, end = int(prefix.network_address), int(prefix.broadcast_address)
        if any(low < base and high > end for low, high in _absolute(spec)):
            found.append(f"{entry.node}: an exclusion covers {prefix} from outside, so it is passed over there")
        walked = sum(high - low + 1 for low, high in _excluded(spec, prefix))
        if walked > MOST_WALKED:
            found.append(f"{entry.node}: {walked} excluded addresses of {prefix} are passed one by one")
    return [f"{name}: {text}" for text in found]
