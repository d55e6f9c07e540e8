# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._route import tcp
from ansible_collections.railops.rdma.plugins.module_utils._route.icmp import (
    EchoOutcome,
    EchoTarget,
    answer,
    packet,
)
from ansible_collections.railops.rdma.plugins.module_utils._route.ping import (
    checks_of,
    names_of,
    not_sent,
    own_echo,
    targets_of,
)
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import neighbors_of, parse_options
from ansible_collections.railops.rdma.tests.unit import one_rail

IPV6 = {"address": "2001:db8::2", "subnet": "2001:db8::/64"}
RAIL = {**one_rail.RAIL, "addresses": [*one_rail.RAIL["addresses"], IPV6]}
WANT = parse_options({"rails": [RAIL]})


@pytest.mark.parametrize("family", [4, 6])
def test_a_reply_gives_back_what_was_sent(family):
    data = bytearray(packet(family, 7, 3, 99))
    data[0] = 0 if family == 4 else 129
    header = b"\x45" + bytes(19) if family == 4 else b""
    assert answer(family, header + bytes(data)) == (7, 3, 99)
    assert answer(family, header + bytes(packet(family, 7, 3, 99))) is None
    assert answer(family, header + b"\0") is None


def test_gateways_and_neighbors_of_the_same_rail_and_family_are_tested():
    addresses = [{"address": "192.0.2.34"}, {"address": "2001:db8:2::2"}]
    other = {"host": "node2", "rails": [{"name": "rail1", "addresses": addresses}]}
    found = list(targets_of(WANT, names_of(WANT), neighbors_of([other])))
    assert [(target.check, target.source, target.address) for target in found] == [
        ("ping_gateway", "192.0.2.2", "192.0.2.1"),
        ("ping_neighbor", "192.0.2.2", "192.0.2.34"),
        ("ping_neighbor", "2001:db8::2", "2001:db8:2::2"),
    ]
    assert ["peers" in check for check in checks_of(found, [EchoOutcome(knocks=1)] * 3)] == [False, True, True]
    assert checks_of(found[1:2], [EchoOutcome(knocks=1)])[0]["peers"] == ["node2"]
    assert "peers" not in checks_of(found[1:2], [EchoOutcome(answered=True)])[0]
    assert [target.size for target in targets_of(WANT, names_of(WANT), full_size=True)] == [0, 4200]


def test_a_pci_address_is_turned_into_a_name(tmp_path):
    (tmp_path / "sys/bus/pci/devices/0000:1a:00.0/net/ens9").mkdir(parents=True)
    want = parse_options({"rails": [{"pci": "0000:1a:00.0"}, {"pci": "0000:1b:00.0"}]})
    assert names_of(want, Sysfs(str(tmp_path))) == {"rail1": "ens9", "rail2": "0000:1b:00.0"}


@pytest.mark.parametrize(
    ("target", "says"),
    [
        pytest.param(EchoTarget("ping_gateway", "rail1", "a", "192.0.2.2", "192.0.2.1"), "VLAN", id="gateway"),
        pytest.param(
            EchoTarget("ping_neighbor", "rail1", "a", "192.0.2.2", "192.0.2.9"), "between the leaves", id="other"
        ),
        pytest.param(EchoTarget("ping_gateway_mtu", "rail1", "a", "192.0.2.2", "192.0.2.1", 4200), "MTU", id="mtu"),
    ],
)
def test_silence_is_a_deviation_with_its_fix(target, says):
    (check,) = checks_of([target], [EchoOutcome(knocks=3)])
    assert check["status"] == "deviation"
    assert says in check["fix"]
    (good,) = checks_of([target], [EchoOutcome(answered=True, sent=1, received=1, best=0.0002)])
    assert (good["status"], good["observed"]) == ("ok", "answer in 0.2 ms")


GATEWAY = EchoTarget("ping_gateway_mtu", "rail1", "a", "192.0.2.2", "192.0.2.1", 4200)
HOST = EchoTarget("ping_neighbor", "rail1", "a", "192.0.2.2", "192.0.2.9", peer="node2")


@pytest.mark.parametrize(
    ("target", "received", "limit", "status"),
    [
        pytest.param(GATEWAY, 9, 0, "warning", id="a-gateway-may-police"),
        pytest.param(GATEWAY, 0, 0, "warning", id="as-long-as-it-answered-once"),
        pytest.param(HOST, 9, 0, "deviation", id="between-hosts-nothing-is-lost"),
        pytest.param(HOST, 9, 10, "ok", id="but-what-is-allowed"),
        pytest.param(HOST, 8, 10, "deviation", id="and-not-more"),
    ],
)
def test_loss_is_measured_between_hosts_and_reported_of_gateways(target, received, limit, status):
    (check,) = checks_of([target], [EchoOutcome(answered=True, knocks=1, sent=10, received=received)], limit)
    assert check["status"] == status
    assert f"{10 - received} of 10 lost" in check["observed"]
    assert check.get("peers") == (["node2"] if status == "deviation" else None)


LEAF, FULL = EchoTarget("ping_gateway", "rail1", "a", "192.0.2.2", "192.0.2.1"), GATEWAY
BEYOND = EchoTarget("ping_neighbor", "rail1", "a", "192.0.2.2", "192.0.2.34", peer="node2", via="192.0.2.1")
BEYOND_FULL = EchoTarget("ping_neighbor_mtu", "rail1", "a", "192.0.2.2", "192.0.2.34", 4200, "node2", via="192.0.2.1")


@pytest.mark.parametrize(
    ("answered", "arp", "statuses"),
    [
        pytest.param({BEYOND, BEYOND_FULL}, False, ["ok", "ok"], id="it-forwards-both-sizes"),
        pytest.param({LEAF, BEYOND, BEYOND_FULL}, False, ["ok", "ok"], id="it-answers-small-ones-only"),
        pytest.param({BEYOND}, False, ["ok", "skipped"], id="it-forwards-small-ones"),
        pytest.param(set(), True, ["warning", "skipped"], id="it-answers-arp"),
        pytest.param({LEAF}, True, ["ok", "deviation"], id="its-mtu-is-small"),
        pytest.param({LEAF, BEYOND}, True, ["ok", "deviation"], id="so-is-the-path"),
        pytest.param(set(), False, ["deviation", "deviation"], id="nothing-shows-that-it-is-there"),
    ],
)
def test_a_gateway_without_echoes_is_decided_by_arp_and_by_what_it_forwards(answered, arp, statuses):
    targets = [LEAF, FULL, BEYOND, BEYOND_FULL]
    outcomes = [EchoOutcome(answered=target in answered, knocks=3) for target in targets]
    checks = checks_of(targets, outcomes, wire=lambda wanted: dict.fromkeys(wanted, "00:00:5e:00:53:01") if arp else {})
    assert [check["status"] for check in checks[:2]] == statuses


def test_only_neighbors_outside_the_subnet_are_behind_the_gateway():
    rows = [
        {"host": "node2", "rails": [{"name": "rail1", "addresses": [{"address": f"192.0.2.{end}"}]}]} for end in (9, 34)
    ]
    found = targets_of(WANT, names_of(WANT), neighbors_of(rows))
    assert [(target.address, target.via) for target in found][1:] == [("192.0.2.9", ""), ("192.0.2.34", "192.0.2.1")]


def test_tcp_that_is_dropped_on_one_rail_is_a_deviation_and_on_all_a_warning():
    two, dead = (
        EchoTarget("ping_neighbor", rail, "b", "192.0.2.66", "192.0.2.98", peer="node2") for rail in ("rail2", "rail3")
    )
    for results, statuses in (
        ({BEYOND: "", two: ""}, ["ok", "ok", "skipped"]),
        ({BEYOND: "", two: "no answer"}, ["ok", "deviation", "skipped"]),
        ({BEYOND: "no answer", two: "No route to host"}, ["warning", "warning", "skipped"]),
    ):
        checks = tcp.checks_of([BEYOND, two, dead], results)
        assert [check["status"] for check in checks] == statuses
        assert [check.get("peers") for check in checks] == [
            ["node2"] if status in ("deviation", "warning") else None for status in statuses
        ]


@pytest.mark.parametrize(
    ("family", "values", "wrong"),
    [
        (4, {"icmp_echo_ignore_all": "0", "icmp_ratelimit": "1000", "icmp_ratemask": "6168"}, ""),
        (4, {"icmp_echo_ignore_all": "1"}, "net.ipv4.icmp_echo_ignore_all=0"),
        (4, {"icmp_ratelimit": "1000", "icmp_ratemask": "6169"}, "net.ipv4.icmp_ratelimit=0"),
        (6, {"echo_ignore_all": "0", "ratelimit": "1000", "ratemask": "0-1,3-127"}, ""),
        (6, {"echo_ignore_all": "1", "ratemask": ""}, "net.ipv6.icmp.echo_ignore_all=0"),
        (6, {"ratelimit": "1000", "ratemask": "0-1,129"}, "net.ipv6.icmp.ratelimit=0"),
    ],
)
def test_a_host_that_swallows_echoes_says_so_itself(tmp_path, family, values, wrong):
    """Found by an attack: its neighbor was blamed (S5)."""
    folder = tmp_path / "proc/sys/net" / ("ipv4" if family == 4 else "ipv6/icmp")
    folder.mkdir(parents=True)
    for name, value in values.items():
        (folder / name).write_text(f"{value}\n")
    (check,) = own_echo([family], Sysfs(str(tmp_path)))
    assert (check["id"], check["status"]) == ("network_echo", "deviation" if wrong else "ok")
    assert wrong in check["fix"]


def test_deviations_are_reported_by_name():
    names, other = (
        names_of(WANT),
        neighbors_of([{"rails": [{"name": "rail1", "addresses": [{"address": "192.0.2.9"}]}]}]),
    )
    off = not_sent(WANT, {"full_size": False, "cross_rail_pairs": 0}, list(targets_of(WANT, names, other)))
    assert [(check["id"], check["rail"]) for check in off] == [
        ("ping_gateway_mtu", "rail1"),
        ("ping_neighbor_mtu", "rail1"),
        ("rail_isolation", None),
    ]
    assert {(check["status"], check["observed"]) for check in off} == {("skipped", "not checked")}
    both = {"full_size": True, "cross_rail_pairs": 2}
    assert not_sent(WANT, both, list(targets_of(WANT, names, other, full_size=True))) == []
    bare = parse_options({"rails": [{key: value for key, value in RAIL.items() if key != "mtu"}]})
    (finding,) = not_sent(bare, both, list(targets_of(bare, names, full_size=True)))
    assert finding["cause"] == "the plan has no MTU for the rail"
