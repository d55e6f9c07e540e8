# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a cluster would keep rails from working, whatever is installed: its own network, Multus, node addresses."""

from __future__ import annotations

import csv
import io
import ipaddress
import typing as t

from ..module_utils._cluster.nodes import listed, lost_nodes

DOCUMENTATION = r"""
name: cluster_problems
short_description: Tell what of a cluster would keep rails from working
version_added: 0.2.0
author: railops.rdma contributors (@railops)
description:
  - Returns one sentence with its remedy for each thing; an empty list when Spiderpool and rails can be installed.
  - A cluster network that is there by name and not ready. Nodes that are down are not waited for.
  - Cilium with C(cni-exclusive), which takes the folder of CNI configurations for itself and renames Multus' away.
  - Nodes whose Kubernetes address lies on a rail.
options:
  _input:
    description: The DaemonSets of the cluster.
    type: list
    elements: dict
    required: true
  networks:
    description: Names of DaemonSets that are a cluster network by themselves.
    type: list
    elements: str
    required: true
  nodes:
    description: The nodes of the cluster.
    type: list
    elements: dict
    default: []
  cilium:
    description: Cilium's ConfigMaps, of any namespace.
    type: list
    elements: dict
    default: []
  prefixes:
    description: The text of the plan's C(switch/prefixes.csv).
    type: str
    default: ""
"""

EXAMPLES = r"""
---
- name: Show what would keep rails from working
  ansible.builtin.debug:
    msg: "{{ sets.resources | railops.rdma.cluster_problems(['calico-node'], nodes=nodes.resources) }}"
"""

RETURN = r"""
_value:
  description: The problems, each with its remedy.
  type: list
  elements: str
"""

Json = dict[str, t.Any]
CILIUM = ("cilium", "rke2-cilium")


def cluster_problems(
    sets: t.Iterable[Json],
    networks: t.Collection[str],
    nodes: t.Sequence[Json] = (),
    cilium: t.Sequence[Json] = (),
    prefixes: str = "",
) -> list[str]:
    """Return what would keep rails from working.

    :param sets: the cluster's DaemonSets.
    :param networks: names of the DaemonSets of networks that rails go with.
    :param nodes: the cluster's nodes.
    :param cilium: Cilium's ConfigMaps.
    :param prefixes: the text of switch/prefixes.csv; empty without a plan.
    """
    known = [row for row in sets if row["metadata"]["name"] in networks]
    if not known:
        return [
            f"The cluster has no network of its own that this role knows ({', '.join(networks)}). Spiderpool's rails "
            "are second interfaces. Install Calico, Cilium or another CNI first, or name its DaemonSet in "
            "spiderpool_cni_daemonsets."
        ]
    return [*_not_ready(known, nodes), *_exclusive(known, cilium), *_on_rails(nodes, prefixes)]


def _not_ready(known: t.Sequence[Json], nodes: t.Sequence[Json]) -> t.Iterator[str]:
    down = lost_nodes(nodes)
    for row in known:
        status = row.get("status") or {}
        wanted, ready = status.get("desiredNumberScheduled"), status.get("numberReady", 0)
        # Somebody who plays a cluster sets no status.
        if wanted and ready < wanted - len(down):
            beside = f" ({listed(down)} down)" if down else ""
            yield (
                f"The cluster's network is not ready: {ready} of {wanted} pods of DaemonSet "
                f"{row['metadata']['name']}{beside}. "
                f"See kubectl -n {row['metadata'].get('namespace', 'kube-system')} get pods."
            )


def _exclusive(known: t.Sequence[Json], cilium: t.Sequence[Json]) -> t.Iterator[str]:
    for row in known:
        if row["metadata"]["name"] not in CILIUM:
            continue
        place = row["metadata"].get("namespace", "kube-system")
        config = next((item for item in cilium if item["metadata"].get("namespace") == place), None)
        # Without the key Cilium takes the folder for itself: its default.
        if config and (config.get("data") or {}).get("cni-exclusive", "true").lower() != "false":
            yield (
                "Cilium would push Multus aside: it renames all other CNI configurations of a node (cni-exclusive). "
                f'helm upgrade cilium with cni.exclusive=false (or cni-exclusive: "false" in ConfigMap {place}/'
                f"{config['metadata']['name']}), and restart its agents."
            )


def _on_rails(nodes: t.Sequence[Json], prefixes: str) -> t.Iterator[str]:
    rails = [(ipaddress.ip_network(row["aggregate"]), row["rail"]) for row in csv.DictReader(io.StringIO(prefixes))]
    for node in nodes:
        for entry in (node.get("status") or {}).get("addresses") or ():
            if entry.get("type") != "InternalIP":
                continue
            address = ipaddress.ip_address(entry["address"])
            rail = next((rail for net, rail in rails if net.version == address.version and address in net), None)
            if rail:
                yield (
                    f"The Kubernetes address {address} of node {node['metadata']['name']} lies on {rail}: its kubelet "
                    "speaks over the fabric. Give the kubelet --node-ip with its management address and restart it."
                )


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"cluster_problems": cluster_problems}
