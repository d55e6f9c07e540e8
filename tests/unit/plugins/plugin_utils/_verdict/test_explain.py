# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where the fault is: the leaf that explains the deviations on its ports."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok, skipped
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.causes import Defect
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import (
    leaves_of,
    place_of,
    with_causes,
)
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.preflight import HostPlace

RAILS = ["rail1", "rail2", "rail3", "rail4"]
CHECKS = ("network_link", "network_mtu", "ping_gateway")


def place(number, zones=2):
    zone = f"z{number % zones + 1}"
    return HostPlace(zone, {rail: f"{zone}-leaf{index}" for index, rail in enumerate(RAILS, 1)})


def verdict(bad, hosts=8, without=(), zones=2):
    """Return a verdict in which these (host, rail, check) deviate, and these were not made; and where the hosts are."""
    results = []
    for number in range(hosts):
        name = f"node{number + 1}"
        checks = []
        for rail in [*RAILS, None]:
            for check in CHECKS:
                if (name, rail, check) in without:
                    checks.append(skipped(check, "not asked", rail=rail))
                elif (name, rail, check) in bad:
                    checks.append(deviation(check, "so", "not so", "why", "", rail=rail))
                else:
                    checks.append(ok(check, "so", "so", rail=rail))
        results.append(merge.host_result(name, name, "d", list(checks)))
    names = {result["host"]: result["host"] for result in results}
    stand = {name: place(number, zones) for number, name in enumerate(names)}
    return merge.merge("d", results, names, rails=RAILS), stand


def leaves(bad, **more):
    """Return how many deviations each leaf explains; None for those that no leaf explains."""
    made, places = verdict(bad, **more)
    found = [Defect(host, (host,), check) for host, check in merge.deviations(made)]
    explained = leaves_of(made, found, places)
    counts = Counter(explained.get((item.check["id"], item.host, item.check["rail"])) for item in found)
    assert {*explained} <= {(check, host, rail) for host, rail, check in bad}
    return dict(counts)


def cells(hosts, rails, checks):
    return {(f"node{host}", rail, check) for host in hosts for rail in rails for check in checks}


def test_a_leaf_is_named_for_all_that_hangs_on_it():
    bad = cells((1, 3, 5, 7), ["rail3"], ["network_link", "ping_gateway"])
    assert leaves(bad) == {"z1-leaf3": 8}
    (card,) = with_causes(*verdict(bad))["causes"]
    assert card["sentence"] == "z1-leaf3 (node[1,3,5,7] rail3): why."
    assert (card["check"], card["checks"], card["follows"], card["leaf"]) == ("network_link", 4, 4, "z1-leaf3")


def test_one_host_without_it_does_not_clear_a_leaf():
    assert leaves(cells((1, 3, 5), ["rail3"], ["network_link"])) == {"z1-leaf3": 3}
    assert leaves(cells((1, 3), ["rail3"], ["network_link"])) == {None: 2}


def test_two_leaves_are_named():
    bad = cells((1, 3, 5, 7), ["rail3"], ["network_link"]) | cells((2, 4, 6, 8), ["rail1"], ["network_link"])
    assert leaves(bad) == {"z1-leaf3": 4, "z2-leaf1": 4}


@pytest.mark.parametrize(
    ("hosts", "rails"),
    [([2], [*RAILS, None]), ([2], ["rail2"]), (range(1, 9), ["rail2"]), ((1, 3, 5, 7), RAILS), (range(1, 9), RAILS)],
    ids=["a node", "a rail of a node", "a rail", "a zone", "all nodes"],
)
def test_no_leaf_is_named_for_what_others_have_too(hosts, rails):
    bad = cells(hosts, rails, ["network_mtu"])
    assert leaves(bad) == {None: len(bad)}


def test_a_fault_everywhere_does_not_hide_another():
    bad = cells(range(1, 9), RAILS, ["network_mtu"]) | cells((2, 4, 6, 8), ["rail1"], ["network_link"])
    assert leaves(bad) == {None: 32, "z2-leaf1": 4}


def test_a_skipped_check_is_no_good_result():
    """Half of a leaf was skipped: of the others all deviate."""
    left = cells((1, 3), ["rail3"], ["ping_gateway"])
    assert leaves(cells((5, 7), ["rail3"], ["ping_gateway"]), without=left) == {"z1-leaf3": 2}


CELL = st.tuples(
    st.integers(1, 8).map(lambda number: f"node{number}"), st.sampled_from([*RAILS, None]), st.sampled_from(CHECKS)
)


@settings(deadline=None)
@given(st.sets(CELL, max_size=60), st.sets(CELL, max_size=20), st.integers(1, 3))
def test_a_named_leaf_has_more_bad_ports_than_good_ones(bad, without, zones):
    bad -= without
    made, places = verdict(bad, without=without, zones=zones)
    found = [Defect(host, (host,), check) for host, check in merge.deviations(made)]
    for check, leaf in {(key[0], leaf) for key, leaf in leaves_of(made, found, places).items()}:
        ports = {(host, rail, check) for host in places for rail in RAILS if places[host].leaves[rail] == leaf}
        assert len(ports & bad) > len(ports - bad - without)


def test_the_place_of_a_host_comes_from_the_plan():
    piece = {
        "node": "n1",
        "cables": {"rail1": {"leaf": "leaf1", "port": None}, "rail2": {"leaf": None, "port": "swp2"}},
    }
    assert place_of(piece, {"nodes": {"n1": {"zone": "su1"}}}) == HostPlace("su1", {"rail1": "leaf1"})
    assert place_of({"node": "n1"}, {"nodes": {"n1": {"zone": ""}}}) == HostPlace()
