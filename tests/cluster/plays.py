# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the tests of the roles run: the collection's roles as plays, over plans of the example inventories."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import typing as t
from pathlib import Path

import pytest
import yaml
from admission import Webhooks
from api_double import ApiDouble
from node_folders import NodeFolders

if t.TYPE_CHECKING:
    from conftest import Live, Playbook

Json = dict[str, t.Any]
CHECKOUT = Path(__file__).resolve().parents[2]
CALICO = {"selector": {}, "template": {"spec": {"containers": [{"name": "calico-node", "image": "x"}]}}}
SPIDERPOOL = {"include_role": {"name": "railops.rdma.spiderpool"}}
RAIL_OBJECTS = {"include_role": {"name": "railops.rdma.rail_objects"}}


def from_(role: str, tasks: str, **values: t.Any) -> Json:
    """Return a task that runs a part of a role."""
    return {"include_role": {"name": f"railops.rdma.{role}", "tasks_from": tasks}, "vars": values}


def planned(inventory: str, target: Path, environment: dict[str, str]) -> Path:
    """Plan an example inventory into a folder, unless that is done."""
    if not target.exists():
        argv = [
            "ansible-playbook",
            "-i",
            f"inventory/{inventory}",
            "playbooks/plan.yml",
            "-e",
            f"fabric_plan_dir={target}",
        ]
        done = subprocess.run(
            argv, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=600, check=False
        )
        assert done.returncode == 0, done.stdout
    return target


@contextlib.contextmanager
def empty_cluster() -> t.Iterator[ApiDouble]:
    """Give an API double with Calico and eight nodes: no CRDs, no namespace."""
    with ApiDouble(nodes=[f"node{number}" for number in range(1, 9)], crds=False, admit=Webhooks()) as made:
        made.folders = NodeFolders(made, Path(tempfile.mkdtemp(prefix="railops-nodes-")))
        made.put("apps/v1", "DaemonSet", "calico-node", "kube-system", spec=CALICO)
        try:
            yield made
        finally:
            made.folders.close()


@pytest.fixture
def empty(scripted: None) -> t.Iterator[ApiDouble]:
    """Give an empty cluster: where a file says `double = empty`, in place of the one with CRDs."""
    with empty_cluster() as made:
        yield made


def use(playbook: Playbook, plan: Path, inventory: str) -> None:
    """Let a playbook read a copy of a plan and the fabric's variables."""
    shutil.copytree(plan, playbook.folder / "plan", dirs_exist_ok=True)
    text = (CHECKOUT / f"inventory/{inventory}/group_vars/all/fabric.yml").read_text(encoding="utf-8")
    playbook.values.update({**yaml.safe_load(text), "fabric_plan_dir": str(playbook.folder / "plan")})
    # A cluster of a user's has other nodes than the plan.
    planned = not os.environ.get("RAILOPS_TEST_KUBECONFIG") or bool(os.environ.get("RAILOPS_TEST_SIMULATED"))
    playbook.values.update({"rail_objects_wait_seconds": 20 if planned else 0, "rail_objects_nodes_required": planned})


def sriov_fleet(playbook: Playbook, double: ApiDouble, plan: Path, count: int) -> None:
    """Let a playbook bring a plan with virtual functions to so many of its nodes; the others have not joined."""
    use(playbook, plan, "sriov-roce")
    playbook.values.update({"rail_objects_nodes_required": False, "rail_objects_wait_seconds": 1})
    for number in range(count + 1, 9):
        double.store.table(double.store.kind_of("v1", "Node")).pop(("", f"node{number}"))


def sriov_operator(double: ApiDouble) -> None:
    """Play an operator that empties no node by itself."""
    drain = {"disableDrain": True}
    double.put("v1", "Namespace", "spiderpool")
    double.put("sriovnetwork.openshift.io/v1", "SriovOperatorConfig", "default", "spiderpool", spec=drain)
    double.controllers.sriov_operator("spiderpool")


def releases(live: Live) -> list[str]:
    """Return the states of the release's records."""
    records = live.objects("Secret", namespace="spiderpool", label_selector="owner=helm,name=spiderpool")
    return sorted(row["metadata"]["labels"]["status"] for row in records.values())


def last_part(names: list[str]) -> list[str]:
    """Return the names of tasks without the part that they are in."""
    return [name.rpartition("| ")[2] for name in names]


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
