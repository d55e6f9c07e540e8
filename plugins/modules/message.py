#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: message
short_description: Show lines to the user of a playbook, or fail the run with them
version_added: 1.0.0
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Shows lines as they are. A message of M(ansible.builtin.debug) or M(ansible.builtin.assert) would be one line of
    JSON, and a failure be shown twice.
  - Runs on the controller only; no host is contacted.
options:
  heading:
    description: The text above the lines.
    type: str
    required: true
  lines:
    description: The lines, each an item of a list.
    type: list
    elements: str
    default: []
  fail:
    description: Whether the task fails when there are any lines; without any it shows nothing.
    type: bool
    default: false
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: Does the same, since it changes nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Fail on conflicts
  railops.rdma.message:
    heading: "Nothing was changed. Conflicts with this run:"
    lines: "{{ conflicts }}"
    fail: true
"""

RETURN = r"""
"""

# The work is done by the action plugin of this name, on the controller.
