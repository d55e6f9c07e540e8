# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One host's nonsense is that host's error: the others' verdict stays whole, and no output has an escape."""

from __future__ import annotations

import json
import time

import pytest

from ansible_collections.railops.rdma.plugins.action import verify_result
from ansible_collections.railops.rdma.plugins.plugin_utils._json_lines import json_lines
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.plugins.plugin_utils._report.verdict import verdict_data
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import text as verdict_text
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.intake import answer_in
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.metrics import metrics
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.parts import part_of
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts

RAILS = ["rail1", "rail2"]
ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028"


def check(**values):
    usual = {"id": "network_link", "rail": "rail1", "status": "deviation", "planned": "up", "observed": "down"}
    return {**usual, "cause": "no carrier", "fix": "Look at cable, transceiver and switch port.", **values}


def nested(depth):
    value = "x"
    for _level in range(depth):
        value = [value]
    return value


def result(host, *checks, **more):
    head = {"schema": 1, "host": host, "node": host, "plan_digest": "d", "error": None}
    return {**head, "checks": list(checks), **more}


def fleet(*results):
    """Return the verdict of a fleet of which node1 and node3 are well, as the action makes it."""
    rows = [result("node1", check()), *results, result("node3", check(rail="rail2"))]
    return with_causes(merge.merge("d", rows, {row["host"]: row["host"] for row in rows}, rails=RAILS), {})


def outputs(verdict):
    """Return every output that a person reads."""
    texts = [verdict_text.terminal(verdict, "fabric"), verdict_text.markdown(verdict, "fabric")]
    return [
        *texts,
        json.dumps(verdict_data(verdict, ()), ensure_ascii=False),
        metrics(verdict, "fabric", 1.0),
        json_lines(verdict, 2),
    ]


def assert_outputs_printable(verdict):
    for text in outputs(verdict):
        assert_printable(text)


def assert_printable(text):
    assert [char for char in text if not char.isprintable() and char != "\n"] == []


NONSENSE = [
    pytest.param(check(rail=["a"]), "a list", id="rail-list"),
    pytest.param(check(rail="rail9"), "'rail9' is no rail", id="rail-unknown"),
    pytest.param(check(rail=f"rail1{ESCAPE}"), "is no rail", id="rail-escape"),
    pytest.param(check(id={}), "a dict is no id", id="id-dict"),
    pytest.param(check(id="made_up"), "'made_up' is no id", id="id-unknown"),
    pytest.param(check(id=f"network_link{ESCAPE}"), "is no id", id="id-escape"),
    pytest.param(check(status={}), "status of network_link of rail1", id="status"),
    pytest.param(check(observed=nested(400)), "network_link of rail1 is nested more than 16 deep", id="deep"),
    pytest.param(check(observed=nested(100_000)), "network_link of rail1 is nested more than 16 deep", id="deeper"),
    pytest.param(check(observed="x" * 50_000_000), "more than 8,000,000 characters", id="50-mb"),
    pytest.param(check(observed=[[]] * 1_000_000), "200,000 values", id="wide"),
    pytest.param(check(cause=["x"]), "cause of network_link of rail1", id="cause"),
    pytest.param(check(fix=5), "fix of network_link of rail1", id="fix"),
    pytest.param(check(family={}), "family of network_link of rail1", id="family"),
    pytest.param(check(peers=[{}]), "peers of network_link of rail1", id="peers"),
    pytest.param(check(peers=5), "peers of network_link of rail1", id="peers-number"),
    pytest.param(check(object={}), "object of network_link of rail1", id="object"),
    pytest.param(check(observed=float("nan")), "a number", id="nan"),
    pytest.param(check(observed=10**5000), "a number of more than 64 bits", id="number"),
]


@pytest.mark.parametrize(("answer", "kind"), NONSENSE)
def test_invalid_answer_is_an_error_of_its_host_only(answer, kind):
    began = time.process_time()
    verdict = fleet(result("node2", check(rail="rail2"), answer))
    assert verdict["hosts"]["node2"]["status"] == "error"
    assert kind in verdict["hosts"]["node2"]["error"]
    assert len(verdict["hosts"]["node2"]["error"]) < 250
    assert [row["rail"] for row in verdict["hosts"]["node2"]["checks"]] == ["rail2"]
    sound = fleet(result("node2"))
    for name in ("node1", "node3"):
        assert verdict["hosts"][name] == sound["hosts"][name]
    assert_outputs_printable(verdict)
    assert time.process_time() - began < 20


@pytest.mark.parametrize(
    "facts",
    [
        ["x"],
        {"health": ["x"]},
        {"health": {"rails": {"rail1": "x"}}},
        {"health": {"rails": {f"rail1{ESCAPE}": {}}}},
        {"health": {"rails": {"rail1": {"pci_id": "a", "speed": "fast"}}}},
        {"health": {"rails": {"rail1": {"pci_id": ["a"], "firmware": "1"}}}},
        {"macs": {"rail1": ["a"]}},
        {"macs": {"rail1": ESCAPE}},
        {"macs": {"rail9": "00:00:5e:00:53:01"}},
        {"health": {"rails": {"rail9": {"firmware": "1"}}}},
        {"health": {"rails": {"rail1": {"firmware": "1" * 101}}}},
        {"more": nested(400)},
    ],
)
def test_facts_that_the_fleet_cannot_be_compared_by_are_the_hosts_error(facts):
    verdict = fleet(result("node2", check(), facts=facts))
    assert verdict["hosts"]["node2"]["status"] == "error"
    assert [row["id"] for row in verdict["hosts"]["node2"]["checks"]] == ["network_link"]
    assert verdict["hosts"]["node1"]["status"] == "deviation"


MADE_UP = {f"r{number}": number for number in range(10_000)}
LIES = [
    pytest.param({"macs": dict.fromkeys(MADE_UP, "00:00:5e:00:53:01")}, id="macs"),
    pytest.param({"health": {"rails": {rail: {"pci_id": "a", "firmware": "evil"} for rail in MADE_UP}}}, id="ports"),
]


@pytest.mark.parametrize("facts", LIES)
def test_a_host_speaks_for_no_rail_but_the_plans(facts):
    """10,000 made-up rails were 10,000 votes, and 10,000 squared letters (attacks S1 and S2)."""
    own = {"macs": {"rail1": "00:00:5e:00:53:01"}, "health": {"rails": {"rail1": {"pci_id": "a", "firmware": "1"}}}}
    verdict = fleet(result("node2", facts=facts), result("node4", facts=own))
    assert verdict["hosts"]["node2"]["status"] == "error"
    assert verdict["hosts"]["node4"]["status"] == "pass"
    assert len(json_lines(verdict, 2)) < 5000


@pytest.mark.parametrize(
    "many",
    [
        pytest.param([[]] * 200_001, id="values"),
        pytest.param([check()] * 30_000, id="checks"),
        pytest.param([check(cause="x" * 290)] * 28_000, id="letters"),
    ],
)
def test_an_answer_of_many_small_things_is_measured_too(many):
    answer = answer_in(many)
    assert "200,000 values" in answer.error
    assert sum(len(row["cause"]) for row in answer.checks) <= 8_000_300


def test_a_host_has_no_more_checks_than_its_rails_can_have():
    most = 2 * len(IDS) * 3
    answer = answer_in([check()] * (most + 5), RAILS)
    assert answer.error.startswith(f"The answer is refused: more than {most:,} checks")
    assert len(answer.checks) == most + 1
    assert answer_in([check()] * most, RAILS).error == ""


def test_control_characters_are_shown_as_numbers():
    answer = check(
        cause=f"Kabel löst sich é 光 {ESCAPE}", observed={f"ke\ty{ESCAPE}": [f"\n{ESCAPE}"]}, object=f"/dev/{ESCAPE}"
    )
    verdict = fleet(result("node2", answer))
    assert verdict["hosts"]["node2"]["status"] == "deviation"
    (found,) = verdict["hosts"]["node2"]["checks"]
    assert found["cause"] == "Kabel löst sich é 光 \\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\u202e\\u2028"
    assert found["observed"] == {
        "ke\\x09y" + found["cause"].rpartition(" ")[2]: ["\\x0a" + found["cause"].rpartition(" ")[2]]
    }
    for text in outputs(verdict):
        assert_printable(text)
        assert "]0;owned" in text or text.startswith("# HELP")


def test_a_picture_has_no_escape_of_others_even_of_a_verdict_that_was_not_checked():
    """M5: id and rail went to the terminal as they were."""
    row = {**check(), "id": f"network_link{ESCAPE}", "rail": f"rail1{ESCAPE}"}
    entry = {"status": "deviation", "node": None, "rails": {}, "counts": merge.counts_of([row]), "checks": [row]}
    section = {"status": "pass", "checks": []}
    verdict = {"hosts": {"node1": entry}, "plan": section, "cluster": section, "rails": RAILS, "status": "deviation"}
    for text in outputs({**verdict, "plan_digest": "d"})[:4]:
        assert_printable(text)


@pytest.fixture
def planned(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(2), check_mode=False)
    return tmp_path


# Ansible itself copies the arguments of a task, and hands on nothing that is as deep as the deeper one.
@pytest.mark.parametrize(("answer", "kind"), [param for param in NONSENSE if param.id != "deeper"])
def test_what_a_module_returned_is_looked_at_before_it_is_written(planned, answer, kind):
    args = {"plan_dir": str(planned / "fabric"), "verify_dir": str(planned / "verify")}
    args["results"] = [{"checks": [check(), answer], "facts": {}}, {"skipped": True}, {"msg": "no checks"}]
    made = action_of(verify_result, args).run(task_vars={"inventory_hostname": "node2"})
    assert made["status"] == "error"
    written = json.loads((planned / "verify/hosts/node2.json").read_text())
    assert kind in written["error"]
    assert [row["id"] for row in written["checks"]] == ["network_link"]
    assert_printable((planned / "verify/hosts/node2.json").read_text())


def test_an_answer_of_thousands_of_wrong_checks_says_how_many():
    answer = answer_in([check(id=f"made_up{number}") for number in range(5000)], RAILS)
    assert answer.error.startswith("The answer is refused: 'made_up0' is no id of a check (4,999 more like it). Check")
    many = answer_in([check(rail="rail2")] * 100_000 + [check(id=5)] * 1_000_000)
    assert "200,000 values" in answer_in([many.wrong, [check()] * 300_000]).error or len(many.checks) < 200_000


def test_the_cluster_checks_of_nodes_are_looked_at_too():
    odd = [check(node="node1", id="node_resources", rail=None), check(node={}, id="node_resources"), check(id=[])]
    part = part_of("", {"hosts": ["node1"], "require": [], "checks": {"nodes": odd}, "errors": {"cluster": "no API"}})
    assert [row["id"] for row in part.checks["nodes"]] == ["node_resources"]
    assert part.errors["cluster"].startswith("no API; The answer is refused: ")
    assert "1 more like it" in part.errors["cluster"]


def test_the_nodes_of_a_large_cluster_are_not_too_many():
    resources = dict.fromkeys((f"rdma/rail{number}" for number in range(8)), 8)
    nodes = [f"n{number}" for number in range(10_000)]
    rows = [check(node=node, id="node_resources", planned=resources, observed=resources) for node in nodes]
    part = part_of("", {"hosts": nodes, "require": [], "checks": {"nodes": rows}, "errors": {}})
    assert (len(part.checks["nodes"]), part.errors["cluster"]) == (10_000, None)
