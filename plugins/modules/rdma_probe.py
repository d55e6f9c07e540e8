#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_probe
short_description: Run one end of bounded RDMA tests over the rails of a host
version_added: 1.0.0
description:
  - Runs C(ib_read_lat) and C(ib_write_bw) of perftest over the rails of a host, and returns the measurements as data.
  - One call handles one end of all tests of a host. Servers start in the background and end automatically after
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
      peer_gbits:
        description: The C(expected_gbits) that the server returned. A slower end is the limit of what a client expects.
        type: float
      slot:
        description: Tests of one slot run at the same time. Without, tests run one after the other.
        type: int
      gpu:
        description: The number of the GPU whose memory is used. Needs a perftest that is built with CUDA.
        type: int
      argv:
        description:
          - A command that a client runs instead of perftest, such as C(mpirun). Its C(output) and exit C(code) are
            returned.
        type: list
        elements: str
  plan_dir:
    description: The plan folder of the fabric on the controller. Its host plans give O(tests) and O(network).
    type: path
  hosts:
    description: Inventory names of the hosts that take part. With O(plan_dir) only.
    type: list
    elements: str
    default: []
  register:
    description:
      - The name under which the hosts' server calls were registered. A client reads from it what the other end can be
        expected to carry.
    type: str
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
    description: Seed for the random peers with V(sample). The same number selects the same peers.
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
  seconds:
    description: Seconds that a bandwidth test sends. Any value but V(0) replaces O(bandwidth_iterations).
    type: int
    default: 0
  max_latency_us:
    description: A typical read latency above this many microseconds is a deviation. V(0) is no limit.
    type: float
    default: 0
  min_gbits:
    description: A write bandwidth below this many Gb/s is a deviation. V(0) is no limit.
    type: float
    default: 0
  min_line_rate_percent:
    description:
      - Without O(min_gbits), a write bandwidth below this percentage of the rail's expected rate is a warning, and
        below half of that rate a deviation. The rate is the smallest of port and PCIe slot on both ends, a slot divided
        by the rails that use it at once. Ports without a PCIe link (soft-RoCE) have none. V(0) expects nothing.
    type: float
    default: 0
  max_errors:
    description:
      - A growth of an error counter during the client's tests above this is a deviation. V(-1) never is.
      - Counters that grow on healthy fabrics with adaptive routing (C(out_of_sequence), C(packet_seq_err),
        C(port_xmit_discards)) give a warning instead.
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
  become: true

- name: Test every rail with the next host
  railops.rdma.rdma_probe:
    end: client
    token: example
    plan_dir: plan/fabric
    hosts: "{{ ansible_play_hosts }}"
    schedule: ring
  become: true

- name: End the servers
  railops.rdma.rdma_probe:
    end: none
    token: example
  become: true

- name: Test one rail against a running server
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
  become: true
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

from ..module_utils._fabric.numbers import TEST_PORT
from ..module_utils._module import run_module
from ..module_utils._probe.run import run

KINDS = ["read_lat", "write_bw"]
ARGUMENT_SPEC: dict[str, t.Any] = {
    "end": {"type": "str", "choices": ["server", "client", "none"], "required": True},
    "token": {"type": "str", "required": True, "no_log": False},
    "network": {"type": "str", "choices": ["roce", "infiniband"], "default": "roce"},
    "tests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "test": {"type": "str", "choices": KINDS, "required": True},
            "rail": {"type": "str", "required": True},
            "interface": {"type": "str", "required": True},
            "address": {"type": "str", "required": True},
            "port": {"type": "int", "required": True},
            "peer": {"type": "str", "default": ""},
            "peer_address": {"type": "str", "default": ""},
            "peer_gbits": {"type": "float"},
            "slot": {"type": "int"},
            "gpu": {"type": "int"},
            "argv": {"type": "list", "elements": "str"},
        },
    },
    "plan_dir": {"type": "path"},
    "hosts": {"type": "list", "elements": "str", "default": []},
    "register": {"type": "str"},
    "schedule": {"type": "str", "choices": ["auto", "ring", "full", "sample", "none"], "default": "auto"},
    "kinds": {"type": "list", "elements": "str", "choices": KINDS, "default": KINDS},
    "peers": {"type": "int", "default": 3},
    "seed": {"type": "int", "default": 0},
    "first_port": {"type": "int", "default": TEST_PORT},
    "lifetime": {"type": "int", "default": 0},
    "timeout": {"type": "int", "default": 20},
    "latency_iterations": {"type": "int", "default": 1000},
    "bandwidth_iterations": {"type": "int", "default": 5000},
    "seconds": {"type": "int", "default": 0},
    "max_latency_us": {"type": "float", "default": 0},
    "min_gbits": {"type": "float", "default": 0},
    "min_line_rate_percent": {"type": "float", "default": 0},
    "max_errors": {"type": "int", "default": 0},
}


def main() -> None:
    """Read the parameters, run, and report."""
    needs = [("end", end, ("tests", "plan_dir"), True) for end in ("client", "server")]
    run_module(run, ARGUMENT_SPEC, required_if=needs)


if __name__ == "__main__":
    main()
