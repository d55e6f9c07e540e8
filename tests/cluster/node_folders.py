# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes' folders of CNI, as real folders: pods that look and take away run their own scripts in them.

Spiderpool's agents leave in them what the chart's agents leave.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import typing as t
from pathlib import Path

from api_kinds import Kind
from api_store import Json

if t.TYPE_CHECKING:
    from api_double import ApiDouble

CALICO = '{"name": "k8s-pod-network", "plugins": [{"type": "calico"}, {"type": "portmap"}, {"type": "bandwidth"}]}\n'
CONFIGURATIONS, PROGRAMS = "etc/cni/net.d", "opt/cni/bin"
# What kubespray and Calico bring along.
USUAL = (
    "bandwidth",
    "bridge",
    "calico",
    "calico-ipam",
    "host-local",
    "ipvlan",
    "loopback",
    "macvlan",
    "portmap",
    "tuning",
)
AGENTS = ("spiderpool", "coordinator", "ifacer", "multus", "passthru")
LABEL = "railops.io/probe"
LOG = "/dev/termination-log"


def lay(root: Path) -> None:
    """Lay out a node as kubespray and Calico leave it."""
    for name, text in (("10-calico.conflist", CALICO), ("calico-kubeconfig", "token: calico's\n")):
        write(root / CONFIGURATIONS / name, text)
    for name in USUAL:
        write(root / PROGRAMS / name, f"{name} of the cluster\n")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def tree(root: Path) -> dict[str, str]:
    """Return the files of a node with what is in them."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


def agent(root: Path, *, multus: bool = True, programs: t.Iterable[str] = AGENTS) -> None:
    """Leave what an agent of the chart leaves."""
    for name in programs:
        write(root / PROGRAMS / name, f"{name} of Spiderpool\n")
    if multus:
        write(root / CONFIGURATIONS / "00-multus.conf", '{"type": "multus", "clusterNetwork": "k8s-pod-network"}\n')
        write(root / CONFIGURATIONS / "multus.d/multus.kubeconfig", "token: the agent's\n")


def ran(pod: Json, root: Path) -> tuple[int, str]:
    """Run the script of a pod in the folders of its node; return its exit code and its termination message."""
    (box,) = pod["spec"]["containers"]
    # A real API leaves empty lists out.
    mounted = {row["mountPath"] for row in box.get("volumeMounts", ())}
    hosts = {f"/host{row['hostPath']['path']}" for row in pod["spec"].get("volumes", ())}
    assert mounted == hosts, "what is mounted is what the node has there"
    told = root / "termination-log"
    shell, flag, script, *words = box["command"]
    script = script.replace(LOG, str(told)).replace("/host$", f"{root}/$")
    done = subprocess.run([shell, flag, script, *words], capture_output=True, text=True, timeout=120, check=False)
    text = told.read_text() if told.exists() else ""
    told.unlink(missing_ok=True)
    assert len(text) <= 4096, "a kubelet keeps no more of a termination message"
    return done.returncode, text


class NodeFolders:
    """Plays what happens in the nodes' folders over the store of a double.

    `silent` are nodes whose kubelets start nothing.
    """

    def __init__(self, double: ApiDouble, folder: Path) -> None:
        self.double = double
        self.folder = folder
        self.silent: set[str] = set()
        # The pods of this kind that were made, by their nodes.
        self.asked: list[str] = []
        # What the chart's switches bring beside the agents' own programs.
        self.brought: tuple[str, ...] = ()
        double.store.after.append(self.after)

    def root(self, node: str) -> Path:
        """Return the root of a node, laid out when it is first seen."""
        root = self.folder / node
        if not root.exists():
            lay(root)
        return root

    def trees(self) -> dict[str, dict[str, str]]:
        """Return the files of all nodes."""
        return {name: tree(self.root(name)) for name in self.double.objects("Node")}

    def after(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """Follow pods."""
        if kind.kind != "Pod" or new is None or old is not None:
            return
        labels = new["metadata"].get("labels") or {}
        if labels.get("app.kubernetes.io/component") == "spiderpool-agent":
            # A stub's agents bring Multus; the real chart's have a container for it.
            agent(self.root(new["spec"]["nodeName"]), programs=(*AGENTS, *self.brought))
        elif labels.get(LABEL) == "node-cni":
            self.asked.append(new["spec"]["nodeName"])
            timer = threading.Timer(0.05, self.play, (kind, new))
            timer.daemon = True
            timer.start()

    def play(self, kind: Kind, pod: Json) -> None:
        """Let a pod end."""
        node, meta = pod["spec"]["nodeName"], pod["metadata"]
        if node in self.silent:
            return
        code, text = ran(pod, self.root(node))
        state = {"terminated": {"exitCode": code, "message": text, "reason": "Error" if code else "Completed"}}
        status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [{"name": "node", "state": state}]}
        with self.double.store.lock:
            if (meta["namespace"], meta["name"]) in self.double.store.table(kind):
                self.double.store.patch_status(kind, meta["namespace"], meta["name"], status)

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
