#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: verify_result
short_description: Write what verification found on one host to a file on the controller
version_added: 1.0.0
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Collects the C(checks) of the results of this collection's modules, and writes them to
    RV(path), one file a host. Runs on the controller only; the host is not contacted.
  - The module M(railops.rdma.verdict) merges the files of all hosts.
options:
  plan_dir:
    description: The plan folder of the fabric on the controller.
    type: path
    required: true
  verify_dir:
    description: The folder of the verification's files on the controller.
    type: path
    required: true
  results:
    description: Results of modules; every C(checks) list in them is collected. Results without it are skipped.
    type: raw
    default: []
  error:
    description: Why the host could not be verified at all.
    type: str
    default: ""
  add:
    description: Whether to add to this host's results of the same verification, instead of replacing them.
    type: bool
    default: false
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Writes its file in check mode too, since the file is the answer and no change of a host.
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Write the host's results
  railops.rdma.verify_result:
    plan_dir: plan/fabric
    verify_dir: verify/fabric
    results:
      - "{{ rail_network_in_check_mode }}"
      - "{{ rdma_info_of_the_host }}"
"""

RETURN = r"""
path:
  description: The file that was written.
  returned: always
  type: str
  sample: verify/fabric/hosts/node1.json
status:
  description: The status of this host, V(pass), V(deviation) or V(error).
  returned: always
  type: str
  sample: pass
checks:
  description: All checks of this host.
  returned: always
  type: list
  elements: dict
  sample: []
"""

# The work is done by the action plugin of this name, on the controller.
