# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that seem to run: a scheduler that counts resources, networks with addresses of the pools, logs and exec.

What a pod prints follows from what is in the store: a client reaches a server only at the address of a server's pod
that runs, and an address comes from the pool that the network's config and the node choose. Tests break it from there.
"""

from __future__ import annotations

import base64
import copy
import fnmatch
import hashlib
import ipaddress
import json
import threading
import typing as t
import urllib.parse
from pathlib import Path

from api_controllers import CORDON, NETWORKS, untolerated
from api_kinds import Kind
from api_store import Json, dig

if t.TYPE_CHECKING:
    from api_double import ApiDouble, Handler

STATUS = "k8s.v1.cni.cncf.io/network-status"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PROTOCOL = "v4.channel.k8s.io"

# What a client of ib_read_lat prints; the number is replaced.
PRINTED = Path(__file__).resolve().parents[1] / "unit/fixtures/perftest"
TYPICAL = "2.31"


def unschedulable(nodes: int, why: str) -> str:
    """Return the scheduler's words for a pod that wants one node.

    :param nodes: how many there are, and `why` what is wrong with the one; empty where it is not there.
    """
    rest = f"{nodes - bool(why)} node(s) didn't satisfy plugin(s) [NodeAffinity]"
    told = ", ".join(filter(None, (why, rest if nodes > bool(why) else "")))
    none = f"0/{nodes} nodes are available: "
    more = f"no new claims to deallocate, preemption: {none}{nodes} Preemption is not helpful for scheduling."
    return f"{none}{told}. {more}"


class Pods:
    """Plays pods over the store of a double. `delay` is the time that each step takes."""

    def __init__(self, double: ApiDouble, delay: float = 0.05) -> None:
        self.double = double
        self.delay = delay
        self.latency = 2.31
        # What goes wrong, by (client, server, rail): a log and an exit code; None ends never.
        self.broken: dict[tuple[str, str, str], tuple[str, int | None]] = {}
        # Commands by their first words, in the place of what would be printed: (stdout, stderr, exit code).
        self.commands: dict[str, tuple[str, str, int]] = {}
        self.no_shell = False
        # Nodes whose Jobs end at their deadline before they have a pod, as after a long time without a controller.
        self.late: set[str] = set()
        # Nodes whose kubelet keeps only the last bytes of a log, and so many; 0: it has rotated all of it away.
        self.kept: dict[str, int] = {}
        self.most_jobs = 0
        self.made: list[str] = []
        self._given: dict[str, int] = {}
        self._logs: dict[tuple[str, str], str] = {}
        double.pods = self
        double.store.after.append(self.after)

    # Controllers

    def after(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """Follow Jobs and pods."""
        if new is None or new["metadata"].get("deletionTimestamp"):
            return
        if kind.kind == "Job" and old is None and "railops.io/probe" in (new["metadata"].get("labels") or {}):
            self.made.append(new["metadata"]["name"])
            jobs = self.double.store.table(kind).values()
            self.most_jobs = max(
                self.most_jobs, sum("railops.io/probe" in (j["metadata"].get("labels") or {}) for j in jobs)
            )
            self.later(self.pod_of_job, new)
        if kind.kind == "Pod" and old is None and dig(new, "status.phase") == "Running":
            self.attach(new)

    def later(self, act: t.Callable[..., None], *words: t.Any) -> None:
        """Do something a moment later, as controllers do."""
        timer = threading.Timer(self.delay, act, words)
        timer.daemon = True
        timer.start()

    def kind(self) -> Kind:
        """Return the kind of pods."""
        return self.double.store.kind_of("v1", "Pod")

    def pod_of_job(self, job: Json) -> None:
        """Make the pod of a Job, and let it run if a node takes it."""
        store, meta = self.double.store, job["metadata"]
        template = job["spec"]["template"]
        owner = self.double.controllers.owner("batch/v1", "Job", job)
        body = {
            "metadata": {
                "name": f"{meta['name']}-x7k2p",
                "labels": dict(template["metadata"]["labels"]),
                "annotations": dict(template["metadata"].get("annotations") or {}),
                "ownerReferences": [owner],
            },
            "spec": copy.deepcopy(template["spec"]),
            "status": {"phase": "Pending"},
        }
        with store.lock:
            jobs = store.table(store.kind_of("batch/v1", "Job"))
            if (meta["namespace"], meta["name"]) not in jobs:
                return
            node, why = self.schedule(body["spec"])
            if node in self.late:
                told = {"reason": "DeadlineExceeded", "message": "Job was active longer than specified deadline"}
                self.job_ended(job, {"type": "Failed", "status": "True", **told})
                return
            if node:
                body["spec"]["nodeName"] = node
            else:
                condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why}
                body["status"]["conditions"] = [condition]
            pod = store.create(self.kind(), meta["namespace"], body, {}, "kube-controller-manager")
        if node:
            self.later(self.start, pod)

    def job_ended(self, job: Json, condition: Json) -> None:
        """Write how a Job ended."""
        kind, meta = self.double.store.kind_of("batch/v1", "Job"), job["metadata"]
        self.double.store.patch_status(kind, meta["namespace"], meta["name"], {"conditions": [condition]})

    def schedule(self, spec: Json) -> tuple[str, str]:
        """Return the node that takes a pod, or why none does."""
        terms = dig(spec, "affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
        (name,) = terms[0]["matchFields"][0]["values"]
        nodes = self.double.objects("Node")
        node = nodes.get(name)
        if node is None:
            return "", unschedulable(len(nodes), "")
        if off := untolerated(node, spec):
            what = "were unschedulable" if off == [CORDON] else "had untolerated taint(s)"
            return "", unschedulable(len(nodes), f"1 node(s) {what}")
        wanted = dig(spec["containers"][0], "resources.limits") or {}
        pods = [pod for pod in self.double.store.table(self.kind()).values() if dig(pod, "spec.nodeName") == name]
        for resource, amount in wanted.items():
            used = sum(
                int((dig(pod["spec"]["containers"][0], "resources.limits") or {}).get(resource, 0)) for pod in pods
            )
            if used + int(amount) > int((dig(node, "status.allocatable") or {}).get(resource, 0)):
                return "", unschedulable(len(nodes), f"1 Insufficient {resource}")
        return name, ""

    def start(self, pod: Json) -> None:
        """Let a scheduled pod run, and a client's end."""
        store, meta = self.double.store, pod["metadata"]
        key = (meta["namespace"], meta["name"])
        with store.lock:
            if key not in store.table(self.kind()):
                return
            self.attach(pod)
            store.patch_status(self.kind(), *key, {"phase": "Running", "podIP": "10.0.0.9"})
        self.later(self.finish, key)

    def finish(self, key: tuple[str, str]) -> None:
        """Let a pod's program print and end; a server waits for its client."""
        store = self.double.store
        with store.lock:
            pod = store.table(self.kind()).get(key)
            if pod is None:
                return
            notes = pod["metadata"]["annotations"]
            ends, rails = (notes["railops.io/client"], notes["railops.io/server"]), notes["railops.io/rails"].split(",")
            addresses = pod["spec"]["containers"][0]["command"][-len(rails) :]
            self._logs[key] = "net1: railops: device mlx5_0 gid 3 address of the server\n"
            if addresses[0] == "-":
                return
            codes = []
            self._logs[key] = ""
            for number, (rail, address) in enumerate(zip(rails, addresses, strict=True), 1):
                log, code = self.broken.get((*ends, rail)) or self.measure(address)
                # What does not end in its time, `timeout` ends.
                said = [f"railops: device mlx5_{number - 1} gid 3 address of the client", *log.splitlines()]
                said.append(f"railops: exit {124 if code is None else code}")
                self._logs[key] += "".join(f"net{number}: {line}\n" for line in said)
                codes.append(code)
            code = int(any(code != 0 for code in codes))
            ended = [{"name": "probe", "state": {"terminated": {"exitCode": code}}}]
            phase = "Failed" if code else "Succeeded"
            store.patch_status(self.kind(), *key, {"phase": phase, "containerStatuses": ended})
            name = next(row["name"] for row in pod["metadata"]["ownerReferences"])
            if job := store.table(store.kind_of("batch/v1", "Job")).get((key[0], name)):
                failed = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
                self.job_ended(job, failed if code else {"type": "Complete", "status": "True"})

    def measure(self, address: str) -> tuple[str, int]:
        """Return what a client prints: it reaches only the address of a server's pod that runs."""
        for pod in self.double.store.table(self.kind()).values():
            notes = pod["metadata"].get("annotations") or {}
            is_server = dig(pod, "status.phase") == "Running" and "railops.io/server" in notes
            if is_server and any(address in entry["ips"] for entry in json.loads(notes.get(STATUS) or "[]")):
                text = (PRINTED / "read_lat_client.txt").read_text(encoding="utf-8")
                return text.replace(TYPICAL, str(self.latency)), 0
        text = (PRINTED / "read_lat_no_server.txt").read_text(encoding="utf-8")
        return text.replace("172.17.0.35", address), 1

    # Networks

    def attach(self, pod: Json) -> None:
        """Write the network-status that Multus would: addresses of the pools that config and node choose."""
        store, meta = self.double.store, pod["metadata"]
        notes = meta.get("annotations") or {}
        names = [name for name in str(notes.get(NETWORKS) or "").split(",") if name]
        configs = self.double.objects("SpiderMultusConfig")
        if not names:
            return
        entries: list[Json] = [{"name": "k8s-pod-network", "interface": "eth0", "ips": ["10.0.0.9"], "default": True}]
        for number, name in enumerate(names):
            config = configs.get(name.partition("/")[2])
            ips = self.addresses(config, str(dig(pod, "spec.nodeName"))) if config else []
            entries.append({"name": name, "interface": f"net{number + 1}", "ips": ips, "dns": {}})
        with store.lock:
            new = copy.deepcopy(store.table(self.kind())[(meta["namespace"], meta["name"])])
            new["metadata"].setdefault("annotations", {})[STATUS] = json.dumps(entries, indent=4)
            store.put(self.kind(), meta["namespace"], meta["name"], new, "MODIFIED")

    def addresses(self, config: Json, node: str) -> list[str]:
        """Return the next address of the first pool of each family that fits."""
        spec = config["spec"]
        pools = dig(spec.get(spec["cniType"].replace("-", "")) or {}, "ippools") or {}
        found = []
        for family in ("ipv4", "ipv6"):
            for name, pool in sorted(self.double.objects("SpiderIPPool").items()):
                nodes = pool["spec"].get("nodeName")
                fits = any(fnmatch.fnmatchcase(name, wanted) for wanted in pools.get(family) or ())
                if fits and (not nodes or node in nodes):
                    first = ipaddress.ip_address(str(pool["spec"]["ips"][0]).partition("-")[0])
                    self._given[name] = self._given.get(name, -1) + 1
                    found.append(str(first + self._given[name] % 20))
                    break
        return found

    # What is asked of a pod

    def answer(self, handler: Handler, namespace: str, name: str, sub: str) -> tuple[int, Json]:
        """Answer a request for a log or for a command."""
        self.double.store.get(self.kind(), namespace, name)
        if sub == "log":
            query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query))
            data = self.log(namespace, name, query)
            handler.send_response_only(200)
            handler.send_header("Content-Type", "text/plain")
            handler.send_header("Content-Length", str(len(data)))
            handler.end_headers()
            handler.wfile.write(data)
            handler.wfile.flush()
            return 0, {}
        query = urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query)
        argv = [value for key, value in query if key == "command"]
        with self.double.store.lock:
            pod = self.double.store.table(self.kind())[(namespace, name)]
        self.stream(handler, *self.run(pod, argv))
        return 0, {}

    def log(self, namespace: str, name: str, query: dict[str, str]) -> bytes:
        """Return what a kubelet has of a log: of the bytes that are asked for, the first."""
        pod = self.double.store.get(self.kind(), namespace, name)
        data = self._logs.get((namespace, name), "").encode()
        kept = self.kept.get(dig(pod, "spec.nodeName"), len(data))
        lines = data[len(data) - kept :].splitlines(keepends=True)
        tail = lines[-int(query["tailLines"]) :] if "tailLines" in query else lines
        return b"".join(tail)[: int(query.get("limitBytes") or len(data))]

    def run(self, pod: Json, argv: list[str]) -> tuple[str, str, Json]:
        """Return what a command prints, and the status that ends it."""
        line = " ".join(argv)
        for words, (out, err, code) in self.commands.items():
            if line.startswith(words):
                if not code:
                    return out, err, {"status": "Success"}
                cause = {"reason": "ExitCode", "message": str(code)}
                told = f"command terminated with non-zero exit code: {err.strip()}"
                failed = {"status": "Failure", "reason": "NonZeroExitCode", "message": told}
                return out, err, {**failed, "details": {"causes": [cause]}}
        if self.no_shell:
            told = (
                f'exec failed: unable to start container process: exec: "{argv[0]}": executable file not found in $PATH'
            )
            return "", "", {"status": "Failure", "reason": "InternalError", "message": told, "code": 500}
        if argv[0] == "rdma" and "-json" in argv:
            # As iproute2 6.1: of these options it knows the first letter or two dashes.
            cause = {"reason": "ExitCode", "message": "1"}
            refused = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": [cause]}}
            return "", "Unknown option.\n", {**refused, "message": "command terminated with exit code 1"}
        entries = json.loads((pod["metadata"].get("annotations") or {}).get(STATUS) or "[]")
        rails = [entry for entry in entries if not entry.get("default")]
        if argv[0] == "sh":
            return "".join(gid_lines(rails)), "", {"status": "Success"}
        return json.dumps(self.rows(argv, rails)), "", {"status": "Success"}

    def rows(self, argv: list[str], rails: list[Json]) -> list[Json]:
        """Return the rows of ip and rdma, in the form of iproute2 6.1."""
        if argv[0] == "rdma":
            return [
                {
                    "ifindex": number,
                    "ifname": f"mlx5_{number}",
                    "port": 1,
                    "state": "ACTIVE",
                    "netdev": rail["interface"],
                }
                for number, rail in enumerate(rails)
            ]
        if "address" in argv:
            return [
                {
                    "ifname": rail["interface"],
                    "flags": ["BROADCAST", "UP", "LOWER_UP"],
                    "mtu": self.mtu(rail["name"]),
                    "addr_info": [{"family": "inet", "local": address, "scope": "global"} for address in rail["ips"]],
                }
                for rail in rails
            ]
        family = 6 if "-6" in argv else 4
        numbered = list(enumerate(rails, 101))
        if "rule" in argv:
            return [
                {"priority": 1000, "src": address, "table": str(number)}
                for number, rail in numbered
                for address in rail["ips"]
                if ipaddress.ip_address(address).version == family
            ]
        first = [{"dst": "default", "gateway": "10.244.1.1", "dev": "eth0", "flags": []}]
        return first + [
            {
                "dst": "default",
                "gateway": self.gateway(address),
                "dev": rail["interface"],
                "table": str(number),
                "flags": [],
            }
            for number, rail in numbered
            for address in rail["ips"]
            if ipaddress.ip_address(address).version == family
        ]

    def gateway(self, address: str) -> str:
        """Return the gateway of the pool that an address is of."""
        for pool in self.double.objects("SpiderIPPool").values():
            if ipaddress.ip_address(address) in ipaddress.ip_network(pool["spec"]["subnet"]):
                return str(pool["spec"].get("gateway") or "")
        return ""

    def mtu(self, name: str) -> int:
        """Return the MTU of a network's config."""
        spec = self.double.objects("SpiderMultusConfig")[name.partition("/")[2]]["spec"]
        return int((spec.get(spec["cniType"].replace("-", "")) or {}).get("mtu") or 1500)

    @staticmethod
    def stream(handler: Handler, out: str, err: str, status: Json) -> None:
        """Speak the WebSocket protocol of exec: output, errors and the status, each on its channel."""
        key = handler.headers["Sec-WebSocket-Key"]
        accept = base64.b64encode(hashlib.sha1((key + GUID).encode(), usedforsecurity=False).digest()).decode()
        handler.send_response_only(101)
        for name, value in (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Accept", accept),
            ("Sec-WebSocket-Protocol", PROTOCOL),
        ):
            handler.send_header(name, value)
        handler.end_headers()
        for channel, text in ((1, out), (2, err), (3, json.dumps({"metadata": {}, **status}))):
            if text:
                data = bytes([channel]) + text.encode()
                size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
                handler.wfile.write(b"\x82" + size + data)
        handler.wfile.write(b"\x88\x02\x03\xe8")
        handler.wfile.flush()
        handler.close_connection = True


def gid_lines(rails: list[Json]) -> t.Iterator[str]:
    """Give the GIDs of a node's devices as the kernel makes them for the addresses of a pod."""
    for number, rail in enumerate(rails):
        for index, address in enumerate(rail["ips"], 3):
            given = ipaddress.ip_address(address)
            whole = given if given.version == 6 else ipaddress.IPv6Address(f"::ffff:{given}")
            path = f"/sys/class/infiniband/mlx5_{number}/ports/1/gids/{index}"
            yield f"{path} {ipaddress.IPv6Address(int(whole)).packed.hex(':', 2)}\n"
