# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A value given as `-e name=60` is text: no role and no playbook may compute with it, or decide by it, as it is.

Every expression of every role and playbook is parsed. A variable that is a number or a switch may be passed on (modules
convert what they are given), but before arithmetic, a comparison or a decision it must go through int, float or bool.
"""

from __future__ import annotations

import typing as t
from pathlib import Path

import yaml
from jinja2 import Environment, nodes

CHECKOUT = Path(__file__).resolve().parents[2]
# Values that are expressions without braces.
BARE = ("when", "that", "until", "failed_when", "changed_when", "check_mode", "ignore_errors")
ARITHMETIC = (nodes.Add, nodes.Sub, nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Pow)
COLLECTING = ("max", "min", "sum", "sort")


class Loader(yaml.SafeLoader):
    """YAML with Ansible's tags as plain text."""


Loader.add_multi_constructor("!", lambda loader, _suffix, node: loader.construct_scalar(node))


def declared() -> dict[str, str]:
    """Return the type of each number and switch that a role documents."""
    found = {}
    for path in CHECKOUT.glob("roles/*/meta/argument_specs.yml"):
        for spec in yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values():
            for name, option in (spec.get("options") or {}).items():
                if option.get("type") in ("int", "float", "bool"):
                    found[name] = option["type"]
    return found


def expressions(value: t.Any, key: str = "") -> t.Iterator[tuple[str, bool]]:
    """Give each template of a YAML document, and whether it decides something."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from expressions(item, name)
    elif isinstance(value, list):
        for item in value:
            yield from expressions(item, key)
    elif isinstance(value, str):
        if key in BARE and "{{" not in value:
            yield f"{{{{ {value} }}}}", True
        elif "{{" in value or "{%" in value:
            yield value, key in BARE


def sources() -> t.Iterator[tuple[Path, str, bool]]:
    for path in sorted([*CHECKOUT.glob("roles/*/*/*.yml"), *CHECKOUT.glob("playbooks/*.yml")]):
        if path.parent.name == "meta":
            continue
        for text, decides in expressions(yaml.load(path.read_text(encoding="utf-8"), Loader)):
            yield path, text, decides
    for path in sorted(CHECKOUT.glob("roles/*/templates/*.j2")):
        yield path, path.read_text(encoding="utf-8"), False


def kind_of(node: nodes.Node | None, known: dict[str, str]) -> tuple[str, str]:
    """Return name and type of a variable that stands here as it was given; ("", "") for anything else."""
    if isinstance(node, nodes.Filter) and node.name in ("default", "d") and isinstance(node.node, nodes.Name):
        name = node.node.name
        first = node.args[0] if node.args else None
        if isinstance(first, nodes.Const) and isinstance(first.value, (bool, int, float)):
            return name, known.get(name, type(first.value).__name__)
        return (name, known[name]) if name in known else ("", "")
    if isinstance(node, nodes.Name) and node.name in known:
        return node.name, known[node.name]
    return "", ""


def faults(text: str, decides: bool, known: dict[str, str]) -> t.Iterator[str]:
    """Give the variables of an expression that are used as if they were no text."""
    tree = Environment(extensions=["jinja2.ext.do"]).parse(text)
    conditions: list[nodes.Node | None] = []
    computed: list[nodes.Node | None] = []
    if decides:
        conditions += [item for output in tree.find_all(nodes.Output) for item in output.nodes]
    for node in tree.find_all((nodes.And, nodes.Or)):
        conditions += [node.left, node.right]
    conditions += [node.node for node in tree.find_all(nodes.Not)]
    conditions += [node.test for node in tree.find_all((nodes.CondExpr, nodes.If))]
    for node in tree.find_all(ARITHMETIC):
        computed += [node.left, node.right]
    computed += [node.node for node in tree.find_all((nodes.Neg, nodes.Pos))]
    for node in tree.find_all(nodes.Compare):
        computed += [node.expr, *(operand.expr for operand in node.ops if operand.op not in ("in", "notin"))]
    for node in tree.find_all(nodes.Filter):
        if node.name in COLLECTING and isinstance(node.node, nodes.List):
            computed += node.node.items
    for node in conditions:
        name, _kind = kind_of(node, known)
        if name:
            yield f"{name} decides as it is: write {name} | bool (or | int)"
    for node in computed:
        name, kind = kind_of(node, known)
        if name and kind != "str":
            yield f"{name} is computed with as it is: write {name} | {kind}"


def test_no_expression_takes_a_number_or_a_switch_as_it_was_given() -> None:
    known = declared()
    assert {"spiderpool_timeout", "spiderpool_metrics", "rail_objects_wait_seconds"} <= set(known)
    found = sorted(
        {
            f"{path.relative_to(CHECKOUT)}: {fault}"
            for path, text, decides in sources()
            for fault in faults(text, decides, known)
        }
    )
    assert not found, "\n".join(found)


def test_folders_are_those_of_the_planner_which_resolves_environment_variables() -> None:
    found = [" ".join(text.split()) for _path, text, _decides in sources() if "realpath" in text]
    assert {"| expandvars | expanduser | realpath" in text for text in found} == {True}, found
