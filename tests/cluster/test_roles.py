# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles spiderpool and rail_objects with real ansible-playbook and real helm: install, upgrade, repair, remove."""

from __future__ import annotations

import base64
import contextlib
import copy
import datetime
import functools
import gzip
import hashlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import threading
import time
import typing as t
from pathlib import Path

import plays
import pytest
import tools
import yaml
from api_controllers import allocate
from api_double import ApiDouble
from api_kinds import crd
from conftest import Live, Playbook, chart_copy
from fabric_objects import config, pool
from plays import RAIL_OBJECTS, SPIDERPOOL, empty, from_, releases, sriov_fleet, sriov_operator, use

Json = dict[str, t.Any]
IMAGE = "registry.example/rdma-tools@sha256:" + "0" * 64


double = empty


def made_by(live: Live) -> str:
    """Return what the note says of who made the release."""
    found: str = live.objects("ConfigMap", namespace="spiderpool")["railops-rdma-release"]["data"]["made"]
    return found


@pytest.mark.long
@pytest.mark.only_double("a chart's parts must be kept from becoming ready")
def test_a_failed_release_is_reported_and_repaired(playbook: Playbook, double: ApiDouble, live: Live) -> None:
    double.controllers.ready = False
    failed = playbook.role("spiderpool", ok=False, spiderpool_timeout=3)
    text = " ".join(failed.text.split())
    assert "it is failed" in text
    assert "Deployment spiderpool/spiderpool-controller" in text
    assert releases(live) == ["failed"]
    double.controllers.resume()
    playbook.role("spiderpool")
    assert releases(live) == ["deployed", "superseded"]
    assert made_by(live) == "true", "a first installation that failed is still this role's"


# Real helm, which from its N-th question on asks a server that is gone; the count is the size of a file.
LOST_HELM = """#!/bin/sh
for word; do
  if [ "$word" = list ] || [ "$word" = uninstall ]; then
    echo >>{count}
    [ "$(wc -l <{count})" -lt {number} ] || set -- "$@" --kube-apiserver=https://127.0.0.1:9
  fi
done
exec {helm} "$@"
"""


@pytest.mark.long
@pytest.mark.only_double("a release is made twice")
def test_an_api_that_helm_does_not_reach_is_named(playbook: Playbook, double: ApiDouble, tmp_path: Path) -> None:
    for tasks, number, words in (
        ("main", 1, "helm cannot read the release spiderpool: Error: "),
        ("main", 2, "helm cannot read it from the cluster's API. helm"),
        ("uninstall", 1, "helm cannot read the release spiderpool: Error: "),
        ("uninstall", 2, "helm cannot uninstall the release spiderpool: Error: "),
    ):
        lost = tmp_path / f"helm-{tasks}{number}"
        lost.write_text(LOST_HELM.format(count=f"{lost}.count", number=number, helm=tools.helm()))
        lost.chmod(0o755)
        text = " ".join(playbook.role("spiderpool", tasks_from=tasks, ok=False, spiderpool_helm=str(lost)).text.split())
        assert words in text
        assert "127.0.0.1:9" in text
        assert "non-zero return code" not in text
    playbook.role("spiderpool")
    playbook.role("spiderpool", tasks_from="uninstall")
    assert "spiderpool-controller" not in double.objects("Deployment")


def helm_record(secret: Json) -> Json:
    """Return what helm wrote down about a release."""
    packed = base64.b64decode(base64.b64decode(secret["data"]["release"]))
    return t.cast("Json", json.loads(gzip.decompress(packed)))


def rewrite_release(double: ApiDouble, revision: int, status: str, since: datetime.datetime, source: int = 0) -> None:
    """Make helm's record of a revision say another status and time; from the record of `source` when it is new."""
    kind = double.store.kind_of("v1", "Secret")
    name = "sh.helm.release.v1.spiderpool.v{}"
    record = copy.deepcopy(double.objects("Secret")[name.format(source or revision)])
    release = helm_record(record)
    release["version"] = revision
    release["info"] |= {"status": status, "last_deployed": since.isoformat()}
    packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    record["data"]["release"] = base64.b64encode(packed).decode()
    record["metadata"]["labels"] |= {"status": status, "version": str(revision)}
    meta = {"name": name.format(revision), "labels": record["metadata"]["labels"]}
    if not source:
        double.store.delete(kind, "spiderpool", meta["name"], {}, {})
    body = {"metadata": meta, "type": record["type"], "data": record["data"]}
    double.store.create(kind, "spiderpool", body, {}, "helm")


def descendants(pid: int) -> list[int]:
    """Return the processes below one, the process itself included."""
    parents: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            parents.setdefault(int(fields[1]), []).append(int(path.parent.name))
    found = [pid]
    for one in found:
        found += parents.get(one, [])
    return found


@pytest.mark.long
@pytest.mark.only_double("helm must be killed in the middle, and its record made older")
def test_a_release_that_was_cut_off_is_left_to_others_and_then_repaired(
    playbook: Playbook, double: ApiDouble, live: Live
) -> None:
    double.controllers.ready = False
    running = playbook.start([{**SPIDERPOOL, "vars": {"spiderpool_timeout": 600}}])
    until = time.monotonic() + 300
    while releases(live) != ["pending-install"]:
        assert time.monotonic() < until
        assert running.poll() is None
        time.sleep(0.1)
    for pid in descendants(running.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    running.wait(30)
    double.controllers.resume()
    now = datetime.datetime.now(datetime.UTC)
    hour = datetime.timedelta(hours=1)
    rewrite_release(double, 1, "pending-install", now - hour)
    playbook.role("spiderpool")
    assert releases(live) == ["deployed"]
    assert made_by(live) == "true"

    rewrite_release(double, 2, "pending-upgrade", now + hour, source=1)
    assert "Another helm run may be active" in " ".join(playbook.role("spiderpool", ok=False).text.split())
    assert releases(live) == ["deployed", "pending-upgrade"]
    rewrite_release(double, 2, "pending-upgrade", now - hour)
    playbook.role("spiderpool")
    assert releases(live)[0] == "deployed"
    assert not [status for status in releases(live) if status.startswith("pending")]


TIGERA = crd("operator.tigera.io", "installations", "Installation")
DASHBOARDS = crd("grafana.integreatly.org", "grafanadashboards", "GrafanaDashboard", "v1beta1", scope="Namespaced")
DETECTION = "nodeAddressAutodetectionV"


@pytest.mark.long
@pytest.mark.only_double("needs an operator of Tigera's")
def test_tigera_gets_its_settings(playbook: Playbook, double: ApiDouble, live: Live) -> None:
    for row in (TIGERA, DASHBOARDS):
        double.store.create(
            double.store.kind_of("apiextensions.k8s.io/v1", "CustomResourceDefinition"), "", row, {}, "x"
        )
    network = {f"{DETECTION}4": {"firstFound": True}, "ipPools": [{"cidr": "192.168.0.0/16"}]}
    double.put("operator.tigera.io/v1", "Installation", "default", spec={"calicoNetwork": network})
    assert "Install or upgrade" in plays.last_part(playbook.role("spiderpool").changed_tasks())
    installed = live.objects("Installation", "operator.tigera.io/v1")["default"]["spec"]["calicoNetwork"]
    assert installed == {f"{DETECTION}4": {"kubernetes": "NodeInternalIP"}, "ipPools": network["ipPools"]}
    sets = live.objects("DaemonSet", "apps/v1")
    assert "env" not in sets["calico-node"]["spec"]["template"]["spec"]["containers"][0], "the operator's, not ours"
    assert playbook.role("spiderpool").changed_tasks() == []


@pytest.mark.only_double("the API must fail in scripted ways")
def test_conflicts_are_reported_before_the_first_write(playbook: Playbook, double: ApiDouble) -> None:
    before = double.writes()
    double.forbidden.add("customresourcedefinitions:write")
    forbidden = playbook.role("spiderpool", ok=False)
    assert 'User \\"tester\\" cannot patch resource \\"customresourcedefinitions\\"' in forbidden.text
    double.forbidden.clear()
    boards = " ".join(playbook.role("spiderpool", ok=False, spiderpool_grafana="true").text.split())
    assert "does not know GrafanaDashboard.grafana.integreatly.org. Install the operator that brings it first" in boards
    alone = " ".join(playbook.role("spiderpool", ok=False, spiderpool_pod_cidrs=["10.244.0.0/16"]).text.split())
    assert "spiderpool_pod_cidrs and spiderpool_service_cidrs belong together" in alone
    double.store.table(double.store.kind_of("apps/v1", "DaemonSet")).clear()
    assert "no network of its own" in playbook.role("spiderpool", ok=False).text
    assert double.writes() == before
    double.url = "https://127.0.0.1:1"
    double.kubeconfig(playbook.kubeconfig)
    assert "does not answer" in playbook.role("spiderpool", ok=False).text
    assert double.writes() == before


def packed(chart: Path, target: Path) -> Path:
    """Pack a chart as a repository serves it."""
    argv = [str(tools.helm()), "package", str(chart), "--destination", str(target)]
    subprocess.run(argv, check=True, capture_output=True, timeout=600)
    return next(target.glob("*.tgz"))


@contextlib.contextmanager
def repository(folder: Path, *versions: str) -> t.Iterator[Json]:
    """Serve charts of these versions; give the variables with which the role takes them from there."""
    (folder / "repository").mkdir()
    for version in versions:
        packed(chart_copy(folder / f"source-{version}", version), folder / "repository")
    argv = [str(tools.helm()), "repo", "index", str(folder / "repository")]
    subprocess.run(argv, check=True, capture_output=True, timeout=600)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder / "repository"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield {
            "spiderpool_chart_file": "",
            "spiderpool_chart_repository": f"http://127.0.0.1:{server.server_address[1]}",
            "spiderpool_chart_cache": str(folder / "cache"),
        }
        server.shutdown()


@pytest.mark.long
@pytest.mark.only_double("needs a cluster without Spiderpool")
def test_a_managed_release_keeps_its_chart_and_a_new_one_gets_the_newest(
    playbook: Playbook, double: ApiDouble, tmp_path: Path
) -> None:
    with repository(tmp_path, "1.2.1", "1.2.3") as served:
        new = playbook.role("spiderpool", "--check", **served)
        assert "to spiderpool-1.2.3 (now not there)" in new.text
        playbook.role("spiderpool", **served, spiderpool_chart_version="1.2.1")
        before = double.writes()
        kept = playbook.role("spiderpool", **served)
        assert "keeps the chart's version 1.2.1; new ones get 1.2.3" in kept.text
        assert (kept.changed_tasks(), double.writes()) == ([], before)
        preview = playbook.role("spiderpool", "--check", **served, spiderpool_chart_version="1.2.3")
        assert "to spiderpool-1.2.3 (now deployed)" in preview.text


def test_a_chart_is_taken_by_its_digest_from_a_file_or_a_repository(playbook: Playbook, tmp_path: Path) -> None:
    # Only the chart: what is installed with it is another test's.
    take: Json = {"name": "railops.rdma.spiderpool", "tasks_from": "chart"}
    with repository(tmp_path, "0.0.7") as served:
        chart = next((tmp_path / "repository").glob("*.tgz"))
        digest = hashlib.sha256(chart.read_bytes()).hexdigest()
        missing = playbook.role("spiderpool", tasks_from="chart", ok=False, spiderpool_chart_file=f"{chart}.none")
        assert "There is no chart" in missing.text
        reported = playbook.run([{"include_role": take, "vars": {"spiderpool_chart_file": str(chart)}}])
        assert f"spiderpool_chart_digest: {digest}" in reported.text
        pulled: Json = {**served, "spiderpool_chart_version": "0.0.7"}
        none = playbook.run([{"include_role": take, "vars": {**pulled, "spiderpool_chart_version": "9.9.9"}}], ok=False)
        assert "There is no chart" in none.text
        assert "9.9.9" in none.text
        wrong = playbook.run(
            [{"include_role": take, "vars": {**pulled, "spiderpool_chart_digest": "0" * 64}}], ok=False
        )
        assert f"has sha256 {digest}, pinned is {'0' * 64}" in " ".join(wrong.text.split())
        right = playbook.run([{"include_role": take, "vars": {**pulled, "spiderpool_chart_digest": digest}}])
        assert right.changed_tasks() == []
    assert digest == hashlib.sha256(next((tmp_path / "cache").glob("*.tgz")).read_bytes()).hexdigest()


@pytest.mark.only_double("the double has no webhook's wait, so that many pools take seconds")
def test_a_long_apply_is_announced_while_it_runs(playbook: Playbook, double: ApiDouble) -> None:
    double.install_crds()
    wanted = [pool("many", rail, node) for rail in range(1, 5) for node in range(1, 61)]
    access = {"kubeconfig": str(playbook.kubeconfig)}
    ran = playbook.run([{"railops.rdma.cluster_objects": {"definitions": wanted, **access}}])
    assert "cluster_objects: 240 objects to write" in ran.text
    assert '"progress_file"' not in ran.text


@pytest.mark.only_double("its writes are counted")
def test_an_older_checkout_is_refused_and_a_lost_plan_comes_from_the_cluster(
    playbook: Playbook, double: ApiDouble, exclusive: None
) -> None:
    double.put("v1", "Namespace", "spiderpool")
    here = ["-i", str(plays.CHECKOUT / "inventory/exclusive")]
    lock = playbook.folder / "plan/fabric/plan.json"
    whole = lock.read_text(encoding="utf-8")
    wanted = f"{{{{ [] | railops.rdma.lock_copy('{lock.parent}', 'fabric', 'spiderpool') }}}}"
    args = {"definitions": ["{{ wanted.object }}"], "kubeconfig": str(playbook.kubeconfig)}
    task = {"railops.rdma.cluster_objects": args, "vars": {"wanted": wanted}}
    assert playbook.run([task]).changed == 1
    assert playbook.run([task]).changed == 0

    shutil.rmtree(lock.parent)
    missing = playbook.shipped("plan", *here, ok=False, fabric_plan_from_cluster=True, fabric_name="other")
    assert "ConfigMap spiderpool/railops-other-lock does not exist" in " ".join(missing.text.split())
    playbook.shipped("plan", *here, fabric_subnet_offset=8)
    before = double.writes()
    refused = " ".join(playbook.shipped("cluster", *here, ok=False).text.split())
    assert "The cluster was brought to a plan with other addresses of 8 node(s). node1: rail1 from" in refused
    assert "ConfigMap spiderpool/railops-fabric-lock: " in refused
    assert "would renumber 8 node(s)" in playbook.shipped("plan", *here, ok=False).text
    playbook.shipped("plan", *here, fabric_plan_from_cluster=True)
    assert lock.read_text(encoding="utf-8") == whole

    shutil.rmtree(lock.parent)
    preview = playbook.shipped("plan", *here, "--check", fabric_plan_from_cluster=True)
    assert preview.changed == 1
    assert not lock.exists()
    playbook.shipped("plan", *here, fabric_plan_from_cluster=True)
    assert lock.read_text(encoding="utf-8") == whole
    assert double.writes() == before
    double.url = "https://127.0.0.1:1"
    double.kubeconfig(playbook.kubeconfig)
    silent = " ".join(playbook.shipped("plan", *here, ok=False, fabric_plan_from_cluster=True).text.split())
    assert "The copy of plan.json cannot be read from the cluster: " in silent
    assert "Set fabric_kubeconfig (or KUBECONFIG) to a cluster that answers" in silent


@pytest.mark.long
@pytest.mark.only_double("needs nodes whose virtual functions come and do not come")
def test_sriov_nodes_are_emptied_and_added_one_at_a_time(
    playbook: Playbook, double: ApiDouble, plans: t.Callable[[str], Path]
) -> None:
    sriov_fleet(playbook, double, plans("sriov-roce"), 2)
    double.install_crds()
    sriov_operator(double)
    pools = yaml.safe_load_all((plans("sriov-roce") / "fabric/cluster/ippools.yaml").read_text(encoding="utf-8"))
    renamed = next(row for row in pools if row and row["metadata"]["name"].endswith("node1"))
    meta = {"labels": renamed["metadata"]["labels"]}
    double.put(renamed["apiVersion"], renamed["kind"], "before", metadata=meta, spec=renamed["spec"])
    # A node that the fabric no longer has loses its functions, and the rollout of another fabric cordoned one.
    double.put("v1", "Node", "removed", metadata={"labels": {"fabric.railops.io/fabric": "declared"}})
    note = {"labels": {}, "annotations": {"railops.io/sriov-drain": "schedulable"}}
    double.put("v1", "Node", "other", metadata=note, spec={"unschedulable": True})
    before = double.writes()
    shown = playbook.run([RAIL_OBJECTS], "--check", "--diff")
    nodes = [name.rpartition(": ")[2] for name in shown.changed_tasks() if "Cordon the node" in name]
    assert nodes == ["node1", "node2", "removed"]
    assert "- SpiderIPPool before" in shown.text
    assert double.writes() == before
    double.requests.clear()
    run = playbook.run([RAIL_OBJECTS])
    order = [path for method, path in double.requests if method == "PATCH" and "/nodes/" in path]
    names = [path.split("/nodes/")[1].split("?")[0] for path in order]
    assert names[:6] == ["node1", "node1", "node1", "node2", "node2", "node2"], "cordon, label, uncordon"
    cordoned = double.objects("Node")
    assert [name for name, node in cordoned.items() if node["spec"].get("unschedulable")] == ["other"]
    assert double.objects("Node")["node2"]["status"]["allocatable"]["spidernet.io/fabric_rail1"] == "8"
    assert "node3" in run.text, "the nodes that are not in the cluster are reported"
    disabled = {"disableDrain": True, "disablePlugins": ["mellanox"]}
    assert double.objects("SriovOperatorConfig")["default"]["spec"] == disabled, "firmware is nic_link_type's"
    assert playbook.run([RAIL_OBJECTS]).changed_tasks() == []

    # An unfinished rollout cordoned node1, another user node2. A storage card has virtual functions.
    cordoned["node1"]["metadata"]["annotations"] = {"railops.io/sriov-drain": "schedulable"}
    for node in cordoned.values():
        node["spec"]["unschedulable"] = True
    card = {"name": "ens20f0np0", "pciAddress": "0000:5a:00.0", "vendor": "15b3", "totalvfs": 16}
    double.objects("SriovNetworkNodeState")["node1"]["status"]["interfaces"] = [card]
    removed = " ".join(playbook.run([from_("rail_objects", "remove")]).text.split())
    nodes = double.objects("Node")
    assert not any("fabric.railops.io/fabric" in node["metadata"]["labels"] for node in nodes.values())
    assert [bool(nodes[name]["spec"].get("unschedulable")) for name in ("node1", "node2")] == [False, True]
    assert "railops.io/sriov-drain" not in (nodes["node1"]["metadata"].get("annotations") or {})
    assert double.objects("SriovOperatorConfig")["default"]["spec"] == disabled
    assert "1 cards, for the next boot: node1: ens20f0np0 (0000:5a:00.0, 16 functions)" in removed
    assert """patch sriovoperatorconfig default --type merge -p '{"spec": {"disablePlugins": []}}'""" in removed
    double.objects("SriovNetworkNodeState")["node1"]["status"]["interfaces"] = []
    playbook.run([from_("rail_objects", "remove")])
    assert double.objects("SriovOperatorConfig")["default"]["spec"] == {"disableDrain": True, "disablePlugins": []}


@pytest.mark.long
@pytest.mark.only_double("needs nodes whose virtual functions come and do not come")
def test_an_sriov_node_that_fails_is_continued_and_those_after_it_are_not_touched(
    playbook: Playbook, double: ApiDouble, plans: t.Callable[[str], Path]
) -> None:
    sriov_fleet(playbook, double, plans("sriov-roce"), 3)
    # Another user works on node3.
    double.objects("Node")["node3"]["spec"]["unschedulable"] = True
    double.install_crds()
    sriov_operator(double)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "job", "uid": "1", "controller": True}
    meta = {"finalizers": ["example.com/busy"], "ownerReferences": [owner]}
    pod: Json = {"metadata": meta, "spec": {"nodeName": "node1", "containers": []}, "status": {"phase": "Running"}}
    double.put("v1", "Pod", "busy", "default", **pod)
    ran = playbook.run([{**RAIL_OBJECTS, "vars": {"rail_objects_drain_timeout": 1}}], ok=False)
    assert "timeout reached while pods were still running" in ran.text
    assert "fabric.railops.io/fabric" not in double.objects("Node")["node1"]["metadata"]["labels"]
    double.store.table(double.store.kind_of("v1", "Pod")).clear()
    double.controllers.sync = "Failed"
    failed = " ".join(playbook.run([RAIL_OBJECTS], ok=False).text.split())
    assert "Node node1 did not get its virtual functions and stays cordoned" in failed
    nodes = double.objects("Node")
    assert nodes["node1"]["spec"]["unschedulable"] is True
    assert not nodes["node2"]["spec"].get("unschedulable")
    assert "fabric.railops.io/fabric" not in nodes["node2"]["metadata"]["labels"]
    assert nodes["node1"]["metadata"]["annotations"]["railops.io/sriov-drain"] == "schedulable"

    double.controllers.sync = "Succeeded"
    kind = double.store.kind_of("sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy")
    for policy in list(double.store.table(kind).values()):
        double.controllers.on_sriovnetworknodepolicy(kind, None, policy)
    double.requests.clear()
    playbook.run([RAIL_OBJECTS])
    order = [path for method, path in double.requests if method == "PATCH" and "/nodes/" in path]
    assert order[0].split("/nodes/")[1].startswith("node1")
    nodes = double.objects("Node")
    assert [bool(nodes[f"node{n}"]["spec"].get("unschedulable")) for n in (1, 2, 3)] == [False, False, True]
    assert not any("railops.io/sriov-drain" in (node["metadata"].get("annotations") or {}) for node in nodes.values())

    path = playbook.folder / "plan/fabric/cluster/sriovpolicies.yaml"
    rows = [row for row in yaml.safe_load_all(path.read_text(encoding="utf-8")) if row]
    double.store.table(kind)[("spiderpool", rows[0]["metadata"]["name"])]["spec"]["mtu"] = 1500
    before = double.writes()
    refused = " ".join(playbook.run([RAIL_OBJECTS], ok=False).text.split())
    assert "SR-IOV policies of nodes in use would change" in refused
    assert "disableDrain" in refused
    assert double.writes() == before


@pytest.mark.long
@pytest.mark.only_double("policies of a fabric are put there manually")
def test_sriov_policies_do_not_go_from_under_pods_unasked(
    playbook: Playbook, double: ApiDouble, plans: t.Callable[[str], Path]
) -> None:
    sriov_fleet(playbook, double, plans("sriov-roce"), 8)
    double.install_crds()
    double.put("v1", "Namespace", "spiderpool")
    double.controllers.sriov_operator("spiderpool")
    stray = yaml.safe_load((plans("sriov-roce") / "fabric/cluster/sriovpolicies.yaml").read_text().split("---")[1])
    meta = {**stray["metadata"], "name": "stray"}
    meta.pop("namespace")
    spec = {**stray["spec"], "nicSelector": {"pfNames": ["ens9np0"]}, "resourceName": "stray"}
    double.put(stray["apiVersion"], stray["kind"], "stray", "spiderpool", metadata=meta, spec=spec)

    def refused(*words: str, **values: t.Any) -> None:
        text = " ".join(playbook.run([{**RAIL_OBJECTS, "vars": values}], ok=False).text.split())
        assert [word for word in words if word not in text] == []
        assert "stray" in double.objects("SriovNetworkNodePolicy")
        assert not any(node["spec"].get("unschedulable") for node in double.objects("Node").values())

    refused("would change (stray)", "SriovOperatorConfig default does not exist", "set rail_objects_undrained")
    assert not double.objects("SpiderIPPool"), "nothing was changed before"
    double.forbidden.add("sriovnetworknodepolicies:write")
    refused('cannot patch resource "sriovnetworknodepolicies"', rail_objects_undrained=True)
    double.forbidden.clear()
    shutil.rmtree(playbook.folder / "plan")
    use(playbook, plans("exclusive"), "exclusive")
    playbook.values.update({"rail_objects_nodes_required": False, "rail_objects_wait_seconds": 1})
    refused("The plan has no SR-IOV policy any more", "(delete stray)", "set rail_objects_drop_sriov to true")
    playbook.run([{**RAIL_OBJECTS, "vars": {"rail_objects_drop_sriov": True}}])
    assert "stray" not in double.objects("SriovNetworkNodePolicy")


@pytest.mark.long
@pytest.mark.only_double("its image is none that a cluster could run")
def test_the_test_application(playbook: Playbook, double: ApiDouble, live: Live, exclusive: None) -> None:
    double.install_crds()
    try_application(playbook, live)


@pytest.mark.only_double("its image is none that a cluster could run")
def test_the_test_application_is_a_playbook(
    playbook: Playbook, double: ApiDouble, live: Live, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("infiniband-ipoib"), "infiniband-ipoib")
    double.install_crds()
    given = {"rail_objects_test_image": IMAGE, "rail_objects_test_limits": {"nvidia.com/gpu": 8}}
    playbook.shipped("test_application", **given)
    container = live.objects("DaemonSet", "apps/v1")["fabric-test"]["spec"]["template"]["spec"]["containers"][0]
    # With ipoib neither a config nor injection brings the rails' resources.
    rails = {f"spidernet.io/fabric_rail{rail}": "1" for rail in range(1, 9)}
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "8", **rails}
    assert playbook.shipped("test_application", **given).changed_tasks() == []
    playbook.shipped("test_application", rail_objects_test_state="absent")
    assert "fabric-test" not in live.objects("DaemonSet", "apps/v1")


@pytest.mark.only_double("its image is none that a cluster could run")
def test_the_test_application_is_not_green_without_pods(
    playbook: Playbook, double: ApiDouble, live: Live, exclusive: None
) -> None:
    """Taints, a private registry, GPUs: every planned node has its pod, or is named with the reason."""
    double.install_crds()
    nodes = double.objects("Node")
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    for name, node in nodes.items():
        node["spec"]["taints"] = [taint]
        # What a node's own name and this label are need not be the same.
        node["metadata"]["labels"]["kubernetes.io/hostname"] = f"{name}.example"
    nodes["node8"]["spec"]["unschedulable"] = True
    values: Json = {"rail_objects_test_image": IMAGE, "rail_objects_test_wait_seconds": 5}
    refused = " ".join(playbook.shipped("test_application", ok=False, **values).text.split())
    assert (
        "fabric-test has 0 of 8 pods ready: node1, node2, node3, node4, node5 and 3 more: it has the taint" in refused
    )
    assert "nvidia.com/gpu=present:NoSchedule, which is not tolerated" in refused
    assert "rail_objects_test_tolerations" in refused

    for node in nodes.values():
        double.controllers.advertise(node, {"nvidia.com/gpu": "8"})
    values |= {
        "rail_objects_test_tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists"}],
        "rail_objects_test_image_pull_secrets": ["registry"],
    }
    playbook.shipped("test_application", **values)
    made = live.objects("DaemonSet", "apps/v1")["fabric-test"]
    assert made["status"]["numberReady"] == 8
    spec = made["spec"]["template"]["spec"]
    assert "resources" not in spec["containers"][0]
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    gate = {"key": "fabric.railops.io/rails", "operator": "Exists", "effect": "NoSchedule"}
    assert spec["tolerations"] == [{"key": "nvidia.com/gpu", "operator": "Exists"}, gate]
    double.store.delete(double.store.kind_of("v1", "Node"), "", "node7", {}, {})
    values["rail_objects_test_name"] = "without"
    lost = " ".join(playbook.shipped("test_application", ok=False, **values).text.split())
    assert "without has 7 of 8 pods ready: node7: it is not in the cluster" in lost


@pytest.mark.only_double("pods that hold addresses are simulated")
def test_a_teardown_names_who_holds_addresses_and_takes_the_test_application_along(
    playbook: Playbook, double: ApiDouble, live: Live, exclusive: None
) -> None:
    double.install_crds()
    playbook.values["rail_objects_nodes_required"] = False
    double.put("v1", "Namespace", "spiderpool")
    managed, others = "fabric-rail1-v4-node1", "fabric-rail2-v4-node1"
    playbook.run([RAIL_OBJECTS, from_("rail_objects", "test_application", rail_objects_test_image=IMAGE)])
    allocate(double.store, managed, ["172.17.0.3"], "default/fabric-test-x7k2p")
    allocate(double.store, others, ["172.17.1.3"], "ml/train-0")
    lids = config("fabric", 9)
    meta, spec = {"labels": lids["metadata"]["labels"]}, {**lids["spec"], "disableIPAM": True}
    double.put(lids["apiVersion"], lids["kind"], "ib", "spiderpool", metadata=meta, spec=spec)
    notes = {"k8s.v1.cni.cncf.io/network-status": json.dumps([{"name": "spiderpool/ib", "interface": "net1"}])}
    double.put("v1", "Pod", "train-1", "default", metadata={"annotations": notes})
    # Its removal takes the functions of all nodes, also where pools in use may stay.
    policy = ("sriovnetwork.openshift.io/v1", "SriovNetworkNodePolicy")
    nic = {"pfNames": ["ens9np0"]}
    ports: Json = {"nodeSelector": {"x": "y"}, "nicSelector": nic, "numVfs": 1, "resourceName": "ports"}
    double.put(*policy, "ports", "spiderpool", metadata={"labels": meta["labels"]}, spec=ports)
    refused = playbook.shipped("teardown", "--tags", "cluster", ok=False, teardown_in_use=True)
    double.store.delete(double.store.kind_of(*policy), "spiderpool", "ports", {}, {})
    users = f"{others} (172.17.1.3 by ml/train-0), ib (spiderpool/ib by default/train-1)"
    assert f"Pods use 2 pools or networks: {users}." in " ".join(refused.text.split())
    double.store.delete(double.store.kind_of("v1", "Pod"), "default", "train-1", {}, {})
    assert "fabric-test" in live.objects("DaemonSet", "apps/v1")
    allocate(double.store, others, [])
    assert "address is in use" not in playbook.shipped("teardown", "--tags", "cluster", "--check").text
    allocate(double.store, managed, [])
    last = playbook.shipped("teardown", "--tags", "cluster", teardown_spiderpool=True).text
    assert "fabric-test" not in live.objects("DaemonSet", "apps/v1")
    assert not live.managed("SpiderIPPool")
    for command in ("ip rule del priority 1000", "rm -rf /var/log/multus.log /var/log/spidernet /run/spidernet"):
        assert command in last, "what Spiderpool's programs leave is listed"


def try_application(playbook: Playbook, live: Live) -> None:
    """Run the test application by injection and by explicit networks on a cluster of eight nodes."""
    assert "by its digest" in playbook.run([from_("rail_objects", "test_application")], ok=False).text
    hosts_only = from_("rail_objects", "test_application", fabric_attachment="none")
    assert "no networks for pods" in playbook.run([hosts_only], ok=False).text
    values: Json = {"rail_objects_test_image": IMAGE}
    networks = {
        **values,
        "rail_objects_test_attach": "networks",
        "rail_objects_test_default_network": "kube-system/calico",
        "rail_objects_test_name": "explicit",
        "rail_objects_test_node_selector": {"kubernetes.io/hostname": "node2"},
    }
    play = [from_("rail_objects", "test_application", **values), from_("rail_objects", "test_application", **networks)]
    playbook.run(play)
    sets = live.objects("DaemonSet", "apps/v1")
    injected, explicit = sets["fabric-test"], sets["explicit"]
    template = injected["spec"]["template"]
    assert template["metadata"]["annotations"] == {"cni.spidernet.io/rdma-resource-inject": "rails"}
    assert not template["spec"]["containers"][0].get("resources")
    assert injected["status"]["numberReady"] == 8
    template = explicit["spec"]["template"]
    assert (explicit["status"]["numberReady"], "affinity" in template["spec"]) == (1, False)
    notes = template["metadata"]["annotations"]
    assert notes["k8s.v1.cni.cncf.io/networks"].split(",")[0] == "spiderpool/fabric-rail1"
    assert notes["v1.multus-cni.io/default-network"] == "kube-system/calico"
    container = template["spec"]["containers"][0]
    assert container["resources"] == {"limits": {f"spidernet.io/fabric_rail{rail}": "1" for rail in range(1, 9)}}
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert container["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert template["spec"]["automountServiceAccountToken"] is False
    assert playbook.run(play).changed_tasks() == []
    playbook.run([from_("rail_objects", "remove", rail_objects_test_name="explicit")])
    assert "explicit" not in live.objects("DaemonSet", "apps/v1")
