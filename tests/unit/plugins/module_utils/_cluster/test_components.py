# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.adopted import (
    AdoptedPart,
    differences,
    requirements,
)
from ansible_collections.railops.rdma.plugins.module_utils._cluster.components import (
    KINDS,
    FoundPart,
    Release,
    needed,
    networks_found,
    part_of,
    policies_found,
    states,
    taken_networks,
    value_changes,
    workloads_found,
)
from ansible_collections.railops.rdma.plugins.module_utils._cluster.crds import lacks, sort
from ansible_collections.railops.rdma.plugins.module_utils._cluster.prerequisites import KUBERNETES

MANAGED = Release(managed=True, there=True)


def workload(name, *images, kind="DaemonSet", namespace="kube-system", release="", labels=None, **pod):
    notes = {}
    if release:
        place, _slash, helm = release.partition("/")
        notes = {"meta.helm.sh/release-name": helm, "meta.helm.sh/release-namespace": place}
    boxes = [{"name": f"c{number}", "image": image} for number, image in enumerate(images)]
    meta = {"name": name, "namespace": namespace, "annotations": notes, "labels": labels or {}}
    return {"kind": kind, "metadata": meta, "spec": {"template": {"spec": {"containers": boxes, **pod}}}}


@pytest.mark.parametrize(
    ("obj", "part"),
    [
        (workload("kube-multus-ds", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.2"), "multus"),
        (workload("rke2-multus", "rancher/hardened-multus-cni:v4.2.1-build20250627"), "multus"),
        (workload("multus-networkpolicy", "x/multi-networkpolicy-iptables:v1"), ""),
        (workload("rdma-shared-dp-ds", "ghcr.io/mellanox/k8s-rdma-shared-dev-plugin:v1.5.2"), "rdma_device_plugin"),
        (workload("spiderpool-rdma-shared-device-plugin", "x/pause:3"), "rdma_device_plugin"),
        (workload("sriov-network-operator", kind="Deployment"), "sriov_operator"),
        (workload("spiderpool-sriov-operator", kind="Deployment"), "sriov_operator"),
        (workload("network-operator", "nvcr.io/nvidia/cloud-native/network-operator:v25.10.0"), "network_operator"),
        (workload("nv-ipam-node"), "nv_ipam"),
        (workload("calico-node", "calico/node:v3"), ""),
        (workload("agent", "ghcr.io/spidernet-io/spiderpool/spiderpool-agent@sha256:0"), "spiderpool"),
    ],
)
def test_a_part_is_known_by_name_label_or_image(obj, part):
    assert part_of(obj) == part


def test_component_owner_and_version():
    objects = [
        workload("kube-multus-ds", "ghcr.io/k8snetworkplumbingwg/multus-cni:v4.2.2", release="net/multus"),
        workload("spiderpool-agent", labels={"app.kubernetes.io/version": "1.2.1"}, release="spiderpool/spiderpool"),
    ]
    multus, spiderpool = workloads_found(objects, MANAGED)
    assert str(multus) == "v4.2.2, DaemonSet kube-system/kube-multus-ds of the Helm release net/multus"
    assert (multus.managed, spiderpool.managed, spiderpool.version) == (False, True, "1.2.1")
    assert not next(workloads_found(objects[1:], Release())).managed, "without a note nothing is ours"


def test_parts_of_the_network_operator_are_known_by_its_policies():
    spec = {
        "secondaryNetwork": {"multus": {"version": "v4.2.2"}, "cniPlugins": {}},
        "rdmaSharedDevicePlugin": {"config": "{}"},
        "ofedDriver": {},
    }
    policy = {"kind": "NicClusterPolicy", "metadata": {"name": "nic-cluster-policy"}, "spec": spec}
    assert sorted(row.part for row in policies_found([policy])) == ["multus", "rdma_device_plugin"]


def network(name, *owners, namespace="spiderpool"):
    rows = [{"kind": owner, "name": "x"} for owner in owners]
    return {"metadata": {"name": name, "namespace": namespace, "ownerReferences": rows}}


def test_a_users_networks_show_a_multus_and_are_not_overwritten():
    assert list(networks_found([network("one", "SpiderMultusConfig")])) == []
    (found,) = networks_found([network("one"), network("two")])
    assert (found.part, found.place) == ("multus", "NetworkAttachmentDefinition spiderpool/one")
    planned = {"spiderpool/fabric-rail1"}
    (problem,) = taken_networks([network("fabric-rail1"), network("fabric-rail1", namespace="ml")], planned)
    assert problem.place == "NetworkAttachmentDefinition spiderpool/fabric-rail1"
    assert list(taken_networks([network("fabric-rail1", "SpiderMultusConfig")], planned)) == []


def test_what_the_chart_would_install_is_needed():
    plugin = {"rdmaSharedDevicePlugin": {"install": True}}
    assert needed({"rdma": plugin, "sriov": {"install": False}}) == ["spiderpool", "multus", "rdma_device_plugin"]
    assert needed({"multus": {"multusCNI": {"install": False}}, "sriov": {"install": True}}) == [
        "spiderpool",
        "sriov_operator",
    ]


THEIRS = FoundPart("multus", "DaemonSet a/multus", "kubectl", "v4.2.2")
LEFT = FoundPart("multus", "CRD x", "helm", sure=1)
SAME = FoundPart(
    "spiderpool", "DaemonSet spiderpool/spiderpool-agent", "the Helm release spiderpool/spiderpool", "1.2.1"
)


@pytest.mark.parametrize(
    ("settings", "found", "state", "fix"),
    [
        ({}, [], "managed", ""),
        ({}, [LEFT], "managed", ""),
        ({}, [THEIRS], "managed", "Set it to adopt to use it as it is. [component_existing]"),
        ({}, [THEIRS, FoundPart("multus", "x", managed=True)], "managed", ""),
        ({"multus": "adopt"}, [THEIRS], "adopt", ""),
        ({"multus": "adopt"}, [LEFT], "adopt", ""),
        ({"multus": "adopt"}, [], "adopt", "Install it, or leave this setting out. [adopt_missing]"),
        (
            {"multus": "managed"},
            [THEIRS],
            "managed",
            "Set it to adopt, or remove that one first. [component_duplicate]",
        ),
        ({"multus": "managed"}, [FoundPart("multus", "x", sure=2)], "managed", ""),
        ({"spiderpool": "adopt"}, [SAME, THEIRS], "adopt", ""),
        (
            {"spiderpool": "adopt", "multus": "managed"},
            [SAME],
            "managed",
            "Set it to adopt, or leave it out. [component_unknown]",
        ),
    ],
)
def test_component_settings(settings, found, state, fix):
    parts, problems, undecided = states(["spiderpool", "multus"], settings, found, Release())
    assert parts["multus"] == state
    assert [row.fix for row in problems] == ([fix] if fix else [])
    assert undecided == (["multus"] if fix.startswith("Set it to adopt to use") else [])


def test_a_release_of_our_name_is_taken_over_only_on_purpose():
    _parts, (problem,), undecided = states(["spiderpool"], {}, [SAME], Release())
    assert "managed, with spiderpool_take_ownership: true, takes this release over" in problem.fix
    assert undecided == ["spiderpool"]
    # Its values are compared then, before anything else, and its other parts come along with it.
    along = FoundPart("multus", "DaemonSet spiderpool/spiderpool-agent", SAME.owner)
    assert states(["spiderpool", "multus"], {"spiderpool": "managed"}, [SAME, along], Release())[1] == []
    assert states(["spiderpool"], {"spiderpool": "managed"}, [SAME], Release())[1] == []
    elsewhere = FoundPart(
        "spiderpool", "DaemonSet other/spiderpool-agent", "the Helm release other/spiderpool", "1.2.1"
    )
    assert (
        "remove that one first" in states(["spiderpool"], {"spiderpool": "managed"}, [elsewhere], Release())[1][0].fix
    )


VALUES = {
    "ipam": {"enableIPv4": True, "enableIPv6": False},
    "rdma": {
        "rdmaSharedDevicePlugin": {"deviceConfig": {"configList": [{"resourceName": "r1", "resourcePrefix": "p"}]}}
    },
    "spiderpoolController": {"podResourceInject": {"enabled": True, "namespacesInclude": ["ml"]}},
    "sriov": {"resourcePrefix": "spidernet.io"},
}
CONFIG = {
    "enableIPv4": True,
    "enableIPv6": True,
    "enableSpiderSubnet": False,
    "podResourceInject": {"enabled": True, "namespacesInclude": []},
}


def good(part):
    """Return a part that serves the plan."""
    paths = [{"hostPath": {"path": "/opt/cni/bin"}}, {"hostPath": {"path": "/etc/cni/net.d/"}}, {"name": "x"}]
    body = workload(part, "x:1.3.1", namespace="spiderpool", volumes=paths)
    body["spec"]["template"]["spec"]["containers"][0]["env"] = [
        {"name": "SPIDERPOOL_MULTUS_CONFIG_ENABLED", "value": "true"},
        {"name": "RESOURCE_PREFIX", "value": "spidernet.io"},
    ]
    found = FoundPart(part, "x", body=body)
    return AdoptedPart([found], config=copy.deepcopy(CONFIG), plugin=[{"resourceName": "r1", "resourcePrefix": "p"}])


def spoil(seen, what):
    """Spoil what a row of the table looks at."""
    pod = seen.found[0].body["spec"]["template"]["spec"]
    match what:
        case "IPv4" | "IPv6" | "SpiderSubnet" as key:
            name = f"enable{key}"
            seen.config[name] = not seen.config[name]
        case "SpiderMultusConfig":
            pod["containers"][0]["env"][0]["value"] = "false"
        case "injection":
            seen.config["podResourceInject"]["enabled"] = False
        case "namespaces of injection":
            seen.config["podResourceInject"]["namespacesInclude"] = ["default"]
        case "folder of CNI plugins" | "folder of CNI configurations":
            pod["volumes"] = [{"hostPath": {"path": "/elsewhere"}}]
        case "namespace":
            seen.found[0].body["metadata"]["namespace"] = "sriov-network-operator"
        case "prefix of resources":
            pod["containers"][0]["env"][1]["value"] = "nvidia.com"
        case "resources":
            return AdoptedPart(seen.found, plugin=[{"resourceName": "other"}])
    return seen


PLANNED = ({**VALUES, "ipam": {"enableIPv4": True, "enableIPv6": True}}, KUBERNETES.folders, "spiderpool")


@pytest.mark.parametrize(
    ("part", "row"), [(part, row) for part in KINDS for row in requirements(part, *PLANNED, good(part))]
)
def test_each_requirement_is_compared(part, row):
    assert list(differences(part, *PLANNED, good(part))) == []
    (problem,) = differences(part, *PLANNED, spoil(good(part), row.what))
    assert f"{KINDS[part].title} is adopted, and does not fit the plan in its {row.what}: planned " in problem.problem
    assert problem.fix == f"{row.fix} [adopted]"


def test_what_spiderpool_does_not_report_is_no_pass():
    found = AdoptedPart([FoundPart("spiderpool", "x", body=good("spiderpool").found[0].body)])
    assert any("found unknown" in row.problem for row in differences("spiderpool", VALUES, *PLANNED[1:], found))


def test_what_the_plan_does_not_set_is_not_compared():
    seen = spoil(good("spiderpool"), "IPv6")
    assert list(differences("spiderpool", VALUES, *PLANNED[1:], seen)) == []


def test_changed_values_are_listed_without_content():
    now, then = {"a": {"password": "old"}, "c": True}, {"a": {"password": "new", "d": [1]}}
    assert list(value_changes(now, then)) == ["a.d", "a.password", "c"]


# CRDs


def crd(
    name="policies.sriovnetwork.openshift.io", manager="kubectl", fields=("mtu", "numVfs"), scope="Namespaced", **meta
):
    group = name.partition(".")[2]
    spec = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    version = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": {"properties": {"spec": spec}}}}
    rows = [{"manager": manager, "operation": "Apply", "fieldsV1": {"f:spec": {}}}]
    return {
        "metadata": {"name": name, "managedFields": rows, **meta},
        "spec": {"group": group, "scope": scope, "names": {"kind": "K"}, "versions": [version]},
    }


HELM = {"annotations": {"meta.helm.sh/release-name": "network-operator", "meta.helm.sh/release-namespace": "nvidia"}}


@pytest.mark.parametrize(
    ("have", "managed", "applied", "left", "refused"),
    [
        (None, ["sriov_operator"], 1, 0, 0),
        (None, [], 0, 0, 0),
        (crd(manager="railops.rdma", fields=["mtu"]), ["sriov_operator"], 1, 0, 0),
        (crd(manager="railops.rdma", **HELM), ["sriov_operator"], 0, 1, 0),
        (crd(fields=["mtu", "numVfs", "more"]), ["sriov_operator"], 0, 1, 0),
        (crd(fields=["mtu"]), ["sriov_operator"], 0, 0, 1),
        (crd(scope="Cluster"), ["sriov_operator"], 0, 0, 1),
        (crd(fields=["mtu"]), ["spiderpool"], 0, 0, 0),
    ],
)
def test_existing_crds_are_unchanged_or_refused(have, managed, applied, left, refused):
    charts = crd()
    found = sort([charts], {charts["metadata"]["name"]: have} if have else {}, managed, Release())
    assert tuple(map(len, found)) == (applied, left, refused)


def test_a_refused_crd_is_named_with_owner_version_and_what_it_lacks():
    charts = crd()
    have = crd(fields=["mtu"], **HELM, labels={"app.kubernetes.io/version": "v25.1.0"})
    _apply, _left, (problem,) = sort([charts], {charts["metadata"]["name"]: have}, ["sriov_operator"], Release())
    assert problem.problem == "It belongs to the Helm release nvidia/network-operator (v25.1.0), and lacks spec.numVfs."
    assert "cluster_components: {sriov_operator: adopt}" in problem.fix


def test_the_definition_of_networks_is_made_where_there_is_none():
    name = "network-attachment-definitions.k8s.cni.cncf.io"
    assert sort([crd(name)], {}, ["spiderpool"], Release()) == ([name], [], []), (
        "Spiderpool writes them, also with another Multus"
    )
    assert sort([crd(name)], {name: crd(name, fields=[])}, ["spiderpool"], Release()) == ([], [], [])


def test_crds_of_a_release_that_was_taken_over_are_managed():
    name = "spiderippools.spiderpool.spidernet.io"
    assert sort([crd(name)], {name: crd(name, fields=[])}, ["spiderpool"], MANAGED) == ([name], [], [])


def test_fields_are_compared_down_to_lists_and_open_schemas():
    wanted, have = crd(), crd()
    wanted["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] |= {"apiVersion": {}, "metadata": {}}
    below = wanted["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    below["list"] = {"type": "array", "items": {"properties": {"a": {}, "b": {}}}}
    theirs = have["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    theirs["properties"]["list"] = {"type": "array", "items": {"properties": {"a": {}}}}
    assert list(lacks(wanted, have)) == ["spec.list[].b"]
    theirs["x-kubernetes-preserve-unknown-fields"] = True
    assert list(lacks(wanted, have)) == []
    have["spec"]["versions"][0]["name"] = "v1beta1"
    assert list(lacks(wanted, have)) == ["version v1"]
