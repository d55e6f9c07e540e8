# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whose turn an upgrade is, and when a node is worse than before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._probe.health_plan import LIMITS
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.upgrade import (
    HostUpgrade,
    regressions,
    sentence,
    upgrade_order,
)

HOSTS = st.dictionaries(
    st.integers(1, 30).map("node{}".format),
    st.builds(
        HostUpgrade,
        zone=st.sampled_from(["su1", "su2", "su10"]),
        slot=st.integers(0, 5),
        due=st.sampled_from([(), ("driver 1 -> 2",)]),
        status=st.sampled_from(["pass", "deviation"]),
        unfinished=st.booleans(),
    ),
)
CHECKS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.sampled_from(["network_link", "rdma_port_state", "port_errors"]),
            "rail": st.sampled_from(["rail1", "rail2", None]),
            "status": st.sampled_from(["ok", "deviation", "warning", "skipped"]),
            "cause": st.just("why"),
            "fix": st.just("do"),
        }
    ),
    max_size=6,
)


def check(name, status, rail=None, cause="the port is down.", fix="Plug it in."):
    return {"id": name, "rail": rail, "status": status, "cause": cause, "fix": fix}


@settings(deadline=None)
@given(HOSTS, st.booleans())
def test_each_due_node_has_one_turn_and_no_other(hosts, by_zone):
    order = upgrade_order(hosts, by_zone=by_zone)
    taken = [host for turn in order for host in turn]
    assert sorted(taken) == sorted(host for host, row in hosts.items() if row.due or row.unfinished)
    assert all(order)
    unfinished = [host for host in taken if hosts[host].unfinished]
    assert taken[: len(unfinished)] == unfinished, "an unfinished one comes first"
    assert all(len(turn) == 1 for turn in order[: len(unfinished) + 1]), "and alone, as the first of the others"


@settings(deadline=None)
@given(HOSTS)
def test_one_node_at_a_time_or_one_slot_of_each_zone(hosts):
    assert all(len(turn) == 1 for turn in upgrade_order(hosts, by_zone=False))
    for turn in upgrade_order(hosts, by_zone=True):
        assert len({hosts[host].slot for host in turn}) == 1


def test_the_order_is_that_of_the_plan():
    hosts = {f"node{n}": HostUpgrade("su1" if n < 10 else "su2", n % 10, ("x",)) for n in (2, 1, 11, 12)}
    assert upgrade_order(hosts, by_zone=False) == [["node1"], ["node2"], ["node11"], ["node12"]]
    assert upgrade_order(hosts, by_zone=True) == [["node1"], ["node11"], ["node2", "node12"]]


@settings(deadline=None)
@given(CHECKS, CHECKS)
def test_nothing_is_worse_than_itself_and_a_new_deviation_always_is(before, after):
    one, other = {"checks": before}, {"checks": after}
    assert regressions(one, one) == []
    found = {(row["id"], row["rail"]) for row in regressions(one, other)}
    bad = {(row["id"], row["rail"]) for row in before if row["status"] == "deviation"}
    now_bad = {(row["id"], row["rail"]) for row in after if row["status"] == "deviation"}
    assert now_bad - bad <= found
    assert not found & bad


def test_what_deviated_before_is_not_worse_and_a_warning_is_not():
    before = {"checks": [check("network_link", "deviation", "rail1"), check("rdma_modules", "ok")]}
    after = {"checks": [check("network_link", "deviation", "rail1"), check("rdma_modules", "warning")]}
    assert regressions(before, after) == []


def test_lost_check_is_worse_except_counters():
    before = {"checks": [check("rdma_port_state", "ok", "rail1"), *(check(name, "ok", "rail1") for name in LIMITS)]}
    assert set(LIMITS) <= set(IDS)
    rows = regressions(before, {"checks": [check("rdma_port_state", "skipped", "rail1", "no device")]})
    assert [(row["id"], row["cause"]) for row in rows] == [
        ("rdma_port_state", "It was healthy and can no longer be checked: no device")
    ]
    assert [row["id"] for row in regressions(before, {"checks": []})] == ["rdma_port_state"]


def test_deviations_precede_skipped_checks_of_both_families():
    unseen = [{**check("address_duplicate", "skipped", "rail3", "no carrier"), "family": family} for family in (4, 6)]
    before = {"checks": [check("network_link", "ok", "rail3"), *({**one, "status": "ok"} for one in unseen)]}
    rows = regressions(before, {"checks": [check("network_link", "deviation", "rail3"), *unseen]})
    assert [row["id"] for row in rows] == ["network_link", "address_duplicate"]


def test_one_sentence_says_what_where_and_what_to_do():
    after = {"checks": [check("network_link", "deviation", f"rail{n}") for n in (10, 9, 8, 7)]}
    text = sentence("node2", regressions({"checks": []}, after))
    assert text.startswith(
        "node2 is worse than before its upgrade, stays cordoned, and no further node is touched: rail7"
    )
    assert "rail10" not in text
    assert "and 1 more" in text
    assert text.endswith(
        "Plug it in. Fix it or name the old versions again, then run the playbook upgrade: it continues with node2."
        " [upgrade_regression]"
    )
