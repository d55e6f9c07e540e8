# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What cuts a rail without a wrong route: for whom, for which far host, and by whose hand. Each is named."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, options

RAILS, HOSTS = 2, 3
FAR = "172.17.1.66"
BOTH_RAILS = dict.fromkeys([("rail1", 4), ("rail2", 4)], "deviation")


@pytest.fixture(scope="module")
def fabric():
    with Fabric("causes", HOSTS, RAILS) as made:
        made.converge([options(slot, RAILS) for slot in range(HOSTS)])
        yield made


def paths(fabric, **more):
    """Return the checks of the first host, which knows the second one alone, that are not ok."""
    neighbors = [{"host": "node2", "rails": fabric.wants[1]["rails"]}]
    result = fabric.hosts[0].audit(fabric.wants[0], "paths", neighbors=neighbors, **more)
    found = [item for item in result["checks"] if item["id"] == "route_path" and item["status"] != "ok"]
    return {(item["rail"], item["family"]): item for item in found}


class Planted:
    """Lines for `ip` on the first host, undone in the end."""

    def __init__(self, fabric, *lines: str) -> None:
        self.host, self.lines = fabric.hosts[0], lines
        self.undo = [line.replace(" add ", " del ").replace(" replace ", " del ") for line in lines[::-1]]

    def __enter__(self) -> None:
        for line in self.lines:
            self.host.ip(*line.split())

    def __exit__(self, *_exc: object) -> None:
        for line in self.undo:
            self.host.ip(*line.split())


def test_an_existing_route_in_the_rdma_prefixes_is_a_warning_without_a_node_there(fabric):
    lines = ["route add blackhole 172.17.0.192/26 proto bird", "route add 172.17.1.200/32 dev eth0 proto static"]
    lines.append("route add local 172.17.1.201/32 dev lo table local proto static")
    with Planted(
        fabric, *lines, "route add 172.17.1.128/26 dev ens1np0 proto static", "route add 10.9.0.0/16 dev eth0"
    ):
        checks = fabric.hosts[0].audit(fabric.wants[0], "paths", neighbors=[])["checks"]
    (found,) = [item for item in checks if item["id"] == "network_existing_routes"]
    assert found["status"] == "warning"
    assert found["observed"] == [
        "local 172.17.1.201/32 dev lo table 255 (made by static)",
        "blackhole 172.17.0.192/26 (made by bird)",
        "172.17.1.200/32 dev eth0 scope link (made by static)",
    ]
    assert fabric.hosts[0].audit(fabric.wants[0], "paths", neighbors=[])["checks"][-1]["status"] == "ok"


def test_a_random_host_is_tested_and_listed_where_it_is_wrong(fabric):
    lines = [f"route add {FAR}/32 dev eth0 table 2000", "rule add lookup 2000 pref 900"]
    more = {"rail2": [FAR, "172.17.1.98", "fd00:17:2:3::2"]}
    with Planted(fabric, *lines):
        assert paths(fabric) == {}
        (found,) = paths(fabric, addresses=more).values()
    assert (found["rail"], found["family"]) == ("rail2", 4)
    assert "it leaves by eth0" in found["cause"]
    assert [line.split()[0] for line in found["planned"]][-2:] == [FAR, "1"]
    assert found["observed"] == [line for line in found["planned"] if not line.startswith(f"{FAR} ")]


@pytest.mark.parametrize("end", ["lookup 2000", "blackhole"])
def test_a_rule_that_diverts_tcp_only_is_named(fabric, end):
    # Protocols are numbers: a plain system has no /etc/protocols.
    lines = ["route add default via 198.51.100.254 dev eth0 table 2000", f"rule add ipproto 6 {end} pref 950"]
    with Planted(fabric, *lines):
        found = paths(fabric)
    assert {key: item["status"] for key, item in found.items()} == BOTH_RAILS
    for item in found.values():
        assert "(not RoCE, but TCP to port 18515)" in item["cause"]
        assert "950:" in item["cause"]
    # Other ports are not the rails'.
    with Planted(fabric, "rule add ipproto 17 dport 53 blackhole pref 951"):
        assert paths(fabric) == {}


def test_a_setting_for_all_has_a_fix_that_repairs_it(fabric):
    host, want = fabric.hosts[0], fabric.wants[0]
    host.sysctl("net/ipv4/conf/all/arp_ignore", "8")
    checks = host.module(policy_route, want, check=True)["checks"]
    host.sysctl("net/ipv4/conf/all/arp_ignore", "0")
    (found,) = (item for item in checks if item["status"] == "deviation")
    assert found["fix"] == "Set it for all: `sysctl -w net.ipv4.conf.all.arp_ignore=1`, and where sysctl.d has it."
