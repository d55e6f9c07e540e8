# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders a plan of objects as text. Pure."""

from __future__ import annotations

import json
import typing as t
from collections import Counter

from .model import ClusterPlan

_SHOWN = 20


def as_text(value: t.Any) -> str:
    """Return a value on one line, cut where it is long."""
    text = json.dumps(value, separators=(", ", ": "), ensure_ascii=False) if value is not None else "(none)"
    return text if len(text) <= 160 else f"{text[:160]}... ({len(text)} characters)"


def summary(counts: t.Mapping[str, int]) -> str:
    """Return one line that says it all."""
    names = {
        "created": "to create",
        "applied": "to change",
        "replaced": "to replace",
        "deleted": "to delete",
        "kept": "kept",
        "conflicts": "in conflict",
        "unchanged": "unchanged",
    }
    return ", ".join(f"{counts[key]:,} {text}" for key, text in names.items())


def describe(plan: ClusterPlan, headline: str) -> str:
    """Return a diff that a person can read at any size: the summary, what needs eyes, then samples of the rest."""
    lines = [headline]
    lines += [f"! {row.ref}: kept, would {row.action}: {row.reason}" for row in plan.retained[:_SHOWN]]
    lines += _more(len(plan.retained), "!", Counter())
    for action, mark in (("delete", "-"), ("replace", "-+"), ("apply", "~"), ("create", "+")):
        steps = [step for step in plan.steps if step.action == action]
        for step in steps[:_SHOWN]:
            lines.append(f"{mark} {step.ref}")
            lines += [
                f"    {row.field}: {as_text(row.before)} -> {as_text(row.after)}" for row in step.differences[:10]
            ]
            lines += [f"    reverted: {text}" for text in step.reverted[:10]]
        lines += _more(len(steps), mark, Counter(step.ref.kind for step in steps[_SHOWN:]))
    return "\n".join(lines) + "\n"


def _more(count: int, mark: str, kinds: Counter[str]) -> list[str]:
    if count <= _SHOWN:
        return []
    by_kind = ", ".join(f"{number:,} {kind}" for kind, number in sorted(kinds.items()))
    return [f"{mark} ... and {count - _SHOWN:,} more" + (f": {by_kind}" if by_kind else "")]
