# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nodes and Calico get back where not all of it can be: agents that are not ready, another fabric."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
import tools
from api_double import ApiDouble
from api_kinds import Kind, crd_folder, read_crds
from conftest import Live, Playbook, Run
from fabric_objects import labels
from node_folders import AGENT, CONFIGURATIONS, MULTUS, PLUGINS, NodeFolders
from plays import SPIDERPOOL, empty, from_, releases

Json = dict[str, t.Any]
NOTE = "railops-rdma-release"
POOLS, SRIOV = "spiderpool.spidernet.io/v2beta1", "sriovnetwork.openshift.io/v1"
FILES = f"rm -rf /{CONFIGURATIONS}/00-multus.conf /{CONFIGURATIONS}/multus.d"
BACK = [from_("spiderpool", "uninstall"), from_("spiderpool", "calico_back")]


double = empty


def joined(text: str) -> str:
    return " ".join(text.replace("\\n", " ").split())


def brought(before: dict[str, dict[str, str]], after: dict[str, dict[str, str]]) -> set[frozenset[str]]:
    """Return which files nodes have besides those of before, equal sets once."""
    return {frozenset(after[name].keys() - files.keys()) for name, files in before.items()}


@pytest.mark.long
@pytest.mark.only_double("a node's folders are simulated")
def test_multus_file_leaves_every_node_before_the_release(
    playbook: Playbook, double: ApiDouble, nodes: NodeFolders, live: Live, exclusive: None
) -> None:
    before = nodes.trees()
    playbook.run([SPIDERPOOL])
    assert all(f"{CONFIGURATIONS}/00-multus.conf" in files for files in nodes.trees().values())
    live.down("node3")
    written = double.writes()
    refused = joined(playbook.run(BACK, "--check", ok=False).text)
    assert "nodes without a ready agent of Spiderpool, and no new pod would start there: node3." in refused
    assert f"{FILES} and set spiderpool_uninstall_confirmed to true" in refused
    assert double.writes() == written
    key = double.objects("Secret")["railops-rdma-webhook-tls"]["data"]["tls.key"]
    helm = playbook.folder / "helm"
    order = (
        f'#!/bin/sh\nfor word; do [ "$word" = uninstall ] && ls {nodes.folder}/*/{CONFIGURATIONS} >{helm}.saw; done\n'
    )
    helm.write_text(f'{order}exec {tools.helm()} "$@"\n', encoding="utf-8")
    helm.chmod(0o755)
    playbook.values.update({"spiderpool_uninstall_confirmed": True, "spiderpool_helm": str(helm)})

    def fails(kind: Kind, old: Json | None, new: Json | None) -> None:
        if kind.kind == "Pod" and old is None and new and new["spec"].get("nodeName") == "node5":
            status = {"conditions": [{"type": "Ready", "status": "False"}]}
            double.store.patch_status(kind, new["metadata"]["namespace"], new["metadata"]["name"], status)

    # A node that fails during the run is one that the user has not confirmed.
    double.store.after.append(fails)
    assert "no new pod would start there: node5. Nothing was uninstalled." in joined(playbook.run(BACK, ok=False).text)
    assert releases(live)[-1:] == ["superseded"]
    double.store.after.remove(fails)
    live.up("node5")
    ran = playbook.run(BACK, "-vvv")
    assert key not in ran.text
    assert "multus" not in (playbook.folder / "helm.saw").read_text(encoding="utf-8")
    assert releases(live) == []
    assert brought(before, nodes.trees()) == {frozenset(f"{PLUGINS}/{name}" for name in (*AGENT, *MULTUS))}
    assert "rm -f " + " ".join(f"/{PLUGINS}/{name}" for name in (*AGENT, *MULTUS)) in joined(ran.text)


# A release of this collection by helm's answers; what helm would uninstall is recorded.
RELEASE = """#!/bin/sh
case "$*" in
*" list "*) echo '[{{"name":"spiderpool","chart":"spiderpool-1.2.3","status":"deployed"}}]' ;;
*" get values "*) echo '{{}}' ;;
*" uninstall "*) echo "$*" >>{helm}.uninstalled ;;
*) exec {real} "$@" ;;
esac
"""


def played_release(playbook: Playbook, double: ApiDouble, objects: Run, existing: str = "") -> Path:
    """Play a release with its CRDs, and return the file that records its removal.

    :param existing: the API group whose CRDs another tool created.
    """
    helm = playbook.folder / "helm"
    helm.write_text(RELEASE.format(helm=helm, real=tools.helm()), encoding="utf-8")
    helm.chmod(0o755)
    playbook.values["spiderpool_helm"] = str(helm)
    crds = read_crds(crd_folder())
    crd = double.store.kind_of("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    objects([row for row in crds if row["spec"]["group"] != existing])
    for row in (row for row in crds if row["spec"]["group"] == existing):
        double.store.create(crd, "", row, {}, "helm")
    double.put("v1", "Namespace", "spiderpool")
    double.put("v1", "ConfigMap", NOTE, "spiderpool", metadata={"labels": labels("fabric")}, data={"made": "true"})
    double.admission = None
    return Path(f"{helm}.uninstalled")


@pytest.mark.long
@pytest.mark.only_double("a release and objects of another user are simulated")
@pytest.mark.parametrize("existing", ["", "sriovnetwork.openshift.io"])
def test_existing_objects_that_the_charts_hook_deletes_keep_the_release(
    playbook: Playbook, double: ApiDouble, objects: Run, existing: str
) -> None:
    uninstalled = played_release(playbook, double, objects, existing)
    # Spiderpool's init job creates the first; it is the release's own.
    double.put(POOLS, "SpiderMultusConfig", "calico", "spiderpool", spec={"cniType": "custom", "customCNI": ""})
    custom = {"cniType": "custom", "customCNI": json.dumps({"cniVersion": "1.0.0", "type": "bridge"})}
    policy = {"nodeSelector": {}, "nicSelector": {"vendor": "8086"}, "numVfs": 2, "resourceName": "intel"}
    double.put(SRIOV, "SriovNetworkNodePolicy", "default", "spiderpool", spec=policy)
    others: list[tuple[str, str, str, str, Json]] = [
        (POOLS, "SpiderMultusConfig", "nas", "spiderpool", custom),
        (POOLS, "SpiderReservedIP", "gateway", "", {"ips": ["192.0.2.1"]}),
        (SRIOV, "SriovNetworkNodePolicy", "intel", "spiderpool", policy),
    ]
    for api, kind, name, space, spec in others:
        double.put(api, kind, name, space, spec=spec)
    names = ["SpiderMultusConfig/spiderpool/nas", "SpiderReservedIP/gateway"]
    # Without its hook, the release leaves another SR-IOV operator's objects alone.
    names += [] if existing else ["SriovNetworkNodePolicy/spiderpool/intel"]
    written = double.writes()
    for arguments in (("--check",), ()):
        refused = joined(playbook.run(BACK[:1], *arguments, ok=False).text)
        assert f"there are still {len(names)}: {', '.join(names)}." in refused
    assert (double.writes(), uninstalled.exists()) == (written, False)
    for api, kind, name, space, _spec in others[: len(names)]:
        double.store.delete(double.store.kind_of(api, kind), space, name, {}, {})
    playbook.run(BACK[:1])
    assert ("--no-hooks" in uninstalled.read_text(encoding="utf-8")) is bool(existing)


@pytest.mark.long
@pytest.mark.only_double("a release of this collection is simulated")
def test_a_coordinator_does_not_hold_its_crd(playbook: Playbook, double: ApiDouble, objects: Run) -> None:
    uninstalled = played_release(playbook, double, objects, "sriovnetwork.openshift.io")
    held = {"finalizers": ["spiderpool.spidernet.io"]}
    double.put(POOLS, "SpiderCoordinator", "default", metadata=held, spec={"mode": "auto"})
    finalizers: list[t.Any] = []

    def patched(kind: Kind, _old: Json | None, new: Json | None) -> None:
        if kind.kind == "SpiderCoordinator" and new:
            finalizers.append(new["metadata"].get("finalizers"))

    double.store.after.append(patched)
    playbook.values["spiderpool_uninstall_crds"] = True
    playbook.run(BACK[:1])
    assert "--no-hooks" in uninstalled.read_text(encoding="utf-8")
    assert finalizers in ([None], [[]]), "no controller would remove it"
    crds = {name.partition(".")[2] for name in double.objects("CustomResourceDefinition")}
    assert crds == {"sriovnetwork.openshift.io"}


@pytest.mark.long
@pytest.mark.only_double("a node's folders are simulated")
def test_a_release_that_was_taken_away_by_hand_and_a_fabric_that_goes_on_from_anothers_note(
    playbook: Playbook, double: ApiDouble, nodes: NodeFolders, exclusive: None
) -> None:
    calico = double.objects("DaemonSet")["calico-node"]["spec"]
    playbook.run([SPIDERPOOL])
    assert double.objects("DaemonSet")["calico-node"]["spec"] != calico
    helm = [str(tools.helm()), "--kubeconfig", str(playbook.kubeconfig), "--namespace", "spiderpool"]
    playbook.run([{"ansible.builtin.command": {"argv": [*helm, "uninstall", "spiderpool"]}}])
    assert all(f"{CONFIGURATIONS}/00-multus.conf" in files for files in nodes.trees().values())
    playbook.values["fabric_name"] = "other"
    over = joined(playbook.run(BACK).text)
    assert f"On each node run {FILES}" in over
    assert "the teardown of another fabric has not reached all of its hosts: fabric" in over
    note = double.objects("ConfigMap")[NOTE]
    assert not {"made", "chart", "digest"} & note["data"].keys(), "the next release of that name may be another's"
    assert note["metadata"]["labels"]["railops.io/fabric"] == "fabric"
    assert double.objects("DaemonSet")["calico-node"]["spec"] != calico
    playbook.values.pop("fabric_name")
    playbook.run([from_("spiderpool", "calico_back")])
    assert double.objects("DaemonSet")["calico-node"]["spec"] == calico
    assert NOTE not in double.objects("ConfigMap")


@pytest.mark.only_double("a node's folders are simulated")
def test_a_note_that_another_user_wrote_changes_nothing_but_calicos_choice(
    playbook: Playbook, double: ApiDouble, exclusive: None
) -> None:
    double.put("v1", "Namespace", "spiderpool")
    role = {"api_version": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "names": [], "namespace": ""}
    role["back"] = {"metadata": {"name": "view"}, "rules": [{"verbs": ["*"]}]}
    name, boxes = "IP_AUTODETECTION_METHOD", [{"name": "calico-node", "image": "evil", "env": []}]
    boxes[0]["env"] = [{"name": "LD_PRELOAD", "value": "evil"}, {"name": name, "value": "first-found"}]
    own = {"api_version": "apps/v1", "kind": "DaemonSet", "names": [name], "namespace": "kube-system"}
    own["back"] = {"metadata": {"name": "kube-proxy"}, "spec": {"template": {"spec": {"containers": boxes}}}}
    container = double.objects("DaemonSet")["calico-node"]["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": "kubernetes-internal-ip"}]
    note = {"calico": json.dumps([role, own])}
    double.put("v1", "ConfigMap", NOTE, "spiderpool", metadata={"labels": labels("fabric")}, data=note)
    playbook.run([from_("spiderpool", "calico_back")])
    (container,) = double.objects("DaemonSet")["calico-node"]["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "calico-node", "image": "x", "env": [{"name": name, "value": "first-found"}]}
    assert "view" not in double.objects("ClusterRole")
