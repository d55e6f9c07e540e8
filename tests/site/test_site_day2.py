# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""docs/day2.md on hosts: one node is taken off the fabric and comes back, and nobody else notices."""

from __future__ import annotations

HOSTS = ("node1", "node2", "node3")


def test_one_node_leaves_and_comes_back(fleet):
    bare = fleet.dump("node3")
    assert fleet.play("plan").code == 0
    fleet.lab("gateways", fleet.name, "--plan", str(fleet.folder / "plan/fabric"))
    run = fleet.play("site", "--tags", "hosts")
    assert run.code == 0, run.output
    planned = {host: fleet.dump(host) for host in HOSTS}

    run = fleet.play("teardown", "--limit", "node3")
    assert run.code == 0, run.output
    assert fleet.dump("node3")["rules"] == bare["rules"]
    assert fleet.dump("node3")["routes"] != planned["node3"]["routes"]
    for host in ("node1", "node2"):
        assert fleet.dump(host) == planned[host]
    assert (fleet.folder / "plan/fabric/hosts/node3.json").is_file()

    run = fleet.play("site", "--limit", "node3")
    assert run.code == 0, run.output
    assert {host: fleet.dump(host) for host in HOSTS} == planned
