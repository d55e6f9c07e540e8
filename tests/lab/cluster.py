# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster of a lab of guests: a real control plane beside the controller, a real kubelet on each guest.

The API is where the guests' default route leads, so its service address needs no proxy. Pods have a bridge of their
node as first network; the fabric's namespace routes between the nodes' bridges. Nothing of Spiderpool is here: that is
what the collection installs.
"""

from __future__ import annotations

import json
import secrets
import time
import typing as t
from pathlib import Path

import container_images
import state
from shell import CHECKOUT, LabError, environments, ip, run, say, wait_for
from topology import MANAGEMENT, Host, Lab

HERE = Path(__file__).resolve().parent
ADDRESS = str(MANAGEMENT[1])
PODS = "10.244.0.0/16"
SERVICES = "10.96.0.0/16"
# The DaemonSet that shows that the cluster has a network of its own.
NETWORK = "lab-bridge"
# The chart gives a start a minute or two. On a busy machine an emulated one takes longer, and would restart forever.
PATIENT = {"healthChecking": {"startupProbe": {"failureThreshold": 300}, "livenessProbe": {"failureThreshold": 30}}}
Files = dict[str, tuple[str, int]]


def folder(lab: Lab) -> Path:
    """Return the folder of the control plane: keys, logs, kubeconfig."""
    return state.folder(lab.name) / "cluster"


def kubeconfig(lab: Lab) -> Path:
    """Return the kubeconfig of the cluster's administrator."""
    return folder(lab) / "kubeconfig"


def binaries(lab: Lab) -> Path:
    """Return the folder with helm and kubectl."""
    return folder(lab) / "bin"


def pods_of(host: Host) -> str:
    """Return the network of a node's pods."""
    return f"10.244.{host.number}.0/24"


def start(lab: Lab) -> None:
    """Start the control plane and route to the pods that there will be."""
    home = folder(lab)
    home.mkdir(mode=0o700)
    binaries(lab).mkdir()
    for name, path in tools().items():
        (binaries(lab) / name).symlink_to(path)
    identities = []
    for host in lab.hosts:
        token = secrets.token_hex(16)
        (home / f"{host.name}.token").write_text(token, encoding="utf-8")
        identities.append(f'{token},system:node:{host.name},{host.name},"system:nodes"')
    (home / "nodes.csv").write_text("\n".join(identities) + "\n", encoding="utf-8")
    python = str(environments.environment(None) / "python")
    state.start(lab.fabric, [python, str(HERE / "keeper.py"), str(home), ADDRESS], home, "keeper")
    ip(lab.fabric, [["route", "add", pods_of(host), "via", host.address] for host in lab.hosts])

    def up() -> bool:
        if not is_up(lab):
            text = (home / "keeper.log").read_text(encoding="utf-8").strip()[-2000:]
            raise LabError("The control plane has ended.", text or "It said nothing.")
        return (home / "ready").exists()

    wait_for("The control plane", up, seconds=180, step=0.1, fix=f"Start with --keep and read the logs in {home}.")


def tools() -> dict[str, str]:
    """Return the paths of helm and kubectl, fetched when missing."""
    argv = [str(environments.environment(None) / "python"), str(CHECKOUT / "tests/cluster/tools.py")]
    return {name: run([*argv, name], timeout=600).stdout.strip() for name in ("helm", "kubectl")}


def node_files(lab: Lab, host: Host) -> Files:
    """Return what makes one guest this node: its identity, its address, its pods' network."""
    home = folder(lab)
    token = (home / f"{host.name}.token").read_text(encoding="utf-8")
    api = {"server": f"https://{ADDRESS}:443", "certificate-authority": "/etc/kubernetes/ca.crt"}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "lab",
        "clusters": [{"name": "lab", "cluster": api}],
        "users": [{"name": "lab", "user": {"token": token}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "lab"}}],
    }
    ipam = {"type": "host-local", "ranges": [[{"subnet": pods_of(host)}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": ipam}
    network = {"cniVersion": "0.4.0", "name": "bridge", "plugins": [bridge]}
    arguments = f"--hostname-override={host.name} --node-ip={host.address}"
    return {
        "etc/kubernetes/ca.crt": ((home / "tls.crt").read_text(encoding="utf-8"), 0o644),
        # JSON is YAML.
        "etc/kubernetes/kubelet.conf": (json.dumps(config, indent=2) + "\n", 0o600),
        "etc/kubernetes/kubelet.env": (f"KUBELET_ARGS={arguments}\n", 0o644),
        "etc/cni/net.d/10-bridge.conflist": (json.dumps(network, indent=2) + "\n", 0o644),
    }


def settle(lab: Lab, *, kubeadm: bool, wait: float) -> None:
    """Give the cluster what every cluster has, and wait (seconds) until all nodes are Ready.

    :param kubeadm: with kubeadm's ConfigMap, where Spiderpool learns the cluster's networks.
    """
    objects = [_network(), *([_kubeadm_config()] if kubeadm else [])]
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    run(kubectl(lab, "apply", "-f", "-"), stdin=json.dumps(listed))
    began, reported = time.monotonic(), set[str]()

    def ready() -> bool:
        nodes = json.loads(run(kubectl(lab, "get", "nodes", "-o", "json")).stdout)["items"]
        for node in nodes:
            name = node["metadata"]["name"]
            state_of = {row["type"]: row["status"] for row in node["status"].get("conditions", ())}
            if state_of.get("Ready") == "True" and name not in reported:
                reported.add(name)
                say(f"  {name} is Ready after {time.monotonic() - began:.0f} s.")
        return reported == {host.name for host in lab.hosts}

    fix = f"Start with --keep; on the node: journalctl -u kubelet (lab.py exec {lab.name} --host node1)."
    wait_for("Every kubelet", ready, seconds=wait, step=2, fix=fix)


def _kubeadm_config() -> dict[str, t.Any]:
    text = f"apiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n  podSubnet: {PODS}\n"
    text += f"  serviceSubnet: {SERVICES}\n"
    meta = {"name": "kubeadm-config", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"ClusterConfiguration": text}}


def _network() -> dict[str, t.Any]:
    """Return the DaemonSet of the first network; the bridge itself is a file on each node."""
    labels = {"app": NETWORK}
    pod = {
        "hostNetwork": True,
        "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 1,
        "containers": [{"name": "pause", "image": "localhost/pause:1", "imagePullPolicy": "Never"}],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": NETWORK, "namespace": "kube-system"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}},
    }


def variables(lab: Lab, images: t.Mapping[str, str]) -> dict[str, t.Any]:
    """Return what an inventory has to say of this cluster, whatever the fabric is.

    :param images: the digest of each container image of the nodes.
    """
    python = str(environments.environment(None) / "python")
    chart = run([python, str(CHECKOUT / "tests/cluster/programs.py"), "chart"]).stdout.strip()
    return {
        "fabric_kubeconfig": str(kubeconfig(lab)),
        "spiderpool_helm": str(binaries(lab) / "helm"),
        "spiderpool_chart_file": chart,
        "spiderpool_cni_daemonsets": [NETWORK],
        # The nodes lack the plugins of rails (node_image.furnish).
        "spiderpool_install_cni": True,
        "rail_objects_test_image": container_images.pinned(container_images.TOOLS, images),
        "spiderpool_values": {"spiderpoolAgent": PATIENT, "spiderpoolController": PATIENT},
    }


def kubectl(lab: Lab, *words: str) -> list[str]:
    """Return a kubectl command."""
    if not lab.cluster:
        raise LabError(f"The lab {lab.name!r} has no cluster.", "Start one with: up --kind guests --cluster")
    argv = [str(binaries(lab) / "kubectl"), "--kubeconfig", str(kubeconfig(lab))]
    return ["ip", "netns", "exec", lab.fabric, *argv, *words]


def is_up(lab: Lab) -> bool:
    """Say whether the control plane runs."""
    return state.recorded_process(folder(lab) / "keeper.pid") is not None


def down(lab: Lab) -> None:
    """End the control plane: with its first process go all others and its store."""
    state.end_group(folder(lab) / "keeper.pid")
