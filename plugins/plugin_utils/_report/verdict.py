# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict as data for the page: causes, the state of each rail of each node, and skipped checks. Pure.

Texts come from hosts and may be long: this file truncates each, and the page shows it as text.
"""

from __future__ import annotations

import time
import typing as t

from ...module_utils._check import DEVIATION, SKIPPED, WARNING
from ...module_utils._fabric.shapes import Verdict
from .equal import SECTIONS, differing
from .table import plain

# A rail's state by the verdict's, as the page knows it.
STATES = {"ok": "o", "deviation": "b", "warning": "w", "affected": "a"}
LISTED = 500
NODE_CHECKS = 20
TEXT = 600


def utc(seconds: float | None) -> str:
    """Return a verdict's time for a person; empty where it has none."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""


def _text(value: t.Any, limit: int = TEXT) -> str:
    """Return a value as one line of text, cut where it is longer."""
    text = plain(value)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _causes(verdict: Verdict) -> t.Iterator[dict[str, t.Any]]:
    """Yield the causes, each with what one of its checks expects and finds."""
    for card in verdict.get("causes") or ():
        host = verdict["hosts"].get(card["hosts"][0]) if card["hosts"] else None
        places = [host] if host else [verdict[name] for name in SECTIONS]
        key = (card["check"], card["status"], next(iter(card["rails"]), None))
        rows = [row for place in places for row in place["checks"] if (row["id"], row["status"], row["rail"]) == key]
        row: t.Any = min(rows, key=lambda row: len(row.keys() & {"caused_by", "attributed_to"}), default={})
        expected, actual = (_text(value) for value in differing(row.get("planned"), row.get("observed")))
        texts = {key: _text(value) if isinstance(value, str) else value for key, value in card.items()}
        yield {**texts, "command": card.get("command") or "", "expected": expected, "actual": actual}


def record(verdict: Verdict) -> dict[str, t.Any]:
    """Return what is kept of a verdict, for later ones to be compared with."""
    rows = [cause for cause in _causes(verdict) if cause["status"] == DEVIATION]
    found = [{key: cause[key] for key in ("check", "sentence", "hosts", "rails")} for cause in rows]
    return {"time": verdict.get("time"), "status": verdict["status"], "hosts": len(verdict["hosts"]), "causes": found}


def same(one: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any]) -> bool:
    """Whether two verdicts' causes are the same: the check, and at least one host and one rail."""
    both = [set(one[key]) & set(other[key]) or not (one[key] or other[key]) for key in ("hosts", "rails")]
    return one["check"] == other["check"] and all(both)


def _since(cause: t.Mapping[str, t.Any], history: t.Sequence[t.Mapping[str, t.Any]]) -> float | None:
    """Return the time of the first verdict that has the cause, as far as all after it have it; None: it is new."""
    since = None
    for record in history:
        if not any(same(cause, old) for old in record["causes"]):
            break
        since = record["time"]
    return since


def verdict_data(
    verdict: Verdict, history: t.Sequence[t.Mapping[str, t.Any]] = (), commands: t.Sequence[tuple[str, str]] = ()
) -> dict[str, t.Any]:
    """Return all that the page shows of a verdict.

    :param history: the verdicts before it, the newest first: see `record`.
    :param commands: those that repair all causes, with their impact.
    """
    rows = [*_causes(verdict)]
    found = [cause for cause in rows if cause["status"] == DEVIATION]
    # A run with --limit neither hides what is new nor resolves what it did not check.
    seen = {*verdict["hosts"], *SECTIONS}
    history = [record for record in history if record["hosts"] >= len(verdict["hosts"])]
    before = [old for old in history[0]["causes"] if seen.issuperset(old["hosts"])] if history else []
    sections = [(name, verdict[name]) for name in SECTIONS]
    looked = [(name, row["status"], _text(row.get("error"))) for name, row in sections if row["status"] != SKIPPED]
    return {
        "status": verdict["status"],
        "time": verdict.get("time"),
        "digest": verdict["plan_digest"],
        "coverage": verdict.get("coverage"),
        "skipped": [(_text(row["reason"]), row["checks"], row["hosts"]) for row in verdict.get("skipped") or ()],
        "sections": looked,
        "causes": [{**cause, "since": _since(cause, history)} for cause in found[:LISTED]],
        "more": max(0, len(found) - LISTED),
        "warnings": [cause for cause in rows if cause["status"] != DEVIATION][:LISTED],
        "commands": commands,
        "resolved": [old["sentence"] for old in before if not any(same(old, new) for new in found)],
        "history": [(record["time"], record["status"], len(record["causes"])) for record in history],
        **_by_node(verdict),
    }


def _states(entry: t.Mapping[str, t.Any], rails: t.Sequence[str]) -> str:
    """Return a letter for each rail of a host, or one for all of them."""
    if entry["status"] not in ("pass", "deviation"):
        return "x" if entry["status"] == SKIPPED else "l"
    out = {check["rail"] for check in entry["checks"] if check["id"] == "rail_out_of_service"}
    return "".join("x" if rail in out else STATES.get(entry["rails"].get(rail, ""), "u") for rail in rails)


def _by_node(verdict: Verdict) -> dict[str, t.Any]:
    """Return the states of each node's rails, and of those with more to say: why there is no answer, and its checks."""
    states, details = {}, {}
    for host, entry in verdict["hosts"].items():
        name = str(entry.get("node") or host)
        states[name] = _states(entry, verdict["rails"])
        rows = [
            (
                row["status"] if row.get("attributed_to", host) == host else "affected",
                *(_text(row.get(key), 300) for key in ("rail", "id", "cause")),
                _text(row.get("command") or row.get("fix"), 300),
                _text(row.get("caused_by")),
            )
            for row in entry["checks"]
            if row["status"] in (DEVIATION, WARNING)
        ]
        if rows or states[name] == "l" or name != host:
            error = _text(entry.get("error") or entry["status"], 300) if states[name] == "l" else ""
            details[name] = {"host": host, "error": error, "checks": rows[:NODE_CHECKS]}
    return {"states": states, "details": details}
