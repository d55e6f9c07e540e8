# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.filter.cluster_problems import cluster_problems
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.switch import PREFIX_COLUMNS

KNOWN = ["calico-node", "cilium"]
RAILS = (
    ",".join(PREFIX_COLUMNS) + "\nzone,leaf1,rail1,4,172.17.0.0/24,,4,8,22\nzone,leaf1,rail1,6,fd00:1::/56,,4,8,22\n"
)


def daemonset(name, ready=None, wanted=None):
    status = {} if wanted is None else {"numberReady": ready, "desiredNumberScheduled": wanted}
    return {"metadata": {"name": name, "namespace": "kube-system"}, "status": status}


def node(name, *addresses, ready="True"):
    rows = [{"type": "Hostname", "address": name}, *({"type": "InternalIP", "address": item} for item in addresses)]
    status = {"addresses": rows, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": name}, "status": status}


def config(**data):
    return [{"metadata": {"name": "cilium-config", "namespace": "kube-system"}, "data": data}]


def test_a_cluster_without_a_network_is_refused():
    assert "no network of its own" in cluster_problems([daemonset("other")], KNOWN)[0]


def test_a_network_that_is_there_and_not_ready_is_refused():
    (problem,) = cluster_problems([daemonset("calico-node", 3, 5)], KNOWN, nodes=[node("node1")])
    assert problem.startswith("The cluster's network is not ready: 3 of 5 pods of DaemonSet calico-node.")


def test_nodes_that_are_down_are_not_waited_for():
    nodes = [node("node1"), node("node2", ready="Unknown")]
    assert cluster_problems([daemonset("calico-node", 1, 2)], KNOWN, nodes=nodes) == []


@pytest.mark.parametrize(
    ("data", "refused"), [({}, True), ({"cni-exclusive": "true"}, True), ({"cni-exclusive": "false"}, False)]
)
def test_cilium_that_would_push_multus_aside_is_refused(data, refused):
    found = cluster_problems([daemonset("cilium", 1, 1)], KNOWN, cilium=config(**data))
    assert [item.startswith("Cilium would push Multus aside") for item in found] == [True] * refused


def test_without_cilium_its_configuration_does_not_matter():
    assert cluster_problems([daemonset("calico-node", 1, 1)], KNOWN, cilium=config()) == []


@pytest.mark.parametrize("address", ["172.17.0.9", "fd00:1::9"])
def test_a_node_whose_kubernetes_address_is_a_rails_is_refused(address):
    nodes = [node("node1", "192.0.2.1", "2001:db8::1"), node("node2", address)]
    (problem,) = cluster_problems([daemonset("calico-node", 2, 2)], KNOWN, nodes=nodes, prefixes=RAILS)
    assert f"The Kubernetes address {address} of node node2 lies on rail1" in problem
    assert "--node-ip" in problem
