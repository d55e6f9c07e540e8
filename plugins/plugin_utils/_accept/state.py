# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The file of an acceptance: who takes part, what was measured, and the step that is being made.

`accept.json` beside the verdict, replaced as a whole after every step; `accept/<host>.json` is what each host returned
of the step.
"""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field, fields
from numbers import Real

from ansible.errors import AnsibleActionFail

from ...module_utils._check import DEVIATION, OK
from ...module_utils._fabric.shapes import PlanFile, Verdict, planned_rails
from ...module_utils._formatting import natural
from ...module_utils._probe.perftest import TOOLS
from ...module_utils._validation import InvalidData, line, sanitize, validate
from .._host_plan import read_host_plan
from .._refusal import Refusal
from .._verdict import files
from .._verdict.explain import place_of
from .._verdict.intake import answer_in
from .bisect import Run
from .collect import PAIRED, PREFIX, outcome
from .results import READERS, parsed_part
from .stages import AcceptFleet, AcceptReport, AcceptStep, Options, Outcome, StepGroup, step_of

SCHEMA = 1
FILE, FOLDER = "accept.json", "accept"

Json = dict[str, t.Any]
_TEST: Json = {"rail": str, "peer": str, **dict.fromkeys(("status", "cause", "fix", "output"), (None, str))}
_TEST |= {"port": (None, int), "code": (None, int), "expected_gbits": (None, Real), "test": (None, frozenset(TOOLS))}
_TEST |= {tool.metric: (None, Real) for tool in TOOLS.values()}


def check_options(args: Options) -> None:
    """Check the module's options.

    :raises AnsibleActionFail: for names and numbers that cannot be.
    """
    percent = args["min_relative_percent"]
    wrong = [f"the collective {name!r} ({', '.join(READERS)})" for name in args["collectives"] if name not in READERS]
    wrong += [f"no list of words for {name}" for name, row in args["collectives"].items() if not isinstance(row, list)]
    wrong += ["netpipe in pods (accept_image)"] * bool(args["image"] and PAIRED in args["collectives"])
    wrong += [f"min_relative_percent {percent} (0 to 100)"] * (not 0 <= percent <= 100)
    wrong += [f"{name} {args[name]} (1 or more)" for name in ("seconds", "timeout") if args[name] < 1]
    if wrong:
        fix = "Correct these variables of accept. [accept_options]"
        raise Refusal(f"Not known or out of bounds: {'; '.join(wrong)}. {fix}")


def fleet_of(args: t.Mapping[str, t.Any], plan: PlanFile, verdict: Verdict) -> AcceptFleet:
    """Return who takes part, in the order of the topology, and what the last verdict has against them.

    :raises AnsibleActionFail: when no host of the play is in the plan.
    """
    places: dict[str, tuple[str, tuple[str, ...]]] = {}
    rails: tuple[str, ...] = ()
    out: dict[str, tuple[str, ...]] = {}
    for host in args["hosts"]:
        try:
            piece = read_host_plan(args["plan_dir"], host)
        except AnsibleActionFail as exc:
            if host in verdict["hosts"]:
                raise Refusal(f"{host}: {exc}") from exc
            continue  # Retired, or never planned: verification passes it over as well.
        place = place_of(piece, plan)
        rails = tuple(rail["name"] for rail in planned_rails(piece) if rail["addresses"])
        if left := piece.get("out_of_service"):
            out[host] = tuple(rail["name"] for rail in left["rails"])
        places[host] = (place.zone, tuple(place.leaves.get(rail, "") for rail in rails))
    if not places or not rails:
        fix = "Look at the inventory group (fabric_group), at --limit, and at the plan. [accept_no_rails]"
        raise Refusal(f"No host of this play has rails with addresses in the plan. {fix}")
    order = sorted(places, key=lambda host: (natural(places[host][0]), *map(natural, places[host][1]), natural(host)))
    trouble = {host: found for host in order if (found := _against(verdict["hosts"].get(host)))}
    gpus = {
        result["host"]
        for result in files.read_results(dict.fromkeys(order if args["gpu"] else (), args["verify_dir"]))
        if any(check["id"] == "gpudirect_path" and check["status"] == OK for check in answer_in(result).checks)
    }
    return AcceptFleet({host: places[host] for host in order}, rails, trouble, frozenset(gpus), out)


def _against(entry: t.Mapping[str, t.Any] | None) -> str:
    """Return what a verdict has against a host, beside what an acceptance had."""
    if entry is None:
        return "it is not in the verdict"
    if entry["status"] not in ("pass", DEVIATION):
        return str(entry.get("error") or entry["status"])
    own = [check for check in entry["checks"] if check["status"] == DEVIATION and "attributed_to" not in check]
    texts = [f"{check['rail'] or ''} {check['id']}".strip() for check in own if not check["id"].startswith(PREFIX)]
    texts += ["failed tests of other hosts"] * (entry["counts"][DEVIATION] > len(own))
    return ", ".join(dict.fromkeys(texts))


def note(verify_dir: str, host: str, number: int, phase: str, result: t.Mapping[str, t.Any]) -> None:
    """Write what a host returned of a step.

    :param number: of the step.
    :param result: what the module returned.
    :param phase: `serve` or `send`.
    """
    path = files.host_path(verify_dir, FOLDER, host)
    have = files.read_json(path)
    if have.get("step") != number:
        have = {"step": number, "error": ""}
    try:
        rows = validate(result.get("tests") or [], [_TEST], "tests")
        # Its output is read line by line, as it is.
        tests = [
            {**dict.fromkeys(_TEST), **sanitize({**test, "output": None}), "output": parsed_part(test.get("output"))}
            for test in rows
        ]
    except InvalidData as exc:
        result, tests = {"failed": True, "msg": f"its answer is refused: {exc}"}, []
    have[phase] = tests
    if result.get("unreachable"):
        have["error"] = "it is unreachable"
    elif result.get("failed"):
        have["error"] = line(result.get("msg")) or "the module failed"
    files.write_json(path, have)


@dataclass
class AcceptState:
    """One acceptance.

    :param digest: of the plan.
    :param step: what is being made; None before the first and after the last.
    """

    digest: str
    fleet: AcceptFleet
    results: dict[str, Outcome] = field(default_factory=dict)
    number: int = 0
    step: AcceptStep | None = None
    requested: tuple[str, ...] = ()

    @classmethod
    def read(cls, verify_dir: str) -> AcceptState:
        """Return the acceptance beside a verdict; an empty one where there is none that can be read."""
        have = _tuples(files.read_json(os.path.join(verify_dir, FILE)))
        if have.get("schema") != SCHEMA:
            return cls("", AcceptFleet({}, ()))
        have["fleet"] = AcceptFleet(**{**have["fleet"], "gpus": frozenset(have["fleet"]["gpus"])})
        if step := have["step"]:
            have["step"] = AcceptStep(**{**step, "entries": tuple(StepGroup(*entry) for entry in step["entries"])})
        return cls(**{one.name: have[one.name] for one in fields(cls)})

    def write(self, verify_dir: str) -> None:
        """Replace the file."""
        fleet = {**vars(self.fleet), "gpus": sorted(self.fleet.gpus)}
        made = {"schema": SCHEMA, **vars(self), "fleet": fleet, "step": vars(self.step) if self.step else None}
        files.write_json(os.path.join(verify_dir, FILE), made)

    def resumes(self, digest: str, fleet: AcceptFleet, options: Options) -> bool:
        """Return whether this acceptance can continue: same plan and hosts, and interrupted before its end."""
        same = (self.digest, self.fleet, self.requested) == (
            digest,
            fleet,
            (*options["stages"], *options["collectives"]),
        )
        return same and self.step is not None and bool(self.results)

    def begin_step(self, report: AcceptReport, options: Options) -> AcceptStep | None:
        """Take the next step; None when there is none."""
        self.requested = (*options["stages"], *options["collectives"])
        self.step = step_of(report.waiting, report.runs) if report.waiting else None
        self.number += bool(self.step)
        return self.step

    def collect(self, verify_dir: str) -> None:
        """Take what the hosts returned of the step."""
        if self.step is None:
            return
        for entry in self.step.entries:
            wrote = {host: files.read_json(files.host_path(verify_dir, FOLDER, host)) for host in entry.hosts}
            found = {host: made for host, made in wrote.items() if made.get("step") == self.number}
            for unit in entry.units:
                run = Run(self.step.kind, entry.hosts, unit)
                self.results[run.key] = outcome(run.kind, entry, unit, found, self.fleet.gpus)


def _tuples(value: t.Any) -> t.Any:
    """Return what JSON holds with tuples for its lists."""
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
