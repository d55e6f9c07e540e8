#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_upgrade_info
short_description: Order the hosts of an upgrade, and compare a host with its earlier state
version_added: 1.0.0
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - The memory of the playbook C(railops.rdma.upgrade). Runs on the controller only; no host is contacted.
  - A host with an unfinished upgrade has a file C(unfinished/HOST.json) in O(folder), with its earlier state. The
    next run continues with this host before it changes any other host.
options:
  phase:
    description:
      - V(order) returns the turns of the hosts, from O(results) and the last audit of each host.
      - V(begin) keeps the last audit of this host, unless an earlier run kept one.
      - V(compare) compares the present audit of this host with the kept one.
      - V(end) removes the record of this host.
    type: str
    choices: [order, begin, compare, end]
    required: true
  folder:
    description: The folder on the controller with the hosts' last audits (C(hosts/)) and unfinished upgrades.
    type: path
    required: true
  plan_dir:
    description: The plan folder of the fabric on the controller. Needed by O(phase=order).
    type: path
  results:
    description: What M(railops.rdma.rdma_driver_info) would do, by host, as it returns it in check mode.
    type: dict
    default: {}
  by_zone:
    description: Whether to upgrade one host of each zone at once, instead of one host of the fleet.
    type: bool
    default: false
  drain:
    description: Whether nodes are drained before and uncordoned after, for O(phase=order) and O(phase=compare).
    type: bool
    default: true
  reboot:
    description: Whether nodes are restarted, for the text of O(phase=order).
    type: bool
    default: true
  turn:
    description: The hosts of this turn. O(phase=begin) fails while the upgrade of a host outside of it is unfinished.
    type: list
    elements: str
    default: []
  boot:
    description: The ID of the host's present boot. O(phase=begin) keeps it.
    type: str
    default: ""
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Returns the order and keeps nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: railops.rdma.rdma_driver_info
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Check whether the node is worse than before
  railops.rdma.rail_upgrade_info:
    phase: compare
    folder: verify/fabric/upgrade
  register: judged
"""

RETURN = r"""
turns:
  description: The hosts of each turn, in order.
  returned: O(phase=order)
  type: list
  elements: list
  sample: [[node1], [node2]]
lines:
  description: The run's steps, as text.
  returned: O(phase=order)
  type: list
  elements: str
  sample: ["turn 1: node1: rdma-core 44.0-2 -> 50.0-2; drain, reboot, verify, uncordon"]
boot:
  description: The boot in which the upgrade began.
  returned: O(phase=begin)
  type: str
  sample: 6d0d1c0e-1f0e-4bd6-9a3e-1b6f5e0a7c11
resumed:
  description: Whether an earlier run began the upgrade.
  returned: O(phase=begin)
  type: bool
  sample: false
worse:
  description: Checks that are worse than before.
  returned: O(phase=compare)
  type: list
  elements: dict
  sample: []
sentence:
  description: RV(worse) in one sentence, for people; empty when nothing is worse.
  returned: O(phase=compare)
  type: str
  sample: ""
"""

# The work is done by the action plugin of this name, on the controller.
