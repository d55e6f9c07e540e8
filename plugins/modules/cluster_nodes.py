#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Label the nodes of a fabric, and compare their resources with the plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_nodes
short_description: Label a fabric's nodes in a Kubernetes cluster and compare their resources with the plan
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Puts the plan's node label on nodes, by which SR-IOV policies choose them, and removes it from other
    nodes. Nodes are never created.
  - Puts the labels of zone and leaves on the plan's nodes, for schedulers. C(node_labels) in C(facts.json) has all
    labels.
  - Compares every node's allocatable resources and its SR-IOV node state with the plan, and can wait for them.
options:
  plan_dir:
    description: The plan's folder, the one with C(plan.json). Required without O(drain) and O(hosts).
    type: path
  namespace:
    description: Namespace of Spiderpool, its device plugin and the SR-IOV operator.
    type: str
    default: spiderpool
  state:
    description: V(absent) takes the label off all nodes and compares nothing.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description: Label only these nodes, leave the others as they are. All by default.
    type: list
    elements: str
    default: []
  label:
    description: Whether to change labels. Otherwise nodes are only compared.
    type: bool
    default: true
  drain:
    description:
      - V(begin) cordons O(nodes) and notes on them how they were, in an annotation. Emptying them is the work of
        another module.
      - V(end) restores O(nodes) that carry the note, and removes it.
      - Nothing else is done with them then. Nodes that the cluster does not have are left out.
    type: str
    choices: [begin, end]
  purpose:
    description: Purpose of O(drain). Each has its own annotation, C(railops.io/PURPOSE-drain), and ends only its own.
    type: str
    choices: [sriov, reboot, upgrade]
    default: sriov
  hosts:
    description:
      - The hosts with their identity, as M(railops.rdma.host_work_info) returns it. The module rejects a host with a
        kubelet whose node is another machine or is missing, and a host that is a node of another name.
      - With O(drain), the module leaves out hosts that have not joined the cluster yet. Without O(drain) and without
        O(plan_dir), it only checks them.
    type: list
    elements: dict
    suboptions:
      host:
        description: The host's name in the inventory.
        type: str
      node:
        description: The name of its node.
        type: str
        required: true
      machine_id:
        description: The host's machine ID.
        type: str
        required: true
      boot_id:
        description: The identifier of its running boot.
        type: str
        required: true
      kubelet:
        description: The program that runs pods on it; empty for none.
        type: str
        required: true
  wait_seconds:
    description:
      - Seconds for which nothing may move while nodes are not as planned. V(0) compares without waiting.
      - Nodes that are down or not in the cluster are not waited for.
    type: int
    default: 0
  progress_file:
    description: A file to which a line of progress is appended every ten seconds. Without it the lines are shown.
    type: path
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
"""

EXAMPLES = r"""
---
- name: Label the nodes and wait for the planned resources
  railops.rdma.cluster_nodes:
    plan_dir: plan/fabric
    wait_seconds: 600

- name: Compare only
  railops.rdma.cluster_nodes:
    plan_dir: plan/fabric
    label: false
"""

RETURN = r"""
unlabeled:
  description: Nodes in the cluster whose label differs from the plan, when O(nodes) or O(label) left them out.
  returned: always
  type: list
  elements: str
  sample: [node2]
unfinished:
  description:
    - Nodes of the plan with the note of O(drain=begin), from any run. With O(drain), those of O(nodes) with
      the note of O(purpose), and with only O(hosts) those of the cluster.
  returned: always
  type: list
  elements: str
  sample: [node1]
joined:
  description: The nodes of O(hosts) that are in the cluster.
  returned: with only O(hosts)
  type: list
  elements: str
  sample: [node1]
checks:
  description:
    - One entry for each comparison with the plan. Where a node offers too little, one for each rail whose resource is
      short, with the state of the shared device plugin's pod there.
  returned: always
  type: list
  elements: dict
  sample:
    - id: node_resources
      rail: null
      node: node1
      status: ok
      planned: {spidernet.io/fabric_rail1: 100}
      observed: {spidernet.io/fabric_rail1: 100}
      cause: ""
      fix: ""
prefixes:
  description:
    - For a fabric with nv-ipam, one entry for each node whose prefix or gateway differs from its CIDRPool, and one for
      all other nodes. With O(wait_seconds) the module waits for them, up to a minute.
  returned: always
  type: list
  elements: dict
  sample: []
"""

from ..module_utils._cluster.nodes_run import run
from ..module_utils._cluster.requirements import NEEDS, spec_of
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS, required_one_of=[("plan_dir", "drain", "hosts")])


if __name__ == "__main__":
    main()
