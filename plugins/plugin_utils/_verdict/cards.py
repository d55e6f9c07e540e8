# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One card for each cause: a sentence, where it is, what follows from it, and the command that repairs it. Pure.

Equal causes on many hosts and rails are one card.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils._check import DEVIATION
from ...module_utils._fabric.shapes import Cause
from ...module_utils._formatting import group_by, natural, shortened
from .._report.equal import ADDRESS, SECTIONS, folded
from .causes import Defect, rank
from .phrases import Phrase, phrase_of
from .repairs import COMPLETE, IMPACTS, LIMIT, RUNBOOK, limited

Leaves = t.Mapping[tuple[str, str, str | None], str]
"""The leaf that explains a deviation, by the check's ID, host and rail."""
_NAMES = 60
_NOTHING = "nothing of the plan is configured"
_TESTS = {
    "ping_neighbor_tcp": "TCP connections",
    "ping_": "pings",
    "pod_": "tests between pods",
    "traffic_": "RDMA tests",
}


def cards_of(found: t.Iterable[Defect], leaves: Leaves, total: int | None = None) -> list[Cause]:
    """Return the causes: deviations before warnings, those of link and address first.

    :param total: the number of hosts in the plan: a command for all of them needs no list.
    """
    groups: dict[tuple[t.Any, ...], list[tuple[Defect, Phrase]]] = {}
    followers = group_by((id(item.root), item) for item in found)
    for item in followers.pop(id(None), ()):
        phrase = _phrase(item)
        fix = "" if item.repair.playbook else re.sub(r"\d+", "#", ADDRESS.sub("@", str(item.check["fix"] or "")))
        ends = item.places if len(item.places) > 1 else ()
        leaf = leaves.get((item.check["id"], item.places[0], item.check["rail"]), "")
        key = (item.check["status"], item.check["id"], phrase.key, item.repair, fix, ends, leaf)
        groups.setdefault(key, []).append((item, phrase))
    return sorted((_card(rows, followers, key[-1], total) for key, rows in groups.items()), key=_order)


def _order(card: Cause) -> tuple[t.Any, ...]:
    first = (card["hosts"] or [card["sentence"]])[0]
    return card["status"] != DEVIATION, rank(card["check"]), -card["checks"] - card["follows"], natural(first)


def _phrase(item: Defect) -> Phrase:
    if item.repair is COMPLETE:
        return Phrase(_NOTHING, _NOTHING, _NOTHING)
    name = item.check["id"]
    if not item.check.get("peers") or name == "fleet_mac":
        return phrase_of(item.check)
    tests = next((text for start, text in _TESTS.items() if name.startswith(start)), "tests")
    size = " of full size" if name.endswith("_mtu") else ""
    result = "lose packets" if str(item.check["observed"]).startswith("answer") else "fail"
    with_whom = f" to and from {shortened(item.peers, 3)}" if len(item.places) == 1 else ""
    return Phrase(f"{tests}{size}{with_whom} {result}", f"{tests}{size} to and from other hosts {result}")


def named(names: t.Iterable[str]) -> str:
    """Return names in few characters: as ranges, or the first of them."""
    each = list(dict.fromkeys(names))
    text = folded(each, 4)
    return text if len(text) <= _NAMES else f"{each[0]} and {len(each) - 1:,} more"


def _where(rows: t.Sequence[Defect], leaf: str) -> str:
    places = list(dict.fromkeys(item.places for item in rows))
    rails = list(dict.fromkeys(item.check["rail"] or "" for item in rows))
    if len(places[0]) > 1:
        return f"between {' and '.join(places[0])} {folded(rails)}".strip()
    cells = {(item.places, item.check["rail"]) for item in rows}
    text = f"{named(place[0] for place in places)} {named(rails)}".strip()
    if len(cells) != len(places) * len(rails):
        text = shortened([f"{place[0]} {rail or ''}".strip() for place, rail in sorted(cells, key=str)], 4)
    return f"{leaf} ({text})" if leaf else text


def _card(
    rows: t.Sequence[tuple[Defect, Phrase]], followers: t.Mapping[int, t.Sequence[Defect]], leaf: str, total: int | None
) -> Cause:
    items = [item for item, _phrase in rows]
    follows = [one for item in items for one in followers.get(id(item), ())]
    first, phrase = rows[0]
    fixes = dict.fromkeys(str(item.check["fix"] or "") for item in items)
    hosts = [host for host in dict.fromkeys(host for item in items for host in item.places) if host not in SECTIONS]
    card: Cause = {
        "sentence": f"{_where(items, leaf)}: {phrase.one if len({row[1].one for row in rows}) == 1 else phrase.many}.",
        "check": first.check["id"],
        "status": first.check["status"],
        "hosts": hosts,
        "rails": list(dict.fromkeys(str(item.check["rail"]) for item in items if item.check["rail"])),
        "affected": sorted({one.host for one in (*items, *follows)} - {*hosts, *SECTIONS}, key=natural),
        "checks": len(items),
        "follows": len(follows),
        "fix": "" if first.repair is COMPLETE else shortened([*fixes], 3, " "),
        "impact": first.repair.impact,
        "runbook": RUNBOOK.format(first.check["id"]),
    }
    if len(first.places) > 1:
        card["undecided"] = True
    if leaf:
        card["leaf"] = leaf
    if command := first.repair.command(hosts, every=len(hosts) == total):
        card["command"] = command
    return card


def commands_of(causes: t.Iterable[Cause]) -> list[tuple[str, str]]:
    """Return the distinct commands with their impact, the least first, that of the plan before those that apply it.

    The hosts of equal ones are put together.
    """
    hosts: dict[tuple[int, str], dict[str, None]] = {}
    every = set()
    for card in causes:
        if command := card.get("command"):
            line, limit, _hosts = command.partition(LIMIT)
            key = (IMPACTS.index(card["impact"]), line)
            hosts.setdefault(key, {}).update(dict.fromkeys(card["hosts"]))
            every |= set() if limit else {key}
    return [
        (IMPACTS[impact], line if (impact, line) in every else f"{line}{limited(sorted(names, key=natural))}")
        for (impact, line), names in sorted(hosts.items(), key=lambda row: (row[0][0], not row[0][1].endswith("plan")))
    ]
