# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What verification says about the test application's pods."""

from __future__ import annotations

import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._object_checks import pod_checks

DOCUMENTATION = r"""
name: pod_checks
short_description: Turn the pods of the test application into the checks of a verdict
version_added: 0.1.0
author: railops.rdma contributors (@railops)
description:
  - Returns one check for each pod. It has to run and to have every rail's network with an address.
positional: networks
options:
  _input:
    description: Pod objects.
    type: list
    elements: dict
    required: true
  networks:
    description: The planned networks, each as namespace and name with a slash between.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
---
- name: Show which pods lack a rail
  ansible.builtin.debug:
    msg: "{{ pods.resources | railops.rdma.pod_checks(['spiderpool/fabric-rail1']) }}"
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
        return {"pod_checks": pod_checks}
