# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The module pod_probe against the API double: what pods say of themselves, what is inside, latency and faults.

The double plays the pods (api_pods); what is asserted is what the module asks for and concludes.
"""

from __future__ import annotations

import json
import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml
from api_double import ApiDouble
from api_pods import PRINTED, STATUS, Pods, Server
from conftest import Playbook, Run
from fabric_objects import labels

from ansible_collections.railops.rdma.plugins.module_utils._fabric.numbers import TEST_PORT
from ansible_collections.railops.rdma.plugins.module_utils._pods import run as pods_run
from ansible_collections.railops.rdma.plugins.modules import pod_probe

Json = dict[str, t.Any]

SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"
RAILS = [f"rail{number}" for number in range(1, 9)]
IMAGE = "registry.example/rdma-tools@sha256:" + "0" * 64


class Probe:
    """A cluster with the plan's objects on two nodes, and the module."""

    def __init__(self, double: ApiDouble, plan: Path, module: Run) -> None:
        self.double = double
        self.pods = Pods(double)
        self._plan, self._module = plan, module
        for name in ("multusconfigs.yaml", "ippools.yaml"):
            for row in yaml.safe_load_all((plan / "cluster" / name).read_text(encoding="utf-8")):
                if row:
                    self.put(row)
        for node in ("node1", "node2"):
            self.offer(node)

    def put(self, row: Json) -> None:
        kind = self.double.store.kind_of(row["apiVersion"], row["kind"])
        self.double.store.create(kind, row["metadata"].get("namespace", ""), row, {}, "railops.rdma")

    def start(self, **notes: str) -> None:
        """Start the test application."""
        networks = ",".join(f"spiderpool/fabric-{rail}" for rail in RAILS)
        template = {
            "metadata": {
                "labels": {"app": "fabric-test"},
                "annotations": {"k8s.v1.cni.cncf.io/networks": networks, **notes},
            },
            "spec": {"containers": [{"name": "rdma", "image": IMAGE}]},
        }
        spec = {"selector": {"matchLabels": {"app": "fabric-test"}}, "template": template}
        self.double.put(
            "apps/v1", "DaemonSet", "fabric-test", "default", metadata={"labels": labels("fabric")}, spec=spec
        )

    def result(self, *, check: bool = False, **params: t.Any) -> Json:
        """Run the module and return its result."""
        given = {"plan_dir": str(self._plan), "timeout": 20, "parallel": 16}
        return self._module(pod_probe, check, **{**given, **params})

    def run(self, *, check: bool = False, **params: t.Any) -> list[Json]:
        """Run the module and return its checks."""
        result = self.result(check=check, **params)
        assert not result.get("failed"), result
        assert result["changed"] is False
        return t.cast("list[Json]", result["checks"])

    def pod(self, node: str) -> Json:
        pods = self.double.objects("Pod").values()
        return next(pod for pod in pods if pod["spec"]["nodeName"] == node and pod["metadata"]["labels"].get("app"))

    def add_node(self, name: str) -> None:
        """Add a node of the plan."""
        self.double.add_node(name)
        self.offer(name)

    def offer(self, node: str) -> None:
        """Let a node have the rails' resources."""
        amounts = {f"spidernet.io/fabric_{rail}": "100" for rail in RAILS}
        self.double.controllers.advertise(self.double.objects("Node")[node], amounts)

    def down(self, name: str) -> None:
        """Let the kubelet of a node be silent."""
        self.double.objects("Node")[name]["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    def node(self, name: str, **spec: t.Any) -> None:
        """Change the spec of a node."""
        store = self.double.store
        kind = store.kind_of("v1", "Node")
        with store.lock:
            store.update(kind, "", name, {**store.get(kind, "", name), "spec": spec}, {}, "kubectl")


@pytest.fixture
def idle(double: ApiDouble, plans: t.Callable[[str], Path], module: Run, monkeypatch: pytest.MonkeyPatch) -> Probe:
    """Give the objects of the example with a macvlan on every rail, and no test application."""
    monkeypatch.setattr(pods_run, "POLL_SECONDS", 0.1)
    return Probe(double, plans("exclusive") / "fabric", module)


@pytest.fixture
def probe(idle: Probe) -> Probe:
    """Give the same with the test application on two nodes."""
    idle.start()
    return idle


def printed() -> str:
    return (PRINTED / "read_lat_client.txt").read_text(encoding="utf-8")


def bad(checks: list[Json]) -> list[Json]:
    return [check for check in checks if check["status"] == "deviation"]


def of(checks: list[Json], name: str, status: str = "ok") -> list[Json]:
    return [check for check in checks if check["id"] == name and check["status"] == status]


def test_without_the_application_nothing_is_looked_at_and_said(idle: Probe) -> None:
    (only,) = idle.run()
    assert only["status"] == "skipped"
    assert "does not run" in only["cause"]
    assert idle.pods.tested == []


def test_labels_in_another_namespace_are_not_managed(probe: Probe) -> None:
    (only,) = probe.run(namespace="others")
    assert (only["status"], only["cause"]) == ("skipped", "the test application does not run in the namespace others")


def test_everything_is_looked_at(probe: Probe) -> None:
    checks = probe.run()
    assert bad(checks) == []
    pairs = {(check["node"], check["rail"]) for check in of(checks, "pod_network")}
    every = {(node, rail) for node in ("node1", "node2") for rail in RAILS}
    assert pairs == every
    for name in ("pod_interface", "pod_rule", "pod_read_lat"):
        assert {(check["node"], check["rail"]) for check in of(checks, name)} == every, name
    assert {check["node"] for check in of(checks, "pod_rdma")} == {"node1", "node2"}
    assert {check["observed"] for check in of(checks, "pod_read_lat") if check["node"] == "node1"} == {
        "2.31 us with a pod on node2"
    }
    # Six nodes of the plan are not in this cluster.
    assert len(of(checks, "pod_running", "skipped")) == 6


def test_the_test_application_is_measured_by_what_runs_in_it(idle: Probe) -> None:
    """Nothing is made in the cluster, each test of a pod has its own port, and no rail has two tests at once."""
    probe = idle
    for name in ("node3", "node4"):
        probe.add_node(name)
    probe.start()
    before = probe.double.writes()
    probe.run(schedule="full")
    assert probe.double.writes() == before
    nodes = [f"node{number}" for number in range(1, 5)]
    wanted = {(one, other, rail) for one in nodes for other in nodes if one != other for rail in RAILS}
    assert {row[:3] for row in probe.pods.tested} == wanted
    assert len(probe.pods.tested) == len(wanted)
    assert probe.pods.most_on_a_rail == 1
    assert len({(server, port) for _client, server, _rail, port in probe.pods.tested}) == len(wanted)


def test_a_pair_that_fails_is_named_and_the_others_count(probe: Probe) -> None:
    log = "Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
    probe.pods.broken[("node1", "node2", "rail3")] = (log, 1)
    checks = probe.run()
    (found,) = bad(checks)
    assert (found["id"], found["node"], found["rail"]) == ("pod_read_lat", "node1", "rail3")
    assert found["observed"] == "nothing from node2"
    assert "does not answer" in found["cause"]
    assert "4791" in found["fix"]
    assert len(of(checks, "pod_read_lat")) == 15


def test_a_server_without_an_address(idle: Probe) -> None:
    """The pool of one rail on one node is gone: the pod is there, its rail has no address."""
    probe = idle
    kind = probe.double.store.kind_of(SPIDERPOOL, "SpiderIPPool")
    with probe.double.store.lock:
        probe.double.store.table(kind).pop(("", "fabric-rail2-v4-node2"))
    probe.start()
    found = bad(probe.run(timeout=3))
    lost = [check for check in found if check["id"] == "pod_read_lat"]
    assert {check["rail"] for check in lost} == {"rail2"}
    assert "has no address on rail2" in next(check for check in lost if check["node"] == "node1")["cause"]


def test_pods_in_which_another_run_tests_are_not_measured(probe: Probe) -> None:
    """Its server has the port, and it is no fault of the rail what a client hears from that."""
    probe.pods.broken = {("node1", "node2", "rail1"): ("ethernet_read_keys: Couldn't read remote address\n", 1)}
    (address,) = next(
        row for row in json.loads(probe.pod("node2")["metadata"]["annotations"][STATUS]) if row["interface"] == "net1"
    )["ips"]
    probe.pods.waiting[(address, TEST_PORT)] = Server("node2")
    checks = probe.run()
    assert bad(checks) == []
    lost = {(row["node"], row["rail"]): row["cause"] for row in of(checks, "pod_read_lat", "skipped") if row["rail"]}
    assert lost == {("node1", "rail1"): "another run tests in the same pods"}


TAINT = {"key": "maintenance", "value": "yes", "effect": "NoSchedule"}
GATED = {"key": "fabric.railops.io/rails", "value": "broken", "effect": "NoSchedule"}


def test_a_cordoned_node_is_measured_and_one_that_takes_no_pod_harms_no_node(idle: Probe) -> None:
    idle.add_node("node3")
    idle.add_node("node4")
    idle.node("node2", taints=[TAINT])
    idle.start()
    idle.node("node3", unschedulable=True)
    checks = idle.run(nodes=0)
    assert bad(checks) == []
    (off,) = [row for row in of(checks, "pod_running", "skipped") if row["node"] == "node2"]
    assert "node2 takes no new pods: it has the taint maintenance=yes:NoSchedule" in off["cause"]
    assert off["fix"]
    measured = {(row["node"], row["observed"].rpartition(" ")[2]) for row in of(checks, "pod_read_lat")}
    assert measured == {("node1", "node3"), ("node3", "node4"), ("node4", "node1")}


def test_a_node_that_goes_down_meanwhile_is_only_its_own_fault(idle: Probe) -> None:
    """Its kubelet runs no command any more, and its servers answer no client."""
    probe = idle
    probe.add_node("node3")
    probe.start()

    def down(client: str, server: str, rail: str) -> None:
        if "node2" in (client, server) and rail == "rail3":
            probe.pods.silent.add("node2")
            probe.down("node2")

    probe.pods.began.append(down)
    checks = probe.run(timeout=3)
    (found,) = bad(checks)
    assert (found["id"], found["node"]) == ("pod_running", "node2")
    assert found["cause"] == "the node is down: its kubelet is silent"
    skipped = [row for row in of(checks, "pod_read_lat", "skipped") if row["rail"]]
    assert {row["cause"] for row in skipped} == {"node2 is down"}
    assert {row["node"] for row in skipped} == {"node1", "node2"}
    assert {row["rail"] for row in of(checks, "pod_read_lat") if row["node"] == "node3"} == set(RAILS)


def test_a_pod_in_which_no_command_runs_any_more_is_no_fault_of_the_other_end(probe: Probe) -> None:
    """The node is still Ready: that its kubelet is silent is known later."""
    probe.pods.began.append(lambda client, server, rail: probe.pods.silent.add("node2"))
    checks = probe.run(timeout=3)
    assert bad(checks) == []
    skipped = [row for row in of(checks, "pod_read_lat", "skipped") if row["rail"]]
    assert skipped
    assert all("no command can be run in the pod on node2: " in row["cause"] for row in skipped)
    assert [row["cause"] for row in skipped if "500" not in row["cause"]] == []


def test_a_node_without_a_pod_is_named_with_the_reason(idle: Probe) -> None:
    idle.node("node2", taints=[TAINT])
    idle.start()
    checks = idle.run(depth="status")
    (tainted,) = [row for row in of(checks, "pod_running", "skipped") if row["node"] == "node2"]
    assert "it has the taint maintenance=yes:NoSchedule" in tainted["cause"]
    idle.node("node2")
    found = bad(idle.run(depth="status"))
    assert [(row["id"], row["node"]) for row in found] == [("pod_running", "node2")]
    assert "has made none for this node" in found[0]["cause"]


def test_what_is_not_allowed_is_skipped_and_said(probe: Probe) -> None:
    probe.double.forbidden.add("pods/exec")
    checks = probe.run()
    assert bad(checks) == []
    for name in ("pod_exec", "pod_read_lat"):
        skipped = of(checks, name, "skipped")
        assert {row["node"] for row in skipped} == {"node1", "node2"}
        assert all("pods/exec" in row["cause"] and row["fix"] for row in skipped)


def test_a_pod_that_prints_without_end_is_given_up(probe: Probe) -> None:
    probe.pods.broken[("node1", "node2", "rail1")] = ("a line\n" * 1_250_000 + printed(), 0)
    checks = probe.run()
    assert bad(checks) == []
    (lost,) = [row for row in of(checks, "pod_read_lat", "skipped") if row["rail"]]
    assert (lost["node"], lost["rail"]) == ("node1", "rail1")
    assert "it printed more than 8,388,608 characters" in lost["cause"]


def test_an_image_without_tools_is_skipped_and_said(probe: Probe) -> None:
    probe.pods.no_shell = True
    checks = probe.run(depth="look")
    assert bad(checks) == []
    for name in ("pod_rule", "pod_table", "pod_interface", "pod_rdma", "pod_gid"):
        assert all("executable file not found" in row["cause"] for row in of(checks, name, "skipped"))
        assert {row["node"] for row in of(checks, name, "skipped")} == {"node1", "node2"}


def test_pods_ping_each_other_where_no_rdma_is_requested(probe: Probe) -> None:
    notes = [json.loads(probe.pod(name)["metadata"]["annotations"][STATUS]) for name in ("node1", "node2")]
    source, address = (rows[3]["ips"][0] for rows in notes)
    probe.pods.mute = {address}
    checks = probe.run(depth="ping")
    (lost,) = bad(checks)
    assert (lost["id"], lost["node"], lost["rail"], lost["peers"]) == ("pod_ping", "node1", "rail3", ["node2"])
    assert lost["cause"] == "100% of 3 echo requests got no answer"
    assert len(of(checks, "pod_ping")) == 15
    assert ("node1", "net3", source, address) in probe.pods.pinged
    assert probe.pods.tested == []


def test_a_pod_that_does_not_run_is_reported_with_its_cause(probe: Probe) -> None:
    pod = probe.pod("node2")
    pod["status"] = {"phase": "Pending"}
    involved = {"kind": "Pod", "name": pod["metadata"]["name"], "namespace": "default"}
    message = 'plugin type="spiderpool" failed (add): no available IPPool for net3'
    event = {"involvedObject": involved, "type": "Warning", "reason": "FailedCreatePodSandBox", "message": message}
    probe.double.put("v1", "Event", "e1", "default", **event)
    checks = probe.run()
    (found,) = bad(checks)
    assert (found["id"], found["node"]) == ("pod_running", "node2")
    assert "no available IPPool" in found["cause"]
    assert "test-application.md, Failures" in found["fix"]
    # Latency needs two nodes.
    assert "two nodes" in of(checks, "pod_read_lat", "skipped")[0]["cause"]


def test_check_mode_starts_nothing(probe: Probe) -> None:
    before = probe.double.writes()
    checks = probe.run(check=True)
    assert bad(checks) == []
    assert {row["cause"] for row in of(checks, "pod_read_lat", "skipped")} == {"check mode starts no tests"}
    assert probe.double.writes() == before


@pytest.mark.slow
@pytest.mark.only_double("its pods are simulated")
def test_a_gated_node_recovers_by_itself(
    probe: Probe, playbook: Playbook, exclusive: None, environment: dict[str, str]
) -> None:
    """A broken rail takes node2 out; once it is repaired, verify with the gate takes the taint off."""
    folder = playbook.folder
    digest = json.loads((folder / "plan/fabric/plan.json").read_text(encoding="utf-8"))["digest"]
    values = {**playbook.values, "fabric_kubeconfig": str(playbook.kubeconfig), "verify_fail": False}
    gate = {
        "verify_gate": ["kubernetes"],
        "verify_gate_taint": True,
        "verify_gate_failure_threshold": 1,
        "verify_gate_success_threshold": 1,
    }
    (folder / "group_vars").mkdir()
    (folder / "group_vars/all.yml").write_text(yaml.safe_dump({**values, **gate}), encoding="utf-8")
    (folder / "hosts.ini").write_text("[gpu_nodes]\nnode[1:2] ansible_connection=local\n", encoding="utf-8")
    # As the playbook's last two plays, over results that the hosts have left.
    role = {"name": "railops.rdma.verify"}
    tasks = [{"include_role": {**role, "tasks_from": "cluster"}, "when": "inventory_hostname == 'localhost'"}]
    tasks += [{"import_role": {**role, "tasks_from": "finish"}}]
    play = {"hosts": "gpu_nodes:localhost", "gather_facts": False, "tasks": tasks}
    (folder / "play.yml").write_text(json.dumps([play]), encoding="utf-8")
    (folder / "verify/fabric/hosts").mkdir(parents=True)

    def verified(broken: bool) -> list[str]:
        """Verify once; return the keys of node2's taints."""
        log = "Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
        pairs = [("node1", "node2", "rail3"), ("node2", "node1", "rail3")]
        probe.pods.broken = dict.fromkeys(pairs, (log, 1)) if broken else {}
        for name in ("node1", "node2"):
            status = "deviation" if broken and name == "node2" else "ok"
            row = {"id": "network_link", "rail": "rail3", "planned": "up", "observed": "down", "cause": "c", "fix": "f"}
            result = {"schema": 1, "host": name, "node": name, "plan_digest": digest, "error": None}
            result["checks"] = [{**row, "status": status}]
            (folder / f"verify/fabric/hosts/{name}.json").write_text(json.dumps(result), encoding="utf-8")
        done = subprocess.run(
            ["ansible-playbook", "-i", "hosts.ini", "play.yml"],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        measured = json.loads((folder / "verify/fabric/verdict.json").read_text(encoding="utf-8"))["hosts"]
        assert {name: entry["rails"]["rail3"] for name, entry in measured.items()} == {
            "node1": "affected" if broken else "ok",
            "node2": "deviation" if broken else "ok",
        }
        assert "pod_read_lat" not in {row["id"] for entry in measured.values() for row in entry["checks"]} or broken
        nodes = probe.double.objects("Node")
        assert not nodes["node1"]["spec"].get("taints"), "the fault is node2's"
        return [taint["key"] for taint in nodes["node2"]["spec"].get("taints") or ()]

    assert verified(broken=True) == [GATED["key"]]
    assert verified(broken=False) == []
    conditions = {row["type"]: row["status"] for row in probe.double.objects("Node")["node2"]["status"]["conditions"]}
    assert conditions == {"Ready": "True", "RailsReady": "True"}
