# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster's life with real ansible-playbook and real helm: preview, install, again, changed, drift, refused, removed.

Beside the real API (real_api.py) Spiderpool's chart, controller and webhooks are real too.
"""

from __future__ import annotations

import json
import typing as t

import node_folders
import pytest
from api_double import ApiDouble
from conftest import SIMULATED, Live, Playbook, chart_copy
from fabric_objects import labels
from plays import RAIL_OBJECTS, SPIDERPOOL, empty, from_, last_part, newer_crd, releases

Json = dict[str, t.Any]
PARTS = ("spiderpool-controller", "spiderpool-agent", "spiderpool-rdma-shared-device-plugin")
TLS = "railops-rdma-webhook-tls"
COPY = "railops-fabric-lock"
NOTE = "railops-rdma-release"
INJECT = "cni.spidernet.io/rdma-resource-inject"


double = empty


class ClusterScenario:
    """What the chapters of the story share."""

    def __init__(self, playbook: Playbook, live: Live, double: ApiDouble | None) -> None:
        self.playbook = playbook
        self.live = live
        self.double = double

        # What the nodes have of CNI before us, and what Calico has.
        self.folders = double.folders.trees() if double else {}
        self.calico = self.calico_pod()

    def calico_pod(self) -> Json:
        """Return the pod that Calico's DaemonSet makes."""
        spec: Json = self.live.objects("DaemonSet", "apps/v1")["calico-node"]["spec"]["template"]["spec"]
        return spec

    def written(self) -> int:
        return self.double.writes() if self.double else 0

    def pods(self) -> dict[str, set[str]]:
        """Return the pods of each part of Spiderpool, by their identity."""
        found: dict[str, set[str]] = {name: set() for name in PARTS}
        for pod in self.live.objects("Pod", namespace="spiderpool").values():
            part = (pod["metadata"].get("labels") or {}).get("app.kubernetes.io/component")
            if part in found and not pod["metadata"].get("deletionTimestamp"):
                found[part].add(pod["metadata"]["uid"])
        return found

    def log(self) -> str:
        """Return the log of the controller that runs now."""
        name = next(name for name in self.live.objects("Pod", namespace="spiderpool") if name.startswith(PARTS[0]))
        return self.live.log("spiderpool", name)


@pytest.mark.usefixtures("webhooks")
def test_life_of_a_cluster(playbook: Playbook, live: Live, maybe_double: ApiDouble | None, exclusive: None) -> None:
    case = ClusterScenario(playbook, live, maybe_double)
    preview(case)
    install(case)
    nothing_to_do(case)
    another_configuration(case)
    drift(case)
    removed(case)


def preview(case: ClusterScenario) -> None:
    before = case.written()
    spiderpool = {**SPIDERPOOL, "vars": {"spiderpool_pod_cidr_type": "cluster"}}
    ran = case.playbook.run([spiderpool, RAIL_OBJECTS], "--check", "--diff")
    assert case.written() == before
    assert "Set the source of the pod networks" in last_part(ran.changed_tasks())
    assert ran.changed > 3
    assert not case.live.objects("SpiderIPPool", "spiderpool.spidernet.io/v2beta1")


def install(case: ClusterScenario) -> None:
    case.playbook.run([SPIDERPOOL, RAIL_OBJECTS])
    assert releases(case.live) == ["deployed"]
    assert len(case.live.managed("SpiderIPPool")) == 64
    assert len(case.live.managed("SpiderMultusConfig")) == 8
    assert COPY in case.live.objects("ConfigMap", namespace="spiderpool")
    secrets = case.live.objects("Secret", namespace="spiderpool")
    assert secrets["spiderpool-controller-server-certs"]["data"] == secrets[TLS]["data"]
    coordinator = case.live.objects("SpiderCoordinator", "spiderpool.spidernet.io/v2beta1")["default"]
    assert coordinator["status"]["phase"] == "Synced"
    if case.double or SIMULATED:
        offered = case.live.objects("Node")["node8"]["status"]["allocatable"]
        assert offered["spidernet.io/fabric_rail8"] == "100"
        calico = case.live.objects("DaemonSet", "apps/v1")["calico-node"]["spec"]["template"]["spec"]["containers"][0]
        assert {"name": "IP_AUTODETECTION_METHOD", "value": "kubernetes-internal-ip"} in calico["env"]


def nothing_to_do(case: ClusterScenario) -> None:
    before, pods, versions = case.written(), case.pods(), case.live.versions("fabric")
    again = case.playbook.run([SPIDERPOOL, RAIL_OBJECTS])
    assert again.changed_tasks() == []
    assert (case.written(), case.pods()) == (before, pods)
    assert case.live.versions("fabric") == versions
    key = case.live.objects("Secret", namespace="spiderpool")[TLS]["data"]["tls.key"]
    assert key not in again.text


def another_configuration(case: ClusterScenario) -> None:
    """Another value for each part, numbers and switches as text, and a newer chart with a newer CRD."""
    served = case.live.objects("Secret", namespace="spiderpool")["spiderpool-controller-server-certs"]["data"]
    before = case.pods()
    plugin = {"rdmaSharedDevicePlugin": {"deviceConfig": {"periodicUpdateInterval": 60}}}
    values: Json = {
        # Its collector takes back what is lent to pods that are not there, such as those of this test.
        "spiderpool_values": {"rdma": plugin, "ipam": {"enableGatewayDetection": False, "gc": {"enabled": False}}},
        "spiderpool_inject_namespaces": ["default", "ml"],
        "spiderpool_timeout": str(case.playbook.values["spiderpool_timeout"]),
        "spiderpool_metrics": "false",
    }
    chart = chart_copy(case.playbook.folder / "newer", "1.2.99")
    newer_crd(chart)
    values["spiderpool_chart_file"] = str(chart)
    changed = case.playbook.run([{**SPIDERPOOL, "vars": values}])
    assert last_part(changed.changed_tasks()) == ["Apply them", "Install or upgrade", "Note what was installed"]
    crds = case.live.objects("CustomResourceDefinition", "apiextensions.k8s.io/v1")
    assert "newer" in json.dumps(crds["spiderippools.spiderpool.spidernet.io"]["spec"])
    assert case.live.objects("Secret", namespace="spiderpool")["spiderpool-controller-server-certs"]["data"] == served
    after = case.pods()
    if case.double:
        assert not before["spiderpool-agent"] & after["spiderpool-agent"]
    if SIMULATED:
        assert {name: before[name] & after[name] for name in PARTS} == {name: set() for name in PARTS}
        assert "EnableGatewayDetection:false" in case.log()
        # With injection switched on later, pods can still be made, and get what is injected.
        pod = {"metadata": {"name": "injected", "annotations": {INJECT: "rails"}}}
        spec = {"containers": [{"name": "c", "image": "registry.invalid/c:0"}]}
        made = (
            case.live.of("Pod", "v1").create(body={**pod, "spec": spec}, namespace="default", dry_run="All").to_dict()
        )
        networks = made["metadata"]["annotations"]["k8s.v1.cni.cncf.io/networks"].split(",")
        assert networks == [f"spiderpool/fabric-rail{rail}" for rail in range(1, 9)]
        assert made["spec"]["containers"][0]["resources"]["limits"]["spidernet.io/fabric_rail8"] == "1"


def drift(case: ClusterScenario) -> None:
    """What others did is taken back, what is gone comes again, a stray goes, and a pool in use stays."""
    live = case.live
    live.patch("SpiderIPPool", "fabric-rail1-v4-node1", {"spec": {"ips": ["172.17.0.3-172.17.0.9"]}})
    live.patch("SpiderMultusConfig", "fabric-rail2", {"spec": {"macvlan": {"mtu": 1500}}}, namespace="spiderpool")
    live.of("SpiderIPPool").delete(name="fabric-rail3-v4-node3")
    stray = {"ipVersion": 4, "subnet": "192.0.2.0/29", "ips": ["192.0.2.2-192.0.2.3"]}
    for name, subnet in (("stray", "192.0.2.0/29"), ("used", "192.0.2.8/29")):
        body = {"apiVersion": "spiderpool.spidernet.io/v2beta1", "kind": "SpiderIPPool"}
        ips = [f"{subnet[: subnet.rindex('.')]}.{int(subnet[subnet.rindex('.') + 1 : -3]) + 2}"]
        body |= {
            "metadata": {"name": name, "labels": labels("fabric")},
            "spec": {**stray, "subnet": subnet, "ips": ips},
        }
        live.of("SpiderIPPool").create(body=body)
    live.allocate("used", ["192.0.2.10"])
    assert last_part(case.playbook.run([RAIL_OBJECTS]).changed_tasks()) == ["Apply pools and configs"]
    pools = case.live.managed("SpiderIPPool")
    assert (len(pools), "used" in pools, "stray" in pools) == (65, True, False)
    assert pools["fabric-rail1-v4-node1"]["spec"]["ips"] == ["172.17.0.3-172.17.0.30"]
    assert case.live.managed("SpiderMultusConfig")["fabric-rail2"]["spec"]["macvlan"]["mtu"] == 4200
    live.allocate("used", ())
    live.of("SpiderIPPool").delete(name="used")


def removed(case: ClusterScenario) -> None:
    assert "removes all pools" in case.playbook.run([from_("spiderpool", "uninstall")], ok=False).text
    back = [from_("spiderpool", "uninstall"), from_("spiderpool", "calico_back")]
    ran = case.playbook.run([from_("rail_objects", "remove"), *back])
    assert releases(case.live) == []
    if case.double:
        # Without Multus' file, whose token is dead now; the hosts' part of a teardown removes the plugins.
        left = {f"{node_folders.PLUGINS}/{name}" for name in (*node_folders.AGENT, *node_folders.MULTUS)}
        after = case.double.folders.trees()
        assert {node: files.keys() ^ after[node].keys() for node, files in case.folders.items()} == dict.fromkeys(
            after, left
        )
        assert "Restore the node's address detection" in last_part(ran.changed_tasks())
        assert case.calico_pod() == case.calico
        assert NOTE not in case.live.objects("ConfigMap", namespace="spiderpool")
    assert case.live.managed("SpiderIPPool") == case.live.managed("SpiderMultusConfig") == {}
    assert COPY not in case.live.objects("ConfigMap", namespace="spiderpool")
    assert TLS not in case.live.objects("Secret", namespace="spiderpool")
    if SIMULATED:
        assert case.pods() == {name: set() for name in PARTS}
        assert not case.live.objects("SpiderCoordinator", "spiderpool.spidernet.io/v2beta1")
        # kubeadm's own: not ours, however much it is named like what the role makes where there is none.
        assert "kubeadm-config" in case.live.objects("ConfigMap", namespace="kube-system")
