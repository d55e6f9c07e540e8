# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Each action under `until` and `retries`: Ansible renders the task's arguments once, before all attempts."""

from __future__ import annotations

import copy
import importlib
import json
import typing as t
from pathlib import Path

import pytest
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.tests.unit.actions import action_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts

FOLDER = Path(__file__).resolve().parents[4] / "plugins/action"
ARGS: dict[str, dict[str, t.Any]] = {
    "acceptance": {"phase": "serve", "plan_dir": "fabric", "verify_dir": "verify"},
    "cluster_nodes": {"nodes": ["node1"], "drain": "begin"},
    "cluster_objects": {"objects": []},
    "fabric_lease": {"state": "held"},
    "ippool_plan": {**exclusive(), "plan_dir": "."},
    "message": {"heading": "Look", "lines": ["here"]},
    "policy_route": {"plan_dir": "fabric", "confirm": "new_connection"},
    "rail_audit": {
        "plan_dir": "fabric",
        "verify_dir": "verify",
        "roles": ["rail_network"],
        "traffic": "ping",
        "variables": {"preflight": {"busy": "rdma_host_busy"}},
        "settings": {"preflight": {"gather": ["virtual"], "node": "node1"}},
    },
    "rail_discover": {"register": "seen", "hosts": ["node1"], "dest": "out"},
    "rail_upgrade_info": {"phase": "end", "folder": "upgrade"},
    "rdma_info": {"plan_dir": "fabric", "gids": False},
    "rdma_probe": {"token": "t", "plan_dir": "fabric", "end": "server", "hosts": ["node1", "node2"]},
    "roce_qos": {"plan_dir": "fabric", "priority": 3},
    "verdict": {"plan_dir": "fabric", "verify_dir": "verify", "hosts": ["node1", "node2"], "fail": False},
    "verify_result": {"plan_dir": "fabric", "verify_dir": "verify", "results": []},
}
"""What a task gives each action; the folders are below the working directory."""
ANSWER: dict[str, t.Any] = {"changed": True, "token": "abc", "checks": [], "ansible_facts": {}}


@pytest.mark.parametrize("name", [path.stem for path in sorted(FOLDER.glob("*.py"))])
def test_a_second_attempt_does_what_the_first_did(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    plan({**exclusive(), "plan_dir": "."}, hosts(2), check_mode=False)
    known = {"inventory_hostname": "node1", "groups": {"gpu_nodes": ["node1", "node2"]}, "rdma_host_busy": "allow"}
    known |= {"hostvars": {"node1": {}, "node2": {}, "localhost": {}}, "lossless_roce_ecn": False}
    module = importlib.import_module(f"ansible_collections.railops.rdma.plugins.action.{name}")
    given = copy.deepcopy(ARGS[name])
    action = action_of(
        module, given, check_mode=name == "rail_discover", templar=Templar(loader=DataLoader(), variables=known)
    )
    calls: list[t.Any] = []

    def execute(_module: str = "", module_args: t.Any = None, **_more: t.Any) -> dict[str, t.Any]:
        calls.append(copy.deepcopy(module_args))
        if module_args and "progress_file" in module_args:
            assert Path(calls[-1].pop("progress_file")).exists()
        return dict(ANSWER)

    action._execute_module = action._gathered = execute
    action._connection.transport = "local"
    action._connection.reset = lambda: calls.append("a new connection")

    def attempt() -> str:
        calls.clear()
        result = action.run(task_vars=dict(known))
        assert action._task.args == ARGS[name]
        return json.dumps([result, calls, capfd.readouterr()], sort_keys=True)

    assert attempt() == attempt()
