# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Simulate what a real control plane lacks to be a cluster: nodes, a first network, plugins on the nodes.

kubelet.py simulates the kubelets; Spiderpool's controller, its webhooks and its Jobs are the real programs.
Simulated here is what needs a real node: the device plugin and the SR-IOV operator, which advertise their
configuration.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import typing as t
from pathlib import Path
from urllib.parse import urlencode

from api_kinds import crd, crd_folder, read_crds
from kubelet import LOG_PORT, Kubelets
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3 import PoolManager
from urllib3.exceptions import HTTPError

Json = dict[str, t.Any]
SPIDERPOOL = "spiderpool.spidernet.io"
SRIOV = "sriovnetwork.openshift.io"
COMPONENT = "app.kubernetes.io/component"
PLUGIN = "spiderpool-rdma-shared-device-plugin"
OPERATOR = "spiderpool-sriov-operator"
NODES = 8
MERGE = "application/merge-patch+json"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POOLS = f"/apis/{SPIDERPOOL}/v2beta1/spiderippools"
POLICIES = f"/apis/{SRIOV}/v1/sriovnetworknodepolicies"
STATES = f"/apis/{SRIOV}/v1/namespaces/{{}}/sriovnetworknodestates"


class Api:
    """Requests by path; answers are plain JSON."""

    def __init__(self, kubeconfig: Path) -> None:
        # Public parts of the client alone: how it calls by itself differs between its releases.
        found = client.Configuration()
        config.load_kube_config(str(kubeconfig), client_configuration=found)
        self._config = found
        self._pool = PoolManager(ca_certs=found.ssl_ca_cert, cert_file=found.cert_file, key_file=found.key_file)

    def raw(
        self,
        method: str,
        path: str,
        body: t.Any = None,
        content: str = "application/json",
        headers: t.Mapping[str, str] | None = None,
        **query: str,
    ) -> t.Any:
        """Ask and return the response with its body unread.

        :param headers: more of them; `authorization` in place of our own.
        """
        # The first word is the field manager of who names none, in recordings too.
        agent = {"User-Agent": "OpenAPI-Generator/1"}
        sent_headers = {**agent, "Content-Type": content, "Accept": "application/json", **(headers or {})}
        token = next(iter(self._config.api_key.values()), "")
        if token and "authorization" not in sent_headers:
            sent_headers["authorization"] = token
        sent = body if body is None or isinstance(body, (str, bytes)) else json.dumps(body)
        done = self._pool.request(
            method,
            f"{self._config.host}{path}{'?' if query else ''}{urlencode(query)}",
            body=sent,
            headers=sent_headers,
            preload_content=False,
        )
        if not 200 <= done.status <= 299:
            refused = ApiException(status=done.status, reason=done.reason)
            refused.body, refused.headers = done.data.decode("utf-8", "replace"), done.headers
            raise refused
        return done

    def call(self, method: str, path: str, body: t.Any = None, **query: str) -> Json:
        """Ask and return the answer.

        :raises ApiException: the API refuses.
        """
        done = self.raw(method, path, body, MERGE if method == "PATCH" else "application/json", **query)
        return t.cast("Json", json.loads(done.data))

    def items(self, path: str) -> list[Json]:
        """Return what a list holds; nothing when the kind is not served."""
        try:
            return t.cast("list[Json]", self.call("GET", path)["items"])
        except ApiException as exc:
            if exc.status == 404:
                return []
            raise

    def status(self, path: str, **fields: t.Any) -> None:
        """Set fields of a status; an object that was removed meanwhile is skipped."""
        with contextlib.suppress(ApiException):
            self.call("PATCH", f"{path}/status", {"status": fields})

    def follow(self, path: str, act: t.Callable[[str, Json], None], stop: threading.Event) -> None:
        """Call `act` with all objects of a kind and each change of one, until `stop`."""
        while not stop.is_set():
            with contextlib.suppress(ApiException, HTTPError, OSError, ValueError):
                listed = self.call("GET", path)
                for item in listed["items"]:
                    act("ADDED", item)
                since = listed["metadata"]["resourceVersion"]
                stream = self.raw("GET", path, watch="true", resourceVersion=since, timeoutSeconds="300")
                left = b""
                for chunk in stream.stream(65536):
                    *lines, left = (left + chunk).split(b"\n")
                    for line in filter(None, lines):
                        event = json.loads(line)
                        if event["type"] != "ERROR":
                            act(event["type"], event["object"])
            stop.wait(0.2)


class SimulatedCluster:
    """All of it, beside one API.

    :param folder: takes what the pods that are processes need.
    :param address: of the API; kubelets are reached there as well.
    :param crds: bring Spiderpool's CRDs and namespace, which otherwise come with its chart.
    :param nodes: how many there are; none: leave it at that.
    """

    def __init__(self, kubeconfig: Path, folder: Path, address: str, *, crds: bool = False, nodes: int = NODES) -> None:
        self._api = Api(kubeconfig)
        self._folder = folder
        self._address = address
        self._crds = crds
        self._nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self._stop = threading.Event()
        self._kubelets: Kubelets | None = None
        self._started: set[str] = set()

    def __enter__(self) -> SimulatedCluster:
        if self._crds:
            self.crds()
            self.create("/api/v1/namespaces", {"metadata": {"name": "spiderpool"}})
        if not self._nodes:
            return self
        kubelets = self._kubelets = Kubelets(self._api, self._folder, self._address)
        for name in self._nodes:
            self.node(name)
        for path, act in (
            ("/api/v1/pods", kubelets.pod),
            ("/api/v1/nodes", kubelets.node),
            ("/api/v1/pods", self.plugin),
            ("/apis/apps/v1/deployments", self.deployment),
            (POLICIES, self.policy),
            ("/api/v1/nodes", self.functions),
        ):
            threading.Thread(target=self._api.follow, args=(path, act, self._stop), daemon=True).start()
        self.calico()
        return self

    def __exit__(self, *dummy: object) -> None:
        self._stop.set()
        if self._kubelets:
            self._kubelets.stop()

    def create(self, path: str, body: Json) -> None:
        """Create what is not there."""
        try:
            self._api.call("POST", path, body)
        except ApiException as exc:
            if exc.status != 409:
                raise

    def crds(self) -> None:
        """Create the kinds and wait until they are served."""
        for definition in read_crds(crd_folder()):
            self.create(CRDS, definition)
        until = time.monotonic() + 120
        while time.monotonic() < until:
            waiting = [row["metadata"]["name"] for row in self._api.items(CRDS) if not established(row)]
            if not waiting:
                return
            time.sleep(0.2)
        raise RuntimeError(f"not established: {', '.join(waiting)}")

    def node(self, name: str) -> None:
        """Join a ready node."""
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        self.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True", "reason": "Simulated", "message": "", "lastHeartbeatTime": None}]
        self._api.status(
            f"/api/v1/nodes/{name}",
            conditions=ready,
            capacity=room,
            allocatable=room,
            addresses=[{"type": "InternalIP", "address": self._address}],
            daemonEndpoints={"kubeletEndpoint": {"Port": LOG_PORT}},
        )
        # Every new node is tainted as not ready; who takes that off watches for the heartbeats that there are none of.
        self._api.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def calico(self) -> None:
        """Install the network that pods have besides the rails, as kubeadm and Calico leave it behind."""
        labels = {"k8s-app": "calico-node"}
        pod = {"containers": [{"name": "calico-node", "image": "registry.invalid/calico:0"}]}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        body = {"metadata": {"name": "calico-node", "labels": labels}, "spec": spec}
        self.create("/apis/apps/v1/namespaces/kube-system/daemonsets", body)
        self.create(CRDS, crd("crd.projectcalico.org", "ippools", "IPPool"))
        network = '{"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [{"type": "calico"}]}'
        files = {"metadata": {"name": "played-cni"}, "data": {"10-calico.conflist": network}}
        self.create("/api/v1/namespaces/kube-system/configmaps", files)
        networks = "networking:\n  podSubnet: 10.244.0.0/16\n  serviceSubnet: 10.96.0.0/16\n"
        made = {"metadata": {"name": "kubeadm-config"}, "data": {"ClusterConfiguration": networks}}
        self.create("/api/v1/namespaces/kube-system/configmaps", made)

    def plugin(self, event: str, pod: Json) -> None:
        """Advertise what the device plugin's ConfigMap says when a pod of it starts; later it reads no more."""
        meta = pod["metadata"]
        if event == "DELETED" or (meta.get("labels") or {}).get(COMPONENT) != PLUGIN or meta["uid"] in self._started:
            return
        if (pod.get("status") or {}).get("phase") != "Running":
            return
        self._started.add(meta["uid"])
        name = next(row["configMap"]["name"] for row in pod["spec"]["volumes"] if row["name"] == "config")
        with contextlib.suppress(ApiException):
            found = self._api.call("GET", f"/api/v1/namespaces/{meta['namespace']}/configmaps/{name}")
            rows = json.loads(found["data"]["config.json"]).get("configList") or ()
            offered = {f"{row.get('resourcePrefix', 'rdma')}/{row['resourceName']}": row["rdmaHcaMax"] for row in rows}
            self.advertise(pod["spec"]["nodeName"], offered)

    def advertise(self, node: str, amounts: Json) -> None:
        """Set extended resources of a node."""
        reported = {name: str(amount) for name, amount in amounts.items()}
        self._api.status(f"/api/v1/nodes/{node}", capacity=reported, allocatable=reported)

    def deployment(self, event: str, row: Json) -> None:
        """Make the node states when the SR-IOV operator comes."""
        if event == "DELETED" or row["metadata"]["name"] != OPERATOR:
            return
        path = STATES.format(row["metadata"]["namespace"])
        for name in self._nodes:
            body = {"apiVersion": f"{SRIOV}/v1", "kind": "SriovNetworkNodeState", "metadata": {"name": name}}
            with contextlib.suppress(ApiException):
                self._api.call("POST", path, {**body, "spec": {}})
                self._api.status(f"{path}/{name}", syncStatus="Succeeded", interfaces=[])

    def policy(self, event: str, _row: Json) -> None:
        """Look at all nodes again when a policy comes or changes."""
        if event != "DELETED":
            with contextlib.suppress(ApiException):
                for node in self._api.items("/api/v1/nodes"):
                    self.functions("MODIFIED", node)

    def functions(self, event: str, node: Json) -> None:
        """Advertise the virtual functions of the policies that select a node."""
        if event == "DELETED":
            return
        labels, offered = node["metadata"].get("labels") or {}, node["status"].get("allocatable") or {}
        amounts = {}
        with contextlib.suppress(ApiException):
            for row in self._api.items(POLICIES):
                selector, spec = row["spec"].get("nodeSelector") or {}, row["spec"]
                if selector and all(labels.get(key) == value for key, value in selector.items()):
                    amounts[f"spidernet.io/{spec['resourceName']}"] = str(spec["numVfs"])
            if any(offered.get(name) != amount for name, amount in amounts.items()):
                self.advertise(node["metadata"]["name"], amounts)


def established(crd: Json) -> bool:
    """Whether a kind is served."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(row["type"] == "Established" and row["status"] == "True" for row in conditions)
