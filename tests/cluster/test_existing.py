# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Clusters that had a life before us: each thing is refused with its line, then adopted, and stays byte for byte.

Each case runs whole playbooks half a dozen times, 1 to 5 minutes: the shortest runs on each push, the others by `long`.
"""

from __future__ import annotations

import copy
import functools
import json
import subprocess
import typing as t
from pathlib import Path

import programs
import pytest
import tools
import yaml
from api_double import ApiDouble
from api_kinds import HERE, crd_folder, read_crds
from conftest import Live, Playbook
from kubernetes.dynamic.exceptions import ConflictError
from plays import RAIL_OBJECTS, SPIDERPOOL, empty, from_, sriov_fleet, sriov_operator

Json = dict[str, t.Any]
# NVIDIA's CRDs as data, where they lie beside the checkout.
BACKENDS = programs.CRDS.parent / "crds-backends"
CRD = "apiextensions.k8s.io/v1"
NAD = "k8s.cni.cncf.io/v1"
# What of others is checked: whatever this collection could write.
WATCHED = (
    ("CustomResourceDefinition", CRD),
    ("DaemonSet", "apps/v1"),
    ("Deployment", "apps/v1"),
    ("ConfigMap", "v1"),
    ("Secret", "v1"),
    ("ServiceAccount", "v1"),
    ("MutatingWebhookConfiguration", "admissionregistration.k8s.io/v1"),
    ("ValidatingWebhookConfiguration", "admissionregistration.k8s.io/v1"),
    ("SpiderCoordinator", "spiderpool.spidernet.io/v2beta1"),
    ("NetworkAttachmentDefinition", NAD),
    ("NicClusterPolicy", "mellanox.com/v1alpha1"),
    ("SriovOperatorConfig", "sriovnetwork.openshift.io/v1"),
)


double = empty


def snapshot(live: Live) -> dict[str, str]:
    """Return all that is there of these kinds, as text. What controllers write of its state is not part of it."""
    found = {}
    for kind, api in WATCHED:
        for obj in live.of(kind, api).get().to_dict()["items"] if live.served(kind, api) else ():
            meta = obj["metadata"]
            rows = [{**row, "time": ""} for row in meta.get("managedFields") or () if not row.get("subresource")]
            body = {**obj, "status": None, "metadata": {**meta, "resourceVersion": "", "managedFields": rows}}
            found[f"{kind} {meta.get('namespace', '')}/{meta['name']}"] = json.dumps(body, sort_keys=True)
    # Calico's detection is a setting of its own, and these come and go with our own run.
    return {name: text for name, text in found.items() if "calico-node" not in name and "root-ca" not in name}


def define(live: Live, crds: t.Iterable[Json]) -> None:
    """Make CRDs as another user did, and wait until they are served."""
    for crd in crds:
        try:
            live.of("CustomResourceDefinition", CRD).create(body=crd, field_manager="helm")
        except ConflictError:
            continue
        spec = crd["spec"]
        name, api = spec["names"]["kind"], f"{spec['group']}/{spec['versions'][0]['name']}"
        live.until(functools.partial(live.served, name, api), 60)


class Case:
    """One cluster with something of others, and what happens to it."""

    def __init__(self, playbook: Playbook, live: Live) -> None:
        self.playbook = playbook
        self.live = live

    def refused(self, *words: str) -> str:
        """Run the roles, which refuse before the first write, and return what they say."""
        before = snapshot(self.live)
        text = " ".join(self.playbook.run([SPIDERPOOL], ok=False).text.replace("\\n", " ").split())
        for word in words:
            assert word in text
        assert snapshot(self.live) == before
        return text

    def adopted(self, *, again: bool = True, **components: str) -> None:
        """Adopt: it works, a second run (`again`) changes nothing, and after a teardown all is as it was."""
        before = snapshot(self.live)
        self.playbook.values["cluster_components"] = components
        self.playbook.run([SPIDERPOOL, RAIL_OBJECTS])
        assert len(self.live.managed("SpiderIPPool")) > 0
        during = snapshot(self.live)
        assert {name: during.get(name) for name in before} == before
        if again:
            assert self.playbook.run([SPIDERPOOL, RAIL_OBJECTS]).changed_tasks() == []
        uninstall = from_("spiderpool", "uninstall", spiderpool_uninstall_crds=True)
        self.playbook.run([from_("rail_objects", "remove"), uninstall])
        assert len(self.live.managed("SpiderIPPool")) == 0
        after = snapshot(self.live)
        assert {name: after.get(name) for name in before} == before


@pytest.fixture
def case(playbook: Playbook, live: Live, exclusive: None) -> Case:
    """Give a cluster for the example fabric with macvlan."""
    return Case(playbook, live)


def installed(case: Case, namespace: str) -> None:
    """Install Spiderpool as another user would, with values that serve the plan and one of their own."""
    values = case.playbook.folder / "theirs.yaml"
    planned = yaml.safe_load((case.playbook.folder / "plan/fabric/cluster/values.yaml").read_text(encoding="utf-8"))
    planned["ipam"]["enableStatefulSet"] = False
    values.write_text(yaml.safe_dump(planned), encoding="utf-8")
    argv = [str(tools.helm()), "--kubeconfig", str(case.playbook.kubeconfig), "install", "spiderpool"]
    argv += [case.playbook.values["spiderpool_chart_file"], "--namespace", namespace, "--create-namespace"]
    argv += ["--timeout", "90s", "--values", str(values)]
    subprocess.run(argv, check=True, capture_output=True, timeout=300)


@pytest.mark.long
def test_spiderpool_by_helm_under_the_same_name(case: Case) -> None:
    installed(case, "spiderpool")
    case.refused(
        "Spiderpool exists already (",
        "of the Helm release spiderpool/spiderpool), and no note shows that this collection made it.",
        "managed, with spiderpool_take_ownership: true, takes this release over",
        "cluster_components: {spiderpool: adopt",
    )
    case.playbook.values["cluster_components"] = {"spiderpool": "managed"}
    case.refused(
        "ipam.enableStatefulSet: false -> unset", "Set spiderpool_take_ownership: true to take it over with these."
    )
    case.adopted(spiderpool="adopt")
    # On purpose, with what was shown: then it is ours to upgrade, and still not ours to take away.
    case.playbook.values |= {"cluster_components": {}, "spiderpool_take_ownership": True}
    taken = case.playbook.run([SPIDERPOOL])
    assert "ipam.enableStatefulSet: false -> unset" in " ".join(taken.text.split())
    case.playbook.values.pop("spiderpool_take_ownership")
    assert case.playbook.run([SPIDERPOOL]).changed_tasks() == []
    kept = case.playbook.run([from_("spiderpool", "uninstall")], ok=False)
    assert "existed before this collection and stays" in " ".join(kept.text.split())


def test_spiderpool_by_helm_in_another_namespace(case: Case) -> None:
    installed(case, "network")
    case.playbook.values["cluster_components"] = {"spiderpool": "managed"}
    case.refused("of the Helm release network/spiderpool)", "a second one would conflict with it")
    case.adopted(again=False, spiderpool="adopt")


def networks_crd() -> Json:
    """Return the CRD of NetworkAttachmentDefinitions, as Multus brings it."""
    return next(row for row in read_crds(crd_folder()) if row["spec"]["group"] == "k8s.cni.cncf.io")


@pytest.mark.long
def test_multus_only(case: Case) -> None:
    define(case.live, [networks_crd()])
    labels = {"app": "multus"}
    box = {"name": "kube-multus", "image": "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.2"}
    paths = [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}]
    template = {"metadata": {"labels": labels}, "spec": {"containers": [box], "volumes": paths}}
    body = {"metadata": {"name": "kube-multus-ds"}, "spec": {"selector": {"matchLabels": labels}, "template": template}}
    case.live.of("DaemonSet", "apps/v1").create(body=body, namespace="kube-system", field_manager="kubectl")
    case.refused(
        "Multus exists already (v4.2.2, DaemonSet kube-system/kube-multus-ds of kubectl)",
        "cluster_components: {multus: adopt}",
    )
    case.adopted(multus="adopt")


@pytest.mark.long
def test_a_users_network(case: Case) -> None:
    define(case.live, [networks_crd()])
    for namespace, name in (("default", "storage"), ("spiderpool", "fabric-rail3")):
        if namespace != "default":
            case.live.of("Namespace", "v1").create(body={"metadata": {"name": namespace}})
        spec = {"config": json.dumps({"cniVersion": "1.0.0", "type": "macvlan", "master": "eth1"})}
        body = {"apiVersion": NAD, "kind": "NetworkAttachmentDefinition", "metadata": {"name": name}, "spec": spec}
        case.live.of("NetworkAttachmentDefinition", NAD).create(body=body, namespace=namespace, field_manager="user")
    case.refused(
        "Multus exists already (version unknown, NetworkAttachmentDefinition",
        "NetworkAttachmentDefinition spiderpool/fabric-rail3: It belongs to user, and Spiderpool would overwrite it",
        "cluster_components: {multus: adopt}",
    )
    case.live.of("NetworkAttachmentDefinition", NAD).delete(name="fabric-rail3", namespace="spiderpool")
    case.adopted(multus="adopt")


def backends() -> list[Json]:
    """Return NVIDIA's CRDs, or stubs of them."""
    if BACKENDS.is_dir():
        found = [row for row in read_crds(BACKENDS) if row["spec"]["group"] == "mellanox.com"]
        assert found
        return found
    return read_crds(HERE / "existing")


@pytest.mark.long
def test_nvidias_network_operator(case: Case) -> None:
    define(case.live, [networks_crd(), *backends()])
    planned = yaml.safe_load((case.playbook.folder / "plan/fabric/cluster/values.yaml").read_text(encoding="utf-8"))
    entries = planned["rdma"]["rdmaSharedDevicePlugin"]["deviceConfig"]
    image = {"image": "i", "repository": "registry.invalid", "version": "network-operator-v26.4.0"}
    spec = {
        "secondaryNetwork": {"multus": image},
        "rdmaSharedDevicePlugin": {**image, "config": json.dumps({"configList": entries["configList"][:-1]})},
    }
    body = {"apiVersion": "mellanox.com/v1alpha1", "kind": "NicClusterPolicy", "spec": spec}
    body["metadata"] = {"name": "nic-cluster-policy"}
    policies = case.live.of("NicClusterPolicy", "mellanox.com/v1alpha1")
    policies.create(body=body, field_manager="user")
    case.refused(
        "the shared device plugin exists already (network-operator-v26.4.0, NicClusterPolicy nic-cluster-policy of",
        "cluster_components: {multus: adopt, rdma_device_plugin: adopt}",
    )
    adopt = {"multus": "adopt", "rdma_device_plugin": "adopt"}
    case.playbook.values |= {"cluster_components": adopt, "rail_objects_nodes_required": False}
    case.playbook.values["rail_objects_wait_seconds"] = 0
    case.refused(
        "the shared device plugin is adopted, and does not fit the plan in its resources: planned", "fabric_rail8"
    )
    whole = {"rdmaSharedDevicePlugin": {"config": json.dumps({"configList": entries["configList"]})}}
    content = "application/merge-patch+json"
    policies.patch(body={"spec": whole}, name="nic-cluster-policy", content_type=content, field_manager="user")
    case.adopted(**adopt)


@pytest.mark.long
@pytest.mark.only_double("needs nodes whose virtual functions come")
def test_the_sriov_operators_crds_in_an_older_version(
    playbook: Playbook, live: Live, double: ApiDouble, plans: t.Callable[[str], Path]
) -> None:
    sriov_fleet(playbook, double, plans("sriov-roce"), 2)
    case = Case(playbook, live)
    older = [
        copy.deepcopy(row) for row in read_crds(crd_folder()) if row["spec"]["group"] == "sriovnetwork.openshift.io"
    ]
    for row in older:
        row["metadata"]["labels"] = {"app.kubernetes.io/version": "1.1.0"}
        if row["spec"]["names"]["kind"] == "SriovNetworkNodePolicy":
            for version in row["spec"]["versions"]:
                version["schema"]["openAPIV3Schema"]["properties"].pop("status", None)
                version.pop("subresources", None)
    define(live, older)
    name = "sriovnetworknodepolicies.sriovnetwork.openshift.io"
    case.refused(
        f"CRD {name}: It belongs to helm (1.1.0), and lacks status.", "cluster_components: {sriov_operator: adopt}"
    )
    sriov_operator(double)
    hook = [path for _method, path in double.requests if "pre-delete" in path]
    case.adopted(sriov_operator="adopt")
    assert [path for _method, path in double.requests if "pre-delete" in path] == hook, "it would delete these CRDs"
