# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.module_utils._management_network import ManagementNetwork
from ansible_collections.railops.rdma.plugins.module_utils._route.change import Op, as_text, render, steps, toward
from ansible_collections.railops.rdma.plugins.module_utils._route.model import (
    Address,
    Hop,
    Link,
    Route,
    RouteHost,
    Rule,
    Snapshot,
    as_data,
    from_data,
)
from ansible_collections.railops.rdma.plugins.module_utils._route.plan import decide
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options

RAIL1 = {
    "interface": "ens1np0",
    "mtu": 4200,
    "addresses": [
        {"address": "192.0.2.2", "subnet": "192.0.2.0/27", "gateway": "192.0.2.1"},
        {"address": "2001:db8:1::2", "subnet": "2001:db8:1::/64", "gateway": "2001:db8:1::1"},
    ],
}
PARAMS = {"rails": [RAIL1], "rdma_prefixes": ["192.0.2.0/24", "2001:db8::/32"]}

DEFAULT_ROUTE = ManagementNetwork(default=frozenset({"ens1np0"}))
CONNECTION = ManagementNetwork(connection=frozenset({"ens1np0"}))


def host_of(*names, addresses=(), routes=(), rules=(), link=None, **more):
    links = {name: Link(name, 1500, False, max_mtu=9978, **(link or {})) for name in names}
    own = frozenset(item for item in addresses if item.interface in links or item.protocol == 143)
    snapshot = Snapshot(links, own, frozenset(routes), frozenset(rules), more.pop("sysctls", {}))
    return RouteHost(snapshot, names={name: name for name in names}, addresses=frozenset(addresses), **more)


def params(**values):
    return {**PARAMS, **values}


def plan(host=None, **values):
    return decide(parse_options(params(**values)), host or host_of("ens1np0"))


def after(host, done):
    """The host as it is when the plan was carried out."""
    return dataclasses.replace(host, snapshot=done.target, addresses=host.addresses | done.target.addresses)


def test_the_target_state_of_a_rail_as_an_engineer_writes_it():
    assert plan().after == {
        "links": ["ens1np0 mtu 4200 up"],
        "addresses": ["192.0.2.2/27 dev ens1np0", "2001:db8:1::2/64 dev ens1np0"],
        "routes": [
            "192.0.2.0/24 via 192.0.2.1 dev ens1np0 src 192.0.2.2 metric 101",
            "192.0.2.0/24 via 192.0.2.1 dev ens1np0 table 1001 src 192.0.2.2",
            "192.0.2.0/27 dev ens1np0 table 1001 scope link src 192.0.2.2",
            "2001:db8::/32 via 2001:db8:1::1 dev ens1np0 src 2001:db8:1::2 metric 101",
            "2001:db8:1::/64 dev ens1np0 table 1001 src 2001:db8:1::2",
            "2001:db8::/32 via 2001:db8:1::1 dev ens1np0 table 1001 src 2001:db8:1::2",
        ],
        "rules": ["10001: from 192.0.2.2 lookup 1001", "-6 10001: from 2001:db8:1::2 lookup 1001"],
        "sysctls": [],
    }


def test_a_diff_has_only_what_differs_and_what_is_the_same_of_several_rails_once():
    path = "net/ipv4/conf/{}/rp_filter = {}"
    now = {"links": [f"ens{rail}np0 mtu 1500 down" for rail in range(1, 9)], "sysctls": [], "rules": ["1: from all"]}
    target = {"links": [f"ens{rail}np0 mtu 4200 up" for rail in range(1, 9)], "sysctls": [], "rules": ["1: from all"]}
    for rail in range(1, 33):
        now["sysctls"].append(path.format(f"ens{rail}np0", 0 if rail == 3 else 2))
        target["sysctls"].append(path.format(f"ens{rail}np0", 2))
    others = ", ".join(f"ens{rail}np0" for rail in range(2, 9))
    assert as_text(now, target).splitlines() == [
        f"link ens1np0 mtu 1500 down (the same for {others})",
        "sysctl net/ipv4/conf/ens3np0/rp_filter = 0",
    ]
    assert as_text(target, now).splitlines() == [
        f"link ens1np0 mtu 4200 up (the same for {others})",
        "sysctl net/ipv4/conf/ens3np0/rp_filter = 2",
    ]


def test_default_route_has_its_default_in_the_table_and_the_exclusion_rules():
    done = plan(policy="default_route")
    assert "default via 192.0.2.1 dev ens1np0 table 1001 src 192.0.2.2" in done.after["routes"]
    assert "2000: not from all to 192.0.2.0/24 lookup main" in done.after["rules"]
    assert "-6 2000: not from all to 2001:db8::/32 lookup main" in done.after["rules"]


def test_infiniband_gets_address_and_mtu_only():
    done = plan(
        host_of("ens1np0", link={"kind": "infiniband", "mode": "datagram"}),
        network="infiniband",
        rails=[{**RAIL1, "mtu": 2044}],
    )
    assert (done.after["routes"], done.after["rules"], done.after["links"]) == ([], [], ["ens1np0 mtu 2044 up"])


@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"rdma_prefixes": ["192.0.2.0/27"]}, id="the-subnet-is-the-prefix"),
        pytest.param(
            {"rails": [{"interface": "ens1np0", "addresses": [{"address": "192.0.2.2", "subnet": "192.0.2.0/27"}]}]},
            id="no-gateway",
        ),
    ],
)
def test_no_route_beyond_the_subnet_where_there_is_no_need_or_no_way(values):
    routes = [line for line in plan(**values).after["routes"] if ":" not in line]
    assert routes == ["192.0.2.0/27 dev ens1np0 table 1001 scope link src 192.0.2.2"]


def test_an_address_that_is_held_back_is_made_again_with_its_rule_and_routes():
    host = host_of("ens1np0")
    target = plan(host).target
    held = frozenset(dataclasses.replace(item, usable=item.family == 4) for item in target.addresses)
    host = dataclasses.replace(host, snapshot=dataclasses.replace(target, addresses=held), addresses=held)
    text = [str(op) for phase in plan(host).phases for op in phase]
    kinds = [" ".join(line.split()[1:4]) for line in text]
    assert kinds == [
        "-6 rule delete",
        "-6 address delete",
        "-6 address add",
        "-6 route replace",
        "-6 route replace",
        "-6 route replace",
        "-6 rule add",
    ]


@pytest.mark.parametrize("out_of_service", [False, True])
def test_an_address_from_before_the_first_run_stays_known_while_its_interface_is_missing(out_of_service):
    rails = [{**RAIL1, "name": "rail1"}, {**RAIL1, "name": "rail2", "interface": "ens2np0", "addresses": []}]
    noted = frozenset({("ens1np0", "192.0.2.2")})
    ports = {"rail1": ("ens1np0", "02:00:00:00:00:01"), "rail2": ("ens2np0", "02:00:00:00:00:02")}
    host = host_of("ens2np0", noted=noted, ports=ports)
    if out_of_service:
        host = dataclasses.replace(host, out_of_service=frozenset({"ens1np0"}))
    without = plan(host, rails=rails)
    assert without.original == noted
    returned = host_of(
        "ens1np0", "ens2np0", addresses=[Address("ens1np0", 4, "192.0.2.2", 27)], noted=without.original, ports=ports
    )
    present = plan(returned, rails=rails)
    assert present.original == noted
    renumbered = [{**rails[0], "addresses": RAIL1["addresses"][1:]}, rails[1]]
    assert plan(returned, rails=renumbered).original == noted, "our files list the address until rail_persist succeeds"
    absent = plan(dataclasses.replace(after(returned, present), noted=present.original), rails=rails, state="absent")
    removed = [str(op) for phase in absent.phases for op in phase if op.verb == "delete"]
    assert "ip rule delete priority 10001 from 192.0.2.2 lookup 1001" in removed
    assert "ip address delete 192.0.2.2/27 dev ens1np0" not in removed


# --- conflicts -------------------------------------------------------------------------------------------

OTHER = Address("docker0", 4, "192.0.2.129", 25)


DATAGRAM = {"kind": "infiniband", "mode": "datagram"}
ELSEWHERE = (("192.0.2.0/24", Route(4, 254, "192.0.2.0/24", 0, "eth0", "203.0.113.1")),)
EXCLUDES = Rule(4, 2000, 254, dest="203.0.113.0/24", invert=True)
METRIC = "metric 105 on ens1np0: 101 to 108 are claimed"
BELONGS, UNIT = "conflicts with the exclusion rule", "rdma-routing.service"


def by(table, interface, metric):
    return Route(4, table, "203.0.113.0/24", metric, interface, "198.51.100.1", protocol=4)


@pytest.mark.parametrize(
    ("has", "values", "says", "fix"),
    [
        pytest.param(None, {}, "no interface 'ens1np0'", "fabric_interfaces", id="missing"),
        pytest.param({"management_network": DEFAULT_ROUTE}, {}, "default route", "force", id="default"),
        pytest.param({"management_network": CONNECTION}, {}, "connection", "force", id="connection"),
        pytest.param({}, {"rails": [{**RAIL1, "mtu": 9979}]}, "9979", "at most 9978", id="mtu"),
        pytest.param({"link": {"min_mtu": 1500}}, {"rails": [{**RAIL1, "mtu": 1400}]}, "1400", "1500", id="mtu-low"),
        pytest.param({"link": {"kind": "infiniband"}}, {}, "InfiniBand", "nic_link_type", id="link-type"),
        pytest.param({}, {"network": "infiniband"}, "Ethernet", "nic_link_type", id="link-type-ib"),
        pytest.param({"link": DATAGRAM}, {"network": "infiniband"}, "4200", "at most 4092", id="ipoib-datagram"),
        pytest.param({"addresses": [OTHER]}, {}, "docker0", "bip", id="docker0"),
        pytest.param({"addresses": [Address("lo", 4, "192.0.2.2", 32)]}, {}, "held by lo", "del", id="held"),
        pytest.param({"matches": ELSEWHERE}, {}, "routed elsewhere", "another supernet", id="routed"),
        pytest.param({"rules": [Rule(4, 10005, 254, other="fwmark 1")]}, {}, "10005", "rule del", id="priority"),
        pytest.param({"rules": [Rule(4, 7, 1003)]}, {}, "lookup 1003", "rule del", id="table"),
        pytest.param({"routes": [by(1002, "eth0", 0)]}, {}, "table 1002", "route del", id="foreign-route"),
        pytest.param({"routes": [by(254, "ens1np0", 105)]}, {}, METRIC, "route del", id="foreign-metric"),
        pytest.param({"rules": [EXCLUDES]}, {"policy": "default_route"}, BELONGS, UNIT, id="foreign-exclusion-rule"),
        pytest.param({}, {"sysctls": {"net/ipv4/conf/ens9/arp_ignore": "1"}}, "does not exist", "Correct", id="sysctl"),
    ],
)
def test_what_is_in_the_way_is_refused_with_its_fix(has, values, says, fix):
    host = host_of() if has is None else host_of("ens1np0", **has)
    with pytest.raises(InputError) as caught:
        plan(host, **values)
    assert says in str(caught.value)
    assert fix in str(caught.value)
    assert {check["status"] for check in caught.value.facts["checks"]} == {"deviation"}


STORAGE = Route(4, 254, "203.0.113.0/24", 300, "ens1np0", "192.0.2.1", protocol=4)
MOVED = {"address": "192.0.2.34", "subnet": "192.0.2.32/27", "gateway": "192.0.2.33"}


@pytest.mark.parametrize(
    ("route", "command"),
    [
        (STORAGE, "`ip route delete 203.0.113.0/24 via 192.0.2.1 dev ens1np0 metric 300`"),
        (
            dataclasses.replace(STORAGE, gateway="", source="192.0.2.2"),
            "`ip route delete 203.0.113.0/24 dev ens1np0 src 192.0.2.2 metric 300`",
        ),
        (
            dataclasses.replace(
                STORAGE, other="multipath", hops=(Hop("ens1np0", "192.0.2.1"), Hop("ens2np0", "192.0.2.65"))
            ),
            "`ip route delete 203.0.113.0/24 metric 300`",
        ),
    ],
    ids=["gateway", "source", "multipath"],
)
@pytest.mark.parametrize("values", [{"state": "absent"}, {"rails": [{**RAIL1, "addresses": [MOVED]}]}])
def test_a_users_route_by_a_gateway_that_goes_is_named_with_its_command(route, command, values):
    """Found by an attack: teardown failed halfway, as the kernel took no such route any more (H1)."""
    start = host_of("ens1np0")
    host = after(start, plan(start))
    routes = host.snapshot.routes | {route}
    host = dataclasses.replace(host, snapshot=dataclasses.replace(host.snapshot, routes=routes))
    assert not plan(host).changed
    with pytest.raises(InputError) as caught:
        plan(host, **values)
    assert command in str(caught.value)
    assert "[route_by_gateway]" in str(caught.value)
    other = host.addresses | {Address("ens1np0", 4, "192.0.2.30", 27)}
    reached = dataclasses.replace(host, addresses=other, snapshot=dataclasses.replace(host.snapshot, addresses=other))
    if not route.source:
        assert route in plan(reached, **values).target.routes


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(host_of("ens1np0", addresses=[Address("eth0", 4, "203.0.113.9", 24)]), id="another-network"),
        pytest.param(host_of("ens1np0", rules=[Rule(4, 1000, 500)]), id="spiderpool"),
        pytest.param(host_of("ens1np0", rules=[Rule(4, 10009, 1009, other="iif vrf9")]), id="behind-the-rails"),
        pytest.param(host_of("ens1np0", rules=[Rule(4, 9, 2004, other="fwmark 512")]), id="cilium"),
        pytest.param(host_of("ens1np0", routes=[Route(4, 254, "203.0.113.0/24", 101, "eth0")]), id="metric-elsewhere"),
        pytest.param(
            host_of("ens1np0", routes=[Route(4, 254, "192.0.2.0/27", 101, "ens1np0", protocol=2)]), id="kernel-metric"
        ),
        pytest.param(
            host_of("ens1np0", matches=(("192.0.2.0/24", Route(4, 254, "192.0.0.0/8", 0, "eth0")),)), id="wider-route"
        ),
        pytest.param(
            host_of("ens1np0", matches=(("192.0.2.0/24", Route(4, 254, "default", 0, "eth0")),)), id="default"
        ),
        pytest.param(
            host_of("ens1np0", matches=(("192.0.2.0/24", Route(4, 500, "192.0.2.9/32", 0, "veth1")),)), id="pod-route"
        ),
    ],
)
def test_existing_entries_beside_managed_ones_are_no_problem_and_stays(host):
    done = plan(host)
    assert host.snapshot.rules <= done.target.rules
    assert host.snapshot.routes <= done.target.routes
    assert host.snapshot.addresses <= done.target.addresses


def test_force_lets_a_named_interface_pass():
    host = host_of("ens1np0", management_network=DEFAULT_ROUTE, addresses=[OTHER])
    assert plan(host, force=["ens1np0", "docker0"]).changed


@pytest.mark.parametrize(
    ("own", "wider", "status", "changed"),
    [
        ("1", "0", "ok", False),
        ("2", "0", "ok", False),
        ("1", "2", "ok", False),
        ("0", "2", "deviation", True),
        ("3", "0", "deviation", True),
        ("1", "3", "deviation", False),
        ("1", "8", "deviation", False),
    ],
)
def test_arp_ignore_1_and_2_serve_a_rail_equally(own, wider, status, changed):
    key = "net/ipv4/conf/ens1np0/arp_ignore"
    host = host_of("ens1np0", sysctls={key: own}, sysctls_all={key: wider})
    done = plan(host, sysctls={key: "1"})
    check = next(item for item in done.checks if item["id"] == "network_sysctls")
    assert (check["status"], check["planned"] != check["observed"]) == (status, status != "ok")
    assert [str(op) for phase in done.phases for op in phase if "sysctl" in str(op)] == (
        [f"sysctl {key}=1"] if changed else []
    )


# --- input ------------------------------------------------------------------------------------------------------------


def rail1_in(subnet, address="192.0.2.2", **more):
    return {"rails": [{**RAIL1, "addresses": [{"address": address, "subnet": subnet, **more}]}]}


def in_vlan(number, **port):
    return {"rails": [{**port, "vlan": number}]}


@pytest.mark.parametrize(
    ("values", "place", "says"),
    [
        pytest.param({"rails": [{**RAIL1, "table": 500}]}, "rails[0].table", "500", id="table"),
        pytest.param({"rails": [{**RAIL1, "table": 248}]}, "rails[0].table", "253, which is the kernel's", id="main"),
        pytest.param({"rails": [RAIL1, {**RAIL1, "table": 1055}]}, "rails[1].table", "1001 to 1008", id="two-bases"),
        pytest.param({"rails": [{**RAIL1, "rule_priority": 1000}]}, "rails[0].rule_priority", "1000", id="priority"),
        pytest.param({"rails": [{"mtu": 1500}]}, "rails[0]", "neither", id="no-interface"),
        pytest.param({"rails": [RAIL1, {**RAIL1, "addresses": []}]}, "rails[1].interface", "already", id="twice"),
        pytest.param({"rdma_prefixes": ["192.0.2.1/24"]}, "rdma_prefixes[0]", "host bits", id="prefix"),
        pytest.param({"sysctls": {"../etc/passwd": "1"}}, "sysctls", "slash notation", id="sysctl"),
        pytest.param({"sysctls": {"net/ipv4/../../kernel/x": "1"}}, "sysctls", "slash notation", id="sysctl-dots"),
        pytest.param(
            {"policy": "default_route", "rdma_prefixes": ["192.0.2.0/24", "198.51.100.0/24"]},
            "policy",
            "there are 2",
            id="two-prefixes",
        ),
        pytest.param(
            rail1_in("192.0.2.0/27", "192.0.2.99"), "rails[0].addresses[0].address", "outside", id="address-outside"
        ),
        pytest.param(
            rail1_in("192.0.2.0/27", gateway="192.0.2.99"),
            "rails[0].addresses[0].gateway",
            "192.0.2.99 is outside",
            id="gateway-outside",
        ),
        pytest.param(rail1_in("192.0.2.5/27"), "rails[0].addresses[0]", "host bits", id="subnet-host-bits"),
        pytest.param(in_vlan(101, interface="enp193s0f0np0"), "rails[0]", "longer than 15", id="vlan-name"),
        pytest.param(in_vlan(4095, interface="ens1np0"), "rails[0]", "no VLAN", id="vlan-number"),
        pytest.param(in_vlan(7, pci="0000:1a:00.0"), "rails[0]", "needs the interface's name", id="vlan-by-pci"),
    ],
)
def test_bad_input_is_named_with_its_place(values, place, says):
    with pytest.raises(InputError) as caught:
        parse_options(params(**values))
    assert any(item.place.startswith(place) and says in item.problem for item in caught.value.problems)
    assert all(item.fix for item in caught.value.problems)


def test_all_input_errors_are_reported_at_once():
    with pytest.raises(InputError) as caught:
        parse_options(params(rails=[{**RAIL1, "table": 254, "interface": "no/name"}]))
    assert {item.place for item in caught.value.problems} >= {"rails[0].table", "rails[0].interface"}


def test_values_are_made_canonical_once():
    want = parse_options(params(rdma_prefixes=["2001:DB8:0::/32", "192.0.2.0/24", "192.0.2.0/24"]))
    assert want.prefixes == ("192.0.2.0/24", "2001:db8::/32")
    assert parse_options(params(rdma_prefixes=list(want.prefixes))) == want


# --- the algebra of snapshots -----------------------------------------------------------------------------------------

ADDRESSES = st.frozensets(
    st.builds(Address, st.just("a"), st.just(4), st.sampled_from(["192.0.2.1", "192.0.2.2", "192.0.2.3"]), st.just(24))
)
ROUTES = st.frozensets(
    st.builds(
        Route,
        st.just(4),
        st.sampled_from([254, 1001]),
        st.sampled_from(["default", "192.0.2.0/24"]),
        st.sampled_from([0, 101]),
        st.just("a"),
        st.sampled_from(["", "192.0.2.9"]),
        st.sampled_from(["", "192.0.2.1"]),
    ),
    max_size=4,
)
RULES = st.frozensets(
    st.builds(Rule, st.just(4), st.sampled_from([10001, 10002]), st.just(1001), st.sampled_from(["", "192.0.2.1/32"]))
)
SNAPSHOTS = st.builds(
    Snapshot,
    st.builds(lambda up, mtu: {"a": Link("a", mtu, up)}, st.booleans(), st.sampled_from([1500, 9000])),
    ADDRESSES,
    ROUTES,
    RULES,
    st.dictionaries(st.just("net/ipv4/x"), st.sampled_from("01"), min_size=1),
)


def carry_out(snapshot, phases):
    """A kernel without side effects: what the messages say is what happens."""
    links, sysctls = dict(snapshot.links), dict(snapshot.sysctls)
    sets = {Address: set(snapshot.addresses), Route: set(snapshot.routes), Rule: set(snapshot.rules)}
    for op in (op for phase in phases for op in phase):
        if isinstance(op.what, tuple):
            sysctls[op.what[0]] = op.what[1]
        elif isinstance(op.what, Link):
            links[op.what.name] = op.what
        elif op.verb == "delete":
            sets[type(op.what)].remove(op.what)
        else:
            if op.verb == "replace":
                sets[Route] = {item for item in sets[Route] if item.key != op.what.key}
            sets[type(op.what)].add(op.what)
    return Snapshot(links, *(frozenset(sets[kind]) for kind in (Address, Route, Rule)), sysctls)


def one_route_per_key(snapshot):
    return len({route.key for route in snapshot.routes}) == len(snapshot.routes)


@settings(deadline=None, max_examples=60)
@given(SNAPSHOTS.filter(one_route_per_key), SNAPSHOTS.filter(one_route_per_key))
def test_the_messages_lead_from_any_state_to_any_other_and_back(one, other):
    there = carry_out(one, steps(one, other))
    assert there == other
    assert steps(other, other) == ()
    assert carry_out(other, steps(other, toward(other, other, one))) == one


@settings(deadline=None, max_examples=60)
@given(SNAPSHOTS, SNAPSHOTS)
def test_snapshots_survive_json(one, other):
    assert from_data(json.loads(json.dumps(as_data(one)))) == one
    assert render(one) == render(from_data(as_data(one)))


@settings(deadline=None, max_examples=60)
@given(SNAPSHOTS, SNAPSHOTS)
def test_what_others_did_meanwhile_is_kept(one, other):
    theirs = Route(4, 77, "198.51.100.0/24", 0, "b")
    now = dataclasses.replace(one, routes=one.routes | {theirs})
    assert theirs in toward(now, one, other).routes


def test_an_operation_reads_as_its_command():
    rule = Rule(6, 10001, 1001, "2001:db8::2/128")
    assert str(Op("add", rule)) == "ip -6 rule add priority 10001 from 2001:db8::2 lookup 1001"


# --- rails in VLANs ---------------------------------------------------------------------------------------------------

TAGGED = {**RAIL1, "vlan": 101}
DEVICE = "ens1np0.101"


def tagged_host(vlan=101, parent="ens1np0", **more):
    host = host_of("ens1np0", DEVICE)
    links = {**host.snapshot.links, DEVICE: Link(DEVICE, 1500, False, vlan=vlan, parent=parent, **more)}
    return dataclasses.replace(host, snapshot=dataclasses.replace(host.snapshot, links=links))


def test_a_vlan_is_made_after_its_port_is_up_and_before_anything_is_put_on_it():
    key = f"net/ipv4/conf/{DEVICE}/arp_ignore"
    host = host_of("ens1np0", sysctls={key: ""})
    done = plan(host, rails=[TAGGED], sysctls={key: "1"})
    words = [str(op) for phase in done.phases for op in phase]
    assert words[:4] == [
        "ip link set ens1np0 mtu 4200 up",
        f"ip link add link ens1np0 name {DEVICE} type vlan id 101",
        f"sysctl {key}=1",
        f"ip link set {DEVICE} mtu 4200 up",
    ]
    assert {item.interface for item in done.target.addresses | done.target.routes} == {DEVICE}
    assert [check["observed"] for check in done.checks if check["id"] == "network_link"] == ["down"]


def test_a_rail_that_moves_into_a_vlan_leaves_its_port():
    host = host_of("ens1np0")
    untagged = after(host, plan(host))
    done = plan(untagged, rails=[TAGGED])
    assert {item.interface for item in done.target.addresses} == {DEVICE}
    # And back: what this collection made goes, last of all.
    tagged = after(untagged, done)
    back = plan(dataclasses.replace(tagged, names={**tagged.names, DEVICE: DEVICE}))
    assert DEVICE not in back.target.links
    assert str(back.phases[-1][-1]) == f"ip link delete {DEVICE}"


def test_what_others_made_is_used_and_left():
    host = tagged_host()
    done = plan(host, rails=[TAGGED])
    assert not any(op.verb == "add" and isinstance(op.what, Link) for phase in done.phases for op in phase)
    gone = plan(after(host, done), rails=[TAGGED], state="absent")
    assert DEVICE in gone.target.links
    assert gone.target.addresses == frozenset()


@pytest.mark.parametrize(
    ("have", "says"),
    [
        ({"vlan": 99}, "is VLAN 99 of ens1np0"),
        ({"parent": "ens2np0"}, "is VLAN 101 of ens2np0"),
        ({"vlan": 0}, "is no VLAN's interface"),
    ],
)
def test_a_name_in_use_is_refused(have, says):
    with pytest.raises(InputError, match=says):
        plan(tagged_host(**have), rails=[TAGGED])


def test_a_change_back_makes_a_vlan_again_that_was_removed():
    before = after(tagged_host(managed=True), plan(tagged_host(managed=True), rails=[TAGGED])).snapshot
    gone = dataclasses.replace(before, links={"ens1np0": before.links["ens1np0"]}, addresses=frozenset())
    again = toward(gone, source=gone, target=before)
    assert DEVICE in again.links
    assert [op.verb for phase in steps(gone, again) for op in phase if isinstance(op.what, Link)] == ["add", "set"]
    assert from_data(as_data(before)) == before


def test_an_upper_device_is_lowered_by_the_kernel_and_raised_after_its_port():
    port, pod = Link("ens1np0", 9000, True, index=2), Link("a0", 9000, True, index=3, parent="ens1np0", depth=1)
    high = Snapshot({"ens1np0": port, "a0": pod}, *[frozenset()] * 3, {})
    low = dataclasses.replace(
        high, links={name: dataclasses.replace(link, mtu=4200) for name, link in high.links.items()}
    )
    assert [op.what.name for phase in steps(high, low) for op in phase] == ["ens1np0"]
    assert [op.what.name for phase in steps(low, high) for op in phase] == ["ens1np0", "a0"]
    done = plan(RouteHost(high, names={"ens1np0": "ens1np0"}), adopt_ports=["ens1np0"])
    assert done.before["links"] == ["a0 mtu 9000 up", "ens1np0 mtu 9000 up"]
    assert done.after["links"] == ["a0 mtu 4200 up", "ens1np0 mtu 4200 up"]
    with pytest.raises(InputError, match="a0 with 9000"):
        plan(RouteHost(high, names={"ens1np0": "ens1np0"}))


def test_a_fabric_with_other_bases_claims_those_numbers_and_takes_its_old_ones_away():
    moved = {**RAIL1, "table": 3001, "rule_priority": 5001, "metric": 301}
    left = [Rule(4, 10001, 1001, source="192.0.2.2/32", protocol=143), Rule(4, 10002, 1002, other="iif lo")]

    done = plan(host_of("ens1np0", rules=left), rails=[moved])

    assert done.after["rules"] == ["5001: from 192.0.2.2 lookup 3001", "-6 5001: from 2001:db8:1::2 lookup 3001"]
    assert {line.partition("metric ")[2] for line in done.after["routes"] if "table" not in line} == {"301"}
    assert done.target.rules & set(left) == {left[1]}
    with pytest.raises(InputError, match="5001-5008, 3001-3008"):
        plan(host_of("ens1np0", rules=[Rule(4, 5008, 77)]), rails=[moved])


@pytest.mark.parametrize(("now", "changes"), [("512", True), ("2048", False), ("65536", False)])
def test_a_larger_neighbor_table_stays(now, changes):
    key = "net/ipv4/neigh/default/gc_thresh2"

    done = plan(host_of("ens1np0", sysctls={key: now}), sysctls={key: "2048"})

    assert (done.target.sysctls[key] != now) is changes


FIRST, SECOND, NEW = (f"02:00:00:00:00:0{number}" for number in (1, 2, 9))
PAIR = [
    {"interface": f"ens{n}np0", "addresses": [{"address": f"192.0.2.{32 * n}", "subnet": f"192.0.2.{32 * n}/27"}]}
    for n in (1, 2)
]
TURNED = [{**PAIR[0], "interface": "ens2np0"}, {**PAIR[1], "interface": "ens1np0"}]


def with_macs(first, second):
    """A host whose last run had FIRST on ens1np0 and SECOND on ens2np0, with these addresses now."""
    start = host_of("ens1np0", "ens2np0")
    links = {
        name: dataclasses.replace(link, mac={"ens1np0": first, "ens2np0": second}[name])
        for name, link in start.snapshot.links.items()
    }
    had = {"rail1": ("ens1np0", FIRST), "rail2": ("ens2np0", SECOND)}
    return dataclasses.replace(start, ports=had, snapshot=dataclasses.replace(start.snapshot, links=links))


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (FIRST, f"rail2: ens2np0 has the MAC address {FIRST}, which rail1 had as ens1np0; rail2 had {SECOND}."),
        (NEW, None),
    ],
    ids=["exchanged", "moved"],
)
def test_ports_that_changed_places_are_refused_by_name(second, says):
    """Found by an attack: `hosts` gave each rail the addresses of the other's wire (H3)."""
    host = with_macs(SECOND, second)
    with pytest.raises(InputError) as caught:
        plan(host, rails=PAIR)
    first = f"rail1: ens1np0 has the MAC address {SECOND}, which rail2 had as ens2np0; rail1 had {FIRST}."
    assert [problem.problem for problem in caught.value.problems] == [first, *([says] if says else [])]
    assert "remove /var/lib/railops-rdma/rails.json on the host" in caught.value.problems[0].fix
    assert plan(host, rails=PAIR, state="absent")
    assert plan(dataclasses.replace(host, ports={}), rails=PAIR).ports["rail1"] == ("ens1np0", SECOND)


def test_a_port_that_took_the_name_of_an_absent_card_is_refused():
    host = with_macs(SECOND, SECOND)
    links = {"ens1np0": host.snapshot.links["ens1np0"]}
    names = {"ens1np0": "ens1np0"}
    host = dataclasses.replace(host, names=names, snapshot=dataclasses.replace(host.snapshot, links=links))
    with pytest.raises(InputError, match="rails_exchanged"):
        plan(host, rails=PAIR)


@pytest.mark.parametrize(
    ("macs", "rails"),
    [((FIRST, SECOND), PAIR), ((NEW, SECOND), PAIR), ((SECOND, FIRST), TURNED), ((FIRST, SECOND), TURNED)],
    ids=["same", "replaced", "exchanged-in-inventory-too", "exchanged-in-inventory"],
)
def test_a_replaced_card_and_an_exchange_in_the_inventory_are_taken(macs, rails):
    have = dict(zip(("ens1np0", "ens2np0"), macs))  # noqa: B905
    made = plan(with_macs(*macs), rails=rails)
    assert made.ports == {f"rail{n}": (rail["interface"], have[rail["interface"]]) for n, rail in enumerate(rails, 1)}


@pytest.mark.parametrize("base", [0, 2000])
def test_booted_objects_are_managed_after_a_port_rename(base):
    """A manager's routes have its own protocol, and our files have the port's old name."""
    start = host_of("ens1np0")
    made = plan(start).target
    booted = {
        part: frozenset(dataclasses.replace(item, protocol=4) for item in getattr(made, part))
        for part in ("routes", "rules")
    }
    addresses = frozenset(dataclasses.replace(item, protocol=0) for item in made.addresses)
    old = {
        "addresses": frozenset(dataclasses.replace(item, interface="eth2") for item in addresses),
        "routes": frozenset(dataclasses.replace(item, interface="eth2") for item in booted["routes"]),
        "rules": booted["rules"],
    }
    now = dataclasses.replace(start.snapshot, links=made.links, addresses=addresses, **booted)
    files = Snapshot({}, **old, sysctls={})
    host = dataclasses.replace(start, snapshot=now, addresses=addresses, retained=files)
    moved = {
        **RAIL1,
        **({"table": 3001, "rule_priority": 12001, "metric": 301} if base else {}),
        "addresses": [{"address": "198.51.100.2", "subnet": "198.51.100.0/27", "gateway": "198.51.100.1"}],
    }

    done = plan(host, rails=[moved], rdma_prefixes=["198.51.100.0/24"])

    assert {item.address for item in done.target.addresses} == {"198.51.100.2"}
    assert {item.protocol for part in ("routes", "rules") for item in getattr(done.target, part)} == {143}
    there = dataclasses.replace(start.snapshot, links={**made.links, "eth2": Link("eth2", 1500, True)})
    kept = dataclasses.replace(host, snapshot=dataclasses.replace(now, links=there.links))
    with pytest.raises(InputError, match="existing"):
        plan(kept, rails=[moved], rdma_prefixes=["198.51.100.0/24"])
