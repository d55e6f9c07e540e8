# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/reference/checks.md from checks.yml and the costs that fixes say.

python3 tests/site/checks_doc.py           write it
python3 tests/site/checks_doc.py --check   say whether it is as checks.yml has it
"""

from __future__ import annotations

import ast
import sys
import typing as t
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/docs"))

from made import main

DOCUMENT = CHECKOUT / "docs/reference/checks.md"
SOURCE = Path(__file__).with_name("checks.yml")
COSTS = CHECKOUT / "plugins/module_utils/_check.py"
HEAD = """# All checks

What each check compares; a deviation says what is so instead. The list is made by `python3 tests/site/checks_doc.py`.

| how soon | what it means |
| --- | --- |
"""
COLUMNS = """
The third column is what mending a deviation costs the work on that host. `--check --diff` names a reboot before it
happens. A warning can always wait.

| id | what is so when it is ok | mending costs | how soon |
| --- | --- | --- | --- |
"""


def told() -> dict[str, dict[str, t.Any]]:
    """Return checks.yml, its costs with those that the fixes of roles say."""
    found: dict[str, dict[str, t.Any]] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    for node in ast.parse(COSTS.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "COSTS":
            found["costs"].update(ast.literal_eval(node.value))
    return found


def page() -> str:
    """Return docs/reference/checks.md as checks.yml has it."""
    found = told()
    soon = "".join(f"| {name} | {means} |\n" for name, means in found["soon"].items())
    rows = "".join(
        f"| `{name}` | {row['ok']} | {found['costs'][row['costs']]} | {row['soon']} |\n"
        for name, row in found["checks"].items()
    )
    return HEAD + soon + COLUMNS + rows


if __name__ == "__main__":
    main([(DOCUMENT, page())])
