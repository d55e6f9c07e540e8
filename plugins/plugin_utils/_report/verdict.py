# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict as data for the page: causes, how each rail of each node stands, and what did not run. Pure.

Texts come from hosts and may be long: each is cut here, and shown as text there.
"""

from __future__ import annotations

import json
import time
import typing as t

from ...module_utils._fabric.shapes import Verdict
from ...module_utils._intake import shown
from .equal import SECTIONS, differing, entries, equal, section_of

# A rail's state by the verdict's, as the page knows it.
STATES = {"ok": "o", "deviation": "b", "warning": "w", "affected": "a", "out_of_service": "x"}
KINDS = ("ok", "deviation", "warning", "skipped")
LISTED = 500
NODE_CHECKS = 20
TEXT = 600


def utc(seconds: float | None) -> str:
    """Return a verdict's time for a person; empty where it has none."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""


def _text(value: t.Any, limit: int = TEXT) -> str:
    """Return a value as one line of text, cut where it is longer."""
    if value is None or value == "":
        return ""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        value = ", ".join(value) or "nothing"
    text = shown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def causes(verdict: Verdict, status: str) -> list[dict[str, t.Any]]:
    """Return what is wrong, each cause once, or the warnings: sentence, hosts, rails, fix and an example."""
    checks = [
        (name, row) for name, entry in entries(verdict) for row in entry.get("checks", ()) if row["status"] == status
    ]
    found = []
    for group in equal(checks):
        expected, actual = (
            _text(value) for value in differing(group.check.get("planned"), group.check.get("observed"))
        )
        found.append(
            {
                "id": _text(group.check["id"]),
                "sentence": _text(f"{group.summary}: {group.cause or group.check['id']}").rstrip(".") + ".",
                "hosts": group.hosts,
                "rails": [_text(rail) for rail in group.rails],
                "fix": _text(group.check.get("fix")),
                "expected": expected,
                "actual": actual,
            }
        )
    return found


def record(verdict: Verdict) -> dict[str, t.Any]:
    """Return what is kept of a verdict, for later ones to be compared with."""
    found = [
        {key: cause[key] for key in ("id", "sentence", "hosts", "rails")} for cause in causes(verdict, "deviation")
    ]
    return {"time": verdict.get("time"), "status": verdict["status"], "hosts": len(verdict["hosts"]), "causes": found}


def same(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> bool:
    """Whether two verdicts' causes are the same: the check, and at least one host and one rail."""
    both = [set(one[key]) & set(other[key]) or not (one[key] or other[key]) for key in ("hosts", "rails")]
    return one["id"] == other["id"] and all(both)


def _since(cause: t.Mapping[str, t.Any], history: t.Sequence[t.Mapping[str, t.Any]]) -> float | None:
    """Return the time of the first verdict that has the cause, as far as all after it have it; None: it is new."""
    since = None
    for record in history:
        if not any(same(cause, old) for old in record["causes"]):
            break
        since = record["time"]
    return since


def verdict_data(verdict: Verdict, history: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, t.Any]:
    """Return all that the page shows of a verdict."""
    found = causes(verdict, "deviation")
    counts = [entry.get("counts") or {} for _name, entry in entries(verdict)]
    total, skipped = (sum(sum(map(row.get, keys, [0] * len(keys))) for row in counts) for keys in (KINDS, ("skipped",)))
    # A run with --limit neither hides what is new nor resolves what it did not check.
    seen = {*verdict["hosts"], *SECTIONS}
    history = [record for record in history if record["hosts"] >= len(verdict["hosts"])]
    before = [old for old in history[0]["causes"] if seen.issuperset(old["hosts"])] if history else []
    sections = [(name, section_of(verdict, name)) for name in SECTIONS]
    return {
        "status": verdict["status"],
        "time": verdict.get("time"),
        "digest": verdict["plan_digest"],
        "ran": total - skipped,
        "planned": total,
        "skipped": [(_text(row["reason"]), row["checks"], row["hosts"]) for row in verdict.get("skipped") or ()],
        "sections": [(name, row["status"], _text(row.get("error") or row.get("reason"))) for name, row in sections],
        "causes": [{**cause, "since": _since(cause, history)} for cause in found[:LISTED]],
        "more": max(0, len(found) - LISTED),
        "warnings": causes(verdict, "warning")[:LISTED],
        "resolved": [old["sentence"] for old in before if not any(same(old, new) for new in found)],
        "history": [(record["time"], record["status"], len(record["causes"])) for record in history],
        **_by_node(verdict),
    }


def _by_node(verdict: Verdict) -> dict[str, t.Any]:
    """Return the states of each node's rails, and of those with more to say: why there is no answer, and its checks."""
    rails, states, details = verdict["rails"], {}, {}
    for host, entry in verdict["hosts"].items():
        name = str(entry.get("node") or host)
        answered = entry.get("status") in ("pass", "deviation")
        states[name] = "".join(STATES.get(entry["rails"].get(rail, ""), "u") for rail in rails) if answered else "l"
        rows = [row for row in entry.get("checks") or () if row["status"] in ("deviation", "warning")]
        if rows or not answered or name != host:
            details[name] = {
                "host": host,
                "error": "" if answered else _text(entry.get("error") or entry.get("status"), 300),
                "checks": [
                    [row["status"], *(_text(row.get(key), 300) for key in ("rail", "id", "cause", "fix"))]
                    for row in rows[:NODE_CHECKS]
                ],
            }
    return {"states": states, "details": details}
