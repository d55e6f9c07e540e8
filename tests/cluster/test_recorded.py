# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold the API, double or real, to what was recorded."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
import recording
from conftest import PLAYED, REAL

# Recorded, and more than the double does: a real API is held to all of it, the double to this much.
BEYOND = {
    "row-32": "nothing",  # it checks types alone: no limits of a schema, no CEL
    "row-34": "codes",  # tests/admission refuses the same for the same reasons, in words of its own
    "row-35": "codes",  # and Go's way to print a struct
    "row-37": "nothing",  # the coordinator comes with the chart's first Job
    "row-38": "nothing",  # it makes pods of its own Jobs alone; the scheduler is asked below
}
UNTRIED = {row for row, held in BEYOND.items() if held == "nothing"}
RECORDED = json.loads(recording.FILE.read_text(encoding="utf-8"))


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


def test_another_answer_is_told() -> None:
    """A comparison that cannot fail would hold nothing."""
    recorded = RECORDED["rows"]["row-03"]
    assert list(recording.differences(recorded, [{"code": 201, "body": {}}, {"code": 200, "body": {}}]))
    whole = [{"code": 200, "body": {"data": {"a": "1"}}}]
    assert list(recording.differences(whole, [{"code": 200, "body": {"data": {"a": "1"}, "more": 1}}]))
    assert list(recording.differences(whole, whole)) == []
