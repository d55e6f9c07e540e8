# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Makes one verdict of its parts: the verdicts of several runs, each of some of the hosts. Pure.

Hosts come from the run that had them; plan and cluster from the runs that looked at these; what is unlike the fleet is
found anew over all hosts.
"""

from __future__ import annotations

import json
import typing as t
from collections import Counter

from ...module_utils._check import DEVIATION, OK, SKIPPED, Check
from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._intake import HOST, Nonsense, excerpt, fitting, measured
from .._report.equal import SECTIONS, section_of, unseen_section
from . import require
from .intake import KINDS, NOT_VERIFIED, PORT, STATUS, STATUSES, UNREACHABLE, Answer, entry_in
from .merge import SCHEMA, added, counts_of, lost_entry, narrowed, normal_check, overall, rail_statuses, verdict_of
from .outliers import ASPECTS, PortKinds, compare_fleet

Entry = dict[str, t.Any]


class MergedVerdict:
    """Takes one part after the other; keeps of each what the verdict of all will have."""

    def __init__(self, digest: str | None, rails: t.Sequence[str] = ()) -> None:
        """Begin.

        :param digest: of the plan that all of them must be of.
        """
        self._rails = rails
        self._digest = digest
        self._problems: list[Problem] = []
        self._hosts: dict[str, Entry] = {}
        self._blind: set[str] = set()
        self._sections: dict[str, list[t.Mapping[str, t.Any]]] = {name: [] for name in SECTIONS}
        self._parts: list[dict[str, t.Any]] = []
        self._ports = PortKinds()

    def refuse(self, name: str, problem: str, fix: str) -> None:
        """Remember a file that cannot be merged."""
        self._problems.append(Problem(name, problem, fix))

    def take(self, name: str, verdict: t.Any) -> None:
        """Add one part; of a host that two have, the later one counts, unless it has no answer of it."""
        try:
            fitting(verdict, {"hosts": {}, "status": STATUS}, "it")
            kinds = fitting(measured(verdict.get("ports") or []), [PORT], "ports")
            ports = PortKinds({key: kind[key] for key in PORT if kind.get(key)} for kind in kinds)
        except Nonsense as exc:
            fix = "Name what verify or audit has written. [merge_not_ours]"
            self.refuse(name, f"it is no verdict.json of this collection: {exc}.", fix)
            return
        if (schema := verdict.get("schema")) not in range(1, SCHEMA + 1):
            fix = "Merge with the version of this collection that wrote it. [merge_schema]"
            said = schema if isinstance(schema, int) else excerpt(schema)
            self.refuse(name, f"it has schema {said}; this collection reads 1 to {SCHEMA}.", fix)
            return
        if (other := verdict.get("plan_digest")) != self._digest:
            problem = f"it is of the plan {excerpt(other)}, and the plan at hand is {str(self._digest)[:12]}."
            fix = "Run verify or audit for that part again, with the plan that is merged with. [merge_other_plan]"
            self.refuse(name, problem, fix)
            return
        sections = {part: self._in(section_of(t.cast("Verdict", verdict), part), schema) for part in SECTIONS}
        blind = not _looked(sections["cluster"])
        for host, told in verdict["hosts"].items():
            odd = "" if HOST.fullmatch(host) else f"{excerpt(host)} is no name of a host"
            host, entry = excerpt(host) if odd else host, self._in(told, schema, odd)
            if entry["status"] in (UNREACHABLE, NOT_VERIFIED) and host in self._hosts:
                continue
            entry["rails"] = entry.get("rails") or {}
            self._hosts[host] = {**entry, "counts": {kind: (entry.get("counts") or {}).get(kind, 0) for kind in KINDS}}
            if entry.get("facts"):
                self._hosts[host]["facts"] = self._ports.brief(ports.whole(entry["facts"]))
            (self._blind.add if blind else self._blind.discard)(host)
        for kind, section in sections.items():
            self._sections[kind].append(section)
        self._parts.append({"name": name, "status": verdict["status"], "hosts": len(verdict["hosts"])})

    def _in(self, entry: t.Any, schema: t.Any, odd: str = "") -> Entry:
        """Return an entry or a section; one that is none, or is odd for another reason, is an error."""
        try:
            made = entry_in(entry, self._rails, schema)
        except Nonsense as exc:
            odd = odd or str(exc)
        return lost_entry("error", None, Answer([], {}, [odd]).error) if odd else made

    def verdict(self, expected: t.Mapping[str, str | None], rails: t.Sequence[str]) -> Verdict:
        """Return the verdict of all.

        :param expected: the hosts of the plan: inventory name to node.
        :param rails: the plan's rails, in order.
        :raises InputError: naming every file that cannot be merged.
        """
        if self._problems:
            raise InputError(self._problems)
        for host, node in expected.items():
            if host not in self._hosts:
                self._hosts[host] = lost_entry(NOT_VERIFIED, node, "No part had this host.")
        self._compare()
        sections = {name: _section(rows) for name, rows in self._sections.items()}
        sections["cluster"] = self._to_hosts(sections["cluster"])
        more = {"slices": self._parts, "ports": self._ports.kinds}
        return verdict_of(self._digest, rails, self._hosts, sections, **more)

    def _compare(self) -> None:
        """Name the hosts that are unlike the whole fleet: in its own part the odd one may be usual."""

        def results(_whole: bool) -> t.Iterator[dict[str, t.Any]]:
            for host, entry in self._hosts.items():
                if entry.get("facts"):
                    own = [check for check in entry["checks"] if check["id"] not in ASPECTS]
                    yield {"host": host, "checks": own, "facts": self._ports.whole(entry["facts"])}

        for result in compare_fleet(results, self._ports):
            self._hosts[result["host"]] = _replaced(self._hosts[result["host"]], result["checks"])

    def _to_hosts(self, section: Entry) -> Entry:
        """Take the checks that the cluster made of nodes to their hosts, which other parts had.

        A part that looked at the cluster itself has that with its hosts already.
        """
        own = {entry.get("node"): host for host, entry in self._hosts.items() if entry["status"] in STATUSES}
        left: list[Check] = []
        for check in section["checks"]:
            node = check.get("node")
            host = own.get(node) if node else None
            if host is None:
                left.append(check)
            elif host in self._blind:
                shown = str(check["observed"]).removeprefix(f"{node}: ")
                self._hosts[host] = added(self._hosts[host], [normal_check({**check, "observed": shown})])
        return narrowed(section, left, "pass")


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


def _looked(section: t.Mapping[str, t.Any]) -> bool:
    """Return whether somebody looked at the section: the plan's or the cluster's."""
    made = [row for row in section["checks"] if row["status"] != SKIPPED and row["id"] != require.ID]
    return bool(made or section.get("error") or (section.get("counts") or {}).get(OK))


def _section(sections: t.Sequence[t.Mapping[str, t.Any]]) -> Entry:
    """Return one section of those of all parts: of those that looked at it, when any did."""
    seen = [section for section in sections if _looked(section)]
    if not seen:
        return dict(sections[0]) if sections else unseen_section("no part looked at it")
    rows = [row for section in seen for row in section["checks"]]
    checks = list({json.dumps(row, sort_keys=True, default=str): row for row in rows}.values())
    errors = list(dict.fromkeys(section["error"] for section in seen if section.get("error")))
    made: Entry = {
        "status": overall(section["status"] for section in seen if section["status"] != SKIPPED),
        "counts": {**counts_of(checks), OK: max((section.get("counts") or {}).get(OK, 0) for section in seen)},
        "made": sorted({name for section in seen for name in section.get("made", ())}),
        "checks": checks,
    }
    return {**made, "error": "; ".join(errors)} if errors else made
