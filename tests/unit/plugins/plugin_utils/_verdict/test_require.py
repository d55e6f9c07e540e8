# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What may not be skipped."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok, skipped, warning
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge, require

LINK = ok("network_link", "up", "up", rail="rail1")
PING = skipped("ping_rails", "verify_traffic is none for this host")
TRAFFIC = skipped("traffic_rdma", "verify_traffic is ping for this host")
LATENCY = ok("traffic_read_lat", "a", "a", rail="rail1")


def found(require, *hosts, cluster=None):
    """Return (place, rail, group, cause) of what is missed, and the verdict's status."""
    results = [
        merge.host_result(f"node{number}", f"node{number}", "d", list(checks)) for number, checks in enumerate(hosts, 1)
    ]
    names = {result["host"]: result["host"] for result in results}
    made = merge.merge("d", results, names, rails=["rail1", "rail2"], cluster=cluster, require=require)
    rows = [
        (where, check["rail"], check["planned"].partition(" ")[0], check["cause"])
        for where, check in merge.deviations(made)
        if check["id"] == "verify_require"
    ]
    return rows, made["status"]


def test_nothing_is_required_by_itself():
    assert found([], [LINK, TRAFFIC]) == ([], "pass")


def test_a_skipped_group_is_a_deviation_with_its_reason():
    missed = ("node1", None, "traffic", "verify_traffic is ping for this host")
    assert found(["network", "traffic"], [LINK, TRAFFIC]) == ([missed], "deviation")


def test_a_rail_that_was_left_out_is_one_too():
    lost = skipped("traffic_read_lat", "no peer", rail="rail2")
    assert found(["traffic"], [LATENCY, lost]) == ([("node1", "rail2", "traffic", "no peer")], "deviation")


def test_one_of_many_may_be_skipped():
    counters = skipped("traffic_errors", "the port has no such counters", rail="rail1")
    assert found(["traffic"], [LATENCY, counters]) == ([], "pass")
    assert found(["traffic_errors"], [LATENCY, counters])[1] == "deviation"


def test_a_host_that_was_passed_over_without_a_word():
    rows, status = found(["traffic"], [LATENCY], [LINK])
    assert rows == [("node2", None, "traffic", "no such check ran on this host, but on others")]
    assert status == "deviation"
    required = require.RequiredChecks(["traffic"])
    required.host("node1", [LATENCY])
    required.host("node2", [])
    assert [check["unconfirmed"] for _host, check in required.hosts_without_check()] == [True]


def test_an_unchecked_part_belongs_to_the_cluster():
    for name in ("pod", "network_li"):
        assert found([name], [LINK])[0] == [("cluster", None, name, "no such check ran")]


def test_the_cluster_counts():
    good = merge.seen_section([ok("object_state", "3 objects", "3 objects")])
    assert found(["object"], [LINK], cluster=good) == ([], "pass")
    blind = merge.seen_section([skipped("cluster_api", "no kubeconfig is set")])
    assert found(["cluster"], [LINK], cluster=blind) == (
        [("cluster", None, "cluster", "no kubeconfig is set")],
        "deviation",
    )


@pytest.mark.parametrize(
    ("words", "ids_only", "message"),
    [
        (["pods_read_lat"], False, "pods_read_lat: no such check ID. Write pod_read_lat. [check_unknown]"),
        (["po"], False, "po: no such check ID. Write pod. [check_unknown]"),
    ],
)
def test_a_word_that_is_no_checks_is_reported_with_the_nearest(words, ids_only, message):
    assert list(require.unknown_checks(words, ids_only=ids_only)) == [message]


@pytest.mark.parametrize("status", ["pass", "deviation"])
def test_a_warning_is_shown_and_changes_no_status(status):
    checks = [LINK, warning("traffic_errors", 0, 7, "grew", "look", rail="rail1")]
    if status == "deviation":
        checks.append(deviation("network_mtu", 1, 2, "c", "f", rail="rail2"))
    made = merge.merge("d", [merge.host_result("a", "a", "d", checks)], {"a": "a"}, rails=["rail1", "rail2"])
    assert made["status"] == made["hosts"]["a"]["status"] == status
    assert made["hosts"]["a"]["rails"]["rail1"] == "warning"
    assert "1 warning" in merge.summary(made)
