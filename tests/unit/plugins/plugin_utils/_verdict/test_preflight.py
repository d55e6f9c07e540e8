# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts take part in a run: what stops it, what leaves a host or a rail out, what is deferred."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.preflight import (
    DECLARATION,
    KINDS,
    HostPlace,
    Trouble,
    batches,
    max_excluded,
    select_hosts,
    unreachable_reason,
)


def fleet(number, profiles=1, zones=1):
    """Return hosts of interface profiles and zones, by turns."""
    return {
        f"node{at}": HostPlace(
            f"z{at // profiles % zones}", {}, {f"rail{rail}": f"p{at % profiles}s{rail}" for rail in (1, 2)}
        )
        for at in range(1, number + 1)
    }


RULE = Trouble("rule_existing", None, "The rule is not ours.", "Remove it. [rule_existing]")
FULL = Trouble("run_full", None, "/run has no room.")
NAME = Trouble("interface_not_found", "rail2", "rail2: This host has no interface.")
LOST = Trouble("interface_lost", "rail2", "rail2: The interface is gone.")
MOVE = Trouble("address_renumbered", "rail1", "It would be renumbered.")
BUSY = Trouble("host_in_use", None, "A job runs.", "Let it end.")


def on(trouble, *numbers):
    return {f"node{number}": [trouble] for number in numbers}


# (hosts, problems, those that do not answer, site_max_excluded, why the run stops, excluded, without a rail, deferred)
CASES = {
    "no problem": (20, {}, [], "5%", "", "", "", ""),
    "one broken of 20": (20, on(RULE, 7), [], "5%", "", "node7", "", ""),
    "three broken of 20": (20, on(RULE, 7, 8, 9), [], "5%", "Broken hosts: 3 of 20. ", "", "", ""),
    "three broken of 20 are allowed": (20, on(RULE, 7, 8, 9), [], 3, "", "node7 node8 node9", "", ""),
    "nineteen broken of 20": (20, on(RULE, *range(1, 20)), [], "5%", "Broken hosts: 19 of 20. ", "", "", ""),
    "all broken": (20, on(RULE, *range(1, 21)), [], "100%", "The same on every host of zone z0", "", "", ""),
    "one does not answer": (20, {}, ["node3"], "5%", "", "", "", ""),
    "one is broken, one does not answer": (20, on(RULE, 7), ["node3"], "5%", "Broken hosts: 2 of 20. ", "", "", ""),
    "the same, and 10% are allowed": (20, on(RULE, 7), ["node3"], "10%", "", "node7", "", ""),
    "one broken of 3": (3, on(RULE, 2), [], "5%", "", "node2", "", ""),
    "one broken of 2": (2, on(RULE, 2), [], "5%", "Broken hosts: 1 of 2. site_max_excluded allows 0.", "", "", ""),
    "one broken of 1": (1, on(RULE, 1), [], "5%", "Broken hosts: 1 of 1. ", "", "", ""),
    "none is allowed": (20, on(RULE, 7), [], 0, "site_max_excluded allows 0", "", "", ""),
    "all three, not alike": (3, {**on(RULE, 1, 2), **on(FULL, 3)}, [], "100%", "", "node1 node2 node3", "", ""),
    "a wrong declaration of one": (20, on(MOVE, 7), [], "100%", "Declaration: node7", "", "", ""),
    "a NIC that never was there": (20, on(NAME, 7), [], "5%", "Declaration: node7", "", "", ""),
    "a dead NIC": (20, on(LOST, 7), [], "5%", "", "", "node7", ""),
    "a dead NIC in each of two hosts": (2, on(LOST, 1, 2), [], "5%", "", "", "node1 node2", ""),
    "a dead NIC of the only host": (1, on(LOST, 1), [], "5%", "", "", "node1", ""),
    "a NIC that all hosts lost": (20, on(LOST, *range(1, 21)), [], "5%", "every host with p0s2 as rail2", "", "", ""),
    "two busy hosts of 3": (3, on(BUSY, 1, 2), [], "5%", "", "", "", "node1 node2"),
    "busy and broken": (20, {"node7": [BUSY, RULE]}, [], "5%", "", "node7", "", ""),
}


@pytest.mark.parametrize("case", CASES)
def test_what_becomes_of_the_hosts(case):
    number, found, lost, most, why, excluded, rails, deferred = CASES[case]
    places = fleet(number)
    answered = {host: found.get(host, []) for host in places if host not in lost}
    made = select_hosts(answered, lost, places, {}, most)
    assert bool(made.stop) is bool(why), made.stop
    assert why in " ".join(made.stop)
    if not why:
        assert [*made.excluded] == excluded.split()
        assert [*made.rails] == rails.split()
        assert [*made.deferred] == deferred.split()
        assert bool(made.missing) is bool(excluded or rails or lost)
        for host in lost:
            assert any(text.startswith(f"{host}: It does not answer.") for text in made.missing)
        assert bool(made.waiting) is bool(deferred)


def test_a_name_that_is_wrong_on_all_hosts_of_one_profile_is_a_declaration():
    places = fleet(20, profiles=2)
    found = {host: [LOST] if place.interfaces["rail2"] == "p1s2" else [] for host, place in places.items()}
    made = select_hosts(found, [], places, {}, "5%")
    assert "The same on every host with p1s2 as rail2: node[1,3,5,7,9,11,13,15,17,19]: " in made.stop[0]


@pytest.mark.parametrize(("members", "stops"), [((4, 5, 6), True), ((4, 5, 6, 7), False), ((4, 5), False)])
def test_a_problem_of_all_hosts_of_a_group_is_a_declaration(members, stops):
    found = {host: [RULE] if host in ("node4", "node5", "node6") else [] for host in fleet(60)}
    groups = {"rack4": [f"node{number}" for number in members], "others": ["login1", "login2", "login3"]}
    made = select_hosts(found, [], fleet(60), groups, "5%")
    assert any("The same on every host of group rack4" in text for text in made.stop) is stops


def test_with_limit_the_hosts_that_are_not_in_the_run_count_as_sound():
    """Three of three hosts in the run, and 20 of the fabric, are broken: the hosts, not the declaration."""
    made = select_hosts({host: [RULE] for host in ("node1", "node2", "node3")}, [], fleet(20), {}, "100%")
    assert made.stop == []
    assert len(made.excluded) == 3


@pytest.mark.parametrize(
    ("most", "hosts", "number"),
    [("5%", 1, 0), ("5%", 2, 0), ("5%", 3, 1), ("5%", 39, 1), ("5%", 40, 2), ("0%", 50, 0), (0, 50, 0), ("3", 2, 3)],
)
def test_how_many_hosts_may_be_left_out(most, hosts, number):
    assert max_excluded(most, hosts) == number


@pytest.mark.parametrize(
    ("places", "degraded", "serial", "first", "sizes"),
    [
        (fleet(10), [], None, ["node1"], [1, "20%"]),
        (fleet(10), ["node1"], None, ["node2"], [1, "20%"]),
        (fleet(10, profiles=2, zones=2), [], None, ["node1", "node2", "node3", "node4"], [4, "20%"]),
        (fleet(10, profiles=10), [], None, ["node1"], [1, "20%"]),
        (fleet(2), [], None, ["node1"], [1, "20%"]),
        (fleet(10, profiles=2), [], [3, "50%"], ["node1", "node2"], [3, "50%"]),
        (fleet(10), [], 1, ["node1"], [1]),
    ],
)
def test_the_canary_batch_has_a_sound_host_of_each_profile_and_zone(places, degraded, serial, first, sizes):
    hosts, made = batches([*places], degraded, places, serial)
    assert hosts[: len(first)] == first
    assert sorted(hosts) == sorted(places)
    assert made == sizes


def test_the_table_has_the_errors_of_declarations():
    assert KINDS["interface_not_found"] == KINDS["role_options"] == DECLARATION
    assert Trouble("never_seen_before", None, "").kind == "broken"


def test_dead_cards_are_proposed_to_be_taken_out_of_service():
    first = Trouble("interface_not_found", "rail1", "rail1: This host has no interface.")
    places = fleet(20)
    found = {host: [] for host in places} | {"node3": [NAME], "node5": [first, NAME], "node7": [LOST]}
    line = "fabric_out_of_service: {node3: {rails: [rail2]}, node5: {rails: all}}"
    assert select_hosts(found, [], places, {}, "5%").stop[-1].endswith(line)
    everywhere = select_hosts({host: [NAME] for host in places}, [], places, {}, "5%").stop
    assert "fabric_out_of_service" not in " ".join(everywhere)
    assert select_hosts({**found, "node3": [], "node5": []}, [], places, {}, "5%").stop == []


def test_a_host_key_that_changed_is_not_called_unknown():
    text = "WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!\r\nHost key verification failed."
    assert unreachable_reason(text, "gpu_nodes", connected=False)[0] == "Its SSH host key has changed."
