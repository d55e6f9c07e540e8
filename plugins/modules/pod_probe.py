#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look into the pods of the test application and measure the read latency between pods."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_probe
short_description: Compare the test application's pods with the plan and measure RDMA read latency between pods
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Finds the fabric's test application (a DaemonSet with the fabric's labels) and compares its pods with the plan. Each
    has to run, and to have every rail's network with addresses of the node's pools, as Multus wrote them to the pod.
  - Runs C(ip) and C(rdma) inside of each pod through the API and compares interfaces, rules and RDMA devices.
  - Runs C(ib_read_lat) or C(ping) between these pods, over each rail of pairs of nodes, through the API too. Nothing is
    made in the cluster. All commands are bounded by C(timeout), whatever becomes of the controller, and no rail has two
    tests at once.
  - A check that cannot run is V(skipped) with its reason.
options:
  plan_dir:
    description: The plan's folder, the one with C(plan.json).
    type: path
    required: true
  fabric:
    description: Name of the fabric, by whose label the test application is found.
    type: str
    default: fabric
  namespace:
    description: The test application's namespace. The module ignores test applications in other namespaces.
    type: str
    default: default
  depth:
    description:
      - V(none) checks nothing, and reports that as a check that is V(skipped).
      - V(status) reads the pods' state from the API. V(look) also runs commands in the pods, and needs C(pods/exec).
      - V(ping) also pings, and V(latency) measures the read latency, over each rail of pairs of nodes.
    type: str
    choices: [none, status, look, ping, latency]
    default: latency
  schedule:
    description: Which nodes test with which, as in the option O(railops.rdma.rdma_probe#module:schedule).
    type: str
    choices: [auto, ring, full, sample]
    default: ring
  peers:
    description: How many peers each node has with O(schedule=sample).
    type: int
    default: 3
  seed:
    description: Draws nodes and peers.
    type: int
    default: 0
  nodes:
    description: How many nodes take part, drawn with O(seed). V(0) takes all.
    type: int
    default: 8
  parallel:
    description: How many pairs of nodes are tested at the same time. No node is in two of them.
    type: int
    default: 8
  timeout:
    description: Seconds that the test of each rail may take.
    type: int
    default: 60
  iterations:
    description: Exchanges of one test.
    type: int
    default: 1000
  max_latency_us:
    description: A typical read latency above this many microseconds is a deviation. V(0) is no limit.
    type: float
    default: 0
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: partial
    details: No latency is measured.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
  - PyYAML
"""

EXAMPLES = r"""
---
- name: Check the pods and measure the latency of every rail
  railops.rdma.pod_probe:
    plan_dir: plan/fabric
    max_latency_us: 8

- name: Read only the pods' state from the API
  railops.rdma.pod_probe:
    plan_dir: plan/fabric
    depth: status
"""

RETURN = r"""
checks:
  description: One entry for each comparison. C(node) is the node's name in Kubernetes, null where it is about none.
  returned: always
  type: list
  elements: dict
  sample:
    - id: pod_read_lat
      rail: rail1
      node: node1
      status: ok
      planned: a pod on node2 answers RDMA reads
      observed: 2.31 us with a pod on node2
      cause: ""
      fix: ""
"""

from ..module_utils._cluster.requirements import NEEDS, spec_of
from ..module_utils._module import run_module
from ..module_utils._pods.probe_run import run


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS)


if __name__ == "__main__":
    main()
