# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Checks: one way to make them, one list of ids."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._check import (
    compared,
    conflicting,
    ok,
    warning,
)
from ansible_collections.railops.rdma.plugins.module_utils._errors import Problem
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.stages import STAGES
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.ids import IDS

PLUGINS = Path(__file__).resolve().parents[4] / "plugins"
SOURCES = {
    str(path.relative_to(PLUGINS)): ast.parse(path.read_text(encoding="utf-8"))
    for path in sorted(PLUGINS.rglob("*.py"))
    if path.name not in ("_check.py", "ids.py")
}
TEXTS = {
    (path, node.lineno, node.value)
    for path, tree in SOURCES.items()
    for node in ast.walk(tree)
    if isinstance(node, ast.Constant) and isinstance(node.value, str)
}


def test_the_ids_have_one_style_and_one_order():
    assert [name for name in IDS if not re.fullmatch(r"[a-z]+(_[a-z0-9]+)+", name)] == []
    rows = yaml.safe_load((PLUGINS.parent / "tests/site/checks.yml").read_text(encoding="utf-8"))
    checks = rows["checks"]
    assert list(checks) == sorted(IDS)
    assert [name for name, row in checks.items() if len(row["passes"]) > 90 or row["passes"].endswith(".")] == []
    assert {row["urgency"] for row in checks.values()} == {*rows["urgency"]}, "urgency"
    assert {row["impact"] for row in checks.values()} == {*rows["impact"]}, "impact"


def test_an_id_outside_the_list_is_refused():
    with pytest.raises(AssertionError, match="'network_lnk' is not in IDS"):
        ok("network_lnk", "up", "up")


def test_equal_or_good_is_ok_and_has_no_cause():
    assert compared("network_mtu", 9000, 9000, "why", "fix")["cause"] == ""
    assert compared("network_mtu", 9000, 1500, "why", "fix")["status"] == "deviation"
    assert compared("rdma_active_mtu", 2048, 4096, "why", "fix", good=True) == ok("rdma_active_mtu", 2048, 4096)
    assert warning("traffic_errors", 0, 3, "why", "fix")["status"] == "warning"


def literals(tree: ast.AST) -> list[int]:
    """Return the lines where a dict with planned and observed is written out."""
    found = []
    for node in ast.walk(tree):
        keys: set[object] = set()
        if isinstance(node, ast.Dict):
            keys = {key.value for key in node.keys if isinstance(key, ast.Constant)}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
            keys = {keyword.arg for keyword in node.keywords}
        if {"planned", "observed"} <= keys:
            found.append(node.lineno)
    return found


def test_an_id_that_is_written_out_is_in_the_list():
    made = {
        node.args[0].value
        for tree in SOURCES.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant)
        if isinstance(node.func, ast.Name) and node.func.id in ("ok", "deviation", "warning", "skipped", "compared")
    }
    assert len(made) > 20
    assert sorted(made - set(IDS)) == []


def test_no_other_code_makes_a_check():
    """Make it with ok, deviation, warning, skipped or compared of _check.py."""
    assert {path: lines for path, tree in SOURCES.items() if (lines := literals(tree))} == {}


def test_every_id_is_made_somewhere():
    found = {text for _path, _line, text in TEXTS}
    for path in (PLUGINS.parent / "roles/verify").rglob("*.yml"):
        found |= set(re.findall(r"[a-z_]+", path.read_text(encoding="utf-8")))
    # The file of the IDs also makes the checks that an audit skips.
    source = (PLUGINS / "plugin_utils/_verdict/ids.py").read_text(encoding="utf-8")
    found |= set(re.findall(r"[a-z_]+", source.partition("IDS = ")[2]))
    # These are put together from two words.
    found |= {f"network_{part}" for part in ("addresses", "routes", "rules")}
    found |= {f"ping_{kind}{size}" for kind in ("gateway", "neighbor") for size in ("", "_mtu")}
    found |= {f"traffic_{kind}{end}" for kind in ("read_lat", "write_bw") for end in ("", "_server")}
    found |= {f"accept_{stage}" for stage in STAGES}
    assert sorted(set(IDS) - found) == []


@pytest.mark.parametrize(
    ("place", "cause"), [("/etc/netplan", "/etc/netplan is read-only."), ("rails[0].interface", "is read-only.")]
)
def test_a_problem_of_a_path_keeps_the_path(place, cause):
    assert conflicting("persist_preflight", Problem(place, "is read-only.", "Mount it writable."))["cause"] == cause
