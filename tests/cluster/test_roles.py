# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The roles spiderpool and rail_objects with real ansible-playbook and real helm: install, upgrade, repair, remove."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml
from admission import Webhooks
from api_double import ApiDouble
from api_kinds import REAL_CRDS
from conftest import REAL, Playbook, Seen, stub_chart

Json = dict[str, t.Any]
CHECKOUT = Path(__file__).resolve().parents[2]
CALICO = {"selector": {}, "template": {"spec": {"containers": [{"name": "calico-node", "image": "x"}]}}}
IMAGE = "registry.example/rdma-tools@sha256:" + "0" * 64
SPIDERPOOL = {"include_role": {"name": "railops.rdma.spiderpool"}}
RAIL_OBJECTS = {"include_role": {"name": "railops.rdma.rail_objects"}}


def from_(role: str, tasks: str, **values: t.Any) -> Json:
    return {"include_role": {"name": f"railops.rdma.{role}", "tasks_from": tasks}, "vars": values}


@pytest.fixture(scope="session")
def plans(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> t.Callable[[str], Path]:
    """Give a function that plans an example inventory once."""
    folder = tmp_path_factory.mktemp("plans")

    def plan(inventory: str) -> Path:
        target = folder / inventory
        if not target.exists():
            argv = ["ansible-playbook", "-i", f"inventory/{inventory}", "playbooks/plan.yml"]
            done = subprocess.run(
                [*argv, "-e", f"fabric_plan_dir={target}"],
                cwd=CHECKOUT,
                env=environment,
                capture_output=True,
                text=True,
                timeout=100,
                check=False,
            )
            assert done.returncode == 0, done.stdout
        return target

    return plan


@pytest.fixture
def double(scripted: None) -> t.Iterator[ApiDouble]:
    """Give an empty cluster with Calico and eight nodes: no CRDs, no namespace."""
    hooks = Webhooks()
    with ApiDouble(nodes=[f"node{number}" for number in range(1, 9)], crds=False, admit=hooks) as made:
        hooks.watch(made.store)
        made.put("apps/v1", "DaemonSet", "calico-node", "kube-system", spec=CALICO)
        yield made


def use(playbook: Playbook, plan: Path, inventory: str) -> None:
    """Let a playbook read a copy of a plan and the fabric's variables."""
    shutil.copytree(plan, playbook.folder / "plan", dirs_exist_ok=True)
    text = (CHECKOUT / f"inventory/{inventory}/group_vars/all/fabric.yml").read_text(encoding="utf-8")
    playbook.values.update({**yaml.safe_load(text), "fabric_plan_dir": str(playbook.folder / "plan")})
    # A real cluster has nodes of other names.
    playbook.values.update({"rail_objects_wait_seconds": 0 if REAL else 20, "rail_objects_nodes_required": not REAL})


def releases(seen: Seen) -> list[str]:
    """Return the states of the release's records."""
    records = seen.objects("Secret", namespace="spiderpool", label_selector="owner=helm,name=spiderpool")
    return sorted(row["metadata"]["labels"]["status"] for row in records.values())


def last_part(names: list[str]) -> list[str]:
    return [name.rpartition("| ")[2] for name in names]


def test_life_of_a_cluster(
    playbook: Playbook, seen: Seen, maybe_double: ApiDouble | None, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    written = maybe_double.writes if maybe_double else lambda: 0
    before = written()
    preview = playbook.run([SPIDERPOOL, RAIL_OBJECTS], "--check", "--diff")
    assert written() == before
    assert preview.changed > 3

    playbook.run([SPIDERPOOL, RAIL_OBJECTS])
    assert releases(seen) == ["deployed"]
    assert len(seen.ours("SpiderIPPool")) == 64
    assert len(seen.ours("SpiderMultusConfig")) == 8
    secret = seen.objects("Secret", namespace="spiderpool")["railops-rdma-webhook-tls"]["data"]
    served = "spiderpool-controller-server-certs"
    assert seen.objects("Secret", namespace="spiderpool")[served]["data"] == secret
    if maybe_double:
        offered = seen.objects("Node")["node8"]["status"]["allocatable"]
        assert offered["spidernet.io/fabric_rail8"] == "100"
        calico = seen.objects("DaemonSet", "apps/v1")["calico-node"]["spec"]["template"]["spec"]["containers"][0]
        assert {"name": "IP_AUTODETECTION_METHOD", "value": "kubernetes-internal-ip"} in calico["env"]

    before = written()
    again = playbook.run([SPIDERPOOL, RAIL_OBJECTS])
    assert again.changed_tasks() == []
    assert written() == before
    assert secret["tls.key"] not in again.text

    # Another value, and with the stub a newer chart with a newer CRD.
    plugin = {"rdma": {"rdmaSharedDevicePlugin": {"deviceConfig": {"periodicUpdateInterval": 60}}}}
    values: Json = {"spiderpool_values": plugin}
    expected = ["Install or upgrade", "Restart it where it runs with another"]
    if "RAILOPS_TEST_CHART" not in os.environ:
        chart = stub_chart(playbook.folder / "newer", "0.0.2")
        newer_crd(chart)
        values["spiderpool_chart_file"] = str(chart)
        expected = ["Apply them", expected[0], "Note what was installed", expected[1]]
    changed = playbook.run([{**SPIDERPOOL, "vars": values}])
    assert last_part(changed.changed_tasks()) == expected
    crds = seen.objects("CustomResourceDefinition", "apiextensions.k8s.io/v1")
    if "spiderpool_chart_file" in values:
        assert "newer" in json.dumps(crds["spiderippools.spiderpool.spidernet.io"]["spec"])
    assert seen.objects("Secret", namespace="spiderpool")[served]["data"] == secret

    refused = playbook.run([from_("spiderpool", "uninstall")], ok=False)
    assert "removes all pools" in refused.text
    playbook.run([from_("rail_objects", "remove"), from_("spiderpool", "uninstall")])
    assert releases(seen) == []
    assert seen.ours("SpiderIPPool") == seen.ours("SpiderMultusConfig") == {}
    assert "railops-rdma-webhook-tls" not in seen.objects("Secret", namespace="spiderpool")


def newer_crd(chart: Path) -> None:
    """Give the pools of a chart one more field."""
    for path in (chart / "crds").iterdir():
        rows = [row for row in yaml.safe_load_all(path.read_text(encoding="utf-8")) if row]
        for row in rows:
            if row["spec"]["names"]["kind"] == "SpiderIPPool":
                spec = row["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
                spec.setdefault("properties", {})["newer"] = {"type": "string"}
        path.chmod(0o644)
        path.write_text(yaml.safe_dump_all(rows), encoding="utf-8")


def test_a_failed_release_is_told_and_repaired(playbook: Playbook, double: ApiDouble, seen: Seen) -> None:
    double.controllers.ready = False
    failed = playbook.role("spiderpool", ok=False, spiderpool_timeout=3)
    assert "it is failed" in " ".join(failed.text.split())
    assert releases(seen) == ["failed"]
    double.controllers.resume()
    playbook.role("spiderpool")
    assert releases(seen) == ["deployed", "superseded"]


def test_bad_situations_are_told_before_the_first_write(playbook: Playbook, double: ApiDouble, tmp_path: Path) -> None:
    before = double.writes()
    missing = playbook.role("spiderpool", ok=False, spiderpool_chart_file=str(tmp_path / "none.tgz"))
    assert "There is no chart" in missing.text
    pinned = playbook.role("spiderpool", "--check", ok=False, spiderpool_chart_digest="0" * 64)
    assert "pinned is" in pinned.text
    double.store.table(double.store.kind_of("apps/v1", "DaemonSet")).clear()
    lonely = playbook.role("spiderpool", ok=False)
    assert "no network of its own" in lonely.text
    assert double.writes() == before


def test_sriov_nodes_are_emptied_and_added_one_at_a_time(
    playbook: Playbook, double: ApiDouble, plans: t.Callable[[str], Path]
) -> None:
    use(playbook, plans("sriov-roce"), "sriov-roce")
    playbook.values.update({"rail_objects_nodes_required": False, "rail_objects_wait_seconds": 1})
    for number in range(3, 9):
        double.store.table(double.store.kind_of("v1", "Node")).pop(("", f"node{number}"))
    double.install_crds()
    double.put("v1", "Namespace", "spiderpool")
    double.put(
        "sriovnetwork.openshift.io/v1", "SriovOperatorConfig", "default", "spiderpool", spec={"disableDrain": True}
    )
    double.controllers.sriov_operator("spiderpool")
    run = playbook.run([RAIL_OBJECTS])
    order = [path for method, path in double.requests if method == "PATCH" and "/nodes/" in path]
    names = [path.split("/nodes/")[1].split("?")[0] for path in order]
    assert names[:6] == ["node1", "node1", "node1", "node2", "node2", "node2"], "cordon, label, uncordon"
    assert not any(node["spec"].get("unschedulable") for node in double.objects("Node").values())
    assert double.objects("Node")["node2"]["status"]["allocatable"]["spidernet.io/fabric_rail1"] == "8"
    assert "node3" in run.text, "the nodes that are not in the cluster are told"
    assert playbook.run([RAIL_OBJECTS]).changed_tasks() == []
    playbook.run([from_("rail_objects", "remove")])
    labels = [node["metadata"]["labels"] for node in double.objects("Node").values()]
    assert not any("fabric.railops.io/fabric" in row for row in labels)


def test_the_test_application(playbook: Playbook, double: ApiDouble, plans: t.Callable[[str], Path]) -> None:
    use(playbook, plans("exclusive"), "exclusive")
    double.install_crds()
    unpinned = playbook.run([from_("rail_objects", "test_application")], ok=False)
    assert "by its digest" in unpinned.text
    values: Json = {"rail_objects_test_image": IMAGE}
    networks = {
        **values,
        "rail_objects_test_attach": "networks",
        "rail_objects_test_default_network": "kube-system/calico",
        "rail_objects_test_name": "explicit",
    }
    play = [from_("rail_objects", "test_application", **values), from_("rail_objects", "test_application", **networks)]
    playbook.run(play)
    injected, explicit = double.objects("DaemonSet")["fabric-test"], double.objects("DaemonSet")["explicit"]
    template = injected["spec"]["template"]
    assert template["metadata"]["annotations"] == {"cni.spidernet.io/rdma-resource-inject": "rails"}
    assert "resources" not in template["spec"]["containers"][0]
    assert injected["status"]["numberReady"] == 8
    template = explicit["spec"]["template"]
    notes = template["metadata"]["annotations"]
    assert notes["k8s.v1.cni.cncf.io/networks"].split(",")[0] == "spiderpool/fabric-rail1"
    assert notes["v1.multus-cni.io/default-network"] == "kube-system/calico"
    container = template["spec"]["containers"][0]
    assert container["resources"] == {"limits": {f"spidernet.io/fabric_rail{rail}": "1" for rail in range(1, 9)}}
    assert container["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    assert playbook.run(play).changed_tasks() == []
    playbook.run([from_("rail_objects", "remove", rail_objects_test_name="explicit")])
    assert "explicit" not in double.objects("DaemonSet")


def test_what_the_tests_stand_on() -> None:
    if not REAL_CRDS.is_dir() and "RAILOPS_TEST_CHART" not in os.environ:
        pytest.skip("stub CRDs and the stub chart: upstream's are not beside the checkout")
    named = os.environ.get("RAILOPS_TEST_CHART")
    assert named is None or Path(named).exists(), f"RAILOPS_TEST_CHART names {named}, which is not there"
    assert not REAL_CRDS.is_dir() or list(REAL_CRDS.glob("*spiderippools*")), f"{REAL_CRDS} holds no SpiderIPPool"
