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
from conftest import REAL

RECORDED = json.loads(recording.FILE.read_text(encoding="utf-8"))


@pytest.fixture
def answers(kubeconfig: Path, installed: None) -> dict[str, list[dict[str, t.Any]]]:
    """Give what the API under test answers to every row."""
    return recording.answers_of_all(kubeconfig, not REAL or recording.SPIDERPOOL)


def test_every_answer_is_as_recorded(answers: dict[str, list[dict[str, t.Any]]]) -> None:
    assert set(RECORDED["rows"]) == set(recording.ROWS)
    assert answers
    reported = {row: list(recording.differences(RECORDED["rows"][row], found)) for row, found in answers.items()}
    assert {row: lines for row, lines in reported.items() if lines} == {}
