# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Attributes deviations to the end at fault, and makes each host's counts and status follow from that. Pure.

The host that began a ping or an RDMA test reports its failure. It is attributed to the other end where that end has no
result or a deviation of its own that explains it, or fails with more ends, and this host does not. Otherwise, where the
two ends fail only with each other, the cause stays open: `attributed_to` is None, and neither end is at fault.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from ...module_utils._check import DEVIATION, WARNING
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._formatting import group_by
from ...module_utils._route.ping import NO_ECHO
from .causes import explains

AFFECTED = "affected"
"""A rail's status, and what is counted, where deviations on it are attributed elsewhere."""


def with_attribution(verdict: Verdict) -> Verdict:
    """Return a verdict whose deviations list the end at fault, where that is not the host that found them."""
    hosts = verdict["hosts"]
    pairs = {name for name, entry in hosts.items() if any(check.get("peers") for check in entry["checks"])}
    if not pairs:
        return verdict
    by_node = {entry["node"]: name for name, entry in hosts.items() if entry.get("node")}

    def ends_of(check: t.Mapping[str, t.Any]) -> list[str]:
        return [peer if peer in hosts else by_node.get(peer, "") for peer in check.get("peers") or ()]

    def what(check: t.Mapping[str, t.Any]) -> tuple[str | None, bool]:
        return check["rail"], check["id"] == "fleet_mac"

    own: dict[tuple[str, str | None], list[t.Any]] = {}
    for name, entry in hosts.items():
        for check in entry["checks"]:
            # Loss on the way to a host's own gateway is that host's, also where the leaf may be policing.
            lossy = check["id"].startswith("ping_gateway") and check["observed"] != NO_ECHO
            if not check.get("peers") and (check["status"] == DEVIATION or (check["status"] == WARNING and lossy)):
                own.setdefault((name, check["rail"]), []).append({**check, "status": DEVIATION})

    def broken(name: str, check: t.Any) -> bool:
        """Return whether a host has a deviation that explains the failure of a test."""
        return any(explains(one, check) for rail in (check["rail"], None) for one in own.get((name, rail), ()))

    # The peers that each rail fails with, by both ends' reports. A MAC address that a host reports attributes no other
    # test.
    others: dict[tuple[str, str | None, bool], set[str]] = {}
    for name in pairs:
        for check in hosts[name]["checks"]:
            for end in ends_of(check) if check["status"] == DEVIATION else ():
                others.setdefault((name, *what(check)), set()).add(end)
                others.setdefault((end, *what(check)), set()).add(name)

    def end_at_fault(name: str, check: t.Mapping[str, t.Any]) -> str | None:
        """Return the host at fault; None where that is not decided."""
        ends = ends_of(check)
        if ends and all(end in hosts and hosts[end].get("error") for end in ends):
            return ends[0]
        if not ends or broken(name, check):
            return name
        if all(end in hosts and (hosts[end].get("error") or broken(end, check)) for end in ends):
            return ends[0]
        if len(others[(name, *what(check))]) > 1:
            return name
        return next((end for end in ends if end in hosts and len(others[(end, *what(check))]) > 1), None)

    def attributed(name: str, check: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
        if not check.get("peers"):
            return check
        made = {key: value for key, value in check.items() if key != "attributed_to"}
        if check["status"] == DEVIATION and (end := end_at_fault(name, check)) != name:
            made["attributed_to"] = end
        return made

    more = {
        name: {**hosts[name], "checks": [attributed(name, check) for check in hosts[name]["checks"]]} for name in pairs
    }
    return t.cast("Verdict", {**verdict, "hosts": _counted({**hosts, **more})})


def _counted(hosts: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the hosts' entries with counts, rails and status by attribution."""
    away = [
        (name, check)
        for name, entry in hosts.items()
        for check in entry["checks"]
        if check["status"] == DEVIATION and check.get("attributed_to", name) != name
    ]
    affected = Counter(name for name, _check in away)
    blamed = group_by((str(check["attributed_to"]), check["rail"]) for _name, check in away)
    for name in hosts.keys() & {*affected, *blamed}:
        entry = hosts[name]
        red = [row["rail"] for row in entry["checks"] if row["status"] == DEVIATION and "attributed_to" not in row]
        status = entry["status"]
        if status in ("pass", DEVIATION):
            red += blamed.get(name, ())
            status = DEVIATION if red else "pass"
        rails = {
            rail: DEVIATION if rail in red else AFFECTED if state == DEVIATION else state
            for rail, state in entry["rails"].items()
        }
        counts = {**entry["counts"], DEVIATION: len(red)} | ({AFFECTED: affected[name]} if affected[name] else {})
        hosts[name] = {**entry, "status": status, "rails": rails, "counts": counts}
    return hosts
