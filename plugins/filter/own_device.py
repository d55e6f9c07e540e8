# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether pods get a device of their own on a host, as its plan has it: the inventory may leave that to the planner."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._fabric.attachments import ATTACHMENTS
from ..plugin_utils._host_plan import read_host_plan

DOCUMENTATION = r"""
name: own_device
short_description: Say by which attachment pods get a device of their own on a host
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Reads the host's part of the plan. Where pods get virtual functions, the firmware of the cards must offer them.
options:
  _input:
    description: The fabric's plan folder on the controller.
    type: path
    required: true
  host:
    description: The host, by its name in the inventory.
    type: str
    required: true
"""

EXAMPLES = r"""
---
- name: Show whether pods get virtual functions
  ansible.builtin.debug:
    msg: "{{ 'plan/fabric' | railops.rdma.own_device(inventory_hostname) or 'no' }}"
"""

RETURN = r"""
_value:
  description: V(sriov) or V(ib-sriov); empty where pods share the host's devices, and where the host has no plan.
  type: str
"""


def own_device(plan_dir: str, host: str) -> str:
    """Return the attachment by which pods get a device of their own; empty where they do not, or without a plan."""
    try:
        have = read_host_plan(os.path.expanduser(os.path.expandvars(plan_dir)), host)
    except AnsibleActionFail:
        # Who takes something of the plan says what is wrong with it.
        return ""
    kind = (have["network"], have["rdma_mode"])
    return next(
        (row.name for row in ATTACHMENTS.values() if row.own_device and (row.network, row.rdma_mode) == kind), ""
    )


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"own_device": own_device}
