# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A rail and a node out of service in the cluster: their pools are disabled, all other objects stay as they are."""

from __future__ import annotations

import copy
import typing as t

import pytest
from api_double import ApiDouble
from conftest import Playbook
from plays import CHECKOUT, RAIL_OBJECTS

Json = dict[str, t.Any]
OUT = {"node2": {"rails": ["rail2"], "reason": "RMA 4711"}, "node4": {"rails": "all", "taint": True}}
KINDS = ("SpiderIPPool", "SpiderMultusConfig", "SpiderReservedIP", "Node")
LABEL = "fabric.railops.io/out-of-service"
TAINTS = [{"key": "other", "effect": "NoExecute"}, {"key": LABEL, "effect": "NoSchedule"}]


def objects(double: ApiDouble) -> dict[str, Json]:
    """Return all objects by kind and name."""
    return {
        f"{kind}/{name}": copy.deepcopy(row) for kind in KINDS for name, row in sorted(double.objects(kind).items())
    }


def without_versions(found: dict[str, Json]) -> dict[str, Json]:
    """Return objects without what each write changes."""
    own = ("resourceVersion", "generation", "managedFields")
    for row in (found := copy.deepcopy(found)).values():
        row["metadata"] = {key: value for key, value in row["metadata"].items() if key not in own}
    return found


@pytest.mark.only_double("other objects are compared with their versions")
def test_out_of_service_and_back(playbook: Playbook, double: ApiDouble, exclusive: None) -> None:
    for number in range(3, 9):
        double.add_node(f"node{number}")
    double.objects("Node")["node4"]["spec"]["taints"] = TAINTS[:1]
    playbook.values.update({"rail_objects_wait_seconds": 0, "rail_objects_nodes_required": False})
    plan = ("plan", "-i", str(CHECKOUT / "inventory/exclusive"))
    playbook.run([RAIL_OBJECTS])
    before = objects(double)

    playbook.shipped(*plan, fabric_out_of_service=OUT)
    playbook.run([RAIL_OBJECTS])
    out = objects(double)
    pools = {"SpiderIPPool/fabric-rail2-v4-node2", *(f"SpiderIPPool/fabric-rail{n}-v4-node4" for n in range(1, 9))}
    assert before.keys() == out.keys()
    assert {name for name, row in out.items() if row != before[name]} == {*pools, "Node/node2", "Node/node4"}
    for name in pools:
        assert out[name]["spec"] == {**before[name]["spec"], "disable": True}
    assert [out[f"Node/{name}"]["metadata"]["labels"][LABEL] for name in ("node2", "node4")] == ["rail2", "all"]
    assert [out[f"Node/{name}"]["spec"].get("taints") for name in ("node2", "node4")] == [None, TAINTS]
    assert playbook.run([RAIL_OBJECTS]).changed_tasks() == []

    playbook.shipped(*plan)
    playbook.run([RAIL_OBJECTS])
    assert without_versions(objects(double)) == without_versions(before)
