# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/project/test-evidence.md from evidence.yml and the results of the lab.

python3 tests/docs/evidence_doc.py           write it
python3 tests/docs/evidence_doc.py --check   end with an error where it is stale
"""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import yaml
from generated import CHECKOUT, main

DOCUMENT = CHECKOUT / "docs/project/test-evidence.md"
SOURCE = Path(__file__).with_name("evidence.yml")
RESULTS = CHECKOUT / "tests/lab/results.json"
HEAD = """# Test evidence

See what each capability was tested on. The user's view is the [support matrix](../decide/support-matrix.md).
`python3 tests/docs/evidence_doc.py` writes this page from `tests/docs/evidence.yml` and `tests/lab/results.json`.

"""


def table(header: t.Sequence[str], rows: t.Iterable[t.Sequence[t.Any]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines) + "\n"


def page() -> str:
    """Return the page."""
    data: dict[str, t.Any] = yaml.safe_load(SOURCE.read_text(encoding="utf-8"))
    levels = data["levels"]
    text = HEAD + table(("Level", "Meaning"), ((f"**{name}**", means) for name, means in levels.items()))
    for area, rows in data["areas"].items():
        if wrong := [row[0] for row in rows if row[-4] not in levels or len(row) < 5]:
            raise SystemExit(
                f"evidence.yml: these rows have no known level: {wrong}. Write one of {', '.join(levels)}."
            )
        shown = ((", ".join(row[:-4]), *(word or "" for word in row[-4:])) for row in rows)
        text += f"## {area}\n\n" + table(("Capability", "Level", "On", "Last", "Not tested"), shown)
    cases = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = ((one["case"], one["result"], f"{one['seconds']} s", one["date"], one["detail"]) for one in cases)
    return (
        text
        + "## Lab matrix\n\n`make lab-test` writes these results.\n\n"
        + table(("Case", "Result", "Time", "Date", "Seen"), rows).rstrip("\n")
        + "\n"
    )


if __name__ == "__main__":
    main([(DOCUMENT, page())])
