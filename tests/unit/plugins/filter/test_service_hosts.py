# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.filter.filters import service_hosts
from ansible_collections.railops.rdma.plugins.plugin_utils import _host_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, rails


def test_only_hosts_without_any_rail_in_service_are_left_out(tmp_path):
    words = {"fabric_plan_dir": str(tmp_path), "fabric_group": "gpus"}
    assert service_hosts({}) == "gpu_nodes"
    assert service_hosts(words) == "gpus"
    out = {"node1": {"rails": ["rail2"]}, "node2": {"rails": "all"}, "node4": {"rails": ["rail1", "rail2"]}}
    raw = {**exclusive(rails=rails(2)), "plan_dir": str(tmp_path), "out_of_service": out}
    run(raw, hosts(5), check_mode=False)
    assert service_hosts(words) == "gpus:!node2:!node4"
    folder = str(tmp_path / "fabric")
    near = [row["host"] for row in _host_plan.proving_neighbors(folder, "node1")]
    assert near == ["node3", "node5"]
    named = [row["name"] for row in _host_plan.proving_neighbors(folder, "node5")[0]["rails"]]
    assert named == ["rail1"]
    assert {*_host_plan.drawn_addresses(folder, "node3", 0)} == {"rail1", "rail2"}
    run({**raw, "out_of_service": {}}, hosts(5), check_mode=False)
    assert service_hosts(words) == "gpus"
