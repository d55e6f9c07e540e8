# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.causes import with_host
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import NodeChecks, host_result


def short(**more):
    return {
        "id": "node_resources",
        "rail": None,
        "node": "node1",
        "status": "deviation",
        "planned": {"spidernet.io/fabric_rail1": 100},
        "observed": {"spidernet.io/fabric_rail1": 0},
        "cause": "too little",
        "fix": "look",
        **more,
    }


def host(name, rail="rail1"):
    return {"id": name, "rail": rail, "status": "deviation", "cause": f"why {name}", "fix": f"mend {name}"}


@pytest.mark.parametrize(
    ("own", "cause"),
    [
        pytest.param([host("rdma_port_state"), host("rdma_device")], "rdma_device: why rdma_device", id="device-first"),
        pytest.param([host("rdma_device_files")], "rdma_device_files: why rdma_device_files", id="files"),
        pytest.param([host("rdma_device", "rail2")], "too little", id="of-another-rail"),
        pytest.param([{**host("rdma_device"), "status": "ok"}], "too little", id="host-is-well"),
        pytest.param([], "too little", id="not-looked-at"),
    ],
)
def test_what_the_host_found_is_the_cause(own, cause):
    check = short(rail="rail1")
    assert with_host(check, own)["cause"] == cause
    of_nodes = NodeChecks([check])
    (result,) = of_nodes.attach([host_result("a", "node1", "d", own)])
    assert of_nodes.left() == []
    assert result["checks"][-1]["cause"] == cause


def test_of_a_node_without_a_result_the_cluster_tells():
    of_nodes = NodeChecks([short()])
    (result,) = of_nodes.attach([host_result("a", "node7", "d", [])])
    assert result["checks"] == []
    (left,) = of_nodes.left()
    assert (left["node"], left["observed"].partition(": ")[0]) == ("node1", "node1")
