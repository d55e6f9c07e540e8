# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Read from the plan which rail and interface stand behind a resource of a node."""

from __future__ import annotations

import json
import os
import typing as t

from ansible.errors import AnsibleFilterError

from ...module_utils._cluster import source
from ...module_utils._errors import RdmaError
from ...module_utils._fabric.networks import read_networks
from ...module_utils._pods.checks import node_of

Rails = dict[str, dict[str, tuple[str, str]]]


def read_rails(plan_dir: str, nodes: set[str]) -> tuple[Rails, bool]:
    """Return rail and interface by node and resource, and whether the shared device plugin makes the resources.

    :raises AnsibleFilterError: when the plan cannot be read.
    """
    cluster = os.path.join(plan_dir, "cluster")
    rails: Rails = {}
    try:
        pods = read_networks(plan_dir)
        values: dict[str, t.Any] = next(iter(source.documents(os.path.join(cluster, "values.yaml"))), {})
        for name in sorted(os.listdir(os.path.join(plan_dir, "hosts"))):
            with open(os.path.join(plan_dir, "hosts", name), encoding="utf-8") as stream:
                piece = json.load(stream)
            if piece["node"] in nodes:
                interfaces = {rail["name"]: rail["interface"] for rail in piece["rails"]}
                networks = node_of(piece, pods).networks
                rails[piece["node"]] = {row.resource: (row.rail, interfaces[row.rail]) for row in networks}
    except (OSError, ValueError, KeyError, RdmaError) as exc:
        raise AnsibleFilterError(
            f"The plan in {plan_dir!r} cannot be read: {exc} Run the playbook railops.rdma.plan."
        ) from exc
    return rails, bool(((values.get("rdma") or {}).get("rdmaSharedDevicePlugin") or {}).get("install"))
