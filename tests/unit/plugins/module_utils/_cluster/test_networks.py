# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which networks a cluster names, and which of them overlap the fabric's."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import networks

Json = dict[str, t.Any]
RAILS = networks.parsed(["10.224.0.0/24", "10.224.1.0/24", "fd00:1::/56"])
SUPERNETS = networks.parsed(["10.224.0.0/16", "fd00:1::/48"])
KUBEADM = """apiVersion: kubeadm.k8s.io/v1beta4
networking:
  dnsDomain: cluster.local
  podSubnet: "10.244.0.0/16,fd00:9::/48"
  serviceSubnet: 10.96.0.0/12
"""


def texts(found: networks.Found) -> dict[str, list[str]]:
    return {place: list(map(str, nets)) for place, nets in found if nets}


def pool(kind: str, group: str, **spec: t.Any) -> Json:
    return {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": "one"}, "spec": spec}


def test_kubeadm_names_pods_and_services() -> None:
    found = texts(networks.of_kubeadm(lambda: {"data": {"ClusterConfiguration": KUBEADM}}))
    place = "ConfigMap kube-system/kubeadm-config, "
    assert found == {f"{place}podSubnet": ["10.244.0.0/16", "fd00:9::/48"], f"{place}serviceSubnet": ["10.96.0.0/12"]}


@pytest.mark.parametrize("data", [None, {}, {"ClusterConfiguration": "networking: [\n  podSubnet: none"}])
def test_a_config_map_without_networks_names_none(data: Json | None) -> None:
    assert texts(networks.of_kubeadm(lambda: {"data": data})) == {}


def test_cilium_names_its_pools() -> None:
    meta = {"name": "cilium-config", "namespace": "cilium"}
    data = {"cluster-pool-ipv4-cidr": "10.0.0.0/9 10.128.0.0/9", "ipam": "cluster-pool"}
    place = "ConfigMap cilium/cilium-config, cluster-pool-ipv4-cidr"
    assert texts(networks.of_cilium([{"metadata": meta, "data": data}])) == {place: ["10.0.0.0/9", "10.128.0.0/9"]}


@pytest.mark.parametrize(
    ("body", "nets"),
    [
        (pool("IPPool", "crd.projectcalico.org", cidr="10.224.0.0/16"), ["10.224.0.0/16"]),
        (pool("IPPool", "crd.projectcalico.org", cidr="10.224.0.0/16", disabled=True), []),
        (
            pool("CiliumPodIPPool", "cilium.io", ipv4={"cidrs": ["10.1.0.0/16"]}, ipv6={"cidrs": ["fd00::/64"]}),
            ["10.1.0.0/16", "fd00::/64"],
        ),
        (pool("CiliumPodIPPool", "cilium.io", ipv4="10.1.0.0/16"), []),
        (pool("ServiceCIDR", "networking.k8s.io", cidrs=["10.96.0.0/12"]), ["10.96.0.0/12"]),
    ],
)
def test_a_pool_names_its_networks_unless_it_is_disabled(body: Json, nets: list[str]) -> None:
    place = f"{body['kind']}.{body['apiVersion'].partition('/')[0]} one"
    assert texts(networks.of_pools([body])) == ({place: nets} if nets else {})


def found(*nets: str, declared: t.Sequence[str] = ()) -> list[str]:
    rows = [("pods", networks.parsed([net])) for net in nets]
    return [str(row) for row in networks.overlaps(rows, RAILS, SUPERNETS, networks.parsed(list(declared)))]


@pytest.mark.parametrize(
    ("net", "declared", "overlaps"),
    [
        ("10.244.0.0/16", (), []),
        ("10.0.0.0/8", (), ["pods: 10.0.0.0/8 overlaps the fabric's networks 10.224.0.0/23."]),
        ("10.224.1.128/26", (), ["pods: 10.224.1.128/26 overlaps the fabric's networks 10.224.1.0/24."]),
        ("fd00:1::/64", (), ["pods: fd00:1::/64 overlaps the fabric's networks fd00:1::/56."]),
        (
            "10.224.128.0/17",
            (),
            ["pods: 10.224.128.0/17 overlaps the fabric's supernet, outside of its rails' networks: 10.224.0.0/16."],
        ),
        ("10.224.128.0/17", ("10.224.128.0/17",), []),
        ("10.0.0.0/8", ("10.0.0.0/8",), ["pods: 10.0.0.0/8 overlaps the fabric's networks 10.224.0.0/23."]),
    ],
)
def test_an_overlap_is_named_with_both_networks(net: str, declared: tuple[str, ...], overlaps: list[str]) -> None:
    assert found(net, declared=declared) == overlaps


def test_what_nodes_have_of_the_pods_network_is_joined() -> None:
    nodes = [{"spec": {"podCIDR": f"10.224.{number}.0/24"}} for number in range(4)]
    rows = networks.overlaps(networks.of_nodes([*nodes, {}]), RAILS, SUPERNETS, [])
    assert [str(row) for row in rows] == [
        "nodes, spec.podCIDRs: 10.224.0.0/22 overlaps the fabric's networks 10.224.0.0/23."
    ]
