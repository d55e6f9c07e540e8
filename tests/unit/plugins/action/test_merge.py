# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook merge, as people start it, and what it makes of its parts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok, skipped
from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import read_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import files, intake, merge, outliers
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.parts import MergedVerdict
from ansible_collections.railops.rdma.tests.unit.book import play
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts

RECORDED = Path(__file__).resolve().parents[2] / "fixtures/verdict/schema1.json"
MERGE = ("-i", "localhost,", "railops.rdma.merge")
UP = ok("network_link", "up", "up", rail="rail1")
DOWN = deviation("network_link", "up", "down", "cable", "plug it in", rail="rail1")


def part(digest, *names, check=None, cluster=None, nodes=None):
    results = [merge.host_result(name, name, digest, [check or UP]) for name in names]
    return merge.merge(digest, results, dict.fromkeys(names), rails=["rail1"], cluster=cluster, nodes=nodes)


def joined(*verdicts, expected=()):
    made = MergedVerdict("d")
    for number, verdict in enumerate(verdicts, 1):
        made.take(f"part{number}", verdict)
    return made.verdict({name: name for name in expected}, ["rail1"])


@pytest.fixture
def parts(tmp_path):
    """A plan of five nodes, and the verdicts of two runs."""
    plan({**exclusive(), "plan_dir": str(tmp_path / "plan")}, hosts(5), check_mode=False)
    digest = read_plan(str(tmp_path / "plan/fabric"))["digest"]
    files.write_json(str(tmp_path / "parts/1/verdict.json"), part(digest, "node1", "node2", check=DOWN))
    files.write_json(str(tmp_path / "parts/2/verdict.json"), part(digest, "node3", "node4"))
    return tmp_path


def test_one_verdict_is_made_and_names_who_was_forgotten(parts):
    done = play(parts, *MERGE)
    assert done.returncode == 2, done.stdout + done.stderr
    verdict = json.loads((parts / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    assert {name: entry["status"] for name, entry in verdict["hosts"].items()} == {
        "node1": "deviation",
        "node2": "deviation",
        "node3": "pass",
        "node4": "pass",
        "node5": "not_verified",
    }
    assert [(row["name"], row["hosts"]) for row in verdict["slices"]] == [
        ("parts/1/verdict.json", 2),
        ("parts/2/verdict.json", 2),
    ]
    assert sum(row["deviations"] for row in verdict["explained"]) == 2
    assert "No part had this host" in (parts / "verify/fabric/verdict.txt").read_text(encoding="utf-8")


def test_parts_of_another_plan_and_what_is_no_verdict_are_refused_at_once(parts):
    files.write_json(str(parts / "parts/2/verdict.json"), part("other", "node3"))
    files.write_text(str(parts / "parts/3/verdict.json"), "{")
    done = play(parts, *MERGE, "-e", '{"merge_verdicts": ["parts/*", "gone/*.json"]}')
    assert done.returncode == 2
    for told in ("parts/2/verdict.json", "it is of the plan 'other'", "parts/3/verdict.json", "gone/*.json"):
        assert told in done.stdout + done.stderr
    assert not (parts / "verify").exists()


def test_all_hosts_pass():
    assert joined(part("d", "a"), part("d", "b"), expected=["a", "b"])["status"] == "pass"


def test_a_host_that_nobody_had_makes_it_incomplete():
    verdict = joined(part("d", "a"), expected=["a", "b"])
    assert (verdict["status"], verdict["hosts"]["b"]["status"]) == ("incomplete", "not_verified")


def test_of_two_answers_the_later_counts_and_silence_is_none():
    lost = merge.merge("d", [], {"a": "a"}, rails=["rail1"])
    assert joined(part("d", "a", check=DOWN), part("d", "a"), lost, expected=["a"])["status"] == "pass"
    assert joined(lost, part("d", "a"), expected=["a"])["status"] == "pass"


def test_the_cluster_comes_from_who_looked_at_it():
    blind = merge.seen_section([skipped("cluster_api", "no kubeconfig is set")])
    good = merge.seen_section([ok("object_state", "3 objects", "3 objects")])
    for order in ((blind, good), (good, blind)):
        verdict = joined(part("d", "a", cluster=order[0]), part("d", "b", cluster=order[1]), expected=["a", "b"])
        assert (verdict["cluster"]["status"], verdict["cluster"]["checks"]) == ("pass", [])


def test_what_one_parts_cluster_said_of_anothers_node_comes_to_its_host():
    bad = deviation("node_resources", 8, 0, "too little", "look", rail="rail1", node="b")
    good = merge.seen_section([ok("object_state", "3 objects", "3 objects")])
    first = part("d", "a", cluster=good, nodes=[bad])
    assert first["cluster"]["checks"][0]["observed"] == "b: 0"
    verdict = joined(first, part("d", "b"), expected=["a", "b"])
    assert verdict["cluster"]["status"] == "pass"
    (check,) = verdict["hosts"]["b"]["checks"]
    assert (check["id"], check["observed"], "node" in check) == ("node_resources", "0", False)
    assert (verdict["hosts"]["b"]["status"], verdict["hosts"]["b"]["counts"]["deviation"]) == ("deviation", 1)
    # Who looked at the cluster itself has said of its own nodes what there is to say.
    both = joined(first, part("d", "b", cluster=good), expected=["a", "b"])
    assert (both["status"], both["cluster"]["checks"]) == ("pass", [])


def test_a_verdict_of_schema_1_is_merged_and_one_of_tomorrow_refused():
    old = json.loads(RECORDED.read_text(encoding="utf-8"))
    made = MergedVerdict(old["plan_digest"])
    made.take("old", old)
    verdict = made.verdict({"node1": "node1"}, old["rails"])
    assert (verdict["schema"], verdict["hosts"]["node1"]["counts"]["warning"]) == (2, 0)
    made.take("new", {**old, "schema": 3})
    with pytest.raises(InputError, match="schema 3"):
        made.verdict({}, [])


def told(rng, name):
    """Return what an audit of a host wrote, with ports of few kinds, and a duplicate address now and then."""
    rails = ("rail1", "rail2")
    macs = {rail: f"00:00:5e:00:53:{int(name[4:]):x}{rail[4:]}" for rail in rails}
    seen = {
        rail: {
            **{"interface": f"ens{rail[4:]}", "pci_id": "15b3:1021", "driver": "mlx5_core", "version": "24.10"},
            "firmware": rng.choice(["28.40", "28.40", "28.39"]),
            "speed": rng.choice([400000, 400000, 200000]),
        }
        for rail in rails
    }
    checks = [ok("network_link", "up", "up", rail=rail) for rail in rails]
    if rng.random() < 0.3:
        other = f"00:00:5e:00:53:{rng.randint(1, 9):x}1"
        checks.append(deviation("address_duplicate", "nobody else", other, "Somebody has it.", "x", rail="rail1"))
    if rng.random() < 0.2:
        checks.append(DOWN)
    return merge.host_result(name, name, "d", checks, facts={"health": {"rails": seen}, "macs": macs})


def verdict_of(results):
    ports = outliers.PortKinds()
    names = {result["host"]: result["host"] for result in results}
    rows = [intake.result_in(result, ["rail1", "rail2"]) for result in results]
    made = merge.merge("d", outliers.compare_fleet(lambda _whole: rows, ports), names, rails=["rail1", "rail2"])
    return json.loads(json.dumps({**made, "ports": ports.kinds}))


@pytest.mark.parametrize("seed", range(40))
def test_parts_say_of_the_fleet_what_one_run_would_have_said(seed):
    """Whatever the cut: who is unlike the others, and whose address a duplicate is, does not depend on it."""
    rng = random.Random(seed)
    results = [told(rng, f"node{number}") for number in range(1, rng.randint(3, 10))]
    rng.shuffle(results)
    cut = rng.randint(0, len(results))
    made = MergedVerdict("d", ["rail1", "rail2"])
    for number, rows in enumerate((results[:cut], results[cut:]), 1):
        made.take(f"part{number}", verdict_of(rows))
    verdict = made.verdict({}, ["rail1", "rail2"])
    whole = verdict_of(results)
    for entry in (*verdict["hosts"].values(), *whole["hosts"].values()):
        entry.pop("facts")
    assert verdict["hosts"] == whole["hosts"]
    assert verdict["status"] == whole["status"]


def test_a_host_without_facts_keeps_what_its_part_found():
    odd = {**part("d", "a"), "ports": []}
    slow = deviation("fleet_speed", "400 Gb/s", "200 Gb/s", "slow", "look", rail="rail1")
    odd["hosts"]["a"] = merge.added(odd["hosts"]["a"], [merge.normal_check(slow)])
    assert [check["id"] for check in joined(odd, part("d", "b"))["hosts"]["a"]["checks"]] == ["fleet_speed"]


def test_the_facts_of_a_fleet_that_is_alike_are_told_once():
    results = [told(random.Random(1), f"node{number}") for number in range(1, 9)]
    verdict = verdict_of(results)
    assert len(verdict["ports"]) <= 2
    facts = verdict["hosts"]["node1"]["facts"]
    assert set(facts) == {"ports", "macs"}
    # Of each port of a fleet of thousands a verdict bears its number and its hardware address.
    assert len(json.dumps(facts)) < 60 * len(facts["macs"])
    assert set(verdict["ports"][0]) == {"pci_id", "driver", "version", "firmware", "speed"}
