# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: compare pods of the test application with the plan: the entry point of pod_probe."""

from __future__ import annotations

import typing as t

from ansible.module_utils.basic import AnsibleModule

from .._check import skipped
from .._errors import RdmaError
from .._fabric.facts import read_facts
from .._fabric.lock import read_host_plans, read_lock
from . import commands
from .checks import PodNode, node_of
from .run import Pods


def read_nodes(folder: str) -> dict[str, PodNode]:
    """Return what pods get on each node of a plan whose rails are all in service.

    :raises RdmaError: when there is no whole plan.
    """
    slots = read_lock(folder)["nodes"]
    networks = read_facts(folder)["networks"]
    nodes = [node_of(row, networks) for row in read_host_plans(folder) if "out_of_service" not in row]
    return {node.name: node for node in nodes if node.name in slots and not slots[node.name].get("retired")}


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Look and measure.

    :raises RdmaError: for numbers that cannot be.
    """
    params = module.params
    if params["depth"] == "none":
        return {"changed": False, "checks": [skipped("pod_application", "verify_pods is none")]}
    for name, least in (("timeout", 1), ("iterations", 1), ("parallel", 1), ("nodes", 0), ("peers", 1)):
        if params[name] < least:
            raise RdmaError(f"{name} is {params[name]}; it must be {least} or more.", f"Set {name}. [probe_number]")
    nodes = read_nodes(params["plan_dir"])
    with commands.CommandCluster(params) as cluster:
        checks = Pods(cluster, nodes, params).checks(check_mode=module.check_mode)
    return {"changed": False, "checks": checks}
