# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the list of all checks at the end of docs/verify.md from checks.yml.

python3 tests/site/checks_doc.py           write it
python3 tests/site/checks_doc.py --check   say whether it is as checks.yml has it
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
DOCUMENT = CHECKOUT / "docs/verify.md"
SOURCE = Path(__file__).with_name("checks.yml")
HEADING = "\n## All checks\n"
HEAD = """
What each check compares; a deviation says what is so instead. The list is made by `python3 tests/site/checks_doc.py`.

| id | what is so when it is ok |
| --- | --- |
"""


def ids() -> dict[str, str]:
    """Return what each check compares, by its id."""
    found: dict[str, str] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    return found


def page() -> str:
    """Return docs/verify.md with the list as checks.yml has it."""
    before = DOCUMENT.read_text(encoding="utf-8").partition(HEADING)[0]
    return before + HEADING + HEAD + "".join(f"| `{name}` | {told} |\n" for name, told in ids().items())


def main() -> None:
    """Write the list, or compare it."""
    if sys.argv[1:] != ["--check"]:
        DOCUMENT.write_text(page(), encoding="utf-8")
    elif DOCUMENT.read_text(encoding="utf-8") != page():
        raise SystemExit("docs/verify.md is old: run python3 tests/site/checks_doc.py.")


if __name__ == "__main__":
    main()
