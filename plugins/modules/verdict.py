#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verdict
short_description: Merge what verification found on all hosts and in the cluster into one verdict
version_added: 1.0.0
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Writes C(verdict.json) (machine-readable), C(verdict.md) (a table), C(verdict.txt) (the terminal picture)
    and C(report.html) (the plan's report with red and green rails) into O(verify_dir), and shows the picture. Runs on
    the controller only.
  - With O(folders) it makes one verdict of several runs that each had some of the hosts (AWX's job slices, or
    C(--limit) on several controllers). Each folder is the O(verify_dir) of a run, with its C(hosts) and
    C(sections.json). Folders of another plan than the one in O(plan_dir) are refused, all of them at once. A host of
    the plan that no run had is C(not_verified), which makes the verdict V(incomplete). For a host that two runs had,
    the newer counts, unless the host did not answer it.
  - The verdict is V(pass), V(deviation) (something is not as planned), V(incomplete) (a host did not answer)
    or V(error) (a host or the cluster could not be verified).
options:
  plan_dir:
    description: The plan folder of the fabric on the controller.
    type: path
    required: true
  verify_dir:
    description: The folder of the verification's files on the controller.
    type: path
    required: true
  hosts:
    description:
      - Inventory names of the hosts that should have a result. Hosts that the plan does not have are passed over.
      - Required unless O(folders) is given.
    type: list
    elements: str
  folders:
    description: The folders of the runs to merge, as paths or patterns.
    type: list
    elements: str
  phase:
    description:
      - V(begin) removes the results of O(present) and writes a verdict with the status V(incomplete), so that an
        interrupted run leaves no old verdict. A host without a result is C(not_verified).
      - V(finish) merges.
    type: str
    choices: [begin, finish]
    default: finish
  present:
    description: The hosts whose older results O(phase=begin) removes. All of O(hosts) when it is absent.
    type: list
    elements: str
  planned:
    description: Whether a host that the plan does not have is an error, which is for what comes before a change.
    type: bool
    default: false
  cluster:
    description:
      - Results of modules that checked the cluster. The module collects every C(checks) list in them. Absent when no
        module checked the cluster.
    type: raw
  nodes:
    description:
      - Results of modules that queried the cluster about nodes. Each check in them has its C(node) and belongs to that
        node's host. A check without such a host belongs to the cluster.
    type: raw
  cluster_reason:
    description: Why no module checked the cluster.
    type: str
    default: ""
  cluster_error:
    description: Why the cluster could not be verified.
    type: str
    default: ""
  require:
    description:
      - Checks that must run, as prefixes of their IDs in complete words, such as V(traffic), V(pod) or V(pod_read_lat).
        Where all checks of a prefix were skipped, or none ran, the verdict is V(deviation).
    type: list
    elements: str
    default: []
  plan:
    description: Results of modules that compared the plan with the inventory, as O(cluster).
    type: raw
  plan_reason:
    description: Why the plan was not compared with the inventory.
    type: str
    default: ""
  keep:
    description:
      - Whether to keep the sections of plan and cluster of the existing verdict, and to add O(cluster). For modules
        that check hosts again, such as M(railops.rdma.acceptance).
    type: bool
    default: false
  plan_error:
    description: Why the plan could not be compared with the inventory.
    type: str
    default: ""
  history:
    description:
      - How many verdicts C(history.json) keeps, each with its time, status and causes. C(report.html) shows which
        causes are new since the last of them.
    type: int
    default: 10
  fail:
    description: Fail when the verdict is V(deviation) or V(error); with O(folders) also when it is V(incomplete).
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
    details: >-
      Writes its files in check mode too, since they are the answer and no change of a host. With O(planned) it only
      checks.
  diff_mode:
    support: none
  idempotent:
    support: full
seealso:
  - module: railops.rdma.verify_result
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Merge the results into one verdict
  railops.rdma.verdict:
    plan_dir: plan/fabric
    verify_dir: verify/fabric
    hosts: "{{ groups['gpu_nodes'] }}"
  run_once: true

- name: Merge the runs of four job slices into one verdict
  railops.rdma.verdict:
    plan_dir: plan/fabric
    verify_dir: verify/fabric
    folders: [parts/*]
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
  sample: "Verdict pass: hosts: 3 pass; 0 deviations."
failure:
  description: Why the run fails, as one line.
  returned: with a deviation, an error, or without hosts
  type: str
  sample: "Verdict deviation: hosts: 1 deviation, 2 pass; 1 cause, 3 deviations. Read report.html."
failed_on:
  description: V(localhost) and the hosts that a deviation or an error is attributed to.
  returned: with RV(failure)
  type: list
  elements: str
  sample: [localhost, node2]
not_verified:
  description: The hosts of the plan that no run had.
  returned: with O(folders)
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
