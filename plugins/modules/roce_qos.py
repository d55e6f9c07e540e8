#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: roce_qos
short_description: Make RoCE lossless on the host side
version_added: 1.0.0
description:
  - Sets trust, priority flow control, the DSCP map, the traffic class of RDMA connections and the values of congestion
    notifications on the fabric's interfaces, and on no other.
  - Uses iproute2's C(dcb), configfs and debugfs where the driver has them, and the vendor's C(mlnx_qos) and sysfs files
    where not.
  - Reads back what it wrote. RV(switch) holds the same values for the switches.
  - The settings last by one systemd unit for each interface, bound to its device; nothing rewrites them in a loop.
  - On mlx5 a change of flow control takes the link down for a moment; RV(disruptions) reports this in check mode.
  - An InfiniBand fabric needs none of this; the module then does nothing.
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
  plan_dir:
    description:
      - The fabric's plan folder on the controller. The host's interfaces are read from it.
    type: path
  rails:
    description:
      - The rails, in the form of the plan's host files. O(plan_dir) fills it in; one of them is needed unless
        O(state=absent).
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the rail.
        type: str
        required: true
      interface:
        description: The name of its interface.
        type: str
        required: true
  out_of_service:
    description:
      - Rails that are left as they are, in the form of the plan's host files. O(plan_dir) fills it in.
    type: list
    elements: dict
  network:
    description: What kind of network the rails are. O(plan_dir) fills it in.
    type: str
    choices:
      - roce
      - infiniband
    default: roce
  state:
    description:
      - V(absent) restores the interfaces' settings from before the first run, and removes the files.
    type: str
    choices:
      - present
      - absent
    default: present
  priority:
    description:
      - The priority of RoCE traffic, as the switches have it. Together with O(dscp) it is what the site declares; by
        O(plan_dir) the plan does, where it has fabric_lossless.
      - Without both nothing is set, and what an earlier run set stays.
    type: int
  dscp:
    description:
      - The DSCP of RoCE traffic, as the switches have it. RDMA connections get it as their traffic class (ToS) byte,
        times 4, with O(ecn) plus 2 for ECT(0).
    type: int
  pfc_priorities:
    description: The priorities with flow control. Without it, only O(priority).
    type: list
    elements: int
  cnp_priority:
    description: The priority of congestion notifications.
    type: int
    default: 6
  cnp_dscp:
    description: The DSCP of congestion notifications. Without it, 8 times O(cnp_priority).
    type: int
  ecn:
    description: Whether RoCE traffic takes part in congestion control.
    type: bool
    default: true
  unsupported:
    description:
      - What to do when an interface offers no flow control. V(report) is for test machines.
    type: str
    choices:
      - fail
      - report
    default: fail
  ets_bandwidth:
    description:
      - The percent of the bandwidth (1 to 99) that RoCE's class gets by ETS; all other traffic gets the rest, and
        congestion notifications go strictly first. Without it, ETS stays as it is. Removing
        the option restores the earlier ETS.
    type: int
  replace:
    description: Whether to take over interfaces where another tool set flow control on another priority.
    type: bool
    default: false
  force:
    description: Whether to change interfaces that carry a default route or Ansible's connection, too.
    type: bool
    default: false
"""

EXAMPLES = r"""
---
- name: Make the rails lossless with NVIDIA's usual values, half of the bandwidth for RoCE
  railops.rdma.roce_qos:
    plan_dir: plan/fabric
    priority: 3
    dscp: 26
    ets_bandwidth: 50
  become: true

- name: Restore the earlier settings
  railops.rdma.roce_qos:
    plan_dir: plan/fabric
    state: absent
  become: true
"""

RETURN = r"""
before:
  description: The settings of each interface, as they were.
  returned: success
  type: dict
after:
  description: The settings of each interface as they are now, or would be in check mode.
  returned: success
  type: dict
interfaces:
  description: The earlier and present settings of each interface, its driver and the back end.
  returned: success
  type: dict
  sample:
    ens1np0:
      backend: kernel
      driver: mlx5_core
      before:
        trust: pcp
        pfc: []
      after:
        trust: dscp
        pfc:
          - 5
switch:
  description: The settings that the switch ports must have, one sentence each.
  returned: success
  type: list
  elements: str
  sample:
    - "DSCP 40 to priority 5"
    - "priority flow control on priority 5, off on all others"
changes:
  description: The values that the task wrote, in order.
  returned: success
  type: list
  elements: str
  sample:
    - "ens1np0: dscp [40, 5]"
    - "ens1np0: pfc [5]"
disruptions:
  description: Interruptions by the changes, by interface.
  returned: success
  type: dict
  sample:
    ens1np0:
      - the link goes down for a moment when flow control changes
notes:
  description: Missing inventory values, and the settings that stay unchanged without them.
  returned: success
  type: list
  elements: str
  sample: []
checks:
  description: The comparison of every rail with the plan, before the task.
  returned: success
  type: list
  elements: dict
  sample:
    - id: roce_pfc
      rail: rail1
      status: ok
      planned:
        pfc:
          - 5
      observed:
        pfc:
          - 5
      cause: ""
      fix: ""
"""

from ..module_utils._module import run_room
from ..module_utils._qos.run import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()
