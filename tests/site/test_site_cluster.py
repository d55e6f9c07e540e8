# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The complete path with a cluster: namespace hosts, real helm and chart, and the API double as the cluster.

The tests of this file share one fleet and one cluster and run in their order.
"""

from __future__ import annotations

import json
import tempfile
import typing as t
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

import tools
from admission import Webhooks
from api_controllers import allocate
from api_double import ApiDouble, Fault
from api_pods import Pods
from node_folders import NodeFolders

if t.TYPE_CHECKING:
    from conftest import Fleet

NODES = ["node1", "node2", "node3"]
FLEET_RAILS = 3
CALICO = {"selector": {}, "template": {"spec": {"containers": [{"name": "calico-node", "image": "x"}]}}}
SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"
LABELS = {"app.kubernetes.io/managed-by": "railops.rdma", "railops.io/fabric": "fabric"}
OWN_KINDS = ("SpiderIPPool", "SpiderMultusConfig", "SpiderReservedIP")


class Cluster(ApiDouble):
    """An empty cluster with Calico and one node for each host: no CRDs, no namespace."""

    def __init__(self) -> None:
        hooks = Webhooks()
        super().__init__(nodes=NODES, crds=False, admit=hooks)
        hooks.watch(self.store)
        self._rooms = tempfile.TemporaryDirectory(prefix="railops-nodes-")
        self.folders = NodeFolders(self, Path(self._rooms.name))
        self.put("apps/v1", "DaemonSet", "calico-node", "kube-system", spec=CALICO)

    def managed(self) -> list[str]:
        """Return the names of the fabric's objects."""
        return [
            name
            for kind in OWN_KINDS
            for name, row in self.objects(kind).items()
            if (row["metadata"].get("labels") or {}).items() >= LABELS.items()
        ]

    def node_labels(self) -> list[str]:
        """Return the labels of the collection on nodes."""
        every = [row["metadata"]["labels"] for row in self.objects("Node").values()]
        return [name for labels in every for name in labels if "railops" in name]

    def releases(self) -> list[str]:
        """Return the states of Spiderpool's release."""
        return sorted(
            row["metadata"]["labels"]["status"]
            for row in self.objects("Secret").values()
            if (row["metadata"].get("labels") or {}).get("owner") == "helm"
        )


class Site:
    """Hosts, cluster, and the variables that join them."""

    def __init__(self, fleet: Fleet, double: Cluster) -> None:
        self.fleet = fleet
        self.double = double
        self.kubeconfig = double.kubeconfig(fleet.folder / "kubeconfig")
        chart = tools.chart_copy(fleet.folder / "chart")
        given = {
            "fabric_kubeconfig": str(self.kubeconfig),
            "spiderpool_helm": str(tools.helm()),
            "spiderpool_chart_file": str(chart),
            "spiderpool_timeout": 60,
            "rail_objects_retry_seconds": 3,
            "rail_objects_wait_seconds": 30,
            "verify_pod_parallel": 24,
        }
        hosts = json.loads(fleet.extra.read_text(encoding="utf-8"))
        hosts["all"]["vars"] = given
        fleet.extra.write_text(json.dumps(hosts), encoding="utf-8")

    def checks(self) -> list[dict[str, t.Any]]:
        """Return what the last verdict says of the cluster."""
        return t.cast("list[dict[str, t.Any]]", self.fleet.verdict()["cluster"]["checks"])

    def deviations(self) -> dict[str, str]:
        """Return what deviates in the cluster, and how."""
        return {check["planned"]: check["observed"] for check in self.checks() if check["status"] == "deviation"}

    def passed(self) -> None:
        """Assert that the last run ended green, cluster included."""
        assert self.fleet.verdict()["status"] == "pass"
        assert self.fleet.verdict()["cluster"]["status"] == "pass"


@pytest.fixture(scope="module")
def site(fleet):
    with fleet.inside(Cluster) as double:
        yield Site(fleet, double)


@pytest.fixture(scope="module")
def preview(site):
    """Preview an untouched fleet and cluster."""
    before = site.double.writes()
    run = site.fleet.play("site", "--check", "--diff")
    assert site.double.writes() == before
    return run


@pytest.fixture(scope="module")
def done(site, preview):
    """Bring hosts and cluster to the plan once, with an unmanaged object between managed ones."""
    fleet = site.fleet
    fleet.plan()
    return fleet.play("site")


def test_a_preview_of_an_untouched_cluster(site, preview):
    assert not (site.fleet.folder / "plan").exists()
    assert "helm would install or upgrade spiderpool" in preview.output
    assert "12 to create, 0 to change" in preview.output
    assert "+ SpiderIPPool fabric-rail1-v4-node1" in preview.output
    assert "172.17.0.2/27" in preview.output


def test_site_installs_and_ends_green(site, done):
    site.passed()
    assert site.double.releases() == ["deployed"]
    assert len(site.double.objects("SpiderIPPool")) == 9
    assert len(site.double.objects("SpiderMultusConfig")) == 3
    assert site.double.objects("Node")["node3"]["status"]["allocatable"]["spidernet.io/fabric_rail3"] == "100"


def test_a_second_run_changes_nothing(site, done):
    before = site.double.writes()
    run = site.fleet.play("site")
    site.passed()
    assert run.changed() == []
    assert site.double.writes() == before


@pytest.fixture(scope="module")
def application(site, done):
    """Start the test application on every node."""
    pods = Pods(site.double)
    networks = ",".join(f"spiderpool/fabric-rail{rail}" for rail in range(1, FLEET_RAILS + 1))
    template = {
        "metadata": {"labels": {"app": "fabric-test"}, "annotations": {"k8s.v1.cni.cncf.io/networks": networks}},
        "spec": {"containers": [{"name": "rdma", "image": "registry.example/rdma-tools"}]},
    }
    spec = {"selector": {"matchLabels": {"app": "fabric-test"}}, "template": template}
    site.double.put("apps/v1", "DaemonSet", "fabric-test", "default", metadata={"labels": dict(LABELS)}, spec=spec)
    return pods


def test_a_bad_rail_between_pods_is_red_in_every_report(site, application):
    application.broken[("node1", "node2", "rail3")] = ("Failed status 12: wr_id 0 syndrom 0x81", 1)
    run = site.fleet.play("audit", "-e", "audit_pods=latency", code=2)
    application.broken.clear()
    assert site.fleet.deviations() == [("node1", "rail3", "pod_read_lat")]
    verdict = site.fleet.verdict()
    # One failed pair does not show which end is at fault.
    assert [verdict["hosts"][node]["rails"]["rail3"] for node in ("node1", "node2", "node3")] == [
        "affected",
        "ok",
        "ok",
    ]
    assert verdict["cluster"]["status"] == "pass"
    (found,) = [row for row in verdict["hosts"]["node1"]["checks"] if row["status"] == "deviation"]
    folder = site.fleet.folder / "verify/fabric"
    expected = {"verdict.md": "nothing from node2", "report.html": "nothing from node2"}
    expected["verdict.txt"] = "between node1 and node2 rail3: tests between pods fail."
    for name, words in expected.items():
        text = (folder / name).read_text(encoding="utf-8")
        assert "pod" in text
        assert words in " ".join(text.split()), name
    assert expected["verdict.txt"] in " ".join(run.output.split())
    assert found["fix"]
    assert site.double.objects("Job").keys() <= {"spiderpool-init"}


FOREIGN = "storage-v4"


@pytest.fixture(scope="module")
def broken(site, application):
    """Edit a pool, remove another, leave a stray with our labels and an unmanaged one, and remove a resource."""
    double = site.double
    edited = double.objects("SpiderIPPool")["fabric-rail1-v4-node1"]
    edited["spec"]["ips"] = ["172.17.0.3-172.17.0.9"]
    pools = double.store.kind_of(SPIDERPOOL, "SpiderIPPool")
    with double.store.lock:
        gone = double.objects("SpiderIPPool")["fabric-rail3-v4-node2"]
        double.store.drop(pools, "", "fabric-rail3-v4-node2", gone)
    spec = {"ipVersion": 4, "subnet": "203.0.113.0/28", "ips": ["203.0.113.2-203.0.113.6"]}
    double.put(SPIDERPOOL, "SpiderIPPool", "fabric-rail4-v4-node1", metadata={"labels": dict(LABELS)}, spec=spec)
    spec = {"ipVersion": 4, "subnet": "198.51.100.0/28", "ips": ["198.51.100.2-198.51.100.6"]}
    double.put(SPIDERPOOL, "SpiderIPPool", FOREIGN, spec=spec)
    double.controllers.advertise(double.objects("Node")["node2"], {"spidernet.io/fabric_rail2": "0"})
    return site


def test_audit_names_what_was_changed_in_the_cluster(broken):
    (broken.command,) = broken.fleet.play("audit", code=2).commands()
    assert broken.command.endswith(" railops.rdma.cluster")
    found = broken.deviations()
    assert set(found) == {
        "SpiderIPPool fabric-rail1-v4-node1",
        "SpiderIPPool fabric-rail3-v4-node2",
        "no SpiderIPPool fabric-rail4-v4-node1",
    }
    assert "spec.ips" in found["SpiderIPPool fabric-rail1-v4-node1"]
    assert found["SpiderIPPool fabric-rail3-v4-node2"] == "not there"
    assert all(check["cause"] and check["fix"] for check in broken.checks())
    assert broken.fleet.deviations() == [("node2", "rail2", "node_resources")]
    checks = broken.fleet.verdict()["hosts"]["node2"]["checks"]
    (short,) = [row for row in checks if row["status"] == "deviation"]
    assert "offers too little of ens2np0" in short["cause"]
    double = broken.double
    double.controllers.advertise(double.objects("Node")["node2"], {"spidernet.io/fabric_rail2": "100"})


@pytest.mark.long
def test_the_api_lost_halfway_is_an_error_that_says_so(broken):
    """One object is written, then nothing answers any more: neither to the objects nor to the verification."""
    double = broken.double
    # A dry run comes before the first write.
    write = "spiderippools/[^?]*[?](?!.*dryRun)"
    double.faults = [Fault(drop=True, method="PATCH|DELETE", path=write, skip=1)]
    run = broken.fleet.play("site", code=2)
    double.faults = []
    assert "the run resumes here" in run.output
    assert broken.fleet.verdict()["status"] == "incomplete"


def test_the_printed_command_repairs_the_cluster_and_no_other_object(broken):
    broken.fleet.paste(broken.command)
    broken.fleet.play("verify")
    broken.passed()
    pools = broken.double.objects("SpiderIPPool")
    assert set(pools) - set(broken.double.managed()) == {FOREIGN}
    assert len(pools) == 10
    assert pools["fabric-rail1-v4-node1"]["spec"]["ips"] == ["172.17.0.3-172.17.0.30"]
    reported = json.loads((broken.fleet.folder / "verify/fabric/hosts/node1.json").read_text(encoding="utf-8"))
    # What the cluster says of a node is counted in the verdict; the host's own file is its own.
    counts = broken.fleet.verdict()["hosts"]["node1"]["counts"]
    assert counts["ok"] >= len([row for row in reported["checks"] if row["status"] == "ok"]) + 4 * FLEET_RAILS


@pytest.mark.long
def test_no_api_is_an_error(site, done, tmp_path):
    broken = tmp_path / "kubeconfig"
    text = Path(site.kubeconfig).read_text(encoding="utf-8")
    broken.write_text(text.replace(site.double.url, "https://127.0.0.1:9"), encoding="utf-8")
    site.fleet.play("audit", "-e", f"fabric_kubeconfig={broken}", code=2)
    assert site.fleet.verdict()["status"] == "error"
    assert site.fleet.verdict()["cluster"]["error"]


@pytest.fixture(scope="module")
def in_use(broken):
    """A pod holds an address of one pool."""
    allocate(broken.double.store, "fabric-rail2-v4-node2", ["172.17.1.35"])
    return broken


def test_teardown_refuses_while_pods_hold_addresses(in_use):
    before, managed = in_use.double.writes(), in_use.double.managed()
    run = in_use.fleet.play("teardown", code=2)
    assert "fabric-rail2-v4-node2" in run.output
    assert "Nothing was changed" in run.output
    assert (in_use.double.writes(), in_use.double.managed()) == (before, managed)
    assert "lookup 1001" in in_use.fleet.ip("node1", "rule"), "the hosts come after the cluster, and were not reached"


def test_teardown_on_request_leaves_only_the_pools_in_use(in_use):
    in_use.fleet.play("teardown", "-e", "teardown_in_use=true")
    double = in_use.double
    assert double.managed() == ["fabric-rail2-v4-node2"]
    assert FOREIGN in double.objects("SpiderIPPool")
    assert double.node_labels() == []
    assert double.releases() == ["deployed"]
    assert "lookup 1001" not in in_use.fleet.ip("node1", "rule")


@pytest.mark.long
def test_spiderpool_goes_when_no_pool_is_left(in_use):
    """Its own hook would take the pools of others along."""
    double = in_use.double
    allocate(double.store, "fabric-rail2-v4-node2", [])
    words = ("teardown", "--tags", "cluster", "-e", "teardown_spiderpool=true")
    dry = in_use.fleet.play(*words, "--check", code=2)
    assert f"there are still 1: {FOREIGN}." in dry.output
    run = in_use.fleet.play(*words, code=2)
    assert FOREIGN in run.output
    assert double.managed() == []
    assert double.releases() == ["deployed"]
    pools = double.store.kind_of(SPIDERPOOL, "SpiderIPPool")
    with double.store.lock:
        double.store.drop(pools, "", FOREIGN, double.objects("SpiderIPPool")[FOREIGN])
    in_use.fleet.play(*words)
    assert double.releases() == []
    assert set(double.objects("DaemonSet")) == {"calico-node"}
