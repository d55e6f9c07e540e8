# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nv-ipam gave to nodes, beside what the plan gives them."""

from __future__ import annotations

import typing as t

from ..plugin_utils._verdict.objects import prefix_checks

DOCUMENTATION = r"""
name: pool_prefixes
short_description: Compare the status of CIDRPools with their specs
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Returns one check for each node whose prefix or gateway is not the one that the pool's static allocation says, and
    one for all that have theirs.
options:
  _input:
    description: CIDRPools as the API stores them.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
---
- name: Show which nodes have no prefix yet
  ansible.builtin.debug:
    msg: "{{ pools.resources | railops.rdma.pool_prefixes | rejectattr('status', 'equalto', 'ok') }}"
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
        return {"pool_prefixes": prefix_checks}
