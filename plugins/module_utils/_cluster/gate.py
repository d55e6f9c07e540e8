# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides which nodes jobs may use, from verdicts: hysteresis, a cap over the fleet, never the last nodes of a zone.

Pure. An annotation of the node keeps the history, so the next run continues from there on any controller. The patches
are for a server such as kube-apiserver 1.36: a strategic merge of /status merges conditions by their type. Taints are
one list, which a patch replaces completely, and only in the version that was read.
"""

from __future__ import annotations

import json
import typing as t
from collections import Counter
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from numbers import Real

from .._fabric.labels import GATE_TAINT, NODE_PREFIX
from .._fabric.shapes import Verdict
from .._validation import parsed, sanitize, validate
from .model import Json
from .nodes import CONDITION, Node

NOTE = f"{NODE_PREFIX}/gate"
TRUE, FALSE, UNKNOWN = "True", "False", "Unknown"
MAX_MESSAGE = 1000
"""Characters of a condition's message: every list of nodes carries it."""


@dataclass(frozen=True)
class GatePolicy:
    """When a node is broken, healthy or out.

    `failure_threshold` bad verdicts in a row make a node broken, `success_threshold` good ones healthy again. At most
    `max_unavailable` nodes of the fleet are out at once; at least `min_available` nodes of each zone stay in. A verdict
    counts for `max_age` seconds. Without `taint` no node is out.
    """

    failure_threshold: int = 2
    success_threshold: int = 3
    max_unavailable: int = 1
    min_available: int = 1
    max_age: float = 7200
    taint: bool = False


_NOTE = {"fabric": str, "bad": int, "good": int, "broken": (None, bool), "out": bool, "seen": Real, "message": str}
MAX_TIME = 253402300799
"""The last second that a time can be of: the end of the year 9999."""


@dataclass(frozen=True)
class GateMemory:
    """The record on the node between two runs."""

    fabric: str = ""
    bad: int = 0
    """Bad verdicts in a row."""
    good: int = 0
    broken: bool | None = None
    """None: too few verdicts yet."""
    out: bool = False
    seen: float = 0
    """When the last verdict that counted was made, in seconds since 1970."""
    message: str = ""

    @classmethod
    def of(cls, text: str) -> GateMemory | None:
        """Read the annotation; None where it is not one of ours: the node itself may write it."""
        try:
            data = validate(sanitize(parsed(text)), _NOTE, "the note")
        except ValueError:
            return None
        memory = cls(**{key: data.get(key) for key in _NOTE})
        return memory if min(memory.bad, memory.good, memory.seen, MAX_TIME - memory.seen) >= 0 else None

    def text(self) -> str:
        """Write the annotation."""
        return json.dumps(asdict(self), sort_keys=True)


def gated(node: Json) -> Node:
    """Return what matters of a node object, with the gate's note."""
    return Node.of(node, "", NOTE)


def described(live: Node) -> str:
    """Return the state of a node for a person."""
    tainted = any(taint.get("key") == GATE_TAINT["key"] for taint in live.taints)
    return _shown(live.condition.get("status"), live.condition.get("message"), tainted, live.note)


@dataclass(frozen=True)
class GateTarget:
    """The wanted state of a node."""

    memory: GateMemory
    status: str
    reason: str
    message: str

    def __str__(self) -> str:
        return _shown(self.status, self.message, self.memory.out, self.memory.text())


def _shown(status: str | None, message: str | None, out: bool, note: str) -> str:
    """Return what a node is or is to be, for a person."""
    reported = f"{CONDITION}={status} ({message})" if status else "without condition"
    return f"{reported}, {'out' if out else 'in'}, {note or 'no note'}"


# --- deciding --------------------------------------------------------------------------------------------------------


def judgments(verdict: Verdict, ignored: t.Collection[str] = ()) -> dict[str, str]:
    """Return a verdict's problems of each verified node, empty for a healthy node.

    :param ignored: ids of checks that keep no job off a node.
    """
    found = {}
    for host, entry in verdict["hosts"].items():
        if entry["status"] not in ("pass", "deviation"):
            continue
        parts: dict[str, dict[str, None]] = {}
        for check in entry["checks"]:
            # A check that is attributed to another node, or to neither end, counts against no node.
            counts = "attributed_to" not in check and not check.get("unconfirmed")
            if check["status"] == "deviation" and check["id"] not in ignored and counts:
                parts.setdefault(check["rail"] or "host", {})[check["id"]] = None
        message = "; ".join(f"{where}: {', '.join(ids)}" for where, ids in parts.items())
        if len(message) > MAX_MESSAGE:
            message = message[: MAX_MESSAGE - 4] + " ..."
        found[entry.get("node") or host] = message
    return found


def max_unavailable_of(text: str, total: int) -> int:
    """Return how many nodes may be out: a number, or a percentage of the fleet, rounded down but at least one.

    :raises ValueError: it is neither.
    """
    if text.endswith("%"):
        share = float(text[:-1])
        if not 0 <= share <= 100:
            raise ValueError(text)
        return max(1, int(total * share / 100)) if share and total else 0
    number = int(text)
    if number < 0:
        raise ValueError(text)
    return number


def updated_memory(memory: GateMemory, against: str | None, when: float, policy: GatePolicy) -> GateMemory:
    """Return what is known after a verdict; one that was counted already, or that says nothing, changes nothing.

    :param against: what the verdict has against the node, empty where that is nothing; None: it does not judge it.
    :param when: the verdict's time, in seconds since 1970.
    """
    if against is None or when <= memory.seen:
        return memory
    if not against:
        good = min(memory.good + 1, policy.success_threshold)
        # A node that was never seen before is whole at the first good word.
        still = bool(memory.broken) and good < policy.success_threshold
        return replace(memory, good=good, bad=0, broken=still, seen=when, message="")
    bad = min(memory.bad + 1, policy.failure_threshold)
    broken = memory.broken if bad < policy.failure_threshold else True
    return replace(memory, bad=bad, good=0, broken=broken, seen=when, message=against)


def chosen(
    broken: t.Collection[str],
    before: t.Collection[str],
    usable: t.Mapping[str, bool],
    zones: t.Mapping[str, str],
    policy: GatePolicy,
) -> set[str]:
    """Return which of the broken nodes are out.

    Who is out stays out, as far as cap and zones allow; for a new one other nodes of its zone must be usable.

    :param broken: nodes that are broken by their verdicts.
    :param zones: the zone by node.
    :param before: nodes that are out now.
    :param usable: all nodes of the fleet that are in the cluster.
    """
    out: set[str] = set()
    staying: Counter[str] = Counter(zones.get(name, "") for name in usable)
    serving: Counter[str] = Counter(zones.get(name, "") for name, good in usable.items() if good)
    for name in sorted(broken, key=lambda name: (name not in before, name)):
        zone = zones.get(name, "")
        left = staying[zone] - 1 if name in before else serving[zone] - usable[name]
        if len(out) < policy.max_unavailable and left >= policy.min_available:
            out.add(name)
            staying[zone] -= 1
            serving[zone] -= usable[name]
    return out


def decide(
    fabric: str,
    nodes: t.Mapping[str, Node],
    zones: t.Mapping[str, str],
    found: t.Mapping[str, str],
    when: float,
    now: float,
    policy: GatePolicy,
) -> dict[str, GateTarget]:
    """Return what every node of the fabric is to be.

    :param nodes: the fabric's nodes that are in the cluster; those that another fabric's gate holds left out.
    :param zones: the zone by node.
    :param found: what the verdict has against nodes, as `judgments` returns it.
    :param when: when the verdict was made; 0 when there is none. `now`: seconds since 1970 as well.
    """
    fresh = when if now - when <= policy.max_age else 0.0
    memories = {
        name: updated_memory(GateMemory.of(live.note) or GateMemory(fabric), found.get(name), fresh, policy)
        for name, live in nodes.items()
    }
    out: set[str] = set()
    if policy.taint:
        broken = {name for name, memory in memories.items() if memory.broken}
        before = {name for name in broken if memories[name].out}
        out = chosen(
            broken, before, {name: live.up and not live.cordoned for name, live in nodes.items()}, zones, policy
        )
    return {name: _target(replace(memory, out=name in out), now, policy) for name, memory in memories.items()}


def _target(memory: GateMemory, now: float, policy: GatePolicy) -> GateTarget:
    if not memory.seen:
        return GateTarget(memory, UNKNOWN, "NotAudited", "No verdict has judged this node yet.")
    if now - memory.seen > policy.max_age:
        return GateTarget(
            memory, UNKNOWN, "VerdictTooOld", f"The last verdict of this node is of {stamp(memory.seen)}."
        )
    if memory.broken is None:
        message = f"{memory.bad} of {policy.failure_threshold} bad verdicts in a row: {memory.message}"
        return GateTarget(memory, UNKNOWN, "TooFewVerdicts", message)
    if not memory.broken:
        doubt = (
            f" The last verdict was bad ({memory.bad} of {policy.failure_threshold}): {memory.message}"
            if memory.bad
            else ""
        )
        return GateTarget(memory, TRUE, "RailsAsPlanned", f"Every rail is as planned.{doubt}")
    state = memory.message or f"{memory.good} of {policy.success_threshold} good verdicts in a row"
    capped = " (not taken out: too many are, or too few of its zone would be left)" if policy.taint else ""
    return GateTarget(memory, FALSE, "RailsBroken", state + ("" if memory.out else capped))


# --- patches ---------------------------------------------------------------------------------------------------------


def stamp(seconds: float) -> str:
    """Write a time as Kubernetes does."""
    return datetime.fromtimestamp(int(seconds), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def gate_taint(live: Node, target: GateTarget | None) -> Json | None:
    """Return the merge patch that sets or removes our taint; None: it is as wanted."""
    return live.taint_patch(GATE_TAINT, wanted=target is not None and target.memory.out)


def status_patch(live: Node, target: GateTarget | None, now: float) -> Json | None:
    """Return the strategic merge of /status that brings condition and annotation, or takes them off; None: as it is.

    :param target: None takes both off.
    """
    if target is None:
        if not live.note and not live.condition:
            return None
        removed = [{"type": CONDITION, "$patch": "delete"}]
        return _versioned(live, {"annotations": {NOTE: None}}, {"status": {"conditions": removed}})
    wanted = {"type": CONDITION, "status": target.status, "reason": target.reason, "message": target.message}
    if all(live.condition.get(key) == value for key, value in wanted.items()) and live.note == target.memory.text():
        return None
    turned = live.condition.get("status") != target.status
    wanted["lastTransitionTime"] = stamp(now) if turned else live.condition.get("lastTransitionTime") or stamp(now)
    wanted["lastHeartbeatTime"] = stamp(target.memory.seen or now)
    return _versioned(live, {"annotations": {NOTE: target.memory.text()}}, {"status": {"conditions": [wanted]}})


def _versioned(live: Node, meta: Json, rest: Json) -> Json:
    """Return a patch that the server refuses when another client changed the node after it was read."""
    return {"metadata": {"resourceVersion": live.version, **meta}, **rest}
