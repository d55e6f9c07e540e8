# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Completes a verdict: attribution, causes, coverage; and finds the leaves that explain deviations. Pure.

Each check is covered separately: a leaf's fault and a wrong setting everywhere have different checks. A node, leaf,
rail or zone explains deviations when more of its own results are bad than good, and the one that explains most, less
the good ones in it, is taken first (greedy set cover). What none of them explains is one rail of one node.
"""

from __future__ import annotations

import heapq
import sys
import typing as t
from collections import Counter
from dataclasses import dataclass, field

from ...module_utils._check import DEVIATION, NOT_LOOKED_AT, SKIPPED, WARNING
from ...module_utils._fabric.shapes import Coverage, Skipped, Verdict
from .._report.equal import SECTIONS
from .cards import Leaves, cards_of
from .causes import Found, found_in
from .merge import counted, deviations, untested
from .pairs import with_attribution

Cell = tuple[str, str | None]
"""A host and its rail; None for what is of the whole host."""
Scope = tuple[tuple[str, str], ...]
"""(kind, name): one for a thing, two for one rail of a node."""

# Of two that explain as much, the first: what a person can put a hand on.
KINDS = ("node", "leaf", "rail", "zone", "fabric")
EVERYWHERE = "all nodes"


@dataclass(frozen=True)
class HostPlace:
    """A host's planned place: its zone, empty in a fabric without zones, and the leaf of each rail."""

    zone: str = ""
    leaves: t.Mapping[str, str] = field(default_factory=dict)


class _Results:
    """The number of results of each scope, separately for checked rails and for hosts."""

    def __init__(self, verdict: Verdict, places: t.Mapping[str, HostPlace]) -> None:
        self._places = places
        self._rails: Counter[Scope] = Counter()
        self._hosts: Counter[Scope] = Counter()
        for host, entry in verdict["hosts"].items():
            looked = [rail for rail, status in entry["rails"].items() if status != SKIPPED]
            for rail in looked:
                self._rails.update(self.scopes((host, rail)))
            if looked or any(entry["counts"].get(kind) for kind in ("ok", "warning", DEVIATION)):
                self._hosts.update(self.scopes((host, None)))

    def scopes(self, cell: Cell) -> t.Iterator[Scope]:
        host, rail = cell
        place = self._places.get(host) or HostPlace()
        yield (("node", host),)
        if rail is not None:
            if leaf := place.leaves.get(rail):
                yield (("leaf", leaf),)
            yield (("rail", rail),)
        if place.zone:
            yield (("zone", place.zone),)
        yield (("fabric", EVERYWHERE),)

    def good(self, scope: Scope, bad: int, unseen: int, *, rails: bool) -> int:
        """Return how many results of a scope are good, when so many of one check are bad and not made."""
        return max(0, (self._rails if rails else self._hosts)[scope] - bad - unseen)


def _cover(
    fleet: _Results, bad: t.Collection[Cell], unseen: set[Cell], *, rails: bool
) -> t.Iterator[tuple[Cell, Scope]]:
    """Yield the bad cells of one check, each with the scope that explains it."""
    members: dict[Scope, set[Cell]] = {}
    for cell in bad:
        for scope in fleet.scopes(cell):
            members.setdefault(scope, set()).add(cell)
    skipped = Counter(scope for cell in unseen for scope in fleet.scopes(cell) if scope in members)
    good = {scope: fleet.good(scope, len(cells), skipped[scope], rails=rails) for scope, cells in members.items()}
    heap = [
        (good[scope] - len(cells), len(cells) + good[scope], KINDS.index(scope[0][0]), scope)
        for scope, cells in members.items()
        if len(cells) > good[scope]
    ]
    heapq.heapify(heap)
    left = set(bad)
    while left and heap:
        gain, size, kind, scope = heapq.heappop(heap)
        covered = members[scope] & left
        now = good[scope] - len(covered)
        if now > -2:
            continue  # one cell is its own scope, and so is what has nearly as many good ones
        if now > gain:
            heapq.heappush(heap, (now, size, kind, scope))
            continue
        yield from ((cell, scope) for cell in covered)
        left -= covered
    for host, rail in left:
        yield (host, rail), (("node", host),) if rail is None else (("node", host), ("rail", rail))


def scopes_of(
    verdict: Verdict, found: t.Iterable[Found], places: t.Mapping[str, HostPlace]
) -> dict[tuple[str, str, str | None], Scope]:
    """Return the scope that explains each cause, by check ID, host and rail.

    :param places: where hosts stand, by inventory name.
    """
    bad: dict[tuple[str, bool], set[Cell]] = {}
    unseen: dict[tuple[str, bool], set[Cell]] = {}
    for item in found:
        check = item.check
        if item.root is None and item.status == DEVIATION and len(item.places) == 1 and item.places[0] not in SECTIONS:
            bad.setdefault((check["id"], check["rail"] is not None), set()).add((item.places[0], check["rail"]))
    for host, entry in verdict["hosts"].items():
        for check in entry["checks"]:
            if check["status"] == SKIPPED:
                unseen.setdefault((check["id"], check["rail"] is not None), set()).add((host, check["rail"]))
    fleet = _Results(verdict, places)
    return {
        (name, host, rail): scope
        for (name, rails), cells in bad.items()
        for (host, rail), scope in _cover(fleet, cells, unseen.get((name, rails), set()) - cells, rails=rails)
    }


def place_of(piece: t.Mapping[str, t.Any], plan: t.Mapping[str, t.Any]) -> HostPlace:
    """Return a host's planned place.

    :param piece: its host plan.
    :param plan: plan.json.
    """
    leaves = {rail: sys.intern(row["leaf"]) for rail, row in (piece.get("cables") or {}).items() if row.get("leaf")}
    return HostPlace(str((plan["nodes"].get(piece["node"]) or {}).get("zone") or ""), leaves)


def coverage_of(verdict: Verdict) -> Coverage:
    """Return how many checks were planned and run."""
    counts = counted(verdict)
    by_option = sum(check["observed"] == NOT_LOOKED_AT for _host, check in deviations(verdict, SKIPPED))
    planned, left = sum(counts.values()), counts[SKIPPED]
    return {"planned": planned, "run": planned - left, "by_option": by_option, "skipped": left - by_option}


def with_causes(verdict: Verdict, places: t.Mapping[str, HostPlace], total: int | None = None) -> Verdict:
    """Return a verdict whose deviations have the end at fault and the cause, with its causes and its coverage.

    :param places: where hosts stand, by inventory name.
    :param total: the number of hosts in the plan.
    """
    verdict = with_attribution(verdict)
    found = found_in(verdict)
    leaves: Leaves = {
        key: scope[0][1] for key, scope in scopes_of(verdict, found, places).items() if scope[0][0] == "leaf"
    }
    left: list[Skipped] = [
        {"reason": reason, "checks": sorted(ids), "hosts": len(hosts)}
        for reason, (ids, hosts) in untested(verdict).items()
    ]
    more = {"causes": cards_of(found, leaves, total), "coverage": coverage_of(verdict), "skipped": left}
    rows = {id(item.check): item for item in found}
    sections = {name: _repaired(t.cast("t.Any", verdict)[name], rows) for name in SECTIONS}
    hosts = {name: _repaired(entry, rows) for name, entry in verdict["hosts"].items()}
    before = {key: value for key, value in verdict.items() if key not in ("hosts", *SECTIONS)}
    return t.cast("Verdict", {**before, **more, "hosts": hosts, **sections})


def _repaired(entry: t.Mapping[str, t.Any], found: t.Mapping[int, Found]) -> dict[str, t.Any]:
    """Return a host's entry or a section whose deviations have their cause, or their command and its impact."""
    checks: list[t.Mapping[str, t.Any]] = []
    for check in entry["checks"]:
        item = found.get(id(check)) if check["status"] in (DEVIATION, WARNING) else None
        if item and item.root:
            check = {**check, "caused_by": item.root.check["id"], "fix": ""}
        elif item:
            command = item.repair.command(item.places)
            check = {**check, **({"command": command} if command else {}), "impact": item.repair.impact}
        checks.append(check)
    return {**entry, "checks": checks}
