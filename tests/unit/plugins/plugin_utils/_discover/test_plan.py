# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import functools
import tempfile

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.info import read_info
from ansible_collections.railops.rdma.plugins.plugin_utils._discover.plan import candidates, discover
from ansible_collections.railops.rdma.plugins.plugin_utils._discover.text import cables, inventory, report
from ansible_collections.railops.rdma.tests.unit import machines


@functools.cache
def recorded(name):
    with tempfile.TemporaryDirectory() as folder:
        machines.lay_out(name, machines.Path(folder))
        return read_info(Sysfs(folder), gids=False)


def info(name="one-switch-each"):
    return copy.deepcopy(recorded(name))


def cable(host, leaves=None):
    """Cable a host's rails to leaf1 to leaf8, except what is said otherwise."""
    host["lldp"] = {
        f"ens{number}np0": {"switch": (leaves or {}).get(number, f"leaf{number}"), "port": "swp1", "is_switch": True}
        for number in range(1, 9)
    }
    return host


def fleet(count=4, **changed):
    hosts = {f"node{number}": cable(info()) for number in range(1, count + 1)}
    return {**hosts, **changed}


def device(host, pci):
    return next(item for item in host["devices"] if item["pci"] == pci)


def kinds(proposal):
    return [(finding.host, finding.rail, finding.kind) for finding in proposal.findings]


def test_a_fleet_that_is_alike():
    proposal = discover(fleet())
    assert (proposal.findings, proposal.network) == ((), "roce")
    assert [(rail.name, rail.interface, rail.gpu) for rail in proposal.rails] == [
        (f"rail{number}", f"ens{number}np0", number - 1) for number in range(1, 9)
    ]
    assert (proposal.rails[0].pci, proposal.rails[0].switches) == ("0000:19:00.0", ("leaf1",))
    assert inventory(proposal, "gpu_nodes")["all"]["vars"]["fabric_rails"][7] == {
        "name": "rail8",
        "interface": "ens8np0",
        "gpu": 7,
    }
    assert "None: all hosts are equal." in report(proposal)


def test_storage_cards_and_virtual_functions_are_no_rails():
    _nics, others = candidates(info())
    assert {nic.interface for nic in others} == {"ens20f0np0", "ens20f1np1"}


def test_infiniband():
    proposal = discover({"node1": info("one-switch-each-ib")})
    assert proposal.network == "infiniband"
    assert [rail.interface for rail in proposal.rails] == [f"ibs{number}" for number in range(1, 9)]


def test_without_gpus_in_sight_all_nics_count_but_the_default_routes():
    host = info("virtual-machine")
    assert [rail.interface for rail in discover({"vm": host}).rails] == ["ens7", "ens8"]
    host["default_interfaces"] = ["ens7"]
    assert [rail.interface for rail in discover({"vm": host}).rails] == ["ens8"]
    host["default_interfaces"].append("ens8")
    assert kinds(discover({"vm": host})) == [("vm", None, "no rail")]


def test_the_rails_follow_the_gpus_and_not_the_names():
    host = info()
    first, second = device(host, "0000:19:00.0"), device(host, "0000:2a:00.0")
    first["ports"][0]["netdev"], second["ports"][0]["netdev"] = "ens2np0", "ens1np0"
    assert [rail.interface for rail in discover({"node1": host}).rails][:3] == ["ens2np0", "ens1np0", "ens3np0"]


def test_a_host_with_other_names():
    host = info()
    device(host, "0000:19:00.0")["ports"][0]["netdev"] = "ens21np0"
    proposal = discover(fleet(node3=host))
    assert proposal.interfaces == {"node3": {"rail1": "ens21np0"}}
    assert inventory(proposal, "gpu_nodes")["gpu_nodes"]["hosts"] == {
        "node3": {"fabric_interfaces": {"rail1": "ens21np0"}}
    }
    assert "| node3 | rail1 | ens21np0 |" in report(proposal)


def test_a_missing_nic():
    host = info()
    host["devices"] = [item for item in host["devices"] if item["pci"] != "0000:3b:00.0"]
    proposal = discover(fleet(node2=host))
    assert kinds(proposal) == [("node2", "rail3", "missing NIC")]
    assert [nic.interface if nic else None for nic in proposal.nics["node2"]][1:4] == ["ens2np0", None, "ens4np0"]
    assert "0000:3b:00.0" in proposal.findings[0].text


def test_a_missing_gpu_is_not_a_missing_nic():
    host = info()
    nic = device(host, "0000:3b:00.0")
    nic["nearest_gpus"] = []
    proposal = discover(fleet(node2=host))
    assert kinds(proposal) == [("node2", "rail3", "missing GPU")]
    assert proposal.nics["node2"][2].interface == "ens3np0"


def test_one_nic_more():
    host = info()
    extra = copy.deepcopy(device(host, "0000:19:00.0"))
    extra.update(name="mlx5_99", pci="0000:19:00.1")
    extra["ports"][0]["netdev"] = "ens1np1"
    host["devices"].append(extra)
    proposal = discover(fleet(node2=host))
    assert kinds(proposal) == [("node2", None, "one NIC more")]
    assert [nic.interface for nic in proposal.nics["node2"]] == [f"ens{number}np0" for number in range(1, 9)]


def test_two_cables_that_were_swapped():
    proposal = discover(fleet(5, node4=cable(info(), {2: "leaf3", 3: "leaf2"})))
    assert kinds(proposal) == [("node4", "rail2", "wrong leaf"), ("node4", "rail3", "wrong leaf")]
    assert proposal.findings[0].text == "ens2np0 is on leaf3 swp1, which serves rail3."
    assert proposal.findings[0].fix == "Move the cable to leaf2."


def test_scalable_units_have_leaves_of_their_own():
    second = {
        f"node{number}": cable(info(), {rail: f"su2-leaf{rail}" for rail in range(1, 9)}) for number in range(5, 9)
    }
    second["node8"]["lldp"]["ens1np0"]["switch"] = "su2-leaf2"
    proposal = discover({**fleet(), **second})
    assert kinds(proposal) == [("node8", "rail1", "wrong leaf")]
    assert "leaf1 or su2-leaf1" in proposal.findings[0].fix


def test_one_switch_for_all_rails_says_nothing():
    hosts = {f"node{n}": cable(info(), dict.fromkeys(range(1, 9), "tor1")) for n in range(1, 5)}
    assert discover(hosts).findings == ()


def test_another_link_layer():
    host = info()
    device(host, "0000:19:00.0")["ports"][0]["link_layer"] = "InfiniBand"
    proposal = discover(fleet(node2=host))
    assert kinds(proposal) == [("node2", "rail1", "other link layer")]
    assert "nic_link_type" in proposal.findings[0].fix


def test_a_port_without_link():
    host = info()
    device(host, "0000:19:00.0")["ports"][0]["state"] = "DOWN"
    assert kinds(discover(fleet(node2=host))) == [("node2", "rail1", "no link")]


def test_a_host_that_did_not_answer():
    proposal = discover(fleet(node10=None, node9=None))
    assert kinds(proposal) == [("node9", None, "no answer"), ("node10", None, "no answer")]


@pytest.mark.parametrize(
    ("names", "expected"),
    [(["storage"], ["storage", "rail2"]), (list("abcdefghij"), ["a", "b"]), (None, ["rail1", "rail2"])],
)
def test_names(names, expected):
    assert [rail.name for rail in discover({"node1": info()}, names).rails][:2] == expected


def test_a_function_that_serves_nvswitches_is_no_rail():
    hosts = fleet()
    for host in hosts.values():
        device(host, "0000:19:00.0")["serves"] = "serves the NVSwitches (VPD SMDL=SW_MNG)"
    proposal = discover(hosts)
    assert [rail.interface for rail in proposal.rails] == [f"ens{number}np0" for number in range(2, 9)]
    assert {finding.kind for finding in proposal.findings} == {"skipped"}
    assert "serves the NVSwitches" in report(proposal)


def test_cables_that_were_seen_can_be_taken_into_the_inventory():
    hosts = fleet(2)
    hosts["node2"]["lldp"]["ens2np0"] = {"switch": "nic", "port": "p0", "is_switch": False}
    del hosts["node2"]["lldp"]["ens8np0"]
    proposal = discover(hosts)
    found = cables(proposal, "gpu_nodes")["gpu_nodes"]["hosts"]
    assert found["node1"]["fabric_cables"]["rail3"] == {"leaf": "leaf3", "port": "swp1"}
    assert sorted(found["node2"]["fabric_cables"]) == ["rail1", *(f"rail{number}" for number in range(3, 8))]
    assert cables(discover({"node1": info()}), "gpu_nodes") is None


def test_a_cable_whose_leaf_is_not_certain_stays_out_of_the_inventory():
    hosts = fleet(2)
    heard = hosts["node2"]["lldp"]
    heard["ens1np0"]["others"] = [{"switch": "dpu-17", "port": "p0hpf", "is_switch": True}]
    heard["ens2np0"] |= {"switch": "node1.dc.example", "port": "ens2np0"}
    heard["ens3np0"] |= {"switch": "docker7", "port": "02:00:00:00:00:07"}
    heard["ens4np0"]["others"] = [{"switch": "leaf4", "port": "02:00:00:00:00:08", "is_switch": True}]
    proposal = discover(hosts)
    found = cables(proposal, "gpu_nodes")["gpu_nodes"]["hosts"]["node2"]["fabric_cables"]
    assert sorted(found) == [f"rail{number}" for number in range(4, 9)]
    (finding,) = (item for item in proposal.findings if item.kind == "cable left out")
    assert finding.text == "The other end of ens1np0 is one of several switches: 'dpu-17', 'leaf1'."


def test_a_second_neighbor_without_a_name_ends_no_proposal():
    hosts = fleet(2)
    hosts["node2"]["lldp"]["ens1np0"]["others"] = [{"port": "p0hpf", "is_switch": True}]
    (finding,) = discover(hosts).findings
    assert finding.text == "The other end of ens1np0 is one of several switches: 'leaf1', nothing."


@pytest.mark.parametrize("lacking", ["netdev", "link_layer", "state", "pci"])
def test_a_host_that_leaves_something_out_ends_no_other_proposal(lacking):
    """No module of this collection answers so."""
    odd = info()
    for one in odd["devices"]:
        one.pop(lacking, None)
        for port in one["ports"]:
            port.pop(lacking, None)
    proposal = discover(fleet(node1=odd))
    assert [rail.interface for rail in proposal.rails] == [f"ens{number}np0" for number in range(1, 9)]
    names = [nic.name for nic in proposal.nics["node1"] if nic]
    assert names[0] == ("0000:19:00.0" if lacking == "netdev" else "ens1np0")
    assert report(proposal)
