# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The steps of acceptance: decided on the controller, done by the hosts that are in one."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.utils.display import Display

from ..module_utils._errors import RdmaError
from ..module_utils._validation import line, shown
from ..modules.acceptance import DOCUMENTATION
from ..plugin_utils._accept import state
from ..plugin_utils._accept.bisect import NODE
from ..plugin_utils._accept.collect import PAIRED, PREFIX, described, fabric_checks, host_checks, unlocated
from ..plugin_utils._accept.endpoints import Test, ring_of
from ..plugin_utils._accept.stages import PERFTEST, STAGES, AcceptStep, StepGroup, walk
from ..plugin_utils._arguments import arguments, documented, forks
from ..plugin_utils._host_plan import read_host_plan, read_plan
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._refusal import Refusal
from ..plugin_utils._verdict import files, merge

SPARE_SECONDS = 120
# Findings in the terminal; the verdict has all.
SHOWN = 20
display = Display()
ARGUMENT_SPEC = documented(DOCUMENTATION)


class ActionModule(FabricAction):
    """The action behind the module acceptance."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Do one phase."""
        self._vars = task_vars
        self._args = arguments(args, ARGUMENT_SPEC)
        state.check_options(self._args)
        phase = self._args["phase"]
        if phase in ("serve", "send", "end"):
            return self._host(phase)
        made: dict[str, t.Any] = {"begin": self._begin, "next": self._next, "finish": self._finish}[phase]()
        return {"changed": False, **made}

    # --- on the controller -------------------------------------------------------------------------------------------

    def _begin(self) -> dict[str, t.Any]:
        args = self._args
        plan = read_plan(args["plan_dir"])
        verdict = files.read_verdict(args["verify_dir"])
        if not verdict or verdict.get("plan_digest") != plan.get("digest"):
            problem = "is of another plan" if verdict else "is missing"
            fix = "Run the playbook railops.rdma.verify first. [accept_no_verdict]"
            raise Refusal(f"The verdict of the hosts {problem} ({args['verify_dir']}). {fix}")
        fleet = state.fleet_of(args, plan, verdict)
        have = state.AcceptState.read(args["verify_dir"])
        if args["resume"] and have.resumes(plan["digest"], fleet, args):
            display.display(f"accept: resumes after {len(have.results)} runs")
        else:
            have = state.AcceptState(plan["digest"], fleet)
        have.step = None
        display.display(f"accept: {len(fleet.places)} hosts, {len(fleet.rails)} rails")
        for stage in (stage for stage in STAGES if stage in args["stages"]):
            display.display(f"accept: {stage}: {STAGES[stage]}")
        return self._decide(have)

    def _next(self) -> dict[str, t.Any]:
        have = state.AcceptState.read(self._args["verify_dir"])
        if have.step and self._in_pods(have.step):
            self._take(have, have.step)
        have.collect(self._args["verify_dir"])
        return self._decide(have)

    def _decide(self, have: state.AcceptState) -> dict[str, t.Any]:
        report, judged = walk(have.fleet, self._args, have.results)
        step = have.begin_step(report, self._args)
        ended = {"more": False, "failed_stage": report.failed or ""}
        if self._task.check_mode:
            return ended
        have.write(self._args["verify_dir"])
        if step is None:
            accused = [finding for finding in report.findings if finding.what == NODE]
            for finding in [*accused, *unlocated(report.findings)][:SHOWN]:
                where, cause, _fix = described(finding, judged)
                display.display(shown(f"accept: {report.failed}: {where}: {cause}"))
            return ended
        count = sum(len(entry.hosts) for entry in step.entries)
        units = sum(len(entry.units) for entry in step.entries)
        narrows = any(run not in report.done[step.stage] for run in report.runs)
        found = " (narrowing down)" if narrows else ""
        display.display(
            f"accept: {step.stage}{found}: step {have.number}, {units} runs of {step.kind} by {count} hosts"
        )
        if (largest := max(len(entry.hosts) for entry in step.entries)) > forks(self._vars):
            display.warning(
                f"Ansible works on {forks(self._vars)} hosts at once, and {largest} should send at the same time: "
                f"run with --forks {largest}."
            )
        return {"more": True, "groups": self._groups(step) if self._in_pods(step) else []}

    def _in_pods(self, step: AcceptStep) -> bool:
        return bool(self._args["image"]) and step.kind not in PERFTEST

    def _groups(self, step: AcceptStep) -> list[dict[str, t.Any]]:
        """Return what runs in pods: a Job for each unit of each group."""
        words, folder = self._args["collectives"][step.kind], self._args["plan_dir"]
        return [
            {
                "nodes": [read_host_plan(folder, host)["node"] for host in entry.hosts],
                "words": self._filled(words, None, unit),
            }
            for entry in step.entries
            for unit in entry.units
        ]

    def _take(self, have: state.AcceptState, step: AcceptStep) -> None:
        """Write what pods returned as if the first host of each group had."""
        jobs: list[dict[str, t.Any]] = self._args["collective"]
        if not any("output" in job for job in jobs):
            # Nothing was measured, so nothing can be narrowed: the next run begins with this step.
            why = str(jobs[0].get("msg", "")) if jobs else "none was started"
            fix = "Fix that and run the playbook again: it continues with this step. [accept_no_output]"
            raise Refusal(f"No pods ran the program: {why} {fix}")
        came = iter(jobs)
        for entry in step.entries:
            made = [(unit, next(came, {"msg": "its Job was not run"})) for unit in entry.units]
            tests = [
                {"rail": unit[0], "peer": "", "code": job.get("code"), "output": job.get("output", "")}
                | ({} if "output" in job else {"cause": line(job.get("msg")) or "its Job has no output"})
                for unit, job in made
            ]
            state.note(self._args["verify_dir"], entry.hosts[0], have.number, "send", {"tests": tests})

    def _finish(self) -> dict[str, t.Any]:
        """Add the checks to the hosts' results; the verdict merges these."""
        have = state.AcceptState.read(self._args["verify_dir"])
        report, judged = walk(have.fleet, self._args, have.results)
        digest = have.digest
        for host, checks in host_checks(have.fleet, report, judged).items():
            path = files.result_path(self._args["verify_dir"], host)
            old = files.read_result(path)
            unchanged = [check for check in old.get("checks", []) if not check["id"].startswith(PREFIX)]
            node = old.get("node") or read_host_plan(self._args["plan_dir"], host)["node"]
            made = merge.host_result(host, node, digest, [*unchanged, *checks], old.get("error"), old.get("facts"))
            files.write_json(path, made)
        return {"checks": list(fabric_checks(report, judged)), "failed_stage": report.failed or ""}

    # --- on a host ---------------------------------------------------------------------------------------------------

    def _host(self, phase: str) -> dict[str, t.Any]:
        host = self._vars["inventory_hostname"]
        have = state.AcceptState.read(self._args["verify_dir"])
        step = have.step
        entry = next((one for one in step.entries if host in one.hosts), None) if step else None
        if step is None or entry is None:
            return self._skipped("this host is not in the step")
        if self._in_pods(step):
            return self._skipped("it runs in pods")
        probe: dict[str, t.Any] = {"end": {"serve": "server", "send": "client", "end": "none"}[phase]}
        if phase != "end":
            try:
                probe |= self._tests(have, step, entry, host, probe["end"])
            except (AnsibleActionFail, RdmaError) as exc:
                failed = {"failed": True, "msg": str(exc)}
                state.note(self._args["verify_dir"], host, have.number, phase, failed)
                return failed
        if step.kind not in PERFTEST and (phase != "send" or not probe["tests"]):
            return self._skipped("it is started by other hosts")
        probe["token"] = f"accept-{os.path.basename(os.path.normpath(self._args['plan_dir']))}"
        result = self._execute_module(module_name="railops.rdma.rdma_probe", module_args=probe, task_vars=self._vars)
        if phase != "end":
            state.note(self._args["verify_dir"], host, have.number, phase, result)
        return {**result, "changed": False}

    @staticmethod
    def _skipped(reason: str) -> dict[str, t.Any]:
        return {"changed": False, "skipped": True, "skip_reason": reason}

    def _tests(
        self, have: state.AcceptState, step: AcceptStep, entry: StepGroup, host: str, end: str
    ) -> dict[str, t.Any]:
        args = self._args
        tests = ring_of(args["plan_dir"], host, entry, end, args["first_port"])
        if step.kind in PERFTEST:
            for test in tests:
                test["test"] = step.kind.removesuffix("_gpu")
                if step.kind.endswith("_gpu"):
                    test["gpu"] = have.fleet.rails.index(test["rail"])
            timeout = args["timeout"] + args["seconds"]
        else:
            tests = self._commands(step.kind, entry, host, tests)
            timeout = args["collective_timeout"]
        waves = -(-len(entry.hosts) // forks(self._vars))
        return {
            "tests": tests,
            "network": read_host_plan(args["plan_dir"], host)["network"],
            "timeout": timeout,
            "seconds": args["seconds"],
            "lifetime": SPARE_SECONDS + waves * len(entry.units) * timeout,
        }

    def _commands(self, kind: str, entry: StepGroup, host: str, tests: list[Test]) -> list[Test]:
        """Return what a host starts: with the next host by each rail, or as the first of all with all rails."""
        words = self._args["collectives"][kind]
        if kind == PAIRED:
            return [{**test, "argv": self._filled(words, (host, test["peer"]), (test["rail"],))} for test in tests]
        if host != entry.hosts[0]:
            return []
        by_rail = {test["rail"]: test for test in tests}
        return [
            {**by_rail[unit[0]], "slot": slot, "argv": self._filled(words, entry.hosts, unit)}
            for slot, unit in enumerate(entry.units)
        ]

    def _filled(self, words: list[str], hosts: tuple[str, ...] | None, rails: tuple[str, ...]) -> list[str]:
        """Fill in a command; without hosts those of the pods are filled in later."""
        devices = [self._args["devices"].get(rail, "") for rail in rails]
        filled = [str(word) for word in words]
        if not all(devices) and any("{devices" in word for word in filled):
            raise Refusal(
                f"The RDMA devices of {', '.join(rails)} are not known. Name them in accept_devices. [accept_devices]"
            )
        values = {"{devices}": ",".join(f"{device}:1" for device in devices), "{rails}": ",".join(rails)}
        if hosts:
            values |= {"{hosts}": ",".join(hosts), "{count}": str(len(hosts))}
        for name, value in values.items():
            filled = [word.replace(name, value) for word in filled]
        return filled
