#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: plan_objects_info
short_description: Check a plan's cluster objects against the admission rules, without a cluster
version_added: 0.1.0
description:
  - Reads the C(cluster) folder of a plan and asks this collection's own copy of Spiderpool's and the SR-IOV operator's
    admission rules about every object. Runs on the controller only.
options:
  plan_dir:
    description: The plan folder of the fabric on the controller.
    type: path
    required: true
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Check what would be applied
  railops.rdma.plan_objects_info:
    plan_dir: plan/fabric
"""

RETURN = r"""
counts:
  description: The number of objects of each kind.
  returned: always
  type: dict
  sample: {SpiderIPPool: 64, SpiderMultusConfig: 8}
problems:
  description: What admission would refuse, each with its place and fix.
  returned: always
  type: list
  elements: dict
  sample: []
checks:
  description: What verification collects.
  returned: always
  type: list
  elements: dict
  sample:
    - id: objects_admission
      rail: null
      status: ok
      planned: 72 objects that admission takes
      observed: 72 of 72
      cause: ""
      fix: ""
"""

# The work is done by the action plugin of this name, on the controller.
