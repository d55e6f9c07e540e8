# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The nodes' folders of CNI, as real folders: Spiderpool's agents leave in them what the chart's agents leave."""

from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

from api_kinds import Kind
from api_store import Json

if t.TYPE_CHECKING:
    from api_double import ApiDouble

CALICO = '{"name": "k8s-pod-network", "plugins": [{"type": "calico"}, {"type": "portmap"}, {"type": "bandwidth"}]}\n'
CONFIGURATIONS, PLUGINS = "etc/cni/net.d", "opt/cni/bin"
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
AGENT, MULTUS = ("coordinator", "ifacer", "spiderpool"), ("multus", "passthru")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def tree(root: Path) -> dict[str, str]:
    """Return the files of a node with what is in them."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}


class NodeFolders:
    """Plays what happens in the nodes' folders over the store of a double."""

    def __init__(self, double: ApiDouble, folder: Path) -> None:
        self.double = double
        self.folder = folder
        double.store.after.append(self.after)

    def root(self, node: str) -> Path:
        """Return the root of a node, laid out when it is first seen, as kubespray and Calico leave it."""
        root = self.folder / node
        if not root.exists():
            for name, text in (("10-calico.conflist", CALICO), ("calico-kubeconfig", "token: calico's\n")):
                write(root / CONFIGURATIONS / name, text)
            for name in USUAL:
                write(root / PLUGINS / name, f"{name} of the cluster\n")
        return root

    def trees(self) -> dict[str, dict[str, str]]:
        """Return the files of all nodes."""
        return {name: tree(self.root(name)) for name in self.double.objects("Node")}

    def after(self, kind: Kind, old: Json | None, new: Json | None) -> None:
        """Follow the agents' pods: an agent writes its files, and Multus' hook removes its own."""
        pod = (old if new is None else new if old is None else None) or {}
        component = (pod.get("metadata", {}).get("labels") or {}).get("app.kubernetes.io/component")
        if kind.kind != "Pod" or component != "spiderpool-agent":
            return
        root = self.root(pod["spec"]["nodeName"])
        multus = next((box for box in pod["spec"]["containers"] if box["name"] == "multus-cni"), None)
        if new is None:
            if multus and "preStop" in multus.get("lifecycle", {}):
                (root / CONFIGURATIONS / "00-multus.conf").unlink(missing_ok=True)
                shutil.rmtree(root / CONFIGURATIONS / "multus.d", ignore_errors=True)
            return
        for name in (*AGENT, *(MULTUS if multus else ())):
            write(root / PLUGINS / name, f"{name} of Spiderpool\n")
        if multus:
            write(root / CONFIGURATIONS / "00-multus.conf", '{"type": "multus", "clusterNetwork": "k8s-pod-network"}\n')
            write(root / CONFIGURATIONS / "multus.d/multus.kubeconfig", "token: the agent's\n")

    def close(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
