# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The gate: hysteresis, cap and zones under random verdicts, and patches that leave others alone."""

from __future__ import annotations

import copy
import json
import random
from dataclasses import replace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.gate import (
    CONDITION,
    GateMemory,
    GatePolicy,
    decide,
    gate_taint,
    gated,
    judgments,
    max_unavailable_of,
    status_patch,
)
from ansible_collections.railops.rdma.plugins.module_utils._cluster.gate_run import update_node
from ansible_collections.railops.rdma.plugins.module_utils._cluster.nodes import Node
from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import GATE_TAINT

FOREIGN = {"key": "foreign", "value": "x", "effect": "NoSchedule"}


def node(**spec):
    ready = {"type": "Ready", "status": "True"}
    return {"metadata": {"resourceVersion": "1"}, "spec": spec, "status": {"conditions": [ready]}}


def applied(obj, target, now):
    """Play the server: merge conditions by type, replace taints."""
    obj = copy.deepcopy(obj)
    live = gated(obj)
    patch = status_patch(live, target, now)
    if patch:
        meta = obj["metadata"]
        notes = {**meta.get("annotations", {}), **patch["metadata"]["annotations"]}
        meta["annotations"] = {key: value for key, value in notes.items() if value is not None}
        rows = {row["type"]: row for row in obj["status"]["conditions"]}
        for row in patch["status"]["conditions"]:
            if row.get("$patch") == "delete":
                rows.pop(row["type"], None)
            else:
                rows[row["type"]] = {**rows.get(row["type"], {}), **row}
        obj["status"]["conditions"] = list(rows.values())
    patch = gate_taint(live, target)
    if patch:
        obj["spec"]["taints"] = patch["spec"]["taints"] or []
    return obj


STRICT = GatePolicy(failure_threshold=1, min_available=0, taint=True)


def run_once(objects, zones, found, when, now, policy):
    live = {name: gated(obj) for name, obj in objects.items()}
    targets = decide("f", live, zones, found, when, now, policy)
    made = {name: applied(obj, targets[name], now) for name, obj in objects.items()}
    # The same again changes nothing.
    again = decide("f", {name: gated(obj) for name, obj in made.items()}, zones, found, when, now, policy)
    for name, obj in made.items():
        assert status_patch(gated(obj), again[name], now) is None
        assert gate_taint(gated(obj), again[name]) is None
    return made, targets


@pytest.mark.parametrize("seed", range(150))
def test_cap_and_hysteresis_hold_under_random_verdicts(seed):
    draw = random.Random(seed)
    names = [f"node{number}" for number in range(draw.randint(1, 12))]
    zones = {name: draw.choice("abc"[: draw.randint(1, 3)]) for name in names}
    policy = GatePolicy(
        failure_threshold=draw.randint(1, 3),
        success_threshold=draw.randint(1, 3),
        max_unavailable=draw.randint(0, 5),
        min_available=draw.randint(0, 2),
        max_age=100,
        taint=draw.random() < 0.8,
    )
    objects = {name: node(taints=[FOREIGN]) for name in names}
    history = {name: [] for name in names}
    now = 1000.0
    rate = draw.random()
    for _round in range(25):
        now += draw.choice([1, 50, 150])
        when = now - draw.choice([0, 0, 0, 500])
        found = {name: "" if draw.random() > rate else "rail1: x" for name in names if draw.random() < 0.9}
        for obj in objects.values():
            obj["spec"]["unschedulable"] = draw.random() < 0.1
        before = {name: GATE_TAINT in obj["spec"]["taints"] for name, obj in objects.items()}
        objects, targets = run_once(objects, zones, found, when, now, policy)
        for name in names:
            # The verdict counted if it was young and newer than what the node had seen.
            if (
                name in found
                and targets[name].memory.seen == when
                and (not history[name] or history[name][-1][1] < when)
            ):
                history[name].append((not found[name], when))
        out = {name for name, obj in objects.items() if GATE_TAINT in obj["spec"]["taints"]}
        assert len(out) <= policy.max_unavailable
        assert policy.taint or not out
        for zone in set(zones.values()):
            members = {name for name in names if zones[name] == zone}
            assert not out & members or len(members - out) >= policy.min_available
        for name, obj in objects.items():
            assert obj["spec"]["taints"][0] == FOREIGN
            words = [good for good, _when in history[name]]
            if name in out and not before[name]:
                others = [other for other in names if zones[other] == zones[name] and other not in out]
                assert sum(not objects[other]["spec"]["unschedulable"] for other in others) >= policy.min_available
                # Somewhere enough bad words came in a row, and not enough good ones since.
                assert bad_then(words, policy)
            if before[name] and name not in out and len(out) < policy.max_unavailable:
                assert words[-policy.success_threshold :] == [True] * policy.success_threshold
            condition = next(row for row in obj["status"]["conditions"] if row["type"] == CONDITION)
            if now - targets[name].memory.seen > policy.max_age:
                assert condition["status"] == "Unknown"
            elif words:
                assert (condition["status"] == "False") == bad_then(words, policy)


def bad_then(words, policy):
    """Say whether the words end broken, by reading all of them."""
    broken = False
    for end in range(1, len(words) + 1):
        tail = words[:end]
        if tail[-policy.failure_threshold :] == [False] * policy.failure_threshold:
            broken = True
        elif tail[-policy.success_threshold :] == [True] * policy.success_threshold:
            broken = False
    return broken


def test_the_last_usable_node_of_a_zone_stays():
    objects = {"a1": node(), "a2": node(unschedulable=True), "b1": node(), "b2": node()}
    zones = {"a1": "a", "a2": "a", "b1": "b", "b2": "b"}
    found = dict.fromkeys(("a1", "b1"), "rail1: x")
    _objects, targets = run_once(
        objects, zones, found, 10, 11, GatePolicy(failure_threshold=1, max_unavailable=4, taint=True)
    )
    assert {name for name, target in targets.items() if target.memory.out} == {"b1"}
    assert "not taken out" in targets["a1"].message


def test_transition_time_moves_with_the_status_only():
    objects, _targets = run_once({"n": node()}, {}, {"n": ""}, 1000, 1001, GatePolicy())
    first = objects["n"]["status"]["conditions"][1]
    objects, _targets = run_once(objects, {}, {"n": ""}, 2000, 2001, GatePolicy())
    second = objects["n"]["status"]["conditions"][1]
    assert first["lastTransitionTime"] == second["lastTransitionTime"]
    assert first["lastHeartbeatTime"] < second["lastHeartbeatTime"]


def test_everything_managed_is_removed_and_nothing_else():
    start = node(taints=[FOREIGN])
    start["metadata"]["annotations"] = {"other": "x"}
    objects, _targets = run_once({"n": start}, {}, {"n": "x"}, 10, 11, STRICT)
    assert GATE_TAINT in objects["n"]["spec"]["taints"]
    assert applied(objects["n"], None, 12) == start
    assert status_patch(gated(start), None, 12) is None


def test_patches_name_the_version_that_was_read():
    live = replace(gated(node()), version="77", taints=(FOREIGN,))
    target = decide("f", {"n": live}, {}, {"n": "x"}, 10, 11, STRICT)["n"]
    assert status_patch(live, target, 11)["metadata"]["resourceVersion"] == "77"
    assert gate_taint(live, replace(target, memory=replace(target.memory, out=True))) == {
        "metadata": {"resourceVersion": "77"},
        "spec": {"taints": [FOREIGN, GATE_TAINT]},
    }


@pytest.mark.parametrize(
    ("text", "total", "most"), [("3", 10, 3), ("0", 10, 0), ("10%", 8, 1), ("10%", 100, 10), ("0%", 9, 0), ("5%", 0, 0)]
)
def test_how_many_may_be_out(text, total, most):
    assert max_unavailable_of(text, total) == most


@pytest.mark.parametrize("text", ["", "-1", "many", "101%", "%"])
def test_what_is_no_number_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011 - what int() and float() say is theirs
        max_unavailable_of(text, 10)


def test_what_a_verdict_says_of_nodes():
    def host(status, *checks):
        rows = [{"id": name, "rail": rail, "status": kind} for name, rail, kind in checks]
        return {"status": status, "node": None, "checks": rows}

    verdict = {
        "hosts": {
            "good": host("pass", ("mtu", "rail1", "skipped")),
            "bad": host(
                "deviation", ("mtu", "rail1", "deviation"), ("mtu", "rail1", "deviation"), ("mode", None, "deviation")
            ),
            "ignored": host("deviation", ("mode", None, "deviation")),
            "lost": host("unreachable"),
            "error": host("error"),
        }
    }
    assert judgments(verdict, ["mode"]) == {"good": "", "bad": "rail1: mtu", "ignored": ""}
    assert judgments(verdict)["bad"] == "rail1: mtu; host: mode"


COMPLETE_NOTE = {
    "fabric": "f",
    "bad": 1,
    "good": 0,
    "broken": True,
    "out": True,
    "seen": 100.5,
    "message": "rail1: network_link",
}


@pytest.mark.parametrize(
    "text",
    [
        *(
            json.dumps({**COMPLETE_NOTE, **odd})
            for odd in ({"seen": "x"}, {"bad": []}, {"good": True}, {"broken": 1}, {"out": "no"})
        ),
        *(json.dumps({**COMPLETE_NOTE, "seen": seen}) for seen in (-1, 1e300, float("nan"), float("inf"), 10**30)),
        *(json.dumps({**COMPLETE_NOTE, **odd}) for odd in ({"message": {}}, {"fabric": 5}, {"bad": -3})),
        "[" * 100_000,
        "x" * 50_000_000,
        *("", "no json", "[]", '{"bad": 1}', "null", "\x1b[2J"),
    ],
)
def test_a_nodes_own_nonsense_in_its_annotation_is_forgotten_and_the_others_are_evaluated(text):
    """M4: a node writes its annotations itself; `seen` as a text ended the gate of the fleet."""
    notes = [GateMemory.of(text), GateMemory.of(json.dumps(COMPLETE_NOTE))]
    assert notes[0] is None
    assert notes[1] is not None
    nodes = {"odd": Node(note=text), "sound": Node(note=json.dumps(COMPLETE_NOTE))}
    found = dict.fromkeys(nodes, "rail1: network_link")
    targets = decide("f", nodes, {}, found, 200.0, 201.0, GatePolicy(taint=True, max_unavailable=2, min_available=0))
    assert (targets["odd"].memory.bad, targets["odd"].status) == (1, "Unknown")
    assert (targets["sound"].memory.bad, targets["sound"].memory.out) == (2, True)
    for name, target in targets.items():
        assert json.loads(json.dumps(status_patch(nodes[name], target, 201.0)))


def test_what_a_node_says_of_itself_is_shown_without_escapes():
    note = json.dumps({**COMPLETE_NOTE, "message": "\x1b[2Jrail1\u202e", "bad": 2})
    target = decide("f", {"a": Node(note=note)}, {}, {}, 0, 101.0, GatePolicy())["a"]
    assert "\\x1b[2Jrail1\\u202e" in target.message
    assert target.message.isprintable()


@pytest.mark.parametrize(("out", "parts"), [(True, ["status", ""]), (False, ["", "status"])])
def test_a_run_that_is_killed_in_between_leaves_the_note_by_which_the_next_finds_the_taint(out, parts):
    objects, targets = run_once({"n": node()}, {}, {"n": "x"}, 10, 11, STRICT)
    before, sent = node() if out else objects["n"], []

    class Cluster:
        def patch(self, _ref, _patch, *, content, part):
            assert content == {"status": "strategic-merge-patch", "": "merge-patch"}[part]
            sent.append(part)
            return before

    update_node(Cluster(), "n", gated(before), targets["n"] if out else None, 12)
    assert sent == parts
