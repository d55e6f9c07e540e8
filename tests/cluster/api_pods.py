# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pods that seem to run: networks with addresses of the pools, and commands inside of them, by exec.

What a pod prints follows from what is in the store: a client reaches a server only at the address and port where one
waits at that moment, and an address comes from the pool that the network's config and the node choose. As in a pod, a
command's stream is open while it runs, and its exit code comes last. Tests break it from there.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import fnmatch
import hashlib
import ipaddress
import json
import threading
import time
import typing as t
import urllib.parse
from collections import Counter
from pathlib import Path

from api_controllers import NETWORKS
from api_kinds import Kind
from api_store import Json, Refused, dig

if t.TYPE_CHECKING:
    from api_double import ApiDouble, Handler

STATUS = "k8s.v1.cni.cncf.io/network-status"
GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
PROTOCOL = "v4.channel.k8s.io"

# What ib_read_lat prints.
PRINTED = Path(__file__).resolve().parents[1] / "unit/fixtures/perftest"


class Server:
    """A program that waits for a client."""

    def __init__(self, node: str) -> None:
        self.node = node
        self.met = threading.Event()


class Pods:
    """Plays pods over the store of a double. `delay` is the time that each step takes."""

    def __init__(self, double: ApiDouble, delay: float = 0.05) -> None:
        self.double = double
        self.delay = delay
        # What goes wrong, by (client, server, rail): what is printed and an exit code.
        self.broken: dict[tuple[str, str, str], tuple[str, int]] = {}
        self.no_shell = False
        # Addresses that answer no pings, and who pinged: node, interface, source, address.
        self.mute: set[str] = set()
        self.pinged: list[tuple[str, ...]] = []
        # Nodes whose kubelet is silent, and who learns of each test that begins.
        self.silent: set[str] = set()
        self.began: list[t.Callable[[str, str, str], None]] = []
        # Tests by (client, server, rail), with their ports, and how many a rail of a node had at once.
        self.tested: list[tuple[str, str, str, int]] = []
        self.most_on_a_rail = 0
        self._busy: Counter[tuple[str, str]] = Counter()
        self.waiting: dict[tuple[str, int], Server] = {}
        self._lock = threading.Lock()
        self._given: dict[str, int] = {}
        double.pods = self
        double.store.after.append(self.after)

    def after(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """Follow pods."""
        if new is None or new["metadata"].get("deletionTimestamp"):
            return
        if kind.kind == "Pod" and old is None and dig(new, "status.phase") == "Running":
            self.attach(new)

    def kind(self) -> Kind:
        """Return the kind of pods."""
        return self.double.store.kind_of("v1", "Pod")

    # Tests between pods

    def perftest(self, pod: Json, words: list[str]) -> tuple[str, int]:
        """Return what an end of a test prints, and its exit code, when it has ended."""
        seconds, port, interface = int(words[1]), int(words[2]), words[3]
        entries = json.loads(pod["metadata"]["annotations"][STATUS])
        entry = next(entry for entry in entries if entry["interface"] == interface)
        node, rail = dig(pod, "spec.nodeName"), entry["name"].rpartition("-")[2]
        if len(words) == 4:
            return self.serve(node, [(address, port) for address in entry["ips"]], seconds)
        with self._lock:
            server = self.waiting.get((words[4], port))
        if server is None or server.node in self.silent:
            text = (PRINTED / "read_lat_no_server.txt").read_text(encoding="utf-8")
            return text.replace("172.17.0.35:18515", f"{words[4]}:{port}"), 1
        for act in self.began:
            act(node, server.node, rail)
        ends = [(node, rail), (server.node, rail)]
        with self._lock:
            self.tested.append((node, server.node, rail, port))
            self._busy.update(ends)
            self.most_on_a_rail = max(self.most_on_a_rail, *self._busy.values())
        good = (PRINTED / "read_lat_client.txt").read_text(encoding="utf-8")
        log, code = self.broken.get((node, server.node, rail)) or (good, 0)
        time.sleep(self.delay)
        with self._lock:
            self._busy.subtract(ends)
        server.met.set()
        return log, code

    def ping(self, pod: Json, argv: list[str]) -> tuple[str, str, Json]:
        """Return what a ping prints; an address that no pod has does not answer."""
        sent_by = [argv[at + 1] for at, word in enumerate(argv) if word == "-I"]
        self.pinged.append((dig(pod, "spec.nodeName"), *sent_by, argv[-1]))
        notes = (json.loads(dig(row, "metadata.annotations")[STATUS]) for row in self.double.objects("Pod").values())
        have = {address for rows in notes for row in rows for address in row["ips"]} - self.mute
        if argv[-1] not in have:
            return "3 packets transmitted, 0 received, 100% packet loss, time 2040ms\n", "", ended(1, "")
        times = "rtt min/avg/max/mdev = 0.041/0.052/0.070/0.012 ms\n"
        return f"3 packets transmitted, 3 received, 0% packet loss, time 2ms\n{times}", "", ended(0, "")

    def serve(self, node: str, places: list[tuple[str, int]], seconds: int) -> tuple[str, int]:
        """Wait for a client, a moment after the start."""
        time.sleep(self.delay)
        server = Server(node)
        with self._lock:
            if any(place in self.waiting for place in places):
                return f"Couldn't listen to port {places[0][1]}\n", 1
            self.waiting.update(dict.fromkeys(places, server))
        met = server.met.wait(seconds)
        with self._lock:
            for place in places:
                del self.waiting[place]
        return "", 0 if met else 124

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
        """Answer a request for a log, which is empty, or for a command."""
        pod = self.double.store.get(self.kind(), namespace, name)
        if sub == "log":
            handler.send_response_only(200)
            handler.send_header("Content-Type", "text/plain")
            handler.send_header("Content-Length", "0")
            handler.end_headers()
            return 0, {}
        if (node := dig(pod, "spec.nodeName")) in self.silent:
            raise Refused(500, "InternalError", f"error dialing backend: dial tcp {node}:10250: i/o timeout")
        query = urllib.parse.parse_qsl(urllib.parse.urlsplit(handler.path).query)
        self.opened(handler)
        with contextlib.suppress(OSError):
            self.closed(handler, *self.run(pod, [value for key, value in query if key == "command"]))
        handler.close_connection = True
        return 0, {}

    def run(self, pod: Json, argv: list[str]) -> tuple[str, str, Json]:
        """Return what a command prints, and the status that ends it."""
        if self.no_shell:
            reported = (
                f'exec failed: unable to start container process: exec: "{argv[0]}": executable file not found in $PATH'
            )
            return "", "", {"status": "Failure", "reason": "InternalError", "message": reported, "code": 500}
        if argv[3:4] == ["railops"]:
            out, code = self.perftest(pod, argv[4:])
            return out, "", ended(code, "")
        if argv[0] == "ping":
            return self.ping(pod, argv)
        if argv[0] == "rdma" and "-json" in argv:
            # As iproute2 6.1: of these options it knows the first letter or two dashes.
            return "", "Unknown option.\n", ended(1, "")
        entries = json.loads((pod["metadata"].get("annotations") or {}).get(STATUS) or "[]")
        rails = [entry for entry in entries if not entry.get("default")]
        if argv[0] == "sh":
            return "".join(gid_lines(rails)), "", ended(0, "")
        return json.dumps(self.rows(argv, rails)), "", ended(0, "")

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
    def opened(handler: Handler) -> None:
        """Begin to speak the WebSocket protocol of exec."""
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
        handler.wfile.flush()

    @staticmethod
    def closed(handler: Handler, out: str, err: str, status: Json) -> None:
        """Send output, errors and the status, each on its channel, and end."""
        for channel, text in ((1, out), (2, err), (3, json.dumps({"metadata": {}, **status}))):
            sent = text.encode()
            for begin in range(0, len(sent), 2**14):
                data = bytes([channel]) + sent[begin : begin + 2**14]
                size = bytes([len(data)]) if len(data) < 126 else b"\x7e" + len(data).to_bytes(2, "big")
                handler.wfile.write(b"\x82" + size + data)
        handler.wfile.write(b"\x88\x02\x03\xe8")
        handler.wfile.flush()


def ended(code: int, err: str) -> Json:
    """Return the status of a command that has ended."""
    if not code:
        return {"status": "Success"}
    reported = f"command terminated with non-zero exit code: {err.strip()}"
    cause = {"reason": "ExitCode", "message": str(code)}
    return {"status": "Failure", "reason": "NonZeroExitCode", "message": reported, "details": {"causes": [cause]}}


def gid_lines(rails: list[Json]) -> t.Iterator[str]:
    """Give the GIDs of a node's devices as the kernel makes them for the addresses of a pod."""
    for address in (address for rail in rails for address in rail["ips"]):
        given = ipaddress.ip_address(address)
        whole = given if given.version == 6 else ipaddress.IPv6Address(f"::ffff:{given}")
        yield f"{ipaddress.IPv6Address(int(whole)).packed.hex(':', 2)}\n"
