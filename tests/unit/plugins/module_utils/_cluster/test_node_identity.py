# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.node_identity import joined, place
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError


def host(kubelet="kubelet", machine="m1", boot="b1", node="gpu-1"):
    return {"host": "node1", "node": node, "machine_id": machine, "boot_id": boot, "kubelet": kubelet}


def cluster(*rows):
    """Return nodes of (name, machine, boot, ready)."""
    return {
        name: {
            "metadata": {"name": name},
            "status": {
                "nodeInfo": {"machineID": machine, "bootID": boot},
                "conditions": [{"type": "Ready", "status": "True" if ready else "Unknown"}],
            },
        }
        for name, machine, boot, ready in rows
    }


MANAGED, OTHER = ("gpu-1", "m1", "b1", True), ("gpu-2", "m2", "b2", True)


@pytest.mark.parametrize(
    ("given", "nodes", "there"),
    [
        pytest.param(host(), [MANAGED, OTHER], True, id="the-host"),
        pytest.param(host("k3s-agent"), [MANAGED], True, id="k3s"),
        pytest.param(host(), [("gpu-1", "m1", "b0", False)], True, id="has-just-booted-and-is-not-ready"),
        pytest.param(host(""), [("gpu-1", "m1", "b0", True)], True, id="the-kubelet-is-stopped"),
        pytest.param(host(), [("gpu-1", "", "", True)], True, id="a-node-that-does-not-report"),
        pytest.param(host(""), [OTHER], False, id="has-not-joined-yet"),
        pytest.param(host(""), [("gpu-1", "m0", "b0", False), OTHER], False, id="new-hardware-of-an-old-name"),
        pytest.param(host(""), [("gpu-2", "m1", "b2", True)], False, id="another-machine-of-the-same-image"),
    ],
)
def test_a_host_is_its_node_or_has_not_joined(given, nodes, there):
    assert place(given, cluster(*nodes)) == (there, None)


@pytest.mark.parametrize(
    ("given", "nodes", "problem", "fix"),
    [
        pytest.param(
            host(),
            [OTHER, ("gpu-7", "m1", "b1", True)],
            "The cluster has no node gpu-1, and this host is its node gpu-7.",
            "Set fabric_node_name: gpu-7 for this host.",
            id="another-name",
        ),
        pytest.param(
            host(),
            [("gpu-1", "m2", "b2", True), ("gpu-2", "m1", "b1", True)],
            "The cluster's node gpu-1 is another machine, and this host is its node gpu-2.",
            "fabric_node_name: gpu-2",
            id="names-changed-places",
        ),
        pytest.param(
            host("k3s-server"),
            [OTHER],
            "no node gpu-1, and a k3s-server runs",
            "another cluster",
            id="wrong-kubeconfig",
        ),
        pytest.param(
            host(), [("gpu-1", "m1", "b2", True)], "is another machine, and a kubelet", "just booted", id="one-image"
        ),
        pytest.param(
            host(""),
            [("gpu-7", "m1", "b0", False)],
            "this host is its node gpu-7",
            "fabric_node_name: gpu-7",
            id="stopped",
        ),
    ],
)
def test_a_host_that_the_cluster_knows_otherwise_is_refused(given, nodes, problem, fix):
    there, found = place(given, cluster(*nodes))
    assert not there
    assert found.place == "node1"
    assert (problem in found.problem, fix in found.fix) == (True, True), found


def test_all_hosts_at_once():
    hosts = [host(), host(node="gpu-8"), host("", "m9", "b9", "gpu-9"), host(node="gpu-3", machine="m3", boot="b3")]
    with pytest.raises(InputError) as refused:
        joined(hosts, cluster(MANAGED, OTHER).values())
    assert len(refused.value.problems) == 2
    assert joined([hosts[0], hosts[2]], cluster(MANAGED, OTHER).values()) == ["gpu-1"]
