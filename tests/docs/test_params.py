# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Public functions with four parameters or more say what each is, but for what its type or contributing.md says."""

from __future__ import annotations

import ast
import re
import typing as t
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
MANY = 4
PAGE = (CHECKOUT / "docs/contributing.md").read_text(encoding="utf-8")
WORDS = {
    word
    for row in PAGE.partition("## Words that mean the same everywhere")[2].partition("\n## ")[0].splitlines()
    if row.startswith("| `")
    for word in re.findall(r"`(\w+)`", row.split("|")[1])
}
# A type with a name of its own says what it is; these say nothing.
PLAIN = {
    *("Any", "Mapping", "Sequence", "Iterable", "Iterator", "Callable", "Collection", "None", "Pattern", "Json"),
    "True",
    "False",
}


def functions(tree: ast.AST) -> t.Iterator[ast.FunctionDef]:
    """Yield the public functions and methods of a file."""
    for owner in ast.walk(tree):
        if isinstance(owner, (ast.Module, ast.ClassDef)) and not getattr(owner, "name", "").startswith("_"):
            yield from (
                item for item in owner.body if isinstance(item, ast.FunctionDef) and not item.name.startswith("_")
            )


def unsaid(function: ast.FunctionDef) -> list[str]:
    """Return the parameters of a function that nothing says."""
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    given = [one for one in given if one.arg not in ("self", "cls")]
    if len(given) < MANY:
        return []
    text = ast.get_docstring(function) or ""
    plain = [one for one in given if set(re.findall(r"[A-Z]\w+", ast.unparse(one.annotation or one))) <= PLAIN]
    return [
        one.arg
        for one in plain
        if one.arg not in WORDS and f":param {one.arg}:" not in text and f"`{one.arg}`" not in text
    ]


def test_the_words_are_found():
    assert {"rail", "family", "check_mode"} <= WORDS


def test_every_parameter_is_said():
    wrong = {
        f"{path.relative_to(CHECKOUT)} {function.name}": left
        for path in sorted((CHECKOUT / "plugins").rglob("*.py"))
        for function in functions(ast.parse(path.read_text(encoding="utf-8")))
        if (left := unsaid(function))
    }
    assert wrong == {}
