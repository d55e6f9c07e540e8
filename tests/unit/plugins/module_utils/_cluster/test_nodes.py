# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok
from ansible_collections.railops.rdma.plugins.module_utils._cluster.nodes import (
    Node,
    NodesRequest,
    awaited,
    by_rail,
    checks,
    drain_changes,
    label_changes,
    note_of,
    progress,
    request_of,
)
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import OUT_TAINT, ZONE_LABEL

NOTE = note_of("sriov")
LABEL = "fabric.railops.io/fabric"
FACTS = {"resources": {"declared": {"spidernet.io/rail1": 8}, "p0af3e1": {}}, "own_device": False, "node_label": LABEL}
GROUPS = [
    {"labels": {LABEL: "declared"}, "nodes": ["node1"]},
    {"labels": {LABEL: "p0af3e1", ZONE_LABEL: "su1"}, "nodes": ["node2"]},
]

SEATS = {"node1": {}, "node2": {}, "gone": {"retired": True}}


def test_resources_are_wanted_by_the_profile_that_the_label_says():
    facts = {**FACTS, "node_labels": GROUPS}
    want = request_of(SEATS, facts)
    assert want.labels == {"node1": {LABEL: "declared"}, "node2": {LABEL: "p0af3e1", ZONE_LABEL: "su1"}}
    assert want.resources == {"node1": {"spidernet.io/rail1": 8}}
    assert want.sriov == set()
    assert request_of(SEATS, {**facts, "own_device": True}).sriov == {"node1", "node2"}


def test_without_labels_all_nodes_have_the_declared_interfaces():
    want = request_of({"node1": {}}, {**FACTS, "node_label": "", "node_labels": []})
    assert (want.label, want.labels, want.resources) == ("", {}, {"node1": {"spidernet.io/rail1": 8}})


def test_labels_go_on_planned_nodes_and_off_others():
    ours, zone = {LABEL: "declared"}, {ZONE_LABEL: "su1"}
    known = frozenset({"node1", "node2", "retired"})
    want = NodesRequest(("node1", "node2"), LABEL, {"node1": ours, "node2": {**ours, **zone}}, known=known)
    labels = {"node1": ours, "node2": {ZONE_LABEL: "su2"}, "retired": {**ours, **zone}, "foreign": {**ours, **zone}}
    live = {name: Node(given) for name, given in labels.items()}
    off = {LABEL: None, ZONE_LABEL: None}
    changes = {"node2": {**ours, **zone}, "retired": off, "foreign": {LABEL: None}}
    assert label_changes(want, live) == changes, "zones of nodes that no plan ever had are others'"
    gone = {"node1": {LABEL: None}, "node2": {ZONE_LABEL: None}, "retired": off, "foreign": {LABEL: None}}
    assert label_changes(want, live, absent=True) == gone


def test_rails_out_of_service_are_no_resource_and_a_taint_comes_beside_all_others():
    networks = {"declared": [{"rail": f"rail{number}", "resource": f"x/rail{number}"} for number in (1, 2)]}
    rows = [
        {"host": "a", "node": "node1", "rails": ["rail2"], "reason": "", "all_rails": False, "taint": True},
        {"host": "b", "node": "node2", "rails": ["rail1", "rail2"], "reason": "", "all_rails": True, "taint": False},
    ]
    resources = {"declared": {"x/rail1": 8, "x/rail2": 8}}
    facts = {**FACTS, "node_labels": [], "networks": networks, "resources": resources, "out_of_service": rows}
    want = request_of(SEATS, facts)
    assert (want.nodes, want.resources, want.tainted) == (("node1",), {"node1": {"x/rail1": 8}}, {"node1"})
    other = {"key": "x", "effect": "NoSchedule"}
    live = Node(taints=(other,), version="7")
    patch = live.taint_patch(OUT_TAINT, wanted=True)
    assert patch == {"metadata": {"resourceVersion": "7"}, "spec": {"taints": [other, OUT_TAINT]}}
    assert live.taint_patch(OUT_TAINT, wanted=False) is None
    assert Node(taints=(OUT_TAINT,)).taint_patch(OUT_TAINT, wanted=False)["spec"] == {"taints": None}


def test_checks_report_cause_and_fix():
    want = NodesRequest(
        ("node1", "node2", "node3"), resources={"node1": {"x/a": 1000}, "node2": {"x/a": 8}}, sriov=frozenset(["node2"])
    )
    rows = checks(
        want,
        {"node1": Node(allocatable={"x/a": "1k"}), "node2": Node(allocatable={"x/a": "0"})},
        {"node2": {"syncStatus": "Failed", "lastSyncError": "boom"}},
    )
    assert [(row["id"], row["node"], row["status"]) for row in rows] == [
        ("node_resources", "node1", "ok"),
        ("node_sriov", "node2", "deviation"),
        ("node_resources", "node2", "deviation"),
        ("node_in_cluster", "node3", "deviation"),
    ]
    assert rows[1]["cause"] == "boom"
    assert all(row["fix"] for row in rows if row["status"] == "deviation")


def test_a_node_is_cordoned_with_a_note_and_made_as_it_was():
    nodes = {"open": Node(), "closed": Node(cordoned=True), "drained": Node(cordoned=True, note="schedulable")}
    drained = drain_changes(nodes, "begin")
    assert sorted(drained) == ["closed", "open"], "what was drained stays as it is noted"
    notes = [drained[name]["metadata"]["annotations"][NOTE] for name in ("closed", "open")]
    assert notes == ["cordoned", "schedulable"]
    ended = drain_changes(
        {"drained": nodes["drained"], "closed": Node(cordoned=True, note="cordoned"), "open": Node()}, "end"
    )
    assert ended["drained"] == {"metadata": {"annotations": {NOTE: None}}, "spec": {"unschedulable": None}}
    assert ended["closed"] == {"metadata": {"annotations": {NOTE: None}}}, "a node that was cordoned before stays so"
    assert "open" not in ended
    other = drain_changes({"open": Node()}, "begin", "reboot")["open"]["metadata"]["annotations"]
    assert other == {"railops.io/reboot-drain": "schedulable"}, "one kind does not end another's"


def test_what_matters_of_a_node_is_read():
    live = {
        "metadata": {
            "name": "a",
            "labels": {LABEL: "declared"},
            "annotations": {"railops.io/sriov-drain": "schedulable"},
        },
        "spec": {"unschedulable": True},
        "status": {"allocatable": {"x/a": "8"}},
    }
    assert Node.of(live, LABEL, note_of("sriov")) == Node({LABEL: "declared"}, {"x/a": "8"}, True, "schedulable")
    assert Node.of({"metadata": {"name": "a"}}, LABEL, "") == Node()


def test_only_what_waiting_can_bring_is_waited_for():
    names = ("short", "down", "gone", "whole", "other")
    want = NodesRequest(names, resources={name: {"x/a": 8} for name in names})
    nodes = {name: Node(allocatable={"x/a": "8" if name == "whole" else "3"}) for name in names if name != "gone"}
    nodes["down"] = Node(allocatable={"x/a": "0"}, up=False)
    rows = checks(want, nodes, {})
    late = awaited(rows, {"short", "down", "gone", "whole"}, nodes)
    assert [row["node"] for row in late] == ["short"]
    assert progress(late, 4).startswith("3 of 4 nodes are as planned; short: Too little of x/a")
    down = next(row for row in rows if row["node"] == "down")
    assert (down["status"], "The node is down" in down["cause"]) == ("deviation", True)


def plugin(phase="Running", **status):
    meta = {"name": "plugin-x", "namespace": "spiderpool", "creationTimestamp": "1"}
    return {"metadata": meta, "spec": {"nodeName": "node1"}, "status": {"phase": phase, **status}}


CRASHING = {"ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


@pytest.mark.parametrize(
    ("pods", "cause", "fix"),
    [
        pytest.param([], "no pod of the device plugin", "taints", id="no-pod"),
        pytest.param([plugin(containerStatuses=[CRASHING])], "CrashLoopBackOff", "rdma_host", id="crashing"),
        pytest.param([plugin("Pending")], "is Pending", "log", id="pending"),
        pytest.param([plugin(**READY)], "too little of ens1np0", "delete pod -n spiderpool plugin-x", id="no-device"),
        pytest.param(None, "too little", "look", id="virtual-functions"),
    ],
)
def test_missing_resource_names_the_plugin_pod(pods, cause, fix):
    planned, have = {"x/rail1": 100, "x/rail2": 100}, {"x/rail1": 7, "x/rail2": 100}
    short = deviation("node_resources", planned, have, "too little", "look", node="node1")
    other = ok("node_resources", planned, planned, node="node2")
    rails = {"node1": {"x/rail1": ("rail1", "ens1np0"), "x/rail2": ("rail2", "ens2np0")}}
    same, check = by_rail([other, short], rails, pods)
    assert same == other
    assert (check["rail"], check["planned"], check["observed"]) == ("rail1", {"x/rail1": 100}, {"x/rail1": 7})
    assert cause in check["cause"]
    assert fix in check["fix"]
