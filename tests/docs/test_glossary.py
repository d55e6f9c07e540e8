# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Words that are ours are linked to docs/glossary.md where a page has them first, outside of tables and code."""

from __future__ import annotations

import re

import pytest
from blocks import CHECKOUT

GLOSSARY = "docs/glossary.md"
# The word in the glossary, and how pages have it: `leaves` is a verb too.
WORDS = {
    "rail": "rails?",
    "leaf": r"leaf|(?<=the )leaves(?!')|(?<=on )leaves|(?<=between )leaves",
    "slot": "slots?",
    "zone": "zones?",
    "verdict": "verdicts?",
    "deviation": "deviations?",
    "preflight": "preflight",
    "rollback timer": "rollback timer",
    "the guides": "the guides(?!')",
}
# Pages that only maintainers read, and those that are tables or the words themselves.
LEFT_OUT = {
    *("architecture", "contributing", "owner", "performance", "release", "replaces", "status"),
    *("errors", "glossary", "playbooks", "porting", "security"),
}
PAGES = [path for path in sorted(CHECKOUT.glob("docs/*.md")) if path.stem not in LEFT_OUT]
NO_PROSE = re.compile(r"^```.*?^```|^#[^\n]*|^\|[^\n]*|<!--.*?-->|`[^`]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\([^)]*\)")
LINKED, MARK = re.compile(r"\[([^\]]*)\]\((?:glossary|verdict)\.md\)"), "\0"


def unlinked(text: str) -> list[str]:
    """Return the words whose first place in a text is no link to the glossary."""
    text = LINKED.sub(rf"\1{MARK}", text)
    for pattern in (NO_PROSE, LINK):
        text = pattern.sub(lambda found: " " * len(found[0]), text)
    missing = []
    for word, pattern in WORDS.items():
        first = re.search(rf"(?<![\w/.-])(?:{pattern})(?![\w-])", text, re.IGNORECASE)
        if first and text[first.end() : first.end() + 1] != MARK:
            missing.append(word)
    return missing


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PAGES])
def test_a_word_is_linked_where_a_page_has_it_first(path):
    own = {"verdict"} if path.stem == "verdict" else set()
    assert set(unlinked(path.read_text(encoding="utf-8"))) - own == set()


def test_every_word_is_in_the_glossary():
    text = (CHECKOUT / GLOSSARY).read_text(encoding="utf-8")
    assert [word for word in WORDS if f"| {word} |" not in text] == []


def test_a_word_without_a_link_is_noticed():
    assert unlinked("A rail, then a [slot](glossary.md).") == ["rail"]
    assert unlinked("`rail` and [a rail](fabric.md) and a [rail](glossary.md): this run leaves it.") == []
