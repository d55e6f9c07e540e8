# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What answers of the kernel mean. That they are the kernel's answers is held by tests/kernel/test_paths.py."""

from __future__ import annotations

import dataclasses
import errno

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route.model import (
    Address,
    Hop,
    Link,
    Route,
    RouteHost,
    Rule,
    Snapshot,
)
from ansible_collections.railops.rdma.plugins.module_utils._route.path_checks import checks_of
from ansible_collections.railops.rdma.plugins.module_utils._route.paths import (
    BOUND,
    TCP,
    UNBOUND,
    LookupResult,
    PathState,
    targets_of,
)
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import neighbors_of, parse_options

GOOD = Hop("ens1np0", "192.0.2.1")
MANAGED = Rule(4, 10001, 1001, source="192.0.2.2/32", protocol=143)
MAIN = Rule(4, 32766, 254, protocol=2)
FOREIGN = Rule(4, 5000, 77, source="192.0.2.2/32", protocol=3)


def options(**more):
    rails = [
        {
            "interface": f"ens{number}np0",
            "addresses": [
                {"address": f"192.0.2.{base + 2}", "subnet": f"192.0.2.{base}/27", "gateway": f"192.0.2.{base + 1}"}
            ],
        }
        for number, base in ((1, 0), (2, 32))
    ]
    return parse_options({"rails": rails, "rdma_prefixes": ["192.0.2.0/24"], **more})


WANT = options()
NEIGHBOR = {
    "host": "node2",
    "zone": "su2",
    "rails": [
        {"name": "rail1", "addresses": [{"address": "192.0.2.66"}]},
        {"name": "rail2", "addresses": [{"address": "192.0.2.98"}]},
    ],
}
LINKS = {name: Link(name, 9000, up=True) for name in ("ens1np0", "ens2np0")}
HELD = (Address("ens1np0", 4, "192.0.2.2", 27), Address("ens2np0", 4, "192.0.2.34", 27))


def host_of(rules=(), links=LINKS, held=HELD, routes=()):
    snapshot = Snapshot(links, frozenset(), frozenset(routes), frozenset(rules), {})
    return RouteHost(snapshot, names={name: name for name in links}, addresses=frozenset(held))


NEAR = neighbors_of([NEIGHBOR])
TARGETS = [item for item in targets_of(WANT, host_of(), NEAR, {}) if item.rail == "rail1"]
BEYOND = TARGETS[1]


def route(table=1001, dst="192.0.2.0/24", *hops, **more):
    hops = hops or (GOOD,)
    values = {"interface": hops[0].interface, "gateway": hops[0].gateway, "protocol": 143, **more}
    return Route(4, table, dst, 0, hops=hops if len(hops) > 1 else (), **values)


def away(table=77, **more):
    return route(table, "default", Hop("eth0", "203.0.113.1"), **{"protocol": 4, **more})


def state_of(answer=None, *, rules=(MANAGED, MAIN), only=(), **host):
    """A host on which the way to the neighbor is answered so, and the others are as planned.

    An answer is a route, or an error's number; `only` are the flows that get it.
    """
    lookups = []
    for target in TARGETS:
        right = route(1001, "192.0.2.0/24", Hop("ens1np0", target.gateway))
        for flow in target.flows:
            changed = target == BEYOND and flow in (only or target.flows)
            given = (answer if changed else None) or right
            lookups.append(LookupResult(target, flow, *((None, given) if isinstance(given, int) else (given,))))
    return PathState(host_of(rules, **host), tuple(lookups))


def check(state, want=WANT):
    return checks_of(want, TARGETS, state)[0]


def test_each_rail_is_tested_to_its_gateway_and_to_the_same_and_the_next_rail_of_neighbors():
    assert [str(target) for target in TARGETS] == [
        "192.0.2.1 dev ens1np0 src 192.0.2.2 table 1001",
        "192.0.2.66 via 192.0.2.1 dev ens1np0 src 192.0.2.2 table 1001",
        "192.0.2.98 via 192.0.2.1 dev ens1np0 src 192.0.2.2 table 1001",
    ]
    assert [target.what for target in TARGETS] == ["its gateway", "node2 rail1 in su2", "node2 rail2 in su2"]


def test_what_the_plan_does_not_route_is_not_checked():
    *_others, last = targets_of(options(rdma_prefixes=["203.0.113.0/24"]), host_of(), NEAR, {})
    assert last.what == "its gateway"


def test_the_planned_way_is_ok_whoever_leads_there():
    assert check(state_of())["status"] == "ok"
    # A route by way of the very address that is asked for is on link.
    assert check(state_of(route()))["status"] == "ok"


def test_an_existing_rule_that_leads_the_planned_way_is_a_warning():
    found = check(state_of(route(77), rules=(FOREIGN, MANAGED, MAIN)))
    assert (found["status"], found["fix"]) == (
        "warning",
        "Move that rule behind 10001, or remove it: `ip rule del priority 5000`.",
    )


def test_a_rule_that_diverts_is_named_with_its_maker_and_its_route():
    found = check(state_of(away(), rules=(FOREIGN, MANAGED, MAIN)))
    assert found["status"] == "deviation"
    assert found["cause"] == (
        "to 192.0.2.66 (node2 rail1 in su2): it leaves by eth0 via 203.0.113.1 instead of ens1np0;"
        " rule `5000: from 192.0.2.2 lookup 77` (made by boot) selects it;"
        " route `default via 203.0.113.1 dev eth0 table 77` (made by static)"
    )
    assert found["observed"] == [line for line in found["planned"] if "192.0.2.66" not in line]


@pytest.mark.parametrize(
    ("rule", "listed"),
    [
        pytest.param(FOREIGN, True, id="leads-there"),
        pytest.param(dataclasses.replace(FOREIGN, table=0, other="goto 32766"), True, id="jumps"),
        pytest.param(dataclasses.replace(FOREIGN, table=0, other="unreachable"), False, id="ends-the-look-up"),
        pytest.param(dataclasses.replace(FOREIGN, table=78), False, id="leads-to-another-table"),
        pytest.param(dataclasses.replace(FOREIGN, source="192.0.2.34/32"), False, id="another-rail"),
        pytest.param(dataclasses.replace(FOREIGN, dest="203.0.113.0/24"), False, id="another-destination"),
        pytest.param(dataclasses.replace(FOREIGN, priority=20000), True, id="behind-ours-which-lead-nowhere"),
        pytest.param(dataclasses.replace(FOREIGN, source="", other="fwmark 1"), True, id="by-what-is-not-judged"),
        # The exclusion rule of the style default_route, as a network manager makes it after a reboot.
        pytest.param(Rule(4, 2000, 77, dest="192.0.2.0/24", invert=True, protocol=4), False, id="exclusion-rule"),
        pytest.param(Rule(4, 2000, 77, dest="203.0.113.0/24", invert=True), True, id="not-to-others"),
        pytest.param(dataclasses.replace(FOREIGN, family=6), False, id="another-family"),
    ],
)
def test_the_rules_before_ours_that_select_the_packet_are_listed(rule, listed):
    cause = check(state_of(away(), rules=(rule, MANAGED, MAIN)))["cause"]
    assert ("selects it" in cause) is listed


def test_what_is_wrong_on_one_side_says_on_which():
    for only, words in (
        ([UNBOUND, TCP], "(a packet that is not bound to the interface)"),
        ([BOUND], "(a packet bound to ens1np0, as in RDMA's own route lookup)"),
        ([TCP], "(not RoCE, but TCP to port 18515)"),
    ):
        assert words in check(state_of(away(), rules=(FOREIGN, MANAGED), only=only))["cause"]


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (route(255, "192.0.2.66/32", Hop("lo"), other="local"), "leaves by lo"),
        (route(1001, "192.0.2.0/24", GOOD, Hop("ens2np0", "192.0.2.33")), "ens1np0 via 192.0.2.1 and ens2np0"),
        (route(1001, "192.0.2.0/24", Hop("ens1np0", "192.0.2.7")), "instead of ens1np0 via 192.0.2.1"),
        (route(other="encap"), "inside of another packet"),
        (errno.ENETUNREACH, "no route leads there"),
        (errno.EACCES, "it is prohibited"),
    ],
)
def test_other_answers_are_deviations(answer, words):
    found = check(state_of(answer))
    assert found["status"] == "deviation"
    assert words in found["cause"]


def test_a_missing_managed_rule_is_the_cause():
    found = check(state_of(route(254, "192.0.2.0/24", Hop("ens2np0", "192.0.2.33")), rules=(MAIN,)))
    assert "the rail's own rule 10001 is missing" in found["cause"]
    assert found["fix"] == "Run the playbook railops.rdma.hosts with the tag rail_network."


def test_a_blackhole_is_named_with_its_maker():
    hole = Route(4, 1001, "192.0.2.64/27", 0, other="blackhole", protocol=4)
    other = dataclasses.replace(hole, dst="203.0.113.0/24")
    found = check(state_of(errno.EINVAL, routes=(hole, other)))
    assert "it is dropped silently; route `blackhole 192.0.2.64/27 table 1001` (made by static)" in found["cause"]
    assert "203.0.113.0" not in found["cause"]
    assert found["fix"] == (
        "Remove that route at its source; on this host: `ip route del blackhole 192.0.2.64/27 table 1001`."
    )


def test_ipv4_without_a_route_by_the_interface_is_not_green():
    found = check(state_of(errno.EHOSTUNREACH, only=[BOUND]))
    assert "no route leaves by ens1np0" in found["cause"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"links": {}}, "no interface ens1np0"),
        ({"links": {"ens1np0": Link("ens1np0", 9000, up=False, carrier=False)}}, "ens1np0 is down"),
        ({"links": {"ens1np0": Link("ens1np0", 9000, up=True, carrier=False)}}, "no carrier"),
        ({"links": {"ens1np0": Link("ens1np0", 9000, up=True, dormant=True)}}, "ens1np0 is dormant"),
        ({"held": [Address("ens9np0", 4, "192.0.2.2", 27)]}, "192.0.2.2 is not on ens1np0 but on ens9np0"),
        ({"held": ()}, "192.0.2.2 is not on ens1np0"),
        ({"held": [Address("ens1np0", 4, "192.0.2.2", 27, usable=False)]}, "duplicate address detection"),
        ({"held": [*HELD, Address("lo", 4, "192.0.2.66", 32)]}, "192.0.2.66 is an address of this host itself"),
    ],
)
def test_what_lies_before_any_route_is_named_first(more, words):
    found = check(state_of(errno.ENETUNREACH if "links" in more else None, **more))
    assert found["status"] == "deviation"
    assert words in found["cause"]
    assert found["fix"]


def test_a_vrf_is_named():
    links = {"ens1np0": Link("ens1np0", 9000, up=True, master="blue")}
    found = check(state_of(away(254), rules=(MAIN,), links=links))
    assert "ens1np0 is a port of blue" in found["cause"]


def test_infiniband_is_not_tested():
    want = options(network="infiniband")
    assert [item["status"] for item in checks_of(want, [], state_of())] == ["skipped"]
