# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""One end of the RDMA tests between hosts: serve, or measure and judge."""

from __future__ import annotations

import contextlib
import itertools
import re
import typing as t
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule

from .._errors import RdmaError
from .._files import Sysfs
from .._programs import NO_ANSWER, run_program
from .checks import counter_checks, traffic_checks
from .counters import kind_of
from .health import pcie_of
from .health_plan import expected_gbits
from .perftest import TOOLS, Failure, argv, below, explain, parse, threshold_failure
from .servers import Servers, help_text
from .sysfs import DEVICES, counters, find_endpoint

if t.TYPE_CHECKING:
    from .sysfs import Port
Test = dict[str, t.Any]


class TestRunner:
    """The rails of this host as test ends; each is looked up once."""

    def __init__(self, params: dict[str, t.Any], sysfs: Sysfs) -> None:
        self._params = params
        self._sysfs = sysfs
        self._ends: dict[tuple[str, str], Port] = {}
        self._help: dict[str, str] = {}

    def end_of(self, test: Test) -> Port:
        """Return the RDMA end of a test's rail."""
        key = (test["rail"], test["address"])
        if key not in self._ends:
            self._ends[key] = find_endpoint(
                self._sysfs, test["rail"], test["interface"], test["address"], self._params["network"]
            )
        return self._ends[key]

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the counters of failures of every rail that was looked up, by rail."""
        found = {rail: counters(self._sysfs, end) for (rail, dummy), end in self._ends.items()}
        # Packets dropped for lack of buffer space may be other traffic's.
        return {
            rail: {name: value for name, value in have.items() if kind_of(name) != "port_discards"}
            for rail, have in found.items()
        }

    def expected(self, test: Test) -> float:
        """Return the Gb/s that a rail can be expected to carry beside those tested at once; 0 where that is unknown.

        The other end's own expectation (`peer_gbits`) is the limit where it is less.
        """
        end, found = self.end_of(test), {}
        slot, tests = test["slot"], self._params["tests"]
        rails = [other["rail"] for other in tests if slot is not None and other["slot"] == slot]
        for (rail, _address), port in self._ends.items():
            if rail in {*rails, test["rail"]}:
                found[rail] = self._sysfs.pci_address(f"{DEVICES}/{port.device}") or port.device
        own = found[test["rail"]]
        sharing = sum(address.rpartition(".")[0] == own.rpartition(".")[0] for address in found.values())
        rate = re.match(r"[\d.]+", self._sysfs.text(f"{end.folder}/rate") or "")
        link = pcie_of(self._sysfs, self._sysfs.pci_address(f"{DEVICES}/{end.device}"))
        gbits = expected_gbits(float(rate[0]) if rate else 0.0, link, sharing)
        return gbits if test["peer_gbits"] is None else min(gbits, test["peer_gbits"])

    def command(self, test: Test, *, client: bool) -> list[str]:
        """Return the command line of this end of a test."""
        program = TOOLS[test["test"]].program
        if program not in self._help:
            self._help[program] = help_text(program)
        iterations = "latency_iterations" if test["test"] == "read_lat" else "bandwidth_iterations"
        return argv(
            test["test"],
            self.end_of(test),
            test["address"],
            test["port"],
            self._help[program],
            server=test["peer_address"] if client else None,
            iterations=self._params[iterations],
            seconds=self._params["seconds"] if test["test"] == "write_bw" else 0,
            gpu=test["gpu"],
        )


def failed(test: Test, why: Failure, output: str = "", **facts: t.Any) -> Test:
    """Return the result of a test that gave no measurement, or a bad one."""
    tail = "\n".join(output.strip().splitlines()[-20:])
    return {**test, "status": "deviation", **vars(why), "output": tail, **facts}


def failed_test(test: Test, exc: RdmaError) -> Test:
    """Return the result of a test whose own end does not exist."""
    return failed(test, Failure("", exc.problem, exc.fix))


def serve(bench: TestRunner, params: dict[str, t.Any]) -> t.Iterator[Test]:
    """Start the servers; yield each with its state."""
    commands: dict[int, list[str]] = {}
    for test in params["tests"]:
        try:
            commands[test["port"]] = bench.command(test, client=False)
        except RdmaError as exc:
            yield failed_test(test, exc)
    failures = Servers(params["token"]).start(commands, params["lifetime"] or 600)
    for test in (test for test in params["tests"] if test["port"] in commands):
        output, command = failures.get(test["port"]), " ".join(commands[test["port"]])
        good = {**test, "status": "ok", "command": command, "expected_gbits": bench.expected(test)}
        yield good if output is None else failed(test, explain(output, 1), output, command=command)


def run_client(bench: TestRunner, params: dict[str, t.Any]) -> t.Iterator[Test]:
    """Run the tests one after the other, and those of one slot at once; yield each with what it measured."""
    numbered = enumerate(params["tests"])
    for _slot, group in itertools.groupby(
        numbered, lambda item: (item[1]["slot"], item[1]["slot"] is None and item[0])
    ):
        tests = [test for _number, test in group]
        with ThreadPoolExecutor(len(tests)) as pool:
            yield from pool.map(lambda test: client(bench, params, test), tests)


def client(bench: TestRunner, params: dict[str, t.Any], test: Test) -> Test:
    """Run one test; return it with what it measured, or why its own end does not exist."""
    try:
        command = test["argv"] or bench.command(test, client=True)
    except RdmaError as exc:
        return failed_test(test, exc)
    done = run_program(command, seconds=params["timeout"])
    code, output = None if done.status == NO_ANSWER else done.status, done.out + done.err
    if test["argv"]:
        return {**test, "status": "ok", "code": code, "output": output}
    end = bench.end_of(test)
    facts = {
        "command": " ".join(command),
        "device": end.device,
        "gid_index": -1 if end.gid_index is None else end.gid_index,
    }
    measured = parse(test["test"], output) if code == 0 else None
    if measured is None:
        return failed(test, explain(output, code), output, **facts)
    if test["test"] == "write_bw":
        facts["expected_gbits"] = bench.expected(test)
    percent = params["min_line_rate_percent"]
    limits = {**params, "expected_gbits": facts.get("expected_gbits") if percent else 0}
    if why := threshold_failure(test["test"], measured, limits):
        return failed(test, why, output, **facts, **measured)
    if slow := below(measured, limits, percent):
        facts["slow"] = slow
    return {**test, "status": "ok", **facts, **measured}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Run one end and describe what happened."""
    params, nothing = module.params, {"changed": False, "tests": [], "checks": []}
    if params["end"] == "none":
        return {**nothing, "ended": [] if module.check_mode else Servers(params["token"]).end()}
    if module.check_mode:
        return nothing
    bench = TestRunner(params, Sysfs())
    if params["end"] == "server":
        tests = list(serve(bench, params))
        # A server that did not start is the client's deviation as well; here it has its cause.
        checks = traffic_checks([test for test in tests if test["status"] != "ok"], server=True)
        return {"changed": False, "tests": tests, "checks": list(checks)}
    for test in params["tests"]:
        with contextlib.suppress(RdmaError):
            bench.end_of(test)
            # What a program can do is looked up before any of them runs.
            _command = test["argv"] or bench.command(test, client=True)
    before = bench.counters()
    tests = list(run_client(bench, params))
    checks = traffic_checks([test for test in tests if not test["argv"]])
    errors = counter_checks(before, bench.counters(), params["max_errors"])
    return {"changed": False, "tests": tests, "checks": [*checks, *errors]}
