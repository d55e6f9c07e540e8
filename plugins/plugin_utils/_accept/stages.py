# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages of acceptance, from small to large: which runs each makes, what passes, and what comes next. Pure.

Everything follows from the fleet and the results so far, so that a run that was cut off goes on where it was.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ...module_utils._formatting import group_by
from ...module_utils._probe.perftest import Failure, threshold_failure
from .bisect import Bisection, Finding, Names, Run, RunRequest, RunsMissing, ring

LATENCY, BANDWIDTH, GPU_BANDWIDTH = "read_lat", "write_bw", "write_bw_gpu"
PERFTEST = (LATENCY, BANDWIDTH, GPU_BANDWIDTH)

STAGES = {
    "hosts": "the hosts have no deviation in the last verdict",
    "latency": "each host with its neighbors, rail by rail: read latency",
    "bandwidth": "each host with its neighbors, rail by rail: write bandwidth",
    "gpu": "the same from GPU memory to GPU memory",
    "node": "each host with its neighbors, all rails at once",
    "leaf": "all hosts of a leaf, all rails at once",
    "zone": "all hosts of a zone, all rails at once",
    "fabric": "all hosts, all rails at once",
    "collective": "collective operations over all hosts and rails",
}


@dataclass(frozen=True)
class AcceptFleet:
    """The participating hosts.

    :param places: the hosts in the order of the topology, each with its zone and the leaves of its rails.
    :param rails: the rails' names in order.
    :param trouble: what the last verdict has against hosts, by name.
    :param gpus: the hosts whose GPU memory the network can reach.
    :param out: the rails that are out of service, by host.
    """

    places: t.Mapping[str, tuple[str, Names]]
    rails: Names
    trouble: t.Mapping[str, str] = field(default_factory=dict)
    gpus: frozenset[str] = frozenset()
    out: t.Mapping[str, Names] = field(default_factory=dict)


Options = t.Mapping[str, t.Any]
"""The options of the module acceptance: stages, collectives and limits."""
Outcome = dict[str, t.Any]
"""The result of a run: `value` in microseconds, Gb/s or GB/s, or None with `cause` and `fix`; `expected` in Gb/s."""


class AcceptEvaluator:
    """Judges whether runs pass."""

    def __init__(self, settings: Options, results: t.Mapping[str, Outcome]) -> None:
        self._settings = settings
        self.results = results
        self._floors: dict[tuple[str, int], float] = {}

    def learn(self, runs: t.Sequence[Run]) -> None:
        """Derive the minimum for pairs from the results of all pairs, once all of them have run."""
        values = sorted(float((self.results.get(run.key) or {}).get("value") or 0) for run in runs)
        if runs and runs[0].kind != LATENCY and all(run.key in self.results for run in runs):
            best = values[len(values) * 3 // 4]
            self._floors[runs[0].kind, len(runs[0].rails)] = self._settings["min_relative_percent"] / 100 * best

    def why(self, run: Run) -> Failure | None:
        """Return why a run that was made does not pass."""
        outcome, settings = self.results[run.key], self._settings
        if outcome.get("cause") or outcome.get("value") is None:
            return Failure("", outcome.get("cause") or "it gave no result", outcome.get("fix") or "")
        value = float(outcome["value"])
        if run.kind == LATENCY:
            return threshold_failure(LATENCY, {"latency_us": value}, {"max_latency_us": settings["max_latency_us"]})
        pair = len(run.hosts) == 2
        # What a rail reaches with others at work it reaches alone: else narrowing would find each part fast enough.
        limit = max(settings["min_gbits_loaded"], settings["min_gbits"] if pair and len(run.rails) == 1 else 0)
        if run.kind not in PERFTEST:
            if value >= settings["min_gbytes"]:
                return None
            cause = f"the bus bandwidth of {value:g} GB/s is below the limit of {settings['min_gbytes']:g} GB/s"
            fix = "Look at what the stages before it measured, and at NCCL's lines in the run's log."
            return Failure("", cause, fix)
        floor = self._floors.get((run.kind, len(run.rails)), 0.0) if pair else 0.0
        if limit <= value < floor:
            cause = f"{value:g} Gb/s is less than {settings['min_relative_percent']:g}% of what other pairs reach"
            fix = "Compare the port's speed, PCIe width, counters and firmware with another host's."
            return Failure("", cause, fix)
        expected = float(outcome.get("expected") or 0) if pair and run.kind == BANDWIDTH else 0.0
        return threshold_failure(BANDWIDTH, {"gbits": value}, {"min_gbits": limit, "expected_gbits": expected})

    def by_rail(self, kind: str) -> bool:
        """Return whether a run can be limited to one rail: a command without these words is the same for each."""
        words = str(self._settings["collectives"][kind]) if kind not in PERFTEST else "{rails}"
        return "{devices}" in words or "{rails}" in words

    def passes(self, run: Run) -> bool | None:
        """Return whether a run passes; None when it was not made."""
        return self.why(run) is None if run.key in self.results else None


@dataclass
class AcceptReport:
    """How far it came.

    :param done: stage -> its runs, in order; none where it is skipped.
    :param skipped: stage -> why it made no runs.
    :param failed: the stage that did not pass; None when all did.
    :param findings: what is behind it.
    :param waiting: the stage that waits for runs, and `runs` these.
    """

    done: dict[str, list[Run]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    failed: str | None = None
    findings: list[Finding] = field(default_factory=list)
    waiting: str | None = None
    runs: list[Run] = field(default_factory=list)


def walk(
    fleet: AcceptFleet, settings: Options, results: t.Mapping[str, Outcome]
) -> tuple[AcceptReport, AcceptEvaluator]:
    """Go through the stages as far as results are there."""
    report, evaluator = AcceptReport(), AcceptEvaluator(settings, results)
    passes = RunRequest(evaluator.passes)
    for stage in STAGES:
        if stage not in settings["stages"]:
            report.skipped[stage] = "it was not selected (accept_stages)"
            continue
        runs, reason = _runs(stage, fleet, settings)
        report.done[stage] = runs
        if reason:
            report.skipped[stage] = reason
        elif stage == "hosts":
            if fleet.trouble:
                report.failed = stage
                return report, evaluator
        else:
            try:
                report.findings = _stage(runs, fleet, passes, evaluator)
            except RunsMissing as need:
                report.waiting, report.runs = stage, need.runs
                return report, evaluator
            if report.findings:
                report.failed = stage
                return report, evaluator
    return report, evaluator


def _stage(runs: list[Run], fleet: AcceptFleet, passes: RunRequest, evaluator: AcceptEvaluator) -> list[Finding]:
    if all(len(run.hosts) == 2 for run in runs):
        evaluator.learn(runs)
    bad = [run for run, good in zip(runs, passes(runs), strict=True) if not good]
    found: list[Finding] = []
    for kind in dict.fromkeys(run.kind for run in bad):
        same = [run for run in bad if run.kind == kind]
        found += Bisection(passes, kind, fleet.places).groups(same, by_rail=evaluator.by_rail(kind))
    return found


def _runs(stage: str, fleet: AcceptFleet, settings: Options) -> tuple[list[Run], str]:
    """Return the runs of a stage, or why it has none."""
    hosts, rails = tuple(fleet.places), fleet.rails
    if stage == "hosts":
        return [], ""
    if len(hosts) < 2:
        return [], "it needs two hosts"
    if stage in ("latency", "bandwidth", "gpu"):
        kind = {"latency": LATENCY, "bandwidth": BANDWIDTH, "gpu": GPU_BANDWIDTH}[stage]
        if stage == "gpu":
            hosts = tuple(host for host in hosts if host in fleet.gpus)
            if len(hosts) < 2:
                return [], "the verdict has no two hosts whose GPU memory the network can reach (gpudirect_path)"
        rings = group_by((tuple(host for host in hosts if rail not in fleet.out.get(host, ())), rail) for rail in rails)
        return [
            Run(kind, pair, (rail,)) for having, some in rings.items() for pair in ring(having) for rail in some
        ], ""
    # All rails at once: a host without one of them has been tested rail by rail.
    hosts = tuple(host for host in hosts if host not in fleet.out)
    if len(hosts) < 2:
        return [], "it needs two hosts whose rails are all in service"
    if stage == "node":
        return [Run(BANDWIDTH, pair, rails) for pair in ring(hosts)], ""
    if stage == "collective":
        reason = "" if settings["collectives"] else "none is set (accept_collectives)"
        return [Run(kind, hosts, rails) for kind in settings["collectives"]], reason
    shared = {host: {"leaf": place, "zone": place[0], "fabric": None}[stage] for host, place in fleet.places.items()}
    groups = group_by((shared[host], host) for host in hosts)
    made = [Run(BANDWIDTH, tuple(members), rails) for members in groups.values() if len(members) > 1]
    return made, "" if made else f"no {stage} has two hosts"


# --- steps -----------------------------------------------------------------------------------------------------------


class StepGroup(t.NamedTuple):
    """The work of a group of hosts in one step: units of rails one after the other, the rails of a unit at once."""

    hosts: Names
    units: tuple[Names, ...]


@dataclass(frozen=True)
class AcceptStep:
    """Groups that run at once and share no host."""

    stage: str
    kind: str
    entries: tuple[StepGroup, ...]


def step_of(stage: str, runs: t.Iterable[Run]) -> AcceptStep:
    """Return the first of these runs with all others that can be made beside it, or after it by the same hosts."""
    wanted = list(runs)
    kind = wanted[0].kind
    entries: dict[Names, list[Names]] = {}
    busy: set[str] = set()
    for run in wanted:
        if run.kind != kind:
            continue
        if (have := entries.get(run.hosts)) is not None:
            if not set(run.rails) & {rail for unit in have for rail in unit}:
                have.append(run.rails)
        elif not busy & set(run.hosts):
            entries[run.hosts] = [run.rails]
            busy |= set(run.hosts)
    return AcceptStep(stage, kind, tuple(StepGroup(hosts, tuple(units)) for hosts, units in entries.items()))
