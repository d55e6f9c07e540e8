# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What nodes and Calico get back where not all of it can be: nodes that lack something, no record, another fabric."""

from __future__ import annotations

import json
import sys
import typing as t

import pytest
import tools
from api_double import ApiDouble
from conftest import Live, Playbook
from fabric_objects import labels
from node_folders import CONFIGURATIONS, PROGRAMS, NodeFolders, write
from plays import SPIDERPOOL, empty, from_, use

if t.TYPE_CHECKING:
    from pathlib import Path

Json = dict[str, t.Any]
NOTE = "railops-rdma-release"
# A node that is silent is waited for, twice.
SOON = {"railops.rdma.node_cni": {"timeout": 5}}
BACK = [{"block": [from_("spiderpool", "uninstall"), from_("spiderpool", "calico_back")], "module_defaults": SOON}]


double = empty


def said(text: str) -> str:
    return " ".join(text.replace("\\n", " ").split())


@pytest.mark.only_double("a node's folders are played")
def test_a_node_that_lacks_a_plugin_is_named_before_anything_comes_to_the_cluster(
    playbook: Playbook, double: ApiDouble, nodes: NodeFolders, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    (nodes.root("node2") / PROGRAMS / "macvlan").unlink()
    before = nodes.trees()
    refused = said(playbook.role("spiderpool", ok=False).text)
    assert "1 node(s) lack CNI plugins that the plan needs, below /opt/cni/bin: node2: macvlan" in refused
    assert "replaces all standard plugins on all nodes" in refused
    assert nodes.trees() == before
    assert "spiderpool-agent" not in double.objects("DaemonSet")
    assert not double.objects("SpiderIPPool")


@pytest.mark.long
@pytest.mark.only_double("a node's folders are played")
def test_a_cluster_of_b0302bd_a_node_that_is_silent_and_a_second_fabric(
    playbook: Playbook, double: ApiDouble, nodes: NodeFolders, live: Live, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    playbook.run([SPIDERPOOL])
    # As b0302bd left it: a note without a record, all standard plugins replaced.
    note = double.objects("ConfigMap")[NOTE]
    note.pop("binaryData")
    note["data"] = {name: note["data"][name] for name in ("release", "made", "chart", "digest")}
    kept = playbook.role("spiderpool", spiderpool_values={"plugins": {"installCNI": True}})
    assert "binaryData" not in double.objects("ConfigMap")[NOTE], "what is there now is not what was there"
    assert "replaces the standard CNI plugins of all nodes, as it did before" in said(playbook.role("spiderpool").text)
    assert kept.changed > 0
    nodes.silent.add("node3")
    double.put(
        "v1",
        "ConfigMap",
        "railops-other-lock",
        "spiderpool",
        metadata={"labels": {"app.kubernetes.io/managed-by": "railops.rdma"}},
    )
    assert "Not reached: node3" in said(playbook.run(BACK).text)
    nodes.silent.clear()
    again = said(playbook.run(BACK).text)
    assert "did not note what the nodes had" in again
    for files in nodes.trees().values():
        assert f"{CONFIGURATIONS}/00-multus.conf" not in files
        assert f"{PROGRAMS}/multus" not in files
        assert f"{PROGRAMS}/spiderpool" in files
    assert "calico" not in json.dumps(double.objects("ConfigMap").get(NOTE, {}).get("data", {}))


@pytest.mark.slow
@pytest.mark.only_double("a node's folders are played")
def test_a_release_that_was_taken_away_by_hand_and_a_fabric_that_goes_on_from_anothers_note(
    playbook: Playbook, double: ApiDouble, nodes: NodeFolders, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    before, calico = nodes.trees(), double.objects("DaemonSet")["calico-node"]["spec"]
    playbook.run([SPIDERPOOL])
    assert double.objects("DaemonSet")["calico-node"]["spec"] != calico
    helm = [str(tools.helm()), "--kubeconfig", str(playbook.kubeconfig), "--namespace", "spiderpool"]
    playbook.run([{"ansible.builtin.command": {"argv": [*helm, "uninstall", "spiderpool"]}}])
    assert all(f"{CONFIGURATIONS}/00-multus.conf" in files for files in nodes.trees().values())
    playbook.values["fabric_name"] = "other"
    over = said(playbook.run(BACK).text)
    assert nodes.trees() == before
    assert "the teardown of another fabric has not reached all of its hosts: fabric" in over
    note = double.objects("ConfigMap")[NOTE]
    assert not {"made", "chart", "digest"} & note["data"].keys(), "the next release of that name may be another's"
    assert note["metadata"]["labels"]["railops.io/fabric"] == "fabric"
    assert double.objects("DaemonSet")["calico-node"]["spec"] != calico
    playbook.values.pop("fabric_name")
    playbook.run([from_("spiderpool", "calico_back")])
    assert double.objects("DaemonSet")["calico-node"]["spec"] == calico
    assert NOTE not in double.objects("ConfigMap")
    # A note of b0302bd does not say how nodes are reached.
    double.put("v1", "ConfigMap", NOTE, "spiderpool", metadata={"labels": labels("fabric")}, data={"made": "true"})
    assert "does not say with which image nodes are reached" in said(playbook.run(BACK).text)
    assert NOTE not in double.objects("ConfigMap")


@pytest.mark.only_double("a node's folders are played")
def test_a_note_that_somebody_else_wrote_changes_nothing_but_calicos_choice(
    playbook: Playbook, double: ApiDouble, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    double.put("v1", "Namespace", "spiderpool")
    role = {"api_version": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "names": [], "namespace": ""}
    role["back"] = {"metadata": {"name": "view"}, "rules": [{"verbs": ["*"]}]}
    name, boxes = "IP_AUTODETECTION_METHOD", [{"name": "calico-node", "image": "evil", "env": []}]
    boxes[0]["env"] = [{"name": "LD_PRELOAD", "value": "evil"}, {"name": name, "value": "first-found"}]
    own = {"api_version": "apps/v1", "kind": "DaemonSet", "names": [name], "namespace": "kube-system"}
    own["back"] = {"metadata": {"name": "kube-proxy"}, "spec": {"template": {"spec": {"containers": boxes}}}}
    container = double.objects("DaemonSet")["calico-node"]["spec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": name, "value": "kubernetes-internal-ip"}]
    note = {"calico": json.dumps([role, own]), "taking": "{}"}
    double.put("v1", "ConfigMap", NOTE, "spiderpool", metadata={"labels": labels("fabric")}, data=note)
    playbook.run([from_("spiderpool", "calico_back")])
    (container,) = double.objects("DaemonSet")["calico-node"]["spec"]["template"]["spec"]["containers"]
    assert container == {"name": "calico-node", "image": "x", "env": [{"name": name, "value": "first-found"}]}
    assert "view" not in double.objects("ClusterRole")


@pytest.mark.slow
@pytest.mark.only_double("a node's folders are played")
def test_the_fabrics_hosts_are_asked_over_ssh_and_pods_look_at_the_others(
    playbook: Playbook, double: ApiDouble, nodes: NodeFolders, plans: t.Callable[[str], Path]
) -> None:
    """The hosts are this machine, whose folders of CNI lie where spiderpool_values says: it lacks their rails."""
    use(playbook, plans("exclusive"), "exclusive")
    for name in ("conf/10-calico.conflist", "bin/macvlan", "bin/own"):
        write(playbook.folder / name, "")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {"gpu_nodes": {"hosts": {"node1": local, "node2": local}}}
    (playbook.folder / "hosts.yml").write_text(json.dumps({"all": {"children": hosts}}), encoding="utf-8")
    books = [{"import_playbook": f"railops.rdma.{name}"} for name in ("preflight", "cluster")]
    (playbook.folder / "both.yml").write_text(json.dumps(books), encoding="utf-8")
    folders = {"cniConfHostPath": str(playbook.folder / "conf"), "cniBinHostPath": str(playbook.folder / "bin")}
    given = {"spiderpool_values": {"global": folders}}
    words = ("-i", "hosts.yml", "--check", "--tags", "preflight,spiderpool")
    ran = said(playbook.shipped(str(playbook.folder / "both.yml"), *words, **given).text)
    assert "what they have of CNI is not known: node[3-8]. A preview starts no pods." in ran
