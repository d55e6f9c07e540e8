# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Play the kubelets of a real control plane: they say that pods run, and Spiderpool's controller really does.

A pod whose program needs no node is a process (pod_process.py): it is ready when its own probe says so, it is ended
when the pod is deleted, and when it ends by itself it is started again, as a kubelet does. Other pods are ready at
once, those of Jobs succeed at once. A pod with an image that cannot be pulled stays where a real one stays. Nobody runs
pods on a node that is not Ready. Logs are served where the API asks a kubelet for them.
"""

from __future__ import annotations

import contextlib
import threading
import typing as t
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from api_store import now
from api_tls import Certificate
from kubernetes.client.exceptions import ApiException
from pod_process import PodProcess, is_real

if t.TYPE_CHECKING:
    from simulated import Api

Json = dict[str, t.Any]
LOG_PORT = 10250
# An image with this in its name is one that no registry has.
UNPULLABLE = "unpullable"
# A kubelet begins with ten seconds.
BACK_OFF_SECONDS = 2.0
PROBE_SECONDS = 0.3


def at(obj: Json, plural: str, api: str = "/api/v1") -> str:
    """Return the path of an object."""
    meta = obj["metadata"]
    where = f"/namespaces/{meta['namespace']}" if meta.get("namespace") else ""
    return f"{api}{where}/{plural}/{meta['name']}"


class Kubelets:
    """The kubelets of all nodes.

    :param folder: takes the root folders and logs of pods that are processes.
    :param address: of the API, which those pods reach.
    """

    def __init__(self, api: Api, folder: Path, address: str) -> None:
        self._api = api
        self._folder = folder
        self._address = address
        self._seen: dict[str, threading.Event] = {}
        self._threads: dict[str, threading.Thread] = {}
        self._number = 0
        self._lock = threading.Lock()
        # One pod must not wait for another's.
        self._work = ThreadPoolExecutor(16)
        self.down: set[str] = set()
        self.logs: dict[tuple[str, str], Path] = {}
        self._server = log_server(self)

    def stop(self) -> None:
        """End all of it."""
        self._server.shutdown()
        for event in list(self._seen.values()):
            event.set()
        self._work.shutdown(wait=False, cancel_futures=True)

    def node(self, event: str, node: Json) -> None:
        """Notice which nodes are down."""
        name = node["metadata"]["name"]
        conditions = (node.get("status") or {}).get("conditions") or ()
        lost = any(row["type"] == "Ready" and row["status"] != "True" for row in conditions)
        (self.down.add if lost and event != "DELETED" else self.down.discard)(name)

    def pod(self, event: str, pod: Json) -> None:
        """Run a pod that has a node, end it when it is deleted."""
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if event == "DELETED":
            self._seen.pop(uid, threading.Event()).set()
        elif not node or node in self.down:
            return
        elif pod["metadata"].get("deletionTimestamp"):
            self._seen.setdefault(uid, threading.Event()).set()
            self._work.submit(self._end, pod)
        elif (pod.get("status") or {}).get("phase") == "Pending" and uid not in self._seen:
            self._seen[uid] = threading.Event()
            if is_real(pod):
                self._threads[uid] = threading.Thread(target=self._live, args=(pod, self._seen[uid]), daemon=True)
                self._threads[uid].start()
            else:
                self._work.submit(self._play, pod)

    def _end(self, pod: Json) -> None:
        """Let go of a deleted pod when its process has ended."""
        if thread := self._threads.pop(pod["metadata"]["uid"], None):
            thread.join(30)
        with contextlib.suppress(ApiException):
            self._api.call("DELETE", at(pod, "pods"), gracePeriodSeconds="0")

    def _play(self, pod: Json) -> None:
        """Say of a pod that it runs; that of a Job has succeeded."""
        image = next((row["image"] for row in pod["spec"]["containers"] if UNPULLABLE in row["image"]), "")
        if image:
            self._unpullable(pod, image)
            return
        job = of_a_job(pod)
        state = {"terminated": {"exitCode": 0}} if job else {"running": {"startedAt": now()}}
        self._say(pod, "Succeeded" if job else "Running", state, ready=not job)

    def _unpullable(self, pod: Json, image: str) -> None:
        reported = f'Back-off pulling image "{image}"'
        self._say(pod, "Pending", {"waiting": {"reason": "ImagePullBackOff", "message": reported}}, ready=False)
        meta = pod["metadata"]
        involved = {"kind": "Pod", "name": meta["name"], "namespace": meta["namespace"], "uid": meta["uid"]}
        event = {
            "metadata": {"generateName": f"{meta['name']}."},
            "involvedObject": involved,
            "type": "Warning",
            "reason": "Failed",
            "message": f'Failed to pull image "{image}": not found',
        }
        with contextlib.suppress(ApiException):
            self._api.call("POST", f"/api/v1/namespaces/{meta['namespace']}/events", event)

    def _live(self, pod: Json, stop: threading.Event) -> None:
        """Run a pod's program, again and again unless it is a Job's, until the pod is gone."""
        last: Json = {}
        restarts = 0
        while not stop.is_set():
            process = self._started(pod, stop)
            if process is None:
                return
            began = now()
            ready = False
            running = {"running": {"startedAt": began}}
            known: Json = {"restarts": restarts, "last": last, "address": process.address}
            self._say(pod, "Running", running, ready=False, **known)
            while process.exit_code is None and not stop.is_set():
                if not ready and not of_a_job(pod) and answers(pod, process.address):
                    ready = True
                    self._say(pod, "Running", running, ready=True, **known)
                stop.wait(PROBE_SECONDS)
            code = process.exit_code or 0
            process.end()
            if stop.is_set():
                return
            ended = {"terminated": {"exitCode": code, "reason": "Error" if code else "Completed", "startedAt": began}}
            ended["terminated"]["finishedAt"] = now()
            if of_a_job(pod):
                self._say(pod, "Failed" if code else "Succeeded", ended, ready=False)
                return
            name = pod["spec"]["containers"][0]["name"]
            reported = f"back-off 10s restarting failed container={name} pod={pod['metadata']['name']}"
            waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": reported}}
            last, restarts = ended, restarts + 1
            self._say(pod, "Running", waiting, ready=False, restarts=restarts - 1, last=last, address=process.address)
            stop.wait(BACK_OFF_SECONDS)

    def _started(self, pod: Json, stop: threading.Event) -> PodProcess | None:
        """Start a pod's program; wait for what it mounts."""
        meta = pod["metadata"]
        while not stop.is_set():
            with self._lock:
                self._number += 1
                address = f"10.254.{self._number // 250}.{self._number % 250 + 1}"
            folder = self._folder / f"{meta['name']}-{self._number}"
            try:
                process = PodProcess(self._api, pod, folder, address, self._address)
            except ApiException:
                stop.wait(PROBE_SECONDS)
                continue
            self.logs[meta["namespace"], meta["name"]] = process.log
            return process
        return None

    def _say(
        self,
        pod: Json,
        phase: str,
        state: Json,
        *,
        ready: bool,
        restarts: int = 0,
        last: Json | None = None,
        address: str = "",
    ) -> None:
        """Write a pod's status."""
        common = {"imageID": "", "ready": ready, "restartCount": restarts, "state": state, "lastState": last or {}}
        containers = [{"name": row["name"], "image": row["image"], **common} for row in pod["spec"]["containers"]]
        conditions = [{"type": name, "status": str(ready)} for name in ("Ready", "ContainersReady")]
        conditions += [{"type": name, "status": "True"} for name in ("Initialized", "PodScheduled")]
        for row in conditions:
            row["lastTransitionTime"] = now()
        reported = {"podIP": address, "podIPs": [{"ip": address}]} if address else {}
        self._api.status(
            at(pod, "pods"),
            phase=phase,
            conditions=conditions,
            containerStatuses=containers,
            startTime=now(),
            hostIP=self._address,
            **reported,
        )


def of_a_job(pod: Json) -> bool:
    """Whether a pod is a Job's."""
    return any(row["kind"] == "Job" for row in pod["metadata"].get("ownerReferences") or ())


def answers(pod: Json, address: str) -> bool:
    """Ask a container's own readiness probe."""
    probe = pod["spec"]["containers"][0].get("readinessProbe", {}).get("httpGet")
    if not probe:
        return True
    try:
        urllib.request.urlopen(f"http://{address}:{probe['port']}{probe['path']}", timeout=1).close()
    except OSError:
        return False
    return True


def log_server(kubelets: Kubelets) -> ThreadingHTTPServer:
    """Serve the logs of pods, as kubelets do."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *dummy: object) -> None:
            """Say nothing."""

        def do_GET(self) -> None:
            words = urlsplit(self.path)
            _empty, what, *rest = words.path.split("/")
            path = kubelets.logs.get((rest[0], rest[1])) if what == "containerLogs" and len(rest) == 3 else None
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True) if path else []
            tail = parse_qs(words.query).get("tailLines")
            data = "".join(lines[-int(tail[0]) :] if tail else lines).encode()
            self.send_response_only(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("0.0.0.0", LOG_PORT), Handler)
    server.daemon_threads = True
    server.socket = Certificate("kubelets of the tests").context().wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
