# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What verification says about a dry run against the cluster."""

from __future__ import annotations

import typing as t

from ..plugin_utils._verdict.objects import object_checks

DOCUMENTATION = r"""
name: object_checks
short_description: Turn a dry run of cluster_objects into the checks of a verdict
version_added: 0.1.0
author: railops.rdma contributors (@railops)
description:
  - Returns one check for each object that differs from the plan, is in use although it should go, or belongs to
    somebody else, and one for all objects that are as planned.
options:
  _input:
    description: The result of M(railops.rdma.cluster_objects) in check mode.
    type: dict
    required: true
"""

EXAMPLES = r"""
---
- name: Show what differs
  ansible.builtin.debug:
    msg: "{{ dry_run | railops.rdma.object_checks }}"
"""

RETURN = r"""
_value:
  description: The checks.
  type: list
  elements: dict
"""


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"object_checks": object_checks}
