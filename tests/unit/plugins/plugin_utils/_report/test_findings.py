# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok, skipped, warning
from ansible_collections.railops.rdma.plugins.plugin_utils._report.equal import differing
from ansible_collections.railops.rdma.plugins.plugin_utils._report.verdict import record, verdict_data
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.merge import host_result, merge


def test_the_page_lists_deviations_and_warnings_apart():
    made = [
        ok("network_mtu", 9000, 9000, rail="rail1"),
        skipped("traffic_rdma", "no traffic", rail="rail1"),
        warning("fleet_firmware", "28.2", "28.1", "It is older.", "Update it.", rail="rail1"),
        deviation(
            "network_link", "up", "down", "no carrier", "Look at cable, transceiver and switch port.", rail="rail1"
        ),
    ]
    fixes = [f"Move the cable of e{number} to leaf{number}." for number in (1, 2, 3)]
    made += [deviation("cable_leaf", fix, "", "another leaf", fix, rail=f"rail{n}") for n, fix in enumerate(fixes, 1)]
    merged = merge("d", [host_result("node1", "n1", "d", made)], {"node1": "n1"}, rails=["rail1", "rail2", "rail3"])
    data = verdict_data(with_causes(merged, {}))
    assert [(row["sentence"], row["expected"], row["fix"]) for row in data["causes"]] == [
        ("node1 rail1: the interface is down.", "up", "Look at cable, transceiver and switch port."),
        ("node1 rail[2-3]: another leaf.", fixes[1], f"{fixes[1]} {fixes[2]}"),
    ]
    assert [row["check"] for row in data["warnings"]] == ["fleet_firmware"]
    assert (data["coverage"]["run"], data["coverage"]["planned"], data["states"]) == (6, 7, {"n1": "bbb"})
    assert [row[:3] for row in data["details"]["n1"]["checks"]][:2] == [
        ("warning", "rail1", "fleet_firmware"),
        ("deviation", "rail1", "network_link"),
    ]


def verdict_with(*bad, hosts=("node1", "node2"), when=0):
    """Return a verdict in which these hosts deviate on rail1."""
    results = [
        host_result(
            name,
            name,
            "d",
            [deviation("network_link", "up", "down", "no carrier", "", rail="rail1")]
            if name in bad
            else [ok("network_link", "up", "up", rail="rail1")],
        )
        for name in hosts
    ]
    return {**with_causes(merge("d", results, dict.fromkeys(hosts), rails=["rail1"]), {}), "time": when}


def test_a_cause_is_new_or_has_a_time_since_which_it_is_there():
    history = [
        record(verdict_with("node1", when=3)),
        record(verdict_with("node1", when=2)),
        record(verdict_with(when=1)),
    ]
    assert verdict_data(verdict_with("node1"), history)["causes"][0]["since"] == 2
    fresh = verdict_data(verdict_with("node2"), history)
    assert fresh["causes"][0]["since"] is None
    assert fresh["resolved"] == ["node1 rail1: the interface is down."]
    assert fresh["history"] == [(3, "deviation", 1), (2, "deviation", 1), (1, "pass", 0)]


def test_a_run_with_a_limit_resolves_nothing_that_it_did_not_check():
    history = [record(verdict_with("node1", when=3))]
    assert verdict_data(verdict_with(hosts=["node2"]), history)["resolved"] == []
    # After it the complete runs are compared with each other.
    history.insert(0, record(verdict_with(hosts=["node2"], when=4)))
    assert verdict_data(verdict_with("node1", when=5), history)["causes"][0]["since"] == 3


@pytest.mark.parametrize(
    ("planned", "observed", "shown"),
    [
        (["a", "b"], ["b", "c"], (["a"], ["c"])),
        (["a", "b"], ["b"], (["a"], [])),
        (["b"], ["b", {"c": 1}], ([], [{"c": 1}])),
        (["a", "b"], ["b", "a"], (["a", "b"], ["b", "a"])),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, ({"a": 1}, {"c": 3})),
        ("up", "down", ("up", "down")),
    ],
)
def test_of_two_lists_or_objects_only_what_differs_is_shown(planned, observed, shown):
    assert differing(planned, observed) == shown
