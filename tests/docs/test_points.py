# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each trap of real hardware has a test that carries its number, or a reason."""

from __future__ import annotations

import ast
from pathlib import Path

import points

TESTS = Path(__file__).resolve().parents[1]


def marks(tree):
    """Yield (point, test) of every marked test."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.point":
                    yield mark.args[0].value, node


def marked():
    found = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        if "mark.point(" in text:
            for point, node in marks(ast.parse(text)):
                found.setdefault(point, []).append((str(path.relative_to(TESTS)), node))
    return found


def test_every_point_has_a_test_and_every_test_a_point():
    assert list(points.POINTS) == [f"1.{number}" for number in range(1, 18)]
    assert sorted(marked()) == sorted(points.POINTS)
    assert points.LEFT.keys() <= points.POINTS.keys()


def test_a_test_of_a_point_asserts_something():
    for point, tests in marked().items():
        for path, node in tests:
            assert node.name.startswith("test_"), (point, path)
            asserting = (ast.Assert, ast.With)
            assert any(isinstance(part, asserting) for part in ast.walk(node)), f"{point}: {path}::{node.name}"
