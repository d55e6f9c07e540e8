# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.prerequisites import (
    DISTRIBUTIONS,
    KUBERNETES,
    distribution_of,
    network_problems,
    nodes_on_rails,
    unsuited,
)

KNOWN = ["calico-node", "cilium"]
RAILS = [{"rail": "rail1", "aggregate": net} for net in ("172.17.0.0/24", "fd00:1::/56")]


def daemonset(name, ready=None, wanted=None):
    status = {} if wanted is None else {"numberReady": ready, "desiredNumberScheduled": wanted}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "status": status}


def node(name, *addresses, ready="True", kubelet="v1.36.2", labels=()):
    rows = [{"type": "Hostname", "address": name}, *({"type": "InternalIP", "address": item} for item in addresses)]
    status = {"addresses": rows, "conditions": [{"type": "Ready", "status": ready}]}
    status["nodeInfo"] = {"kubeletVersion": kubelet}
    return {"metadata": {"name": name, "labels": dict.fromkeys(labels, "")}, "status": status}


def config(**data):
    return [{"metadata": {"name": "cilium-config", "namespace": "kube-system"}, "data": data}]


def problems(sets, nodes=(), cilium=(), **more):
    return [row.problem for row in network_problems(sets, KNOWN, nodes, cilium, **more)]


def test_a_cluster_without_a_network_is_refused():
    assert "no network of its own" in problems([daemonset("other")])[0]


def test_a_network_that_is_there_and_not_ready_is_refused():
    (problem,) = problems([daemonset("calico-node", 3, 5)], [node("node1")])
    assert problem == "The cluster's network is not ready: 3 of 5 pods of DaemonSet calico-node."


def test_nodes_that_are_down_are_not_waited_for():
    assert problems([daemonset("calico-node", 1, 2)], [node("node1"), node("node2", ready="Unknown")]) == []


@pytest.mark.parametrize(
    ("data", "refused"), [({}, True), ({"cni-exclusive": "true"}, True), ({"cni-exclusive": "false"}, False)]
)
def test_cilium_that_would_push_multus_aside_is_refused(data, refused):
    found = problems([daemonset("cilium", 1, 1)], cilium=config(**data))
    assert [item.startswith("Cilium would push Multus aside") for item in found] == [True] * refused


def test_without_cilium_its_configuration_does_not_matter():
    assert problems([daemonset("calico-node", 1, 1)], cilium=config()) == []


@pytest.mark.parametrize("address", ["172.17.0.9", "fd00:1::9"])
def test_a_node_whose_kubernetes_address_is_a_rails_is_refused(address):
    nodes = [node("node1", "192.0.2.1", "2001:db8::1"), node("node2", address)]
    (problem,) = nodes_on_rails(nodes, RAILS)
    assert problem.place == "node node2"
    assert f"Kubernetes address {address} is on rail1" in problem.problem
    assert "--node-ip" in problem.fix


@pytest.mark.parametrize(
    ("found", "name"),
    [
        (node("n", kubelet="v1.31.4+k3s1"), "k3s"),
        (node("n", kubelet="v1.31.4+rke2r1"), "RKE2"),
        (node("n", kubelet="v1.31.4-gke.1372000"), "GKE"),
        (node("n", labels=["kubernetes.azure.com/cluster"]), "AKS"),
        (node("n", labels=["node.openshift.io/os_id"]), "OpenShift"),
        (node("n", kubelet="v1.31.4-eks-aeac579"), KUBERNETES.name),
    ],
)
def test_a_distribution_is_known_by_its_nodes(found, name):
    assert distribution_of([node("first"), found]).name == name


@pytest.mark.parametrize("name", ["GKE", "OpenShift"])
def test_a_distribution_that_does_not_go_is_refused_by_name(name):
    (row,) = unsuited(named(name), {}, multus=True)
    assert row.problem.startswith(f"This is {name}, which is not supported: ")


def named(name):
    return next(row for row in DISTRIBUTIONS if row.name == name)


def test_k3s_needs_no_daemonset_and_its_own_folders_and_multus():
    k3s = named("k3s")
    assert problems([], distribution=k3s) == []
    folders, multus = unsuited(k3s, {}, multus=True)
    plugins, configurations = k3s.plugins, k3s.configurations
    assert folders.fix == (
        f"Set spiderpool_values: {{global: {{cniBinHostPath: {plugins}, cniConfHostPath: {configurations}}}}}."
        " [cni_folders]"
    )
    assert multus.fix.endswith("set cluster_components: {multus: adopt}. [multus_conflict]")
    values = {"global": {"cniBinHostPath": plugins, "cniConfHostPath": configurations}}
    assert list(unsuited(k3s, values, multus=False)) == []
    assert list(unsuited(k3s, None, multus=False)) == [], (
        "with an adopted Spiderpool the table of parts compares folders"
    )


@pytest.mark.parametrize("name", ["RKE2", "AKS"])
def test_others_go_with_the_charts_own_folders(name):
    assert list(unsuited(named(name), {}, multus=True)) == []


def test_every_distribution_has_its_row_in_the_documentation():
    page = (Path(__file__).parents[5] / "docs/reference/distributions.md").read_text(encoding="utf-8")
    for row in DISTRIBUTIONS:
        (line,) = [line for line in page.splitlines() if line.startswith(f"| {row.name} |")]
        assert ("refused" in line) == bool(row.refused)
        assert row.refused or all(path in line for path in row.folders.values())
