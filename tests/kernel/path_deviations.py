# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Random things that somebody else does to a host's network: some change where a rail's packets go, some do not.

What changes what is not decided here: the judge (path_judge.py) finds out by sending.
"""

from __future__ import annotations

import random
import typing as t


class Plant(t.NamedTuple):
    """One deed: commands for `ip`, those that undo it, and words of which a cause has one where it changes a way."""

    what: str
    do: list[str]
    undo: list[str]
    words: list[str]
    sports: tuple[int, ...] = ()


class Garden:
    """Draws deeds for one host from a seed."""

    def __init__(self, seed: int, host: dict, others: list[dict], macs: dict[str, str]) -> None:
        """Remember the host's plan, its neighbours', and the hardware address of each leaf."""
        self.draw = random.Random(seed)
        self.host, self.others, self.macs = host, others, macs
        self.number = 0
        self.taken: set[str] = set()

    def plants(self) -> list[Plant]:
        """Return two to five deeds of different kinds."""
        kinds = [self.rule, self.rule, self.rule, self.specific, self.main_route, self.lost_rule, self.lost_route]
        kinds += [self.own_address, self.neighbour, self.unrelated, self.nexthop, self.lost_address, self.rule_after]
        made: list[Plant] = []
        for kind in self.draw.sample(kinds, self.draw.randint(2, 5)):
            self.number += 1
            plant = kind()
            # Two deeds about the same thing would undo each other.
            if plant.what not in self.taken:
                self.taken.add(plant.what)
                made.append(plant)
        return made

    # --- what there is to choose from ---------------------------------------------------------------------------------

    def rail(self) -> tuple[dict, dict, int]:
        """A rail, one of its addresses and its family."""
        rail = self.draw.choice(self.host["rails"])
        item = self.draw.choice(rail["addresses"])
        return rail, item, 6 if ":" in item["address"] else 4

    def away(self, rail: dict, family: int) -> str:
        """The way by another rail, or by the management switch, which has IPv4 alone."""
        others = [other for other in self.host["rails"] if other is not rail]
        other = self.draw.choice(others)
        gateway = next(item["gateway"] for item in other["addresses"] if (":" in item["gateway"]) == (family == 6))
        ways = [f"via {gateway} dev {other['interface']}", f"dev {other['interface']}"]
        return self.draw.choice([*ways, *(["via 198.51.100.254 dev eth0"] * 2 if family == 4 else [])])

    def right(self, rail: dict, item: dict) -> str:
        return f"via {item['gateway']} dev {rail['interface']}"

    def far(self, family: int, rail: str | None = None) -> str:
        """An address of another host."""
        return self.draw.choice(
            [
                item["address"]
                for other in self.others
                for there in other["rails"]
                for item in there["addresses"]
                if (":" in item["address"]) == (family == 6) and rail in (None, there["name"])
            ]
        )

    # --- deeds --------------------------------------------------------------------------------------------------------

    def rule(self, priorities: range = range(100, 10000)) -> Plant:
        """A rule with random selectors to a table that leads elsewhere, the same way, nowhere, or to an error."""
        rail, item, family = self.rail()
        source, length = item["address"], 128 if family == 6 else 32
        supernet = "fd00:17::/32" if family == 6 else "172.17.0.0/16"
        priority, table = self.draw.choice(priorities), 2000 + self.number
        sport = self.draw.randint(49153, 65000)
        selectors = {
            "from": [f"from {source}", f"from {supernet}", "from all"],
            "to": [f"to {self.far(family)}", f"to {supernet}", f"to {item['gateway']}"],
            "fwmark": ["fwmark 1", "fwmark 0/1", "fwmark 0x10/0xf0"],
            "ipproto": ["ipproto 17", "ipproto 6"],
            "dport": ["ipproto 17 dport 4791", "ipproto 17 dport 4700-4800", "ipproto 17 dport 53"],
            "sport": [f"ipproto 17 sport {sport}-{sport + 9}", "ipproto 17 sport 1-1024"],
            "uidrange": ["uidrange 0-0", "uidrange 0-1000", "uidrange 1000-2000"],
            "tos": ["tos 0x08", "tos 0x10"] if family == 4 else ["tos 0x68", "tos 0x08"],
            "iif": ["iif lo", "iif eth0", "iif nosuch0"],
            "oif": [f"oif {rail['interface']}", "oif eth0", "oif nosuch0"],
            "not": ["not"],
        }
        keys = self.draw.sample(list(selectors), self.draw.randint(0, 3))
        if {"ipproto", "dport", "sport"} <= set(keys) or len({"ipproto", "dport", "sport"} & set(keys)) > 1:
            keys = [key for key in keys if key not in ("ipproto", "sport")]
        # iproute2 wants `not` first.
        keys.sort(key=lambda key: key != "not")
        chosen = " ".join(self.draw.choice(selectors[key]) for key in keys)
        end = self.draw.choice(["away"] * 4 + ["right", "empty", "suppress", "blackhole", "prohibit", "goto", "throw"])
        six = "-6 " if family == 6 else "-4 "
        do, undo = [], [f"{six}rule del priority {priority}"]
        target = f"lookup {table}"
        prefix = self.draw.choice(["default", supernet, f"{self.far(family)}/{length}"])
        if end in ("away", "right", "suppress"):
            way = self.right(rail, item) if end == "right" else self.away(rail, family)
            do.append(f"{six}route add {prefix} {way} table {table}")
            undo.append(f"{six}route flush table {table}")
        if end == "suppress":
            target += f" suppress_prefixlength {self.draw.choice([0, 16, 31, 32])}"
        elif end == "throw":
            do.append(f"{six}route add throw {supernet} table {table}")
            undo.append(f"{six}route flush table {table}")
        elif end in ("blackhole", "prohibit"):
            target = end
        elif end == "goto":
            target = "goto 32766"
        do.append(f"{six}rule add {chosen} {target} priority {priority}")
        return Plant(f"rule {priority}", do, undo, [f"`{priority}:"], (sport,))

    def rule_after(self) -> Plant:
        """A rule behind ours, which changes nothing while ours are there."""
        return self.rule(range(10200, 30000))

    def specific(self) -> Plant:
        """A more specific route in a table of ours."""
        rail, item, family = self.rail()
        length, six = (128, "-6 ") if family == 6 else (32, "-4 ")
        prefix = f"{self.far(family)}/{length}"
        how = self.draw.choice(["away", "away", "right", "blackhole", "unreachable", "prohibit", "throw"])
        way = {"away": self.away(rail, family), "right": self.right(rail, item)}.get(how)
        kind = "" if way else f"{how} "
        where = f"{kind}{prefix} {way or ''} table {rail['table']}"
        words = [prefix, f"/{length}", "missing", "32766:", "leads", "`"]
        return Plant(f"route {prefix} {rail['table']}", [f"{six}route add {where}"], [f"{six}route del {where}"], words)

    def main_route(self) -> Plant:
        """A route of main, which is asked only where nothing before answered."""
        rail, _item, family = self.rail()
        length, six = (128, "-6 ") if family == 6 else (32, "-4 ")
        prefix = f"{self.far(family)}/{length}"
        where = f"{prefix} {self.away(rail, family)}"
        words = [prefix, "table main"]
        return Plant(f"main {prefix}", [f"{six}route add {where}"], [f"{six}route del {where}"], words)

    def lost_rule(self) -> Plant:
        """One of ours taken away."""
        rail, item, family = self.rail()
        six = "-6 " if family == 6 else "-4 "
        text = f"priority {rail['rule_priority']} from {item['address']} lookup {rail['table']}"
        words = [f"rule {rail['rule_priority']} is missing"]
        what = f"rule {rail['rule_priority']} {family}"
        return Plant(what, [f"{six}rule del {text}"], [f"{six}rule add {text} protocol 143"], words)

    def lost_route(self) -> Plant:
        """The routes of one of our tables taken away."""
        rail, item, family = self.rail()
        six = "-6 " if family == 6 else "-4 "
        prefix = "fd00:17::/32" if family == 6 else "172.17.0.0/16"
        where = f"{prefix} via {item['gateway']} dev {rail['interface']} src {item['address']} table {rail['table']}"
        words = ["32766:", "main", "no route leads there", "no route leaves", "is missing"]
        return Plant(
            f"table {rail['table']} {family}", [f"{six}route del {where}"], [f"{six}route add {where} proto 143"], words
        )

    def own_address(self) -> Plant:
        """Another host's address, or one that nobody has, on this host."""
        family = self.draw.choice([4, 6])
        spare = "fd00:99::7" if family == 6 else "203.0.113.7"
        address = self.draw.choice([self.far(family), self.far(family), spare])
        device = self.draw.choice(["lo", "eth0"])
        length, more = (128, " nodad") if family == 6 else (32, "")
        where = f"{address}/{length} dev {device}"
        return Plant(f"address {address}", [f"address add {where}{more}"], [f"address del {where}"], [address])

    def neighbour(self) -> Plant:
        """A hardware address set by hand for the gateway: the right one, or another."""
        rail, item, _family = self.rail()
        right = self.macs[f"leaf{rail['index']}"]
        mac = self.draw.choice([right, "02:00:00:00:00:99", "02:00:00:00:00:98"])
        where = f"{item['gateway']} dev {rail['interface']}"
        do = [f"neighbor replace {where} lladdr {mac} nud permanent"]
        return Plant(
            f"neighbour {where}", do, [f"neighbor del {where}"], [f"{item['gateway']} is set by hand to {mac}"]
        )

    def nexthop(self) -> Plant:
        """A route by a next hop object."""
        rail, _item, family = self.rail()
        six = "-6 " if family == 6 else "-4 "
        length, identity = 128 if family == 6 else 32, 100 + self.number
        prefix = f"{self.far(family)}/{length}"
        way = self.away(rail, family)
        do = [f"{six}nexthop add id {identity} {way}", f"{six}route add {prefix} nhid {identity} table {rail['table']}"]
        undo = [f"{six}route del {prefix} table {rail['table']}", f"nexthop del id {identity}"]
        return Plant(f"route {prefix} {rail['table']}", do, undo, [f"nhid {identity}", prefix])

    def lost_address(self) -> Plant:
        """A rail's own address taken away; its routes go along, and everything comes back by the module."""
        rail, item, family = self.rail()
        length, more = item["subnet"].partition("/")[2], " nodad" if family == 6 else ""
        where = f"{item['address']}/{length} dev {rail['interface']}"
        words = [f"{item['address']} is not on"]
        return Plant(f"own {item['address']}", [f"address del {where}"], [f"address add {where}{more}"], words)

    def unrelated(self) -> Plant:
        """Things of others that have nothing to do with the rails."""
        return self.draw.choice(
            [
                Plant(
                    "unrelated route", ["route add 203.0.113.0/24 dev eth0"], ["route del 203.0.113.0/24 dev eth0"], []
                ),
                Plant(
                    "unrelated neighbour",
                    ["neighbor replace 198.51.100.77 dev eth0 lladdr 02:00:00:00:00:77 nud permanent"],
                    ["neighbor del 198.51.100.77 dev eth0"],
                    [],
                ),
                Plant("unrelated link", ["link add dummy7 type ifb"], ["link del dummy7"], []),
            ]
        )
