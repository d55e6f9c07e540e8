# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the sentences that a host's fix may consist of, from the code that hosts run: the controller shows no other.

Each line has the subjects of the check IDs that can give it: those in its package and in packages that import it.

python3 tests/site/fixes_table.py           write plugins/plugin_utils/_verdict/fixes.txt
python3 tests/site/fixes_table.py --check   say whether it is as the code has it
"""

from __future__ import annotations

import ast
import itertools
import re
import sys
import typing as t
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/docs"))

from generated import main

sys.path.insert(0, str(CHECKOUT / "plugins"))

from module_utils._check import by_role
from plugin_utils._verdict.ids import IDS

PLUGINS = CHECKOUT / "plugins"
TABLE = PLUGINS / "plugin_utils/_verdict/fixes.txt"
SUBJECTS = {name.partition("_")[0] for name in IDS}
# The cluster's checks are made on the controller.
LEFT_OUT = ("_cluster", "_pods")
# No fix: the arguments, by position, and the variables that have a problem or a cause.
ARGUMENTS = {"RdmaError": 0, "Problem": 1, "skipped": 1, "compared": 3, "deviation": 3, "warning": 3}
CAUSES = ("cause", "observed", "problem", "why")
# A field's name, by the last name in its expression; of others a list of words.
FIELDS = {
    "address": ("address", "hop", "peer"),
    "interface": ("interface", "port", "master"),
    "number": ("before", "limit", "priority", "length", "need_mtu"),
    "path": ("IFUPDOWN", "copy", "folder", "path", "source"),
    "command": ("command", "op", "route"),
    "commands": ("commands",),
    "settings": ("settings",),
}
# These are sentences of their own.
SENTENCES = ("FIX", "IPOIB_GROUP", "ROLE", "ADOPT_FIX", "by_role", "fix", "keeps", "more", "move", "second")
SENTENCE = re.compile(r"[A-Z`(](?=.*[a-z]{3}.* .*[a-z]{3}).* .* .*")
PIECE = re.compile(r".*[a-z]{2} .*[a-z]{2}.* .*")


def field(expression: str) -> str:
    """Return the place of a value in a sentence."""
    last = re.findall(r"\w+", expression)[-1:] or [""]
    name = next((name for name, ends in FIELDS.items() if last[0] in ends), "words")
    return f"{{{name}}}"


def texts(node: ast.expr) -> list[str]:
    """Return the texts that an expression can have, its sentences apart by NUL."""
    if isinstance(node, ast.Constant):
        return [re.sub(r"\{(\w+)\}", lambda found: field(found[1]), node.value)] if isinstance(node.value, str) else []
    if isinstance(node, ast.IfExp):
        return [*texts(node.body), *texts(node.orelse)]
    if isinstance(node, ast.FormattedValue):
        if isinstance(node.value, ast.IfExp) and len(found := texts(node.value)) == 2:
            return found
        expression = ast.unparse(node.value)
        first = re.match(r"\w*", expression)
        if first and first[0] in SENTENCES:
            return ["\0"]
        return [f"'{field(expression)}'" if node.conversion == ord("r") else field(expression)]
    if isinstance(node, ast.JoinedStr):
        return ["".join(parts) for parts in itertools.product(*map(texts, node.values))]
    return []


def sentences(node: ast.AST) -> t.Iterator[str]:
    """Yield the sentences below a node of the code."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "by_role" and node.args:
        yield (eval(ast.unparse(node), {"by_role": by_role}) if isinstance(node.args[0], ast.Constant) else "")
    if isinstance(node, (ast.JoinedStr, ast.Constant)):
        for text in texts(node):
            form = PIECE if "\0" in text else SENTENCE
            yield from filter(form.fullmatch, (part.strip(" .;:") for part in text.split("\0")))
        return
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in CAUSES and not isinstance(node.value, ast.Call):
        return
    left_out: list[ast.AST] = []
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ARGUMENTS:
        left_out = [*node.args[ARGUMENTS[node.func.id] :][:1]]
    for below in ast.iter_child_nodes(node):
        if below not in left_out and not (isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)):
            yield from sentences(below)


def table() -> str:
    """Return the file's text."""
    packages: dict[str, set[str]] = {}
    subjects: dict[str, set[str]] = {}
    for path in [*PLUGINS.glob("module_utils/**/*.py"), *PLUGINS.glob("plugin_utils/_accept/*.py")]:
        package, text = path.parent.name, path.read_text(encoding="utf-8")
        if package in LEFT_OUT:
            continue
        own = {subject for subject in SUBJECTS if f'"{subject}_' in text}
        for one in {package, *re.findall(r"^from \.+(?:module_utils\.)?(_\w+)", text, re.M)}:
            subjects.setdefault(one, set()).update(own)
        packages.setdefault(package, set()).update(sentences(ast.parse(text)))
    found: dict[str, set[str]] = {}
    for package, rows in packages.items():
        for sentence in rows - {""}:
            # A word alone that is code is a command, whatever its expression is.
            found.setdefault(sentence.replace("`{words}`", "`{command}`"), set()).update(subjects[package] or SUBJECTS)
    return "".join(f"{' '.join(sorted(found[row]))}: {row}\n" for row in sorted(found) if "\n" not in row)


if __name__ == "__main__":
    main([(TABLE, table())])
