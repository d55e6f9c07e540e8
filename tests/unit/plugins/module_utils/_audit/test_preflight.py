# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host is asked before the first change: only what this run would do there, and only conflicts."""

from __future__ import annotations

import contextlib
import os
import shutil
from types import SimpleNamespace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._audit import groups, preflight
from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles, Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._management_network import ManagementNetwork
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Link, RouteHost, Snapshot
from ansible_collections.railops.rdma.tests.unit import machines

CHECKS = [
    {"id": "a_good", "status": "ok"},
    {"id": "a_bad", "status": "deviation"},
    {"id": "b_bad", "status": "warning"},
]


@pytest.fixture(autouse=True)
def root(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def request_of(**settings):
    params = {"rails": [], "settings": settings}
    return groups.Request(SimpleNamespace(params=params, check_mode=False), params)


def one_check(_request):
    return CHECKS, {"seen": True}


@pytest.mark.parametrize(
    ("settings", "ran"),
    [
        ({}, True),
        ({"preflight": {"roles": ["rail_network"]}}, True),
        ({"preflight": {"roles": ["rdma_host"]}}, False),
        ({"rail_persist": {"state": "absent"}}, False),
        ({"preflight": {"persist": "no"}}, False),
    ],
)
def test_a_look_belongs_to_a_role_of_this_run(settings, ran):
    found = preflight.for_role("rail_network", "rail_persist", one_check)(request_of(**settings))
    assert found == ((CHECKS[1:], {"seen": True}) if ran else ([], {}))


def test_a_module_keeps_only_what_no_run_repairs():
    assert preflight.with_ids(one_check, "b_bad")(request_of()) == (CHECKS[2:], {"seen": True})


def test_a_user_without_root_gets_one_message(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    checks = [check for row in preflight.PREFLIGHT_CHECKS for check in row(request_of())[0]]
    assert [check["id"] for check in checks] == ["host_root"]
    assert "ansible_become: true in group_vars of the fabric's group" in checks[0]["fix"]


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ("sys/module/8021q/refcnt", "0"),
        ("lib/modules/{}/modules.dep", "kernel/net/8021q/8021q.ko: kernel/net/802/mrp.ko\n"),
        ("lib/modules/{}/modules.builtin", "kernel/net/8021q/8021q.ko\n"),
        ("", ""),
    ],
)
def test_a_kernel_without_vlans_is_named_before_anything_is_changed(monkeypatch, tmp_path, place, text):
    if place:
        machines.put(tmp_path, place.format(os.uname().release), text)
    monkeypatch.setattr(preflight, "Sysfs", lambda: Sysfs(str(tmp_path)))
    request = request_of()
    assert preflight.check_kernel(request) == ([], {}), "untagged rails ask for no VLANs"
    request.params["rails"] = [{"name": "rail1", "vlan": 7}, {"name": "rail2", "vlan": 0}]
    checks, _facts = preflight.check_kernel(request)
    assert [check["id"] for check in checks] == ([] if place else ["host_kernel"])
    if checks:
        assert "has no module 8021q, and the plan has a VLAN for rail1." in checks[0]["cause"]


@pytest.mark.parametrize(
    ("programs", "install", "lacks"),
    [
        (["bridge"], "auto", True),
        (["bridge", "macvlan"], "auto", False),
        ([], "auto", False),
        (["bridge"], "True", False),
        (["bridge"], None, False),
        (["bridge", "spiderpool"], "auto", False),
    ],
)
def test_a_node_that_lacks_a_plugin_is_named_before_anything_is_changed(
    monkeypatch, tmp_path, programs, install, lacks
):
    for name in programs:
        machines.put(tmp_path, f"opt/cni/bin/{name}", "")
    monkeypatch.setattr(preflight, "Sysfs", lambda: Sysfs(str(tmp_path)))
    checks, _facts = preflight.check_cni(request_of(cni={"install": install, "needs": ["macvlan"]}))
    assert [check["id"] for check in checks] == (["host_cni"] if lacks else [])
    if checks:
        assert checks[0]["cause"] == "The node lacks CNI plugins that the plan needs, below /opt/cni/bin: macvlan"
        assert "that replaces all standard plugins on all nodes" in checks[0]["fix"]


LISTENERS = """  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:164E 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 00000000:165A 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 100 0 0 10 0
   2: 00000000:1650 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0
   3: 0100007F:1658 0100007F:D000 01 00000000:00000000 00:00000000 00000000     0        0 4714 1 0 100 0 0 10 0
"""
PORTS = {
    "spiderpoolAgent.httpPort": 5710,
    "spiderpoolAgent.debug.gopsPort": "5712",
    "spiderpoolController.httpPort": 5720,
    "spiderpoolController.webhookPort": 5722,
    "spiderpoolController.debug.gopsPort": "no number",
}


def test_listener_on_a_spiderpool_port_is_reported(monkeypatch, tmp_path):
    """Its own processes may, and a connection from such a port is no listener."""
    machines.put(tmp_path, "proc/self/net/tcp", LISTENERS)
    for pid, comm, inode in (("77", "beehive", 4711), ("78", "spiderpool-agen", 4713)):
        machines.put(tmp_path, f"proc/{pid}/comm", f"{comm}\n")
        (tmp_path / f"proc/{pid}/fd").mkdir()
        (tmp_path / f"proc/{pid}/fd/3").symlink_to(f"socket:[{inode}]")
    monkeypatch.setattr(preflight, "HostFiles", lambda: HostFiles(str(tmp_path)))
    checks, _facts = preflight.check_ports(request_of(cni={"ports": PORTS}))
    assert [(check["status"], check["planned"], check["observed"]) for check in checks] == [
        ("deviation", 5710, ["beehive (pid 77)"]),
        ("warning", 5722, ["a process that /proc does not show"]),
    ]
    fix = "Stop that program, or change this Helm value in spiderpool_values: spiderpoolAgent.httpPort."
    assert checks[0]["fix"] == fix
    assert preflight.check_ports(request_of()) == ([], {}), "without a cluster there is no Spiderpool"


PCI = "0000:19:00.0"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Eight GPUs, each with its card; `ip` knows the interfaces that /sys has."""
    machines.lay_out("one-switch-each", tmp_path)
    monkeypatch.setattr(preflight, "Sysfs", lambda: Sysfs(str(tmp_path)))

    def reported(sysfs):
        links = [{"ifname": name} for name in sysfs.names("/sys/class/net")]
        return ManagementNetwork(seen=[[links, [], []]])

    monkeypatch.setattr(preflight, "read_management_network", reported)
    monkeypatch.setattr(preflight, "PathLookup", lambda: FakeKernel(Sysfs(str(tmp_path))))
    return tmp_path


class FakeKernel(contextlib.nullcontext):
    """Knows the links that /sys has, by their names and PCI addresses, and nothing else of the host."""

    def __init__(self, sysfs):
        super().__init__(self)
        self.sysfs = sysfs

    def existing_routes(self, _want):
        return ()

    def read(self, want, kept):
        names = {}
        for rail in want.rails:
            found = [rail.interface] if rail.interface else self.sysfs.pci_interfaces(rail.pci)
            names.update((rail.identifier, name) for name in found if name in self.sysfs.names("/sys/class/net"))
        links = {name: Link(name, 1500, True) for name in names.values()}
        return RouteHost(snapshot=Snapshot(links, *[frozenset()] * 3, {}), names=names, management_network=kept)


def missing(interface, roles, pci=None, **settings):
    rail = {"name": "rail1", "interface": interface, "pci": pci, "mtu": None, "addresses": []}
    params = {"rails": [rail], "network": "roce", "settings": {"preflight": {"roles": roles}, **settings}}
    request = groups.Request(SimpleNamespace(params=params, check_mode=False), params)
    checks, _facts = preflight.check_network(request)
    return ["no interface" in check["cause"] for check in checks if check["status"] != "ok"]


def test_an_interface_counts_as_missing_only_where_nothing_of_the_run_brings_it(machine):
    network = ["rdma_host", "rail_network"]
    assert missing("ens1np0", network) == []
    assert missing("ens99np0", [*network, "rdma_driver", "nic_link_type"]) == [True]
    # By its name: rdma_host gives it.
    assert missing("roce0", network, PCI) == []
    assert missing("roce0", network, PCI, rdma_host={"naming": "none"}) == [True]
    assert missing("roce0", ["rail_network"], PCI) == [True]
    # By its driver: the port has none yet.
    shutil.rmtree(machine / f"sys/bus/pci/devices/{PCI}/net")
    os.unlink(machine / "sys/class/net/ens1np0")
    assert missing("ens1np0", [*network, "rdma_driver"]) == []
    assert missing("ens1np0", network) == [True]
    assert missing("ens1np0", [*network, "rdma_driver"], "0000:1a:00.0") == [True]


def test_a_link_type_brings_an_interface_of_another_name(tmp_path, machine):
    assert missing("ens1np0x", ["rail_network", "nic_link_type"]) == [True]
    for path in (machine / "sys/class/net").glob("*/type"):
        path.write_text("32\n")
    assert missing("ens1np0x", ["rail_network", "nic_link_type"]) == []
    assert missing("ens1np0x", ["rail_network"]) == [True]
