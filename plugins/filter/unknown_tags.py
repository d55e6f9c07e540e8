# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which tags no task of this collection has."""

from __future__ import annotations

import typing as t

from ..plugin_utils._settings import tag_problems

DOCUMENTATION = r"""
name: unknown_tags
short_description: Say which tags no task of this collection has
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Looks at the tags that were given, and names the nearest one that a task has.
options:
  _input:
    description: The tags, as C(ansible_run_tags) and C(ansible_skip_tags) have them.
    type: list
    elements: str
    required: true
  own:
    description: Whether to say nothing where the run's playbook only imports ours, and may have tags of its own.
    type: bool
    default: false
"""

EXAMPLES = r"""
---
- name: Show which tags do nothing
  ansible.builtin.debug:
    msg: "{{ ansible_run_tags | railops.rdma.unknown_tags }}"
"""

RETURN = r"""
_value:
  description: One line for each.
  type: list
  elements: str
"""


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return it by its name."""
        return {"unknown_tags": tag_problems}
