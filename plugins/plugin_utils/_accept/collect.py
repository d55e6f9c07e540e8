# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From what hosts returned to the outcome of a run, and from outcomes to checks. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ...module_utils._check import Check, compared, deviation, ok, skipped
from ...module_utils._formatting import group_by, shortened
from ...module_utils._probe.perftest import TOOLS
from .bisect import BETWEEN, NODE, TOGETHER, Finding, Names, Run
from .results import READERS, failure_of
from .stages import LATENCY, PERFTEST, STAGES, AcceptEvaluator, AcceptFleet, AcceptReport, Outcome, StepGroup

PREFIX = "accept_"
"""The prefix of acceptance's check IDs."""

PAIRED = "netpipe"
"""The collective that knows two processes only: each host runs it with the next one, rail by rail."""
_LOST_FIX = "Look at the host: ansible could not run the test there."
_SHOWN = 4


def outcome(
    kind: str, entry: StepGroup, unit: Names, found: t.Mapping[str, t.Mapping[str, t.Any]], gpus: t.Collection[str] = ()
) -> Outcome:
    """Return what came of one run.

    :param kind: the kind of test.
    :param found: host -> what it wrote: `send` (the clients' results), `serve` (the servers'), `error`.
    :param gpus: hosts whose GPU memory the network can reach: a program that runs on these alone must reach it.
    """
    senders = entry.hosts if kind in PERFTEST or kind == PAIRED else entry.hosts[:1]
    gpu_memory = bool(gpus) and all(host in gpus for host in entry.hosts)
    values: list[tuple[float, str]] = []
    rates: list[float] = []
    for host in senders:
        wrote = found.get(host)
        if wrote is None or wrote.get("error"):
            cause = f"no result came from {host}" + (f": {wrote['error']}" if wrote else "")
            return {"value": None, "cause": cause, "fix": _LOST_FIX}
        for test in wrote.get("send") or ():
            if test["rail"] not in unit:
                continue
            where = f"{host} to {test['peer']}, {test['rail']}" if len(senders) > 1 else ""
            served = (found.get(test["peer"]) or {}).get("serve") or ()
            other: dict[str, t.Any] = next(
                (one for one in served if all(one[key] == test[key] for key in ("port", "rail"))), {}
            )
            value, cause, fix = _measured(kind, test, other, gpu_memory)
            if value is None:
                return {"value": None, "cause": f"{where}: {cause}" if where else cause, "fix": fix}
            values.append((value, where))
            known = (end.get("expected_gbits") for end in (test, other))
            rates += [float(rate) for rate in known if rate is not None]
    if not values:
        return {"value": None, "cause": f"no test was run by {', '.join(senders[:_SHOWN])}", "fix": _LOST_FIX}
    value, where = max(values) if kind == LATENCY else min(values)
    return {"value": value, "worst": where, **({"expected": min(rates)} if rates else {})}


def _measured(
    kind: str, test: t.Mapping[str, t.Any], other: t.Mapping[str, t.Any], gpu_memory: bool
) -> tuple[float | None, str, str]:
    """Return the value of one test, or why it has none and what to do."""
    if kind not in PERFTEST:
        if test.get("cause"):  # Its Job has no output, and its message says what to do.
            return None, test["cause"], ""
        measured = READERS[kind](test.get("output") or "")
        failure = failure_of(measured, test.get("code"), gpu_memory=gpu_memory)
        if failure is None:
            return measured.gbytes, "", ""
        # The output is not stored: the cause includes the line that shows it.
        return None, f"{failure.cause} ({failure.line})" if failure.line else failure.cause, failure.fix
    if test["status"] == "ok" and test["test"] and (value := test[TOOLS[test["test"]].metric]) is not None:
        return float(value), "", ""
    # A server that did not start reports why; its client reports only a missing answer.
    failed = other if other.get("status") == "deviation" else test
    return None, str(failed["cause"]), str(failed["fix"])


# --- checks ----------------------------------------------------------------------------------------------------------

_CAUSES = {
    BETWEEN: ("each side passes without the other: the cause is between them", "leaves' uplinks, routes and cables"),
    TOGETHER: ("it fails only with all of them at once", "uplinks' load, ECMP, PFC and ECN of the leaves"),
}
_NONE_PASSED = ("one or several of them: no host passed to compare with", "what all of them share, then each host")


def _shown(run: Run, value: t.Any) -> str:
    unit = "us" if run.kind == LATENCY else "Gb/s" if run.kind in PERFTEST else "GB/s"
    return "no result" if value is None else f"{float(value):g} {unit}"


def described(finding: Finding, evaluator: AcceptEvaluator) -> tuple[str, str, str]:
    """Return what a finding is about, its cause and its fix."""
    failure = evaluator.why(finding.run)
    cause, fix = (failure.cause, failure.fix) if failure else ("", "")
    rails = ", ".join(finding.rails)
    where = shortened(finding.hosts, _SHOWN)
    where += f" with {shortened(finding.peers, _SHOWN)}" if finding.peers else ""
    if finding.what != NODE:
        shown, places = _CAUSES.get(finding.what, _NONE_PASSED)
        cause, fix = f"{shown} ({cause})", f"Look at {places}."
    return f"{where}, {rails}", cause, fix


def unlocated(findings: t.Iterable[Finding]) -> list[Finding]:
    """Return the findings that are not one host's fault, each once, with all its rails."""
    found = group_by(((one.what, one.hosts, one.peers), one) for one in findings if one.what != NODE)
    return [
        replace(same[0], rails=tuple(dict.fromkeys(rail for one in same for rail in one.rails)))
        for same in found.values()
    ]


def host_checks(fleet: AcceptFleet, report: AcceptReport, evaluator: AcceptEvaluator) -> dict[str, list[Check]]:
    """Return the checks of each host."""
    made: dict[str, list[Check]] = {host: [] for host in fleet.places}
    for stage, planned in STAGES.items():
        name = f"{PREFIX}{stage}"
        if stage in report.skipped or stage not in report.done:
            reason = report.skipped.get(stage) or f"not reached: the stage {report.failed} did not pass"
            for checks in made.values():
                checks.append(skipped(name, reason))
        elif stage == "hosts":
            fix = "Run the playbook railops.rdma.verify and fix what it names."
            for host, checks in made.items():
                against = fleet.trouble.get(host, "")
                checks.append(compared(name, planned, against or "nothing", against, fix, good=not against))
        else:
            findings = report.findings if report.failed == stage else []
            by_host = group_by((host, run) for run in report.done[stage] for host in run.hosts)
            for host in fleet.out.keys() - by_host.keys():
                made[host].append(skipped(name, f"out of service: {', '.join(fleet.out[host])}"))
            for host, runs in by_host.items():
                accused = [finding for finding in findings if finding.what == NODE and finding.hosts == (host,)]
                made[host] += _stage_checks(name, planned, runs, accused, evaluator)
    return made


def _stage_checks(
    name: str, planned: str, runs: t.Sequence[Run], accused: t.Sequence[Finding], evaluator: AcceptEvaluator
) -> t.Iterator[Check]:
    """Yield the checks of a host in one stage.

    :param name: the check's id.
    :param runs: those of the stage that the host was in.
    :param accused: what is the host's own fault.
    """
    results = evaluator.results
    for finding in accused:
        _where, cause, fix = described(finding, evaluator)
        rail = finding.rails[0] if len(finding.rails) == 1 else None
        value = _shown(finding.run, results[finding.run.key].get("value"))
        observed = f"{value} with {shortened(finding.run.hosts, _SHOWN)}"
        yield deviation(name, planned, observed, cause, fix, rail=rail)
    if accused:
        return
    if all(evaluator.passes(run) for run in runs):
        worst = (max if runs[0].kind == LATENCY else min)(runs, key=lambda run: float(results[run.key]["value"]))
        yield ok(name, planned, f"{_shown(worst, results[worst.key]['value'])} at worst, in {len(runs)} runs")
    else:
        yield skipped(name, "runs with this host failed because of other hosts, and the stage ended")


def fabric_checks(report: AcceptReport, evaluator: AcceptEvaluator) -> t.Iterator[Check]:
    """Yield the checks of failures without a single faulty host."""
    for finding in unlocated(report.findings):
        where, cause, fix = described(finding, evaluator)
        planned = STAGES[str(report.failed)]
        yield deviation(f"{PREFIX}{report.failed}", planned, where, cause, fix, object=where)
