# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A cluster whose pods get their addresses from nv-ipam: apply, wait, change over to it, what is refused under pods.

The controller of nv-ipam is simulated (`api_controllers`, by `nv_ipam`); the playbooks are real.
"""

from __future__ import annotations

import json
import typing as t

import plays
import pytest
from api_double import ApiDouble
from api_kinds import crd, crd_folder, read_crds
from conftest import Live, Playbook
from fabric_objects import labels
from plays import last_part

Json = dict[str, t.Any]
NV, NAD, CRD = "nv-ipam.nvidia.com/v1alpha1", "k8s.cni.cncf.io/v1", "apiextensions.k8s.io/v1"
NAMESPACE = "nvidia-network-operator"
STATUS = "k8s.v1.cni.cncf.io/network-status"


def definition(*fields: str) -> Json:
    """Return the CRD of CIDRPools with some fields of its spec."""
    spec = {"type": "object", "properties": {name: {"x-kubernetes-preserve-unknown-fields": True} for name in fields}}
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    more: Json = {"schema": {"type": "object", "properties": {"spec": spec, "status": free}}}
    more["subresources"] = {"status": {}}
    return crd("nv-ipam.nvidia.com", "cidrpools", "CIDRPool", "v1alpha1", scope="Namespaced", **more)


OLD = ("cidr", "perNodeNetworkPrefix", "gatewayIndex", "exclusions", "staticAllocations", "nodeSelector")
NEW = (*OLD, "perNodeExclusions")


@pytest.fixture
def double(scripted: None) -> t.Iterator[ApiDouble]:
    """Give a cluster with Multus' CRD, the operator's namespace and eight nodes."""
    with ApiDouble(nodes=[f"node{number}" for number in range(1, 9)], crds=False) as made:
        for row in read_crds(crd_folder()):
            if row["spec"]["group"] in ("k8s.cni.cncf.io", "spiderpool.spidernet.io"):
                made.put(CRD, "CustomResourceDefinition", row["metadata"]["name"], spec=row["spec"])
        made.put("v1", "Namespace", NAMESPACE)
        yield made


class Site:
    """The playbooks of a fleet with nv-ipam."""

    def __init__(self, playbook: Playbook, double: ApiDouble) -> None:
        self.playbook = playbook
        self.double = double
        playbook.values.update(
            {
                "fabric_ipam": "nv-ipam",
                "fabric_namespace": NAMESPACE,
                "fabric_inject": {},
                "rail_objects_wait_seconds": 4,
                "rail_objects_nodes_required": False,
            }
        )

    def run(self, name: str, *arguments: str, ok: bool = True, **values: t.Any) -> t.Any:
        inventory = str(plays.CHECKOUT / "inventory/exclusive")
        return self.playbook.shipped(name, "-i", inventory, *arguments, ok=ok, **values)

    def refused(self, *words: str) -> None:
        """A run of the cluster's part is refused, and writes nothing."""
        before = self.double.writes()
        text = " ".join(self.run("cluster", ok=False).text.split())
        assert [word for word in words if word not in text] == [], text[-3000:]
        assert self.double.writes() == before

    def serve(self, *fields: str) -> None:
        made = definition(*fields)
        self.double.put(CRD, "CustomResourceDefinition", made["metadata"]["name"], spec=made["spec"])

    def pod(self, name: str, address: str) -> None:
        """A pod with an address of a rail, as Multus notes it."""
        rows = [{"name": "cbr0", "ips": ["10.244.1.7"], "default": True}]
        rows += [{"name": f"{NAMESPACE}/fabric-rail1", "interface": "net1", "ips": [address]}]
        note = {"annotations": {STATUS: json.dumps(rows)}}
        self.double.put("v1", "Pod", name, "default", metadata=note, spec={"nodeName": "node2", "containers": []})


@pytest.mark.long
@pytest.mark.only_double("nv-ipam's controller is simulated")
def test_a_cluster_with_nv_ipam(playbook: Playbook, double: ApiDouble, live: Live) -> None:
    site = Site(playbook, double)
    site.run("plan")
    site.refused("The cluster has no CIDRPools (nv-ipam). Install nv-ipam 0.4.0 or later")
    site.serve(*OLD)
    site.refused("CIDRPools of this cluster have no perNodeExclusions, which keep the addresses of nodes and gateways")
    double.store.delete(
        double.store.kind_of(CRD, "CustomResourceDefinition"), "", "cidrpools.nv-ipam.nvidia.com", {}, {}
    )
    site.serve(*NEW)

    before_the_change(live)
    ran = " ".join(site.run("cluster").text.split())
    assert "SpiderIPPool fabric-rail1-v4-node1 is kept, would delete: 1 address is in use" in ran
    pools = live.objects("CIDRPool", NV)
    assert sorted(pools) == [f"fabric-rail{rail}-v4" for rail in range(1, 9)]
    given = pools["fabric-rail2-v4"]["status"]["allocations"]
    assert given[1] == {"nodeName": "node2", "prefix": "172.17.1.32/27", "gateway": "172.17.1.33"}
    assert len(live.objects("NetworkAttachmentDefinition", NAD)) == 8
    assert not live.objects("Secret", namespace="spiderpool")
    live.allocate("fabric-rail1-v4-node1", ())
    assert last_part(site.run("cluster").changed_tasks()) == ["Apply pools and configs"]
    assert live.managed("SpiderIPPool") == {}

    site.pod("train-0", "172.17.0.35")
    text = " ".join(site.run("teardown", "--tags", "cluster", ok=False).text.split())
    assert "Pods use 1 pools or networks: fabric-rail1-v4 (172.17.0.35 by default/train-0)." in text
    assert len(live.objects("CIDRPool", NV)) == 8
    live.of("Pod", "v1").delete(name="train-0", namespace="default")
    site.run("teardown", "--tags", "cluster")
    assert live.objects("CIDRPool", NV) == live.objects("NetworkAttachmentDefinition", NAD) == {}
    assert "railops-fabric-lock" not in live.objects("ConfigMap", namespace=NAMESPACE)


@pytest.mark.long
@pytest.mark.only_double("nv-ipam's controller is simulated")
def test_pools_under_pods_and_another_answer(playbook: Playbook, double: ApiDouble, live: Live) -> None:
    site = Site(playbook, double)
    site.serve(*NEW)
    site.run("plan")
    site.run("cluster")
    without_label(site, live)
    under_pods(site, live)
    another_answer(site, live)


def without_label(site: Site, live: Live) -> None:
    """A node that lost the fabric's label has no prefix until the printed command labels it."""
    (label,) = [name for name in live.objects("Node")["node2"]["metadata"]["labels"] if "railops" in name]
    body, content = {"metadata": {"labels": {label: None}}}, "application/merge-patch+json"
    live.of("Node", "v1").patch(body=body, name="node2", content_type=content)
    here = {"ansible_python_interpreter": "{{ ansible_playbook_python }}", "verify_fail": False}
    for found in ({"pool_prefix": "ansible-playbook railops.rdma.cluster"}, {}):
        site.run("audit", "-i", "localhost,", "-c", "local", "--limit", "localhost", **here)
        verdict = json.loads((site.playbook.folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))
        assert {card["check"]: card["command"] for card in verdict["causes"] if "command" in card} == found
        site.run("cluster")


def before_the_change(live: Live) -> None:
    """Spiderpool gave the addresses until now, and a pod has one still."""
    spec = {"ipVersion": 4, "subnet": "172.17.0.0/27", "ips": ["172.17.0.3-172.17.0.30"]}
    meta = {"name": "fabric-rail1-v4-node1", "labels": labels("fabric")}
    live.of("SpiderIPPool").create(body={"metadata": meta, "spec": spec}, field_manager="railops.rdma")
    live.allocate("fabric-rail1-v4-node1", ["172.17.0.3"])


def under_pods(site: Site, live: Live) -> None:
    """A plan that gives a node another prefix is not applied to the pools of which its pods have addresses."""
    site.pod("train-0", "172.17.0.35")
    site.run("plan", fabric_subnet_offset=8, fabric_allow_renumber=True)
    ran = " ".join(site.run("cluster", fabric_subnet_offset=8, fabric_allow_renumber=True).text.split())
    assert (
        "CIDRPool fabric-rail1-v4 is kept, would replace: 1 address is in use (172.17.0.35 by default/train-0)" in ran
    )
    pools = live.objects("CIDRPool", NV)
    assert pools["fabric-rail1-v4"]["spec"]["cidr"] == "172.17.0.0/24"
    assert pools["fabric-rail2-v4"]["spec"]["cidr"] == "172.17.9.0/24"
    live.of("Pod", "v1").delete(name="train-0", namespace="default")
    site.run("plan", fabric_allow_renumber=True)
    site.run("cluster", fabric_allow_renumber=True)
    assert live.objects("CIDRPool", NV)["fabric-rail2-v4"]["spec"]["cidr"] == "172.17.1.0/24"


def another_answer(site: Site, live: Live) -> None:
    """A status that is not the plan's is found by name of node and pool."""
    kind = site.double.store.kind_of(NV, "CIDRPool")
    rows = live.objects("CIDRPool", NV)["fabric-rail3-v4"]["status"]["allocations"]
    rows[1]["prefix"] = "172.17.2.224/27"
    site.double.store.patch_status(kind, NAMESPACE, "fabric-rail3-v4", {"allocations": rows})
    site.double.store.patch_status(kind, NAMESPACE, "fabric-rail4-v4", {"allocations": []})
    ran = " ".join(site.run("cluster").text.split())
    assert "172.17.2.32/27 via 172.17.2.33" in ran
    assert "172.17.2.224/27 via 172.17.2.33" in ran
    assert "nv-ipam's controller gave nothing of this pool to any node" in ran
    for name in ("fabric-rail3-v4", "fabric-rail4-v4"):
        site.double.store.patch_status(kind, NAMESPACE, name, {"allocations": []})
        body, content = {"spec": {"defaultGateway": False}}, "application/merge-patch+json"
        live.of("CIDRPool", NV).patch(body=body, name=name, namespace=NAMESPACE, content_type=content)
