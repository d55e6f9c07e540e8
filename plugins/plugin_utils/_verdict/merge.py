# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Merges what every host found into one verdict. Pure: plain data in, plain data out.

A check is what module_utils/_check.py makes; a host's result is {schema, host, node, plan_digest, error, checks,
facts}. The verdict keeps the checks that are not ok, and counts the others: with thousands of hosts it stays a file
that a person and a program can read. Results come one by one, and nothing is kept of them but that.
"""

from __future__ import annotations

import typing as t
from collections import Counter

from ...module_utils._check import DEVIATION, OK, SKIPPED, WARNING, CheckData
from .causes import with_host
from .require import Required

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...module_utils._fabric.shapes import Part, Verdict

SCHEMA = 2
# Overall and per host, the worst first.
STATUSES = ("error", "deviation", "incomplete", "pass")
UNREACHABLE, NOT_VERIFIED = "unreachable", "not_verified"

Check = CheckData
PARTS = ("plan", "cluster")
KEYS = ("id", "rail", "status", "planned", "observed", "cause", "fix")
MORE_KEYS = ("family", "object", "peers")
KINDS = (OK, DEVIATION, WARNING, SKIPPED)
# What is said of a rail: the worst that was found on it.
WORST = (DEVIATION, WARNING, OK, SKIPPED)


def normal_check(check: Mapping[str, t.Any]) -> Check:
    """Return a check with exactly the contract's keys; one without status is a deviation when it names a cause."""
    made: dict[str, t.Any] = {key: check.get(key) for key in KEYS}
    made |= {key: check[key] for key in MORE_KEYS if check.get(key) is not None}
    if made["status"] not in KINDS:
        made["status"] = DEVIATION if check.get("cause") else OK
    return t.cast("Check", made)


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


class OfNodes:
    """What the cluster said of nodes, on its way to the results of the hosts that are these nodes."""

    def __init__(self, nested: t.Any) -> None:
        """Take checks with `node`, in any of flatten's forms."""
        self._by_node: dict[t.Any, list[Check]] = {}
        for raw in _raw(nested):
            self._by_node.setdefault(raw.get("node"), []).append(normal_check(raw))

    def attach(self, results: Iterable[Mapping[str, t.Any]]) -> Iterator[dict[str, t.Any]]:
        """Yield the results of hosts, each with what was said of its node."""
        for result in results:
            found = self._by_node.pop(result.get("node"), ()) if result.get("node") else ()
            own = result["checks"]
            yield {**result, "checks": [*own, *(with_host(check, own) for check in found)]}

    def left(self) -> list[Check]:
        """Return the checks of nodes that have no result: these name their node, also in what was observed."""
        found = []
        for node, checks in self._by_node.items():
            for check in checks:
                if node:
                    shown = check["observed"]
                    check = {**check, "node": node, "observed": f"{node}: {'-' if shown in (None, '') else shown}"}
                found.append(check)
        return found


def host_result(
    host: str,
    node: str | None,
    digest: str | None,
    checks: Iterable[Check],
    error: str | None = None,
    facts: Mapping[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """Return what one host found, as it is written to its file.

    :param error: why it was not looked at; None where it was.
    :param facts: what else the host said of itself (counters, versions), which the verdict passes on.
    """
    made: dict[str, t.Any] = {
        "schema": SCHEMA,
        "host": host,
        "node": node,
        "plan_digest": digest,
        "error": error,
        "checks": [normal_check(check) for check in checks],
    }
    return {**made, "facts": dict(facts)} if facts else made


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
        if (rail := check["rail"]) is not None:
            found[rail] = min(found.get(rail, SKIPPED), check["status"], key=WORST.index)
    return found


def _host_entry(result: Mapping[str, t.Any], rails: Sequence[str]) -> dict[str, t.Any]:
    checks = result["checks"]
    entry: dict[str, t.Any] = {
        "status": status_of(result),
        "node": result.get("node"),
        "rails": rail_statuses(checks, rails),
        "counts": _counts(checks),
        "checks": [check for check in checks if check["status"] != OK],
    }
    return entry | {key: result[key] for key in ("error", "facts") if result.get(key)}


def _counts(checks: Iterable[Check]) -> dict[str, int]:
    found = Counter(check["status"] for check in checks)
    return {kind: found[kind] for kind in KINDS}


def lost_entry(status: str, node: str | None, error: str) -> dict[str, t.Any]:
    return {"status": status, "node": node, "rails": {}, "counts": _counts(()), "checks": [], "error": error}


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
    nodes: t.Any = None,
    require: Sequence[str] = (),
    lost: str = "No result came from this host: it is unreachable.",
) -> Verdict:
    """Return the verdict.

    :param digest: the digest of the plan that everything is compared with.
    :param results: what the hosts wrote; read one by one.
    :param expected: the hosts that should have one: inventory name to node name.
    :param rails: the plan's rails, in order.
    :param cluster: {status, checks, ...} of the cluster, or None when it was not looked at.
    :param plan: the same of the plan itself, against the inventory.
    :param nodes: what the cluster said of nodes: checks with `node`; the cluster's part has those without a result.
    :param require: the beginnings of ids that may not be skipped.
    :param lost: what is said of a host without a result.
    """
    hosts: dict[str, dict[str, t.Any]] = {}
    of_nodes, required = OfNodes(nodes), Required(require)
    for result in of_nodes.attach(results):
        name = result["host"]
        if result.get("plan_digest") != digest and not result.get("error"):
            hosts[name] = lost_entry(
                "error", result.get("node"), "Its result is of another plan than the one at hand: verify again."
            )
        else:
            missing = required.host(name, result["checks"])
            hosts[name] = _host_entry({**result, "checks": [*result["checks"], *missing]}, rails)
    for name, check in required.forgotten():
        entry = hosts[name]
        hosts[name] = {**entry, **added(entry, [check])}
    for name, node in expected.items():
        if name not in hosts:
            hosts[name] = lost_entry(UNREACHABLE, node, lost)
    ordered = {name: hosts[name] for name in sorted(hosts, key=natural)}
    parts = {
        "plan": dict(plan) if plan else unseen_part("the inventory was not compared with the plan"),
        "cluster": dict(cluster) if cluster else unseen_part("the cluster was not looked at"),
    }
    parts["cluster"] = added(parts["cluster"], of_nodes.left())
    for name, part in parts.items():
        parts[name] = added(part, required.part(name, part["checks"], part.get("made", ())))
    parts["cluster"] = added(parts["cluster"], required.nowhere())
    statuses = [entry["status"] for entry in ordered.values()]
    statuses += [part["status"] for part in parts.values() if part["status"] != SKIPPED]
    made = {
        "schema": SCHEMA,
        "plan_digest": digest,
        "status": overall(statuses),
        "rails": list(rails),
        "hosts": ordered,
        **parts,
    }
    return t.cast("Verdict", made)


def unseen_part(reason: str) -> dict[str, t.Any]:
    """Return the verdict's part about something that was not looked at."""
    return {"status": SKIPPED, "checks": [], "reason": reason}


def seen_part(checks: Iterable[Check], error: str | None = None) -> dict[str, t.Any]:
    """Return the verdict's part about the cluster or the plan. When no check was made, it is skipped.

    `made` in it has the ids of what is ok, since the part holds only what is not.
    """
    made = [normal_check(check) for check in checks]
    status = status_of({"error": error, "checks": made})
    reasons = [str(check["cause"]) for check in made if check["status"] == SKIPPED]
    if status == "pass" and len(reasons) == len(made) > 0:
        return {**unseen_part(reasons[0]), "counts": _counts(made), "checks": made}
    part: dict[str, t.Any] = {
        "status": status,
        "counts": _counts(made),
        "made": sorted({check["id"] for check in made if check["status"] == OK}),
        "checks": [check for check in made if check["status"] != OK],
    }
    if error:
        part["error"] = error
    return part


def added(part: Mapping[str, t.Any], checks: Sequence[Check]) -> dict[str, t.Any]:
    """Return a part, or a host's entry, with more checks."""
    if not checks:
        return dict(part)
    more = _counts(checks)
    before = part.get("counts") or _counts(part["checks"])
    status = DEVIATION if more[DEVIATION] and part["status"] in ("pass", SKIPPED) else part["status"]
    if more[OK] and status == SKIPPED:
        status = "pass"
    return {
        **part,
        "status": status,
        "counts": {kind: before[kind] + more[kind] for kind in KINDS},
        "checks": [*part["checks"], *(check for check in checks if check["status"] != OK)],
    }


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


def part_of(verdict: Verdict | None, name: str) -> Mapping[str, t.Any]:
    """Return the part of the plan or the cluster; early verdicts have no plan's."""
    return t.cast("Mapping[str, Part]", verdict or {}).get(name) or unseen_part("it is not in this verdict")


def entries(verdict: Verdict) -> Iterator[tuple[str, Mapping[str, t.Any]]]:
    """Yield hosts and parts by name."""
    yield from verdict["hosts"].items()
    yield from ((name, part_of(verdict, name)) for name in PARTS)


def deviations(verdict: Verdict, status: str = DEVIATION) -> list[tuple[str, Check]]:
    """Return every deviation, or warning, with its host's name (`cluster` for the cluster's), in order."""
    return [(name, check) for name, entry in entries(verdict) for check in entry["checks"] if check["status"] == status]


def untested(verdict: Verdict) -> dict[str, tuple[list[str], list[str]]]:
    """Return what was not looked at: the reason to ids and names of hosts, each once and in order."""
    found: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for name, check in deviations(verdict, SKIPPED):
        ids, hosts = found.setdefault(str(check["cause"] or "no reason given"), ({}, {}))
        ids[check["id"]] = hosts[name] = None
    return {reason: (list(ids), list(hosts)) for reason, (ids, hosts) in found.items()}


def tally(verdict: Verdict) -> dict[str, int]:
    """Return how many hosts have each status."""
    return dict(Counter(entry["status"] for entry in verdict["hosts"].values()))


def counted(verdict: Verdict) -> dict[str, int]:
    """Return how many checks of the whole verdict have each status."""
    rows = [entry.get("counts") or _counts(entry["checks"]) for _name, entry in entries(verdict)]
    return {kind: sum(row.get(kind, 0) for row in rows) for kind in KINDS}


def number_of(count: int, what: str) -> str:
    """Return a count with its noun: 1 deviation, 2 deviations."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def left_out(verdict: Verdict) -> str:
    """Return how much was not looked at, for the first line of the answer; empty when all was."""
    count = counted(verdict)[SKIPPED]
    return f"{number_of(count, 'check')} not made" if count else ""


def summary(verdict: Verdict) -> str:
    """Return the verdict as one sentence."""
    hosts = ", ".join(f"{count} {status}" for status, count in sorted(tally(verdict).items()))
    counts = counted(verdict)
    told = [number_of(counts[DEVIATION], "deviation")]
    told += [number_of(counts[WARNING], "warning")] if counts[WARNING] else []
    told += [left_out(verdict)] if counts[SKIPPED] else []
    cluster = part_of(verdict, "cluster")["status"]
    return f"Verdict {verdict['status']}: hosts: {hosts or 'none'}; cluster: {cluster}; {', '.join(told)}."
