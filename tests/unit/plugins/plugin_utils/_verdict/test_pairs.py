# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose fault the failure of a test between two hosts is. `CUT` is what guests with a pulled cable said."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, warning
from ansible_collections.railops.rdma.plugins.module_utils._cluster.gate import judgments
from ansible_collections.railops.rdma.plugins.module_utils._route.ping import NO_ECHO
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.pairs import with_attribution


def bad(check, rail="rail2", *peers):
    return deviation(check, "so", "not so", "why", "repair it", rail=rail, peers=peers)


def verdict(lost=(), **checks):
    """Return the verdict of three nodes, named otherwise in the cluster, with these deviations."""
    nodes = {f"node{number}": f"k8s-{number}" for number in (1, 2, 3)}
    results = [
        merge.host_result(name, node, "d", checks.get(name, [])) for name, node in nodes.items() if name not in lost
    ]
    return merge.merge("d", results, nodes, rails=["rail1", "rail2"])


def faults(made):
    return {
        (name, check["id"]): check["attributed_to"]
        for name, entry in with_attribution(made)["hosts"].items()
        for check in entry["checks"]
        if check.get("attributed_to")
    }


CUT = {
    "node1": [bad("ping_neighbor", "rail2", "node2")],
    "node2": [bad("network_link"), bad("ping_gateway"), bad("ping_neighbor", "rail2", "node3")],
}


def test_a_cut_rail_is_the_fault_of_its_own_node():
    made = verdict(**CUT)
    assert faults(made) == {("node1", "ping_neighbor"): "node2"}
    made = with_causes(made, {})
    (card,) = made["causes"]
    assert (card["hosts"], card["rails"], card["affected"], card["follows"]) == (["node2"], ["rail2"], ["node1"], 3)
    states = {name: (entry["status"], entry["rails"]["rail2"]) for name, entry in made["hosts"].items()}
    assert states == {"node1": ("pass", "affected"), "node2": ("deviation", "deviation"), "node3": ("pass", "skipped")}
    judged = judgments(made)
    assert {name: not against for name, against in judged.items()} == {"k8s-1": True, "k8s-2": False, "k8s-3": True}


def test_the_other_end_may_be_named_as_the_cluster_does():
    made = verdict(node1=[bad("pod_read_lat", "rail2", "k8s-2")], node2=[bad("network_link")])
    assert faults(made) == {("node1", "pod_read_lat"): "node2"}


@pytest.mark.parametrize("check", ["fleet_firmware", "port_errors", "persist_file", "pcie_link"])
def test_what_stops_no_packet_is_no_fault(check):
    """Neither does it put the other end in the wrong, nor keep it from being so."""
    assert faults(verdict(node1=CUT["node1"], node2=[bad(check)])) == {}
    assert faults(verdict(**{**CUT, "node1": [*CUT["node1"], bad(check)]})) == {("node1", "ping_neighbor"): "node2"}


def test_a_verdict_without_pairs_is_returned_as_it_is():
    made = verdict(node1=[bad("network_mtu")])
    assert with_attribution(made) is made


@pytest.mark.parametrize(
    "checks",
    [
        pytest.param({"node1": [bad("ping_neighbor", "rail2", "node2")]}, id="no host has another one"),
        pytest.param({**CUT, "node1": [*CUT["node1"], bad("network_rules")]}, id="both have one"),
        pytest.param({**CUT, "node2": [bad("network_link", "rail1")]}, id="it is on another rail"),
        pytest.param({**CUT, "node1": [bad("traffic_read_lat", "rail2", "node2", "node3")]}, id="one end is sound"),
        pytest.param({"node1": [bad("ping_neighbor", "rail2", "elsewhere")]}, id="the verdict does not have it"),
    ],
)
def test_unknown_values_are_not_printed(checks):
    assert faults(verdict(**checks)) == {}


@pytest.mark.parametrize(
    ("counts", "checks"),
    [
        pytest.param(False, {"node1": [bad("ping_neighbor", "rail2", "node2")]}, id="one end"),
        pytest.param(False, {"node1": [bad("ping_neighbor", "rail2", "elsewhere")]}, id="one end elsewhere"),
        pytest.param(False, {"node1": [bad("ping_neighbor", f"rail{n}", f"node{n + 1}") for n in (1, 2)]}, id="rails"),
        pytest.param(True, {"node1": [bad("traffic_read_lat", "rail2", "node2", "node3")]}, id="two ends"),
        pytest.param(True, {"node1": [bad("ping_neighbor", "rail2", f"node{n}") for n in (2, 3)]}, id="one by one"),
        pytest.param(
            True,
            {f"node{a}": [bad("ping_neighbor", "rail2", f"node{b}")] for a, b in ((1, 2), (3, 1))},
            id="one each way",
        ),
        pytest.param(
            True, {"node1": [bad("network_mtu"), bad("ping_neighbor", "rail2", "node2")]}, id="its own finding"
        ),
    ],
)
def test_a_result_of_another_end_decides_no_node(counts, checks):
    """A host that swallows echoes must not take its neighbor out of service (attack S5)."""
    judged = judgments(with_causes(verdict(**checks), {}))
    assert bool(judged["k8s-1"]) is counts
    assert not judged["k8s-2"]


@pytest.mark.parametrize(("check", "tests"), [("ping_neighbor", "pings"), ("ping_neighbor_tcp", "TCP connections")])
def test_undecided_fault_fails_neither_host(check, tests):
    made = with_causes(verdict(node1=[bad(check, "rail2", "node2")]), {})
    (card,) = made["causes"]
    assert card["sentence"] == f"between node1 and node2 rail2: {tests} fail."
    assert card["undecided"] is True
    assert [entry["status"] for entry in made["hosts"].values()] == ["pass"] * 3
    assert made["status"] == "deviation"


def test_loss_at_a_hosts_own_gateway_shows_whose_the_loss_between_two_is():
    policed = warning("ping_gateway", "so", "3 of 10 lost", "lost", "look", rail="rail2")
    lossy = {
        "node1": [bad("ping_neighbor", "rail2", "node2")],
        "node2": [policed, bad("ping_neighbor", "rail2", "node3")],
    }
    assert faults(verdict(**lossy)) == {("node1", "ping_neighbor"): "node2"}
    # A leaf that polices all hosts shows nothing.
    assert faults(verdict(**{**lossy, "node1": [policed, *lossy["node1"]]})) == {}


def test_a_gateway_that_answers_no_echo_does_not_put_its_host_in_the_wrong():
    silent = warning("ping_gateway", "so", NO_ECHO, "answers ARP alone", "nothing", rail="rail2")
    assert faults(verdict(**{**CUT, "node1": [silent, *CUT["node1"]]})) == {("node1", "ping_neighbor"): "node2"}


def test_a_host_that_drops_echoes_by_its_own_settings_is_at_fault():
    closed = deviation("network_echo", {}, {}, "it drops them", "allow them", family=4)
    made = verdict(node1=CUT["node1"], node3=CUT["node1"], node2=[closed])
    assert faults(made) == {("node1", "ping_neighbor"): "node2", ("node3", "ping_neighbor"): "node2"}
    assert faults(verdict(node1=[bad("traffic_read_lat", "rail2", "node2")], node2=[closed])) == {}


def test_of_two_ends_the_one_that_fails_with_more_is_at_fault():
    ring = {"node1": [bad("ping_neighbor", "rail2", "node2")], "node2": [bad("ping_neighbor", "rail2", "node3")]}
    made = with_causes(verdict(**ring), {})
    (card,) = made["causes"]
    assert (card["hosts"], card["affected"]) == (["node2"], ["node1"])
    assert [entry["status"] for entry in made["hosts"].values()] == ["pass", "deviation", "pass"]
