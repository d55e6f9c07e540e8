# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What people ask is answered at most three steps from README's first screen: questions.yml, walked."""

from __future__ import annotations

import posixpath
import re

import known
import pytest
from blocks import CHECKOUT

QUESTIONS = known.load(CHECKOUT / "tests/docs/questions.yml")
MOST = 3
FIRST_SCREEN = 40  # lines
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def first_screen() -> str:
    """Return what of README is seen without scrolling, whole lines up to the first heading of its body."""
    lines = (CHECKOUT / "README.md").read_text(encoding="utf-8").splitlines()
    end = next(number for number, line in enumerate(lines) if line.startswith("## "))
    assert end <= FIRST_SCREEN, "the first screen is longer than one"
    return "\n".join(lines[:end])


def section(page: str, heading: str) -> str:
    """Return what stands below a heading of a page, up to the next one; empty where there is no such heading."""
    text = re.sub(r"```.*?```", lambda block: block[0].replace("\n#", "\n "), _text(page), flags=re.DOTALL)
    parts = HEADING.split(text)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(heading, "")


def _text(page: str) -> str:
    return (CHECKOUT / page).read_text(encoding="utf-8")


def leads(text: str, place: str, page: str) -> bool:
    """Say whether a text of the page `place` names or links another page."""
    links = (link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text))
    there = {posixpath.normpath(posixpath.join(posixpath.dirname(place), link)) for link in links if link}
    return page in there or f"`{page}`" in text


@pytest.mark.parametrize("asked", [pytest.param(asked, id=asked["question"]) for asked in QUESTIONS])
def test_a_question_is_answered(asked):
    assert 1 <= len(asked["way"]) <= MOST
    place, text = "README.md", first_screen()
    for step in asked["way"]:
        assert leads(text, place, step["page"]), f"{place} does not lead to {step['page']}"
        place, text = step["page"], section(step["page"], step["heading"])
        assert text, f"{place} has no heading {step['heading']}"
    said = re.sub(r"\s+", " ", text)
    assert re.sub(r"\s+", " ", asked["answer"]) in said


def test_a_way_that_is_broken_is_noticed():
    assert leads("[a](docs/fits.md#x)", "README.md", "docs/fits.md")
    assert leads("[a](host-network.md)", "docs/day2.md", "docs/host-network.md")
    assert not leads("docs/fits.md", "README.md", "docs/fits.md")
    assert section("docs/fits.md", "No such heading") == ""
