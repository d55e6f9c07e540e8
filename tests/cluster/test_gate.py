# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Labels and gate on a real API: condition and taint, jobs kept off and let on, with the rights of the docs alone.

How a server merges conditions and refuses old versions is what this is about, so the API double is not asked.
"""

from __future__ import annotations

import json
import os
import re
import time
import typing as t
import uuid
from pathlib import Path

import pytest
import yaml
from conftest import Account, Live, Run
from kubernetes import config as kube_config

from ansible_collections.railops.rdma.plugins.modules import cluster_nodes, kubernetes_gate
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan

REAL = os.environ.get("RAILOPS_TEST_KUBECONFIG")
SIMULATED = REAL and os.environ.get("RAILOPS_TEST_SIMULATED")
pytestmark = pytest.mark.skipif(not SIMULATED, reason="needs a real API with simulated nodes: make test CHECK=api")

Json = dict[str, t.Any]
PAGE = Path(__file__).resolve().parents[2] / "docs/guides/gate.md"
TAINT = "fabric.railops.io/rails"
ZONES = [
    {"name": zone, "group": zone, "supernets": [f"172.{20 + number}.0.0/16"], "leaves": [f"{zone}-l1", f"{zone}-l2"]}
    for number, zone in enumerate(("su1", "su2"))
]
NODES = [{"host": f"node{n}", "groups": ["su1" if n < 5 else "su2"]} for n in range(1, 9)]


def rules() -> list[Json]:
    """Return the rights that the page gives to the gate."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    rows = [row for block in blocks if "ClusterRole" in block for row in yaml.safe_load_all(block)]
    return next(row["rules"] for row in rows if row["kind"] == "ClusterRole")


class Site:
    """A plan, verdicts made one after another, and the gate with its own identity."""

    def __init__(self, folder: Path, module: Run, live: Live, identity: Path) -> None:
        self.folder = folder
        self.module = module
        self.live = live
        self.identity = str(identity)
        self.plan = folder / "plan/gate"
        raw = {"name": "gate", "mode": "exclusive", "zones": ZONES, "max_nodes": 8, "plan_dir": str(folder / "plan")}
        rails = [{"interface": f"ens{number}np0"} for number in (1, 2)]
        self.digest = plan({**raw, "rails": rails}, NODES, check_mode=False)["digest"]
        self.time = 0.0

    def verdict(self, *bad: str, lost: tuple[str, ...] = ()) -> None:
        """Write a newer verdict in which these nodes have a broken rail."""
        found = {"id": "network_mtu", "rail": "rail2", "planned": 1, "observed": 2, "cause": "c", "fix": "f"}
        hosts: Json = {node["host"]: {"status": "pass", "node": node["host"], "checks": []} for node in NODES}
        for name in bad:
            hosts[name] |= {"status": "deviation", "checks": [{**found, "status": "deviation"}]}
        for name in lost:
            hosts[name]["status"] = "unreachable"
        self.time = max(self.time + 0.001, time.time())
        made = {"schema": 1, "plan_digest": self.digest, "hosts": hosts, "time": self.time}
        (self.folder / "verdict.json").write_text(json.dumps(made), encoding="utf-8")

    def gate(self, check: bool = False, **more: t.Any) -> Json:
        """Run the module with the rights of the page."""
        given = {"taint": True, "failure_threshold": 2, "success_threshold": 2, "max_unavailable": "2", **more}
        paths = {"plan_dir": str(self.plan), "verdict": str(self.folder / "verdict.json")}
        done = self.module(kubernetes_gate, check, **{**paths, **given, "kubeconfig": self.identity})
        assert "failed" not in done, done
        return done

    def node(self, name: str) -> Json:
        return t.cast("Json", self.live.of("Node", "v1").get(name=name).to_dict())

    def condition(self, name: str, kind: str = "RailsReady") -> Json | None:
        rows = self.node(name)["status"].get("conditions") or ()
        return next((row for row in rows if row["type"] == kind), None)

    def taints(self, name: str) -> list[str]:
        return [row["key"] for row in self.node(name)["spec"].get("taints") or ()]


@pytest.fixture
def site(tmp_path: Path, module: Run, live: Live, kubeconfig: Path) -> t.Iterator[Site]:
    account = Account(kube_config.new_client_from_config(REAL))
    try:
        made = Site(tmp_path, module, live, account.given(rules(), kubeconfig, tmp_path / "identity"))
        yield made
        made.module(kubernetes_gate, plan_dir=str(made.plan), state="absent")
        made.module(cluster_nodes, plan_dir=str(made.plan), state="absent")
    finally:
        account.removed()


def test_condition_and_taint_follow_the_verdicts(site: Site) -> None:
    ready = site.condition("node2", "Ready")
    site.verdict()
    foreseen = site.gate(check=True)
    assert site.condition("node2") is None
    done = site.gate()
    assert foreseen["diff"]["before"] == done["diff"]["before"]
    assert done["changed"]
    assert len(done["nodes"]["True"]) == len(NODES)
    assert not site.gate()["changed"]

    site.verdict("node2")
    assert site.gate()["out"] == []
    assert not site.gate()["changed"], "one verdict counts once"
    assert site.condition("node2")["status"] == "True"
    site.verdict("node2")
    done = site.gate()
    assert (done["out"], done["nodes"]["False"]) == (["node2"], ["node2"])
    found = site.condition("node2")
    assert (found["status"], found["reason"], found["message"]) == ("False", "RailsBroken", "rail2: network_mtu")
    assert site.taints("node2") == [TAINT]
    assert {**site.condition("node2", "Ready"), "lastHeartbeatTime": 0} == {**ready, "lastHeartbeatTime": 0}

    # More broken nodes than may be out: the cap holds, and says so.
    for _again in range(2):
        site.verdict("node2", "node3", "node4")
        done = site.gate()
    assert (done["out"], done["capped"]) == (["node2", "node3"], ["node4"])
    # A node that is not judged stays as it was, and so does each node without a verdict.
    site.verdict(lost=("node2",))
    assert site.gate()["out"] == ["node2", "node3"]
    (site.folder / "verdict.json").unlink()
    assert not site.gate()["changed"]
    for _again in range(3):
        site.verdict()
        done = site.gate()
    assert (done["out"], done["nodes"]["False"], site.taints("node2")) == ([], [], [])

    assert site.gate(state="absent")["changed"]
    assert site.condition("node2") is None
    assert "fabric.railops.io/gate" not in (site.node("node2")["metadata"].get("annotations") or {})
    assert not site.gate(state="absent")["changed"]


@pytest.mark.usefixtures("controllers")
def test_a_pod_is_kept_off_and_let_on_again(site: Site, live: Live) -> None:
    for _again in range(2):
        site.verdict("node2")
        site.gate()
    name = f"gate-{uuid.uuid4().hex[:8]}"
    field = {"key": "metadata.name", "operator": "In", "values": ["node2"]}
    affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "affinity": {"nodeAffinity": affinity},
            "containers": [{"name": "main", "image": "registry.example/x"}],
        },
    }
    pods = live.of("Pod", "v1")
    pods.create(body=pod, namespace="default")

    def seen() -> Json:
        return t.cast("Json", pods.get(name=name, namespace="default").to_dict())

    try:
        live.until(lambda: any(row["type"] == "PodScheduled" for row in seen()["status"].get("conditions") or ()))
        why = next(row for row in seen()["status"]["conditions"] if row["type"] == "PodScheduled")
        assert why["status"] == "False"
        assert "1 node(s) had untolerated taint(s)" in why["message"]
        for _again in range(2):
            site.verdict()
            site.gate()
        live.until(lambda: seen()["spec"].get("nodeName") == "node2")
    finally:
        pods.delete(name=name, namespace="default")


def test_without_the_rights_it_says_what_is_missing(site: Site, tmp_path: Path, kubeconfig: Path, module: Run) -> None:
    account = Account(kube_config.new_client_from_config(REAL))
    few = [row for row in rules() if row["resources"] != ["nodes/status"]]
    try:
        site.verdict()
        identity = account.given(few, kubeconfig, tmp_path / "few")
        paths = {"plan_dir": str(site.plan), "verdict": str(site.folder / "verdict.json")}
        done = module(kubernetes_gate, **paths, kubeconfig=str(identity))
        assert done["failed"]
        assert "nodes" in done["msg"]
        assert "forbidden" in done["msg"]
    finally:
        account.removed()
