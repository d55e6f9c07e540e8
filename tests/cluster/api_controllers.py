# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The least of the controllers that waits need: workloads become ready, namespaces end, pools let go.

None of this is Kubernetes or Spiderpool: it only moves the fields that a client waits for.
"""

from __future__ import annotations

import copy
import ipaddress
import json
import threading
import time
import typing as t

from api_kinds import Kind
from api_store import Json, Store, dig, now

from ansible_collections.railops.rdma.tests.unit import nv_ipam

SPIDERPOOL = "spiderpool.spidernet.io"
SRIOV = "sriovnetwork.openshift.io"
COMPONENT = "app.kubernetes.io/component"
INJECT = "cni.spidernet.io/rdma-resource-inject"
NETWORKS = "k8s.v1.cni.cncf.io/networks"
CORDON = "node.kubernetes.io/unschedulable"


class Controllers:
    """Hooks of a store. `ready` off leaves workloads as they are: nothing becomes ready."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.ready = True
        self.hold_crds = False
        self.sync = "Succeeded"
        store.after.append(self.after)

    def resume(self) -> None:
        """Let workloads become ready again, those too that came meanwhile."""
        self.ready = True
        with self.store.lock:
            for name in ("Deployment", "DaemonSet", "Job"):
                kind = self.store.kind_of("batch/v1" if name == "Job" else "apps/v1", name)
                for obj in list(self.store.table(kind).values()):
                    self.after(kind, None, obj)

    def after(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """React to a write."""
        if new is None:
            self.deleted(kind, old or {})
            return
        act = getattr(self, f"on_{kind.kind.lower()}", None)
        if act is not None:
            act(kind, old, new)

    def restatus(self, kind: Kind, obj: Json, **status: t.Any) -> None:
        """Set fields of the status."""
        meta = obj["metadata"]
        self.store.patch_status(kind, meta.get("namespace", ""), meta["name"], {**(obj.get("status") or {}), **status})

    def on_customresourcedefinition(self, kind: Kind, _old: Json | None, new: Json) -> None:
        if self.hold_crds:
            return
        conditions = [{"type": name, "status": "True", "reason": "Double"} for name in ("NamesAccepted", "Established")]
        stored = [row["name"] for row in new["spec"]["versions"] if row.get("storage")]
        self.restatus(kind, new, conditions=conditions, storedVersions=stored, acceptedNames=new["spec"]["names"])

    def on_namespace(self, kind: Kind, _old: Json | None, new: Json) -> None:
        """Empty a namespace that ends; what holds an object in it holds the namespace."""
        if not new["metadata"].get("deletionTimestamp"):
            return
        self.restatus(kind, new, phase="Terminating")
        name = new["metadata"]["name"]
        inside = [
            (other, key) for other in self.store.kinds.values() if other.namespaced
            for key in self.store.table(other) if key[0] == name
        ]  # fmt: skip
        for other, key in inside:
            # What goes with its owner is gone when its turn comes; what ends the namespace may be the last of them.
            if key in self.store.table(other):
                self.store.delete(other, *key, {}, {})
        if not inside and ("", name) in self.store.table(kind):
            self.store.drop(kind, "", name, new)

    def deleted(self, kind: Kind, old: Json) -> None:
        """End the namespace that waits for this object."""
        homes = self.store.kind_of("v1", "Namespace")
        home = self.store.table(homes).get(("", old["metadata"].get("namespace", "")))
        if kind.namespaced and home and home["metadata"].get("deletionTimestamp"):
            self.on_namespace(homes, None, home)

    def on_deployment(self, kind: Kind, _old: Json | None, new: Json) -> None:
        if not self.ready:
            return
        count = dig(new, "spec.replicas")
        count = 1 if count is None else count
        generation = new["metadata"]["generation"]
        conditions = [{"type": "Available", "status": "True"}, {"type": "Progressing", "status": "True"}]
        self.replica_set(new, count)
        self.restatus(
            kind, new, observedGeneration=generation, replicas=count, updatedReplicas=count, readyReplicas=count,
            availableReplicas=count, conditions=conditions,
        )  # fmt: skip
        if component(new) == "spiderpool-sriov-operator":
            self.sriov_operator(new["metadata"]["namespace"])

    def replica_set(self, deployment: Json, count: int) -> None:
        """Make the ReplicaSet that helm looks for behind a Deployment."""
        store, meta = self.store, deployment["metadata"]
        kind = store.kind_of("apps/v1", "ReplicaSet")
        body = {
            "metadata": {
                "name": f"{meta['name']}-{meta['generation']}",
                "labels": dig(deployment, "spec.template.metadata.labels") or {},
                "ownerReferences": [self.owner("apps/v1", "Deployment", deployment)],
            },
            "spec": {key: deployment["spec"][key] for key in ("selector", "template") if key in deployment["spec"]},
        }
        if (meta["namespace"], body["metadata"]["name"]) not in store.table(kind):
            made = store.create(kind, meta["namespace"], body, {}, "controller")
            self.restatus(kind, made, replicas=count, readyReplicas=count, availableReplicas=count)

    @staticmethod
    def owner(api_version: str, kind: str, obj: Json) -> Json:
        """Return an owner reference."""
        meta = obj["metadata"]
        return {"apiVersion": api_version, "kind": kind, "name": meta["name"], "uid": meta["uid"], "controller": True}

    def fitting_nodes(self, spec: Json) -> list[Json]:
        """Return the nodes that a DaemonSet's pods are made for: chosen by selector and affinity, taints tolerated."""
        chosen = []
        terms = (
            dig(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms") or []
        )
        for node in self.store.rows[("", "nodes")].values():
            labels = node["metadata"].get("labels") or {}
            fits = all(labels.get(key) == value for key, value in (spec.get("nodeSelector") or {}).items())
            values = {**labels, "metadata.name": node["metadata"]["name"]}
            if fits and terms:
                fits = any(
                    all(
                        (values.get(row["key"]) in row.get("values", [])) == (row["operator"] == "In")
                        for row in [*term.get("matchExpressions", []), *term.get("matchFields", [])]
                    )
                    for term in terms
                )
            # Its pods are made for cordoned nodes as well.
            if fits and not [taint for taint in untolerated(node, spec) if taint != CORDON]:
                chosen.append(node)
        return chosen

    def on_daemonset(self, kind: Kind, old: Json | None, new: Json) -> None:
        if not self.ready:
            return
        template = dig(new, "spec.template") or {}
        nodes = self.fitting_nodes(template.get("spec") or {})
        changed = old is None or dig(old, "spec.template") != template
        if changed:
            self.pods(new, template, nodes)
            self.device_plugin(new)
        count = len(nodes)
        self.restatus(
            kind, new, observedGeneration=new["metadata"]["generation"], desiredNumberScheduled=count,
            numberReady=count,
            currentNumberScheduled=count, updatedNumberScheduled=count, numberAvailable=count, numberMisscheduled=0,
        )  # fmt: skip

    def pods(self, owner: Json, template: Json, nodes: list[Json]) -> None:
        """Make one running pod a node."""
        store, meta = self.store, owner["metadata"]
        kind = store.kind_of("v1", "Pod")
        for key, pod in list(store.table(kind).items()):
            if any(row["uid"] == meta["uid"] for row in pod["metadata"].get("ownerReferences") or ()):
                store.drop(kind, *key, pod)
        for number, node in enumerate(nodes):
            body = {
                "metadata": {
                    "name": f"{meta['name']}-{meta['generation']}-{number}",
                    "labels": dig(template, "metadata.labels") or {},
                    "annotations": dig(template, "metadata.annotations") or {},
                    "ownerReferences": [self.owner("apps/v1", "DaemonSet", owner)],
                },
                "spec": {**copy.deepcopy(template.get("spec") or {}), "nodeName": node["metadata"]["name"]},
                "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
            }
            store.create(kind, meta["namespace"], body, {}, "controller")

    def device_plugin(self, daemon_set: Json) -> None:
        """Advertise what the plugin's ConfigMap says, read only when its pods start."""
        meta = daemon_set["metadata"]
        if component(daemon_set) != "spiderpool-rdma-shared-device-plugin":
            return
        found = self.store.rows[("", "configmaps")].get((meta["namespace"], meta["name"]))
        config = json.loads(dig(found, "data")["config.json"]) if found else {}
        amounts = {
            f"{row.get('resourcePrefix', 'rdma')}/{row['resourceName']}": str(row.get("rdmaHcaMax", 0))
            for row in config.get("configList") or ()
        }
        for node in list(self.store.rows[("", "nodes")].values()):
            self.advertise(node, amounts)

    def advertise(self, node: Json, amounts: dict[str, str]) -> None:
        """Set extended resources of a node."""
        kind = self.store.kind_of("v1", "Node")
        status = copy.deepcopy(node.get("status") or {})
        for field in ("capacity", "allocatable"):
            status.setdefault(field, {}).update(amounts)
        self.store.patch_status(kind, "", node["metadata"]["name"], status)

    def on_job(self, kind: Kind, _old: Json | None, new: Json) -> None:
        if self.ready:
            conditions = [{"type": "Complete", "status": "True"}]
            # helm watches for the change: a Job that is complete at once would be seen too, but never so in a cluster.
            timer = threading.Timer(
                0.2, lambda: self.finish_job(kind, new, succeeded=1, completionTime=now(), conditions=conditions)
            )
            timer.daemon = True
            timer.start()

    def finish_job(self, kind: Kind, job: Json, **status: t.Any) -> None:
        """Complete a Job that is still there."""
        with self.store.lock:
            meta = job["metadata"]
            if (meta["namespace"], meta["name"]) in self.store.table(kind):
                self.restatus(kind, job, **status)
                if meta["name"] == "spiderpool-init":
                    self.coordinator()

    def coordinator(self) -> None:
        """Make what the chart's first Job makes, and what its controller then says of it."""
        kind = self.store.kind_of(f"{SPIDERPOOL}/v2beta1", "SpiderCoordinator")
        if ("", "default") not in self.store.table(kind):
            body = {"metadata": {"name": "default"}, "spec": {"mode": "auto", "podCIDRType": "auto"}}
            made = self.store.create(kind, "", body, {}, "spiderpool-init")
            self.restatus(kind, made, phase="Synced", overlayPodCIDR=[], serviceCIDR=["10.96.0.0/16"])

    # Spiderpool and the SR-IOV operator

    def on_spiderippool(self, kind: Kind, _old: Json | None, new: Json) -> None:
        allocated = dig(new, "status.allocatedIPCount") or 0
        if new["metadata"].get("deletionTimestamp"):
            if not allocated and new["metadata"].get("finalizers"):
                self.store.drop(kind, "", new["metadata"]["name"], new)
        elif dig(new, "status.totalIPCount") is None:
            total = sum(map(size, new["spec"].get("ips") or ())) - sum(map(size, new["spec"].get("excludeIPs") or ()))
            self.restatus(kind, new, allocatedIPCount=allocated, totalIPCount=total)

    def on_spidermultusconfig(self, _kind: Kind, old: Json | None, new: Json) -> None:
        store, meta = self.store, new["metadata"]
        try:
            kind = store.kind_of("k8s.cni.cncf.io/v1", "NetworkAttachmentDefinition")
        except KeyError:
            return
        if old is None:
            owner = self.owner("spiderpool.spidernet.io/v2beta1", "SpiderMultusConfig", new)
            body = {"metadata": {"name": meta["name"], "ownerReferences": [owner]}, "spec": {"config": "{}"}}
            store.create(kind, meta["namespace"], body, {}, "spiderpool-controller")

    def on_cidrpool(self, kind: Kind, old: Json | None, new: Json) -> None:
        """Give every node that the pool selects its prefix, and nothing at all of a pool that is wrong."""
        if new["metadata"].get("deletionTimestamp") or dig(old, "spec") == new["spec"]:
            return
        self.give_prefixes(kind, new)

    def give_prefixes(self, kind: Kind, pool: Json) -> None:
        nodes = {key[1]: dig(node, "metadata.labels") or {} for key, node in self.store.rows[("", "nodes")].items()}
        before = [
            nv_ipam.Allocation(row["nodeName"], row["prefix"], row.get("gateway", ""))
            for row in dig(pool, "status.allocations") or ()
        ]
        rows = [
            {"nodeName": one.node, "prefix": one.prefix, **({"gateway": one.gateway} if one.gateway else {})}
            for one in nv_ipam.reconcile(pool, nodes, before)
        ]
        self.restatus(kind, pool, allocations=rows)

    def sriov_operator(self, namespace: str) -> None:
        """Make one node state a node, as the operator's daemon does."""
        try:
            kind = self.store.kind_of(f"{SRIOV}/v1", "SriovNetworkNodeState")
        except KeyError:
            return
        for name in [key[1] for key in self.store.rows[("", "nodes")]]:
            if (namespace, name) not in self.store.table(kind):
                made = self.store.create(
                    kind, namespace, {"metadata": {"name": name}, "spec": {}}, {}, "sriov-operator"
                )
                self.restatus(kind, made, syncStatus="Succeeded", interfaces=[])

    def on_node(self, _kind: Kind, old: Json | None, new: Json) -> None:
        if dig(old, "metadata.labels") != dig(new, "metadata.labels"):
            for (group, plural), rows in list(self.store.rows.items()):
                if plural == "cidrpools":
                    for pool in list(rows.values()):
                        self.give_prefixes(self.store.kind_of(f"{group}/v1alpha1", "CIDRPool"), pool)
                if (group, plural) == (SRIOV, "sriovnetworknodepolicies"):
                    for policy in list(rows.values()):
                        self.on_sriovnetworknodepolicy(_kind, None, policy)

    def on_sriovnetworknodepolicy(self, _kind: Kind, _old: Json | None, new: Json) -> None:
        states = self.store.kind_of(f"{SRIOV}/v1", "SriovNetworkNodeState")
        spec = new["spec"]
        for node in self.store.rows[("", "nodes")].copy().values():
            if not (spec.get("nodeSelector") or {}).items() <= (node["metadata"].get("labels") or {}).items():
                continue
            key = (new["metadata"]["namespace"], node["metadata"]["name"])
            state = self.store.table(states).get(key)
            if state is not None:
                self.store.patch_status(states, *key, {**(state.get("status") or {}), "syncStatus": self.sync})
            if self.sync == "Succeeded":
                self.advertise(node, {f"spidernet.io/{spec['resourceName']}": str(spec.get("numVfs", 0))})


def untolerated(node: Json, spec: Json) -> list[str]:
    """Return what keeps pods with these tolerations off a node: the keys of taints, a cordon as its taint."""
    rows = list(dig(node, "spec.taints") or ())
    rows += [{"key": CORDON, "effect": "NoSchedule"}] if dig(node, "spec.unschedulable") else []
    found = []
    for taint in rows:
        let = [
            row
            for row in spec.get("tolerations") or ()
            if row.get("key") in (None, taint["key"])
            and row.get("effect") in (None, taint["effect"])
            and (row.get("operator") == "Exists" or row.get("value") == taint.get("value"))
        ]
        if taint["effect"] != "PreferNoSchedule" and not let:
            found.append(taint["key"])
    return found


def size(part: str) -> int:
    """Return how many addresses one entry of a pool has."""
    first, _dash, last = part.partition("-")
    return int(ipaddress.ip_address(last or first)) - int(ipaddress.ip_address(first)) + 1


def inject(pod: Json, networks: t.Iterable[Json]) -> None:
    """Give a pod that asks for it the networks of its annotation, and its first container their resources, in place."""
    notes = pod["metadata"].get("annotations") or {}
    if not notes.get(INJECT):
        return
    chosen = [row for row in networks if (row["metadata"].get("annotations") or {}).get(INJECT) == notes[INJECT]]
    names = sorted(f"{row['metadata']['namespace']}/{row['metadata']['name']}" for row in chosen)
    if not names:
        return
    notes[NETWORKS] = ",".join(names)
    links = [row["spec"].get(row["spec"]["cniType"].replace("-", "")) or {} for row in chosen]
    wanted = {name: "1" for link in links if (name := link.get("rdmaResourceName") or link.get("resourceName"))}
    resources = pod["spec"]["containers"][0].setdefault("resources", {})
    for kind in ("limits", "requests") if wanted else ():
        resources[kind] = {**(resources.get(kind) or {}), **wanted}


def component(workload: Json) -> str:
    """Return which part of Spiderpool a workload is, by the label of its pods: not all of them have it themselves."""
    return str((dig(workload, "spec.template.metadata.labels") or {}).get(COMPONENT, ""))


def allocate(store: Store, pool: str, addresses: t.Iterable[str], pod: str = "") -> None:
    """Give addresses of a pool to pods, each to its own or all to one."""
    kind = store.kind_of(f"{SPIDERPOOL}/v2beta1", "SpiderIPPool")
    taken = {
        address: {"pod": pod or f"default/app-{address}", "podUid": f"uid-{time.time_ns()}"} for address in addresses
    }
    with store.lock:
        status = dict(store.table(kind)[("", pool)].get("status") or {})
        status.update(allocatedIPCount=len(taken), allocatedIPs=json.dumps(taken))
        store.patch_status(kind, "", pool, status)
