# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Says where the fault is: the smallest things (node, leaf, rail, zone) that explain a verdict's deviations. Pure.

Each check is looked at by itself: a leaf's fault and a wrong setting everywhere have different checks. Its results lie
on rails of hosts, or on hosts. A node, leaf, rail or zone explains them when more of its own results are bad than good,
and the one that explains most, less the good ones in it, is taken first (greedy set cover). What no such thing explains
is named as one rail of one node.
"""

from __future__ import annotations

import heapq
import sys
import typing as t
from collections import Counter
from dataclasses import dataclass, field

from ...module_utils._check import DEVIATION, SKIPPED
from ...module_utils._fabric.shapes import Explained, Skipped, Verdict
from ...module_utils._words import natural
from .._report.equal import SECTIONS, section_of
from .merge import untested
from .pairs import with_faults

Cell = tuple[str, str | None]
"""A host and its rail; None for what is of the whole host."""
Scope = tuple[tuple[str, str], ...]
"""(kind, name): one for a thing, two for one rail of a node."""

# Of two that explain as much, the first: what a person can put a hand on.
KINDS = ("node", "leaf", "rail", "zone", "fabric")
EVERYWHERE = "all nodes"


@dataclass(frozen=True)
class HostPlace:
    """Where a host stands as the plan has it: its zone, empty in a fabric without, and the leaf of each rail."""

    zone: str = ""
    leaves: t.Mapping[str, str] = field(default_factory=dict)


class _Results:
    """How many results each scope has: on rails that were looked at, and on hosts, apart."""

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


def _cover(fleet: _Results, bad: t.Mapping[Cell, int], unseen: set[Cell], *, rails: bool) -> Counter[Scope]:
    """Return the scopes that explain the bad cells of one check, each with how many deviations it does."""
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
    found: Counter[Scope] = Counter()
    left = set(bad)
    while left and heap:
        gain, size, kind, scope = heapq.heappop(heap)
        covered = members[scope] & left
        now = good[scope] - len(covered)
        if now > -2:
            continue  # one cell is named by itself, and so is what has nearly as many good ones
        if now > gain:
            heapq.heappush(heap, (now, size, kind, scope))
            continue
        found[scope] += sum(bad[cell] for cell in covered)
        left -= covered
    for host, rail in left:
        scope = (("node", host),) if rail is None else (("node", host), ("rail", rail))
        found[scope] += bad[host, rail]
    return found


def explain(verdict: Verdict, places: t.Mapping[str, HostPlace]) -> list[Explained]:
    """Return what explains the deviations, what explains most first: {scope, deviations, checks}.

    `scope` is {node|leaf|rail|zone: name}, {node: name, rail: name} for one rail of one node, {fabric: "all nodes"}, or
    {part: plan|cluster} for what is no host's; the deviations of all rows are those of the verdict, each in one row.

    :param places: where hosts stand, by inventory name.
    """
    bad: dict[tuple[str, bool], Counter[Cell]] = {}
    unseen: dict[tuple[str, bool], set[Cell]] = {}
    for host, entry in verdict["hosts"].items():
        for check in entry["checks"]:
            key, cell = (check["id"], check["rail"] is not None), (check.get("fault", host), check["rail"])
            if check["status"] == DEVIATION:
                bad.setdefault(key, Counter())[cell] += 1
            elif check["status"] == SKIPPED:
                unseen.setdefault(key, set()).add(cell)
    fleet = _Results(verdict, places)
    found: dict[Scope, Counter[str]] = {}
    for (name, rails), cells in bad.items():
        for scope, count in _cover(fleet, cells, unseen.get((name, rails), set()) - set(cells), rails=rails).items():
            found.setdefault(scope, Counter())[name] += count
    for section in SECTIONS:
        names = Counter(check["id"] for check in section_of(verdict, section)["checks"] if check["status"] == DEVIATION)
        if names:
            found[(("part", section),)] = names
    rows: list[Explained] = [
        {"scope": dict(scope), "deviations": names.total(), "checks": dict(sorted(names.items()))}
        for scope, names in found.items()
    ]
    return sorted(rows, key=lambda row: (-row["deviations"], [natural(name) for name in row["scope"].values()]))


def place_of(piece: t.Mapping[str, t.Any], plan: t.Mapping[str, t.Any]) -> HostPlace:
    """Return where a host stands.

    :param piece: its host plan.
    :param plan: plan.json.
    """
    leaves = {rail: sys.intern(row["leaf"]) for rail, row in (piece.get("cables") or {}).items() if row.get("leaf")}
    return HostPlace(str((plan["nodes"].get(piece["node"]) or {}).get("zone") or ""), leaves)


def with_places(verdict: Verdict, places: t.Mapping[str, HostPlace]) -> Verdict:
    """Return a verdict with whose fault each is and what explains them, and with what was left out, a row a reason."""
    verdict = with_faults(verdict)
    left: list[Skipped] = [
        {"reason": reason, "checks": sorted(ids), "hosts": len(hosts)}
        for reason, (ids, hosts) in untested(verdict).items()
    ]
    more = {"explained": explain(verdict, places), "skipped": left}
    before = {key: value for key, value in verdict.items() if key != "hosts" and key not in SECTIONS}
    return t.cast("Verdict", {**before, **more, **verdict, **more})
