# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which node of a cluster a host is: by what both tell of themselves, not by the name alone. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._errors import InputError, Problem
from .model import Json
from .nodes import lost_nodes

HOSTS: Json = {
    "type": "list",
    "elements": "dict",
    "options": {
        "host": {"type": "str"},
        "node": {"type": "str", "required": True},
        "machine_id": {"type": "str", "required": True},
        "boot_id": {"type": "str", "required": True},
        "kubelet": {"type": "str", "required": True},
    },
}


@dataclass(frozen=True)
class Machine:
    """What a node's kubelet told of its machine; `up`: whether it still speaks, so that the boot is the running one."""

    machine_id: str
    boot_id: str
    up: bool

    @classmethod
    def of(cls, live: Json) -> Machine:
        """Return what a node object says."""
        info = (live.get("status") or {}).get("nodeInfo") or {}
        return cls(info.get("machineID") or "", info.get("bootID") or "", not lost_nodes([live]))

    def is_of(self, host: Json) -> bool:
        """Whether the node is that host. Machines from one image may share their ID, and not their boot."""
        return self.machine_id == host["machine_id"] and (not self.up or self.boot_id == host["boot_id"])


def place(host: Json, nodes: t.Mapping[str, Machine]) -> tuple[bool, Problem | None]:
    """Return whether a host is its node in the cluster, and what is wrong with it.

    A host without a kubelet whose machine no node has, has not joined yet: it is none, and nothing is wrong.

    :param host: what HOSTS has of it.
    :param nodes: the cluster's nodes by name.
    """
    name, kubelet = host["node"], host["kubelet"]
    node = nodes.get(name)
    same = node is not None and (not node.machine_id or node.machine_id == host["machine_id"])
    if node and same and (not kubelet or not node.machine_id or node.is_of(host)):
        return True, None
    other = next((each for each in sorted(nodes) if each != name and nodes[each].is_of(host)), None)
    if not kubelet and not other:
        return False, None
    is_there = f"The cluster's node {name} is another machine" if node else f"The cluster has no node {name}"
    if other:
        problem = f"{is_there}, and this host is its node {other}."
        return False, Problem(host["host"] or name, problem, f"Set fabric_node_name: {other} for this host.")
    fix = (
        "Set fabric_node_name to the node that this host is (kubectl get nodes -o wide); when it is none of them, "
        "fabric_kubeconfig or KUBECONFIG names another cluster."
    )
    if same:
        fix = f"When it has just booted, run again as soon as {name} is Ready. {fix}"
    return False, Problem(host["host"] or name, f"{is_there}, and a {kubelet} runs on this host.", fix)


def joined(hosts: t.Iterable[Json], nodes: t.Mapping[str, Machine]) -> list[str]:
    """Return the nodes of the hosts that are in the cluster.

    :raises InputError: with every host that is not the node of its name.
    """
    placed = [(host["node"], *place(host, nodes)) for host in hosts]
    if problems := [problem for _name, _there, problem in placed if problem]:
        raise InputError(problems)
    return [name for name, there, _problem in placed if there]
