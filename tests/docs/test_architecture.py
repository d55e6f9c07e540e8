# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/architecture.md: its table has every room, and what it says of imports holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = (CHECKOUT / "docs/architecture.md").read_text(encoding="utf-8")
# ansible-core's own place for exceptions from its sanity tests, and what tests leave behind.
NO_ROOMS = ("tests/sanity", "tests/output")
PURE = ("_errors.py", "_admission*.py", "_*_plan.py", "_*_model.py", "_*_checks.py")
# Asking and changing the world; socket is there for the numbers of address families.
THIN = {"ansible", "kubernetes", "pyroute2", "pyverbs", "requests", "shutil", "subprocess", "urllib"}


def imports(path: Path) -> set[str]:
    """Return the top packages that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").split(".")[0])
    return found


def test_every_room_is_in_the_table():
    folders = [path for place in ("plugins", "tests") for path in (CHECKOUT / place).iterdir() if path.is_dir()]
    names = {str(path.relative_to(CHECKOUT)) for path in folders if path.name != "__pycache__"} - set(NO_ROOMS)
    assert [name for name in sorted(names) if f"`{name}/" not in PAGE] == []


@pytest.mark.parametrize("pattern", PURE)
def test_deciding_code_asks_nobody(pattern):
    paths = sorted((CHECKOUT / "plugins/module_utils").glob(pattern))
    assert paths
    assert {path.name: imports(path) & THIN for path in paths if imports(path) & THIN} == {}
