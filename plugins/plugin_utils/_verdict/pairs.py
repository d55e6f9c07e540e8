# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds whose fault the failure of a test between two hosts is, where the verdict knows it. Pure.

The host that began a ping or an RDMA test reports its failure. When nothing else on that host's rail can be why, and
on the other end's rail something can, or the other end did not answer at all, the fault is the other end's: `fault` in
the check names it. Where neither or both have such a deviation, no fault is named; and where all such failures of a
rail are with one other end, they are `unconfirmed`: that end may have made them.
"""

from __future__ import annotations

import typing as t

from ...module_utils._check import DEVIATION, OK, SKIPPED, WARNING
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._route.ping import NO_ECHO, OWN_ECHO
from .causes import missing_ports

# What a rail does not answer for. Counters, firmware unlike the fleet's or a file for the next boot stop no packet.
SILENCING = (
    *("address_", "cable_", "network_", "nic_", "ping_", "pod_", "rail_isolation"),
    *("rdma_", "route_", "traffic_"),
)


def with_faults(verdict: Verdict) -> Verdict:
    """Return a verdict whose deviations name the other end where the fault lies there."""
    hosts = verdict["hosts"]
    pairs = {name for name, entry in hosts.items() if any(check.get("peers") for check in entry["checks"])}
    if not pairs:
        return verdict
    by_node = {entry["node"]: name for name, entry in hosts.items() if entry.get("node")}

    def ends_of(check: t.Mapping[str, t.Any]) -> list[str]:
        return [peer if peer in hosts else by_node.get(peer, "") for peer in check.get("peers") or ()]

    broken = {
        (name, check["rail"])
        for name, entry in hosts.items()
        for check in entry["checks"]
        if check["rail"] is not None
        and (
            (check["status"] == DEVIATION and check["id"].startswith(SILENCING))
            # Loss on the way to a host's own gateway is that host's, also where it may be policing.
            or (check["status"] == WARNING and check["id"].startswith("ping_gateway") and check["observed"] != NO_ECHO)
        )
        and not check.get("peers")
    }

    silent = {
        name
        for name, entry in hosts.items()
        if any((check["id"], check["status"]) == (OWN_ECHO, DEVIATION) for check in entry["checks"])
    }

    # With whom each rail fails, by both ends' word.
    others: dict[tuple[str, str | None], set[str]] = {}
    for name in pairs:
        for check in hosts[name]["checks"]:
            for end in ends_of(check) if check["status"] == DEVIATION else ():
                others.setdefault((name, check["rail"]), set()).add(end)
                others.setdefault((end, check["rail"]), set()).add(name)

    def fault(name: str, check: t.Mapping[str, t.Any]) -> str | None:
        ends = ends_of(check)
        if check["status"] != DEVIATION or not ends or (name, check["rail"]) in broken:
            return None
        bad = broken | {(end, check["rail"]) for end in silent if check["id"].startswith(("ping_", "rail_isolation"))}
        theirs = all(end in hosts and (hosts[end].get("error") or (end, check["rail"]) in bad) for end in ends)
        return ends[0] if theirs else None

    def judged(name: str, check: t.Mapping[str, t.Any]) -> t.Mapping[str, t.Any]:
        if not check.get("peers"):
            return check
        made = {key: value for key, value in check.items() if key not in ("fault", "unconfirmed")}
        if end := fault(name, check):
            made["fault"] = end
        elif check["status"] == DEVIATION and len(others[name, check["rail"]]) < 2:
            made["unconfirmed"] = True
        return made

    more = {name: {**hosts[name], "checks": [judged(name, check) for check in hosts[name]["checks"]]} for name in pairs}
    gone = {(name, rail) for name, entry in hosts.items() for rail in missing_ports(entry["checks"])}
    more = {name: _not_counted(entry, gone) for name, entry in more.items()}
    return t.cast("Verdict", {**verdict, "hosts": {**hosts, **more}})


def _not_counted(entry: dict[str, t.Any], gone: t.Collection[tuple[str, str | None]]) -> dict[str, t.Any]:
    """Return a host's entry without deviations that another host's missing port causes.

    :param gone: host and rail of each missing port.
    """
    counts, found = dict(entry["counts"]), []
    for check in entry["checks"]:
        if check["status"] == DEVIATION and (check.get("fault"), check["rail"]) in gone:
            cause = f"Caused by network_link of {check['fault']}: the rail has no port there."
            check = {**check, "status": SKIPPED, "cause": cause, "fix": ""}
            counts = {**counts, DEVIATION: counts[DEVIATION] - 1, SKIPPED: counts[SKIPPED] + 1}
        found.append(check)
    if counts == entry["counts"]:
        return entry
    status = "pass" if entry["status"] == DEVIATION and not counts[DEVIATION] else entry["status"]
    worst = {rail: [row["status"] for row in found if row["rail"] == rail] for rail in entry["rails"]}
    rails = {
        rail: DEVIATION if DEVIATION in rows else WARNING if WARNING in rows else OK if before == DEVIATION else before
        for (rail, before), rows in zip(entry["rails"].items(), worst.values(), strict=True)
    }
    return {**entry, "status": status, "rails": rails, "counts": counts, "checks": found}
