# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What is wrong with the variables of playbooks and roles, before anything is touched."""

from __future__ import annotations

import typing as t

from ..plugin_utils._settings import problems

DOCUMENTATION = r"""
name: setting_problems
short_description: Say what is wrong with the variables of playbooks and roles, over all hosts
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Looks at each variable of this collection that a host or localhost has, by the argument specs of the roles and what
    the playbooks say of theirs, and at names that are a slip of one of these.
  - Hosts with the same values are looked at once. A value that cannot be resolved yet is left to its role.
options:
  _input:
    description: C(hostvars).
    type: dict
    required: true
  hosts:
    description: The hosts to look at, beside localhost.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
---
- name: Show what is wrong with the inventory's variables
  ansible.builtin.debug:
    msg: "{{ hostvars | railops.rdma.setting_problems(groups['all']) }}"
"""

RETURN = r"""
_value:
  description: One sentence for each, with the hosts' names where it is not about all.
  type: list
  elements: str
"""


def setting_problems(hostvars: t.Any, hosts: t.Iterable[str]) -> list[str]:
    """Return what is wrong."""
    names = [str(name) for name in dict.fromkeys([*hosts, "localhost"]) if name in hostvars]
    return problems({name: hostvars.raw_get(name) for name in names}, lambda host, name: hostvars[host][name])


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return it by its name."""
        return {"setting_problems": setting_problems}
