# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins in front of rdma_info, rdma_netns, roce_qos, rdma_driver and gpudirect."""

from __future__ import annotations

from pathlib import Path

import ansible.template
import pytest
import yaml
from ansible.errors import AnsibleActionFail
from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

from ansible_collections.railops.rdma.plugins.action import message, policy_route, rail_audit, rdma_probe, roce_qos
from ansible_collections.railops.rdma.plugins.module_utils._qos.policy import QosPolicy, switch_values
from ansible_collections.railops.rdma.plugins.plugin_utils import _module_action
from ansible_collections.railops.rdma.plugins.plugin_utils._accept import endpoints
from ansible_collections.railops.rdma.tests.unit.actions import action_of

# Before 2.19 every text is a template.
trust = getattr(ansible.template, "trust_as_template", str)
CHECKOUT = Path(__file__).resolve().parents[4]
HOST = {"inventory_hostname": "node1", "groups": {"gpu_nodes": ["node1"], "others": []}}


@pytest.fixture
def plan(monkeypatch):
    rail = {"name": "rail1", "index": 1, "interface": "ens1np0", "pci": None, "mtu": 4200, "table": 1001}
    host_plans = {
        ("plan/fabric", "node1"): {"node": "node1", "network": "roce", "rdma_mode": "exclusive", "rails": [rail]}
    }
    monkeypatch.setattr(_module_action, "read_host_plan", lambda folder, host: host_plans[folder, host])
    return "plan/fabric"


def run(module, args, answer=None, *, check_mode=False, variables=None, templar=None):
    """Run an action plugin; return its result and what it handed to the module."""
    action = action_of(module, args, check_mode=check_mode, templar=templar)
    handed = {}

    def execute(module_name, module_args, task_vars):
        handed.update(name=module_name, args=module_args)
        return dict(answer or {})

    action._execute_module = execute
    return action.run(task_vars={**HOST, **(variables or {})}), handed


@pytest.fixture
def library_sent():
    """Return what comes of a task, what was sent to its host, and the environment of each call of the module."""

    def task(module, answers, check_mode=False, tmpdir="/tmp/remote"):
        action = action_of(module, {}, check_mode=check_mode)
        action._task.environment, action._connection._shell.tmpdir = [{"A": "b"}], tmpdir
        sent, environments = [], []

        def execute(**_module):
            environments.append(list(action._task.environment))
            return answers[len(environments) - 1]

        action._execute_module = execute
        action._transfer_file = lambda *paths: sent.append(paths)
        action._fixup_perms2 = lambda paths: None
        result = action.run(task_vars=dict(HOST))
        assert action._task.environment == [{"A": "b"}]
        return result, sent, environments

    return task


@pytest.fixture
def declared(plan):
    """A plan that says what the switches have."""
    _module_action.read_host_plan(plan, "node1")["lossless"] = {"priority": 0, "dscp": 26, "cnp": 48}
    return plan


def test_switch_values_come_from_the_declaration(declared):
    lies = {"changed": False, "switch": ["DSCP 1 to priority 1"]}
    for args in ({"plan_dir": declared}, {"rails": [], "priority": "0", "dscp": 26, "cnp_dscp": 48}):
        result, _handed = run(roce_qos, args, lies, templar=Templar(loader=DataLoader()))
        assert {"DSCP 26 to priority 0", "DSCP 48 to priority 6"} < {*result["switch"]}
    assert run(roce_qos, {"rails": []}, lies, templar=Templar(loader=DataLoader()))[0]["switch"] == []


def test_what_the_switches_need_is_printed_line_by_line(capsys):
    """As the guide shows it for priority 5 and DSCP 40."""
    (tasks,) = yaml.safe_load((CHECKOUT / "roles/lossless_roce/tasks/main.yml").read_text(encoding="utf-8"))
    args = tasks["block"][-1]["railops.rdma.message"]
    known = {"__lossless_roce_result": {"switch": switch_values(QosPolicy())}}
    templar = Templar(loader=DataLoader(), variables=known)
    args = {name: templar.template(trust(text)) for name, text in args.items()}
    action_of(message, args, templar=templar).run(task_vars=dict(HOST))
    guide = (CHECKOUT / "docs/guides/lossless-roce.md").read_text(encoding="utf-8")
    assert f"```text{capsys.readouterr().out}```" in guide


@pytest.mark.parametrize(("given", "mode"), [(None, "exclusive"), ("", "exclusive"), ("shared", "shared")])
def test_rdma_netns_gets_the_mode_that_the_attachment_needs_unless_one_is_given(plan, given, mode):
    _result, handed = run("rdma_netns", {"plan_dir": plan, "mode": given})
    assert handed["args"] == {"mode": mode}


def test_the_home_folder_is_found_as_the_planner_finds_it(plan, monkeypatch):
    monkeypatch.setenv("HOME", "plan")
    _result, handed = run(roce_qos, {"plan_dir": "~/fabric"})
    assert handed["args"]["network"] == "roce"


def test_without_a_plan_the_arguments_go_through():
    _result, handed = run("rdma_info", {"gids": False})
    assert handed["args"] == {"gids": False}


def test_a_missing_plan_says_what_to_do(tmp_path):
    with pytest.raises(AnsibleActionFail, match=r"railops\.rdma\.plan"):
        run(roce_qos, {"plan_dir": str(tmp_path)})


@pytest.mark.parametrize(
    ("module", "check_mode", "variable"),
    [
        (policy_route, False, "RAILOPS_PYROUTE2_KEEP"),
        (policy_route, True, "RAILOPS_PYROUTE2"),
        (rail_audit, False, "RAILOPS_PYROUTE2"),
        ("rdma_netns", False, "RAILOPS_PYROUTE2"),
    ],
)
def test_a_host_without_the_library_gets_it_and_is_queried_again(library_sent, module, check_mode, variable):
    """No download, no setting; only the module that has a rollback timer keeps it there."""
    answers = [{"failed": True, "fix": "", "library_missing": True}, {"changed": True, "checks": []}]
    result, sent, environments = library_sent(module, answers, check_mode)
    assert result["changed"] is True
    assert sent == [(_module_action.WHEEL, "/tmp/remote/pyroute2.whl")]
    assert environments == [[{"A": "b"}], [{"A": "b"}, {variable: "/tmp/remote/pyroute2.whl"}]]


def test_a_host_that_has_the_library_gets_none(library_sent):
    assert library_sent(policy_route, [{"changed": True, "checks": []}])[1] == []


def test_a_carried_library_that_was_changed_is_not_sent(library_sent, monkeypatch, tmp_path):
    monkeypatch.setattr(_module_action, "WHEEL", str(tmp_path / "pyroute2.whl"))
    for text in (None, "else"):
        if text:
            (tmp_path / "pyroute2.whl").write_text(text)
        with pytest.raises(AnsibleActionFail, match="Install the collection again"):
            library_sent(policy_route, [{"library_missing": True}])


def test_a_host_does_not_make_a_template_of_its_temporary_folder(library_sent):
    with pytest.raises(AnsibleActionFail, match="Give it a plain name"):
        library_sent(policy_route, [{"library_missing": True}], tmpdir="/tmp/{{ lookup('pipe', 'id') }}")


def test_what_the_task_says_wins_and_what_has_no_value_is_not_given(plan):
    """Before core 2.19 a null in a variable is an empty text in an argument."""
    args = {"plan_dir": plan, "confirm": "x", "force": None, "gateways": "", "rails": None, "network": "infiniband"}
    _result, handed = run(policy_route, args)
    assert (handed["args"]["confirm"], handed["args"]["network"]) == ("x", "infiniband")
    assert [rail["name"] for rail in handed["args"]["rails"]] == ["rail1"]
    assert not {"force", "gateways", "plan_dir"} & {*handed["args"]}


@pytest.mark.parametrize(
    ("answer", "rate"),
    [
        ({"tests": [{"port": 18515, "expected_gbits": None}, {"port": 18516, "expected_gbits": 200.0}]}, 200.0),
        ({"tests": [{"port": 18516}]}, None),
        ({"tests": [{"port": 18516, "expected_gbits": "200"}, 3]}, None),
        ({"tests": {"port": 18516}}, None),
        ({"msg": "unreachable"}, None),
        (None, None),
    ],
)
def test_a_client_gets_what_the_server_of_its_test_carries(monkeypatch, answer, rate):
    def plan(_folder, host):
        rail = {
            "name": "rail1",
            "interface": "ens1np0",
            "addresses": [{"family": 4, "address": f"192.0.2.{host[-1]}/24"}],
        }
        return {"node": host, "network": "roce", "rails": [rail]}

    monkeypatch.setattr(rdma_probe, "read_host_plan", plan)
    monkeypatch.setattr(endpoints, "read_host_plan", plan)
    given = {"plan_dir": "plan/fabric", "hosts": ["node1", "node2"], "schedule": "ring", "token": "t", "end": "client"}
    variables = {"hostvars": {"node2": {"served": answer}}}
    _result, handed = run(rdma_probe, {**given, "register": "served"}, variables=variables)
    assert [test["peer_gbits"] for test in handed["args"]["tests"]] == [None, rate]
    assert "register" not in handed["args"]
