# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The corpus of bad input: each case is one clear error with place, value and fix, and nothing is written."""

from __future__ import annotations

import json
import os
import pathlib

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock as locks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails

CASES = yaml.safe_load((pathlib.Path(__file__).parents[3] / "data/bad_fabrics.yml").read_text())


def merged(text):
    data = json.loads(text)
    data["nodes"]["node3"]["slot"] = 1
    return json.dumps(data)


def traverses(text):
    data = json.loads(text)
    data["nodes"]["../node3"] = data["nodes"].pop("node3")
    return locks.write_lock(
        data["frozen"], {name: locks.Entry(**one) for name, one in data["nodes"].items()}, data["files"]
    )[0]


LOCKS = {
    "good": lambda text: text,
    "truncated": lambda text: text[: len(text) // 2],
    "conflict": lambda text: "<<<<<<< HEAD\n" + text,
    "list": lambda text: "[]",
    "binary": lambda text: b"\xff\xfe" + text.encode(),
    "format": lambda text: text.replace('"format": 1', '"format": 99'),
    "tampered": lambda text: text.replace('"slot": 2', '"slot": 3'),
    "merged": merged,
    "traverses": traverses,
}


def good(folder):
    return {**exclusive(rails=rails(2), max_nodes=4), "plan_dir": str(folder)}


def files(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_the_corpus_is_as_large_as_promised_and_its_base_is_good(tmp_path):
    assert len(CASES) >= 60
    assert len({case["id"] for case in CASES}) == len(CASES)
    assert run(good(tmp_path), hosts(3), check_mode=True)["changed"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_bad_input_is_one_clear_error_and_writes_nothing(tmp_path, case):
    lock = tmp_path / "fabric/plan.json"
    if "lock" in case:
        run(good(tmp_path), hosts(3), check_mode=False)
        text = LOCKS[case["lock"]](lock.read_text())
        lock.write_bytes(text if isinstance(text, bytes) else text.encode())
    before = files(tmp_path)
    raw = {**good(tmp_path), **case.get("fabric", {})}
    if "existing_plans" in raw:
        raw["existing_plans"] = [str(lock) if path == "PLAN" else path for path in raw["existing_plans"]]

    with pytest.raises(InputError) as caught:
        run(raw, case.get("nodes", hosts(3)), check_mode=False)

    place = case["place"].replace("PLAN", str(lock))
    if place.startswith("plan.json"):
        place = str(tmp_path / "fabric") + os.sep + place
    problem = next((one for one in caught.value.problems if one.place == place), None)
    assert problem, f"no problem at {place}: {caught.value}"
    assert str(case["value"]) in problem.problem
    assert case["fix"] in problem.fix
    assert len(caught.value.problems) <= 1 + case.get("also", 0), str(caught.value)
    assert problem.problem.endswith(".")
    assert "Traceback" not in str(caught.value)
    assert files(tmp_path) == before


def test_all_problems_come_at_once(tmp_path):
    raw = {**good(tmp_path), "mtu": 1, "vfs": 0, "name": "A", "retire": ["B"], "supernets": ["10.0.0.1/8"]}
    raw["rails"] = [{"interface": "x" * 20}, {"name": "_"}]
    raw["existing_plans"] = ["/nonexistent"]

    with pytest.raises(InputError) as caught:
        run(raw, [], check_mode=False)

    assert {problem.place for problem in caught.value.problems} == {
        "fabric_mtu",
        "fabric_vfs",
        "fabric_name",
        "fabric_retire[0]",
        "fabric_supernets[0]",
        "fabric_rails[0].interface",
        "fabric_rails[1].interface",
        "fabric_rails[1].name",
        "fabric_existing_plans[0]",
    }
    assert [set(row) for row in caught.value.facts["problems"]] == [{"place", "problem", "fix"}] * 9


def test_the_same_mistake_on_every_node_is_listed_ten_times_and_counted(tmp_path):
    with pytest.raises(InputError) as caught:
        run(good(tmp_path), [{"host": f"Node_{number}"} for number in range(500)], check_mode=False)

    assert len(caught.value.problems) == 11
    assert "490 more places have the same problem" in str(caught.value)
