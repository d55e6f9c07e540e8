# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random things that happen to a host, or to its port at the leaf. Which of them break a rail is said by packets."""

from __future__ import annotations

import contextlib
import random
import typing as t

from ansible_collections.railops.rdma.tests.kernel.lossy import losing

AWAY = "198.51.100.9"
MAC = "02:00:00:00:00:99"

# Why an audit is red although packets may arrive, each with a kind that shows it. At most ten, and each still needed:
# test_what_is_listed_is_red_where_nothing_is_lost.
GATEWAY = "a gateway with two holders: whom the others' tables have is chance"
OTHER_RAIL = "packets that leave by another rail arrive, and not as planned"
ICMP = "a rule for ICMP alone: the pings are cut and the packets are not"
TWO_LEAVES = "one hardware address at two leaves, or two routed ports: each of them knows one holder"
NO_ECHO = "a host that answers no echo: what nobody can prove is red"
NOT_OURS = "a route in a table of ours that is not ours: the next run refuses the host, so the audit names it"
LISTED = {
    GATEWAY: "taken_gateway",
    OTHER_RAIL: "rule_from_own",
    ICMP: "rule_for_some",
    TWO_LEAVES: "same_mac",
    NO_ECHO: "no_echo",
    NOT_OURS: "route_of_table",
}


class Break(t.NamedTuple):
    """What happens, where: lines for `ip`, or `key=value` for /proc/sys, each with its namespace; and what undoes it.

    :param rail: None where all of a host's rails may be hit.
    :param free: nothing of the plan is touched, so an audit may be red only where packets are lost.
    :param listed: why an audit is red although the packets arrive; empty where it must not be.
    :param lossy: the interface that loses half of what comes in, and its namespace.
    """

    kind: str
    host: str
    rail: str | None
    do: tuple[tuple[str, str], ...]
    undo: tuple[tuple[str, str], ...]
    free: bool = False
    listed: str = ""
    lossy: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.kind} at {self.host} {self.rail}: {'; '.join(line for _space, line in self.do)}"


class Breaks:
    """Draws what happens."""

    def __init__(self, seed: int, spaces: dict[str, str], core: str, plans: dict[str, dict]) -> None:
        """Remember where: the namespace of each host, that of the leaves, and the host plans."""
        self.draw = random.Random(seed)
        self.spaces, self.core, self.plans = spaces, core, plans

    def draw_one(self, kind: str | None = None) -> Break:
        """Return one, of all kinds alike."""
        name = kind or self.draw.choice(KINDS)
        host = self.draw.choice(sorted(self.plans))
        place = self.draw.choice(self.plans[host]["rails"])
        item = self.draw.choice(place["addresses"])
        return getattr(self, name)(host, place, item)._replace(kind=name)

    # --- what there is to choose from ---------------------------------------------------------------------------------

    def made(self, host: str, place: dict | None, *pairs: tuple[str, str], **more: t.Any) -> Break:
        space = self.spaces[host]
        do = tuple((space, line) for line, _undo in pairs)
        undo = tuple((space, line) for _line, line in pairs[::-1] if line)
        return Break("", host, place and place["name"], do, undo, **more)

    def at_leaf(self, host: str, place: dict, line: str, undo: str) -> Break:
        port = f"n{host[4:]}r{place['index']}"
        return Break("", host, place["name"], ((self.core, line.format(port)),), ((self.core, undo.format(port)),))

    def far(self, host: str, item: dict, rail: str = "") -> tuple[str, str]:
        """Return a host and its address on a rail, of a family."""
        other = self.draw.choice([name for name in sorted(self.plans) if name != host])
        rails = [place for place in self.plans[other]["rails"] if rail in ("", place["name"])]
        place = self.draw.choice(rails)
        return other, next(one["address"] for one in place["addresses"] if six(one) == six(item))

    # --- links --------------------------------------------------------------------------------------------------------

    def link_down(self, host: str, place: dict, _item: dict) -> Break:
        name = place["interface"]
        return self.made(host, place, (f"link set {name} down", f"link set {name} up"))

    def cable_pulled(self, host: str, place: dict, _item: dict) -> Break:
        return self.at_leaf(host, place, "link set {} down", "link set {} up")

    def leaf_mtu(self, host: str, place: dict, _item: dict) -> Break:
        mtu = self.draw.choice([1500, 2044, 3900])
        return self.at_leaf(host, place, f"link set {{}} mtu {mtu}", "link set {} mtu 9216")

    def host_mtu(self, host: str, place: dict, _item: dict) -> Break:
        name, mtu = place["interface"], self.draw.choice([1500, 9000])
        return self.made(host, place, (f"link set {name} mtu {mtu}", f"link set {name} mtu 4200"))

    def lossy_port(self, host: str, place: dict, _item: dict) -> Break:
        there = (self.spaces[host], place["interface"])
        if self.draw.random() < 0.5:
            there = (self.core, f"n{host[4:]}r{place['index']}")
        return Break("", host, place["name"], (), (), lossy=there)

    def arp_off(self, host: str, place: dict, _item: dict) -> Break:
        name = place["interface"]
        return self.made(host, place, (f"link set {name} arp off", f"link set {name} arp on"))

    def passthru(self, host: str, place: dict, _item: dict) -> Break:
        add = f"link add link {place['interface']} name thief0 type macvlan mode passthru"
        return self.made(host, place, (add, "link del thief0"), ("link set thief0 up", ""))

    def bridge_port(self, host: str, place: dict, _item: dict) -> Break:
        name = place["interface"]
        pairs = (
            ("link add br7 type bridge", "link del br7"),
            (f"link set {name} master br7", f"link set {name} nomaster"),
        )
        return self.made(host, place, *pairs, ("link set br7 up", ""))

    # --- addresses ----------------------------------------------------------------------------------------------------

    def lost_address(self, host: str, place: dict, item: dict) -> Break:
        where = f"{item['address']}/{length(item)} dev {place['interface']}"
        # What goes along with it comes back by the role alone.
        more = "nodad" if six(item) else ""
        return self.made(host, place, (f"address del {where}", f"address add {where} {more}"))

    def lost_local_entry(self, host: str, place: dict, item: dict) -> Break:
        words, where = flag(item), f"local {item['address']} dev {place['interface']} table local proto kernel"
        scope = "" if six(item) else f" scope host src {item['address']}"
        return self.made(host, place, (f"{words} route del {where}", f"{words} route add {where}{scope}"))

    def taken_address(self, host: str, place: dict, item: dict) -> Break:
        """The host has another one's address on its rail."""
        _other, address = self.far(host, item, place["name"])
        where, more = f"{address}/{length(item)} dev {place['interface']}", " nodad" if six(item) else ""
        return self.made(host, place, (f"address add {where}{more}", f"address del {where}"), free=True)

    def taken_gateway(self, host: str, place: dict, item: dict) -> Break:
        where, more = f"{item['gateway']}/{length(item)} dev {place['interface']}", " nodad" if six(item) else ""
        return self.made(host, place, (f"address add {where}{more}", f"address del {where}"), free=True, listed=GATEWAY)

    def address_on_lo(self, host: str, _place: dict, item: dict) -> Break:
        _other, address = self.far(host, item)
        where = f"{address}/{'128' if six(item) else '32'} dev lo"
        return self.made(host, None, (f"address add {where}", f"address del {where}"), free=True)

    def second_address(self, host: str, place: dict, item: dict) -> Break:
        """An address that nobody has, in the rail's own net."""
        address = (
            item["address"].rpartition("::")[0] + "::ee" if six(item) else item["address"].rpartition(".")[0] + ".238"
        )
        where, more = f"{address}/{length(item)} dev {place['interface']}", " nodad" if six(item) else ""
        return self.made(host, place, (f"address add {where}{more}", f"address del {where}"), free=True)

    # --- rules and routes ---------------------------------------------------------------------------------------------

    def lost_rule(self, host: str, place: dict, item: dict) -> Break:
        text = f"from {item['address']} lookup {place['table']} priority {place['rule_priority']}"
        return self.made(host, place, (f"{flag(item)} rule del {text}", f"{flag(item)} rule add {text} protocol 143"))

    def lost_routes(self, host: str, place: dict, item: dict) -> Break:
        # Comes back by the role.
        return self.made(host, place, (f"{flag(item)} route flush table {place['table']}", ""))

    def rule_to_one(self, host: str, _place: dict, item: dict) -> Break:
        _other, address = self.far(host, item)
        end = self.draw.choice(["unreachable", "blackhole", "prohibit", "lookup 2000", "lookup main"])
        return self._rule(host, None, item, f"to {address}", end)

    def rule_from_own(self, host: str, place: dict, item: dict) -> Break:
        end = self.draw.choice(["unreachable", "lookup 2000", "lookup main", "goto 32766"])
        return self._rule(host, place, item, f"from {item['address']}", end)

    def rule_for_some(self, host: str, _place: dict, item: dict) -> Break:
        choices = [
            "ipproto 17 dport 4791",
            "ipproto 6",
            "uidrange 1000-2000",
            "uidrange 0-0",
            "ipproto 17 dport 53",
        ]
        choices += ["fwmark 1", "iif eth0", "oif nosuch0", "ipproto 1", "ipproto 17 sport 53"]
        return self._rule(host, None, item, self.draw.choice(choices), self.draw.choice(["blackhole", "lookup 2000"]))

    def rule_behind(self, host: str, place: dict, item: dict) -> Break:
        return self._rule(host, place, item, f"from {item['address']}", "blackhole", priority=20000)

    def _rule(self, host: str, place: dict | None, item: dict, selector: str, end: str, priority: int = 906) -> Break:
        words = flag(item)
        prefix = "::/0" if six(item) else "0.0.0.0/0"
        pairs = [(f"{words} route add blackhole {prefix} table 2000", f"{words} route flush table 2000")]
        rule = f"{words} rule add {selector} {end} priority {priority}"
        listed = ICMP if selector == "ipproto 1" else OTHER_RAIL if end in ("lookup main", "goto 32766") else ""
        pairs += [(rule, f"{words} rule del priority {priority}")]
        return self.made(host, place, *pairs, free=True, listed=listed)

    def route_of_table(self, host: str, place: dict, item: dict) -> Break:
        _other, address = self.far(host, item)
        bits = "128" if six(item) else "32"
        kind = self.draw.choice(["blackhole", "unreachable", "prohibit", "throw"])
        table = self.draw.choice([place["table"], 255])
        where = f"{flag(item)} route {{}} {kind} {address}/{bits} table {table}"
        listed = NOT_OURS if kind == "throw" and table != 255 else ""
        return self.made(host, None, (where.format("add"), where.format("del")), free=True, listed=listed)

    def main_route(self, host: str, _place: dict, item: dict) -> Break:
        _other, address = self.far(host, item)
        where = f"{flag(item)} route {{}} blackhole {address}/{'128' if six(item) else '32'}"
        return self.made(host, None, (where.format("add"), where.format("del")), free=True)

    def route_mtu(self, host: str, place: dict, item: dict) -> Break:
        """A route of ours with an MTU; the role takes it away."""
        words, lock = flag(item), self.draw.choice(["", "lock "])
        rest = f"{subnet(item)} dev {place['interface']} src {item['address']} table {place['table']} proto 143"
        rest += "" if six(item) else " scope link"
        change = (f"{words} route change {rest} mtu {lock}1400", f"{words} route change {rest}")
        return self.made(host, place, change)

    # --- neighbours and settings --------------------------------------------------------------------------------------

    def neighbour(self, host: str, place: dict, item: dict) -> Break:
        address = self.draw.choice([item["gateway"], self.far(host, item, place["name"])[1]])
        state, where = self.draw.choice(["permanent", "noarp"]), f"{address} dev {place['interface']}"
        pair = (f"neighbor replace {where} lladdr {MAC} nud {state}", f"neighbor del {where}")
        return self.made(host, place, pair, free=True)

    def right_neighbour(self, host: str, place: dict, item: dict) -> Break:
        """A neighbour set by hand as it is."""
        other, address = self.far(host, item, place["name"])
        where = f"{address} dev {place['interface']}"
        right = f"neighbor replace {where} lladdr {hardware(other, place['index'])} nud permanent"
        return self.made(host, place, (right, f"neighbor del {where}"), free=True)

    def strict_source(self, host: str, _place: dict, _item: dict) -> Break:
        key = "net/ipv4/conf/all/rp_filter"
        return self.made(host, None, (f"{key}={self.draw.choice([1, 2])}", f"{key}=0"), free=True)

    def nexthop(self, host: str, place: dict, item: dict) -> Break:
        """A route of somebody else by a next hop object, the way of the plan."""
        _other, address = self.far(host, item, place["name"])
        words, bits = flag(item), "128" if six(item) else "32"
        way = f"via {item['gateway']} dev {place['interface']}"
        pairs = [(f"{words} nexthop add id 70 {way}", f"{words} nexthop del id 70")]
        where = f"{address}/{bits} nhid 70"
        pairs += [(f"{words} route add {where}", f"{words} route del {address}/{bits}")]
        return self.made(host, place, *pairs, free=True)

    def same_mac(self, host: str, place: dict, _item: dict) -> Break:
        other = self.draw.choice([name for name in sorted(self.plans) if name != host])
        rail = self.draw.choice(self.plans[other]["rails"])
        # On routed ports each host is alone in its subnet, the same rail of others too.
        there, near = rail["index"], subnet(rail["addresses"][0]) == subnet(place["addresses"][0])
        listed = "" if near else TWO_LEAVES
        name = place["interface"]
        own, mac = hardware(host, place["index"]), hardware(other, there)
        return self.made(
            host, place, (f"link set {name} address {mac}", f"link set {name} address {own}"), free=True, listed=listed
        )

    def short_life(self, host: str, place: dict, item: dict) -> Break:
        hops = self.draw.choice(["1", "1", "64"])
        if six(item):
            key = f"net/ipv6/conf/{place['interface']}/hop_limit"
            return self.made(host, place, (f"{key}={hops}", f"{key}=64"), free=True)
        return self.made(host, None, (f"net/ipv4/ip_default_ttl={hops}", "net/ipv4/ip_default_ttl=64"), free=True)

    def arp_ignore(self, host: str, _place: dict, _item: dict) -> Break:
        value = self.draw.choice(["1", "8"])
        pair = (f"net/ipv4/conf/all/arp_ignore={value}", "net/ipv4/conf/all/arp_ignore=0")
        return self.made(host, None, pair, free=True)

    def no_six(self, host: str, place: dict, _item: dict) -> Break:
        key = f"net/ipv6/conf/{place['interface']}/disable_ipv6"
        return self.made(host, place, (f"{key}=1", f"{key}=0"))

    def no_echo(self, host: str, _place: dict, item: dict) -> Break:
        key = "net/ipv6/icmp/echo_ignore_all" if six(item) else "net/ipv4/icmp_echo_ignore_all"
        return self.made(host, None, (f"{key}=1", f"{key}=0"), free=True, listed=NO_ECHO)

    def unrelated(self, host: str, place: dict, _item: dict) -> Break:
        return self.made(
            host,
            place,
            self.draw.choice(
                [
                    ("route add 203.0.113.0/24 dev mgmt0", "route del 203.0.113.0/24 dev mgmt0"),
                    ("rule add from 203.0.113.7 lookup 77 priority 30", "rule del priority 30"),
                    (f"link set {place['interface']} promisc on", f"link set {place['interface']} promisc off"),
                    (f"link add link {place['interface']} name pod0 type macvlan mode bridge", "link del pod0"),
                    ("link add dummy7 type ifb", "link del dummy7"),
                    ("rule add priority 1000 lookup 500", "rule del priority 1000"),
                ]
            ),
            free=True,
        )


def six(item: dict) -> bool:
    return ":" in item["address"]


def flag(item: dict) -> str:
    return "-6" if six(item) else "-4"


def subnet(item: dict) -> str:
    return str(item["subnet"])


def length(item: dict) -> str:
    return subnet(item).partition("/")[2]


def hardware(host: str, rail: int) -> str:
    """As tests/lab/topology.py gives it."""
    return f"02:52:44:00:{int(host[4:]):02x}:{rail:02x}"


KINDS = [
    name
    for name, made in vars(Breaks).items()
    if callable(made) and not name.startswith("_") and name not in ("draw_one", "made", "at_leaf", "far")
]


@contextlib.contextmanager
def lossy(what: Break) -> t.Iterator[None]:
    """Lose half of what comes in, where that is what happens."""
    with losing(*what.lossy, 50) if what.lossy else contextlib.nullcontext():
        yield
