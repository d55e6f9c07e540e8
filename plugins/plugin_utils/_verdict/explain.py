# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Completes a verdict: attribution, causes, coverage; and finds the leaves that explain deviations. Pure."""

from __future__ import annotations

import sys
import typing as t
from collections import Counter

from ...module_utils._check import DEVIATION, NOT_CHECKED, SKIPPED, WARNING
from ...module_utils._fabric.shapes import Verdict
from .._report.equal import SECTIONS
from .cards import Leaves, cards_of
from .causes import Defect, deviations_of
from .merge import counted, deviations, untested
from .pairs import with_attribution
from .preflight import HostPlace


def leaves_of(verdict: Verdict, found: t.Iterable[Defect], places: t.Mapping[str, HostPlace]) -> Leaves:
    """Return the leaf that explains each cause: most of its ports have it, and not most leaves of its rail or zone.

    :param places: the planned places of hosts, by inventory name.
    """
    leaf_of: dict[tuple[str, str | None], str] = {}
    # The leaves of each rail and of each zone.
    groups: dict[tuple[str, str], set[str]] = {}
    ports: Counter[str] = Counter()
    skipped: Counter[tuple[str, str]] = Counter()
    for host, entry in verdict["hosts"].items():
        place = places.get(host) or HostPlace()
        for rail, leaf in place.leaves.items():
            leaf_of[host, rail] = leaf
            ports[leaf] += entry["rails"].get(rail, SKIPPED) != SKIPPED
            groups.setdefault(("rail", rail), set()).add(leaf)
            groups.setdefault(("zone", place.zone), set()).add(leaf)
        for check in entry["checks"]:
            if check["status"] == SKIPPED and (host, check["rail"]) in leaf_of:
                skipped[check["id"], leaf_of[host, check["rail"]]] += 1
    bad: dict[str, dict[str, list[tuple[str, str | None]]]] = {}
    for item in found:
        cell = item.places[0], item.check["rail"]
        at = leaf_of.get(cell) if len(item.places) == 1 else None
        if at and item.root is None and item.check["status"] == DEVIATION:
            bad.setdefault(item.check["id"], {}).setdefault(at, []).append(cell)
    explained: dict[tuple[str, str, str | None], str] = {}
    for name, by_leaf in bad.items():
        having = {leaf for leaf, cells in by_leaf.items() if 2 * len({*cells}) - ports[leaf] + skipped[name, leaf] > 1}
        common = [group for group in groups.values() if 2 * len(group & having) > len(group) > 1]
        for leaf in having.difference(*common):
            explained.update({(name, *cell): leaf for cell in by_leaf[leaf]})
    return explained


def place_of(piece: t.Mapping[str, t.Any], plan: t.Mapping[str, t.Any]) -> HostPlace:
    """Return a host's planned place.

    :param piece: its host plan.
    :param plan: plan.json.
    """
    leaves = {rail: sys.intern(row["leaf"]) for rail, row in (piece.get("cables") or {}).items() if row.get("leaf")}
    return HostPlace(str((plan["nodes"].get(piece["node"]) or {}).get("zone") or ""), leaves)


def with_causes(verdict: Verdict, places: t.Mapping[str, HostPlace], total: int | None = None) -> Verdict:
    """Return a verdict whose deviations have the end at fault and the cause, with its causes and its coverage.

    :param places: where hosts stand, by inventory name.
    :param total: the number of hosts in the plan.
    """
    verdict = with_attribution(verdict)
    found = deviations_of(verdict)
    counts = counted(verdict)
    planned, left = sum(counts.values()), counts[SKIPPED]
    by_option = sum(check["observed"] == NOT_CHECKED for _host, check in deviations(verdict, SKIPPED))
    more = {
        "causes": cards_of(found, leaves_of(verdict, found, places), total),
        "coverage": {"planned": planned, "run": planned - left, "by_option": by_option, "skipped": left - by_option},
        "skipped": [
            {"reason": reason, "checks": sorted(ids), "hosts": len(hosts)}
            for reason, (ids, hosts) in untested(verdict).items()
        ],
    }
    rows = {id(item.check): item for item in found}
    sections = {name: _repaired(verdict[name], rows) for name in SECTIONS}
    hosts = {name: _repaired(entry, rows) for name, entry in verdict["hosts"].items()}
    before = {key: value for key, value in verdict.items() if key not in ("hosts", *SECTIONS)}
    return t.cast("Verdict", {**before, **more, "hosts": hosts, **sections})


def _repaired(entry: t.Mapping[str, t.Any], found: t.Mapping[int, Defect]) -> dict[str, t.Any]:
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
