# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random faults of a host or its port at the leaf; packets show which of them break a rail (oracle.py)."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import typing as t

from ansible_collections.railops.rdma.tests.kernel.lossy import losing
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import run, wait_for

AWAY = "198.51.100.9"
MAC = "02:00:00:00:00:99"

# Why an audit is red although all packets go as planned, each with a kind that shows it. At most ten, and each still
# needed: test_listed_breaks_are_red_without_loss.
GATEWAY = "a gateway with two holders: the entry in the neighbor tables is random"
ICMP = "a rule for ICMP only: the pings are lost and the packets are not"
TWO_LEAVES = "one MAC address at two leaves, or two routed ports: each of them knows one holder"
NO_ECHO = "a host that answers no echo: a check without a proof is red"
EXISTING_ROUTE = "an existing route in a managed table: the next run refuses the host, so the audit names it"
TO_GATEWAY = "a rule for packets to the gateway's own address: no packet between rails has this target"
NO_ARP = "a host that answers no ARP: its peers may know it from its own requests"
LISTED = {
    GATEWAY: "taken_gateway",
    ICMP: "rule_for_some",
    TWO_LEAVES: "same_mac",
    NO_ECHO: "no_echo",
    EXISTING_ROUTE: "route_of_table",
    TO_GATEWAY: "rule_to_one",
    NO_ARP: "arp_ignore",
}


class Break(t.NamedTuple):
    """What happens, where: lines for `ip`, or `key=value` for /proc/sys, each with its namespace and what undoes it.

    :param rail: None where all of a host's rails may be hit.
    :param free: nothing of the plan is touched, so an audit may be red only where packets are lost.
    :param listed: why an audit is red although the packets arrive; empty where it must not be.
    :param lossy: the interface that loses half of what comes in, and its namespace.
    :param words: of which a cause has one, where the way of a packet is other than planned by this.
    """

    kind: str
    host: str
    rail: str | None
    steps: tuple[tuple[str, str, str], ...] = ()
    free: bool = False
    listed: str = ""
    lossy: tuple[str, str] | None = None
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} at {self.host} {self.rail}: {'; '.join(line for _space, line, _undo in self.steps)}"

    def do(self) -> None:
        """Let it happen; where a step fails, undo those before it."""
        for number, (space, line, _undo) in enumerate(self.steps):
            try:
                play(space, line)
            except AssertionError:
                self._replace(steps=self.steps[:number]).undo(check=False)
                raise

    def undo(self, *, check: bool = True) -> None:
        for space, _line, undo in self.steps[::-1]:
            if undo:
                play(space, undo, check=check)

    @contextlib.contextmanager
    def losing(self) -> t.Iterator[None]:
        """Lose half of what comes in, where that is what happens."""
        with losing(*self.lossy, 50) if self.lossy else contextlib.nullcontext():
            yield


def play(space: str, line: str, *, check: bool = True) -> None:
    words = ["ip", "-n", space, *line.split()]
    if "=" in line:
        key, _equals, value = line.partition("=")
        words = ["ip", "netns", "exec", space, "sh", "-c", f"echo {value} > /proc/sys/{key}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, (line, done.stderr)
    if done.returncode == 0 and line.startswith("address add") and line.endswith("nodad"):
        # The kernel adds the local route of an IPv6 address later: packets still leave the host until then.
        address = words[5].partition("/")[0]
        look = ("ip", "-n", space, "-6", "route", "show", "table", "local", address)
        wait_for(lambda: bool(run(*look)), True)


class Breaks:
    """Draws what happens."""

    def __init__(
        self, seed: int, spaces: dict[str, str], core: str, plans: dict[str, dict], port: str, aside: tuple[str, str]
    ) -> None:
        """Remember where.

        :param spaces: the namespace of each host; `core` that of the leaves, `plans` the host plans.
        :param port: a port's name at the leaf, for the number of the host and of the rail.
        :param aside: the management interface and the gateway there.
        """
        self.draw = random.Random(seed)
        self.spaces, self.core, self.plans = spaces, core, plans
        self.port, (self.mgmt, self.router) = port, aside
        self.macs = {
            entry["local"]: link["address"]
            for space in (core, *spaces.values())
            for link in json.loads(run("ip", "-n", space, "-j", "address"))
            for entry in link["addr_info"]
        }

    def draw_one(self, kind: str | None = None, host: str | None = None) -> Break:
        """Return one, of all kinds alike."""
        name = kind or self.draw.choice(KINDS)
        host = host or self.draw.choice(sorted(self.plans))
        place = self.draw.choice(self.plans[host]["rails"])
        item = self.draw.choice(place["addresses"])
        return getattr(self, name)(host, place, item)._replace(kind=name)

    # --- what there is to choose from ---------------------------------------------------------------------------------

    def _made(self, host: str, place: dict | None, *pairs: tuple[str, str], **more: t.Any) -> Break:
        space = self.spaces[host]
        return Break("", host, place and place["name"], tuple((space, *pair) for pair in pairs), **more)

    def _leaf_port(self, host: str, place: dict) -> str:
        return self.port.format(host.removeprefix("node"), place["index"])

    def _at_leaf(self, host: str, place: dict, line: str, undo: str) -> Break:
        port = self._leaf_port(host, place)
        return Break("", host, place["name"], ((self.core, line.format(port), undo.format(port)),))

    def _far(self, host: str, item: dict, rail: str = "") -> tuple[str, str]:
        """Return a host and its address on a rail, of a family."""
        other = self.draw.choice([name for name in sorted(self.plans) if name != host])
        rails = [place for place in self.plans[other]["rails"] if rail in ("", place["name"])]
        place = self.draw.choice(rails)
        return other, next(one["address"] for one in place["addresses"] if six(one) == six(item))

    def _supernet(self, host: str, item: dict) -> str:
        return next(prefix for prefix in self.plans[host]["rdma_prefixes"] if (":" in prefix) == six(item))

    def _away(self, host: str, place: dict, item: dict) -> str:
        """Return the way by another rail, or by the management network."""
        other = self.draw.choice([rail for rail in self.plans[host]["rails"] if rail["name"] != place["name"]])
        gateway = next(one["gateway"] for one in other["addresses"] if six(one) == six(item))
        ways = [f"via {gateway} dev {other['interface']}", f"dev {other['interface']}"]
        return self.draw.choice(ways if six(item) else [*ways, *[f"via {self.router} dev {self.mgmt}"] * 2])

    # --- links --------------------------------------------------------------------------------------------------------

    def link_down(self, host: str, place: dict, _item: dict) -> Break:
        name = place["interface"]
        return self._made(host, place, (f"link set {name} down", f"link set {name} up"))

    def cable_pulled(self, host: str, place: dict, _item: dict) -> Break:
        return self._at_leaf(host, place, "link set {} down", "link set {} up")

    def leaf_mtu(self, host: str, place: dict, _item: dict) -> Break:
        mtu = self.draw.choice([1500, 2044, 3900])
        return self._at_leaf(host, place, f"link set {{}} mtu {mtu}", "link set {} mtu 9216")

    def host_mtu(self, host: str, place: dict, _item: dict) -> Break:
        name, mtu = place["interface"], self.draw.choice([1500, 9000])
        return self._made(host, place, (f"link set {name} mtu {mtu}", f"link set {name} mtu 4200"))

    def lossy_port(self, host: str, place: dict, _item: dict) -> Break:
        there = (self.spaces[host], place["interface"])
        if self.draw.random() < 0.5:
            there = (self.core, self._leaf_port(host, place))
        return Break("", host, place["name"], lossy=there)

    def arp_off(self, host: str, place: dict, _item: dict) -> Break:
        name = place["interface"]
        return self._made(host, place, (f"link set {name} arp off", f"link set {name} arp on"))

    def passthru(self, host: str, place: dict, _item: dict) -> Break:
        add = f"link add link {place['interface']} name thief0 type macvlan mode passthru"
        return self._made(host, place, (add, "link del thief0"), ("link set thief0 up", ""))

    def bridge_port(self, host: str, place: dict, _item: dict) -> Break:
        name = place["interface"]
        pairs = (
            ("link add br7 type bridge", "link del br7"),
            (f"link set {name} master br7", f"link set {name} nomaster"),
        )
        return self._made(host, place, *pairs, ("link set br7 up", ""))

    # --- addresses ----------------------------------------------------------------------------------------------------

    def _address(self, host: str, place: dict | None, item: dict, address: str, device: str, **more: t.Any) -> Break:
        """An address more."""
        bits = length(item) if place else width(item)
        where, nodad = f"{address}/{bits} dev {device}", " nodad" if six(item) else ""
        pair = (f"address add {where}{nodad}", f"address del {where}")
        return self._made(host, place, pair, free=True, words=(address,), **more)

    def lost_address(self, host: str, place: dict, item: dict) -> Break:
        where = f"{item['address']}/{length(item)} dev {place['interface']}"
        # What goes along with it comes back by the role alone.
        more = "nodad" if six(item) else ""
        pair = (f"address del {where}", f"address add {where} {more}")
        return self._made(host, place, pair, words=(f"{item['address']} is not on",))

    def lost_local_entry(self, host: str, place: dict, item: dict) -> Break:
        words, where = flag(item), f"local {item['address']} dev {place['interface']} table local proto kernel"
        scope = "" if six(item) else f" scope host src {item['address']}"
        return self._made(host, place, (f"{words} route del {where}", f"{words} route add {where}{scope}"))

    def taken_address(self, host: str, place: dict, item: dict) -> Break:
        """The host has another one's address on its rail."""
        return self._address(host, place, item, self._far(host, item, place["name"])[1], place["interface"])

    def taken_gateway(self, host: str, place: dict, item: dict) -> Break:
        return self._address(host, place, item, item["gateway"], place["interface"], listed=GATEWAY)

    def address_on_other_interface(self, host: str, _place: dict, item: dict) -> Break:
        """Another host's address, or a free one, beside the rails."""
        far, spare = self._far(host, item)[1], "fd00:99::7" if six(item) else "203.0.113.7"
        return self._address(host, None, item, self.draw.choice([far, far, spare]), self.draw.choice(["lo", self.mgmt]))

    def second_address(self, host: str, place: dict, item: dict) -> Break:
        """A free address in the rail's own net."""
        net, colons, _host = item["address"].rpartition("::" if six(item) else ".")
        return self._address(host, place, item, f"{net}{colons}{'ee' if six(item) else '238'}", place["interface"])

    # --- rules and routes ---------------------------------------------------------------------------------------------

    def lost_rule(self, host: str, place: dict, item: dict) -> Break:
        text = f"from {item['address']} lookup {place['table']} priority {place['rule_priority']}"
        pair = (f"{flag(item)} rule del {text}", f"{flag(item)} rule add {text} protocol 143")
        return self._made(host, place, pair, words=(f"rule {place['rule_priority']} is missing",))

    def lost_routes(self, host: str, place: dict, item: dict) -> Break:
        """All routes of a table of ours, or the one to the fabric; they come back by the role."""
        words, table = flag(item), f"table {place['table']}"
        line = self.draw.choice(["flush", f"del {self._supernet(host, item)}"])
        phrases = ("32766:", "main", "no route leads there", "no route leaves", "is missing")
        return self._made(host, place, (f"{words} route {line} {table}", ""), words=phrases)

    def _rule(
        self, host: str, place: dict, item: dict, keys: t.Sequence[str], priorities: range = range(100, 10000)
    ) -> Break:
        """A rule with such selectors to a table that leads elsewhere, the same way, nowhere, or to an error."""
        address, supernet = item["address"], self._supernet(host, item)
        # An audit queries the sampled addresses of other hosts from the same rail only.
        far = self._far(host, item, place["name"])[1]
        priority, table = self.draw.choice(priorities), self.draw.randint(2000, 9999)
        selectors = {
            "from": [f"from {address}", f"from {supernet}", "from all"],
            "to": [f"to {far}", f"to {supernet}", f"to {item['gateway']}"],
            "fwmark": ["fwmark 1", "fwmark 0/1", "fwmark 0x10/0xf0"],
            "ipproto": ["ipproto 17", "ipproto 6"],
            "icmp": ["ipproto 1"],
            "dport": ["ipproto 17 dport 4791", "ipproto 17 dport 4700-4800", "ipproto 17 dport 53"],
            "sport": ["ipproto 17 sport 1-1024"],
            "uidrange": ["uidrange 0-0", "uidrange 0-1000", "uidrange 1000-2000"],
            "tos": ["tos 0x68", "tos 0x08"] if six(item) else ["tos 0x08", "tos 0x10"],
            "iif": ["iif lo", f"iif {self.mgmt}", "iif nosuch0"],
            "oif": [f"oif {place['interface']}", f"oif {self.mgmt}", "oif nosuch0"],
            "not": ["not"],
        }
        # A rule has one protocol; iproute2 wants `not` first.
        if len({"ipproto", "dport", "sport"} & set(keys)) > 1:
            keys = [key for key in keys if key not in ("ipproto", "sport")]
        chosen = " ".join(self.draw.choice(selectors[key]) for key in sorted(keys, key=lambda key: key != "not"))
        ends = ["away"] * 4 + ["right", "suppress", "throw", "hole"]
        ends += ["empty", "lookup main", "goto 32766", "blackhole", "prohibit", "unreachable"]
        words, end, pairs = flag(item), self.draw.choice(ends), []
        target, flush = (
            end if " " in end or end in ends[-3:] else f"lookup {table}",
            f"{words} route flush table {table}",
        )
        if end in ("away", "right", "suppress"):
            prefix = self.draw.choice(["default", supernet, f"{self._far(host, item)[1]}/{width(item)}"])
            # Of a larger fleet an audit asks for TCP between neighbors only, and it refuses a default route
            # on a rail for itself.
            prefix = supernet if len(self.plans) > 3 else prefix
            way = right(place, item) if end == "right" else self._away(host, place, item)
            pairs.append((f"{words} route add {prefix} {way} table {table}", flush))
        elif end in ("throw", "hole"):
            what = f"throw {supernet}" if end == "throw" else "blackhole default"
            pairs.append((f"{words} route add {what} table {table}", flush))
        if end == "suppress":
            target += f" suppress_prefixlength {self.draw.choice([0, 16, 31, 32])}"
        pairs.append(
            (f"{words} rule add {chosen} {target} priority {priority}", f"{words} rule del priority {priority}")
        )
        listed = ICMP if "icmp" in keys else ""
        if f"to {item['gateway']}" in chosen and "not" not in keys:
            listed = TO_GATEWAY
        own = place if chosen.startswith(f"from {address}") else None
        return self._made(host, own, *pairs, free=True, words=(f"`{priority}:",), listed=listed)

    def rule(self, host: str, place: dict, item: dict) -> Break:
        keys = ["from", "to", "fwmark", "ipproto", "dport", "sport", "uidrange", "tos", "iif", "oif", "not"]
        return self._rule(host, place, item, self.draw.sample(keys, self.draw.randint(0, 3)))

    def rule_to_one(self, host: str, place: dict, item: dict) -> Break:
        return self._rule(host, place, item, ["to"])

    def rule_from_own(self, host: str, place: dict, item: dict) -> Break:
        return self._rule(host, place, item, ["from"])

    def rule_for_some(self, host: str, place: dict, item: dict) -> Break:
        keys = ["fwmark", "ipproto", "icmp", "dport", "sport", "uidrange", "iif", "oif"]
        return self._rule(host, place, item, [self.draw.choice(keys)])

    def rule_behind(self, host: str, place: dict, item: dict) -> Break:
        """A rule behind ours, which changes nothing while ours are there."""
        return self._rule(host, place, item, ["from"], range(10200, 30000))

    def route_of_table(self, host: str, place: dict, item: dict) -> Break:
        """A more specific route in a table of ours, or in the table of the local addresses."""
        prefix = f"{self._far(host, item)[1]}/{width(item)}"
        how = self.draw.choice(["away", "away", "right", "blackhole", "unreachable", "prohibit", "throw"])
        way = {"away": self._away(host, place, item), "right": right(place, item)}.get(how)
        table = place["table"] if way else self.draw.choice([place["table"], 255])
        where = f"{'' if way else how} {prefix} {way or ''} table {table}"
        pair = (f"{flag(item)} route add {where}", f"{flag(item)} route del {where}")
        listed = EXISTING_ROUTE if how in ("throw", "right") and table != 255 else ""
        words = (prefix, f"/{width(item)}", "missing", "32766:", "leads", "`")
        return self._made(host, None, pair, free=True, listed=listed, words=words)

    def main_route(self, host: str, place: dict, item: dict) -> Break:
        """A route of main, which the kernel reads only where nothing before answered."""
        prefix = f"{self._far(host, item)[1]}/{width(item)}"
        where = self.draw.choice([f"blackhole {prefix}", f"{prefix} {self._away(host, place, item)}"])
        pair = (f"{flag(item)} route add {where}", f"{flag(item)} route del {where}")
        return self._made(host, None, pair, free=True, words=(prefix, "table main", "it is dropped silently"))

    def route_mtu(self, host: str, place: dict, item: dict) -> Break:
        """A route of ours with an MTU; the role takes it away."""
        words, lock = flag(item), self.draw.choice(["", "lock "])
        rest = f"{item['subnet']} dev {place['interface']} src {item['address']} table {place['table']} proto 143"
        rest += "" if six(item) else " scope link"
        change = (f"{words} route change {rest} mtu {lock}1400", f"{words} route change {rest}")
        return self._made(host, place, change)

    def nexthop(self, host: str, place: dict, item: dict) -> Break:
        """A route by a next hop object, the way of the plan or another, in main or in a table of ours."""
        identity, words = self.draw.randint(70, 999), flag(item)
        way = self.draw.choice([right(place, item), self._away(host, place, item)])
        table = self.draw.choice(["main", str(place["table"])])
        pairs = [(f"{words} nexthop add id {identity} {way}", f"{words} nexthop del id {identity}")]
        prefix = f"{self._far(host, item, place['name'])[1]}/{width(item)}"
        where = f"{prefix} nhid {identity} table {table}"
        pairs += [(f"{words} route add {where}", f"{words} route del {prefix} table {table}")]
        listed = "" if table == "main" else EXISTING_ROUTE
        return self._made(host, place, *pairs, free=True, listed=listed, words=(f"nhid {identity}", prefix))

    # --- settings and MAC addresses -----------------------------------------------------------------------------------

    def strict_source(self, host: str, _place: dict, _item: dict) -> Break:
        key = "net/ipv4/conf/all/rp_filter"
        return self._made(host, None, (f"{key}={self.draw.choice([1, 2])}", f"{key}=0"), free=True)

    def same_mac(self, host: str, place: dict, _item: dict) -> Break:
        other = self.draw.choice([name for name in sorted(self.plans) if name != host])
        rail = self.draw.choice(self.plans[other]["rails"])
        # On routed ports each host is alone in its subnet, the same rail of others too.
        near = rail["addresses"][0]["subnet"] == place["addresses"][0]["subnet"]
        line = f"link set {place['interface']} address {{}}".format
        own, mac = (self.macs[there["addresses"][0]["address"]] for there in (place, rail))
        return self._made(host, place, (line(mac), line(own)), free=True, listed="" if near else TWO_LEAVES)

    def arp_ignore(self, host: str, _place: dict, _item: dict) -> Break:
        value = self.draw.choice(["1", "8"])
        pair = (f"net/ipv4/conf/all/arp_ignore={value}", "net/ipv4/conf/all/arp_ignore=0")
        return self._made(host, None, pair, free=True, listed=NO_ARP if value == "8" else "")

    def no_six(self, host: str, place: dict, _item: dict) -> Break:
        key = f"net/ipv6/conf/{place['interface']}/disable_ipv6"
        return self._made(host, place, (f"{key}=1", f"{key}=0"))

    def no_echo(self, host: str, _place: dict, item: dict) -> Break:
        key = "net/ipv6/icmp/echo_ignore_all" if six(item) else "net/ipv4/icmp_echo_ignore_all"
        return self._made(host, None, (f"{key}=1", f"{key}=0"), free=True, listed=NO_ECHO)

    def unrelated(self, host: str, place: dict, _item: dict) -> Break:
        """Something of another user that has nothing to do with the rails."""
        side, rail = self.mgmt, place["interface"]
        pairs = [
            (f"route add 203.0.113.0/24 dev {side}", f"route del 203.0.113.0/24 dev {side}"),
            (f"neighbor replace {AWAY} dev {side} lladdr {MAC} nud permanent", f"neighbor del {AWAY} dev {side}"),
            ("rule add from 203.0.113.7 lookup 77 priority 30", "rule del priority 30"),
            (f"link set {rail} promisc on", f"link set {rail} promisc off"),
            (f"link add link {rail} name pod0 type macvlan mode bridge", "link del pod0"),
            ("link add dummy7 type ifb", "link del dummy7"),
            ("rule add priority 1000 lookup 500", "rule del priority 1000"),
        ]
        return self._made(host, place, self.draw.choice(pairs), free=True)


def six(item: dict) -> bool:
    return ":" in item["address"]


def flag(item: dict) -> str:
    return "-6" if six(item) else "-4"


def width(item: dict) -> str:
    return "128" if six(item) else "32"


def length(item: dict) -> str:
    return str(item["subnet"]).partition("/")[2]


def right(place: dict, item: dict) -> str:
    return f"via {item['gateway']} dev {place['interface']}"


KINDS = [name for name, made in vars(Breaks).items() if callable(made) and name[0] != "_" and name != "draw_one"]
# Those that change where packets go, and do it by what a host's kernel answers.
OF_PATHS = ["rule", "rule_to_one", "rule_from_own", "rule_for_some", "rule_behind", "route_of_table", "main_route"]
OF_PATHS += ["nexthop", "lost_rule", "lost_routes", "address_on_other_interface", "lost_address", "unrelated"]
