# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The networks that a cluster uses for pods and services, where it names them, and which overlap the fabric. Pure."""

from __future__ import annotations

import contextlib
import ipaddress
import re
import typing as t

from .._formatting import group_by, shortened
from .model import Json, below

Network = t.Union[ipaddress.IPv4Network, ipaddress.IPv6Network]
Networks = list[Network]
MOST_NETWORKS = 5
Found = t.Iterable[tuple[str, Networks]]
"""Networks by the place that names them."""
POOLS = (
    ("crd.projectcalico.org/v1", "IPPool"),
    ("projectcalico.org/v3", "IPPool"),
    ("cilium.io/v2alpha1", "CiliumPodIPPool"),
    ("networking.k8s.io/v1", "ServiceCIDR"),
)
"""Kinds whose objects name networks; a cluster serves some of them."""
FIELDS = ("spec.cidr", "spec.cidrs", "spec.ipv4.cidrs", "spec.ipv6.cidrs")


def parsed(value: t.Any) -> list[Network]:
    """Return the networks of a text or list; what is no network is another program's affair."""
    found: list[Network] = []
    for text in value if isinstance(value, list) else re.split(r"[\s,]+", value) if isinstance(value, str) else ():
        with contextlib.suppress(ValueError):
            found.append(ipaddress.ip_network(text, strict=False))
    return found


def of_kubeadm(read: t.Callable[[], Json | None]) -> Found:
    """Yield the networks of kubeadm's ConfigMap."""
    text = str(below(read(), "data.ClusterConfiguration") or "")
    for key, value in re.findall(r"""^ +(podSubnet|serviceSubnet): *["']?([^\s"']+)""", text, re.MULTILINE):
        yield f"ConfigMap kube-system/kubeadm-config, {key}", parsed(value)


def of_cilium(configs: t.Iterable[Json]) -> Found:
    """Yield the networks of Cilium's ConfigMaps."""
    for config in configs:
        meta, data = config["metadata"], config.get("data") or {}
        for key in ("cluster-pool-ipv4-cidr", "cluster-pool-ipv6-cidr"):
            yield f"ConfigMap {meta['namespace']}/{meta['name']}, {key}", parsed(data.get(key))


def of_nodes(nodes: t.Iterable[Json]) -> Found:
    """Return the nodes' parts of the pods' network."""
    for spec in (node.get("spec") or {} for node in nodes):
        yield "nodes, spec.podCIDRs", parsed(spec.get("podCIDRs") or spec.get("podCIDR"))


def of_pools(pools: t.Iterable[Json]) -> Found:
    """Give the networks of pools that give addresses. A disabled one gives none: Calico's for a network without NAT."""
    for pool in pools:
        nets = [net for path in FIELDS for net in parsed(below(pool, path))]
        group = pool["apiVersion"].partition("/")[0]
        yield f"{pool['kind']}.{group} {pool['metadata']['name']}", [] if below(pool, "spec.disabled") else nets


def collapsed(nets: t.Iterable[Network]) -> list[Network]:
    """Return the networks joined where they touch, IPv4 first."""
    rows = list(nets)
    families: list[t.Any] = [[net for net in rows if net.version == version] for version in (4, 6)]
    return [net for family in families for net in ipaddress.collapse_addresses(family)]


def overlapping(net: Network, others: t.Iterable[Network]) -> list[Network]:
    """Return which of the others a network overlaps."""
    return [other for other in others if other.version == net.version and other.overlaps(net)]


class Overlap(t.NamedTuple):
    """A network of the cluster that the fabric has too."""

    place: str
    network: Network
    fabric: list[Network]
    rails: bool
    """Whether rails have it already; else it is only in a supernet, where later rails would."""

    def __str__(self) -> str:
        where = "the fabric's networks" if self.rails else "the fabric's supernet, outside of its rails' networks:"
        names = shortened([str(net) for net in self.fabric], MOST_NETWORKS)
        return f"{self.place}: {self.network} overlaps {where} {names}."


def overlaps(found: Found, rails: Networks, supernets: Networks, declared: Networks) -> t.Iterator[Overlap]:
    """Yield the cluster's networks that overlap the fabric's, each place once.

    :param found: the cluster's networks, by place.
    :param rails: networks of the fabric's rails; `supernets` those that it may grow in.
    :param declared: `fabric_existing_networks`: in supernets these are known, and the planner keeps rails out of them.
    """
    rows = group_by((place, net) for place, nets in found for net in nets)
    for place, nets in rows.items():
        for net in collapsed(nets):
            known = any(net.version == one.version and net.subnet_of(one) for one in declared)  # type: ignore[arg-type]
            own = collapsed(overlapping(net, rails))
            hit = own or ([] if known else overlapping(net, supernets))
            if hit:
                yield Overlap(place, net, hit, bool(own))
