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
from types import MappingProxyType

from ...module_utils._check import DEVIATION, OK, SKIPPED, WARNING, Check, warning
from ...module_utils._fabric.facts import OutRow
from ...module_utils._fabric.shapes import Verdict, out_text
from ...module_utils._formatting import count, group_by, natural
from ...module_utils._validation import line
from .._report.equal import entries, skipped_section
from .causes import short_names, without_host_as_leaf
from .intake import KINDS, NOT_VERIFIED, STATUSES, UNREACHABLE, result_in
from .outliers import FleetPorts, with_holder
from .require import RequiredChecks

SCHEMA = 1
LOST = "No result came from this host: it is unreachable, or it was lost on the way."
# A rail's status is the worst that was found on it.
WORST = (DEVIATION, WARNING, OK, SKIPPED)


def _without_node(check: Check) -> Check:
    return t.cast("Check", {key: value for key, value in check.items() if key != "node"})


def _with_node(check: Check) -> Check:
    """Return a check of a node without a result: it names its node in what was observed, too."""
    shown = "-" if check["observed"] in (None, "") else check["observed"]
    return {**check, "observed": f"{check['node']}: {shown}"} if check.get("node") else check


def host_result(
    host: str,
    node: str | None,
    digest: str | None,
    checks: t.Iterable[Check],
    error: str | None = None,
    facts: t.Mapping[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    """Return one host's result, as its file has it.

    :param error: why the host was not checked; None where it was.
    :param facts: other values that the host reported (counters, versions), which the verdict passes on.
    """
    made: dict[str, t.Any] = {
        "schema": SCHEMA,
        "host": host,
        "node": node,
        "plan_digest": digest,
        "error": error,
        "checks": list(checks),
    }
    return {**made, "facts": dict(facts)} if facts else made


def status_of(result: t.Mapping[str, t.Any]) -> str:
    """Return the status of one host's result."""
    if result.get("error"):
        return "error"
    if any(check["status"] == DEVIATION for check in result["checks"]):
        return "deviation"
    return "pass"


def rail_statuses(checks: t.Iterable[Check], before: t.Mapping[str, str]) -> dict[str, str]:
    """Return a status for each rail: its worst check, or what it was before where that is worse."""
    found = dict(before)
    for rail, status in {(check["rail"], check["status"]) for check in checks}:
        if rail is not None:
            found[rail] = min(found.get(rail, SKIPPED), status, key=WORST.index)
    return found


def counts_of(checks: t.Iterable[Check]) -> dict[str, int]:
    """Return how many checks have each status."""
    found = Counter(check["status"] for check in checks)
    return {kind: found[kind] for kind in KINDS}


def host_entry(status: str, node: str | None, error: str, rails: t.Iterable[str] = ()) -> dict[str, t.Any]:
    """Return the entry of a host without checks."""
    seen = {"rails": dict.fromkeys(rails, SKIPPED), "counts": counts_of(()), "checks": []}
    return {"status": status, "node": node, **seen, **({"error": error} if error else {})}


def overall(statuses: t.Iterable[str]) -> str:
    """Return the verdict over hosts and cluster: the worst; a host without a result makes it incomplete."""
    found = {status if status in STATUSES else "incomplete" for status in statuses}
    return next((status for status in STATUSES if status in found), "incomplete")


def merge(
    digest: str | None,
    results: t.Iterable[t.Mapping[str, t.Any]],
    expected: t.Mapping[str, str | None],
    *,
    rails: t.Sequence[str] = (),
    cluster: t.Mapping[str, t.Any] | None = None,
    plan: t.Mapping[str, t.Any] | None = None,
    nodes: t.Iterable[Check] = (),
    require: t.Sequence[str] = (),
    unverified: t.Mapping[str, str] = MappingProxyType({}),
    out: t.Iterable[OutRow] = (),
) -> Verdict:
    """Return the verdict.

    :param digest: the digest of the plan that everything is compared with.
    :param results: the hosts' results; read one by one.
    :param expected: the hosts that should have one: inventory name to node name.
    :param rails: the plan's rails, in order.
    :param cluster: {status, checks, ...} of the cluster, or None when it was not checked.
    :param plan: the same of the plan itself, against the inventory.
    :param nodes: the cluster's checks of nodes, each with its `node`; its section has those of nodes without a result.
    :param require: the beginnings of ids that may not be skipped.
    :param unverified: the expected hosts that no run verified, each with the reason.
    :param out: the rails that are out of service.
    """
    of_nodes: dict[t.Any, list[Check]] = group_by((check.get("node"), check) for check in nodes)
    required = RequiredChecks(require)
    names = short_names((*expected, *expected.values()))
    silent: dict[str, str] = {}
    hosts: dict[str, dict[str, t.Any]] = {}
    fleet = FleetPorts()
    for answer in results:
        if UNREACHABLE in answer:
            silent[answer["host"]] = line(str(answer[UNREACHABLE])) or ""
            continue
        result = result_in(answer, rails)
        name, node, error = result["host"], result["node"], result["error"] or ""
        own = [_without_node(check) for check in of_nodes.pop(node, ())] if node else []
        if result["plan_digest"] != digest and not error:
            hosts[name] = host_entry("error", node, "Its result is of another plan than the one at hand: verify again.")
            continue
        checks = [without_host_as_leaf(check, names) for check in (*result["checks"], *own)]
        entry = host_entry("error" if error else "pass", node, error, rails)
        hosts[name] = added(entry, [*checks, *required.host(name, checks)])
        fleet.add(name, result["facts"])
    for name, check in (*required.hosts_without_check(), *fleet.outliers()):
        hosts[name] = added(hosts[name], [check])
    for name, entry in hosts.items():
        entry["checks"] = [with_holder(check, fleet, name) for check in entry["checks"]]
    for name, node in expected.items():
        if name in silent:
            error = f"The host is unreachable. The controller reports: {silent[name]}"
            hosts[name] = host_entry(UNREACHABLE, node, error)
        elif name not in hosts:
            status = NOT_VERIFIED if name in unverified else UNREACHABLE
            hosts[name] = host_entry(status, node, unverified.get(name, LOST))
    for row in out:
        if row["all_rails"]:
            hosts[row["host"]] = host_entry(SKIPPED, row["node"], "", rails)
        if row["host"] in hosts:
            hosts[row["host"]] = added(hosts[row["host"]], out_checks(row))
    sections = {
        "plan": dict(plan or skipped_section("the inventory was not compared with the plan")),
        "cluster": added(
            cluster or skipped_section("the cluster was not checked"),
            [_with_node(check) for checks in of_nodes.values() for check in checks],
        ),
    }
    for name, section in sections.items():
        sections[name] = added(section, required.section(name, section["checks"], section.get("made", ())))
    sections["cluster"] = added(sections["cluster"], required.groups_without_check())
    statuses = [one["status"] for one in (*hosts.values(), *sections.values()) if one["status"] != SKIPPED]
    made = {
        "schema": SCHEMA,
        "plan_digest": digest,
        "status": overall(statuses),
        "rails": list(rails),
        "hosts": {name: hosts[name] for name in sorted(hosts, key=natural)},
        **sections,
    }
    return t.cast("Verdict", made)


def out_checks(row: OutRow) -> list[Check]:
    """Return a warning for each rail that is out of service, or one for a host without any other."""
    text = out_text(row["reason"])
    fix = f"After the repair, remove {row['host']} from fabric_out_of_service, and run plan and site."
    cause = f"The plan has it {text}."
    names: list[str | None] = [None] if row["all_rails"] else [*row["rails"]]
    return [warning("rail_out_of_service", "in service", text, cause, fix, rail=name) for name in names]


def seen_section(checks: t.Iterable[Check], error: str | None = None) -> dict[str, t.Any]:
    """Return the verdict's section about the cluster or the plan. When no check was made, it is skipped.

    `made` in it has the ids of what is ok, since the section holds only what is not.
    """
    made = list(checks)
    reasons = [str(check["cause"]) for check in made if check["status"] == SKIPPED]
    if not error and len(reasons) == len(made) > 0:
        return {**skipped_section(reasons[0]), "counts": counts_of(made), "checks": made}
    section: dict[str, t.Any] = {
        "status": "error" if error else "pass",
        "counts": counts_of(()),
        "made": sorted({check["id"] for check in made if check["status"] == OK}),
        "checks": [],
    }
    return added(section, made) | ({"error": error} if error else {})


def added(section: t.Mapping[str, t.Any], checks: t.Sequence[Check]) -> dict[str, t.Any]:
    """Return a section, or a host's entry, with more checks."""
    if not checks:
        return dict(section)
    more = counts_of(checks)
    before = section.get("counts") or counts_of(section["checks"])
    status = DEVIATION if more[DEVIATION] and section["status"] in ("pass", SKIPPED) else section["status"]
    if more[OK] and status == SKIPPED:
        status = "pass"
    return {
        **section,
        **({"rails": rail_statuses(checks, section["rails"])} if "rails" in section else {}),
        "status": status,
        "counts": {kind: before[kind] + more[kind] for kind in KINDS},
        "checks": [*section["checks"], *(check for check in checks if check["status"] != OK)],
    }


def deviations(verdict: Verdict, status: str = DEVIATION) -> list[tuple[str, Check]]:
    """Return every deviation, or warning, with its host's name (`cluster` for the cluster's), in order."""
    return [(name, check) for name, entry in entries(verdict) for check in entry["checks"] if check["status"] == status]


def untested(verdict: Verdict) -> dict[str, tuple[list[str], list[str]]]:
    """Return the skipped checks: reasons with ids and names of hosts, each once and in order."""
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
    rows = [entry.get("counts") or counts_of(entry["checks"]) for _name, entry in entries(verdict)]
    # What is attributed to neither end is in no host's counts.
    return {kind: sum(row.get(kind, 0) for row in rows) for kind in KINDS} | {DEVIATION: len(deviations(verdict))}


def summary(verdict: Verdict) -> str:
    """Return the verdict as one sentence."""
    hosts = ", ".join(f"{number} {status}" for status, number in sorted(tally(verdict).items()))
    counts = counted(verdict)
    causes = [card for card in verdict.get("causes") or () if card["status"] == DEVIATION]
    rows = [count(len(causes), "cause")] if causes else []
    rows += [count(counts[DEVIATION], "deviation")]
    rows += [count(counts[WARNING], "warning")] if counts[WARNING] else []
    cluster = verdict["cluster"]["status"]
    rows += [f"cluster: {cluster}"] if cluster != SKIPPED else []
    return f"Verdict {verdict['status']}: hosts: {hosts or 'none'}; {', '.join(rows)}."
