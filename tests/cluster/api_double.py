# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A double of the Kubernetes API over real HTTP: what clients, kubernetes.core and helm need, and faults on demand.

    with ApiDouble(nodes=["node1", "node2"]) as double:
        double.kubeconfig(path)
        double.faults.append(Fault(code=429, times=3, method="PATCH"))

    api_double.py --kubeconfig PATH [--nodes 2] [--spiderpool]

That serves on 127.0.0.1 until it is killed or its kubeconfig is removed; `--spiderpool` adds namespace and webhooks.

It serves upstream's CRDs when they lie beside the checkout (../shared/crds), else the project's stubs, and says which.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import signal
import ssl
import sys
import threading
import time
import typing as t
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import yaml

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "tools")]
import api_protobuf
from admission import Webhooks
from api_controllers import SPIDERPOOL, Controllers, inject
from api_kinds import VERBS, Kind, crd_folder, read_crds
from api_store import Json, Refused, Store, dig
from api_tls import Certificate, kubeconfig

TOKEN = "a-token-of-the-double"
VERSION = {"major": "1", "minor": "33", "gitVersion": "v1.33.0", "platform": "linux/amd64", "gitCommit": "double"}
_READS = ("GET", "HEAD")
# What can be asked of a kind, by subresource: anything else is refused by name, and not answered wrongly.
RULES = {
    "": ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"),
    "status": ("GET", "PUT", "PATCH"),
    "finalize": ("PUT",),
    "eviction": ("POST",),
    "log": ("GET",),
    "exec": ("GET", "POST"),
}
PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/apply-patch+yaml",
    "application/strategic-merge-patch+json",
)
UNSUPPORTED = ("UnsupportedMediaType", "415: Unsupported Media Type")
# Who has these subresources; a status has who serves one.
OWNED = {"finalize": "Namespace", "eviction": "Pod", "log": "Pod", "exec": "Pod"}


@dataclasses.dataclass
class Fault:
    """What goes wrong, with which requests, from which one on and how often (-1: for good)."""

    code: int = 0
    drop: bool = False
    drop_after: bool = False
    slow: float = 0.0
    retry_after: int | None = None
    method: str = ""
    path: str = ""
    skip: int = 0
    times: int = -1
    message: str = "a scripted fault"
    reason: str = "InternalError"

    def hits(self, method: str, path: str) -> bool:
        """Say whether this request is struck, and count it."""
        if not re.search(self.method, method) or not re.search(self.path, path) or self.times == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= 1
        return True


def refused(code: int, reason: str, message: str) -> Refused:
    """Return a refusal that says nothing more of what was asked."""
    made = Refused(code, reason, message)
    made.body["details"] = {}
    return made


def no_page() -> Refused:
    """Return the refusal of a path that no group serves: a text."""
    made = Refused(404, "", "404 page not found\n")
    made.body = {}
    return made


def without_rule(what: str) -> Refused:
    """Return the refusal of something that a real server may well answer."""
    return Refused(501, "NotImplemented", f"the API double has no rule for {what}")


class Dropped(Exception):
    """The connection is closed without an answer."""


class ApiDouble:
    """The server, its store, its controllers and its faults."""

    def __init__(self, *, nodes: t.Iterable[str] = (), crds: bool = True, admit: Webhooks | None = None) -> None:
        self.admission = admit
        self.store = Store(self.admit)
        if admit is not None:
            admit.watch(self.store)
        self.controllers = Controllers(self.store)
        self.faults: list[Fault] = []
        self.requests: list[tuple[str, str]] = []
        self.forbidden: set[str] = set()
        self.token = TOKEN
        self.webhook_down = False
        # Who plays pods (api_pods.Pods): without it they have no log and run no commands.
        self.pods: t.Any = None
        # Who plays the nodes' folders (node_folders.NodeFolders).
        self.folders: t.Any = None
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"double": self}))
        self._server.daemon_threads = True
        # helm sends no token over a connection that is not encrypted.
        made = Certificate("API double")
        self.authority = made.text
        self._server.socket = made.context().wrap_socket(
            self._server.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}"
        for name in ("default", "kube-system"):
            self.put("v1", "Namespace", name)
        if crds:
            self.install_crds()
        for name in nodes:
            self.add_node(name)

    def install_crds(self, folder: Path | None = None) -> None:
        """Serve the kinds of a folder of CRDs."""
        for crd in read_crds(folder or crd_folder()):
            kind = self.store.kind_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
            self.store.create(kind, "", crd, {}, "double")

    def put(self, api_version: str, kind: str, name: str, namespace: str = "", **body: t.Any) -> Json:
        """Make an object as if someone else did."""
        meta = {**body.pop("metadata", {}), "name": name}
        manager = body.pop("manager", "double")
        found = self.store.kind_of(api_version, kind)
        return self.store.create(found, namespace, {"metadata": meta, **body}, {}, manager)

    def add_node(self, name: str, **labels: str) -> None:
        """Join a ready node."""
        every = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", **labels}
        conditions = [{"type": "Ready", "status": "True"}]
        status = {"conditions": conditions, "allocatable": {"cpu": "8"}, "capacity": {"cpu": "8"}}
        self.put("v1", "Node", name, metadata={"labels": every}, spec={}, status=status)

    def objects(self, kind: str) -> dict[str, Json]:
        """Return the objects of a kind by name."""
        for made in self.store.kinds.values():
            if made.kind == kind:
                with self.store.lock:
                    return {key[1]: obj for key, obj in self.store.table(made).items()}
        return {}

    def admit(self, operation: str, kind: Kind, old: Json | None, new: Json) -> Json:
        """Stand where Spiderpool's webhooks stand."""
        if kind.group == SPIDERPOOL and self.webhook_down:
            hook = f"{kind.kind.lower()}.{SPIDERPOOL}"
            raise Refused(
                500,
                "InternalError",
                f'Internal error occurred: failed calling webhook "{hook}": failed to call webhook: Post '
                '"https://spiderpool-controller.spiderpool.svc:5722/mutate?timeout=10s": dial tcp 10.96.0.9:5722: '
                "connect: connection refused",
            )
        if kind.kind == "Pod" and operation == "CREATE":
            inject(new, self.objects("SpiderMultusConfig").values())
        if self.admission is None or operation == "DELETE":
            return new
        return self.admission(operation, kind, old, new)

    def kubeconfig(self, path: Path) -> Path:
        """Write a kubeconfig."""
        path.write_text(kubeconfig("double", self.url, self.authority, self.token), encoding="utf-8")
        return path

    def writes(self) -> int:
        """Return how often something was stored."""
        return self.store.writes

    def start(self) -> ApiDouble:
        """Serve in a thread."""
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def stop(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> ApiDouble:
        return self.start()

    def __exit__(self, *dummy: object) -> None:
        self.stop()


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    double: ApiDouble
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 65536

    def log_message(self, *dummy: object) -> None:
        """Say nothing: tests read what was asked in `requests`."""

    def handle(self) -> None:
        try:
            super().handle()
        except (TimeoutError, ConnectionError, ssl.SSLError):
            self.close_connection = True

    def do(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length) if length else b""
        double = self.double
        double.requests.append((self.command, self.path))
        after = False
        try:
            for fault in double.faults:
                if fault.hits(self.command, self.path):
                    after = after or fault.drop_after
                    self.strike(fault)
            code, answer = self.answer(url.path, query, raw)
            if after:
                raise Dropped
        except Dropped:
            self.close_connection = True
            self.connection.close()
            return
        except Refused as exc:
            self.send(exc.code, exc.body or str(exc), exc.headers)
            return
        if code:
            self.send(code, answer)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = do

    def strike(self, fault: Fault) -> None:
        """Let a fault happen."""
        if fault.slow:
            time.sleep(fault.slow)
        if fault.drop:
            raise Dropped
        if fault.code:
            refused = Refused(fault.code, fault.reason, fault.message)
            if fault.retry_after is not None:
                refused.headers["Retry-After"] = str(fault.retry_after)
            raise refused

    def send(self, code: int, body: Json | str, headers: dict[str, str] | None = None) -> None:
        """Answer with JSON, or a text, in one packet."""
        data = body.encode() if isinstance(body, str) else json.dumps(body, separators=(",", ":")).encode()
        self.send_response_only(code)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def answer(self, path: str, query: dict[str, str], raw: bytes) -> tuple[int, Json]:
        """Find what is asked for and do it."""
        double = self.double
        scheme, _blank, given = self.headers.get("Authorization", "").partition(" ")
        if (scheme.lower(), given) != ("bearer", double.token):
            raise Refused(401, "Unauthorized", "Unauthorized")
        parts = [urllib.parse.unquote(part) for part in path.split("/") if part]
        plain = self.discovery(parts)
        if plain is not None:
            return 200, plain
        kind, namespace, name, sub = self.resolve(parts)
        self.ruled(kind, sub)
        content = self.headers.get("Content-Type", "").split(";")[0]
        body = self.parse(raw, content)
        self.allowed(kind, namespace, name, sub)
        if sub in ("log", "exec"):
            return double.pods.answer(self, namespace, name, sub)
        if self.command in _READS:
            return self.read(kind, namespace, name, query)
        store = double.store
        manager = query.get("fieldManager") or self.headers.get("User-Agent", "unknown").split("/")[0]
        if self.command == "POST":
            if sub == "eviction":
                store.delete(kind, namespace, name, {}, query)
                return 201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
            return 201, store.create(kind, namespace, body, query, manager)
        if self.command == "PUT":
            return 200, store.update(kind, namespace, name, body, query, manager, sub)
        if self.command == "PATCH":
            return self.patch(kind, namespace, name, sub, body, content, query, manager)
        if name:
            return 200, store.delete(kind, namespace, name, body or {}, query)
        raise without_rule("deletecollection")

    @staticmethod
    def parse(raw: bytes, content: str) -> t.Any:
        """Return the body."""
        if not raw:
            return {}
        try:
            if content == "application/vnd.kubernetes.protobuf":
                return api_protobuf.decode(raw)
            return yaml.load(raw, yaml.CSafeLoader) if content.endswith("yaml") and raw[:1] != b"{" else json.loads(raw)
        except ValueError as exc:
            raise refused(415, *UNSUPPORTED) from exc

    # Discovery

    def discovery(self, parts: list[str]) -> Json | None:
        """Answer what the API serves, or None when something else was asked."""
        kinds = list(self.double.store.kinds.values())
        if parts == ["version"]:
            return VERSION
        if parts == ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        groups: dict[str, list[str]] = {}
        for kind in kinds:
            if kind.group and kind.version not in groups.setdefault(kind.group, []):
                groups[kind.group].append(kind.version)
        if parts == ["apis"]:
            rows = [self.group(name, versions) for name, versions in groups.items()]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": rows}
        if len(parts) == 2 and parts[0] == "apis" and parts[1] in groups:
            return {"kind": "APIGroup", "apiVersion": "v1", **self.group(parts[1], groups[parts[1]])}
        api = "/".join(parts[1:])
        if (len(parts), parts[0]) in ((2, "api"), (3, "apis")):
            found = [kind for kind in kinds if kind.api_version == api]
            if not found:
                raise no_page()
            rows = sorted((row for kind in found for row in self.resources(kind)), key=lambda row: row["name"])
            # The oldest group's list does not say of which version it is.
            about = {"apiVersion": "v1"} if parts[0] == "apis" else {}
            return {"kind": "APIResourceList", **about, "groupVersion": api, "resources": rows}
        return self.openapi(parts, kinds)

    @staticmethod
    def group(name: str, versions: list[str]) -> Json:
        """Return a group of discovery."""
        rows = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
        return {"name": name, "versions": rows, "preferredVersion": rows[0]}

    @staticmethod
    def resources(kind: Kind) -> list[Json]:
        """Return the rows of discovery for a kind."""
        verbs = VERBS
        row = {"name": kind.plural, "singularName": kind.kind.lower(), "namespaced": kind.namespaced, "kind": kind.kind}
        if kind.kind == "Namespace":
            verbs = [verb for verb in verbs if verb != "deletecollection"]
        rows = [{**row, "verbs": verbs, "shortNames": list(kind.short)} if kind.short else {**row, "verbs": verbs}]
        row["singularName"] = ""
        if kind.status:
            rows.append({**row, "name": f"{kind.plural}/status", "verbs": ["get", "patch", "update"]})
        if kind.kind == "Pod":
            rows.append(
                {
                    **row,
                    "name": "pods/eviction",
                    "kind": "Eviction",
                    "group": "policy",
                    "version": "v1",
                    "verbs": ["create"],
                }
            )
        return rows

    def openapi(self, parts: list[str], kinds: list[Kind]) -> Json | None:
        """Answer just enough of OpenAPI v3 that clients leave validation to the server."""
        if parts[0] != "openapi":
            return None
        if parts == ["openapi", "v3"]:
            apis = {f"apis/{kind.api_version}" if kind.group else "api/v1" for kind in kinds}
            return {"paths": {api: {"serverRelativeURL": f"/openapi/v3/{api}"} for api in sorted(apis)}}
        if parts[:2] == ["openapi", "v3"]:
            api = "/".join(parts[3:])
            paths = {
                f"/{'/'.join(parts[2:])}/{kind.plural}/{{name}}": {
                    "patch": {
                        "x-kubernetes-group-version-kind": {
                            "group": kind.group,
                            "version": kind.version,
                            "kind": kind.kind,
                        },
                        "parameters": [{"name": "fieldValidation", "in": "query", "schema": {"type": "string"}}],
                        "responses": {},
                    }
                }
                for kind in kinds
                if kind.api_version == api
            }
            info = {"title": "double", "version": "v1"}
            return {"openapi": "3.0.0", "info": info, "paths": paths, "components": {"schemas": {}}}
        return {"swagger": "2.0", "info": {"title": "double", "version": "v1"}, "paths": {}, "definitions": {}}

    def resolve(self, parts: list[str]) -> tuple[Kind, str, str, str]:
        """Return kind, namespace, name and subresource of a path."""
        group, version, rest = ("", parts[1], parts[2:]) if parts[0] == "api" else (parts[1], parts[2], parts[3:])
        namespace = ""
        if rest[0] == "namespaces" and len(rest) > 2 and rest[2] not in ("status", "finalize"):
            namespace, rest = rest[1], rest[2:]
        kind = self.double.store.kinds.get((group, version, rest[0]))
        if kind is None:
            if "." not in group or group.endswith(".k8s.io"):
                raise without_rule(f"{rest[0]} of {group or 'the core'}/{version}")
            raise no_page()
        return kind, namespace, rest[1] if len(rest) > 1 else "", rest[2] if len(rest) > 2 else ""

    def ruled(self, kind: Kind, sub: str) -> None:
        """Refuse what the double does not implement."""
        there = OWNED.get(sub, kind.kind) == kind.kind and (sub != "status" or kind.status)
        simulated = sub not in ("log", "exec") or self.double.pods is not None
        if self.command not in RULES.get(sub, ()) or not there or not simulated:
            raise without_rule(f"{self.command} of {'/'.join(filter(None, (kind.plural, sub)))}")

    def allowed(self, kind: Kind, namespace: str, name: str, sub: str) -> None:
        """Refuse what this identity may not do."""
        user = self.headers.get("Impersonate-User", "tester")
        whole = "/".join(filter(None, (kind.plural, sub)))
        if not self.forbidden(user, whole, write=self.command not in _READS):
            return
        of_one = {"GET": "get", "PATCH": "patch", "DELETE": "delete", "POST": "create", "PUT": "update"}
        of_all = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}
        verb = (of_one if name else of_all).get(self.command, "get")
        group = f".{kind.group}" if kind.group else ""
        shown = f' "{name}"' if name else ""
        where = f' in the namespace "{namespace}"' if namespace else " at the cluster scope"
        why = f'{kind.plural}{group}{shown} is forbidden: User "{user}" cannot {verb} resource "{whole}" in API group '
        why += f'"{kind.group}"{where}'
        raise Refused(403, "Forbidden", why, name=name, group=kind.group, kind=kind.plural)

    def forbidden(self, user: str, plural: str, *, write: bool) -> bool:
        """Say whether an identity may not do something: the tester what a test forbids, others anything.

        A test's set `forbidden` holds plurals, or plural:verb-class `write`.
        """
        listed = self.double.forbidden
        return user != "tester" or plural in listed or (write and f"{plural}:write" in listed)

    # Requests

    def read(self, kind: Kind, namespace: str, name: str, query: dict[str, str]) -> tuple[int, Json]:
        """Answer a get, a list or a watch."""
        store = self.double.store
        if query.get("watch") in ("true", "1"):
            if "sendInitialEvents" in query:
                raise Refused(422, "Invalid", "sendInitialEvents: Forbidden: the double has no streaming lists")
            self.watch(kind, namespace, query)
            return 0, {}
        if name:
            return 200, store.get(kind, namespace, name)
        return 200, store.list(kind, namespace, query)

    def watch(self, kind: Kind, namespace: str, query: dict[str, str]) -> None:
        """Stream what happens to a kind until the time is over."""
        store = self.double.store
        since = int(query.get("resourceVersion") or 0)
        end = time.monotonic() + float(query.get("timeoutSeconds") or 300)
        self.send_response_only(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        if not since:
            with store.lock:
                for obj in store.list(kind, namespace, {k: v for k, v in query.items() if "Selector" in k})["items"]:
                    self.event("ADDED", store.shown(kind, obj))
                since = store.version
        while time.monotonic() < end:
            with store.changed:
                fresh = [row for row in store.journal if row[0] > since]
                if not fresh:
                    store.changed.wait(min(1.0, max(0.01, end - time.monotonic())))
                    continue
            for version, what, of, obj in fresh:
                since = max(since, version)
                meta = obj["metadata"]
                if (
                    (of.group, of.plural) == (kind.group, kind.plural)
                    and (not namespace or meta.get("namespace") == namespace)
                    and store.selected(obj, query)
                ):
                    self.event(what, store.shown(kind, obj))
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

    def event(self, what: str, obj: Json) -> None:
        """Send one event of a watch."""
        data = json.dumps({"type": what, "object": obj}).encode() + b"\n"
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        sub: str,
        body: t.Any,
        content: str,
        query: dict[str, str],
        manager: str,
    ) -> tuple[int, Json]:
        """Apply or merge."""
        store = self.double.store
        if content == "application/apply-patch+yaml":
            return store.apply(kind, namespace, name, body, query, sub)
        if content == "application/strategic-merge-patch+json" and kind.custom:
            taken = ", ".join(name for name in PATCHES if not name.startswith("application/strategic"))
            why = f"the body of the request was in an unknown format - accepted media types include: {taken}"
            raise Refused(415, "UnsupportedMediaType", why)
        with store.lock:
            old = store.get(kind, namespace, name)
            if not content.endswith("merge-patch+json"):
                raise without_rule(content) if content in PATCHES else refused(415, *UNSUPPORTED)
            new = merge_patch(old, body, strategic=content.startswith("application/strategic"))
            if not dig(body, "metadata.resourceVersion"):
                new["metadata"].pop("resourceVersion", None)
            return 200, store.update(kind, namespace, name, new, query, manager, sub)


def merge_patch(old: t.Any, patch: t.Any, *, strategic: bool = False) -> t.Any:
    """Return old with an RFC 7386 patch; strategic merges lists of named things by name, conditions by type."""
    if not isinstance(patch, dict):
        if strategic and isinstance(patch, list) and isinstance(old, list):
            every = [row for row in [*old, *patch] if isinstance(row, dict)]
            key = next((key for key in ("name", "type") if all(key in row for row in every)), "")
            if key and len(every) == len(old) + len(patch):
                # What is new stands in front.
                rows = {row[key]: {} for row in patch if row[key] not in {one[key] for one in old}}
                rows |= {row[key]: row for row in old}
                for row in patch:
                    if row.get("$patch") == "delete":
                        rows.pop(row[key], None)
                    else:
                        rows[row[key]] = merge_patch(rows.get(row[key], {}), row, strategic=True)
                return list(rows.values())
        return patch
    new = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if strategic and name.startswith("$"):
            continue
        if value is None:
            new.pop(name, None)
        else:
            new[name] = merge_patch(new.get(name), value, strategic=strategic)
            if strategic and new[name] == []:
                # As Go's omitempty leaves a list whose last row is gone.
                del new[name]
    return new


def main() -> None:
    """Serve until killed, or until the kubeconfig is removed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--spiderpool", action="store_true")
    options = parser.parse_args()
    names = [f"node{number + 1}" for number in range(options.nodes)]
    with ApiDouble(nodes=names, admit=Webhooks() if options.spiderpool else None) as double:
        if options.spiderpool:
            double.put("v1", "Namespace", "spiderpool")
        double.kubeconfig(options.kubeconfig)
        print(f"{double.url} with the CRDs of {crd_folder()}", flush=True)
        while not signal.sigtimedwait([signal.SIGTERM, signal.SIGINT], 1) and options.kubeconfig.exists():
            pass


if __name__ == "__main__":
    main()
