# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What modules return in tests is compared with what their RETURN says: every key, in both directions."""

from __future__ import annotations

import typing as t
from functools import cache
from pathlib import Path

import yaml

MODULES = Path(__file__).resolve().parents[2] / "plugins/modules"
# What ansible-core documents for all modules, and what a connection would add or take away.
COMMON = {
    "changed",
    "failed",
    "diff",
    "msg",
    "warnings",
    "deprecations",
    "invocation",
    "skipped",
    "skip_reason",
    "exception",
}
SEEN: dict[str, set[str]] = {}
"""The keys that this process has seen, by the module."""

ELSEWHERE = {
    "cluster_components_info": "cluster",
    "cluster_nodes": "cluster",
    "cluster_objects": "cluster",
    "cluster_wait": "cluster",
    "collective_job": "cluster",
    "fabric_lease": "cluster",
    "kubernetes_gate": "cluster",
    "pod_probe": "cluster",
    "rail_audit": "kernel",
    "webhook_tls": "site",
}
"""Modules that unit tests do not run, and the folder of tests that does: they need a cluster, a kernel or
the playbooks."""


@cache
def documented(name: str) -> set[str]:
    """Return the keys that a module's RETURN names."""
    text = (MODULES / f"{name}.py").read_text(encoding="utf-8").partition('\nRETURN = r"""')[2].partition('"""')[0]
    return set(yaml.safe_load(text) or {})


def returned(name: str, result: dict[str, t.Any]) -> dict[str, t.Any]:
    """Hold that RETURN has every key of a result, note them, and give the result back.

    A failure may bring more: its facts are for people who look into it.
    """
    SEEN.setdefault(name, set()).update(result)
    unknown = set() if result.get("failed") else set(result) - documented(name) - COMMON
    assert not unknown, f"RETURN of {name} does not have {', '.join(sorted(unknown))}."
    return result


def missing() -> list[str]:
    """Return what a RETURN names and no run of all unit tests returned, and what ELSEWHERE has for nothing."""
    names = sorted(path.stem for path in MODULES.glob("[a-z]*.py"))
    never = {f"{name}.{key}" for name in names for key in documented(name) - SEEN.get(name, set())}
    found = {key for key in never if key not in ELSEWHERE and key.partition(".")[0] not in ELSEWHERE}
    needless = {row for row in ELSEWHERE if row not in never and not any(key.startswith(f"{row}.") for key in never)}
    return sorted(f"{key}: no unit test returns it" for key in found) + sorted(
        f"{row}: unit tests return it; remove it from ELSEWHERE in tests/tools/returned.py" for row in needless
    )
