# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Says why a node offers too little of a rail's resource. Pure.

The shared device plugin is a pod that reads its selectors once, looks for an interface of that name, for the RDMA
device behind it and for that device's files. The first of these that is not so is the cause: what the cluster knows
comes from the cluster, what only the host can know from the host's own checks.
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from ...module_utils._check import CheckData as Check
from ...module_utils._check import deviation
from ...module_utils._cluster.pod_state import newest, ready, trouble

RESOURCES = "node_resources"
# The host's checks that explain why the plugin finds nothing, the first cause first.
HOST_CHECKS = (
    "rdma_device",
    "rdma_device_files",
    "rdma_link_layer",
    "network_link",
    "rdma_port_state",
    "rdma_modules",
    "rdma_netns_current",
)
_CLUSTER = "Run the playbook railops.rdma.cluster: it writes the configuration and restarts the plugin."


@dataclass(frozen=True)
class DevicePlugin:
    """What runs of the device plugin: interface names by resource (None: it has no configuration), its pods by node."""

    names: dict[str, frozenset[str]] | None
    pods: dict[str, t.Mapping[str, t.Any]]


def plugin_of(maps: t.Sequence[t.Mapping[str, t.Any]], pods: t.Iterable[dict[str, t.Any]]) -> DevicePlugin:
    """Return the plugin as its ConfigMap and its pods say.

    :param maps: the ConfigMap, or nothing.
    """
    names: dict[str, frozenset[str]] | None = None
    for row in maps:
        try:
            entries = json.loads((row.get("data") or {}).get("config.json") or "{}").get("configList") or ()
            names = {
                f"{entry.get('resourcePrefix', 'rdma')}/{entry['resourceName']}": frozenset(
                    (entry.get("selectors") or {}).get("ifNames") or ()
                )
                for entry in entries
            }
        except (ValueError, KeyError, AttributeError):
            names = None
    return DevicePlugin(names, dict(newest(pods)))


def _cause(resource: str, interface: str, node: str, have: int, plugin: DevicePlugin) -> tuple[str, str]:
    """Return cause and fix as far as the cluster knows."""
    if plugin.names is None:
        return "the device plugin has no configuration that can be read", _CLUSTER
    if resource not in plugin.names:
        return f"the device plugin's configuration does not name {resource}", _CLUSTER
    if (selected := plugin.names[resource]) and interface and interface not in selected:
        names = ", ".join(sorted(selected))
        return f"its selector names {names}, and the rail's interface on this node is {interface}", _CLUSTER
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
        f"See the host's checks rdma_device and rdma_device_files, mend them, then: kubectl delete pod -n {name}.",
    )


def explain(
    checks: t.Iterable[Check], rails: t.Mapping[str, t.Mapping[str, tuple[str, str]]], plugin: DevicePlugin | None
) -> list[Check]:
    """Return the checks with one for each rail whose resource is short, and its cause.

    :param checks: of cluster_nodes.
    :param rails: by node and resource, the rail's name and its interface there.
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
            found.append(deviation(RESOURCES, planned, {name: have}, *why, rail=rail, node=node).data())
    return found


def with_host(check: Check, own: t.Iterable[t.Mapping[str, t.Any]]) -> Check:
    """Return a check of a short resource with the cause that the host's own checks found, if they found one.

    :param own: the host's checks.
    """
    if check.get("id") != RESOURCES or check.get("status") != "deviation":
        return check
    bad = [row for row in own if row.get("status") == "deviation" and row.get("rail") in (check.get("rail"), None)]
    for name in HOST_CHECKS:
        for row in bad:
            if row.get("id") == name:
                return {**check, "cause": f"{name}: {row.get('cause')}", "fix": str(row.get("fix") or "")}
    return check
