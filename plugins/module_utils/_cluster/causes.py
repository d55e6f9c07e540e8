# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Explains why a node offers too little of a rail's resource. Pure.

The shared device plugin is a pod that reads its selectors once, looks for an interface of that name, for the RDMA
device behind it and for that device's files. The first missing step is the cause. The cluster's data shows the steps
that the cluster knows, the host's own checks show the others.
"""

from __future__ import annotations

import contextlib
import typing as t
from dataclasses import dataclass

from .._check import Check, deviation
from .._validation import parsed, validate
from .model import Json
from .nodes import RESOURCES, resource
from .pod_state import newest, ready, trouble

PLUGIN = "spiderpool-rdma-shared-device-plugin"
"""The name of the shared device plugin's ConfigMap, and what its pods have for the label `app`."""
_CONFIG = (
    f"After a change of the plan, run the playbook railops.rdma.cluster. If the ConfigMap {PLUGIN} was edited, restore "
    "it from `helm get manifest`, and restart the plugin."
)
_SELECTORS = {"configList": (None, [{"selectors": (None, {"ifNames": (None, [str])})}])}


@dataclass(frozen=True)
class DevicePlugin:
    """The running device plugin: interface names by resource (None: it has no configuration), its pods by node."""

    names: dict[str, frozenset[str]] | None
    pods: dict[str, Json]


def plugin_of(config: Json | None, pods: t.Iterable[Json]) -> DevicePlugin:
    """Return the plugin as its ConfigMap, if there is one, and its pods say."""
    names: dict[str, frozenset[str]] | None = None
    # Untrusted: every user who may change the ConfigMap may have written it.
    with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
        data = validate(parsed(((config or {})["data"] or {})["config.json"]), _SELECTORS, "it")
        names = {
            resource(entry): frozenset((entry.get("selectors") or {}).get("ifNames") or ())
            for entry in data.get("configList") or ()
        }
    return DevicePlugin(names, newest(pods))


def _cause(resource: str, interface: str, node: str, have: int, plugin: DevicePlugin) -> tuple[str, str]:
    """Return cause and fix as far as the cluster knows."""
    if plugin.names is None:
        return "the device plugin has no configuration that can be read", _CONFIG
    if resource not in plugin.names:
        return f"the device plugin's configuration does not name {resource}", _CONFIG
    if (selected := plugin.names[resource]) and interface and interface not in selected:
        names = ", ".join(sorted(selected))
        return f"its selector names {names}, and the rail's interface on this node is {interface}", _CONFIG
    pod = plugin.pods.get(node)
    look = "kubectl get pods -A -o wide -l app=spiderpool-rdma-shared-device-plugin"
    if pod is None:
        return "no pod of the device plugin runs on this node", f"Look at the node's taints and at {look}."
    if not ready(pod) or any(
        not row.get("ready", True) for row in (pod.get("status") or {}).get("containerStatuses") or ()
    ):
        mode = "in RDMA namespace mode exclusive it ends at once, the role rdma_host sets shared"
        fix = f"Read its log ({look}): {mode}."
        return f"the device plugin's pod on this node does not work: {trouble(pod).text}", fix
    name = f"{pod['metadata'].get('namespace')} {pod['metadata']['name']}"
    if have:
        return "the running plugin was started with another number", f"Run: kubectl delete pod -n {name}."
    return (
        f"the device plugin finds no RDMA device of {interface or 'the selector'} on this node: the interface, its "
        "driver's RDMA half, or a file in /dev/infiniband (uverbs, umad, rdma_cm) is missing, or came after its start",
        f"See the host's checks rdma_device and rdma_device_files, repair them, then: kubectl delete pod -n {name}.",
    )


def explain(
    checks: t.Iterable[Check], rails: t.Mapping[str, t.Mapping[str, tuple[str, str]]], plugin: DevicePlugin | None
) -> list[Check]:
    """Return the checks with one for each rail whose resource is short, and its cause.

    :param checks: of cluster_nodes.
    :param rails: by node and resource, the rail's name (empty: several share it) and its interface there.
    :param plugin: None where rails are no matter of the shared device plugin.
    """
    found: list[Check] = []
    for row in checks:
        if row.get("id") != RESOURCES or row.get("status") != "deviation":
            found.append(row.copy())
            continue
        node = str(row.get("node"))
        for name in [name for name, amount in row["planned"].items() if row["observed"].get(name, 0) < amount]:
            rail, interface = rails.get(node, {}).get(name, (None, ""))
            have = row["observed"].get(name, 0)
            why = _cause(name, interface, node, have, plugin) if plugin else (row["cause"], row["fix"])
            planned = {name: row["planned"][name]}
            found.append(deviation(RESOURCES, planned, {name: have}, *why, rail=rail or None, node=node))
    return found
