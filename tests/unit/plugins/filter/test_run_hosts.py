# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.filter.filters import run_hosts
from ansible_collections.railops.rdma.plugins.module_utils._check import deviation, warning
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts


def answer(*checks, errors=()):
    return {"checks": list(checks), "errors": list(errors)}


BRIDGE = deviation(
    "network_preflight",
    "port",
    "bridge",
    "roce0 is a bridge",
    "Name the network card's own port. [rail_is_a_port]",
    rail="rail1",
)
DOCKER = deviation(
    "network_preflight",
    "x",
    "y",
    "172.17.0.0/21 overlaps docker0.",
    "Correct the interface or the name. [sysctl_missing]",
)
THEIRS = warning("persist_existing", "x", "y", "50-cloud-init.yaml names ens1", "Report it as a bug.", rail="rail1")


def stops(results, plan_dir="", **more):
    return run_hosts(results, [], plan_dir, {}, 0, **more)["stop"]


def test_one_sentence_with_its_remedy_for_all_hosts_that_have_it():
    results = {"node2": answer(DOCKER, BRIDGE), "node1": answer(DOCKER, THEIRS), "node3": answer()}
    assert stops(results)[0].startswith("Broken hosts: 2 of 3. site_max_excluded allows 0. ")
    assert stops(results)[1:] == [
        "node[1-2]: 172.17.0.0/21 overlaps docker0. Correct the interface or the name. [sysctl_missing]",
        "node2: rail1: roce0 is a bridge. Name the network card's own port. [rail_is_a_port]",
    ]
    made = run_hosts(results, [], "", {}, 2)
    assert made["stop"] == []
    assert made["warnings"] == ["node1: rail1: 50-cloud-init.yaml names ens1. Report it as a bug. [persist_existing]"]
    assert made["hosts"] == ["node3"]
    assert made["missing"] == stops(results)[1:]


def test_a_host_that_could_not_be_checked_is_broken():
    results = {"node1": {"msg": "No module.", "failed": False}, "node2": answer(errors=["preflight: No `ip`."])}
    made = run_hosts(results, ["node9"], "", {}, 3)
    assert made["excluded"] == {
        "node1": "rail_audit: No module. [host_result_unreadable]",
        "node2": "preflight: No `ip`. [host_result_unreadable]",
    }
    assert made["missing"][0].startswith("node9: It does not answer.")
    assert made["hosts"] == []


def test_a_host_plan_that_is_stale_stops_the_run():
    results = {"node1": {"msg": "The host plan is stale. Plan again. [host_plan_stale]"}, "node2": answer()}
    (text,) = run_hosts(results, [], "", {}, 2)["stop"]
    assert text == "Declaration: node1: rail_audit: The host plan is stale. Plan again. [host_plan_stale]"


def test_an_address_that_the_plan_gives_to_another_host_stops_the_run(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(2), check_mode=False)
    here = {**answer(), "facts": {"unplanned_addresses": ["172.17.0.34", "172.17.0.66"]}}
    folder = str(tmp_path / "fabric")
    (text,) = stops({"node1": here, "node2": answer()}, folder)
    assert text.startswith("Declaration: node1: 172.17.0.34 is here, and this plan gives it to node2. ")
    assert "fabric_allow_renumber=true" in text
    assert stops({"node1": answer()}, str(tmp_path / "none")) == []


def test_a_hosts_nonsense_is_named_and_the_other_hosts_stay():
    odd = [
        {**answer(BRIDGE), "errors": 5},
        {"checks": [{"id": {}, "status": "deviation"}], "errors": [["x"]]},
        {"msg": {}},
    ]
    odd += [{**answer(), "facts": {"unplanned_addresses": [5]}}, {"checks": [{**BRIDGE, "rail": ["rail1"]}]}]
    odd += [{**answer(), "facts": 5}, {**answer(), "facts": {"gathered": 5}}]
    results = {f"odd{number}": result for number, result in enumerate(odd)}
    made = run_hosts({**results, "node2": answer(DOCKER)}, [], "", {}, 9, "sriov", "infiniband")
    found = made["excluded"]
    assert found["node2"] == "172.17.0.0/21 overlaps docker0. Correct the interface or the name. [sysctl_missing]"
    assert found["odd0"] == "rail1: roce0 is a bridge. Name the network card's own port. [rail_is_a_port]"
    assert found["odd1"].startswith("The answer is refused: a dict is no id of a check")
    assert found["odd2"].startswith("rail_audit: no answer")
    assert found["odd3"].startswith("The answer is refused: an item of unplanned_addresses")
    assert found["odd4"].startswith("The answer is refused: a list is no rail")
    assert made["stop"] == []


METAL = {"virtualization_role": "host", "virtualization_type": "kvm"}
GUEST = {"virtualization_role": "guest", "virtualization_type": "kvm"}
MANAGED = {"default_ipv4": {"interface": "eth0", "address": "192.0.2.1", "type": "ether"}}


def of_kind(facts, attachment, network):
    result = {**answer(), "facts": {"gathered": facts}}
    return run_hosts({"node1": result}, [], "", {}, 1, None, attachment, network)["excluded"].get("node1", "")


@pytest.mark.parametrize("attachment", ["sriov", "ib-sriov"])
def test_a_virtual_machine_has_no_virtual_functions(attachment):
    text = of_kind({**GUEST, **MANAGED}, attachment, "roce")
    assert f"machine or container (kvm), and attachment {attachment} is for bare metal." in text
    assert "site_sriov_guests" in text
    assert of_kind({**METAL, **MANAGED}, attachment, "roce") == ""
    assert of_kind(GUEST, "", "roce") == ""


@pytest.mark.parametrize(
    "facts",
    [
        {},
        {"default_ipv4": {}},
        {"default_ipv4": {"interface": "ibs1", "address": "172.17.0.1", "type": "infiniband"}},
        {"default_ipv4": 5, "default_ipv6": [5]},
    ],
)
def test_an_infiniband_node_needs_a_management_address(facts):
    assert "no Ethernet interface with a default route" in of_kind(facts, "", "infiniband")


def test_a_management_address_of_ipv6_is_one():
    facts = {"default_ipv4": {}, "default_ipv6": {"interface": "eth0", "address": "2001:db8::1", "type": "ether"}}
    assert of_kind(facts, "ib-sriov", "infiniband") == ""


NODE = {"node": "gpu-1"}


@pytest.mark.parametrize(
    ("facts", "unfinished", "played"),
    [
        ({"drift": []}, [], False),
        ({"drift": [], "node": NODE}, ["gpu-2"], False),
        ({"drift": ["rail_network"]}, [], True),
        ({"drift": [], "emptied": "reboot"}, [], True),
        ({"drift": [], "emptied": "upgrade"}, [], False),
        ({"drift": [], "emptied": ""}, [], False),
        ({"drift": [], "node": NODE}, ["gpu-1"], True),
        ({}, [], True),
    ],
)
def test_only_hosts_with_drift_are_played(facts, unfinished, played):
    results = {"node1": {**answer(), "facts": facts}, "node2": {**answer(), "facts": {"drift": ["nic_link_type"]}}}
    results["node3"] = {**answer(DOCKER), "facts": {"drift": []}}
    made = run_hosts(results, [], "", {}, unfinished=unfinished, all_hosts=False)
    assert made["hosts"] == (["node1", "node2"] if played else ["node2"])
    assert made["same"] == ("" if played else "node1")
    assert run_hosts(results, [], "", {}, unfinished=unfinished)["hosts"] == ["node1", "node2"]
