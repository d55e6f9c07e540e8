# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/reference/errors.md from the code: every error with its fix. Those of errors.yml come first.

python3 tests/site/errors_doc.py           write it
python3 tests/site/errors_doc.py --check   say whether it is as the code has it
"""

from __future__ import annotations

import re
import sys
import typing as t
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))

from generated import main
from raised import CHECKOUT, ID, PLUGINS, other_modules, parted, raised, refusals

DOCUMENT = CHECKOUT / "docs/reference/errors.md"
WRITTEN = Path(__file__).with_name("errors.yml")
# Packages, and beginnings of the names of modules and of other files beside the packages.
REFUSED = "Before the first change"
AREAS = (
    (REFUSED, ("filters", "_settings", "_localhost")),
    ("The plan", ("_fabric", "_plan", "ippool_plan", "_host_plan")),
    ("Host network", ("_route", "_persist", "policy_route", "rail_")),
    (
        "RDMA on the host",
        (
            "_rdma",
            "_netns",
            "_cabling",
            "_card",
            "_files",
            "_programs",
            "_management_network",
            "nic_link",
            "rdma_host",
            "rdma_info",
            "rdma_netns",
        ),
    ),
    ("Lossless RoCE and GPUDirect", ("_qos", "_gpudirect", "roce_qos", "gpudirect")),
    ("Drivers", ("_driver", "rdma_driver")),
    ("The cluster", ("_cluster", "cluster_", "webhook", "kubernetes_gate")),
    ("Verification", ("_probe", "_verdict", "_report", "verdict", "verify_", "rdma_probe", "_pods", "pod_")),
)
HEAD = """# Errors

Every error ends with its ID in brackets, such as `[gateway_outside]`: search this page for the ID.
An error names what is wrong, the place, the value and the fix. All errors of one cause are listed at once.
After an error nothing is half-done: nothing was changed, or the change was rolled back, or the next run continues.

Errors with the same fix share an ID; `...` is a name, a value or a limit. The most frequent errors come first.
A preflight error may end with the ID of a check instead: see [all checks](checks.md).

`python3 tests/site/errors_doc.py` writes this page.
"""


def of_playbooks() -> t.Iterator[tuple[str, str]]:
    """Return (problem, fix) of what playbooks and roles refuse with a sentence of their own."""
    paths = sorted(path for place in ("playbooks/*.yml", "roles/*/tasks/*.yml") for path in CHECKOUT.glob(place))
    texts = (text for path in paths for text in refusals(yaml.safe_load(path.read_text(encoding="utf-8"))))
    plain = (" ".join(re.sub(r"\{\{.*?\}\}", "...", text).split()) for text in texts)
    yield from (parted(text) for text in plain if ID.search(text))


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    line = re.sub(r"(\.\.\.){2,}", "...", " ".join(text.split()))
    for char in "\\|<>*_[]":
        line = line.replace(char, f"\\{char}")
    return line


def area_of(path: Path) -> str:
    """Return the heading of the errors of a file."""
    name = path.parent.name if path.parent.name.startswith("_") else path.name
    return next((title for title, starts in AREAS if name.startswith(starts)), "Elsewhere")


def first(rows: t.Mapping[str, t.Collection[tuple[str, str]]]) -> tuple[list[str], t.Callable[[str], bool]]:
    """Return the lines of errors.yml, and a function that tests whether they have a problem already.

    Raises SystemExit if no message begins as an entry does, or no check has an entry's id and urgency.
    """
    written = yaml.safe_load(WRITTEN.read_text(encoding="utf-8"))
    messages = [(" ".join(problem.split()), ID.search(fix)) for found in rows.values() for problem, fix in found]
    ids = {
        entry["message"]: sorted(
            {match[1] for problem, match in messages if match and problem.startswith(entry["message"])}
        )
        for entry in written["messages"]
    }
    checks = yaml.safe_load(WRITTEN.with_name("checks.yml").read_text(encoding="utf-8"))["checks"]
    lost = [text for text, found in ids.items() if not found]
    for entry in written["deviations"]:
        if entry["id"] not in checks or entry["urgency"].partition(";")[0] != checks[entry["id"]]["urgency"]:
            lost.append(f"{entry['id']}: {entry['urgency']}")
    if lost:
        raise SystemExit(f"No message or check has this: {'; '.join(lost)}. Correct {WRITTEN.name}.")
    lines = ["## Common errors", "", "| ID | Message | Meaning | Fix | Impact |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for entry in written["messages"]:
        names = ", ".join(f"`{name}`" for name in ids[entry["message"]])
        lines.append(
            f"| {names} | {cell(entry['message'])} | {entry['meaning']} | {entry['fix']} | {entry['impact']} |"
        )
    lines += ["", "Deviations with a cause of their own ([all checks](checks.md)):"]
    lines += [""]
    lines += ["| Check | Meaning | Fix | Impact | Urgency |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| `{e['id']}` | {e['meaning']} | {e['fix']} | {e['impact']} | {e['urgency']} |" for e in written["deviations"]
    ]
    return [*lines, ""], lambda problem: " ".join(problem.split()).startswith(tuple(ids))


def rows_of(found: t.Iterable[tuple[str, str]], computed: t.Mapping[str, t.Sequence[str]]) -> list[str]:
    """Return the rows of a table, by ID.

    :param computed: of errors.yml, by ID: the problem and the fix where the code computes them.
    """
    rows = set()
    for problem, fix in found:
        match = ID.search(fix)
        if not match:
            sys.exit(f"An error has no ID: {problem} {fix}")
        given = computed.get(match[1], ("", ""))
        texts = [own or text for own, text in zip(given, (problem, fix[: match.start()]), strict=True)]
        if not re.search(r"[a-z]{2}\b.* .*[a-z]{2}", texts[0], re.DOTALL) or not re.search("[A-Za-z]{3}", texts[1]):
            sys.exit(f"`computed` of {WRITTEN.name} lacks this error, whose text is computed: {problem} {fix}")
        rows.add((match[1], *map(cell, texts)))
    return [f"| `{name}` | {problem} | {fix} |" for name, problem, fix in sorted(rows)]


def everything() -> dict[str, list[tuple[str, str]]]:
    """Return (problem, fix) of all errors, by their headings; the fix ends with the ID."""
    found: dict[str, list[tuple[str, str]]] = {REFUSED: list(of_playbooks())}
    paths = sorted(PLUGINS.rglob("*.py"))
    errors = [one for path in paths for one in raised(path) if one.fix]
    known = {match[1] for one in errors if (match := ID.search(one.fix))}
    for one in [*errors, *(more for path in paths for more in other_modules(path, known))]:
        found.setdefault(area_of(one.path), []).append((one.problem, one.fix))
    return found


def document() -> str:
    """Return the page."""
    found = everything()
    computed = yaml.safe_load(WRITTEN.read_text(encoding="utf-8"))["computed"]
    lines, known = first(found)
    lines.insert(0, HEAD)
    seen: set[str] = set()
    for title in [*(area for area, _starts in AREAS), "Elsewhere"]:
        rows = [
            row
            for row in rows_of((row for row in found.get(title, ()) if not known(row[0])), computed)
            if row not in seen
        ]
        seen.update(rows)
        if rows:
            lines += [f"## {title}", "", "| ID | Message | Fix |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main([(DOCUMENT, document())])
