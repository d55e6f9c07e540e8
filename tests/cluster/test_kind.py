# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From a plan to pods on a cluster made by kind: real kubelets, Spiderpool's released chart, macvlan over veth rails.

RAILOPS_TEST_KIND names the kind cluster that RAILOPS_TEST_KUBECONFIG reaches. Its nodes are containers: each gets a
cable to a bridge per rail, which is the leaf and has the rail's gateway. No RDMA is there, so pods ask for none.
"""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import typing as t

import pytest
import tools
import yaml

if t.TYPE_CHECKING:
    from conftest import Live, Playbook

Json = dict[str, t.Any]
KIND = os.environ.get("RAILOPS_TEST_KIND")
RAILS = ("rail1", "rail2")
FABRIC = {
    "fabric_mode": "shared",
    "fabric_attachment": "macvlan",
    "fabric_supernets": ["100.72.0.0/16"],
    "fabric_rail_prefix": 24,
    "fabric_max_nodes": 8,
    "fabric_gateway": "first",
    "fabric_mtu": 1500,
    "fabric_rails": [{"name": name, "interface": name} for name in RAILS],
}
SUBNETS = {name: f"100.72.{number}.0/24" for number, name in enumerate(RAILS)}
IMAGE = os.environ.get("RAILOPS_TEST_IMAGE", "docker.io/library/busybox:1.37")


def said(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True, timeout=300).stdout


def cable(nodes: list[str]) -> None:
    """Give each node an interface of each rail, joined by a bridge that is the rail's gateway."""
    for name, subnet in SUBNETS.items():
        network = ipaddress.ip_network(subnet)
        leaf = f"rr-{name}"
        said("ip", "link", "add", leaf, "type", "bridge")
        said("ip", "address", "add", f"{network[1]}/{network.prefixlen}", "dev", leaf)
        said("ip", "link", "set", leaf, "up")
        for number, node in enumerate(nodes):
            pid, port = said("docker", "inspect", "--format", "{{.State.Pid}}", node).strip(), f"{leaf}-{number}"
            said("ip", "link", "add", port, "type", "veth", "peer", "name", name, "netns", pid)
            said("ip", "link", "set", port, "master", leaf, "up")
            said("nsenter", "--target", pid, "--net", "ip", "link", "set", name, "up")


def uncable(nodes: list[str]) -> None:
    for name in RAILS:
        for port in [*(f"rr-{name}-{number}" for number in range(len(nodes))), f"rr-{name}"]:
            subprocess.run(["ip", "link", "del", port], check=False)


def pod(node: str) -> Json:
    """Return a pod with all rails; the kubelet of its node starts it by Multus and Spiderpool."""
    networks = ",".join(f"spiderpool/fabric-{name}" for name in RAILS)
    meta = {"name": f"pod-{node}", "annotations": {"k8s.v1.cni.cncf.io/networks": networks}}
    container = {"name": "main", "image": IMAGE, "command": ["sleep", "infinity"]}
    spec = {"nodeName": node, "terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def addresses(live: Live, node: str) -> dict[str, str]:
    """Return the address of a pod on each rail, as Multus wrote it down, once it runs."""
    made = live.objects("Pod", namespace="default")[f"pod-{node}"]
    notes = json.loads(made["metadata"].get("annotations", {}).get("k8s.v1.cni.cncf.io/network-status") or "[]")
    if made["status"].get("phase") != "Running":
        return {}
    return {row["name"].rpartition("-")[2]: row["ips"][0] for row in notes if row["name"].startswith("spiderpool/")}


def lent(live: Live) -> list[Json]:
    """Return the pools of which pods hold addresses."""
    return [row for row in live.ours("SpiderIPPool").values() if row["status"].get("allocatedIPCount")]


@pytest.fixture
def nodes(live: Live) -> t.Iterator[list[str]]:
    """Give the workers' names, cabled."""
    names = sorted(name for name in live.objects("Node") if "control-plane" not in name)
    cable(names)
    yield names
    uncable(names)


@pytest.mark.skipif(not KIND, reason="needs a cluster made by kind: RAILOPS_TEST_KIND (.github/workflows/ci.yml)")
def test_from_plan_to_pods(playbook: Playbook, live: Live, nodes: list[str]) -> None:
    # The nodes' host part is not played: they are containers without a network manager.
    here = {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"}
    hosts: Json = {"all": {"hosts": {"localhost": here}}}
    hosts["gpu_nodes"] = {"hosts": {node: {} for node in nodes}}
    (playbook.folder / "hosts.yml").write_text(yaml.safe_dump(hosts), encoding="utf-8")
    playbook.values.update({**FABRIC, "rail_objects_wait_seconds": 0, "verify_fail": False})
    inventory = ("-i", str(playbook.folder / "hosts.yml"))
    playbook.shipped("plan", *inventory)
    playbook.shipped("cluster", *inventory)
    assert playbook.shipped("cluster", *inventory).changed_tasks() == []

    pods = live.of("Pod", "v1")
    for node in nodes:
        pods.create(body=pod(node), namespace="default")
    live.until(lambda: all(len(addresses(live, node)) == len(RAILS) for node in nodes), 300)
    for rail, subnet in SUBNETS.items():
        found = [addresses(live, node)[rail] for node in nodes]
        assert len(set(found)) == len(nodes)
        assert all(ipaddress.ip_address(address) in ipaddress.ip_network(subnet) for address in found)
        for address in [str(ipaddress.ip_network(subnet)[1]), found[-1]]:
            words = ("ping", "-c", "3", "-W", "5", "-I", f"net{RAILS.index(rail) + 1}", address)
            exec_in = (str(tools.kubectl()), "--kubeconfig", str(playbook.kubeconfig), "exec", f"pod-{nodes[0]}", "--")
            assert "0% packet loss" in said(*exec_in, *words)

    playbook.shipped("audit", *inventory, "--limit", "localhost")
    verdict = json.loads((playbook.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
    assert [row for row in verdict["cluster"]["checks"] if row["id"].startswith("object")] == []
    assert verdict["cluster"]["counts"]["ok"] > 0

    refused = playbook.shipped("teardown", *inventory, "--tags", "cluster", ok=False)
    assert "Pods hold addresses" in refused.text
    for node in nodes:
        pods.delete(name=f"pod-{node}", namespace="default")
    live.until(lambda: not lent(live), 120)
    playbook.shipped("teardown", *inventory, "--tags", "cluster")
    assert live.ours("SpiderIPPool") == live.ours("SpiderMultusConfig") == {}
