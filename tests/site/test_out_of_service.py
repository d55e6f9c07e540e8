# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rail and a host that wait for a repair: out of service and back, with everything else as planned.

The tests of this file share one fleet and run in their order.
"""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.tests.site.conftest import started

pytestmark = pytest.mark.long
OUT = {"node2": {"rails": ["rail2"], "reason": "RMA 4711"}, "node3": {"rails": "all"}}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Three hosts with two rails, as planned."""
    with started("out", tmp_path_factory.mktemp("out"), 3, 2) as made:
        made.plan(fabric_lossless={"priority": 3, "dscp": 26}, lossless_roce_unsupported="report")
        made.play("hosts")
        yield made


def lock(fleet):
    plan = json.loads((fleet.folder / "plan/fabric/plan.json").read_text(encoding="utf-8"))
    return plan["frozen"], plan["nodes"]


def test_the_plan_takes_rails_out_of_service_and_renumbers_no_node(fleet):
    before, fleet.words = lock(fleet), {**fleet.words, "fabric_out_of_service": OUT}
    shown = fleet.play("plan", "--check", "--diff").output
    assert "+node2 rail2: ens2np0" in shown
    assert "out of service (RMA 4711)" in shown
    fleet.play("plan")
    assert lock(fleet) == before


def test_hosts_leave_them_as_they_are_and_repair_everything_else(fleet):
    fleet.ip("node2", "rule", "del", "pref", "10002")
    fleet.ip("node2", "rule", "del", "pref", "10001")
    fleet.ip("node2", "link", "set", "ens2np0", "mtu", "1500")
    fleet.ip("node3", "rule", "del", "pref", "10001")
    state = fleet.dump("node3")
    predicted = fleet.play("hosts", "--check", "--diff")
    assert "+rule 10001" in predicted.output
    assert "10002" not in predicted.output
    run = fleet.play("hosts")
    assert {task["host"] for task in run.tasks if task["changed"]} == {"node2"}
    assert "node3" not in {task["host"] for task in run.tasks}
    rules = fleet.ip("node2", "rule")
    assert ("10001:" in rules, "10002:" in rules) == (True, False)
    assert "mtu 1500" in fleet.ip("node2", "link", "show", "ens2np0")
    assert fleet.dump("node3") == state
    assert fleet.play("site").changed() == []


def test_the_verdict_shows_the_reason_and_passes(fleet):
    """That of `site`, which changed nothing."""
    assert fleet.deviations() == []
    verdict = fleet.verdict()
    two, three = verdict["hosts"]["node2"], verdict["hosts"]["node3"]
    rows = [(row["rail"], row["observed"]) for row in two["checks"] if row["id"] == "rail_out_of_service"]
    assert rows == [("rail2", "out of service (RMA 4711)")]
    assert {row["rail"] for row in two["checks"] if row["status"] != "warning"} <= {"rail1", None}
    assert (verdict["status"], three["status"]) == ("pass", "skipped")
    assert "node3" not in json.dumps(verdict["hosts"]["node1"]["checks"])


def test_back_in_service_they_are_as_before(fleet):
    before = lock(fleet)
    del fleet.words["fabric_out_of_service"]
    fleet.play("plan")
    assert lock(fleet) == before
    predicted = fleet.play("hosts", "--check", "--diff").output
    assert "+rule 10002" in predicted
    run = fleet.play("site")
    assert {task["host"] for task in run.tasks if task["changed"]} == {"node2", "node3"}
    assert fleet.deviations() == []
