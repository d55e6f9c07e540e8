# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What carries a host's own network, by what a real kernel said of such hosts."""

from __future__ import annotations

import os

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _management_network
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._management_network import (
    ManagementNetwork,
    connection_ends,
    decide,
    read_management_network,
)
from ansible_collections.railops.rdma.plugins.module_utils._programs import ProgramResult
from ansible_collections.railops.rdma.tests.unit.machines import put
from ansible_collections.railops.rdma.tests.unit.management_network_cases import CASES, plain, recorded


@pytest.fixture(autouse=True)
def no_connection(monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "none")


@pytest.fixture
def read(monkeypatch, tmp_path):
    """Read a host whose `ip` says this; None is one without it."""

    def read_with(answers, errors=""):
        def run_program(argv, *_more):
            assert argv[0] == "ip"
            return (
                ProgramResult(127, "", "")
                if answers is None
                else ProgramResult(int(bool(errors)), answers[argv[1][1:]], errors)
            )

        monkeypatch.setattr(_management_network, "run_program", run_program)
        _management_network.query.cache_clear()
        return read_management_network(Sysfs(str(tmp_path)))

    return read_with


@pytest.mark.parametrize("name", CASES)
def test_the_table(name, read, monkeypatch):
    case = CASES[name]
    monkeypatch.setenv("SSH_CONNECTION", case.ssh or "none")
    found = read(recorded(name))
    assert (found.default, found.connection) == (case.default, case.connection)
    assert bool(found.why("ens1np0")) is case.guarded
    assert found.why("ens2np0") == ""
    assert found.peer == case.ssh.partition(" ")[0]


def test_a_virtual_function_is_stacked_on_its_physical_one(tmp_path, read):
    put(tmp_path, "sys/class/net/ens1v0/device/physfn/net/ens1np0/address")
    put(tmp_path, "sys/class/net/ens1v0/device/physfn/net/ens1np0_0/address")
    put(tmp_path, "sys/class/net/ens1np0_0/phys_port_name", "pf0vf0\n")
    found = read(plain("ens1v0", {"ens1np0": {}}))
    assert found.default == {"ens1v0", "ens1np0"}


def test_an_ipoib_partition_is_stacked_on_its_parent_which_a_rail_may_not_be(read):
    found = read(plain("ib0.8001", {"ib0.8001": {"link": "ib0"}, "ib0": {}}))
    assert found.why("ib0") == "the default route"


def test_interfaces_stacked_in_a_circle_end():
    """Both ends of a veth in one namespace name each other."""
    links = [{"ifname": "a", "link": "b"}, {"ifname": "b", "link": "a"}]
    routes = [{"dst": "default", "dev": "a"}]
    found = decide([[links, [], [{"src": "all", "table": "main"}], routes, []]], None, {})
    assert found.default == {"a", "b"}


def test_lower_devices_can_be_read():
    found = ManagementNetwork(lower={"vlan7": frozenset({"bond0"}), "bond0": frozenset({"a", "b"})})
    assert found.under(["vlan7", "c"]) == {"vlan7", "bond0", "a", "b", "c"}


def test_a_process_runs_ip_once_for_each_family(read, tmp_path, monkeypatch):
    found = read(plain("eno1"))
    monkeypatch.delattr(_management_network, "run_program")
    assert read_management_network(Sysfs(str(tmp_path))) is found


def test_without_ip_nothing_may_be_touched(read):
    with pytest.raises(RdmaError, match="no program `ip`"):
        read(None)


@pytest.mark.parametrize("answers", ["", "busybox: unknown", "[]\n[]\n"])
def test_an_ip_that_does_not_answer_is_no_permission(read, answers):
    with pytest.raises(RdmaError, match="does not show"):
        read({"4": answers, "6": answers}, "unrecognized option")


def test_a_kernel_without_ipv6_has_the_routes_of_ipv4(read):
    answers = {**plain("eno1"), "6": ""}
    found = read(answers, "RTNETLINK answers: Operation not supported")
    assert found.default == {"eno1"}


def test_the_connection_is_found_by_the_ancestors_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("SSH_CONNECTION")
    pid = os.getpid()
    put(tmp_path, f"proc/{pid}/environ", "PATH=/bin\0")
    put(tmp_path, f"proc/{pid}/stat", f"{pid} (python) S 77 1 1\n")
    put(tmp_path, "proc/77/stat", "77 (sudo (x) y) S 78 1 1\n")
    put(tmp_path, "proc/78/environ", "A=b\0SSH_CONNECTION=fe80::9%eno1 50000 fe80::1%eno1 22\0")
    assert connection_ends(Sysfs(str(tmp_path))) == ("fe80::1", "fe80::9")
    put(tmp_path, "proc/78/environ", "SSH_CONNECTION=192.0.2.9\0")
    assert connection_ends(Sysfs(str(tmp_path))) is None
