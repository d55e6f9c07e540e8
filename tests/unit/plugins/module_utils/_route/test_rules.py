# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import socket
import struct

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route.rules import (
    GOTO,
    NOP,
    TO_TABLE,
    Flow,
    PolicyRule,
    Ports,
    rule_of,
    source_ports,
    walk,
    winner,
)

FLOW = Flow(4, "192.0.2.2", "198.51.100.9", tos=0x68, sport=50000, dport=4791)
BOUND = dataclasses.replace(FLOW, interface="ens1np0")


def rule(priority=100, action=TO_TABLE, table=77, **selectors):
    return PolicyRule(selectors.pop("family", 4), priority, action, table=table, **selectors)


OURS = rule(10001, table=1001, source="192.0.2.2/32", protocol=143)
MAIN = rule(32766, table=254)


# As docs of the kernel's walk and the experiments on Linux 6.18 had it.
@pytest.mark.parametrize(
    ("selectors", "unbound", "bound"),
    [
        ({}, True, True),
        ({"source": "192.0.2.0/27"}, True, True),
        ({"source": "192.0.2.32/27"}, False, False),
        ({"destination": "198.51.100.0/24"}, True, True),
        ({"destination": "198.51.100.0/24", "invert": True}, False, False),
        ({"mark": (1, 0xFFFFFFFF)}, False, False),
        ({"mark": (0, 1)}, True, True),
        ({"uid": (0, 0)}, True, True),
        ({"uid": (1000, 2000)}, False, False),
        ({"tos": 0x08}, True, True),
        ({"tos": 0x10}, False, False),
        ({"family": 6, "tos": 0x68}, True, True),
        ({"family": 6, "tos": 0x08}, False, False),
        ({"dscp": (26, 0x3F)}, True, True),
        ({"dscp": (24, 0x38)}, True, True),
        ({"dscp": (27, 0x3F)}, False, False),
        ({"iif": "lo"}, True, True),
        ({"iif": "ens1np0"}, False, False),
        ({"oif": "ens1np0"}, False, True),
        ({"oif": "ens2np0"}, False, False),
        ({"ip_proto": 17, "dport": Ports(4791, 4791)}, True, True),
        ({"dport": Ports(4791, 4791, 0xFFFF)}, True, True),
        ({"dport": Ports(4700, 4790)}, False, False),
        ({"sport": Ports(49152, 65534)}, True, True),
        ({"ip_proto": 6}, False, False),
        ({"l3mdev": True}, False, False),
        ({"tunnel": 5}, False, False),
    ],
)
def test_what_a_rule_selects(selectors, unbound, bound):
    made = rule(**selectors)
    flows = [dataclasses.replace(flow, family=made.family) for flow in (FLOW, BOUND)]
    if made.family == 6:
        assert [made.matches(flow) for flow in flows] == [unbound, bound]
    else:
        assert (made.matches(FLOW), made.matches(BOUND)) == (unbound, bound)


def test_the_rule_whose_table_answered_won():
    rules = [rule(5, table=77, source="192.0.2.2/32"), OURS, MAIN]
    assert winner(rules, FLOW, 1001, 16) == OURS
    assert winner(rules, FLOW, 77, 0) == rules[0]
    assert winner(rules, FLOW, 254, 0) == MAIN
    assert winner(rules, FLOW, 999, 0) is None


def test_a_suppressed_route_is_not_what_won():
    shy = rule(5, table=254, suppress_length=0)
    assert winner([shy, OURS, MAIN], FLOW, 254, 0) == MAIN
    assert winner([shy, OURS, MAIN], FLOW, 254, 24) == shy


def test_goto_nop_and_errors_are_walked_as_the_kernel_does():
    stop = rule(900, action=8, table=0)
    jump = rule(1, GOTO, target=900)
    assert list(walk([jump, OURS, stop, MAIN], FLOW)) == [dataclasses.replace(stop, after=jump)]
    # A goto without its target is not taken.
    assert list(walk([rule(1, GOTO, target=7), rule(2, NOP), OURS, MAIN], FLOW)) == [OURS, MAIN]


def test_a_selector_of_a_newer_kernel_leaves_it_undecided():
    odd = rule(5, unknown=(40,))
    assert winner([odd, OURS], FLOW, 1001, 16) == odd
    assert "selector 40" in str(odd)


def attribute(kind, value):
    return struct.pack("=HH", 4 + len(value), kind) + value + b"\0" * (-len(value) % 4)


def test_a_message_becomes_a_rule_with_every_selector():
    body = struct.pack("=8BI", socket.AF_INET, 24, 32, 8, 0, 0, 0, TO_TABLE, 2)
    body += attribute(2, socket.inet_aton("192.0.2.2")) + attribute(1, socket.inet_aton("198.51.100.0"))
    body += attribute(6, struct.pack("=I", 5000)) + attribute(15, struct.pack("=I", 77)) + attribute(21, b"\x04")
    body += attribute(10, struct.pack("=I", 1)) + attribute(16, struct.pack("=I", 0xF)) + attribute(17, b"ens1np0\0")
    body += attribute(20, struct.pack("=II", 0, 9)) + attribute(22, b"\x11") + attribute(14, b"\xff" * 4)
    body += attribute(24, struct.pack("=HH", 4791, 4791)) + attribute(29, struct.pack("=H", 0xFFFF))
    body += attribute(99, b"\0")
    found = rule_of(body)
    assert (found.source, found.destination, found.invert) == ("192.0.2.2/32", "198.51.100.0/24", True)
    assert found.unknown == (99,)
    text = "5000: not from 192.0.2.2/32 to 198.51.100.0/24 tos 0x08 fwmark 0x1/0xf oif ens1np0 uidrange 0-9 ipproto udp"
    assert str(found) == f"{text} dport 4791 selector 99 lookup 77"
    assert (found.protocol, found.suppress_length) == (4, -1)


def test_messages_of_multicast_routing_are_no_rules():
    assert rule_of(struct.pack("=8BI", 128, 0, 0, 0, 0, 0, 0, 1, 0)) is None


def test_ports_that_rules_can_tell_apart_are_asked():
    rules = [rule(sport=Ports(60000, 60010)), rule(sport=Ports(1, 1024)), rule(sport=Ports(65535, 65535, 0xFFFF))]
    assert source_ports(rules, 49152, 65535) == [49152, 60000, 60011, 65535]
    assert source_ports([], 49152, 65535) == [49152]
