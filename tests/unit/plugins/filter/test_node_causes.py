# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Causes of nodes that offer too little come from the plan that was made, and from no other file beside it."""

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.filter.node_causes import node_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts


def test_an_editors_file_beside_the_host_plans_is_no_host(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(2), check_mode=False)
    folder = tmp_path / "fabric"
    (folder / "hosts/.node1.json.swp").write_bytes(b"b0VIM\x00\xff")
    short = {"planned": {"spidernet.io/fabric_rail1": 64}, "observed": {}}
    (found,) = node_causes([{"id": "node_resources", "node": "node1", "status": "deviation", **short}], str(folder))
    assert (found["node"], found["rail"]) == ("node1", "rail1")
