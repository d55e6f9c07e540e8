# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The cluster's part of site, audit and teardown against the API double that stands in for a cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(CHECKOUT / "tests/cluster"))

from admission import Webhooks
from api_double import ApiDouble

NODES = ["node1", "node2", "node3"]
# Hosts that nobody contacts: only the cluster is looked at here.
HOSTS = {
    "ansible_connection": "local",
    "verify_roles": [],
    "verify_devices": False,
    "verify_traffic": "none",
}


class Cluster:
    """A double, an inventory and a working folder."""

    def __init__(self, folder: Path, double: ApiDouble) -> None:
        self.folder = folder
        self.double = double
        self.kubeconfig = double.kubeconfig(folder / "kubeconfig")
        hosts = dict.fromkeys(NODES)
        (folder / "hosts.yml").write_text(
            json.dumps({"all": {"children": {"gpu_nodes": {"hosts": hosts, "vars": HOSTS}}}}), encoding="utf-8"
        )

    def play(self, playbook: str, *words: str) -> tuple[int, str]:
        """Run a playbook of the collection."""
        where = ["-i", str(CHECKOUT / "inventory/demo"), "-i", str(self.folder / "hosts.yml")]
        given = ["-e", f"fabric_kubeconfig={self.kubeconfig}", "-e", json.dumps({"site_host_roles": []})]
        done = subprocess.run(
            [
                "ansible-playbook",
                *where,
                playbook if ".yml" in playbook else f"railops.rdma.{playbook}",
                *given,
                *words,
            ],
            cwd=self.folder,
            env={**os.environ, "ANSIBLE_NOCOLOR": "true", "ANSIBLE_LOCALHOST_WARNING": "false"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    def verdict(self) -> dict[str, t.Any]:
        """Return the cluster's part of the verdict."""
        path = self.folder / "verify/fabric/verdict.json"
        return t.cast("dict[str, t.Any]", json.loads(path.read_text(encoding="utf-8"))["cluster"])

    def apply(self) -> None:
        """Apply the plan's objects without Spiderpool's installation, which tests/cluster covers."""
        book = self.folder / "apply.yml"
        task = {
            "railops.rdma.cluster_objects": {
                "src": [str(self.folder / "plan/fabric/cluster")],
                "kubeconfig": str(self.kubeconfig),
            },
        }
        book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": [task]}]), encoding="utf-8")
        code, output = self.play(str(book))
        assert code == 0, output


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cluster")
    hooks = Webhooks()
    with ApiDouble(nodes=NODES, admit=hooks) as double:
        hooks.watch(double.store)
        double.put("v1", "Namespace", "spiderpool")
        made = Cluster(folder, double)
        code, output = made.play("plan")
        assert code == 0, output
        yield made


def test_an_empty_cluster_is_named_object_by_object(cluster):
    code, output = cluster.play("audit")
    assert code == 2, output
    missing = [check for check in cluster.verdict()["checks"] if check["id"] == "object"]
    assert len(missing) == 24 + 8
    assert all(check["observed"] == "not there" for check in missing)


def test_what_somebody_changed_is_named(cluster):
    cluster.apply()
    pool = cluster.double.objects("SpiderIPPool")["fabric-rail1-v4-node1"]
    pool["spec"]["ips"] = ["172.17.0.3-172.17.0.9"]
    code, output = cluster.play("audit")
    assert code == 2, output
    found = [check for check in cluster.verdict()["checks"] if check["id"] == "object"]
    assert [check["planned"] for check in found] == ["SpiderIPPool fabric-rail1-v4-node1"]
    assert "spec.ips" in found[0]["observed"]
    # Nodes of the double offer no resources: the cause is said for each.
    nodes = [check for check in cluster.verdict()["checks"] if check["id"] == "node_resources"]
    assert nodes
    assert all(check["cause"] and check["fix"] for check in nodes)


def test_no_api_is_an_error(cluster, tmp_path):
    broken = tmp_path / "kubeconfig"
    text = Path(cluster.kubeconfig).read_text(encoding="utf-8")
    broken.write_text(text.replace(cluster.double.url, "https://127.0.0.1:9"), encoding="utf-8")
    code, output = cluster.play("audit", "-e", f"fabric_kubeconfig={broken}")
    assert code == 2, output
    assert cluster.verdict()["status"] == "error"
    assert cluster.verdict()["error"]
