# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold the API, double or real, to what was recorded, and each rule of the double to the table of recordings."""

from __future__ import annotations

import ast
import json
import typing as t
from collections import Counter
from pathlib import Path

import pytest
import recording
import yaml
from api_pods import Pods
from conftest import PLAYED, REAL

HERE = Path(__file__).resolve().parent
FILES = ("api_store", "api_fields", "api_double", "api_controllers", "api_pods")
RULES = yaml.safe_load((HERE / "rules.yml").read_text(encoding="utf-8"))
BEYOND = RULES["beyond"]
UNTRIED = {row for row, held in BEYOND.items() if held == "nothing"}
RECORDED = json.loads(recording.FILE.read_text(encoding="utf-8"))


def functions() -> t.Iterator[str]:
    """Give the functions of the double by file and class; dunders are no rules."""
    for name in FILES:
        for node in ast.parse((HERE / f"{name}.py").read_text(encoding="utf-8")).body:
            inside = node.body if isinstance(node, ast.ClassDef) else [node]
            prefix = f"{name}.{node.name}." if isinstance(node, ast.ClassDef) else f"{name}."
            found = (one.name for one in inside if isinstance(one, ast.FunctionDef))
            yield from (f"{prefix}{one}" for one in found if not one.startswith("__"))


@pytest.fixture
def answers(kubeconfig: Path, installed: None) -> dict[str, list[dict[str, t.Any]]]:
    """Give what the API under test answers to every row."""
    if REAL:
        return recording.ask_all(kubeconfig, recording.levels() if PLAYED else set())
    return recording.ask_all(kubeconfig, {"controllers", "webhooks"}, UNTRIED)


def test_every_answer_is_as_recorded(answers: dict[str, list[dict[str, t.Any]]]) -> None:
    assert set(RECORDED["rows"]) == set(recording.ROWS)
    assert answers
    told = {}
    for row, found in answers.items():
        held = "all" if REAL else BEYOND.get(row, "all")
        wanted = RECORDED["rows"][row]
        if held == "codes":
            wanted = [{"code": answer["code"]} for answer in wanted]
        told[row] = list(recording.differences(wanted, found))
    assert {row: lines for row, lines in told.items() if lines} == {}


def test_every_rule_of_the_double_names_its_recording_or_that_it_has_none() -> None:
    listed = Counter(name for part, names in RULES.items() if part != "beyond" for name in names)
    assert [name for name, count in listed.items() if count > 1] == []
    assert set(listed) == set(functions())


def test_the_recordings_that_rules_name_are_there() -> None:
    named = {row for rows in RULES["recorded"].values() for row in rows}
    assert named | set(BEYOND) == set(RECORDED["rows"])


@pytest.mark.parametrize(
    ("number", "node", "limits"),
    [
        pytest.param(
            0, {"spec": {"taints": [{"key": "site", "value": "own", "effect": "NoSchedule"}]}}, {}, id="taint"
        ),
        pytest.param(1, {"spec": {"unschedulable": True}}, {}, id="cordon"),
        pytest.param(2, {"spec": {}}, {"x.y/z": 1}, id="amount"),
    ],
)
def test_the_scheduler_speaks_as_recorded(
    double: t.Any, number: int, node: dict[str, t.Any], limits: dict[str, int]
) -> None:
    double.put("v1", "Node", "row-38", **node)
    field = {"key": "metadata.name", "operator": "In", "values": ["row-38"]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec = {"containers": [{"name": "main", "resources": {"limits": limits}}], "affinity": {"nodeAffinity": affinity}}
    _node, why = Pods(double).schedule(spec)
    (condition,) = RECORDED["rows"]["row-38"][number]["body"]["conditions"]
    # A node without a kubelet has room for no pod at all either.
    assert recording.for_any_nodes(why) == condition["message"].replace("1 Too many pods, ", "")


def test_another_answer_is_told() -> None:
    """A comparison that cannot fail would hold nothing."""
    recorded = RECORDED["rows"]["row-03"]
    assert list(recording.differences(recorded, [{"code": 201, "body": {}}, {"code": 200, "body": {}}]))
    whole = [{"code": 200, "body": {"data": {"a": "1"}}}]
    assert list(recording.differences(whole, [{"code": 200, "body": {"data": {"a": "1"}, "more": 1}}]))
    assert list(recording.differences(whole, whole)) == []
