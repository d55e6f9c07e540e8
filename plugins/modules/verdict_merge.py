#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verdict_merge
short_description: Make one verdict of the verdicts of several runs
version_added: 0.2.0
description:
  - Reads the C(verdict.json) of runs that each had a part of the hosts (job slices, or C(--limit) on several
    controllers) and writes the verdict of all, in the same files as M(railops.rdma.verdict). Runs on the controller
    only.
  - Verdicts of another plan than the one in O(plan_dir) are refused, all of them at once. A host of the plan that no
    run had is C(not_verified), which makes the verdict V(incomplete).
  - Of a host that two runs had, the later in O(verdicts) counts, unless it has no answer of it.
options:
  plan_dir:
    description: The plan folder of the fabric on the controller.
    type: path
    required: true
  verify_dir:
    description: The folder on the controller that the verdict of all is written to.
    type: path
    required: true
  verdicts:
    description: The verdicts, each as a file, the folder that has it, or a pattern of either.
    type: list
    elements: str
    required: true
  fail:
    description: Fail when the verdict is not V(pass).
    type: bool
    default: true
  show:
    description: Show the picture in the terminal.
    type: bool
    default: true
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Writes its files in check mode too, since they are the answer and no change of a host.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: railops.rdma.verdict
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Make one verdict of those of four job slices
  railops.rdma.verdict_merge:
    plan_dir: plan/fabric
    verify_dir: verify/fabric
    verdicts: [slices/*/verdict.json]
"""

RETURN = r"""
status:
  description: The verdict, one of V(pass), V(deviation), V(incomplete) and V(error).
  returned: always
  type: str
  sample: pass
summary:
  description: The verdict as one sentence.
  returned: always
  type: str
  sample: "Verdict pass: hosts: 3 pass; cluster: skipped; 0 deviations."
not_verified:
  description: The hosts of the plan that no run had.
  returned: always
  type: list
  elements: str
  sample: []
files:
  description: The files that were written.
  returned: always
  type: list
  elements: str
  sample: [verify/fabric/verdict.json, verify/fabric/verdict.md]
"""

# The work is done by the action plugin of this name, on the controller.
