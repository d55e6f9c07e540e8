#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the verdict to a cluster's nodes, and keep jobs off broken ones."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kubernetes_gate
short_description: Write the verdict to a Kubernetes cluster's nodes, and keep jobs off broken ones
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Writes the last verdict of each node as its condition C(RailsReady), and can put the taint
    C(fabric.railops.io/rails=broken:NoSchedule) on broken nodes. Running pods stay.
  - A node is broken after O(failure_threshold) bad verdicts in a row and healthy again after O(success_threshold) good
    ones. The counts are kept on the node, in the annotation C(fabric.railops.io/gate). A verdict never counts twice.
  - Every write includes the version that was read, so it never overwrites another client's change and changes no other
    taint.
  - Hosts that did not answer are not judged. A node whose last judgment is older than O(max_age) has the status
    V(Unknown), and stays in or out as it was.
options:
  plan_dir:
    description: The plan's folder, the one with C(plan.json). Its name is the fabric's.
    type: path
    required: true
  verdict:
    description: The file C(verdict.json). Required with O(state=present); where it does not exist nodes only age.
    type: path
  state:
    description: V(absent) takes condition, annotation and taint off all nodes of the fabric.
    type: str
    choices: [present, absent]
    default: present
  taint:
    description: Whether broken nodes get the taint. Without it only conditions are written.
    type: bool
    default: false
  failure_threshold:
    description: Bad verdicts in a row that make a node broken.
    type: int
    default: 2
  success_threshold:
    description: Good verdicts in a row that make a broken node healthy.
    type: int
    default: 3
  max_unavailable:
    description:
      - How many nodes may be out at once, a number or a percentage of the plan's nodes in the cluster (rounded down,
        but at least one node unless it is V(0%)).
    type: str
    default: 10%
  min_available:
    description: Nodes of each zone that stay in, whatever is broken.
    type: int
    default: 1
  max_age:
    description: Seconds for which a verdict counts.
    type: int
    default: 7200
  ignore:
    description: IDs of checks that the gate ignores.
    type: list
    elements: str
    default: []
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
    details: The same verdict again changes nothing, until it is too old.
requirements:
  - kubernetes >= 31
"""

EXAMPLES = r"""
---
- name: Keep jobs off nodes whose rails are broken
  railops.rdma.kubernetes_gate:
    plan_dir: plan/fabric
    verdict: verify/fabric/verdict.json
    taint: true
    max_unavailable: 5%

- name: Take everything back
  railops.rdma.kubernetes_gate:
    plan_dir: plan/fabric
    state: absent
"""

RETURN = r"""
nodes:
  description: The nodes by status of their condition.
  returned: always
  type: dict
  sample: {"True": [node1], "False": [node2], "Unknown": []}
out:
  description: The nodes that jobs are kept off.
  returned: always
  type: list
  elements: str
  sample: [node2]
capped:
  description: Broken nodes that stay in, because of O(max_unavailable) or O(min_available).
  returned: always
  type: list
  elements: str
  sample: []
missing:
  description: Nodes of the plan that the cluster does not have.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ..module_utils._cluster.gate_run import run
from ..module_utils._cluster.requirements import NEEDS, spec_of
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS, required_if=[("state", "present", ["verdict"])])


if __name__ == "__main__":
    main()
