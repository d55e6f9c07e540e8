# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/replaces.md: every step of the guides has an answer, and none of those that were open is missing."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/replaces.md"
ANSWERS = {"done", "refused", "left out"}
# The steps that a review of 142 found partial, missing or wrong (2026-11-21), by its numbers.
OPEN = {
    6,
    16,
    19,
    23,
    27,
    31,
    51,
    67,
    68,
    70,
    72,
    73,
    84,
    85,
    86,
    100,
    104,
    106,
    112,
    113,
    117,
    122,
    *range(127, 131),
    136,
}
ALL = 142


def rows():
    """Return the cells of every row: the guides' step, the answer, where or why."""
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", "| the guides")):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def numbers(step):
    """Return the numbers in brackets at the end of a step."""
    named = re.search(r"\((\d+(?:, \d+)*)\)$", step)
    return [int(number) for number in named[1].split(", ")] if named else []


def test_no_row_is_without_an_answer():
    assert len(rows()) > 50
    for row in rows():
        assert len(row) == 3, row
        assert row[1] in ANSWERS, row
        assert len(row[2]) > 10, row


def test_what_is_left_out_says_why():
    short = [row[0] for row in rows() if row[1] == "left out" and len(row[2].split()) < 5 and "the same" not in row[2]]
    assert short == []


def test_every_step_that_was_open_is_there_once():
    found = [number for row in rows() for number in numbers(row[0])]
    assert sorted(found) == sorted(OPEN)
    assert len(OPEN) == 27
    text = PAGE.read_text(encoding="utf-8")
    assert f"{ALL} steps" in text
    assert f"{len(OPEN)} that were" in text
    assert f"{ALL - len(OPEN)} were in order" in text.replace("\n", " ")
