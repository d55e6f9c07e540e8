# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Every error ends with its ID, and docs/reference/errors.md lists every ID."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest
import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/site"))

from raised import ID, PLUGINS, raised, refusals, tree

BOOKS = [*CHECKOUT.glob("playbooks/*.yml"), *CHECKOUT.glob("roles/*/tasks/*.yml")]
PAGE = (CHECKOUT / "docs/reference/errors.md").read_text(encoding="utf-8")


def test_every_error_of_a_plugin_ends_with_an_id():
    """An empty fix is that of another error, which ends with an ID itself."""
    bare = [
        f"{one.path.relative_to(CHECKOUT)}:{one.line}: {one.problem} {one.fix}"
        for path in sorted(PLUGINS.rglob("*.py"))
        for one in raised(path)
        if one.fix and not ID.search(one.fix)
    ]
    assert bare == []


@pytest.mark.parametrize("path", sorted(BOOKS), ids=lambda path: str(path.relative_to(CHECKOUT)))
def test_every_message_of_a_task_ends_with_an_id(path):
    """What is computed ends with the ID of what it is computed from."""
    found = refusals(yaml.safe_load(path.read_text(encoding="utf-8")))
    assert [text for text in found if not ID.search(text) and not text.endswith("}}")] == []


def test_the_page_lists_every_id():
    texts = [path.read_text(encoding="utf-8") for path in BOOKS]
    pieces = [node.value for path in PLUGINS.rglob("*.py") for node in ast.walk(tree(path)) if hasattr(node, "value")]
    named = {match for text in texts for match in re.findall(r"[.}] \[([a-z]+(?:_[a-z0-9]+)+)\]", text)}
    named |= {match[1] for text in pieces if isinstance(text, str) and (match := ID.search(text))}
    assert len(named) > 300
    assert sorted(name for name in named if f"`{name}`" not in PAGE) == []
