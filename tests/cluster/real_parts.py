# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a real control plane lacks to be a cluster with Spiderpool, played over the API: nodes, kubelets, webhooks.

Pods run at once and print nothing, the pods of Jobs succeed at once. Spiderpool's webhooks answer with the collection's
own admission rules over a fresh list, as the real ones list; its controller counts addresses, lets go of deleted pools
and makes the network attachments; the device plugin and the SR-IOV operator advertise what they are configured to.
"""

from __future__ import annotations

import base64
import contextlib
import json
import threading
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from api_kinds import REAL_CRDS, crd_folder, read_crds
from api_tls import Certificate
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from ansible_collections.railops.rdma.plugins.module_utils._admission import Admission, AdmissionError

Json = dict[str, t.Any]
SPIDERPOOL = "spiderpool.spidernet.io"
SRIOV = "sriovnetwork.openshift.io"
COMPONENT = "app.kubernetes.io/component"
NODES = 8
MERGE = "application/merge-patch+json"
# What the webhooks look at, by plural name; group/version and kind come with it.
HOOKED = {
    "spiderippools": (f"{SPIDERPOOL}/v2beta1", "SpiderIPPool"),
    "spiderreservedips": (f"{SPIDERPOOL}/v2beta1", "SpiderReservedIP"),
    "spidersubnets": (f"{SPIDERPOOL}/v2beta1", "SpiderSubnet"),
    "spidermultusconfigs": (f"{SPIDERPOOL}/v2beta1", "SpiderMultusConfig"),
    "spidercoordinators": (f"{SPIDERPOOL}/v2beta1", "SpiderCoordinator"),
    "sriovnetworknodepolicies": (f"{SRIOV}/v1", "SriovNetworkNodePolicy"),
}
POOLS = f"/apis/{SPIDERPOOL}/v2beta1/spiderippools"
CONFIGS = f"/apis/{SPIDERPOOL}/v2beta1/spidermultusconfigs"
POLICIES = f"/apis/{SRIOV}/v1/sriovnetworknodepolicies"
STATES = f"/apis/{SRIOV}/v1/namespaces/{{}}/sriovnetworknodestates"


class Api:
    """Requests by path; answers are plain JSON."""

    def __init__(self, kubeconfig: Path) -> None:
        self._client: client.ApiClient = config.new_client_from_config(str(kubeconfig))

    def raw(self, method: str, path: str, body: t.Any = None, content: str = "application/json", **query: str) -> t.Any:
        """Ask and return the response with its body unread."""
        return self._client.call_api(
            path,
            method,
            query_params=list(query.items()),
            header_params={"Content-Type": content, "Accept": "application/json"},
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
        )

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
        """Set fields of a status; an object that has gone meanwhile is nobody's loss."""
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


def at(obj: Json, plural: str, api: str = "/api/v1") -> str:
    """Return the path of an object."""
    meta = obj["metadata"]
    where = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
    return f"{api}{where}/{plural}/{meta['name']}"


class Parts:
    """All of it, beside one API; `bare` leaves it at the CRDs."""

    def __init__(self, kubeconfig: Path, *, bare: bool = False, nodes: int = NODES) -> None:
        self._api = Api(kubeconfig)
        self._bare = bare
        self._nodes = [f"node{number}" for number in range(1, nodes + 1)]
        self._stop = threading.Event()
        # One watcher must not wait for another's work.
        self._work = ThreadPoolExecutor(8)
        self._hooks: Hooks | None = None

    def __enter__(self) -> Parts:
        self.crds()
        self.create("/api/v1/namespaces", {"metadata": {"name": "spiderpool"}})
        if not self._bare:
            for name in self._nodes:
                self.node(name)
            self._hooks = Hooks(self._api)
            self._hooks.register(self._api)
            for path, act in (
                ("/api/v1/pods", self.pod),
                (POOLS, self.pool),
                (CONFIGS, self.config),
                ("/apis/apps/v1/daemonsets", self.daemon_set),
                ("/apis/apps/v1/deployments", self.deployment),
                (POLICIES, self.policy),
                ("/api/v1/nodes", self.functions),
            ):
                threading.Thread(target=self._api.follow, args=(path, act, self._stop), daemon=True).start()
            self.calico()
        return self

    def __exit__(self, *dummy: object) -> None:
        self._stop.set()
        self._work.shutdown(wait=False, cancel_futures=True)
        if self._hooks:
            self._hooks.stop()

    def create(self, path: str, body: Json) -> None:
        """Create what is not there."""
        try:
            self._api.call("POST", path, body)
        except ApiException as exc:
            if exc.status != 409:
                raise

    def crds(self) -> None:
        """Create the kinds and wait until they are served."""
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        for crd in read_crds(crd_folder()):
            self.create(path, crd)
        until = time.monotonic() + 30
        while time.monotonic() < until:
            waiting = [
                row["metadata"]["name"]
                for row in self._api.items(path)
                if not any(
                    condition["type"] == "Established" and condition["status"] == "True"
                    for condition in row.get("status", {}).get("conditions") or ()
                )
            ]
            if not waiting:
                return
            time.sleep(0.2)
        raise RuntimeError(f"not established: {', '.join(waiting)}")

    # Kubelets

    def node(self, name: str) -> None:
        """Join a ready node."""
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}
        self.create("/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        room = {"cpu": "64", "memory": "256Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True", "reason": "Played", "message": "", "lastHeartbeatTime": None}]
        self._api.status(f"/api/v1/nodes/{name}", conditions=ready, capacity=room, allocatable=room)
        # Every new node is tainted as not ready; who takes that off watches for the heartbeats that there are none of.
        self._api.call("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})

    def calico(self) -> None:
        """Install the network that pods have besides the rails."""
        labels = {"k8s-app": "calico-node"}
        pod = {"containers": [{"name": "calico-node", "image": "registry.invalid/calico:0"}]}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
        body = {"metadata": {"name": "calico-node", "labels": labels}, "spec": spec}
        self.create("/apis/apps/v1/namespaces/kube-system/daemonsets", body)

    def pod(self, event: str, pod: Json) -> None:
        """Run a pod that has a node, end it when it is deleted."""
        if event == "DELETED" or not pod["spec"].get("nodeName"):
            return
        if pod["metadata"].get("deletionTimestamp"):
            self._work.submit(self.end_pod, pod)
        elif (pod.get("status") or {}).get("phase") == "Pending":
            self._work.submit(self.run_pod, pod)

    def end_pod(self, pod: Json) -> None:
        """Let go of a deleted pod."""
        with contextlib.suppress(ApiException):
            self._api.call("DELETE", at(pod, "pods"), gracePeriodSeconds="0")

    def run_pod(self, pod: Json) -> None:
        """Start a pod's containers; those of a Job end at once."""
        job = any(row["kind"] == "Job" for row in pod["metadata"].get("ownerReferences") or ())
        began = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        state = {"terminated": {"exitCode": 0}} if job else {"running": {"startedAt": began}}
        containers = [
            {"name": row["name"], "image": row["image"], "imageID": "", "ready": not job, "restartCount": 0,
             "state": state}
            for row in pod["spec"]["containers"]
        ]  # fmt: skip
        ready = "False" if job else "True"
        conditions = [{"type": name, "status": ready} for name in ("Ready", "ContainersReady")]
        conditions += [{"type": name, "status": "True"} for name in ("Initialized", "PodScheduled")]
        self._api.status(
            at(pod, "pods"),
            phase="Succeeded" if job else "Running",
            conditions=conditions,
            containerStatuses=containers,
            startTime=began,
        )

    # Spiderpool's controller

    def pool(self, event: str, pool: Json) -> None:
        """Count a new pool's addresses; let go of a deleted one that nobody uses."""
        if event == "DELETED":
            return
        status = pool.get("status") or {}
        path = f"{POOLS}/{pool['metadata']['name']}"
        if pool["metadata"].get("deletionTimestamp"):
            if not status.get("allocatedIPCount") and pool["metadata"].get("finalizers"):
                self._work.submit(self.let_go, path)
        elif status.get("totalIPCount") is None:
            total = len(pool["spec"].get("ips") or ())
            self._work.submit(self._api.status, path, totalIPCount=total)

    def let_go(self, path: str) -> None:
        """Remove the finalizer."""
        with contextlib.suppress(ApiException):
            self._api.call("PATCH", path, {"metadata": {"finalizers": None}})

    def config(self, event: str, row: Json) -> None:
        """Make the attachment of a config; the garbage collector takes it away again."""
        if event == "DELETED" or row["metadata"].get("deletionTimestamp"):
            return
        meta = row["metadata"]
        owner = {
            "apiVersion": f"{SPIDERPOOL}/v2beta1",
            "kind": "SpiderMultusConfig",
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
        }
        body = {
            "apiVersion": "k8s.cni.cncf.io/v1",
            "kind": "NetworkAttachmentDefinition",
            "metadata": {"name": meta["name"], "ownerReferences": [owner]},
            "spec": {"config": "{}"},
        }
        path = f"/apis/k8s.cni.cncf.io/v1/namespaces/{meta['namespace']}/network-attachment-definitions"
        with contextlib.suppress(ApiException):
            self._api.call("POST", path, body)

    # Device plugin and SR-IOV operator

    def daemon_set(self, event: str, row: Json) -> None:
        """Advertise what the device plugin's ConfigMap says when its pods start."""
        labels = row["metadata"].get("labels") or {}
        if event == "DELETED" or labels.get(COMPONENT) != "spiderpool-rdma-shared-device-plugin":
            return
        with contextlib.suppress(ApiException):
            meta = row["metadata"]
            found = self._api.call("GET", f"/api/v1/namespaces/{meta['namespace']}/configmaps/{meta['name']}")
            rows = json.loads(found["data"]["config.json"]).get("configList") or ()
            for name in self._nodes:
                self.advertise(
                    name,
                    {f"{row.get('resourcePrefix', 'rdma')}/{row['resourceName']}": row["rdmaHcaMax"] for row in rows},
                )

    def advertise(self, node: str, amounts: Json) -> None:
        """Set extended resources of a node."""
        told = {name: str(amount) for name, amount in amounts.items()}
        self._api.status(f"/api/v1/nodes/{node}", capacity=told, allocatable=told)

    def deployment(self, event: str, row: Json) -> None:
        """Make the node states when the SR-IOV operator comes."""
        labels = row["metadata"].get("labels") or {}
        if event == "DELETED" or labels.get(COMPONENT) != "spiderpool-sriov-operator":
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
        labels, offered = node["metadata"]["labels"], node["status"].get("allocatable") or {}
        amounts = {}
        with contextlib.suppress(ApiException):
            for row in self._api.items(POLICIES):
                selector, spec = row["spec"].get("nodeSelector") or {}, row["spec"]
                if selector and all(labels.get(key) == value for key, value in selector.items()):
                    amounts[f"spidernet.io/{spec['resourceName']}"] = str(spec["numVfs"])
            if any(offered.get(name) != amount for name, amount in amounts.items()):
                self.advertise(node["metadata"]["name"], amounts)


class Hooks:
    """Spiderpool's webhooks on a port of their own."""

    def __init__(self, api: Api) -> None:
        self._certificate = Certificate("webhooks of the tests")
        handler = type("Bound", (Review,), {"api": api})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.socket = self._certificate.context().wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def register(self, api: Api) -> None:
        """Let the API ask them: for what they refuse it fails, as with Spiderpool's."""
        port = self._server.server_address[1]
        authority = base64.b64encode(self._certificate.text.encode()).decode()
        hooks = [
            {
                "name": f"{kind.lower()}.{version.partition('/')[0]}",
                "clientConfig": {"url": f"https://127.0.0.1:{port}/mutate", "caBundle": authority},
                "rules": [
                    {
                        "apiGroups": [version.partition("/")[0]],
                        "apiVersions": [version.partition("/")[2]],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [plural],
                    }
                ],
                "failurePolicy": "Fail",
                "sideEffects": "None",
                "admissionReviewVersions": ["v1"],
            }
            for plural, (version, kind) in HOOKED.items()
        ]
        api.call(
            "POST",
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            {"metadata": {"name": "railops-played-webhooks"}, "webhooks": hooks},
        )

    def stop(self) -> None:
        """End the server."""
        self._server.shutdown()
        self._server.server_close()


class Review(BaseHTTPRequestHandler):
    """One question of the API."""

    api: Api
    protocol_version = "HTTP/1.1"

    def log_message(self, *dummy: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
        answer = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": self.review(asked)}
        data = json.dumps(answer).encode()
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def review(self, asked: Json) -> Json:
        """Return what the rules make of an object over what is stored now."""
        new, uid = asked["object"], asked["uid"]
        if new["metadata"].get("deletionTimestamp"):
            return {"uid": uid, "allowed": True}
        # The CRDs check types themselves when they are upstream's.
        admission = Admission(self.stored(), schema=not REAL_CRDS.is_dir())
        try:
            if asked["operation"] == "CREATE":
                made = admission.create(new, dry_run=True)
            else:
                made = admission.update(asked["oldObject"], new, dry_run=True)
        except AdmissionError as exc:
            said = {"code": exc.code, "reason": str(exc.reason), "message": exc.message, "status": "Failure"}
            return {"uid": uid, "allowed": False, "status": said}
        patch = [
            {"op": "add", "path": f"/{'/'.join(path)}", "value": value}
            for path, value in (
                (("spec",), made.get("spec")),
                *((("metadata", key), made["metadata"].get(key)) for key in ("labels", "finalizers")),
            )
            if value is not None
        ]
        packed = base64.b64encode(json.dumps(patch).encode()).decode()
        return {"uid": uid, "allowed": True, "patchType": "JSONPatch", "patch": packed}

    def stored(self) -> list[Json]:
        """List what the rules look at, as it is now."""
        return [
            {**item, "apiVersion": version, "kind": kind}
            for plural, (version, kind) in HOOKED.items()
            for item in self.api.items(f"/apis/{version}/{plural}")
        ]
