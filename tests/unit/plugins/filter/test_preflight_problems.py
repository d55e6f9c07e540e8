# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.filter.filters import preflight_problems
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
THEIRS = warning("persist_foreign", "x", "y", "50-cloud-init.yaml names ens1", "Look at it.", rail="rail1")


def test_one_sentence_with_its_remedy_for_all_hosts_that_have_it():
    results = {"node2": answer(DOCKER, BRIDGE), "node1": answer(DOCKER, THEIRS), "node3": answer()}
    assert preflight_problems(results) == [
        "node1, node2: 172.17.0.0/21 overlaps docker0. Correct the interface or the name. [sysctl_missing]",
        "node2: rail1: roce0 is a bridge. Name the network card's own port. [rail_is_a_port]",
    ]
    assert preflight_problems(results, "warning") == [
        "node1: rail1: 50-cloud-init.yaml names ens1. Look at it. [persist_foreign]"
    ]


def test_a_host_that_could_not_be_looked_at_is_in_the_way():
    results = {"node1": {"msg": "No host plan.", "failed": False}, "node2": answer(errors=["preflight: No `ip`."])}
    assert preflight_problems(results) == [
        "node1: rail_audit: No host plan. [host_unread]",
        "node2: preflight: No `ip`. [host_unread]",
    ]
    assert preflight_problems(results, "warning") == []


def test_an_address_that_the_plan_gives_to_another_host_is_in_the_way(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(2), check_mode=False)
    here = {**answer(), "facts": {"strange_addresses": ["172.17.0.34", "172.17.0.66"]}}
    folder = str(tmp_path / "fabric")
    (text,) = preflight_problems({"node1": here, "node2": answer()}, plan_dir=folder)
    assert text.startswith("node1: 172.17.0.34 is here, and this plan gives it to node2. ")
    assert "fabric_allow_renumber=true" in text
    assert preflight_problems({"node1": here}, "warning") == []
    assert preflight_problems({"node1": answer()}, plan_dir=str(tmp_path / "none")) == []


def test_a_hosts_nonsense_is_in_the_way_by_its_name_and_the_others_are_told():
    odd = [
        {**answer(BRIDGE), "errors": 5},
        {"checks": [{"id": {}, "status": "deviation"}], "errors": [["x"]]},
        {"msg": {}},
    ]
    odd += [{**answer(), "facts": {"strange_addresses": [5]}}, {"checks": [{**BRIDGE, "rail": ["rail1"]}]}]
    results = {f"odd{number}": result for number, result in enumerate(odd)}
    told = preflight_problems({**results, "node2": answer(DOCKER)})
    assert "node2: 172.17.0.0/21 overlaps docker0. Correct the interface or the name. [sysctl_missing]" in told
    assert "odd0: rail1: roce0 is a bridge. Name the network card's own port. [rail_is_a_port]" in told
    assert any(line.startswith("odd1: The answer is refused: a dict is no id of a check") for line in told)
    assert any(line.startswith("odd2: rail_audit: no answer") for line in told)
    assert any(line.startswith("odd3: The answer is refused: an item of strange_addresses") for line in told)
    assert any(line.startswith("odd4: The answer is refused: a list is no rail") for line in told)
