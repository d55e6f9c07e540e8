# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes one verdict of the verdicts of several runs, each of which had a part of the hosts. Pure.

Hosts come from the run that had them; plan and cluster from the runs that looked at these; who is unlike the fleet is
found anew over all hosts.
"""

from __future__ import annotations

import json
import typing as t
from collections import Counter

from ...module_utils._check import DEVIATION, OK, SKIPPED, WARNING
from ...module_utils._errors import InputError, Problem
from . import require
from .merge import (
    KINDS,
    NOT_VERIFIED,
    PARTS,
    SCHEMA,
    STATUSES,
    UNREACHABLE,
    added,
    lost_entry,
    natural,
    normal_check,
    overall,
    part_of,
    rail_statuses,
    unseen_part,
)
from .outliers import ASPECTS, Fleet, Ports, with_holder

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...module_utils._fabric.shapes import Verdict
    from .merge import Check

Entry = t.Dict[str, t.Any]  # noqa: UP006 - as merge has it
_FIX_SLICE = "Run verify or audit for that slice again, with the plan that is merged with."


def problem_of(name: str, verdict: t.Any, digest: str | None) -> Problem | None:
    """Return why a file cannot be merged; None when it can.

    :param digest: of the plan at hand.
    """
    if not isinstance(verdict, dict) or not isinstance(verdict.get("hosts"), dict) or "status" not in verdict:
        return Problem(name, "it is no verdict.json of this collection.", "Name what verify or audit has written.")
    if (schema := verdict.get("schema")) not in range(1, SCHEMA + 1):
        fix = "Merge with the version of this collection that wrote it."
        return Problem(name, f"it has schema {schema!r}; this collection reads 1 to {SCHEMA}.", fix)
    if (other := verdict.get("plan_digest")) != digest:
        return Problem(
            name, f"it is of the plan {str(other)[:12]}, and the plan at hand is {str(digest)[:12]}.", _FIX_SLICE
        )
    return None


class Joined:
    """Takes one verdict after the other; keeps of each what the verdict of all will have."""

    def __init__(self, digest: str | None) -> None:
        """Begin.

        :param digest: of the plan that all of them must be of.
        """
        self._digest = digest
        self._problems: list[Problem] = []
        self._hosts: dict[str, Entry] = {}
        self._blind: set[str] = set()
        self._parts: dict[str, list[Mapping[str, t.Any]]] = {name: [] for name in PARTS}
        self._slices: list[dict[str, t.Any]] = []
        self._ports = Ports()

    def refuse(self, name: str, problem: str, fix: str) -> None:
        """Remember a file that cannot be read."""
        self._problems.append(Problem(name, problem, fix))

    def take(self, name: str, verdict: t.Any) -> None:
        """Add one verdict; of a host that two have, the later one counts, unless it has no answer of it."""
        if problem := problem_of(name, verdict, self._digest):
            self._problems.append(problem)
            return
        blind = not _looked(part_of(verdict, "cluster"))
        ports = Ports(verdict.get("ports") or ())
        for host, entry in verdict["hosts"].items():
            if entry["status"] in (UNREACHABLE, NOT_VERIFIED) and host in self._hosts:
                continue
            self._hosts[host] = {**entry, "counts": {kind: (entry.get("counts") or {}).get(kind, 0) for kind in KINDS}}
            if entry.get("facts"):
                self._hosts[host]["facts"] = self._ports.brief(ports.whole(entry["facts"]))
            (self._blind.add if blind else self._blind.discard)(host)
        for part in PARTS:
            self._parts[part].append(part_of(verdict, part))
        self._slices.append({"name": name, "status": verdict["status"], "hosts": len(verdict["hosts"])})

    def verdict(self, expected: Mapping[str, str | None], rails: Sequence[str]) -> Verdict:
        """Return the verdict of all.

        :param expected: the hosts of the plan: inventory name to node.
        :param rails: the plan's rails, in order.
        :raises InputError: naming every file that cannot be merged.
        """
        if self._problems:
            raise InputError(self._problems)
        for host, node in expected.items():
            if host not in self._hosts:
                self._hosts[host] = lost_entry(NOT_VERIFIED, node, "No slice had this host.")
        self._compare()
        parts = {name: _part(rows) for name, rows in self._parts.items()}
        parts["cluster"] = self._to_hosts(parts["cluster"])
        statuses = [entry["status"] for entry in self._hosts.values()]
        statuses += [part["status"] for part in parts.values() if part["status"] != SKIPPED]
        made = {
            "schema": SCHEMA,
            "plan_digest": self._digest,
            "status": overall(statuses),
            "rails": list(rails),
            "slices": self._slices,
            "hosts": {name: self._hosts[name] for name in sorted(self._hosts, key=natural)},
            **parts,
            "ports": self._ports.kinds,
        }
        return t.cast("Verdict", made)

    def _compare(self) -> None:
        """Name who is unlike the fleet of all slices: each slice knew its own part, where the odd one may be usual."""
        fleet = Fleet()
        more: dict[str, list[Check]] = {host: [] for host, entry in self._hosts.items() if entry.get("facts")}
        for host in more:
            fleet.add(host, self._ports.whole(self._hosts[host]["facts"]))
        for host, check in fleet.outliers():
            more[host].append(normal_check(check.data()))
        for host, found in more.items():
            entry = self._hosts[host]
            own = [with_holder(check, fleet, host) for check in entry["checks"] if check["id"] not in ASPECTS]
            self._hosts[host] = _replaced(entry, [*own, *found])

    def _to_hosts(self, part: Entry) -> Entry:
        """Take what the cluster said of nodes to their hosts, which other slices had.

        A slice that looked at the cluster itself has that with its hosts already.
        """
        own = {entry.get("node"): host for host, entry in self._hosts.items() if entry["status"] in STATUSES}
        left: list[Check] = []
        for check in part["checks"]:
            node = check.get("node")
            host = own.get(node) if node else None
            if host is None:
                left.append(check)
            elif host in self._blind:
                shown = str(check["observed"]).removeprefix(f"{node}: ")
                self._hosts[host] = added(self._hosts[host], [normal_check({**check, "observed": shown})])
        gone = Counter(check["status"] for check in part["checks"]) - Counter(check["status"] for check in left)
        if not gone:
            return part
        counts = {kind: part["counts"][kind] - gone[kind] for kind in KINDS}
        bad = part.get("error") or counts[DEVIATION]
        return {**part, "status": part["status"] if bad else "pass", "counts": counts, "checks": left}


def _replaced(entry: Entry, checks: list[Check]) -> Entry:
    """Return a host's entry with other checks in place of those that are not ok."""
    counts = Counter(check["status"] for check in checks)
    bad = rail_statuses(check for check in checks if check["status"] != SKIPPED)
    # A rail that only the fleet found wanting is as its own checks have it, which the entry no longer holds: ok.
    was = rail_statuses(check for check in entry["checks"] if check["id"] in ASPECTS)
    return {
        **entry,
        "status": entry["status"] if entry.get("error") else DEVIATION if counts[DEVIATION] else "pass",
        "rails": {**entry["rails"], **dict.fromkeys(was, OK), **bad},
        "counts": {**entry["counts"], **{kind: counts[kind] for kind in KINDS if kind != OK}},
        "checks": checks,
    }


def _looked(part: Mapping[str, t.Any]) -> bool:
    """Return whether somebody looked at the part: the plan's or the cluster's."""
    made = [row for row in part["checks"] if row["status"] != SKIPPED and row["id"] != require.ID]
    return bool(made or part.get("error") or (part.get("counts") or {}).get(OK))


def _part(parts: Sequence[Mapping[str, t.Any]]) -> Entry:
    """Return one part of those of all slices: of those that looked at it, when any did."""
    seen = [part for part in parts if _looked(part)]
    if not seen:
        return dict(parts[0]) if parts else unseen_part("no slice looked at it")
    checks = list(
        {json.dumps(row, sort_keys=True, default=str): row for part in seen for row in part["checks"]}.values()
    )
    counts = Counter(row["status"] for row in checks)
    good = max((part.get("counts") or {}).get(OK, 0) for part in seen)
    errors = list(dict.fromkeys(part["error"] for part in seen if part.get("error")))
    made: Entry = {
        "status": overall(part["status"] for part in seen if part["status"] != SKIPPED),
        "counts": {OK: good, **{kind: counts[kind] for kind in (DEVIATION, WARNING, SKIPPED)}},
        "made": sorted({name for part in seen for name in part.get("made", ())}),
        "checks": checks,
    }
    return {**made, "error": "; ".join(errors)} if errors else made
