# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whom a run would disturb on a host: only where the run would change something, and only those at work there."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _files
from ansible_collections.railops.rdma.plugins.module_utils._audit import disruption, groups
from ansible_collections.railops.rdma.plugins.module_utils._cluster.node_identity import HOST_KEYS
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.tests.unit.machines import put, stand_for_the_host

WHY = "card 0000:1b:00: waits for a reboot"
RAIL = {"interface": "ens1np0", "mtu": 4200}


class Door:
    """A role's module, with the result that it would have."""

    def __init__(self, **result):
        self.SPEC = {}
        self.result = result
        self.calls = 0

    def run(self, _module, _options, *, check_mode):
        assert check_mode is True
        self.calls += 1
        if self.result.get("failed"):
            raise RdmaError("There is no tool.", "Install it.")
        return self.result


@pytest.fixture
def host(tmp_path, monkeypatch):
    stand_for_the_host(monkeypatch, tmp_path)
    put(tmp_path, "/sys/class/net/ens1np0/mtu", "4200\n")
    put(tmp_path, disruption.workload.EMPTIED_MARK, "upgrade\n")
    return tmp_path


def process(root, pid, comm, device=None):
    put(root, f"/proc/{pid}/comm", f"{comm}\n")
    put(root, f"/proc/{pid}/cmdline", f"{comm}\0")
    (root / f"proc/{pid}/fd").mkdir()
    if device:
        (root / f"proc/{pid}/fd/3").symlink_to(device)


@pytest.fixture
def check_work(host, monkeypatch):
    """Return a function that runs the check, with the roles' changes and the settings of the run."""

    def run(role="nic_link_type", result=None, rails=(RAIL,), **answers):
        door = Door(**(result or {}))
        monkeypatch.setattr(disruption, "CHANGES", ((role, "some_module", door),))
        params = {"rails": list(rails), "settings": {"preflight": {"node": "gpu-1", "host": "node1", **answers}}}
        checks, facts = disruption.check_workloads(
            groups.Request(SimpleNamespace(params=params, check_mode=False), params)
        )
        assert facts["node"].keys() == set(HOST_KEYS), "cluster_nodes takes it as it is"
        assert facts["emptied"] == "upgrade"
        return [(check["id"], check["cause"]) for check in checks], door.calls

    return run


def test_an_idle_host_is_not_queried(check_work):
    assert check_work(result={"reboot_reasons": [WHY]}) == ([], 0)


REBOOT = {"reboot_reasons": [WHY]}


@pytest.mark.parametrize(
    ("result", "answers", "ids"),
    [
        pytest.param(REBOOT, {}, ["host_in_use"], id="a-reboot"),
        pytest.param(REBOOT, {"busy": "allow"}, [], id="allowed"),
        pytest.param(REBOOT, {"reboot": False}, [], id="the-reboot-is-not-allowed"),
        pytest.param(REBOOT, {"drain_command": ["scontrol"]}, [], id="its-scheduler-will-empty-it"),
        pytest.param(REBOOT, {"roles": ["rail_network"]}, [], id="the-role-does-not-run"),
        pytest.param({}, {}, [], id="nothing-would-change"),
        pytest.param({"failed": True}, {}, [], id="the-role-itself-will-say-it"),
        pytest.param(
            {"replaced": {"rdma-core": "2"}}, {"drain_command": ["x"]}, ["host_in_use"], id="a-driver-at-once"
        ),
        pytest.param({}, {"rails": [{**RAIL, "mtu": 9000}]}, ["host_in_use"], id="an-mtu"),
        pytest.param({}, {"rails": [{**RAIL, "interface": "ens9np0"}]}, [], id="a-port-that-is-not-there"),
    ],
)
def test_work_is_named_where_the_run_would_disturb_it(check_work, host, result, answers, ids):
    process(host, 33, "python3", "/dev/nvidia0")
    found, _calls = check_work(result=result, **answers)
    assert [name for name, _cause in found] == ids
    assert all("python3 (pid 33) holds /dev/nvidia0" in cause for _name, cause in found)


@pytest.mark.parametrize(
    ("rail", "disturbed"),
    [
        pytest.param({"interface": "rail-a", "mtu": 9000}, True, id="an-alternative-name"),
        pytest.param({"interface": "rail-a", "mtu": 4200}, False, id="an-alternative-name-and-the-same-mtu"),
        pytest.param({"interface": "old0", "pci": "0000:1b:00.0", "mtu": 9000}, True, id="another-name-at-its-pci"),
        pytest.param({"pci": "0000:1b:00.0", "mtu": 9000}, True, id="a-pci-address"),
        pytest.param({"interface": None, "pci": "0000:1b:00.0", "mtu": None}, False, id="no-mtu"),
    ],
)
def test_the_mtu_is_that_of_the_interface_that_the_rail_has(check_work, host, monkeypatch, rail, disturbed):
    """sysfs has only kernel names."""
    monkeypatch.setattr(_files.socket, "if_nametoindex", lambda name: {"rail-a": 7}.get(name) or missing())
    monkeypatch.setattr(_files.socket, "if_indextoname", {7: "ens1np0"}.get)
    put(host, "/sys/bus/pci/devices/0000:1b:00.0/net/ens1np0/mtu", "4200\n")
    process(host, 33, "python3", "/dev/nvidia0")
    found, _calls = check_work(rails=[rail])
    assert ["the MTU of ens1np0 changes from 4200 to 9000" in cause for _name, cause in found] == [True] * disturbed


def missing():
    raise OSError("no interface with this name")


@pytest.mark.parametrize(
    ("result", "answers", "ids"),
    [
        pytest.param(REBOOT, {"cluster": {"there": False}}, ["node_drain"], id="no-cluster"),
        pytest.param(REBOOT, {"cluster": {"there": True}}, [], id="a-cluster"),
        pytest.param(REBOOT, {"drain": False}, [], id="it-is-meant"),
        pytest.param(REBOOT, {"reboot": "no"}, [], id="the-reboot-is-not-allowed"),
        pytest.param({}, {}, [], id="nothing-would-change"),
    ],
)
def test_a_kubelet_whose_host_would_be_rebooted_undrained(check_work, host, result, answers, ids):
    process(host, 50, "k3s-agent")
    found, _calls = check_work(result=result, **answers)
    assert [name for name, _cause in found] == ids
    assert all("k3s-agent" in cause and WHY in cause for _name, cause in found)


@pytest.mark.parametrize(
    ("result", "due"),
    [
        ({}, False),
        ({"changed": True}, True),
        ({"reboot_required": True}, True),
        ({"warnings": ["The real run would stop here."]}, True),
        ({"checks": [{"status": "deviation"}]}, True),
        ({"checks": [{"status": "warning"}]}, False),
        ({"failed": True}, True),
    ],
)
def test_a_role_with_something_to_do_or_to_say_is_drift(host, monkeypatch, result, due):
    monkeypatch.setattr(disruption, "CHANGES", (("nic_link_type", "some_module", Door(**result)),))
    monkeypatch.setattr(disruption, "NETWORK", ())
    monkeypatch.setattr(disruption.rollback, "pending", lambda: None)
    params = {"rails": [RAIL], "settings": {"preflight": {"roles": ["nic_link_type"]}}}
    request = groups.Request(SimpleNamespace(params=params), params)
    assert disruption.check_drift(request) == ([], {"drift": ["nic_link_type"] if due else []})
    monkeypatch.setattr(disruption.rollback, "pending", lambda: "a timer")
    assert "rail_network" in disruption.check_drift(request)[1]["drift"]
