# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/replaces.md: every step of the guides has an answer, and every answer its step."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs/replaces.md"
ANSWERS = {"done", "refused", "left out"}
# Rows that answer no step of the list: older editions of the guides, or what one meets on the way.
BESIDE = ("another CNI", "inbox drivers", "mlnxofedinstall", "upgrade of a driver", "interface names", "add a node")


def table(text, head):
    """Return the cells of every row of the tables in a text, without their head."""
    found = []
    for line in text.splitlines():
        if line.startswith("| ") and not line.startswith(("| ---", head)):
            found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found


def rows():
    """Return the cells of every row: the guides' step, the answer, where or why."""
    return table(PAGE.read_text(encoding="utf-8").partition("\n## The list\n")[0], "| the guides")


def steps():
    """Return the cells of the list: number, guides, step, the beginning of the row that answers it."""
    return table(PAGE.read_text(encoding="utf-8").partition("\n## The list\n")[2], "| no.")


def test_no_row_is_without_an_answer():
    assert len(rows()) > 50
    for row in rows():
        assert len(row) == 3, row
        assert row[1] in ANSWERS, row
        assert len(row[2]) > 10, row


def test_what_is_left_out_says_why():
    short = [row[0] for row in rows() if row[1] == "left out" and len(row[2].split()) < 5 and "the same" not in row[2]]
    assert short == []


def test_every_step_of_the_list_has_its_row():
    listed = steps()
    assert [int(number) for number, *_rest in listed] == list(range(1, len(listed) + 1))
    text = PAGE.read_text(encoding="utf-8")
    assert f"{len(listed)} steps" in text.partition("\n## The list\n")[2]
    guides = set(re.findall(r"^- \*\*(\w)\*\*: ", text, re.MULTILINE))
    claims = [row[0].replace("`", "") for row in rows()]
    answered = set()
    for number, letters, step, begin in listed:
        assert set(letters.split(", ")) <= guides, number
        assert len(step) > 5, number
        found = [claim for claim in claims if claim.startswith(begin)]
        assert len(found) == 1, (number, begin, found)
        answered.update(found)
    beside = {claim for claim in claims if claim not in answered}
    assert {claim for claim in beside if not claim.startswith(BESIDE)} == set()
    assert [begin for begin in BESIDE if not any(claim.startswith(begin) for claim in beside)] == []
