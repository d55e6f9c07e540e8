# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges what every host found into one verdict. Pure: plain data in, plain data out.

A check is {id, rail (name or null), status: ok|deviation|skipped, planned, observed, cause, fix}; a host's result is
{schema, host, node, plan_digest, error, checks}. The verdict keeps the checks that are not ok, and counts the others:
with thousands of hosts it stays a file that a person and a program can read.
"""

from __future__ import annotations

import typing as t

from ...module_utils._check import DEVIATION, OK, SKIPPED
from .causes import with_host

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

SCHEMA = 1
# Overall and per host, the worst first.
STATUSES = ("error", "deviation", "incomplete", "pass")
UNREACHABLE, NOT_VERIFIED = "unreachable", "not_verified"

Check = t.Dict[str, t.Any]  # noqa: UP006 - evaluated on Python 3.9 and read by everybody
PARTS = ("plan", "cluster")
KEYS = ("id", "rail", "status", "planned", "observed", "cause", "fix")
MORE_KEYS = ("family", "object")


def normal_check(check: Mapping[str, t.Any]) -> Check:
    """Return a check with exactly the contract's keys; one without status is a deviation when it names a cause."""
    made = {key: check.get(key) for key in KEYS}
    made |= {key: check[key] for key in MORE_KEYS if check.get(key) is not None}
    if made["status"] not in (OK, DEVIATION, SKIPPED):
        made["status"] = DEVIATION if check.get("cause") else OK
    return made


def _raw(nested: t.Any) -> Iterable[Mapping[str, t.Any]]:
    if isinstance(nested, dict):
        if "checks" in nested:
            yield from _raw(nested["checks"])
        elif "id" in nested and ("status" in nested or "planned" in nested):
            yield nested
        else:
            for value in nested.values():
                yield from _raw(value)
    elif isinstance(nested, (list, tuple)):
        for value in nested:
            yield from _raw(value)


def flatten(nested: t.Any) -> list[Check]:
    """Return all checks in a value: results of modules, lists of them, or lists of checks.

    A dict with `checks` gives these; a check is known by its `id` and `planned`. A merged result (a dict of results)
    gives those of all its members.
    """
    return [normal_check(check) for check in _raw(nested)]


def attach(results: Iterable[Mapping[str, t.Any]], nested: t.Any) -> tuple[list[dict[str, t.Any]], list[Check]]:
    """Put what the cluster said of nodes to the hosts' own results.

    :param results: what the hosts wrote.
    :param nested: checks with `node`, in any of flatten's forms.
    :return: the results, and the checks of nodes that have none: these name their node in what was observed.
    """
    made = [dict(result) for result in results]
    own = {result["node"]: result for result in made if result.get("node")}
    left = []
    for raw in _raw(nested):
        check, node = normal_check(raw), raw.get("node")
        if node in own:
            own[node]["checks"] = [*own[node]["checks"], with_host(check, own[node]["checks"])]
            continue
        if node:
            shown = check["observed"]
            check["observed"] = f"{node}: {'-' if shown is None or shown == '' else shown}"
        left.append(check)
    return made, left


def host_result(
    host: str, node: str | None, digest: str | None, checks: Iterable[Check], error: str | None = None
) -> dict[str, t.Any]:
    """Return what one host found, as it is written to its file."""
    return {
        "schema": SCHEMA,
        "host": host,
        "node": node,
        "plan_digest": digest,
        "error": error,
        "checks": [normal_check(check) for check in checks],
    }


def status_of(result: Mapping[str, t.Any]) -> str:
    """Return the status of one host's result."""
    if result.get("error"):
        return "error"
    if any(check["status"] == DEVIATION for check in result["checks"]):
        return "deviation"
    return "pass"


def rail_statuses(checks: Iterable[Check], rails: Sequence[str] = ()) -> dict[str, str]:
    """Return a status for each rail: its worst check; `skipped` when none of its checks was made."""
    found: dict[str, str] = dict.fromkeys(rails, SKIPPED)
    for check in checks:
        rail = check["rail"]
        if rail is None:
            continue
        if check["status"] == DEVIATION or found.get(rail, SKIPPED) == SKIPPED:
            found[rail] = check["status"]
    return found


def _host_entry(result: Mapping[str, t.Any], rails: Sequence[str]) -> dict[str, t.Any]:
    checks = result["checks"]
    entry: dict[str, t.Any] = {
        "status": status_of(result),
        "node": result.get("node"),
        "rails": rail_statuses(checks, rails),
        "counts": {kind: sum(check["status"] == kind for check in checks) for kind in (OK, DEVIATION, SKIPPED)},
        "checks": [check for check in checks if check["status"] != OK],
    }
    if result.get("error"):
        entry["error"] = result["error"]
    return entry


def _lost_entry(status: str, node: str | None, error: str) -> dict[str, t.Any]:
    counts = dict.fromkeys((OK, DEVIATION, SKIPPED), 0)
    return {"status": status, "node": node, "rails": {}, "counts": counts, "checks": [], "error": error}


def overall(statuses: Iterable[str]) -> str:
    """Return the verdict over hosts and cluster: the worst; a host without a result makes it incomplete."""
    found = {status if status in STATUSES else "incomplete" for status in statuses}
    return next((status for status in STATUSES if status in found), "incomplete")


def merge(
    digest: str | None,
    results: Iterable[Mapping[str, t.Any]],
    expected: Mapping[str, str | None],
    *,
    rails: Sequence[str] = (),
    cluster: Mapping[str, t.Any] | None = None,
    plan: Mapping[str, t.Any] | None = None,
    lost: str = "No result came from this host: it is unreachable.",
) -> dict[str, t.Any]:
    """Return the verdict.

    :param digest: the digest of the plan that everything is compared with.
    :param results: what the hosts wrote.
    :param expected: the hosts that should have one: inventory name to node name.
    :param rails: the plan's rails, in order.
    :param cluster: {status, checks, ...} of the cluster, or None when it was not looked at.
    :param plan: the same of the plan itself, against the inventory.
    :param lost: what is said of a host without a result.
    """
    hosts: dict[str, dict[str, t.Any]] = {}
    for result in results:
        name = result["host"]
        if result.get("plan_digest") != digest and not result.get("error"):
            hosts[name] = _lost_entry(
                "error", result.get("node"), "Its result is of another plan than the one at hand: verify again."
            )
        else:
            hosts[name] = _host_entry(result, rails)
    for name, node in expected.items():
        if name not in hosts:
            hosts[name] = _lost_entry(UNREACHABLE, node, lost)
    ordered = {name: hosts[name] for name in sorted(hosts, key=natural)}
    parts = {
        "plan": dict(plan) if plan else unseen_part("the inventory was not compared with the plan"),
        "cluster": dict(cluster) if cluster else unseen_part("the cluster was not looked at"),
    }
    statuses = [entry["status"] for entry in ordered.values()]
    statuses += [part["status"] for part in parts.values() if part["status"] != SKIPPED]
    return {
        "schema": SCHEMA,
        "plan_digest": digest,
        "status": overall(statuses),
        "rails": list(rails),
        "hosts": ordered,
        **parts,
    }


def unseen_part(reason: str) -> dict[str, t.Any]:
    """Return the verdict's part about something that was not looked at."""
    return {"status": SKIPPED, "checks": [], "reason": reason}


def seen_part(checks: Iterable[Check], error: str | None = None) -> dict[str, t.Any]:
    """Return the verdict's part about the cluster or the plan. When no check was made, it is skipped."""
    made = [normal_check(check) for check in checks]
    status = status_of({"error": error, "checks": made})
    reasons = [str(check["cause"]) for check in made if check["status"] == SKIPPED]
    if status == "pass" and reasons and not any(check["status"] == OK for check in made):
        return {**unseen_part(reasons[0]), "checks": made}
    part: dict[str, t.Any] = {
        "status": status,
        "counts": {kind: sum(check["status"] == kind for check in made) for kind in (OK, DEVIATION, SKIPPED)},
        "checks": [check for check in made if check["status"] != OK],
    }
    if error:
        part["error"] = error
    return part


def natural(name: str) -> list[tuple[int, int, str]]:
    """Return a sort key in which node2 comes before node10."""
    parts: list[tuple[int, int, str]] = []
    digits = text = ""
    for char in name + "\0":
        if char.isdigit() and char.isascii():
            if text:
                parts.append((1, 0, text))
                text = ""
            digits += char
            continue
        if digits:
            parts.append((0, int(digits), ""))
            digits = ""
        text += char
    parts.append((1, 0, text))
    return parts


def deviations(verdict: Mapping[str, t.Any]) -> list[tuple[str, Check]]:
    """Return every deviation with its host's name (`cluster` for the cluster's), in order."""
    found = [
        (name, check)
        for name, entry in verdict["hosts"].items()
        for check in entry["checks"]
        if check["status"] == DEVIATION
    ]
    return found + [
        (part, check) for part in PARTS for check in verdict[part]["checks"] if check["status"] == DEVIATION
    ]


def untested(verdict: Mapping[str, t.Any]) -> dict[tuple[str, str], list[str]]:
    """Return what was not looked at: (check, reason) to the hosts' names."""
    found: dict[tuple[str, str], list[str]] = {}
    named = [*verdict["hosts"].items(), *((part, verdict[part]) for part in PARTS)]
    for name, entry in named:
        for check in entry["checks"]:
            if check["status"] == SKIPPED:
                hosts = found.setdefault((check["id"], str(check["cause"] or "no reason given")), [])
                if not hosts or hosts[-1] != name:
                    hosts.append(name)
    return found


def tally(verdict: Mapping[str, t.Any]) -> dict[str, int]:
    """Return how many hosts have each status."""
    found: dict[str, int] = {}
    for entry in verdict["hosts"].values():
        found[entry["status"]] = found.get(entry["status"], 0) + 1
    return found


def summary(verdict: Mapping[str, t.Any]) -> str:
    """Return the verdict as one sentence."""
    counts = ", ".join(f"{count} {status}" for status, count in sorted(tally(verdict).items()))
    found = len(deviations(verdict))
    told = f"{found} deviation{'' if found == 1 else 's'}"
    return f"Verdict {verdict['status']}: hosts: {counts or 'none'}; cluster: {verdict['cluster']['status']}; {told}."
