# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook merge, and that the parts of several runs say what one run would have said."""

from __future__ import annotations

import json
import random

import pytest

from ansible_collections.railops.rdma.plugins.action import verdict as verdict_action
from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, ok, skipped, warning
from ansible_collections.railops.rdma.plugins.plugin_utils._host_plan import read_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import files, merge, parts, result
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts
from ansible_collections.railops.rdma.tests.unit.playbook_run import play

MERGE = ("-i", "localhost,", "railops.rdma.merge")
UP = ok("network_link", "up", "up", rail="rail1")
DOWN = deviation("network_link", "up", "down", "cable", "plug it in", rail="rail1")
OBJECTS = ok("object_state", "3 objects", "3 objects")
BLIND = skipped("cluster_api", "no kubeconfig is set")


class Site:
    """A plan of five nodes, and the verdicts of runs."""

    def __init__(self, folder):
        self.folder = folder
        plan({**exclusive(), "plan_dir": str(folder / "plan")}, hosts(5), check_mode=False)
        self.digest = read_plan(str(folder / "plan/fabric"))["digest"]

    def act(self, place, **args):
        usual = {"plan_dir": str(self.folder / "plan/fabric"), "verify_dir": str(self.folder / place), "show": False}
        return action_of(verdict_action, {**usual, **args}).run(task_vars={"inventory_hostname": "localhost"})

    def run(self, place, *names, check=UP, facts=None, lost=(), **found):
        """Play a run over these hosts, whose files are in this folder."""
        for name in lost:
            result.write_unreachable(str(self.folder / place), name, "No SSH server answers.")
        for name in (name for name in names if name not in lost):
            checks = check if isinstance(check, list) else [check]
            self.write(place, merge.host_result(name, name, self.digest, checks, facts=facts))
        return self.act(place, hosts=list(names), fail=False, **found)

    def write(self, place, result):
        files.write_json(files.result_path(str(self.folder / place), result["host"]), result)

    def verdict(self, place):
        return json.loads((self.folder / place / "verdict.json").read_text(encoding="utf-8"))

    def merge(self, *places):
        self.act("merged", folders=[str(self.folder / place) for place in places], fail=False)
        return self.verdict("merged")


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_one_verdict_is_made_and_names_the_hosts_that_no_run_had(site):
    site.run("parts/1", "node1", "node2", check=DOWN)
    site.run("parts/2", "node3", "node4", lost=["node4"])
    done = play(site.folder, *MERGE)
    assert done.returncode == 2, done.stdout + done.stderr
    verdict = site.verdict("verify/fabric")
    assert {name: entry["status"] for name, entry in verdict["hosts"].items()} == {
        "node1": "deviation",
        "node2": "deviation",
        "node3": "pass",
        "node4": "unreachable",
        "node5": "not_verified",
    }
    assert verdict["parts"] == ["parts/1", "parts/2"]
    assert [row["checks"] for row in verdict["causes"] if row["check"] == "network_link"] == [2]
    assert "No part had this host" in (site.folder / "verify/fabric/verdict.txt").read_text(encoding="utf-8")


def test_folders_of_another_plan_and_those_that_are_none_are_refused_at_once(site):
    site.run("parts/1", "node1")
    escape = {**files.read_json(str(site.folder / "parts/1/sections.json")), "require": ["\x1b"]}
    for number, text in enumerate(['{"a": 1}', "{", "[" * 5000, '{"checks": 5}', json.dumps(escape)], 3):
        files.write_text(str(site.folder / f"parts/{number}/sections.json"), text)
    parts.write_part(parts.read_part(str(site.folder / "parts/1"), site.digest), "other")
    (site.folder / "parts/2").mkdir()
    done = play(site.folder, *MERGE, "-e", '{"merge_folders": ["parts/*", "gone/*"]}')
    assert done.returncode == 2
    shown = ["it is of the plan 'other'", "[merge_path]", "[merge_not_managed]", "gone/*"]
    shown += [f"parts/{number}/sections.json" for number in range(1, 8)]
    assert [text for text in shown if text not in done.stdout + done.stderr] == []
    assert not (site.folder / "verify").exists()


def test_a_stale_host_plan_that_no_run_had_has_no_part_in_the_verdict(site):
    """A merge in git can leave one behind."""
    folder = site.folder / "plan/fabric/hosts"
    stale = {**json.loads((folder / "node5.json").read_text(encoding="utf-8")), "node": "old"}
    (folder / "old.json").write_text(json.dumps(stale), encoding="utf-8")
    site.run("1", *(f"node{number}" for number in range(1, 6)))
    verdict = site.merge("1")
    assert (verdict["status"], sorted(verdict["hosts"])) == ("pass", [f"node{number}" for number in range(1, 6)])


def test_for_a_host_of_two_runs_the_newer_counts_unless_it_did_not_answer(site):
    site.run("new", "node1", check=DOWN)
    site.run("newer", "node1")
    site.run("newest", "node1", lost=["node1"])
    for order in (["new", "newer", "newest"], ["newest", "newer", "new"]):
        assert site.merge(*order)["hosts"]["node1"]["status"] == "pass"
    assert site.merge("newest")["hosts"]["node1"]["status"] == "unreachable"


def test_a_result_that_another_run_left_in_the_folder_is_not_this_ones(site):
    site.run("parts", "node1", check=DOWN)
    site.run("parts", "node2")
    assert site.merge("parts")["hosts"]["node1"]["status"] == "not_verified"


def test_plan_and_cluster_come_from_the_runs_that_looked_at_them(site):
    site.run("1", "node1", cluster=[BLIND], plan_reason="localhost is not in the play")
    site.run("2", "node2", cluster=[OBJECTS], plan=[ok("plan_inventory", "same", "same")])
    for order in (["1", "2"], ["2", "1"]):
        verdict = site.merge(*order)
        assert [verdict[name]["status"] for name in ("cluster", "plan")] == ["pass", "pass"]
        assert [verdict[name]["checks"] for name in ("cluster", "plan")] == [[], []]
    assert site.merge("1")["cluster"] == {**site.verdict("1")["cluster"]}
    site.run("3", "node3", cluster_error="no API")
    assert site.merge("1", "2", "3")["cluster"]["error"] == "no API"


def test_node_state_reaches_its_host_in_another_part(site):
    bad = deviation("node_resources", 8, 0, "too little", "look", rail="rail1", node="node2")
    assert site.run("1", "node1", cluster=[OBJECTS], nodes=[bad])["status"] == "deviation"
    assert site.verdict("1")["cluster"]["checks"][0]["observed"] == "node2: 0"
    site.run("2", "node2", cluster=[OBJECTS], nodes=[bad])
    for places in (["1", "2"], ["2", "1"]):
        verdict = site.merge(*places)
        assert verdict["cluster"]["status"] == "pass"
        (check,) = verdict["hosts"]["node2"]["checks"]
        assert (check["id"], check["observed"], "node" in check) == ("node_resources", 0, False)
        assert verdict["hosts"]["node2"]["counts"]["deviation"] == 1


def test_what_one_run_must_not_skip_none_may(site):
    site.run("1", "node1", require=["traffic"])
    verdict = site.merge("1")
    assert [check["id"] for check in verdict["cluster"]["checks"]] == ["verify_require"]


def test_an_acceptance_keeps_what_the_last_verdict_knew_of_plan_cluster_and_nodes(site):
    bad = deviation("node_resources", 8, 0, "too little", "look", rail="rail1", node="node1")
    site.run("1", "node1", cluster=[OBJECTS], nodes=[bad], plan_error="no inventory")
    slow = deviation("accept_fabric", "fast", "slow", "uplinks", "look")
    site.run("1", "node1", cluster=[slow], keep=True)
    site.run("1", "node1", cluster=[{**slow, "cause": "cables"}], keep=True)
    verdict = site.verdict("1")
    assert [check["cause"] for check in verdict["cluster"]["checks"]] == ["cables"]
    assert verdict["cluster"]["made"] == ["object_state"]
    assert verdict["plan"]["error"] == "no inventory"
    assert [check["id"] for check in verdict["hosts"]["node1"]["checks"]] == ["node_resources"]


def test_a_run_that_breaks_off_leaves_a_part_without_an_answer(site):
    site.run("1", "node1", cluster=[OBJECTS])
    site.act("1", hosts=["node1"], phase="begin")
    assert site.merge("1")["hosts"]["node1"]["status"] == "unreachable"


def recorded(rng, name):
    """Return what an audit of a host wrote, with ports of few kinds, and a duplicate address now and then."""
    rails = [f"rail{number}" for number in range(1, 9)]
    macs = {rail: f"00:00:5e:00:5{name[4:]}:{rail[4:]:0>2}" for rail in rails}
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
        other = f"00:00:5e:00:5{rng.randint(1, 5)}:01"
        checks.append(deviation("address_duplicate", "unused", other, "It is answered.", "x", rail="rail1"))
    if rng.random() < 0.2:
        macs["rail1"] = "00:00:5e:00:51:02"
    if rng.random() < 0.2:
        checks += [DOWN, warning("port_order", 0, 1, "reordered", "x", rail="rail2")]
    return checks, {"health": {"rails": seen}, "macs": macs}


@pytest.mark.parametrize("seed", range(20))
def test_parts_say_what_one_run_would_have_said(site, seed):
    rng = random.Random(seed)
    names = [f"node{number}" for number in range(1, 6)]
    rng.shuffle(names)
    cut = rng.randint(0, 5)
    for name in names:
        checks, facts = recorded(rng, name)
        for place in ("whole", "1" if name in names[:cut] else "2"):
            site.write(place, merge.host_result(name, name, site.digest, checks, facts=facts))
    for place, own in (("whole", names), ("1", names[:cut]), ("2", names[cut:])):
        site.act(place, hosts=own, fail=False)
    verdict, whole = site.merge("1", "2"), site.verdict("whole")
    assert {key: value for key, value in verdict.items() if key not in ("parts", "time")} == {
        key: value for key, value in whole.items() if key != "time"
    }


@pytest.mark.parametrize("text", ["{", "[" * 5000, "\xff", '{"host": "node1", "checks": 5}', "[]"])
def test_a_result_of_a_part_that_is_none_is_no_answer(site, text):
    site.run("1", "node1", "node2")
    (site.folder / "1/hosts/node1.json").write_bytes(text.encode("latin-1"))
    hosts = site.merge("1")["hosts"]
    assert (hosts["node1"]["status"], hosts["node2"]["status"]) == ("unreachable", "pass")
