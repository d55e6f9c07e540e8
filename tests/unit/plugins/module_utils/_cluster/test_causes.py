# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster import nodes_run
from ansible_collections.railops.rdma.plugins.module_utils._cluster.api_errors import refused
from ansible_collections.railops.rdma.plugins.module_utils._cluster.causes import DevicePlugin, explain, plugin_of
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError

ONE, TWO = "spidernet.io/fabric_rail1", "spidernet.io/fabric_rail2"
RAILS = {"node1": {ONE: ("rail1", "ens1np0"), TWO: ("rail2", "ens2np0")}}
NAMES = {ONE: frozenset({"ens1np0"}), TWO: frozenset({"ens2np0"})}


def short(observed=0, **more):
    return {
        "id": "node_resources",
        "rail": None,
        "node": "node1",
        "status": "deviation",
        "planned": {ONE: 100, TWO: 100},
        "observed": {ONE: observed, TWO: 100},
        "cause": "too little",
        "fix": "look",
        **more,
    }


def pod(phase="Running", **status):
    meta = {"name": "plugin-x", "namespace": "spiderpool", "creationTimestamp": "1"}
    return {"metadata": meta, "spec": {"nodeName": "node1"}, "status": {"phase": phase, **status}}


CRASHING = {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}


@pytest.mark.parametrize(
    ("plugin", "observed", "cause", "fix"),
    [
        pytest.param(DevicePlugin(None, {}), 0, "no configuration", "playbook railops.rdma.cluster", id="no-config"),
        pytest.param(DevicePlugin({}, {"node1": pod()}), 0, f"does not name {ONE}", "playbook", id="not-named"),
        pytest.param(
            DevicePlugin({ONE: frozenset({"eth9"})}, {"node1": pod()}),
            0,
            "its selector names eth9",
            "playbook",
            id="selector",
        ),
        pytest.param(DevicePlugin(NAMES, {}), 0, "no pod of the device plugin", "taints", id="no-pod"),
        pytest.param(
            DevicePlugin(NAMES, {"node1": pod(containerStatuses=[CRASHING])}),
            0,
            "CrashLoopBackOff",
            "rdma_host",
            id="crashing",
        ),
        pytest.param(DevicePlugin(NAMES, {"node1": pod("Pending")}), 0, "is Pending", "log", id="pending"),
        pytest.param(DevicePlugin(NAMES, {"node1": pod()}), 7, "another number", "delete pod", id="another-number"),
        pytest.param(
            DevicePlugin(NAMES, {"node1": pod()}), 0, "finds no RDMA device of ens1np0", "rdma_device", id="device"
        ),
        pytest.param(None, 0, "too little", "look", id="virtual-functions"),
    ],
)
def test_each_cause_is_named(plugin, observed, cause, fix):
    (check,) = explain([short(observed)], RAILS, plugin)
    assert (check["rail"], check["planned"], check["observed"]) == ("rail1", {ONE: 100}, {ONE: observed})
    assert cause in check["cause"]
    assert fix in check["fix"]


def test_what_is_not_short_stays_as_it_is():
    good = short(status="ok")
    other = {"id": "node_in_cluster", "node": "node9", "status": "deviation", "planned": "node9", "observed": None}
    assert explain([good, other], RAILS, DevicePlugin(NAMES, {})) == [good, other]


def test_the_plugin_as_the_cluster_shows_it():
    entries = [
        {"resourcePrefix": "spidernet.io", "resourceName": "fabric_rail1", "selectors": {"ifNames": ["ens1np0"]}}
    ]
    found = plugin_of({"data": {"config.json": json.dumps({"configList": entries})}}, [pod()])
    assert found.names == {ONE: frozenset({"ens1np0"})}
    assert set(found.pods) == {"node1"}
    assert plugin_of(None, []).names is None
    mixed = json.dumps({"configList": [{"selectors": {"ifNames": [1, "b"]}}]})
    for text in ("{", "[" * 100_000, mixed):
        assert plugin_of({"data": {"config.json": text}}, []).names is None


@pytest.mark.parametrize(("code", "fails"), [(403, False), (500, True)])
def test_who_may_not_read_the_plugin_still_learns_which_node_is_short(tmp_path, monkeypatch, code, fails):
    """Rights on nodes are enough for what is compared; the plugin's ConfigMap and pods only give causes."""

    class Refusing:
        def one(self, *words):
            raise refused("configmaps", code, {"message": "forbidden"})

    monkeypatch.setattr(nodes_run, "read_facts", lambda folder: {"networks": {}, "own_device": False})
    monkeypatch.setattr(nodes_run, "read_host_plans", lambda folder: [])
    asked = (Refusing(), {"plan_dir": str(tmp_path), "namespace": "spiderpool"}, None, [short()])
    if fails:
        with pytest.raises(RdmaError, match="forbidden"):
            nodes_run.explained(*asked)
    else:
        assert [(row["node"], row["cause"]) for row in nodes_run.explained(*asked)] == [("node1", "too little")]
