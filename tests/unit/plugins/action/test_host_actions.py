# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action plugins in front of rdma_info, rdma_netns, roce_qos, rdma_driver and gpudirect."""

from __future__ import annotations

import pytest
import yaml
from ansible.errors import AnsibleActionFail

from ansible_collections.railops.rdma.plugins.action import (
    gpudirect,
    nic_link_type,
    rail_audit,
    rdma_driver,
    rdma_host,
    rdma_info,
    rdma_netns,
    roce_qos,
)
from ansible_collections.railops.rdma.plugins.plugin_utils import _host_plan_action
from ansible_collections.railops.rdma.tests.unit.actions import action_of

HOST = {"inventory_hostname": "node1", "groups": {"gpu_nodes": ["node1"], "others": []}}


@pytest.fixture
def plan(monkeypatch):
    rail = {"name": "rail1", "index": 1, "interface": "ens1np0", "pci": None, "mtu": 4200, "table": 1001}
    host_plans = {
        ("plan/fabric", "node1"): {"node": "node1", "network": "roce", "rdma_mode": "exclusive", "rails": [rail]}
    }
    monkeypatch.setattr(_host_plan_action, "read_host_plan", lambda folder, host: host_plans[folder, host])
    return "plan/fabric"


def run(module, args, answer=None, *, check_mode=False, variables=None, templar=None):
    """Run an action plugin; return its result and what it handed to the module."""
    action = action_of(module, args, check_mode=check_mode, templar=templar)
    handed = {}

    def execute(module_name, module_args, task_vars):
        handed.update(name=module_name, args=module_args)
        return dict(answer or {})

    action._execute_module = execute
    action._transfer_file = lambda source, remote: handed.update(sent=(source, remote))
    action._fixup_perms2 = lambda paths: None
    action._remove_tmp_path = lambda path: None
    return action.run(task_vars={**HOST, **(variables or {})}), handed


def test_rdma_info_gets_the_rails_of_its_host(plan):
    _result, handed = run(rdma_info, {"plan_dir": plan, "gids": False})
    assert handed["name"] == "railops.rdma.rdma_info"
    rails = [{"name": "rail1", "interface": "ens1np0", "pci": None, "mtu": 4200}]
    assert handed["args"] == {"gids": False, "network": "roce", "rdma_mode": "exclusive", "rails": rails}


@pytest.fixture
def declared(plan):
    """A plan that says what the switches have."""
    _host_plan_action.read_host_plan(plan, "node1")["lossless"] = {"priority": 0, "dscp": 26, "cnp": 48}
    return plan


@pytest.mark.parametrize("given", [{}, {"priority": 0}, {"dscp": "26", "cnp_dscp": None}])
def test_roce_qos_gets_what_the_plan_says_of_the_switches(declared, given):
    _result, handed = run(roce_qos, {"plan_dir": declared, **given})
    assert {key: int(handed["args"][key]) for key in ("priority", "dscp", "cnp_dscp")} == {
        "priority": 0,
        "dscp": 26,
        "cnp_dscp": 48,
    }


def test_roce_qos_refuses_what_is_not_the_plans(declared):
    told = r"dscp is 40 \(node1\), .*plan is 26; .*priority is 3 .*plan is 0\. Nothing was changed"
    with pytest.raises(AnsibleActionFail, match=told):
        run(roce_qos, {"plan_dir": declared, "priority": 3, "dscp": 40})
    # Taking it back needs no declaration.
    run(roce_qos, {"plan_dir": declared, "priority": 3, "state": "absent"})


def test_roce_qos_gets_the_interfaces_of_its_host(plan):
    _result, handed = run(roce_qos, {"plan_dir": plan, "priority": 3})
    rails = [{"name": "rail1", "interface": "ens1np0"}]
    assert handed["args"] == {"priority": 3, "network": "roce", "rails": rails}


@pytest.mark.parametrize("value", [True, False])
def test_a_variable_that_is_gone_is_refused_by_name(plan, value):
    told = r"^nic_mode_reset is gone, .* Take it out of the inventory"
    with pytest.raises(AnsibleActionFail, match=told):
        run(nic_link_type, {"plan_dir": plan, "cards": [], "reset": value})
    with pytest.raises(AnsibleActionFail, match=told):
        run(rail_audit, {"plan_dir": plan, "checks": ["preflight"], "settings": {"nic_link_type": {"reset": value}}})


@pytest.mark.parametrize(("option", "new"), [("netns", "too"), ("netns_mode", "mode"), ("netns_live", "live")])
def test_the_namespace_mode_has_one_door(plan, option, new):
    with pytest.raises(AnsibleActionFail, match=rf"no option {option} any more: .* Call rdma_netns .*{new}, before"):
        run(rdma_host, {"plan_dir": plan, option: False})


@pytest.mark.parametrize(("given", "mode"), [(None, "exclusive"), ("", "exclusive"), ("shared", "shared")])
def test_rdma_netns_gets_the_mode_that_the_attachment_needs_unless_one_is_given(plan, given, mode):
    _result, handed = run(rdma_netns, {"plan_dir": plan, "mode": given})
    assert handed["args"] == {"mode": mode}


def test_the_home_folder_is_found_as_the_planner_finds_it(plan, monkeypatch):
    monkeypatch.setenv("HOME", "plan")
    _result, handed = run(roce_qos, {"plan_dir": "~/fabric"})
    assert handed["args"]["network"] == "roce"


def test_without_a_plan_the_arguments_go_through():
    _result, handed = run(rdma_info, {"lldp": False})
    assert handed["args"] == {"lldp": False}


def test_a_missing_plan_says_what_to_do(tmp_path):
    with pytest.raises(AnsibleActionFail, match=r"railops\.rdma\.plan"):
        run(roce_qos, {"plan_dir": str(tmp_path)})


def test_the_wheel_is_sent_to_the_host(tmp_path):
    wheel = tmp_path / "pyroute2-0.9.4-py3-none-any.whl"
    wheel.touch()
    _result, handed = run(rdma_driver, {"pyroute2_wheel": str(wheel), "source": "inbox"})
    assert handed["sent"] == (str(wheel), f"/tmp/remote/{wheel.name}")
    assert handed["args"] == {"source": "inbox", "pyroute2_wheel": f"/tmp/remote/{wheel.name}"}
    _result, handed = run(rdma_driver, {"source": "inbox"})
    assert "sent" not in handed


@pytest.mark.point("1.11")
def test_a_host_that_needs_a_wheel_gets_the_carried_one(monkeypatch):
    """No download, no setting: the second run has what the first one asked for."""
    answers = iter([{"failed": True, "wheel_wanted": True}, {"changed": True}])
    given = []

    def module(_self, arguments, _task_vars):
        given.append(arguments)
        return next(answers)

    monkeypatch.setattr(rdma_driver.ActionModule, "_module", module)
    result, handed = run(rdma_driver, {"source": "inbox"})
    assert result == {"changed": True}
    assert handed["sent"][1] == f"/tmp/remote/{rdma_driver.WHEEL}"
    assert given == [
        {"source": "inbox", "pyroute2_carried": True},
        {"source": "inbox", "pyroute2_wheel": f"/tmp/remote/{rdma_driver.WHEEL}"},
    ]


def test_a_carried_wheel_that_was_changed_is_not_sent(monkeypatch, tmp_path):
    (tmp_path / rdma_driver.WHEEL).write_bytes(b"else")
    monkeypatch.setattr(rdma_driver, "FOLDER", str(tmp_path))
    monkeypatch.setattr(rdma_driver.ActionModule, "_module", lambda *_args: {"failed": True, "wheel_wanted": True})
    with pytest.raises(AnsibleActionFail, match="Install the collection again"):
        run(rdma_driver, {"source": "inbox"})


def test_a_missing_wheel_says_where_to_get_it(tmp_path):
    with pytest.raises(AnsibleActionFail, match="pip download"):
        run(rdma_driver, {"pyroute2_wheel": str(tmp_path / "none.whl")})


def test_the_helm_values_are_written_once(tmp_path):
    dest = tmp_path / "plan/values.yaml"
    values = {"driver": {"kernelModuleType": "open"}}
    answer = {"changed": False, "changes": [], "gpu_operator_values": values}
    args = {"values_dest": str(dest), "acs": "keep"}
    predicted, handed = run(gpudirect, args, answer, check_mode=True)
    assert predicted["changed"] is True
    assert not dest.exists()
    assert handed["args"] == args
    first, _handed = run(gpudirect, args, answer)
    assert first["changed"] is True
    assert yaml.safe_load(dest.read_text()) == values
    assert run(gpudirect, args, answer)[0]["changed"] is False
    assert run(gpudirect, args, {"failed": True})[0] == {"failed": True}
