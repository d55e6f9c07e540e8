# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/reference/checks.md from checks.yml.

python3 tests/site/checks_doc.py           write it
python3 tests/site/checks_doc.py --check   say whether it is as checks.yml has it
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/docs"))

from generated import main

DOCUMENT = CHECKOUT / "docs/reference/checks.md"
SOURCE = Path(__file__).with_name("checks.yml")
HEAD = """# All checks

Look up what each check compares. A deviation means that the second column is not true.
`python3 tests/site/checks_doc.py` writes this page.

| Urgency | Meaning |
| --- | --- |
"""
COLUMNS = """
The third column is the impact of the repair on the host's work. A dry run lists a reboot before it happens.
A warning can always wait.

| Check | Passes when | Impact of the repair | Urgency |
| --- | --- | --- | --- |
"""


def page() -> str:
    """Return docs/reference/checks.md as checks.yml has it."""
    found = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    urgency = "".join(f"| {name} | {meaning} |\n" for name, meaning in found["urgency"].items())
    rows = "".join(
        f'| <a id="{name}"></a>`{name}` | {row["passes"]} | {found["impact"][row["impact"]]} | {row["urgency"]} |\n'
        for name, row in found["checks"].items()
    )
    return HEAD + urgency + COLUMNS + rows


if __name__ == "__main__":
    main([(DOCUMENT, page())])
