# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import socket
import sys

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route.icmp import EchoRun, EchoTarget
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, options, run

RAILS = 3


@pytest.fixture
def fabric():
    with Fabric("ping", 2, RAILS) as made:
        made.converge([options(slot, RAILS) for slot in (0, 1)])
        made.settle()
        yield made


def host_plan_of(slot):
    want = options(slot, RAILS)
    return {key: want[key] for key in ("rails", "rdma_prefixes", "policy", "network")}


def pinged(fabric, want, neighbors=(), **ping):
    """Return what an audit of the first host finds by pings alone."""
    more = {"neighbors": list(neighbors), "settings": {"ping": ping}}
    return fabric.hosts[0].audit(want, "pings", **more)["checks"]


def neighbor():
    return {"host": "node2", **host_plan_of(1)}


def test_gateways_and_neighbors_answer_in_both_families(fabric):
    # Links that have just come up need a moment.
    checks = pinged(fabric, host_plan_of(0), [neighbor()], cross_rail_pairs=1, count=20)
    assert {check["status"] for check in checks} == {"ok"}, checks
    assert len(checks) == RAILS * 2 * 2 * 2 + RAILS * 2 + RAILS * 2 + 2


def test_what_does_not_answer_is_a_deviation_of_its_rail_only(fabric):
    run("ip", "-n", fabric.core, "link", "set", "leaf2", "down")
    wrong = [check for check in pinged(fabric, host_plan_of(0), timeout=1.0, count=3) if check["status"] == "deviation"]
    assert {check["rail"] for check in wrong} == {"rail2"}
    assert all(check["fix"] for check in wrong)
    large = "no answer to 1 echo request with 4200 bytes unfragmented"
    assert {check["cause"] for check in wrong} == {"no answer to 3 echo requests", large}


@pytest.mark.parametrize("beyond", [True, False])
def test_a_gateway_that_answers_no_echo_is_no_deviation(fabric, beyond):
    for key in ("net.ipv4.icmp_echo_ignore_all", "net.ipv6.icmp.echo_ignore_all"):
        run("ip", "netns", "exec", fabric.core, "sysctl", "-q", "-w", f"{key}=1")
    checks = pinged(fabric, host_plan_of(0), [neighbor()] if beyond else [], timeout=1.0, count=5)
    found = {(check["id"], check["status"]) for check in checks if check["id"].startswith("ping_gateway")}
    proven = {("ping_gateway", "ok"), ("ping_gateway_mtu", "ok")}
    assert found == (proven if beyond else {("ping_gateway", "warning"), ("ping_gateway_mtu", "skipped")})


def across(fabric, **more):
    """Return status and cause of every pair's check by rail and family; all pairs are asked."""
    checks = pinged(fabric, host_plan_of(0), [neighbor()], cross_rail_pairs=RAILS, timeout=1.0, count=20, **more)
    return {(check["rail"], check["family"]): check for check in checks if check["id"] == "rail_isolation"}


def test_a_routed_fabric_with_one_missing_pair_names_it(fabric):
    found = across(fabric, rails_reachable=True)
    assert {check["status"] for check in found.values()} == {"ok"}, found
    assert len(found) == RAILS * 2
    # The spine drops what goes from rail 1 to rail 3.
    there = host_plan_of(1)["rails"][2]["addresses"][0]["address"]
    run("ip", "-n", fabric.core, "rule", "add", "iif", "leaf1", "to", there, "priority", "100", "blackhole")
    found = across(fabric, rails_reachable=True)
    wrong = {key: check["cause"] for key, check in found.items() if check["status"] != "ok"}
    assert wrong == {("rail1", 4): "rail1 does not reach rail3 of a neighbor, whose own rails answer"}
    assert across(fabric)["rail1", 4]["status"] == "warning"


@pytest.mark.parametrize(("rails", "status"), [((2,), "deviation"), ((1, 2, 3), "warning")])
def test_a_leaf_that_drops_tcp_is_named(fabric, rails, status):
    assert {
        check["status"] for check in pinged(fabric, host_plan_of(0), [neighbor()], cross_rail_pairs=1, count=20)
    } == {"ok"}
    for number in rails:
        for family in ("-4", "-6"):
            rule = ("iif", f"leaf{number}", "ipproto", "tcp", "priority", "100", "blackhole")
            run("ip", "-n", fabric.core, family, "rule", "add", *rule)
    checks = pinged(fabric, host_plan_of(0), [neighbor()], cross_rail_pairs=1, count=20)
    wrong = {(check["id"], check["rail"], check["status"]) for check in checks if check["status"] != "ok"}
    assert wrong == {("ping_neighbor_tcp", f"rail{number}", status) for number in rails}


@pytest.mark.parametrize(("family", "address"), [(4, "127.0.0.1"), (6, "::1")])
def test_echo_requests_travel_in_the_planned_class(fabric, family, address):
    protocol = (socket.AF_INET, socket.IPPROTO_ICMP) if family == 4 else (socket.AF_INET6, socket.IPPROTO_ICMPV6)

    def seen():
        with socket.socket(protocol[0], socket.SOCK_RAW, protocol[1]) as raw:
            raw.settimeout(5)
            if family == 6:
                raw.setsockopt(41, 66, 1)  # IPV6_RECVTCLASS
            EchoRun([EchoTarget("ping_gateway", "rail1", "lo", address, address)], 3, 1.0, 104).run()
            data, more, _flags, _sender = raw.recvmsg(2048, 256)
            return data[1] if family == 4 else int.from_bytes(more[0][2], sys.byteorder)

    assert inside(fabric.hosts[0].name, seen) == 104


def test_a_missing_interface_is_a_deviation(fabric):
    params = host_plan_of(0)
    params["rails"][0]["interface"] = "ens99np0"
    assert "cannot send" in pinged(fabric, params, timeout=1.0, count=3)[0]["cause"]
