# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The prerequisites of a plan: the distribution, the cluster's own network, the addresses of its nodes. Pure."""

from __future__ import annotations

import ipaddress
import re
import typing as t
from dataclasses import dataclass

from .._errors import Problem
from .._fabric.facts import Aggregate
from .model import Json, below
from .nodes import listed, lost_nodes

CILIUM = ("cilium", "rke2-cilium")
PLUGINS, CONFIGURATIONS = "cniBinHostPath", "cniConfHostPath"
"""Helm values, below `global`: the folders of a node's CNI plugins and configurations."""


@dataclass(frozen=True)
class Distribution:
    """The differences between a distribution and a kubeadm cluster."""

    name: str
    sign: str
    """A pattern in a node's kubelet version, provider or labels."""
    networks: tuple[str, ...] = ()
    """DaemonSets of its own networks."""
    built_in: bool = False
    """Its network runs without a DaemonSet."""
    plugins: str = "/opt/cni/bin"
    configurations: str = "/etc/cni/net.d"
    own_multus: str = ""
    """Why the chart's Multus does not work there."""
    refused: str = ""

    @property
    def folders(self) -> dict[str, str]:
        """Return the Helm values of its folders."""
        return {PLUGINS: self.plugins, CONFIGURATIONS: self.configurations}


KUBERNETES = Distribution("Kubernetes", "")
DISTRIBUTIONS = (
    Distribution(
        "OpenShift",
        r"node\.openshift\.io/",
        refused="its network operator owns Multus and the CNI folders, and its security constraints keep the chart's "
        "privileged agents out",
    ),
    Distribution(
        "GKE",
        r"-gke\.|cloud\.google\.com/gke-",
        refused="Google's agents own the nodes' network and CNI folders, and a node's root file system is read-only; "
        "RDMA comes there by GKE's own multi-networking",
    ),
    Distribution("AKS", r"kubernetes\.azure\.com/", networks=("azure-cns",), built_in=True),
    Distribution(
        "k3s",
        r"\+k3s\d",
        built_in=True,
        plugins="/var/lib/rancher/k3s/data/cni",
        configurations="/var/lib/rancher/k3s/agent/etc/cni/net.d",
        own_multus="the chart's Multus writes /etc/cni/net.d into its configuration, where k3s has none",
    ),
    Distribution("RKE2", r"\+rke2r\d", networks=("rke2-canal", "rke2-cilium", "rke2-flannel")),
)


def distribution_of(nodes: t.Sequence[Json]) -> Distribution:
    """Return the distribution of the first node that has a sign of one."""
    for node in nodes:
        words = [below(node, "status.nodeInfo.kubeletVersion") or "", *(node["metadata"].get("labels") or ())]
        for row in DISTRIBUTIONS:
            if any(re.search(row.sign, word) for word in words):
                return row
    return KUBERNETES


def unsuited(distribution: Distribution, values: Json | None, *, multus: bool) -> t.Iterator[Problem]:
    """Yield the conflicts between the plan and a distribution.

    :param values: the Helm values; None when nothing is installed.
    :param multus: whether the chart's Multus would be installed.
    """
    if distribution.refused:
        text = f"This is {distribution.name}, which is not supported: {distribution.refused}."
        yield Problem("cluster", text, "See docs/reference/distributions.md. [distribution_unknown]")
        return
    if values is None:
        return
    have = {**KUBERNETES.folders, **(values.get("global") or {})}
    wrong = {name: path for name, path in distribution.folders.items() if have[name] != path}
    # A folder of the user's own is only judged where the distribution is known to have another one.
    if wrong and distribution.folders != KUBERNETES.folders:
        pairs = ", ".join(f"{name}: {path}" for name, path in wrong.items())
        yield Problem(
            "spiderpool_values",
            f"This is {distribution.name}, whose CNI folders differ from the chart's.",
            f"Set spiderpool_values: {{global: {{{pairs}}}}}. [cni_folders]",
        )
    if multus and distribution.own_multus:
        fix = f"Install {distribution.name}'s Multus and set cluster_components: {{multus: adopt}}. [multus_conflict]"
        yield Problem("cluster_components", f"This is {distribution.name}: {distribution.own_multus}.", fix)


def network_problems(
    sets: t.Sequence[Json],
    networks: t.Collection[str],
    nodes: t.Sequence[Json],
    cilium: t.Iterable[Json],
    distribution: Distribution = KUBERNETES,
) -> t.Iterator[Problem]:
    """Yield the problems of the cluster's own network that prevent rails from working.

    :param sets: the cluster's DaemonSets.
    :param networks: names of the DaemonSets of networks that rails go with.
    :param nodes: the cluster's nodes.
    :param cilium: Cilium's ConfigMaps, of any namespace.
    """
    every = {*networks, *distribution.networks}
    known = [row for row in sets if row["metadata"]["name"] in every]
    if not known and not distribution.built_in:
        yield Problem(
            "cluster",
            f"The cluster has no network of its own that this role knows ({', '.join(sorted(every))}). Spiderpool's "
            "rails are second interfaces.",
            "Install a CNI such as Calico first, or list its DaemonSet in spiderpool_cni_daemonsets. [cni_missing]",
        )
    down = lost_nodes(nodes)
    configs = {item["metadata"].get("namespace"): item for item in cilium}
    for row in known:
        name, place = row["metadata"]["name"], row["metadata"].get("namespace", "kube-system")
        status = row.get("status") or {}
        wanted, ready = status.get("desiredNumberScheduled"), status.get("numberReady", 0)
        # A simulated cluster sets no status.
        if wanted and ready < wanted - len(down):
            suffix = f" ({listed(down)} down)" if down else ""
            text = f"The cluster's network is not ready: {ready} of {wanted} pods of DaemonSet {name}{suffix}."
            yield Problem("cluster", text, f"See kubectl -n {place} get pods. [cni_not_ready]")
        config = configs.get(place)
        # Without the key Cilium takes the folder for itself: its default.
        if name in CILIUM and config and (config.get("data") or {}).get("cni-exclusive", "true").lower() != "false":
            yield Problem(
                "cluster",
                "Cilium would push Multus aside: it renames all other CNI configurations of a node (cni-exclusive).",
                f'helm upgrade cilium with cni.exclusive=false (or cni-exclusive: "false" in ConfigMap {place}/'
                f"{config['metadata']['name']}), and restart its agents. [cilium_exclusive]",
            )


def nodes_on_rails(nodes: t.Sequence[Json], prefixes: t.Iterable[Aggregate]) -> t.Iterator[Problem]:
    """Yield the nodes whose Kubernetes address is on a rail.

    :param prefixes: the plan's; none without a plan.
    """
    rails = [(ipaddress.ip_network(row["aggregate"]), row["rail"]) for row in prefixes]
    for node in nodes:
        for entry in (node.get("status") or {}).get("addresses") or ():
            if entry.get("type") != "InternalIP":
                continue
            address = ipaddress.ip_address(entry["address"])
            rail = next((rail for net, rail in rails if net.version == address.version and address in net), None)
            if rail:
                text = f"Its Kubernetes address {address} is on {rail}: its kubelet uses the fabric."
                fix = "Give the kubelet --node-ip with its management address and restart it. [kubelet_on_fabric]"
                yield Problem(f"node {node['metadata']['name']}", text, fix)
