# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write docs/errors.md from the code: every error that is raised, with its remedy. Those of errors.yml come first.

python3 tests/site/errors_doc.py           write it
python3 tests/site/errors_doc.py --check   say whether it is as the code has it
"""

from __future__ import annotations

import ast
import re
import sys
import typing as t
from pathlib import Path

import yaml

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/docs"))

from made import main

DOCUMENT = CHECKOUT / "docs/errors.md"
WRITTEN = Path(__file__).with_name("errors.yml")
# Fixes that several files have.
SHARED = CHECKOUT / "plugins/module_utils/_fabric/lock.py"
# Where each stands among (place, problem, fix); the last two are always problem and fix.
CALLS = {"RdmaError": 0, "Problem": 1, "_fail": 0, "fail": 0, "add": 1, "refuse": 1, "Fault": 2}
# Rooms, and beginnings of the names of modules and of other files beside the rooms.
AREAS = (
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
            "_untouchable",
            "nic_link",
            "rdma_host",
            "rdma_info",
            "rdma_netns",
        ),
    ),
    ("Lossless RoCE and GPUDirect", ("_qos", "_gpudirect", "roce_qos", "gpudirect")),
    ("Drivers", ("_driver", "rdma_driver")),
    ("The cluster", ("_cluster", "cluster_", "webhook", "node_gate")),
    (
        "Verification",
        ("_probe", "_verdict", "_report", "verdict", "verify_", "rdma_probe", "_pods", "pod_"),
    ),
)
HEAD = """# Errors: what each means

Every error says what is wrong, with the place and the value, and what to do: `msg` of the failed result, shown once,
or lines above that result where there are several.
Nothing is half-done after an error: either nothing was changed, or what was changed was taken
back, or the next run goes on from there.

An error ends with its id in brackets, such as `[gateway_outside]`: search this page for it. Errors that are mended
alike share an id; `...` stands for a name, a value or a limit. What people meet first stands first, then all others as
the code has them. Deviations are not errors: a verdict names them with planned, observed, cause and fix
([verify](verify.md)).

This page is made by `python3 tests/site/errors_doc.py`.
"""


def text_of(node: ast.expr) -> str | None:
    """Return a string expression's text, with `...` for what is computed; None when it has no words of its own."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = [part.value if isinstance(part, ast.Constant) else "..." for part in node.values]
        return "".join(str(part) for part in parts)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = text_of(node.left), text_of(node.right)
        return None if left is None and right is None else f"{left or '...'}{right or '...'}"
    return None


NEAR = 15
"""Lines above a call in which a name gets the text that it has there."""


def named(tree: ast.Module) -> t.Callable[[str, int], str | None]:
    """Return what finds the text of a name in a line: that of just above it, or the only one that the file gives it."""
    found: dict[str, list[tuple[int, str]]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and (text := text_of(node.value)):
            found.setdefault(node.targets[0].id, []).append((node.lineno, text))

    def text_at(name: str, line: int) -> str | None:
        rows = sorted(found.get(name, ()))
        near = [text for at, text in rows if 0 < line - at < NEAR]
        texts = {text for _at, text in rows}
        return near[-1] if near else texts.pop() if len(texts) == 1 else None

    return text_at


ID = re.compile(r" \[([a-z][a-z0-9_]*)\]$")
"""How a fix ends: with the error's id."""


def errors(path: Path) -> t.Iterator[tuple[str, str]]:
    """Return (problem, fix) of every error that a file raises; `...` for what another error hands on."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    here, shared = named(tree), named(ast.parse(SHARED.read_text(encoding="utf-8")))
    for node in ast.walk(tree):
        if isinstance(node, ast.Tuple) and len(node.elts) == 3 and (row := text_of(node.elts[2])) and ID.search(row):
            yield text_of(node.elts[1]) or "...", row  # of a table: pattern, problem, fix
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        first = CALLS.get(name)
        if first is None or len(node.args) < first + 2:
            continue
        problem, fix = node.args[first], node.args[first + 1]
        words = [text_of(part) for part in (problem, fix)]
        for at, part in enumerate((problem, fix)):
            if isinstance(part, ast.Name):
                words[at] = here(part.id, node.lineno) or (shared(part.id, 0) if part.id.isupper() else None)
        yield words[0] or "...", words[1] or "..."


# What roles, playbooks and their filters refuse with a sentence of their own.
REFUSED = "Before the first change"
NOTHING = "Nothing was changed."


def parted(text: str) -> tuple[str, str] | None:
    """Return (problem, fix) of a refusal: the fix is its last sentence. None when it has no words of its own."""
    plain = " ".join(re.sub(r"\{\{.*?\}\}", "...", " ".join(text.split())).split())
    named = match[0] if (match := ID.search(plain)) else ""
    plain = plain.removesuffix(named)
    sentences = re.split(r"(?<=[.]) (?=[A-Z.a-z])", plain.removesuffix(NOTHING).strip())
    # A sentence begins with a capital, or with a command; what is computed ends none.
    whole: list[str] = []
    for sentence in sentences:
        if whole and re.search(r"(?<![.])[.]{3}$", whole[-1]):
            whole[-1] += f" {sentence}"
        else:
            whole.append(sentence)
    if len(re.findall("[A-Za-z]{3,}", plain.removesuffix(NOTHING))) < 4:
        return None
    return (" ".join(whole[:-1]), whole[-1] + named) if len(whole) > 1 else (plain, "..." + named)


def asserted(value: t.Any) -> t.Iterator[str]:
    """Return the messages of all assertions in a playbook or a file of tasks."""
    if isinstance(value, list):
        for item in value:
            yield from asserted(item)
    elif isinstance(value, dict):
        if "fail_msg" in value:
            yield str(value["fail_msg"])
        for item in value.values():
            yield from asserted(item)


def refusals() -> t.Iterator[tuple[str, str]]:
    """Return (problem, fix) of what playbooks, roles and the filters beside them refuse."""
    texts: list[str] = []
    for place in ("playbooks/*.yml", "roles/*/tasks/*.yml"):
        for path in sorted(CHECKOUT.glob(place)):
            texts += asserted(yaml.safe_load(path.read_text(encoding="utf-8")))
    filters = ast.parse((CHECKOUT / "plugins/filter/filters.py").read_text(encoding="utf-8")).body
    for function in filters:
        if isinstance(function, ast.FunctionDef) and function.name.endswith("_problems"):
            texts += [text_of(node) or "" for node in ast.walk(function) if isinstance(node, ast.JoinedStr)]
    yield from (made for made in map(parted, texts) if made and made[1].strip(". "))


def cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    line = " ".join(text.split())
    for char in "\\|<>*_[]":
        line = line.replace(char, f"\\{char}")
    return line


def area_of(path: Path) -> str:
    """Return the heading a file's errors stand under."""
    name = path.parent.name if path.parent.name.startswith("_") else path.name
    return next((title for title, starts in AREAS if name.startswith(starts)), "Elsewhere")


def first(rows: t.Mapping[str, t.Collection[tuple[str, str]]]) -> tuple[list[str], t.Callable[[str], bool]]:
    """Return the lines of errors.yml, and what says of a problem whether they have it already.

    Raises SystemExit where nothing says any more what an entry begins with, or no check has an entry's id and `soon`.
    """
    written = yaml.safe_load(WRITTEN.read_text(encoding="utf-8"))
    said = [(" ".join(problem.split()), ID.search(fix)) for found in rows.values() for problem, fix in found]
    ids = {
        entry["says"]: sorted({match[1] for problem, match in said if match and problem.startswith(entry["says"])})
        for entry in written["messages"]
    }
    checks = yaml.safe_load(WRITTEN.with_name("checks.yml").read_text(encoding="utf-8"))["checks"]
    lost = [text for text, found in ids.items() if not found]
    for entry in written["deviations"]:
        if entry["id"] not in checks or entry["soon"].partition(";")[0] != checks[entry["id"]]["soon"]:
            lost.append(f"{entry['id']}: {entry['soon']}")
    if lost:
        raise SystemExit(f"Nothing says this any more. Mend {WRITTEN.name}: {'; '.join(lost)}")
    lines = ["## What people meet first", "", "| id | it says | it means | do | it costs |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for entry in written["messages"]:
        names = ", ".join(f"`{name}`" for name in ids[entry["says"]])
        lines.append(f"| {names} | {cell(entry['says'])} | {entry['means']} | {entry['do']} | {entry['costs']} |")
    lines += ["", "Checks of a verdict; all others, what they cost and how soon: [verify](verify.md#all-checks)."]
    lines += ["HOST in a verdict's command is the host whose line it is:", ""]
    lines += ["| check | it means | do | it costs | how soon |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| `{e['id']}` | {e['means']} | {e['do']} | {e['costs']} | {e['soon']} |" for e in written["deviations"]]
    return [*lines, ""], lambda problem: " ".join(problem.split()).startswith(tuple(ids))


def rows_of(found: t.Iterable[tuple[str, str]]) -> list[str]:
    """Return the rows of a table, by id. What another error hands on, fix and all, ends with the id of that one.

    :raises SystemExit: for an error without an id.
    """
    rows = set()
    for problem, fix in found:
        if match := ID.search(fix):
            rows.add((match[1], cell(problem), cell(fix[: match.start()])))
        elif fix.strip(". "):
            sys.exit(f"An error has no id, such as [gateway_outside], at the end of its fix: {problem} {fix}")
    return [f"| `{name}` | {problem} | {fix} |" for name, problem, fix in sorted(rows)]


def document() -> str:
    """Return the page."""
    found: dict[str, list[tuple[str, str]]] = {}
    for path in sorted((CHECKOUT / "plugins").rglob("*.py")):
        found.setdefault(area_of(path), []).extend(errors(path))
    found[REFUSED] = list(refusals())
    lines, known = first(found)
    lines.insert(0, HEAD)
    for title in [REFUSED, *(area for area, _starts in AREAS), "Elsewhere"]:
        if rows := rows_of(row for row in found.get(title, ()) if not known(row[0])):
            lines += [f"## {title}", "", "| id | it says | do |", "| --- | --- | --- |", *rows, ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main([(DOCUMENT, document())])
