# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Matches hosts to nodes of a cluster by IDs that both report, not only by name. Pure."""

from __future__ import annotations

import typing as t

from .._errors import InputError, Problem
from .model import Json, below
from .nodes import lost_nodes

HOST_KEYS = ("host", "node", "machine_id", "boot_id", "kubelet")
"""The identity that a host reports."""


def _is(live: Json, host: Json) -> bool:
    """Whether a node is that host. Machines from one image may share their ID, and not their boot."""
    info = below(live, "status.nodeInfo") or {}
    # Of a kubelet that is silent the boot is not the running one.
    boot = bool(lost_nodes([live])) or info.get("bootID", "") == host["boot_id"]
    return bool(info.get("machineID", "") == host["machine_id"] and boot)


def place(host: Json, nodes: t.Mapping[str, Json]) -> tuple[bool, Problem | None]:
    """Return whether a host is its node in the cluster, and what is wrong with it.

    A host without a kubelet whose machine no node has, has not joined yet: it is none, and nothing is wrong.

    :param host: HOST_KEYS of it.
    :param nodes: the cluster's nodes by name.
    """
    name, kubelet = host["node"], host["kubelet"]
    node = nodes.get(name)
    known = below(node, "status.nodeInfo.machineID")
    same = node is not None and known in (None, "", host["machine_id"])
    if node and same and (not kubelet or not known or _is(node, host)):
        return True, None
    other = next((each for each in sorted(nodes) if each != name and _is(nodes[each], host)), None)
    if not kubelet and not other:
        return False, None
    is_there = f"The cluster's node {name} is another machine" if node else f"The cluster has no node {name}"
    if other:
        problem = f"{is_there}, and this host is its node {other}."
        fix = f"Set fabric_node_name: {other} for this host. [node_name_differs]"
        return False, Problem(host["host"] or name, problem, fix)
    booted = f"When it has just booted, run again as soon as {name} is Ready. " if same else ""
    fix = (
        f"{booted}Set fabric_node_name to the node that this host is (kubectl get nodes -o wide); when it is none of "
        "them, fabric_kubeconfig or KUBECONFIG names another cluster. [node_not_ready]"
    )
    return False, Problem(host["host"] or name, f"{is_there}, and a {kubelet} runs on this host.", fix)


def joined(hosts: t.Iterable[Json], nodes: t.Iterable[Json]) -> list[str]:
    """Return the names of the hosts' nodes that are in the cluster.

    :param nodes: the cluster's.
    :raises InputError: with every host that is not the node of its name.
    """
    names = {node["metadata"]["name"]: node for node in nodes}
    placed = [(host["node"], *place(host, names)) for host in hosts]
    if problems := [problem for _name, _there, problem in placed if problem]:
        raise InputError(problems)
    return [name for name, there, _problem in placed if there]
