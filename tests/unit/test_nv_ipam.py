# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for nv-ipam, held by objects written by hand and by what the real one answered to some of them."""

from __future__ import annotations

import ipaddress

import pytest

from ansible_collections.railops.rdma.tests.unit.nv_ipam import (
    Allocation,
    Refusal,
    gateway_of,
    handed_out,
    reconcile,
    refused,
    risks,
)

LABEL = {"rail": "yes"}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rail", "operator": "Exists"}]}]}
TWO = [{"nodeName": "n1", "prefix": "10.0.0.0/27"}, {"nodeName": "n2", "prefix": "10.0.0.32/27"}]
NODES = {"n1": LABEL, "n2": LABEL, "stranger": {}}
SPEC = {
    "cidr": "10.0.0.0/24",
    "perNodeNetworkPrefix": 27,
    "gatewayIndex": 1,
    "perNodeExclusions": [{"startIndex": 2, "endIndex": 2}],
    "staticAllocations": TWO,
    "nodeSelector": SELECTOR,
}
V6 = {
    "cidr": "fd00::/60",
    "perNodeNetworkPrefix": 64,
    "staticAllocations": [{"nodeName": "n1", "prefix": "fd00::/64"}, {"nodeName": "n2", "prefix": "fd00:0:0:1::/64"}],
    "nodeSelector": SELECTOR,
}


def pool(base=None, name="rail1", **changes):
    spec = {key: value for key, value in {**(base or SPEC), **changes}.items() if value is not None}
    return {"metadata": {"name": name}, "spec": spec}


def exclusion(low, high=None):
    return {"startIP": low, "endIP": high or low}


def text(out):
    kind = type(out.prefix.network_address)
    return [f"{kind(low)}-{kind(high)}" for low, high in out.spans]


def of_node(made, node="n1"):
    entry = next(one for one in reconcile(made, NODES) if one.node == node)
    return text(handed_out(made, entry))


# --- the controller's checks ------------------------------------------------------------------------------------------


def test_a_good_pool_is_taken():
    for base in (SPEC, V6):
        assert refused(pool(base)) == []
        assert risks(pool(base), NODES) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param({"name": "rail 1"}, "CNI network name", id="name"),
        pytest.param({"cidr": "10.0.0.0"}, "is invalid cidr", id="no-length"),
        pytest.param({"cidr": "10.0.0.1/24"}, "host bits set", id="host-bits"),
        pytest.param({"perNodeNetworkPrefix": 23}, "perNodeNetworkPrefix", id="shorter-than-cidr"),
        pytest.param({"perNodeNetworkPrefix": 33}, "perNodeNetworkPrefix", id="longer-than-the-family"),
        pytest.param({"perNodeNetworkPrefix": 0}, "perNodeNetworkPrefix", id="no-length-of-nodes"),
        pytest.param({"gatewayIndex": -1}, "must not be negative", id="negative-gateway"),
        pytest.param({"gatewayIndex": 0}, "outside of the node prefix", id="gateway-is-the-network"),
        pytest.param({"gatewayIndex": 31}, "outside of the node prefix", id="gateway-is-broadcast"),
        pytest.param({"exclusions": [exclusion("10.0.1.1")]}, "is not part of", id="exclusion-outside"),
        pytest.param({"exclusions": [exclusion("10.0.0.9", "10.0.0.8")]}, "greater than startIP", id="exclusion-order"),
        pytest.param({"exclusions": [exclusion("10.0.0.a")]}, "invalid IP", id="exclusion-no-address"),
        pytest.param(
            {"perNodeExclusions": [{"startIndex": 1, "endIndex": 32}]}, "per-node subnet range (max: 31)", id="index"
        ),
        pytest.param({"perNodeExclusions": [{"startIndex": 4, "endIndex": 3}]}, "endIndex", id="index-order"),
        pytest.param({"staticAllocations": [{"prefix": "10.0.0.0"}]}, "valid network prefix", id="static-no-length"),
        pytest.param({"staticAllocations": [{"prefix": "10.0.0.1/27"}]}, "host bits", id="static-host-bits"),
        pytest.param({"staticAllocations": [{"prefix": "10.0.1.0/27"}]}, "not part of the pool", id="static-outside"),
        pytest.param({"staticAllocations": [{"prefix": "10.0.0.0/28"}]}, "prefix size", id="static-length"),
        pytest.param({"staticAllocations": [{"prefix": "fd00::/64"}]}, "not part of the pool", id="static-family"),
        pytest.param({"staticAllocations": [{**TWO[0], "gateway": "10.0.0.1"}]}, "has more than", id="static-gateway"),
        pytest.param({"staticAllocations": [TWO[0], {**TWO[1], "nodeName": "n1"}]}, "for node n1", id="node-twice"),
        pytest.param({"staticAllocations": [TWO[0], {"prefix": "10.0.0.0/27"}]}, "for prefix", id="prefix-twice"),
        pytest.param({"nodeSelector": {"nodeSelectorTerms": []}}, "nodeSelector: not written", id="no-term"),
        pytest.param(
            {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}},
            "nodeSelector: not written",
            id="another-operator",
        ),
        pytest.param({"defaultGateway": True}, "defaultGateway: not written", id="default-gateway"),
        pytest.param({"routes": [{"dst": "10.0.0.0/8"}]}, "routes: not written", id="routes"),
    ],
)
def test_an_invalid_pool_empties_the_status_of_all_nodes(changes, words):
    made = pool(**changes)

    assert any(words in one for one in refused(made)), refused(made)
    assert reconcile(made, NODES, [Allocation("n1", "10.0.0.0/27", "10.0.0.1")]) == []


@pytest.mark.parametrize(
    ("prefix", "index", "gateway"),
    [
        ("192.168.0.0/24", 0, ""),
        ("192.168.0.0/24", 10, "192.168.0.10"),
        ("192.168.0.0/24", 254, "192.168.0.254"),
        ("192.168.0.0/24", 255, ""),
        ("192.168.1.2/31", 0, "192.168.1.2"),
        ("192.168.1.2/31", 2, ""),
        ("fd00::/120", 255, "fd00::ff"),
        ("fd00::/120", 256, ""),
        ("fd00::/128", 0, "fd00::"),
    ],
)
def test_a_gateway_is_where_the_projects_own_examples_have_it(prefix, index, gateway):
    assert gateway_of(ipaddress.ip_network(prefix), index) == gateway


# --- who gets which prefix --------------------------------------------------------------------------------------------


def test_nodes_without_an_entry_draw_in_the_order_of_their_names():
    """Tried with the real one (v0.4.0): entries for node10, node1, an absent node, and one without a name."""
    static = [
        {"nodeName": "node10", "prefix": "10.0.0.0/27"},
        {"nodeName": "node1", "prefix": "10.0.0.224/27"},
        {"prefix": "10.0.0.32/27"},
        {"nodeName": "absent", "prefix": "10.0.0.64/27"},
    ]
    nodes = {name: {} for name in ("node1", "node2", "node3", "node10", "stranger")}
    made = pool(staticAllocations=static, nodeSelector=None)

    assert {one.node: one.prefix for one in reconcile(made, nodes)} == {
        "node1": "10.0.0.224/27",
        "node10": "10.0.0.0/27",
        "node2": "10.0.0.96/27",
        "node3": "10.0.0.128/27",
        "stranger": "10.0.0.160/27",
    }
    assert "without a selector" in risks(made, nodes)[0]
    assert "rail1: node2 draws 10.0.0.96/27, which no plan gave it" in risks(made, nodes)


def test_a_selector_takes_the_prefix_from_a_stranger_and_a_changed_entry_moves_a_node():
    before = reconcile(pool(nodeSelector=None), NODES)
    assert [one.node for one in before] == ["n1", "n2", "stranger"]
    after = reconcile(pool(), NODES, before)
    assert [one.node for one in after] == ["n1", "n2"]
    moved = pool(staticAllocations=[{**TWO[0], "prefix": "10.0.0.64/27"}, TWO[1]])
    assert reconcile(moved, NODES, after)[0] == Allocation("n1", "10.0.0.64/27", "10.0.0.65")


def test_who_drew_a_prefix_keeps_it_until_it_is_given_to_another():
    nodes = {**NODES, "m": LABEL}
    drew = reconcile(pool(), nodes)
    assert drew[0] == Allocation("m", "10.0.0.64/27", "10.0.0.65")
    assert reconcile(pool(), {**nodes, "a": LABEL}, drew)[1] == drew[0]
    given = pool(staticAllocations=[*TWO, {"nodeName": "n3", "prefix": "10.0.0.64/27"}])
    assert reconcile(given, {**nodes, "n3": LABEL}, drew)[0].prefix == "10.0.0.96/27"


def test_a_prefix_that_is_excluded_as_a_whole_is_drawn_by_nobody():
    made = pool(staticAllocations=[], exclusions=[exclusion("10.0.0.0", "10.0.0.31")])
    assert reconcile(made, NODES)[0] == Allocation("n1", "10.0.0.32/27", "10.0.0.33")


def test_another_spelling_of_a_prefix_holds_nothing_back():
    static = [{"nodeName": "n2", "prefix": "FD00::/64"}]
    made = pool(V6, staticAllocations=static)
    assert [one.prefix for one in reconcile(made, NODES)] == ["fd00::/64", "FD00::/64"]
    assert "is not written as the controller writes it" in risks(made, NODES)[0]


# --- what a node hands out --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "spans"),
    [
        pytest.param({}, ["10.0.0.3-10.0.0.30"], id="gateway-and-node"),
        pytest.param({"perNodeExclusions": None, "gatewayIndex": None}, ["10.0.0.1-10.0.0.30"], id="all"),
        pytest.param({"gatewayIndex": 9}, ["10.0.0.1-10.0.0.1", "10.0.0.3-10.0.0.8", "10.0.0.10-10.0.0.30"], id="gw"),
        pytest.param(
            {"perNodeExclusions": [{"startIndex": 0, "endIndex": 2}, {"startIndex": 11, "endIndex": 31}]},
            ["10.0.0.3-10.0.0.10"],
            id="from-the-network-to-broadcast",
        ),
        pytest.param(
            {"exclusions": [exclusion("10.0.0.20", "10.0.0.33")], "perNodeExclusions": None, "gatewayIndex": None},
            ["10.0.0.1-10.0.0.19"],
            id="over-the-border",
        ),
        pytest.param({"exclusions": [exclusion("10.0.0.64", "10.0.0.255")]}, ["10.0.0.3-10.0.0.30"], id="of-others"),
    ],
)
def test_a_node_hands_out_what_is_left(changes, spans):
    assert of_node(pool(**changes)) == spans


def test_the_last_address_of_an_ipv6_prefix_is_handed_out():
    assert of_node(pool(V6, gatewayIndex=1)) == ["fd00::2-fd00::ffff:ffff:ffff:ffff"]


def test_both_addresses_of_a_link_are_handed_out():
    made = pool(
        perNodeNetworkPrefix=31,
        perNodeExclusions=None,
        gatewayIndex=0,
        staticAllocations=[{"nodeName": "n1", "prefix": "10.0.0.2/31"}],
    )
    assert of_node(made) == ["10.0.0.3-10.0.0.3"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"exclusions": [exclusion("10.0.0.2")]}, id="absolute-and-index"),
        pytest.param({"exclusions": [exclusion("10.0.0.9"), exclusion("10.0.0.8", "10.0.0.12")]}, id="absolute"),
        pytest.param(
            {"perNodeExclusions": [{"startIndex": 2, "endIndex": 5}, {"startIndex": 5, "endIndex": 6}]}, id="indexes"
        ),
        # Cut to the daemon's first or last address, these would end before they begin.
        pytest.param({"exclusions": [exclusion("10.0.0.31", "10.0.0.40")]}, id="from-broadcast"),
        pytest.param({"exclusions": [exclusion("10.0.0.20", "10.0.0.32")]}, id="to-the-next-network"),
    ],
)
def test_a_daemon_refuses_a_pool_that_its_controller_takes(changes):
    made = pool(**changes)
    assert refused(made) == []
    first, second = reconcile(made, NODES)
    refusing = second if "10.0.0.32" in str(made["spec"].get("exclusions")) else first
    with pytest.raises(Refusal):
        handed_out(made, refusing)
    assert any("invalid config for pool" in one for one in risks(made, NODES))


def test_an_exclusion_that_covers_a_prefix_from_outside_excludes_nothing_there():
    """Tried with the real one: with .128-.255 excluded a pod got .198."""
    static = [{"nodeName": "n1", "prefix": "10.0.0.192/27"}]
    made = pool(staticAllocations=static, exclusions=[exclusion("10.0.0.128", "10.0.0.255")])
    assert of_node(made) == ["10.0.0.195-10.0.0.222"]
    assert any("passed over there" in one for one in risks(made, NODES))


def test_what_a_daemon_would_walk_through_for_too_long_is_a_risk():
    long = pool(
        V6,
        perNodeNetworkPrefix=100,
        staticAllocations=[{"nodeName": "n1", "prefix": "fd00::/100"}],
        perNodeExclusions=[{"startIndex": 30, "endIndex": (1 << 28) - 1}],
    )
    assert refused(long) == []
    assert "rail1: n1: 268435426 excluded addresses of fd00::/100 are passed one by one" in risks(long, NODES)
