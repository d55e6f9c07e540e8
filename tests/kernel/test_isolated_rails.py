# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Isolated rails without gateways: paths, pings, and what shows that two of them were joined."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, options, run

RAILS = 3


def want_without_gateways(slot):
    """What the planner gives a host with fabric_gateway: none."""
    want = options(slot, RAILS, mode="shared")
    for rail in want["rails"]:
        for item in rail["addresses"]:
            del item["gateway"]
    return want


@pytest.fixture
def fabric():
    with Fabric("isolated", 2, RAILS) as made:
        for slot, host in enumerate(made.hosts):
            host.apply(want_without_gateways(slot))
            assert not host.module(policy_route, want_without_gateways(slot))["changed"]
        yield made


def audited(fabric, **more):
    """Return what an audit says of paths and pings, every pair of rails asked."""
    neighbor = {"host": "node2", "rails": want_without_gateways(1)["rails"]}
    settings = {"ping": {"cross_rail_pairs": RAILS, "count": 10, "timeout": 0.5, **more}}
    more = {"neighbors": [neighbor], "settings": settings}
    return fabric.hosts[0].audit(want_without_gateways(0), "paths", "pings", **more)["checks"]


def of(checks, name):
    return {(check["rail"], check.get("family")): check for check in checks if check["id"] == name}


def join(fabric, one, other):
    """Join two leaves, as a wrong cable or VLAN does."""
    ends = {"join1": f"leaf{one}", "join2": f"leaf{other}"}
    run("ip", "-n", fabric.core, "link", "add", "join1", "type", "veth", "peer", "name", "join2")
    for port, leaf in ends.items():
        run("ip", "-n", fabric.core, "link", "set", port, "master", leaf, "up")


def test_paths_and_pings_are_green_without_a_gateway(fabric):
    checks = audited(fabric)
    assert {check["status"] for check in checks} == {"ok"}, checks
    assert len(of(checks, "route_path")) == len(of(checks, "rail_isolation")) == RAILS * 2
    assert of(checks, "ping_gateway") == {}
    assert {check["observed"]["meets"] == [] for check in of(checks, "rail_isolation").values()} == {True}


def test_two_rails_that_were_joined_are_named_in_both_families(fabric):
    join(fabric, 1, 2)
    checks = audited(fabric)
    wrong = {key: check["cause"] for key, check in of(checks, "rail_isolation").items() if check["status"] != "ok"}
    assert wrong == {
        (f"rail{rail}", family): f"rail{rail} reaches rail{other}, and isolated rails must not meet"
        for rail, other in ((1, 2), (2, 1))
        for family in (4, 6)
    }
    assert {check["status"] for check in checks if check["id"] != "rail_isolation"} == {"ok"}


def test_a_packet_that_leaves_elsewhere_is_named_without_a_gateway_too(fabric):
    host = fabric.hosts[0]
    host.ip("route", "add", "172.17.1.0/24", "dev", "ens2np0", "table", "2000")
    host.ip("rule", "add", "from", "172.17.1.2", "lookup", "2000", "priority", "900")
    host.ip("-6", "rule", "add", "from", "fd00:17:3::2", "blackhole", "priority", "901")
    wrong = {key: check for key, check in of(audited(fabric), "route_path").items() if check["status"] != "ok"}
    assert set(wrong) == {("rail1", 4), ("rail3", 6)}
    assert "900" in wrong["rail1", 4]["cause"]
    assert "901" in wrong["rail3", 6]["cause"]
