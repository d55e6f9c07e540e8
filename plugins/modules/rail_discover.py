#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_discover
short_description: Propose the rails of a fleet from its hardware and cables
version_added: 1.0.0
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Runs on the controller, over what M(railops.rdma.rdma_info) registered on the hosts of the play.
  - Writes an inventory file with C(fabric_rails), and with C(fabric_interfaces) for hosts whose names differ, and a
    report of the hosts to check (a missing NIC or GPU, the wrong leaf by LLDP, another link layer, no link).
  - Where LLDP has data, C(cables.yml) has the leaf and port of every cable as C(fabric_cables) of the hosts.
  - The module takes the layout of most hosts as the intended one. It writes nothing to any host.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  register:
    description: The name under which the result of M(railops.rdma.rdma_info) was registered on the hosts.
    type: str
    required: true
  hosts:
    description: The queried hosts; one without a result did not answer.
    type: list
    elements: str
    required: true
  dest:
    description: The folder on the controller for C(proposal.yml), C(report.md) and C(cables.yml).
    type: path
    required: true
  group:
    description: The inventory group that the proposal is for.
    type: str
    default: gpu_nodes
  names:
    description: Names for the rails, from the first on. Without them, C(rail1) and so on.
    type: list
    elements: str
    default: []
seealso:
  - module: railops.rdma.rdma_info
"""

EXAMPLES = r"""
---
- name: Read the hosts
  railops.rdma.rdma_info:
    gids: false
  register: __example_info

- name: Propose the rails
  railops.rdma.rail_discover:
    register: __example_info
    hosts: "{{ ansible_play_hosts_all }}"
    dest: discover/fabric
  run_once: true
"""

RETURN = r"""
files:
  description: The files of the proposal.
  returned: success
  type: list
  elements: str
  sample:
    - discover/fabric/proposal.yml
    - discover/fabric/report.md
rails:
  description: The rails that are proposed.
  returned: success
  type: list
  elements: dict
  sample:
    - name: rail1
      interface: ens1np0
      gpu: 0
      pci: "0000:19:00.0"
      switches:
        - leaf1
network:
  description: The fleet's network, C(roce) or C(infiniband).
  returned: success
  type: str
  sample: roce
interfaces:
  description: The interfaces of hosts that differ, by host and rail.
  returned: success
  type: dict
  sample:
    node7:
      rail1: ens21np0
findings:
  description: What needs a look.
  returned: success
  type: list
  elements: dict
  sample:
    - host: node3
      rail: rail2
      kind: wrong leaf
      text: ens2np0 is on leaf3 swp7, which serves rail3.
      fix: Move the cable to leaf2.
"""

# The work is done by the action plugin of this name, on the controller.
