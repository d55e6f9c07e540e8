# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import by_role, ok, skipped
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import text as verdict_text
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.intake import answer_in
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import metrics

RAILS = ["rail1", "rail2"]


def check(status="ok", rail="rail1", **more):
    row = {"id": "network_addresses", "rail": rail, "status": status, "planned": "192.0.2.2/27"}
    good = {"observed": "192.0.2.2/27", "cause": "", "fix": ""}
    bad = {
        "observed": "nothing",
        "cause": "the address is missing",
        "fix": "Look at cable, transceiver and switch port.",
    }
    return {**row, **(good if status == "ok" else bad), **more}


def result(host, *checks, digest="d1", error=None):
    return merge.host_result(host, host, digest, checks, error)


def merged(*results, expected=(), **more):
    return merge.merge("d1", results, dict.fromkeys([*(r["host"] for r in results), *expected]), rails=RAILS, **more)


@pytest.mark.parametrize(
    ("results", "expected", "cluster", "wanted"),
    [
        pytest.param([result("a", check())], [], None, "pass", id="pass"),
        pytest.param([result("a", check("deviation"))], [], None, "deviation", id="deviation"),
        pytest.param([result("a", check())], ["b"], None, "incomplete", id="one-missing"),
        pytest.param([result("a", check("deviation"))], ["b"], None, "deviation", id="deviation-over-missing"),
        pytest.param([result("a", error="boom")], ["b"], None, "error", id="error-over-all"),
        pytest.param([result("a", check(), digest="old")], [], None, "error", id="another-plan"),
        pytest.param([], [], None, "incomplete", id="nobody"),
        pytest.param([result("a", check())], [], merge.seen_section([check("deviation")]), "deviation", id="cluster"),
        pytest.param([result("a", check())], [], merge.seen_section([], "no API"), "error", id="cluster-error"),
    ],
)
def test_the_verdict_is_the_worst(results, expected, cluster, wanted):
    assert merged(*results, expected=expected, cluster=cluster)["status"] == wanted


def test_the_verdict_keeps_what_is_not_ok_and_counts_the_rest():
    verdict = merged(result("a", check(), check("deviation", "rail2"), check("skipped", None)))
    entry = verdict["hosts"]["a"]
    assert entry["counts"] == {"ok": 1, "deviation": 1, "warning": 0, "skipped": 1}
    assert [found["status"] for found in entry["checks"]] == ["deviation", "skipped"]
    assert entry["rails"] == {"rail1": "ok", "rail2": "deviation"}


def test_a_rail_that_was_not_checked_is_not_green():
    assert merged(result("a", check()))["hosts"]["a"]["rails"]["rail2"] == "skipped"


def test_hosts_are_in_natural_order():
    verdict = merged(result("node10", check()), result("node2", check()), expected=["node1"])
    assert list(verdict["hosts"]) == ["node1", "node2", "node10"]


def test_checks_are_collected_from_whatever_roles_register():
    registered = {
        "netns": {"changed": False, "checks": [check()]},
        "names": {"checks": [check("skipped")]},
        "failed": False,
    }
    assert len(answer_in([registered, [check()], None, "text", {"skipped": True}]).checks) == 3


def test_markdown_cannot_be_broken_by_a_name():
    verdict = merged(result("a", check("deviation", observed="x | y\n<b>")))
    text = verdict_text.markdown(verdict, "fabric")
    row = next(line for line in text.splitlines() if "missing" in line)
    assert row.count(" | ") == 5
    assert "&lt;b&gt;" in row


def test_the_picture_names_every_cause_with_its_fix_and_the_commands_at_the_end():
    wrong = check("deviation", "rail2", planned=["192.0.2.2/27 dev ens2np0"], observed=[], fix=by_role("rail_network"))
    rows = [result("node1", wrong), result("node2", check("deviation", id="network_link", observed="no carrier"))]
    rows.append({"host": "node3", "checks": [], "unreachable": "SSH refuses\nthe \033login."})
    text = verdict_text.terminal(with_causes(merged(*rows, expected=["node3"]), {}), "fabric", report="/x/report.html")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    assert lines[2:8] == [
        "✗ node3: The host is unreachable. The controller reports: SSH refuses the \\x1blogin.",
        "Check that Ansible reaches the host and works there, and run the audit again.",
        "✗ node2 rail1: the link has no carrier.",
        "Look at cable, transceiver and switch port.",
        "✗ node1 rail2: address 192.0.2.2/27 is missing.",
        "all  rail1  rail2",
    ]
    assert lines[-5:] == [
        "Do this:",
        "impact: none",
        "ansible-playbook railops.rdma.hosts --tags rail_network --limit node1",
        "Verdict deviation: hosts: 2 deviation, 1 unreachable; 3 causes, 2 deviations.",
        "Report: /x/report.html",
    ]
    assert "\033" not in text
    assert "\033[31m" in verdict_text.terminal(merged(*rows), "fabric", color=True)


def test_a_fabric_without_a_cluster_hears_nothing_about_one():
    text = verdict_text.terminal(with_causes(merged(result("node1", check())), {}), "fabric")
    assert "cluster" not in text


def test_both_texts_say_when_it_was_and_a_green_fleet_is_one_line():
    verdict = {**merged(*(result(f"node{number}", check()) for number in range(1, 1001))), "time": 1_800_000_000.5}
    assert "Checked 2027-01-15 08:00 UTC." in verdict_text.markdown(verdict, "fabric")
    text = verdict_text.terminal(verdict, "fabric")
    assert "checked 2027-01-15 08:00 UTC" in text
    assert "node1" not in text
    assert "1,000 x 2 rails as planned" in text


def test_a_large_fleet_shows_who_does_not_pass():
    results = [result(f"node{number}", check()) for number in range(1, 200)]
    results.append(result("node500", check("deviation")))
    text = verdict_text.terminal(merged(*results), "fabric")
    assert "node500" in text
    assert "199 more, all ok" in text
    assert len(text.splitlines()) < 30


def test_a_part_that_was_not_checked_does_not_pass():
    part = merge.seen_section([skipped("cluster_api", "no kubeconfig is set")])
    assert (part["status"], part["reason"]) == ("skipped", "no kubeconfig is set")
    assert merged(result("a", check()), cluster=part)["status"] == "pass"
    assert merged(result("a", check()), plan=merge.seen_section([check("deviation")]))["status"] == "deviation"


def test_an_unfinished_verdict_lists_missing_hosts():
    rows = [{"host": "b", "checks": [], "unreachable": "No SSH server answers."}, result("c", error="boom")]
    verdict = merged(*rows, expected=["a"], unverified=dict.fromkeys("abc", "not yet"))
    assert [entry["status"] for entry in verdict["hosts"].values()] == ["not_verified", "unreachable", "error"]
    assert "| - | - | not yet |" in verdict_text.markdown(verdict, "fabric")


@pytest.mark.parametrize(
    ("heard", "status"),
    [
        ("node2 ens1np0", "pass"),
        ("NODE2.dc.example p1", "pass"),
        ("leaf9 swp1", "deviation"),
        ("node20 p1", "deviation"),
    ],
)
def test_no_cable_is_moved_for_the_word_of_a_host_of_the_inventory(heard, status):
    wrong = check("deviation", id="cable_leaf", planned="leaf1", observed=heard)
    verdict = merged(result("node1", wrong), result("node2", check()), expected={"node1": "node1", "node2": "node2"})
    assert verdict["hosts"]["node1"]["status"] == status
    (found,) = verdict["hosts"]["node1"]["checks"]
    assert found["observed"] == heard


def test_rails_out_of_service_are_warnings_with_their_reason_and_a_host_without_any_is_skipped():
    rows = [
        {"host": "node1", "node": "n1", "rails": ["rail2"], "reason": "RMA 4711", "all_rails": False},
        {"host": "node2", "node": "n2", "rails": ["rail1", "rail2"], "reason": "", "all_rails": True},
        {"host": "node9", "node": "n9", "rails": ["rail1"], "reason": "", "all_rails": False},
    ]
    result = merge.host_result("node1", "n1", "d", [ok("network_link", "up", "up", rail="rail1")])
    found = merge.merge("d", [result], {"node1": "n1"}, rails=["rail1", "rail2"], out=rows)
    assert (found["status"], [*found["hosts"]]) == ("pass", ["node1", "node2"])
    one, two = found["hosts"].values()
    assert (one["status"], one["rails"]) == ("pass", {"rail1": "ok", "rail2": "warning"})
    assert [(row["rail"], row["observed"]) for row in one["checks"]] == [("rail2", "out of service (RMA 4711)")]
    assert (two["status"], two["rails"]) == ("skipped", {"rail1": "skipped", "rail2": "skipped"})
    assert [(row["id"], row["rail"], row["status"]) for row in two["checks"]] == [
        ("rail_out_of_service", None, "warning")
    ]
    text = metrics(found, "fabric", 1)
    assert 'railops_rail_out_of_service{fabric="fabric",node="n1",rail="rail2"} 1' in text
    assert 'railops_rail_out_of_service{fabric="fabric",node="n2",rail="all"} 1' in text
    assert 'railops_rail_ok{fabric="fabric",node="n1",rail="rail2"}' not in text
