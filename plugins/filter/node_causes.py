# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Why nodes offer too little of a resource."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleFilterError

from ..module_utils._cluster import source
from ..module_utils._errors import RdmaError
from ..module_utils._fabric.lock import read_host_plans
from ..module_utils._fabric.networks import read_networks
from ..module_utils._pods.checks import node_of
from ..plugin_utils._verdict.causes import RESOURCES, explain, plugin_of

if t.TYPE_CHECKING:
    from ..module_utils._check import CheckData

DOCUMENTATION = r"""
name: node_causes
short_description: Name the cause where nodes offer too little of a rail's resource
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Returns the checks of M(railops.rdma.cluster_nodes), with one check for each rail whose resource is short, and tells
    its cause as far as the cluster knows it. The device plugin's configuration does not name the resource, its selector
    names another interface, no pod of it works on the node, or it finds no device.
positional: plan_dir, config_maps, pods
options:
  _input:
    description: The checks of M(railops.rdma.cluster_nodes).
    type: list
    elements: dict
    required: true
  plan_dir:
    description: The plan folder of the fabric on the controller.
    type: path
    required: true
  config_maps:
    description: The device plugin's ConfigMap, or nothing when it is not there.
    type: list
    elements: dict
    default: []
  pods:
    description: The device plugin's pods.
    type: list
    elements: dict
    default: []
"""

EXAMPLES = r"""
---
- name: Show why nodes offer too little
  ansible.builtin.debug:
    msg: "{{ nodes.checks | railops.rdma.node_causes('plan/fabric', maps.resources, pods.resources) }}"
"""

RETURN = r"""
_value:
  description: The checks.
  type: list
  elements: dict
"""


Rails = dict[str, dict[str, tuple[str, str]]]


def _read_rails(plan_dir: str, nodes: set[str]) -> tuple[Rails, bool]:
    """Return rail and interface by node and resource, and whether the shared device plugin makes the resources.

    :raises AnsibleFilterError: when the plan cannot be read.
    """
    rails: Rails = {}
    try:
        pods = read_networks(plan_dir)
        values = source.planned_values(os.path.join(plan_dir, "cluster"))
        for piece in read_host_plans(plan_dir):
            if piece["node"] in nodes:
                interfaces = {rail["name"]: rail["interface"] for rail in piece["rails"]}
                networks = node_of(piece, pods).networks
                rails[piece["node"]] = {row.resource: (row.rail, interfaces[row.rail]) for row in networks}
    except (OSError, ValueError, KeyError, RdmaError) as exc:
        raise AnsibleFilterError(
            f"The plan in {plan_dir!r} cannot be read: {exc} Run the playbook railops.rdma.plan."
        ) from exc
    return rails, bool(((values.get("rdma") or {}).get("rdmaSharedDevicePlugin") or {}).get("install"))


def node_causes(
    checks: list[CheckData],
    plan_dir: str,
    config_maps: t.Sequence[dict[str, t.Any]] = (),
    pods: t.Sequence[dict[str, t.Any]] = (),
) -> list[CheckData]:
    """Return the checks with causes.

    :param config_maps: of the shared device plugin.
    :param pods: of the shared device plugin.
    """
    short = {row["node"] for row in checks if row["id"] == RESOURCES and row["status"] == "deviation"}
    if not short:
        return checks
    rails, shared = _read_rails(plan_dir, short)
    return explain(checks, rails, plugin_of(config_maps, pods) if shared else None)


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"node_causes": node_causes}
