#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_probe
short_description: Run one end of bounded RDMA tests over the rails of a host
version_added: 0.1.0
description:
  - Runs C(ib_read_lat) and C(ib_write_bw) of perftest over the rails of a host, and returns what they measured as data.
  - One call handles one end of all tests of a host. Servers start in the background and end by themselves after
    O(lifetime); a client call runs its tests one after the other, each at most O(timeout) seconds.
  - The RDMA device, its port and the GID index are those of the rail's address (RoCE v2), read from sysfs at every run,
    since the index of an address changes. The TCP connection of a test is bound to the rail's address too.
  - With O(plan_dir) the controller works out the host's part from the plan and O(hosts); see O(schedule).
options:
  end:
    description:
      - V(server) starts the host's servers and returns when all of them listen.
      - V(client) runs the host's tests and returns their results.
      - V(none) ends the host's servers of O(token).
    type: str
    choices: [server, client, none]
    required: true
  token:
    description: Names one run of tests. A server call ends the servers of the same token first.
    type: str
    required: true
  network:
    description: How an RDMA end is found, by the RoCE v2 GID of its address or by the InfiniBand interface.
    type: str
    choices: [roce, infiniband]
    default: roce
  tests:
    description: The tests of this host. Worked out from the plan when O(plan_dir) is given.
    type: list
    elements: dict
    default: []
    suboptions:
      test:
        description: V(read_lat) measures latency with C(ib_read_lat), V(write_bw) bandwidth with C(ib_write_bw).
        type: str
        choices: [read_lat, write_bw]
        required: true
      rail:
        description: The name of the rail.
        type: str
        required: true
      interface:
        description: The rail's interface on this host.
        type: str
        required: true
      address:
        description: The rail's address on this host.
        type: str
        required: true
      port:
        description: The TCP port of the test's server.
        type: int
        required: true
      peer:
        description: The name of the host on the other end.
        type: str
        default: ""
      peer_address:
        description: The rail's address on the other end. A client needs it.
        type: str
        default: ""
  plan_dir:
    description: The plan folder of the fabric on the controller. Its slices give O(tests) and O(network).
    type: path
  hosts:
    description: Inventory names of the hosts that take part. With O(plan_dir) only.
    type: list
    elements: str
    default: []
  schedule:
    description:
      - V(ring) tests each host with the next one, V(full) each with each in both directions, V(sample) the ring
        and more peers drawn with O(seed), V(none) nothing.
      - V(auto) takes V(full) up to four hosts, V(ring) up to 64 and V(sample) above.
    type: str
    choices: [auto, ring, full, sample, none]
    default: auto
  kinds:
    description: The kinds of tests that a schedule holds.
    type: list
    elements: str
    choices: [read_lat, write_bw]
    default: [read_lat, write_bw]
  peers:
    description: How many peers each host tests as client with V(sample).
    type: int
    default: 3
  seed:
    description: Draws the peers with V(sample). The same number draws the same peers.
    type: int
    default: 0
  first_port:
    description: The first TCP port of the servers.
    type: int
    default: 18515
  lifetime:
    description:
      - Seconds after which a server ends whatever happens.
      - V(0) leaves room for all tests of all hosts, O(timeout) seconds each.
    type: int
    default: 0
  timeout:
    description: Seconds that one test may take.
    type: int
    default: 20
  latency_iterations:
    description: Exchanges of one latency test.
    type: int
    default: 1000
  bandwidth_iterations:
    description: Messages of 64 KiB of one bandwidth test.
    type: int
    default: 5000
  traffic_class:
    description: The traffic class (DSCP times 4) of the tests' packets. Not set when it is absent.
    type: int
  max_latency_us:
    description: A typical read latency above this many microseconds is a deviation. V(0) asks for nothing.
    type: float
    default: 0
  min_gbits:
    description: A write bandwidth below this many Gb/s is a deviation. V(0) asks for nothing.
    type: float
    default: 0
  max_errors:
    description: A growth of an error counter during the client's tests above this is a deviation. V(-1) never is.
    type: int
    default: 0
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Sends no traffic and returns no measurement in check mode.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: A test leaves nothing behind.
requirements:
  - perftest on the managed node
seealso:
  - module: railops.rdma.verdict
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Wait for the tests of the other hosts
  railops.rdma.rdma_probe:
    end: server
    token: example
    plan_dir: plan/fabric
    hosts: "{{ ansible_play_hosts }}"

- name: Test every rail with the next host
  railops.rdma.rdma_probe:
    end: client
    token: example
    plan_dir: plan/fabric
    hosts: "{{ ansible_play_hosts }}"
    schedule: ring

- name: End the servers
  railops.rdma.rdma_probe:
    end: none
    token: example

- name: Test one rail by hand against a server that listens there
  railops.rdma.rdma_probe:
    end: client
    token: by-hand
    tests:
      - test: read_lat
        rail: rail1
        interface: ens1np0
        address: 192.0.2.2
        peer_address: 192.0.2.34
        port: 18515
"""

RETURN = r"""
tests:
  description: The tests of a client, or the servers that were started.
  returned: always
  type: list
  elements: dict
  sample:
    - rail: rail1
      test: read_lat
      peer: node2
      address: 192.0.2.2
      peer_address: 192.0.2.34
      port: 18515
      device: mlx5_0
      gid_index: 3
      status: ok
      latency_us: 2.31
      latency_max_us: 4.4
ended:
  description: The TCP ports of the servers that still ran when they were ended.
  returned: when O(end=none)
  type: list
  elements: int
  sample: []
checks:
  description: What verification collects, one entry for each kind of test and rail.
  returned: always
  type: list
  elements: dict
  sample:
    - id: traffic_read_lat
      rail: rail1
      status: ok
      planned: node2 answers RDMA reads
      observed: 2.31 us from node2
      cause: ""
      fix: ""
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._errors import RdmaError
from ..module_utils._files import Sysfs
from ..module_utils._probe.checks import counter_checks, traffic_checks
from ..module_utils._probe.perftest import TOOLS, Failure, Features, argv, explain, features, judge, parse
from ..module_utils._probe.run import Servers, help_text, measure
from ..module_utils._probe.sysfs import counters, find_endpoint

if t.TYPE_CHECKING:
    from ..module_utils._probe.perftest import Endpoint

Test = dict[str, t.Any]

ARGUMENT_SPEC: dict[str, t.Any] = {
    "end": {"type": "str", "choices": ["server", "client", "none"], "required": True},
    "token": {"type": "str", "required": True, "no_log": False},
    "network": {"type": "str", "choices": ["roce", "infiniband"], "default": "roce"},
    "tests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "test": {"type": "str", "choices": ["read_lat", "write_bw"], "required": True},
            "rail": {"type": "str", "required": True},
            "interface": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "peer": {"type": "str", "default": ""},
            "peer_address": {"type": "str", "default": ""},
        },
    },
    "plan_dir": {"type": "path"},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "schedule": {"type": "str", "choices": ["auto", "ring", "full", "sample", "none"], "default": "auto"},
    "kinds": {
        "type": "list",
        "elements": "str",
        "choices": ["read_lat", "write_bw"],
        "default": ["read_lat", "write_bw"],
    },
    "peers": {"type": "int", "default": 3},
    "seed": {"type": "int", "default": 0},
    "first_port": {"type": "int", "default": 18515},
    "lifetime": {"type": "int", "default": 0},
    "timeout": {"type": "int", "default": 20},
    "latency_iterations": {"type": "int", "default": 1000},
    "bandwidth_iterations": {"type": "int", "default": 5000},
    "traffic_class": {"type": "int"},
    "max_latency_us": {"type": "float", "default": 0},
    "min_gbits": {"type": "float", "default": 0},
    "max_errors": {"type": "int", "default": 0},
}


class Bench:
    """The rails of this host as test ends; each is looked up once."""

    def __init__(self, params: dict[str, t.Any], sysfs: Sysfs) -> None:
        self._params = params
        self._sysfs = sysfs
        self._ends: dict[tuple[str, str], Endpoint] = {}
        self._features: dict[str, Features] = {}

    def end_of(self, test: Test) -> Endpoint:
        """Return the RDMA end of a test's rail."""
        key = (test["rail"], test["address"])
        if key not in self._ends:
            self._ends[key] = find_endpoint(
                self._sysfs, test["rail"], test["interface"], test["address"], self._params["network"]
            )
        return self._ends[key]

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the error counters of every rail that was looked up, by rail."""
        return {rail: counters(self._sysfs, end) for (rail, dummy), end in self._ends.items()}

    def command(self, test: Test, *, client: bool) -> list[str]:
        """Return the command line of this end of a test."""
        program = TOOLS[test["test"]].program
        if program not in self._features:
            self._features[program] = features(help_text(program))
        iterations = "latency_iterations" if test["test"] == "read_lat" else "bandwidth_iterations"
        return argv(
            test["test"],
            self.end_of(test),
            test["address"],
            test["port"],
            self._features[program],
            server=test["peer_address"] if client else None,
            iterations=self._params[iterations],
            traffic_class=self._params["traffic_class"],
        )


def failed(test: Test, why: Failure, output: str = "", **facts: t.Any) -> Test:
    """Return the result of a test that gave no measurement, or a bad one."""
    tail = "\n".join(output.strip().splitlines()[-20:])
    return {
        **test,
        "status": "deviation",
        "cause": why.cause,
        "fix": why.fix,
        "line": why.line,
        "output": tail,
        **facts,
    }


def unready(test: Test, exc: RdmaError) -> Test:
    """Return the result of a test whose own end does not exist."""
    return failed(test, Failure(exc.problem, str(exc.facts.get("cause", exc.problem)), exc.fix))


def serve(bench: Bench, params: dict[str, t.Any]) -> list[Test]:
    """Start the servers; return each with its state."""
    commands: dict[int, list[str]] = {}
    results: list[Test] = []
    for test in params["tests"]:
        try:
            commands[test["port"]] = bench.command(test, client=False)
        except RdmaError as exc:
            results.append(unready(test, exc))
    failures = Servers(params["token"]).start(commands, params["lifetime"] or 600)
    for test in params["tests"]:
        if test["port"] not in commands:
            continue
        command = " ".join(commands[test["port"]])
        if test["port"] in failures:
            output = failures[test["port"]]
            results.append(failed(test, explain(output, 1), output, command=command))
        else:
            results.append({**test, "status": "ok", "command": command})
    return results


def run_client(bench: Bench, params: dict[str, t.Any]) -> list[Test]:
    """Run the tests one after the other; return each with what it measured."""
    results: list[Test] = []
    for test in params["tests"]:
        try:
            command = bench.command(test, client=True)
        except RdmaError as exc:
            results.append(unready(test, exc))
            continue
        end = bench.end_of(test)
        facts = {
            "command": " ".join(command),
            "device": end.device,
            "gid_index": -1 if end.gid_index is None else end.gid_index,
        }
        code, output = measure(command, params["timeout"])
        measured = parse(test["test"], output) if code == 0 else None
        if measured is None:
            results.append(failed(test, explain(output, code), output, **facts))
            continue
        why = judge(test["test"], measured, params)
        results.append(
            failed(test, why, output, **facts, **measured) if why else {**test, "status": "ok", **facts, **measured}
        )
    return results


def run(params: dict[str, t.Any], *, check_mode: bool, sysfs: Sysfs | None = None) -> dict[str, t.Any]:
    """Run one end and describe what happened."""
    if params["end"] == "none":
        return {
            "changed": False,
            "tests": [],
            "checks": [],
            "ended": [] if check_mode else Servers(params["token"]).end(),
        }
    if check_mode:
        return {"changed": False, "tests": [], "checks": []}
    bench = Bench(params, sysfs or Sysfs())
    if params["end"] == "server":
        tests = serve(bench, params)
        # A server that did not start is the client's deviation as well; here it has its cause.
        checks = traffic_checks([test for test in tests if test["status"] != "ok"], server=True)
        return {"changed": False, "tests": tests, "checks": checks}
    for test in params["tests"]:
        try:
            bench.end_of(test)
        except RdmaError:
            continue
    before = bench.counters()
    tests = run_client(bench, params)
    checks = traffic_checks(tests) + counter_checks(before, bench.counters(), params["max_errors"])
    return {"changed": False, "tests": tests, "checks": checks}


def main() -> None:
    """Read the parameters, run, and report."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        required_if=[("end", "client", ("tests", "plan_dir"), True), ("end", "server", ("tests", "plan_dir"), True)],
        supports_check_mode=True,
    )
    try:
        result = run(module.params, check_mode=module.check_mode)
    except RdmaError as exc:
        module.fail_json(msg=str(exc), fix=exc.fix, **exc.facts)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
