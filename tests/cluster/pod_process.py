# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Run a container of a pod as a real process, as far as its program is at hand and needs no node.

The program gets what its pod's spec says: command, arguments, environment, and the files of its ConfigMaps, Secrets and
service account, in a root folder and a network namespace of its own (they are static programs, which need nothing
else). So two controllers can listen on the same port side by side, as on two nodes, and each reads its configuration
at its own start. The namespace has one way: to the API and back.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import time
import typing as t
from pathlib import Path

import programs
from control_plane import PORT, SERVICE

Json = dict[str, t.Any]
# What runs without a kubelet and its node.
NAMES = ("spiderpool-controller", "spiderpool-init")
# A ConfigMap with what nodes have in the folder of their CNI configurations: the controller looks into it.
NODE_CNI = "/api/v1/namespaces/kube-system/configmaps/played-cni"


class Read(t.Protocol):
    """What is needed of the API."""

    def call(self, method: str, path: str, body: t.Any = None, **query: str) -> Json: ...


def is_real(pod: Json) -> bool:
    """Whether the pod's container is run as a process."""
    first = pod["spec"]["containers"][0]
    name = Path((first.get("command") or [""])[0]).name
    return name in NAMES and programs.file_of(name) is not None


class PodProcess:
    """The one container of a pod, started.

    :param folder: takes the root folder and the log.
    :param address: of the pod; `gateway` is the API's, on this side.
    """

    def __init__(self, api: Read, pod: Json, folder: Path, address: str, gateway: str) -> None:
        self._api = api
        self._pod = pod
        self._spec: Json = pod["spec"]["containers"][0]
        self._root = folder / "root"
        self.log = folder / "log"
        self.address = address
        folder.mkdir(parents=True, exist_ok=True)
        self._fill()
        self._holder = namespace(address, gateway)
        self._process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        inside = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", f"--root={self._root}", "--wd=/"]
        argv = [*inside, "--", *self._spec["command"], *(self._spec.get("args") or ())]
        with self.log.open("wb") as log:
            return subprocess.Popen(argv, env=self._environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def exit_code(self) -> int | None:
        """Return how it ended; None while it runs."""
        code = self._process.poll()
        return code if code is None or code >= 0 else 128 - code

    def end(self, seconds: float = 10) -> None:
        """End it as a kubelet does, and its namespace."""
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._holder.kill()
        self._holder.wait()
        shutil.rmtree(self._root, ignore_errors=True)

    def _fill(self) -> None:
        """Write the root folder: the program and the files of its volumes."""
        shutil.rmtree(self._root, ignore_errors=True)
        program = self._root / self._spec["command"][0].lstrip("/")
        for path in (program.parent, self._root / "tmp", self._root / "etc"):
            path.mkdir(parents=True, exist_ok=True)
        (self._root / "etc/hosts").write_text("127.0.0.1 localhost\n", encoding="utf-8")
        source = programs.program(program.name)
        try:
            os.link(source, program)
        except OSError:
            shutil.copy2(source, program)
        volumes = {volume["name"]: volume for volume in self._pod["spec"].get("volumes") or ()}
        for mount in self._spec.get("volumeMounts") or ():
            target = self._root / mount["mountPath"].lstrip("/")
            target.mkdir(parents=True, exist_ok=True)
            for name, data in self._files(volumes[mount["name"]]):
                (target / name).write_bytes(data)

    def _files(self, volume: Json) -> t.Iterator[tuple[str, bytes]]:
        """Give the files of a volume, or of one source of a projected one."""
        for source in volume.get("projected", {}).get("sources", ()):
            yield from self._files(source)
        if "configMap" in volume:
            found = self._object("configmaps", volume["configMap"]["name"])
            yield from chosen(volume["configMap"], {name: text.encode() for name, text in found["data"].items()})
        if "secret" in volume:
            name = volume["secret"].get("secretName") or volume["secret"]["name"]
            data = {key: base64.b64decode(text) for key, text in self._object("secrets", name)["data"].items()}
            yield from chosen(volume["secret"], data)
        if "serviceAccountToken" in volume:
            request = {"spec": {"expirationSeconds": 3600}}
            path = f"{self._here('serviceaccounts')}/{self._pod['spec']['serviceAccountName']}/token"
            token = self._api.call("POST", path, request)["status"]["token"]
            yield volume["serviceAccountToken"]["path"], token.encode()
        for item in volume.get("downwardAPI", {}).get("items", ()):
            yield item["path"], self._field(item["fieldRef"]["fieldPath"]).encode()
        if volume.get("hostPath", {}).get("path", "").endswith("/cni/net.d"):
            for name, text in self._api.call("GET", NODE_CNI)["data"].items():
                yield name, text.encode()

    def _here(self, plural: str) -> str:
        return f"/api/v1/namespaces/{self._pod['metadata']['namespace']}/{plural}"

    def _object(self, plural: str, name: str) -> Json:
        return self._api.call("GET", f"{self._here(plural)}/{name}")

    def _environment(self) -> dict[str, str]:
        made = {
            "PATH": "/usr/bin:/bin",
            "HOME": "/tmp",
            "HOSTNAME": self._pod["metadata"]["name"],
            "KUBERNETES_SERVICE_HOST": SERVICE,
            "KUBERNETES_SERVICE_PORT": str(PORT),
        }
        for row in self._spec.get("env") or ():
            field = row.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            made[row["name"]] = self._field(field) if field else row.get("value", "")
        return made

    def _field(self, path: str) -> str:
        if path == "status.podIP":
            return self.address
        value: t.Any = self._pod
        for key in path.split("."):
            value = value[key]
        return str(value)


def chosen(source: Json, data: dict[str, bytes]) -> t.Iterator[tuple[str, bytes]]:
    """Give the files that a volume takes of an object's data: those that it names, else all."""
    if source.get("items"):
        yield from ((item["path"], data[item["key"]]) for item in source["items"])
    else:
        yield from data.items()


def namespace(address: str, gateway: str) -> subprocess.Popen[bytes]:
    """Make a network namespace with one address, joined to this one by a cable; it lasts as long as the process."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"], stdin=subprocess.DEVNULL)
    while os.readlink(f"/proc/{holder.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
        time.sleep(0.01)
    port = f"pod{address.rpartition('.')[2]}"
    there = ["nsenter", f"--net=/proc/{holder.pid}/ns/net", "ip"]
    for words in (
        ["ip", "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid)],
        ["ip", "link", "set", port, "up"],
        ["ip", "route", "replace", f"{address}/32", "dev", port, "src", gateway],
        [*there, "link", "set", "lo", "up"],
        [*there, "address", "add", f"{address}/32", "dev", "eth0"],
        [*there, "link", "set", "eth0", "up"],
        [*there, "route", "add", "default", "via", gateway, "dev", "eth0", "onlink"],
    ):
        subprocess.run(words, check=True)
    return holder
