# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The errors that Python code raises, from its syntax tree: problem and fix of each, `...` for what is computed."""

from __future__ import annotations

import ast
import re
import typing as t
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
PLUGINS = CHECKOUT / "plugins"
ID = re.compile(r" \[([a-z][a-z0-9_]*)\]$")
"""How a fix ends: with the error's ID."""
# Where each stands among (place, problem, fix); the last two are always problem and fix. One text has both in it.
CALLS = {"RdmaError": 0, "Problem": 1, "_fail": 0, "fail": 0, "add": 1, "_refuse": 0, "Fault": 2}
CALLS |= {"KernelRejected": 0, "Forbidden": 0, "Trouble": 2, "in_the_way": 9}
MESSAGE_CALLS = {"Refusal": 0, "AnsibleActionFail": 0, "fail_json": 9}
HANDED_ON = re.compile(
    r"exc\.|one\.|found\.|plan\.|outcome\.|check\['fix'\]|self\.outcome|facts\.get|' '\.join\(fixes\)|sentence\("
    r"|fix\b|with_id\(check\['fix'\]"
)
"""Expressions for the fix of another error, which is raised with its ID elsewhere, or for a parameter."""
MOST = 12

Text = tuple[str, int]
"""A text and the line that it has in the code."""


class Raised(t.NamedTuple):
    """An error that a file raises."""

    path: Path
    line: int
    problem: str
    fix: str
    """Ends with the ID; empty where it hands on the fix of another error."""


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def constants() -> dict[str, list[tuple[Path, ast.expr]]]:
    """Return what modules assign to names in capitals."""
    found: dict[str, list[tuple[Path, ast.expr]]] = {}
    for path in sorted(PLUGINS.rglob("*.py")):
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                found.setdefault(node.targets[0].id, []).append((path, node.value))
    return found


class Scope:
    """A function of a file, or the file: what its names may be."""

    def __init__(self, path: Path, function: ast.AST | None) -> None:
        self.path = path
        self.names: dict[str, list[Text]] = {}
        self._function = function
        self._open: set[str] = set()

    def texts(self, node: ast.expr) -> list[Text]:
        """Return the texts that an expression can have."""
        line = node.lineno
        if isinstance(node, ast.Constant):
            return [(node.value if isinstance(node.value, str) else "...", line)]
        if isinstance(node, ast.JoinedStr):
            parts = [
                self.texts(part.value) if isinstance(part, ast.FormattedValue) and part.conversion == -1 else None
                for part in node.values
            ]
            rows = [""]
            for part, found in zip(node.values, parts, strict=True):
                words = [part.value] if isinstance(part, ast.Constant) else ["..."]
                if found and all(" " in text.strip(". ") for text, _line in found) and len(found) * len(rows) <= MOST:
                    words = [text for text, _line in found]
                rows = [row + str(word) for row in rows for word in words]
            return [(row, line) for row in rows]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return [(one + two, at) for one, at in self.texts(node.left) for two, _at in self.texts(node.right)][:MOST]
        if isinstance(node, ast.IfExp):
            return [*self.texts(node.body), *self.texts(node.orelse)]
        if isinstance(node, ast.BoolOp):
            return [text for value in node.values for text in self.texts(value)]
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "with_id":
            name = t.cast("ast.Constant", node.args[1]).value if isinstance(node.args[1], ast.Constant) else "..."
            return [(text if ID.search(text) else f"{text} [{name}]", at) for text, at in self.texts(node.args[0])]
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and len(node.args) == 2:
            tables = [value for path, value in constants().get(ast.unparse(node.func)[:-4], ()) if path == self.path]
            if tables and isinstance(tables[0], ast.Dict):
                return [text for value in (*tables[0].values, node.args[1]) for text in self.texts(value)]
        if isinstance(node, ast.Name):
            found = self._named(node.id)
            return [(text, line if node.id.isupper() else at) for text, at in found] or [("...", line)]
        if isinstance(node, ast.Attribute) and (node.attr.isupper() or ast.unparse(node.value) == "self"):
            name = node.attr if node.attr.isupper() else ast.unparse(node)
            return self._named(name) or [("...", line)]
        return [("...", line)]

    def _named(self, name: str) -> list[Text]:
        if name in self._open:
            return []
        self._open.add(name)
        if name not in self.names:
            within = tree(self.path) if "." in name else self._function
            found = [text for node in ast.walk(within or ast.Pass()) for text in self._assigned(node, name)]
            for node in ast.walk(within) if within and "." in name else ():
                if isinstance(node, ast.FunctionDef) and f"self.{node.name}" == name:  # a property
                    returned = [one.value for one in ast.walk(node) if isinstance(one, ast.Return) and one.value]
                    found += [text for value in returned for text in Scope(self.path, node).texts(value)]
            rows = constants().get(name, ()) if not found else ()
            rows = [row for row in rows if row[0] == self.path] or rows
            found += [text for path, value in rows for text in Scope(path, None).texts(value)]
            self.names[name] = [row for row in found if row[0] != "..."] or found
        self._open.discard(name)
        return self.names[name]

    def _assigned(self, node: ast.AST, name: str) -> t.Iterator[Text]:
        """Give what a block of statements assigns to a name, with what it adds to it later."""
        for block in (getattr(node, field, None) for field in ("body", "orelse", "finalbody")):
            have: list[Text] = []
            for statement in block if isinstance(block, list) else ():
                for target, value in _pairs(statement):
                    if target == name:
                        yield from have
                        have = self.texts(value)
                if isinstance(statement, ast.AugAssign) and getattr(statement.target, "id", "") == name:
                    more = self.texts(statement.value)
                    have = [(one + two, at) for one, at in have or [("...", 0)] for two, _line in more]
            yield from have


def _pairs(node: ast.AST) -> t.Iterator[tuple[str, ast.expr]]:
    if not isinstance(node, ast.Assign):
        return
    for target in node.targets:
        if isinstance(target, (ast.Name, ast.Attribute)):
            yield ast.unparse(target), node.value
        elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = zip(target.elts, node.value.elts, strict=False)
            yield from ((one.id, two) for one, two in pairs if isinstance(one, ast.Name))


def raised(path: Path) -> t.Iterator[Raised]:
    """Give every error that a file raises, once for each text that it may have."""
    if path.name == "_refusal.py":
        return  # raises what others say
    functions = [node for node in ast.walk(tree(path)) if isinstance(node, ast.FunctionDef)]
    scopes: dict[int, Scope] = {}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Tuple) and len(node.elts) == 3:
            row = Scope(path, None).texts(node.elts[2])[0][0]
            if ID.search(row):
                # Of a table: pattern, problem, fix.
                yield Raised(path, node.lineno, Scope(path, None).texts(node.elts[1])[0][0], row)
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        around = max(
            (one for one in functions if one.lineno <= node.lineno <= (one.end_lineno or 0)),
            key=lambda one: one.lineno,
            default=None,
        )
        scope = scopes.setdefault(around.lineno if around else 0, Scope(path, around))
        named = {word.arg: word.value for word in node.keywords}
        if name in MESSAGE_CALLS:
            message = next(iter(node.args), named.get("msg"))
            for text, line in scope.texts(message) if message is not None else ():
                handed = not ID.search(text) and re.search(
                    r"\{(exc|wrong)\}'$|str\(exc\)|exc.fix", ast.unparse(message)
                )
                yield Raised(path, line, text, "") if handed else Raised(path, line, *parted(text))
        elif name in CALLS and len(node.args) == CALLS[name] + 2:
            problem, fix = node.args[CALLS[name] : CALLS[name] + 2]
            last = node.end_lineno or 0
            for text, line in before(scope.texts(fix), last):
                found = before(scope.texts(problem), last)
                at = line if isinstance(fix, ast.Name) else node.lineno
                near = min(found, key=lambda row: abs(at - row[1]))
                alone = isinstance(problem, ast.Name) and not problem.id.isupper()
                for words, where in found:
                    if not alone or abs(where - near[1]) < 2:
                        handed = not re.search("[a-z]{2}", text) and HANDED_ON.match(ast.unparse(fix))
                        if words or text:
                            yield Raised(path, node.lineno, words, "" if handed else text)


def refusals(value: t.Any) -> t.Iterator[str]:
    """Yield the messages of all tasks that fail, in a playbook or a file of tasks."""
    for item in value if isinstance(value, list) else value.values() if isinstance(value, dict) else ():
        yield from refusals(item)
    for key, body in value.items() if isinstance(value, dict) else ():
        if key in ("ansible.builtin.fail", "ansible.builtin.wait_for") and "msg" in body:
            yield " ".join(body["msg"].split())
        elif key == "fail_msg":
            yield " ".join(body.split())
        elif key == "railops.rdma.message" and body.get("fail") and "lines" not in body:
            yield " ".join(body["heading"].split())


def before(texts: list[Text], line: int) -> list[Text]:
    """Return the texts that the code has up to a line, or elsewhere where it has none."""
    return [row for row in texts if row[1] <= line] or texts


def parted(text: str) -> tuple[str, str]:
    """Return (problem, fix) of a message: the fix is its last sentence, with the ID."""
    named = match[0] if (match := ID.search(text)) else ""
    plain = text.removesuffix(named).removesuffix("Nothing was changed.").removeprefix("Nothing was changed. ").strip()
    # A sentence begins with a capital, or with a command; what is computed ends none.
    whole: list[str] = []
    for sentence in re.split(r"(?<=[.]) (?=[A-Z.a-z])", plain):
        if whole and re.search(r"(?<![.])[.]{3}$", whole[-1]):
            whole[-1] += f" {sentence}"
        else:
            whole.append(sentence)
    return (" ".join(whole[:-1]), whole[-1] + named) if len(whole) > 1 else (plain, f"...{named}")


def other_modules(path: Path, known: t.Collection[str]) -> t.Iterator[Raised]:
    """Give the texts of a file that end with an ID which is not known, such as lines of a list: nothing raises them."""
    inner = {
        id(below)
        for node in ast.walk(tree(path))
        if isinstance(node, (ast.JoinedStr, ast.BinOp))
        for below in ast.walk(node)
        if below is not node
    }
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "with_id":
            for text, line in Scope(path, None).texts(node):
                if ID.search(text) and text.removeprefix("... [").rstrip("]") not in known:
                    yield Raised(path, line, "...", text)
        if isinstance(node, (ast.Constant, ast.JoinedStr, ast.BinOp)) and id(node) not in inner:
            for text, line in Scope(path, None).texts(node):
                if (match := ID.search(text)) and match[1] not in known:
                    yield Raised(path, line, *parted(text))
