# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""fabric_attachment none beside a kubeconfig: nodes get their labels, and nothing else is written or compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from api_double import ApiDouble
from conftest import Live, Playbook

WRITTEN = ("ConfigMap", "Secret", "Namespace", "ServiceAccount")
FABRIC = {
    "fabric_mode": "exclusive",
    "fabric_attachment": "none",
    "fabric_supernets": ["172.16.0.0/16"],
    "fabric_node_prefix": 31,
    "fabric_gateway": "last",
    "fabric_max_nodes": 8,
    "fabric_rails": [{"interface": "ens1np0"}, {"interface": "ens2np0"}],
    "fabric_leaves": ["leaf1", "leaf2"],
}


@pytest.fixture
def site(playbook: Playbook, tmp_path: Path) -> list[str]:
    """Return the arguments that name an inventory of hosts only; its plan is made."""
    inventory = tmp_path / "site"
    (inventory / "group_vars/all").mkdir(parents=True)
    (inventory / "hosts").write_text("[gpu_nodes]\nnode1\nnode2\n", encoding="utf-8")
    (inventory / "group_vars/all/fabric.json").write_text(json.dumps(FABRIC), encoding="utf-8")
    arguments = ["-i", str(inventory)]
    playbook.shipped("plan", *arguments)
    return arguments


def leaves(live: Live) -> dict[str, list[str]]:
    return {
        name: [value for key, value in node["metadata"].get("labels", {}).items() if "leaf" in key]
        for name, node in live.objects("Node").items()
    }


@pytest.mark.only_double("it counts what the API was asked for")
def test_nodes_get_their_labels_and_nothing_else(
    playbook: Playbook, double: ApiDouble, live: Live, site: list[str]
) -> None:
    before = {kind: live.objects(kind) for kind in WRITTEN}
    playbook.shipped("cluster", *site, "--tags", "cluster")

    assert leaves(live) == {"node1": ["leaf1", "leaf2"], "node2": ["leaf1", "leaf2"]}
    assert {kind: live.objects(kind) for kind in WRITTEN} == before
    assert live.objects("Lease", "coordination.k8s.io/v1") == {}
    assert playbook.shipped("cluster", *site).changed == 0

    same = playbook.role("verify", *site, tasks_from="api", fabric_attachment="none")
    assert "rescued=0" in same.text
    playbook.shipped("teardown", *site, "--tags", "cluster")
    assert leaves(live) == {"node1": [], "node2": []}


@pytest.mark.only_double("the collection of the API is hidden")
def test_a_cluster_without_its_collection_is_refused_by_name(
    playbook: Playbook, double: ApiDouble, site: list[str], tmp_path: Path
) -> None:
    tree = Path(playbook._environment["ANSIBLE_COLLECTIONS_PATH"])
    (tmp_path / "tree/ansible_collections").mkdir(parents=True)
    (tmp_path / "tree/ansible_collections/railops").symlink_to(tree / "ansible_collections/railops")
    playbook._environment = {
        **playbook._environment,
        "PYTHONPATH": str(tmp_path / "tree"),
        "ANSIBLE_COLLECTIONS_PATH": str(tmp_path / "tree"),
    }
    for name in ("hosts", "cluster", "site"):
        text = " ".join(playbook.shipped(name, *site, "--check", ok=False).text.split())
        assert "The collection kubernetes.core is not installed" in text
        assert "ansible-galaxy collection install 'kubernetes.core:>=6.0.0,<7.0.0'" in text
