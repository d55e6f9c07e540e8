#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: acceptance
short_description: Run one phase of a fabric's acceptance, from pairs of hosts to the complete fleet
version_added: 1.0.0
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Tests from small to large, stops at the stage that fails, and narrows a failure to node and rail by runs with fewer
    nodes and rails. The role P(railops.rdma.accept#role) calls it, phase by phase.
  - Keeps the measurements in C(accept.json) in O(verify_dir), so that an interrupted run can continue.
options:
  phase:
    description:
      - V(begin) reads the verdict and selects the first step. V(next) reads the hosts' results and selects the next
        one. V(finish) adds the checks to the hosts' results. These three run on the controller only.
      - V(serve), V(send) and V(end) are a host's part of a step; hosts that are not in it do nothing.
    type: str
    choices: [begin, next, finish, serve, send, end]
    required: true
  plan_dir:
    description: The plan folder of the fabric on the controller.
    type: path
    required: true
  verify_dir:
    description: The folder of the verification's files on the controller.
    type: path
    required: true
  hosts:
    description: Inventory names of the hosts that take part. For O(phase=begin).
    type: list
    elements: str
    default: []
  stages:
    description: The stages to run; the order is always this one.
    type: list
    elements: str
    choices: [hosts, latency, bandwidth, gpu, node, leaf, zone, fabric, collective]
    default: [hosts, latency, bandwidth, gpu, node, leaf, zone, fabric, collective]
  resume:
    description: Whether to resume an interrupted run with the same plan, hosts and stages.
    type: bool
    default: true
  gpu:
    description:
      - Whether perftest also writes from GPU memory, between hosts whose check C(gpudirect_path) is ok. Needs a
        perftest that is built with CUDA. The GPU has the number of the rail, from 0.
    type: bool
    default: false
  seconds:
    description: Seconds that each bandwidth test sends.
    type: int
    default: 10
  timeout:
    description: Seconds that a test may take beside these.
    type: int
    default: 20
  first_port:
    description: The first TCP port of the tests' servers.
    type: int
    default: 18515
  max_latency_us:
    description: A typical read latency above this many microseconds fails. V(0) sets no limit, here and below.
    type: float
    default: 0
  min_gbits:
    description:
      - Gb/s that each rail of a pair must reach with nothing else at work; O(min_gbits_loaded) where that is more.
    type: float
    default: 0
  min_gbits_loaded:
    description: Gb/s that each rail must reach with all rails, or more than two hosts, at work.
    type: float
    default: 0
  min_relative_percent:
    description: The minimum of each pair, in percent of the result of the best quarter of pairs.
    type: float
    default: 80
  min_gbytes:
    description: GB/s of bus bandwidth that a collective must reach.
    type: float
    default: 0
  collectives:
    description:
      - The commands of the last stage by what they run, V(all_reduce) and V(alltoall) of nccl-tests or V(netpipe).
      - C({hosts}), C({count}), C({devices}) and C({rails}) in a word are replaced by the inventory names, their number,
        the RDMA devices (C(mlx5_0:1,...)) and the rails.
      - nccl-tests run on the first host for all. NetPIPE runs on each host with the next one, rail by rail.
    type: dict
    default: {}
  image:
    description:
      - With the image of pods, collectives run in pods by M(railops.rdma.collective_job) and not on the hosts. NetPIPE
        runs on hosts only.
    type: str
    default: ""
  collective:
    description: What came of them. For O(phase=next).
    type: list
    elements: dict
    default: []
  collective_timeout:
    description: Seconds that one of them may take.
    type: int
    default: 300
  devices:
    description: The RDMA device of each rail by the rail's name, for C({devices}).
    type: dict
    default: {}
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: partial
    details: Hosts send nothing; only V(begin) has a result then.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: A test leaves nothing behind.
requirements:
  - perftest on the managed node
seealso:
  - module: railops.rdma.rdma_probe
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Decide on the first step
  railops.rdma.acceptance:
    phase: begin
    plan_dir: plan/fabric
    verify_dir: verify/fabric
    hosts: "{{ groups['gpu_nodes'] }}"
    min_gbits: 380
  run_once: true
"""

RETURN = r"""
more:
  description: Whether there is a step to be made.
  returned: when O(phase=begin) or O(phase=next)
  type: bool
  sample: true
groups:
  description: The commands that the next step runs in pods, each with its C(nodes) and C(words).
  returned: when O(phase=begin) or O(phase=next), and there is a step
  type: list
  elements: dict
  sample: []
failed_stage:
  description: The stage that did not pass, empty when all did.
  returned: when nothing is left to be run
  type: str
  sample: bandwidth
checks:
  description: Failures without a single faulty host.
  returned: when O(phase=finish)
  type: list
  elements: dict
  sample: []
tests:
  description: The results of the programs of this host, as M(railops.rdma.rdma_probe) returns them.
  returned: when O(phase=serve) or O(phase=send), on a host of the step
  type: list
  elements: dict
  sample: []
ended:
  description: The TCP ports of the servers that still ran when they were ended.
  returned: when O(phase=end), on a host of the step
  type: list
  elements: int
  sample: []
"""

# The work is done by the action plugin of this name, on the controller.
