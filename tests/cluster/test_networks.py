# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster whose own networks overlap the fabric's is refused, in preflight and in `cluster`."""

from __future__ import annotations

import json
import os
import socket
import sys
import typing as t

import pytest
from api_double import ApiDouble
from api_kinds import crd
from conftest import Playbook
from plays import empty

Json = dict[str, t.Any]
double = empty
pytestmark = pytest.mark.only_double("the cluster's own networks must be others")
# What the inventory has declared.
DECLARED = "10.96.0.0/12, 10.244.0.0/16"
KUBEADM = "networking:\n  podSubnet: {}\n  serviceSubnet: 10.96.0.0/12\n"


@pytest.fixture
def cluster(double: ApiDouble, exclusive: None) -> ApiDouble:
    """Give a cluster for the example fabric: 172.17.0.0/16, whose first eight /24 have rails."""
    return double


def of_pods(double: ApiDouble, net: str) -> None:
    """Let kubeadm name the network of pods."""
    data = {"ClusterConfiguration": KUBEADM.format(net)}
    double.put("v1", "ConfigMap", "kubeadm-config", "kube-system", data=data)


def refused(playbook: Playbook, **values: t.Any) -> str:
    """Return what `cluster` says before its first write."""
    text = playbook.shipped("cluster", "--check", ok=False, **values).text
    assert "Install Spiderpool" not in text
    return " ".join(text.replace("\\n", " ").split())


def test_every_source_is_compared_and_named(playbook: Playbook, cluster: ApiDouble) -> None:
    cilium = {"containers": [{"name": "cilium-agent", "image": "x"}]}
    cluster.put("apps/v1", "DaemonSet", "cilium", "kube-system", spec={"selector": {}, "template": {"spec": cilium}})
    data = {"cluster-pool-ipv4-cidr": "172.17.1.0/24", "cni-exclusive": "false"}
    cluster.put("v1", "ConfigMap", "cilium-config", "kube-system", data=data)
    for group, plural, kind, spec in (
        ("crd.projectcalico.org", "ippools", "IPPool", {"cidr": "172.17.2.0/24"}),
        ("networking.k8s.io", "servicecidrs", "ServiceCIDR", {"cidrs": ["172.17.128.0/20"]}),
    ):
        cluster.put("apiextensions.k8s.io/v1", "CustomResourceDefinition", **served(crd(group, plural, kind)))
        cluster.put(f"{group}/v1", kind, "default", spec=spec)
    for number, node in enumerate(cluster.store.table(cluster.store.kind_of("v1", "Node")).values()):
        node.setdefault("spec", {})["podCIDRs"] = [f"172.17.{number}.0/24"]
    text = refused(playbook)
    for line in (
        "ConfigMap kube-system/cilium-config, cluster-pool-ipv4-cidr: 172.17.1.0/24 overlaps the fabric's networks "
        "172.17.1.0/24.",
        "IPPool.crd.projectcalico.org default: 172.17.2.0/24 overlaps the fabric's networks 172.17.2.0/24.",
        "nodes, spec.podCIDRs: 172.17.0.0/21 overlaps the fabric's networks 172.17.0.0/21.",
        "ServiceCIDR.networking.k8s.io default: 172.17.128.0/20 overlaps the fabric's supernet",
        f"Change fabric_supernets, and add fabric_existing_networks: [{DECLARED}, 172.17.0.0/21, 172.17.128.0/20]",
    ):
        assert line in text


def served(body: Json) -> Json:
    """Return the arguments with which the double gets a CRD."""
    return {"name": body["metadata"]["name"], "spec": body["spec"]}


def test_a_declared_network_passes_and_a_forbidden_source_is_listed(playbook: Playbook, cluster: ApiDouble) -> None:
    of_pods(cluster, "172.17.64.0/18")
    assert f"Add fabric_existing_networks: [{DECLARED}, 172.17.64.0/18] to group_vars/all" in refused(playbook)
    pools = served(crd("crd.projectcalico.org", "ippools", "IPPool"))
    cluster.put("apiextensions.k8s.io/v1", "CustomResourceDefinition", **pools)
    cluster.forbidden.add("ippools")
    ran = playbook.shipped("cluster", "--check", fabric_existing_networks=["172.17.64.0/18"])
    assert "may not read them: IPPool (crd.projectcalico.org/v1)." in " ".join(ran.text.split())


@pytest.mark.slow
def test_preflight_names_it_before_a_host_is_changed(playbook: Playbook, cluster: ApiDouble) -> None:
    of_pods(cluster, "172.17.0.0/16")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"all": {"children": {"gpu_nodes": {"hosts": {"node1": local}}}}}
    (playbook.folder / "hosts.yml").write_text(json.dumps(hosts), encoding="utf-8")
    (playbook.folder / "one.yml").write_text('[{"import_playbook": "railops.rdma.preflight"}]', encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
        values = {"spiderpool_values": {"spiderpoolAgent": {"httpPort": port}}}
        ran = playbook.shipped(str(playbook.folder / "one.yml"), "-i", "hosts.yml", "--check", **values)
    text = " ".join(ran.text.split())
    assert "podSubnet: 172.17.0.0/16 overlaps the fabric's networks 172.17.0.0/21." in text
    if not os.geteuid():  # Another user is refused before hosts are checked.
        assert f"Spiderpool needs TCP port {port}, and " in text
        assert f"(pid {os.getpid()}) listens there" in text
