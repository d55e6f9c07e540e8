# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.host_plans import host_plans
from ansible_collections.railops.rdma.tests.unit.fabric_samples import plan_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, rails, shared

RAW = exclusive(max_nodes=4, rails=rails(2))


def cables(raw, *nodes):
    made = host_plans(plan_of({**RAW, **raw}, list(nodes)))
    return {name: piece.get("cables") for name, piece in made.items()}


def test_a_host_plan_has_cables_only_where_leaves_are_named():
    assert cables({}, {"host": "a"}) == {"a.json": None}
    assert cables({"leaves": ["l1", "l2-%s*"]}, {"host": "a"}) == {
        "a.json": {"rail1": {"leaf": "l1", "port": None}, "rail2": {"leaf": "l2-%s*", "port": None}}
    }


def test_a_node_says_leaf_and_port_itself():
    own = {"host": "b", "cables": {"rail2": {"leaf": 'odd "leaf"', "port": "Ethernet1/5"}}}
    found = cables({"leaves": ["l1"]}, {"host": "a"}, own, {"host": "c", "cables": {"rail1": {"port": "swp1"}}})
    assert found["a.json"] == {"rail1": {"leaf": "l1", "port": None}, "rail2": {"leaf": "l1", "port": None}}
    assert found["b.json"]["rail2"] == {"leaf": 'odd "leaf"', "port": "Ethernet1/5"}
    assert found["c.json"]["rail1"] == {"leaf": "l1", "port": "swp1"}


def test_zones_have_leaves_of_their_own():
    zones = [
        {"name": "su1", "supernets": ["10.1.0.0/16"], "leaves": ["x1", "x2"]},
        {"name": "su2", "supernets": ["10.2.0.0/16"]},
    ]
    found = cables({"zones": zones}, {"host": "a", "groups": ["su1"]}, {"host": "b", "groups": ["su2"]})
    assert [cable["leaf"] for cable in found["a.json"].values()] == ["x1", "x2"]
    assert found["b.json"] is None


def test_a_vlan_is_in_the_rail_and_in_the_settings_of_its_interface():
    made = host_plans(plan_of({**RAW, "rails": [{"interface": "a", "vlan": 7}, {"interface": "b"}]}, [{"host": "n"}]))
    data = made["n.json"]
    assert [(rail["interface"], rail.get("vlan")) for rail in data["rails"]] == [("a", 7), ("b", None)]
    assert "net/ipv4/conf/a.7/arp_ignore" in data["sysctls"]
    assert "net/ipv4/conf/a/arp_ignore" not in data["sysctls"]
    assert "net/ipv4/conf/b/arp_ignore" in data["sysctls"]


def test_the_bases_of_the_fabric_number_tables_rules_and_metrics():
    moved = {**RAW, "table_base": 3000, "rule_base": 5000, "metric_base": 300}
    keys = ("table", "rule_priority", "metric")

    usual, other = (host_plans(plan_of(raw, [{"host": "n"}]))["n.json"]["rails"] for raw in (RAW, moved))

    assert [[rail.get(key) for key in keys] for rail in usual] == [[1001, 10001, None], [1002, 10002, None]]
    assert [[rail.get(key) for key in keys] for rail in other] == [[3001, 5001, 301], [3002, 5002, 302]]


@pytest.mark.parametrize(("enlarged", "nodes"), [(False, 512), (True, 512), (False, 256), (True, 256)])
def test_neighbor_tables_that_are_too_small_are_named_by_the_plan_or_set_by_the_hosts(enlarged, nodes):
    made = plan_of(shared(max_nodes=nodes, rails=rails(2), rail_prefix=21, neighbor_tables=enlarged), [{"host": "n"}])

    found = {key: value for key, value in host_plans(made)["n.json"]["sysctls"].items() if "neigh" in key}
    values = {f"net/ipv4/neigh/default/gc_thresh{step + 1}": str(1024 << step) for step in range(3)}
    warned = [text for text in made.warnings if "net.ipv4.neigh.default.gc_thresh1=1024" in text]
    assert found == (values if enlarged and nodes == 512 else {})
    assert len(warned) == (nodes == 512 and not enlarged)


def test_a_rail_out_of_service_is_apart_and_keeps_its_numbers():
    declared = {**RAW, "leaves": ["l1", "l2"]}
    before = host_plans(plan_of(declared, ["a", "b"]))
    out = {"a": {"rails": ["rail2"], "reason": "RMA 4711"}, "b": {"rails": "all"}}
    made = host_plans(plan_of({**declared, "out_of_service": out}, ["a", "b"]))
    one, two = before["a.json"]["rails"]
    assert made["a.json"]["rails"] == [one]
    assert made["a.json"]["out_of_service"] == {"reason": "RMA 4711", "rails": [two]}
    assert list(made["a.json"]["cables"]) == ["rail1"]
    assert not [key for key in made["a.json"]["sysctls"] if "/ens2np0/" in key]
    assert (made["b.json"]["rails"], made["b.json"]["out_of_service"]["reason"]) == ([], "")
