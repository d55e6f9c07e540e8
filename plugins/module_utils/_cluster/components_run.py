# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: read a cluster before an installation: the entry point of cluster_components_info."""

from __future__ import annotations

import contextlib
import itertools
import os
import typing as t
from dataclasses import replace

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.common.yaml import yaml_load_all

from .._errors import Problem, RdmaError
from .._fabric.facts import Facts, read_facts
from .._fabric.labels import CONFIG, NETWORK, SRIOV
from .._fabric.lock import LOCK, read_lock
from .._validation import parsed, validate
from . import components, networks
from .adopted import AdoptedPart, differences
from .api_errors import Forbidden
from .calico import patches
from .client import Cluster
from .compare import applied
from .components import ADOPT, DEVICE_PLUGIN, MANAGED, MULTUS, SPIDERPOOL, SRIOV_OPERATOR, FoundPart, Release
from .crds import API, sort
from .model import Json, below
from .prerequisites import CILIUM, distribution_of, network_problems, nodes_on_rails, unsuited
from .requirements import yaml

OPERATED = (("mellanox.com/v1alpha1", "NicClusterPolicy"), ("mellanox.com/v1alpha1", "NicNodePolicy"))
CONFIG_MAP = ("v1", "ConfigMap")
CALICO, COORDINATOR = "calico-node", "SpiderCoordinator"
INSTALLATION = ("operator.tigera.io/v1", "Installation")
# The CRD by which an operator is known that runs elsewhere, or is left over.
PROOFS = {
    MULTUS: f"network-attachment-definitions.{NETWORK[0].partition('/')[0]}",
    SRIOV_OPERATOR: f"sriovnetworknodepolicies.{SRIOV.partition('/')[0]}",
}


NO_CHANGES: Json = {
    "changed": False,
    "components": {},
    "crds": [],
    "left": [],
    "existing_crds": [],
    "notes": [],
    "calico_set": {},
}


def crds_there(cluster: Cluster, names: t.Iterable[str]) -> dict[str, Json]:
    """Return the CRDs of these names that are there."""
    found = {name: cluster.one(*API, name) for name in names}
    return {name: crd for name, crd in found.items() if crd is not None}


def mounted(cluster: Cluster, found: t.Iterable[FoundPart], key: str) -> str | None:
    """Return a key of a ConfigMap that workloads mount."""
    for row in found:
        for volume in below(row.body, "spec.template.spec.volumes") or ():
            name = (volume.get("configMap") or {}).get("name")
            config = cluster.one(*CONFIG_MAP, name, row.body["metadata"]["namespace"]) if name else None
            if config and key in (config.get("data") or {}):
                return str(config["data"][key])
    return None


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Return the managed and the adopted components, or fail with all conflicts."""
    params = module.params
    with Cluster(params, retry_seconds=10) as cluster:
        release = Release(**{name: value for name, value in params["release"].items() if name != "values"})
        if params["state"] == "absent":
            return removable(cluster, params["crds"], release)
        if params["state"] == "networks":
            return compared(cluster, params)
        return survey_components(cluster, params, release)


def cilium_maps(cluster: Cluster, sets: t.Iterable[Json], name: str) -> t.Iterator[Json]:
    """Yield Cilium's ConfigMaps.

    :param sets: the cluster's DaemonSets.
    :param name: of the ConfigMap.
    """
    spaces = dict.fromkeys(row["metadata"]["namespace"] for row in sets if row["metadata"]["name"] in CILIUM)
    yield from filter(None, (cluster.one(*CONFIG_MAP, name, space) for space in spaces))


def network_sources(cluster: Cluster, cilium: str) -> t.Iterator[tuple[str, networks.Found]]:
    """Yield the names of objects that list networks of the cluster, and their networks, read only when they are used.

    :param cilium: the name of Cilium's ConfigMap.
    """
    yield (
        "ConfigMap kube-system/kubeadm-config",
        networks.of_kubeadm(lambda: cluster.one(*CONFIG_MAP, "kubeadm-config", "kube-system")),
    )
    yield "Cilium's ConfigMap", networks.of_cilium(cilium_maps(cluster, cluster.each("apps/v1", "DaemonSet"), cilium))
    yield "nodes", networks.of_nodes(cluster.each("v1", "Node"))
    for version, kind in networks.POOLS:
        yield f"{kind} ({version})", networks.of_pools(cluster.each(version, kind))


def compared(cluster: Cluster, params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Compare the cluster's own networks with those of the plan.

    :raises RdmaError: some overlap; all of them are named.
    """
    facts, folder = planned_facts(params["cluster_dir"] or ""), os.path.dirname(params["cluster_dir"] or "")
    rails = networks.parsed([row["aggregate"] for row in facts["prefixes"]])
    if not rails:
        return NO_CHANGES
    found: list[tuple[str, list[networks.Network]]] = []
    notes: list[str] = []
    for name, rows in network_sources(cluster, params["cilium_config"]):
        try:
            found += rows
        except Forbidden:
            notes.append(name)
    supernets = [text for zone in read_lock(folder)["frozen"]["zones"] for text in zone["supernets"]]
    declared = networks.parsed(params["existing_networks"])
    hits = list(networks.overlaps(found, rails, networks.parsed(supernets), declared))
    if hits:
        line = ", ".join(map(str, networks.collapsed([*declared, *(hit.network for hit in hits)])))
        move = "Change fabric_supernets, and add" if any(hit.rails for hit in hits) else "Add"
        raise RdmaError(
            "".join(f"{hit}\n" for hit in hits),
            f"{move} fabric_existing_networks: [{line}] to group_vars/all; then run the playbook railops.rdma.plan. "
            "[cluster_network_overlaps]",
            problems=[str(hit) for hit in hits],
        )
    return {**NO_CHANGES, "notes": notes}


def removable(cluster: Cluster, charts: list[Json], release: Release) -> dict[str, t.Any]:
    """Return the CRDs of a chart that only this collection made and no object uses, and those that stay, with reasons.

    `existing_crds`: the SR-IOV operator's CRD where it is not ours; the chart's hook would delete it.
    """
    proof = PROOFS[SRIOV_OPERATOR]
    live = crds_there(cluster, {proof, *(crd["metadata"]["name"] for crd in charts)})
    users: dict[str, int] = {}
    for name, crd in live.items():
        if applied(crd["metadata"]) and not components.owner_of(crd["metadata"]).marked:
            rows = [] if crd["spec"]["names"]["kind"] == COORDINATOR else cluster.listed(*kind_of(crd))
            users[name] = sum(components.owner_of(row["metadata"]).marked != str(release) for row in rows)
    names = sorted({crd["metadata"]["name"] for crd in charts} & live.keys())
    why = {
        name: f"{users[name]} objects use it"
        if name in users
        else f"it belongs to {components.owner_of(live[name]['metadata']).name}"
        for name in names
        if users.get(name) != 0
    }
    return {
        **NO_CHANGES,
        "crds": [name for name in names if name not in why],
        "left": [f"CRD {name} stays: {text}" for name, text in why.items()],
        "existing_crds": [proof] if proof in live and proof not in users else [],
    }


def kind_of(crd: Json) -> tuple[str, str]:
    """Return API version and kind of what a CRD defines."""
    spec = crd["spec"]
    version = next(row["name"] for row in spec["versions"] if row.get("served", True))
    return f"{spec['group']}/{version}", spec["names"]["kind"]


class ComponentDiscovery:
    """What was read: DaemonSets, nodes, networks, the parts that are there, CRDs by name; and what of the plan."""

    def __init__(self, cluster: Cluster, params: dict[str, t.Any], release: Release) -> None:
        self.cluster, self.params = cluster, params
        self.sets, self.networks = cluster.listed("apps/v1", "DaemonSet"), cluster.listed(*NETWORK)
        self.nodes = cluster.listed("v1", "Node")
        self.distribution = distribution_of(self.nodes)
        self.found = [*components.workloads_found([*cluster.listed("apps/v1", "Deployment"), *self.sets], release)]
        self.found += components.policies_found([row for kind in OPERATED for row in cluster.listed(*kind)])
        self.found += components.networks_found(self.networks)
        if release.there and not release.managed and not self.of(SPIDERPOOL):
            chart = release.chart.rpartition("-")[2]
            self.found.append(FoundPart(SPIDERPOOL, f"release {release}", f"the Helm release {release}", chart))
        self.crds = crds_there(cluster, {*PROOFS.values(), *(crd["metadata"]["name"] for crd in params["crds"])})
        for part, name in PROOFS.items():
            if name in self.crds and not self.of(part):
                owner = components.owner_of(self.crds[name]["metadata"]).name
                self.found.append(FoundPart(part, f"CRD {name}", owner, sure=components.SERVED))
        self.facts = planned_facts(params["cluster_dir"] or "")

    def of(self, part: str) -> list[FoundPart]:
        """Return what is there of a part."""
        return [row for row in self.found if row.part == part]

    def calico_set(self) -> Json:
        """Return what is to be changed of Calico so that it takes no rail's address for a node's, as `patches` does."""
        for node in (row for row in self.sets if row["metadata"]["name"] == CALICO):
            prefixes = {row["aggregate"] for row in self.facts["prefixes"]}
            return patches(node, self.cluster.one(*INSTALLATION, "default"), self.facts["interfaces"], prefixes)
        return {}

    def ground_problems(self, managed: set[str]) -> t.Iterator[Problem]:
        """Yield the conflicts between the plan and the cluster itself.

        :param managed: the parts that this collection installs.
        """
        params, facts = self.params, self.facts
        cilium = cilium_maps(self.cluster, self.sets, params["cilium_config"])
        rows = [row for group in facts["networks"].values() for row in group] if CONFIG in facts["kinds"] else []
        values = params["values"] if SPIDERPOOL in managed else None
        yield from unsuited(self.distribution, values, multus=MULTUS in managed)
        yield from network_problems(self.sets, params["networks"], self.nodes, cilium, self.distribution)
        yield from unknown_kinds(self.cluster, params["kinds"], params["crds"])
        yield from nodes_on_rails(self.nodes, facts["prefixes"])
        yield from components.taken_networks(self.networks, {row["name"] for row in rows})

    def adopted_problems(self, parts: dict[str, str]) -> t.Iterator[Problem]:
        """Yield the adopted components' unmet requirements.

        :param parts: managed or adopt, by part.
        """
        folders = {**self.distribution.folders, **(self.params["values"].get("global") or {})}
        for part, state in parts.items():
            if state == ADOPT and (rows := self.of(part)):
                seen = self.seen(part, rows)
                yield from differences(part, self.params["values"], folders, self.facts["namespace"], seen)

    def seen(self, part: str, rows: list[FoundPart]) -> AdoptedPart:
        """Return what an adopted part says of itself, of which `rows` are there."""
        with contextlib.suppress(ValueError, yaml.YAMLError):
            if part == SPIDERPOOL:
                text = mounted(self.cluster, rows, "conf.yml") or ""
                return AdoptedPart(rows, config=validate(next(iter(yaml_load_all(text)), {}) or {}, {}, "it"))
            if part == DEVICE_PLUGIN:
                own: list[t.Any] = [row.body["config"] for row in rows if "config" in row.body]
                given = own[0] if own else mounted(self.cluster, rows, "config.json")
                read = validate(parsed(given) if isinstance(given, str) else given, {"configList": (None, [{}])}, "it")
                return AdoptedPart(rows, plugin=read.get("configList") or [])
        return AdoptedPart(rows)


def survey_components(cluster: Cluster, params: dict[str, t.Any], noted: Release) -> dict[str, t.Any]:
    """Return whether each component is managed or adopted.

    :raises RdmaError: with all conflicts at once.
    """
    release = replace(noted, managed=noted.managed or params["take_ownership"])
    survey = ComponentDiscovery(cluster, params, release)
    settings = {name: value for name, value in params["components"].items() if value}
    parts, problems, undecided = components.states(components.needed(params["values"]), settings, survey.found, release)
    managed = {part for part, state in parts.items() if state == MANAGED}
    changes = []
    if noted.there and not noted.managed and SPIDERPOOL in managed and SPIDERPOOL not in undecided:
        changes = list(components.value_changes(params["release"]["values"], params["values"]))
        if not release.managed:
            problems.append(
                Problem(
                    f"release {release}",
                    "This collection does not manage it. Helm would set it to the plan's values: "
                    f"{'; '.join(changes) or 'no value differs'}.",
                    "Set spiderpool_take_ownership: true to take it over with these. [release_existing]",
                )
            )
    charts = params["crds"] if SPIDERPOOL in managed else []
    crds, left, existing = sort(charts, survey.crds, managed, release)
    problems += [*survey.ground_problems(managed), *existing, *survey.adopted_problems(parts)]
    if problems:
        lines = "\n".join(f"  - {problem}" for problem in problems)
        setting = ", ".join(f"{part}: {ADOPT}" for part in undecided)
        line = f" The line for all of them: cluster_components: {{{setting}}}." if undecided else ""
        text = f"{len(problems)} conflict(s) between the cluster and the plan:\n{lines}\n"
        fix = f"Nothing was changed. Fix what is listed and run again.{line} [cluster_conflict]"
        raise RdmaError(text, fix, problems=[str(problem) for problem in problems])
    adopted = {part for part, state in parts.items() if state == ADOPT}
    unmanaged = [row for row in survey.found if not row.managed]
    installed = {row.part: row for row in unmanaged if row.sure > components.SERVED or row.part in adopted}
    notes = [
        f"{components.KINDS[part].title} ({row}) {'is adopted' if part in adopted else 'exists too, and stays'}"
        for part, row in sorted(installed.items())
    ]
    return {
        **NO_CHANGES,
        "components": parts,
        "crds": crds,
        "left": left,
        "notes": [*notes, *([f"release {release} is taken over: {'; '.join(changes)}"] if changes else [])],
        "calico_set": survey.calico_set(),
    }


def planned_facts(cluster_dir: str) -> Facts:
    """Return the facts of the plan whose folder `cluster/` this is; nothing of a folder that is no plan's.

    :raises RdmaError: when its files were changed.
    """
    folder = os.path.dirname(os.path.abspath(cluster_dir))
    if cluster_dir and os.path.exists(os.path.join(folder, LOCK)):
        return read_facts(folder)
    return t.cast("Facts", {"kinds": [], "namespace": "", "networks": {}, "interfaces": [], "prefixes": []})


def unknown_kinds(cluster: Cluster, kinds: list[str], charts: list[Json]) -> t.Iterator[Problem]:
    """Yield the kinds of a release that the cluster does not know: helm would then make none of its objects."""
    known = itertools.chain(charts, cluster.each(*API)) if kinds else ()
    left = set(kinds) - {f"{crd['spec']['names']['kind']}.{crd['spec']['group']}" for crd in known}
    if left:
        yield Problem(
            "spiderpool_values",
            f"The cluster does not know {', '.join(sorted(left))}.",
            "Install the operator that brings it first (Grafana's for GrafanaDashboard, Prometheus' for ServiceMonitor "
            "and PrometheusRule, cert-manager for Certificate), or leave that out: see spiderpool_grafana, "
            "spiderpool_tls_method and spiderpool_values. [kind_unknown]",
        )
