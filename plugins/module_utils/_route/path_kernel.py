# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the kernel where packets would go (RTM_GETROUTE), and for the rules, next hops and neighbours that decide it.

Changes nothing and sends nothing. Answers are decoded here: pyroute2 up to 0.9 drops the attributes from RTA_UID on.
"""

from __future__ import annotations

import errno
import socket
import struct
import typing as t
from collections import defaultdict
from dataclasses import replace

from .._files import Sysfs
from .model import link_of
from .netlink import NLM_F_ACK, NLM_F_DUMP, Socket, attributes, packed, request, u32
from .paths import (
    FIRST_SOURCE_PORT,
    LAST_SOURCE_PORT,
    UNICAST,
    Answer,
    Asked,
    Hop,
    PathState,
    RailLink,
    Target,
    flows_of,
    targets_of,
)
from .rules import (
    ERRORS,
    TO_TABLE,
    Flow,
    PolicyRule,
    inside,
    number,
    rule_of,
    source_ports,
    text_address,
    walk,
)

if t.TYPE_CHECKING:
    from .model import Host
    from .want import Want

# include/uapi/linux/rtnetlink.h, neighbour.h, nexthop.h, if_link.h
RTM_GETLINK, RTM_GETROUTE, RTM_GETNEIGH, RTM_GETRULE, RTM_GETNEXTHOP = 18, 26, 30, 34, 106
RTM_F_LOOKUP_TABLE, RTM_F_FIB_MATCH = 0x1000, 0x2000
LINK_HEAD, ROUTE_HEAD, RULE_HEAD = struct.Struct("=BxHiII"), struct.Struct("=8BI"), struct.Struct("=8BI")
NEIGH_HEAD, NEXTHOP_HEAD, HOP_HEAD = struct.Struct("=B3xiHBB"), struct.Struct("=BBBBI"), struct.Struct("=HBBi")
RTA_DST, RTA_SRC, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_MULTIPATH = 1, 2, 4, 5, 6, 7, 9
RTA_TABLE, RTA_MARK, RTA_VIA, RTA_ENCAP_TYPE, RTA_UID = 15, 16, 18, 21, 25
RTA_IP_PROTO, RTA_SPORT, RTA_DPORT, RTA_NH_ID = range(27, 31)
NHA_ID, NHA_GROUP, NHA_OIF, NHA_GATEWAY, NHA_ENCAP_TYPE = 1, 2, 5, 6, 7
NDA_DST, NDA_LLADDR, NDA_IFINDEX, NUD_PERMANENT = 1, 2, 8, 0x80
IFLA_LINKINFO, IFLA_INFO_KIND = 18, 1
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
KINDS = {1: UNICAST, 2: "local", 3: "broadcast", 4: "anycast", 5: "multicast", 9: "throw", **ERRORS}
# Answers wait in the socket's buffer (212,992 bytes by default) until the last question of a batch is asked.
BATCH = 32

Wire = t.Callable[[str, t.Sequence[str]], t.Mapping[str, str]]
"""Asks the wire at an interface who has these addresses: the hardware address of each that somebody answers for."""


class Asker:
    """Asks over one socket."""

    def __init__(self, sysfs: Sysfs | None = None) -> None:
        self._socket = Socket()
        self._sysfs = sysfs or Sysfs()
        self._names: dict[int, str] = {}
        self._tables: dict[tuple[int, int], list[Answer]] = {}

    def __enter__(self) -> Asker:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def state(
        self, want: Want, host: Host, targets: t.Sequence[Target], tos: int = 0, wire: Wire | None = None
    ) -> PathState:
        """Ask for everything that the proof needs.

        :param host: what Kernel.read() returned.
        :param tos: the planned TOS, DSCP and ECN in one byte.
        :param wire: asks for the true hardware address, where a neighbour's was set by hand.
        """
        links = {}
        for rail in want.rails:
            link = link_of(rail, host)
            if link:
                vrf = link.master if link.master and self._kind(link.master) == "vrf" else ""
                links[rail.name] = RailLink(link.name, link.up, link.carrier, vrf)
        holders: dict[str, list[str]] = defaultdict(list)
        for item in sorted(host.addresses):
            holders[item.address].append(item.interface)
        rules = self.rules()
        neighbours, seen = {}, {}
        for name in [link.name for link in links.values() if link.up and link.carrier]:
            hops = {target.gateway or target.address for target in targets if target.interface == name}
            own = {address: mac for address, mac in self.set_by_hand(name).items() if address in hops}
            neighbours.update({(name, address): mac for address, mac in own.items()})
            if own and wire:
                seen.update({(name, address): mac for address, mac in wire(name, sorted(own)).items()})
        there = [target for target in targets if target.rail in links]
        return PathState(
            links=links,
            holders=dict(holders),
            rules=rules,
            asked=tuple(self._asked(there, links, rules, tos)),
            tentative=frozenset(item.address for item in host.addresses if not item.usable),
            neighbours=neighbours,
            seen=seen,
        )

    def rules(self) -> dict[int, tuple[PolicyRule, ...]]:
        """Return all rules of each family, in the kernel's order."""
        found: dict[int, list[PolicyRule]] = {4: [], 6: []}
        for answer in self._socket.dump(request(RTM_GETRULE, NLM_F_DUMP, bytes(RULE_HEAD.size))):
            if rule := rule_of(answer.body):
                found[rule.family].append(rule)
        return {family: tuple(rules) for family, rules in found.items()}

    def set_by_hand(self, interface: str) -> dict[str, str]:
        """Return the neighbours of an interface whose hardware address somebody set: by address."""
        head = NEIGH_HEAD.pack(0, 0, 0, 0, 0)
        index = (NDA_IFINDEX, u32(socket.if_nametoindex(interface)))
        found = {}
        for answer in self._socket.dump(request(RTM_GETNEIGH, NLM_F_DUMP, head, index)):
            _family, where, state, _flags, _kind = NEIGH_HEAD.unpack_from(answer.body)
            have = attributes(answer.body, NEIGH_HEAD.size)
            if state & NUD_PERMANENT and self._name(where) == interface and NDA_LLADDR in have and NDA_DST in have:
                found[text_address(have[NDA_DST])] = have[NDA_LLADDR].hex(":")
        return found

    def _asked(
        self,
        targets: t.Sequence[Target],
        links: t.Mapping[str, RailLink],
        rules: t.Mapping[int, tuple[PolicyRule, ...]],
        tos: int,
    ) -> t.Iterator[Asked]:
        ports = {family: source_ports(own, FIRST_SOURCE_PORT, LAST_SOURCE_PORT) for family, own in rules.items()}
        pairs = [
            (target, flow)
            for target in targets
            for flow in flows_of(target, tos, ports[target.family], vrf=bool(links[target.rail].vrf))
        ]
        answers = self._answers([self._question(flow, match) for _target, flow in pairs for match in (True, False)])
        for (target, flow), match, plain in zip(pairs, answers[::2], answers[1::2]):
            whole = self._with_hops(match, flow)
            asked = Asked(target, flow, whole, plain)
            if whole.error or plain.error or not plain.table:
                rule, route = self._blame(flow, rules[flow.family])
                asked = replace(asked, blame=route, blame_rule=rule)
            yield asked

    def _question(self, flow: Flow, match: bool) -> bytes:
        # IPv6 tells the real table anyway, and refuses the flag under strict checking.
        flags = (RTM_F_FIB_MATCH if match else 0) | (RTM_F_LOOKUP_TABLE if flow.family == 4 else 0)
        length = 32 if flow.family == 4 else 128
        head = ROUTE_HEAD.pack(FAMILIES[flow.family], length, length, flow.tos, 0, 0, 0, 0, flags)
        asked = [(RTA_DST, packed(flow.destination)), (RTA_SRC, packed(flow.source))]
        if flow.interface:
            asked.append((RTA_OIF, u32(socket.if_nametoindex(flow.interface))))
        asked += [
            (RTA_MARK, u32(flow.mark)),
            (RTA_UID, u32(flow.uid)),
            (RTA_IP_PROTO, bytes([flow.protocol])),
            (RTA_SPORT, struct.pack(">H", flow.sport)),
            (RTA_DPORT, struct.pack(">H", flow.dport)),
        ]
        return request(RTM_GETROUTE, NLM_F_ACK, head, *asked)

    def _answers(self, questions: t.Sequence[bytes]) -> list[Answer]:
        return [
            self._answer(answers[0].body) if answers and not error else Answer(error or errno.ENODATA)
            for first in range(0, len(questions), BATCH)
            for error, answers, _why in self._socket.ask(list(questions[first : first + BATCH]))
        ]

    def _answer(self, body: bytes) -> Answer:
        _family, length, _source, _tos, table, protocol, _scope, kind, _flags = ROUTE_HEAD.unpack_from(body)
        have = attributes(body, ROUTE_HEAD.size)
        hops = []
        if RTA_OIF in have:
            hops.append(Hop(self._name(number(have[RTA_OIF])), _gateway(have)))
        hops += self._multipath(have.get(RTA_MULTIPATH, b""))
        return Answer(
            kind=KINDS.get(kind, f"type {kind}"),
            table=number(have.get(RTA_TABLE), table),
            prefix=f"{text_address(have[RTA_DST])}/{length}" if RTA_DST in have else "",
            length=length,
            metric=number(have.get(RTA_PRIORITY)),
            protocol=protocol,
            hops=tuple(hops),
            nexthop=number(have.get(RTA_NH_ID)),
            encapsulated=RTA_ENCAP_TYPE in have,
        )

    def _multipath(self, data: bytes) -> t.Iterator[Hop]:
        offset = 0
        while offset + HOP_HEAD.size <= len(data):
            length, _flags, _weight, index = HOP_HEAD.unpack_from(data, offset)
            if length < HOP_HEAD.size:
                return
            yield Hop(self._name(index), _gateway(attributes(data[offset : offset + length], HOP_HEAD.size)))
            offset += (length + 3) & ~3

    def _with_hops(self, answer: Answer, flow: Flow) -> Answer:
        """Fill in the hops of a next hop object: with nexthop_compat_mode=0 the kernel names its number alone."""
        if answer.error or answer.hops or not answer.nexthop:
            return answer
        hops = []
        for number_of in self._members(answer.nexthop):
            for have in self._nexthop(number_of):
                hops.append(Hop(self._name(number(have.get(NHA_OIF))), _gateway({5: have.get(NHA_GATEWAY, b"")})))
                answer = replace(answer, encapsulated=answer.encapsulated or NHA_ENCAP_TYPE in have)
        return replace(answer, hops=tuple(hops))

    def _members(self, identity: int) -> list[int]:
        for have in self._nexthop(identity):
            group = have.get(NHA_GROUP, b"")
            # struct nexthop_grp: id, weight and reserved, eight bytes.
            return [struct.unpack_from("=I", group, at)[0] for at in range(0, len(group), 8)] or [identity]
        return []

    def _nexthop(self, identity: int) -> list[dict[int, bytes]]:
        message = request(RTM_GETNEXTHOP, NLM_F_ACK, bytes(NEXTHOP_HEAD.size), (NHA_ID, u32(identity)))
        _error, answers, _why = self._socket.ask([message])[0]
        return [attributes(answer.body, NEXTHOP_HEAD.size) for answer in answers]

    def _blame(self, flow: Flow, rules: t.Sequence[PolicyRule]) -> tuple[PolicyRule | None, Answer | None]:
        """Return the rule and the route that refuse a packet, found as the kernel looks for them."""
        for rule in walk(rules, flow):
            if rule.unknown or rule.action != TO_TABLE:
                return rule, None
            fits = [route for route in self._table(flow.family, rule.table) if _leads(route, flow)]
            best = max(fits, key=lambda route: (route.length, -route.metric), default=None)
            if best is None or best.kind == "throw" or best.length <= rule.suppress_length:
                continue
            if best.kind in ERRORS.values():
                return rule, best
        return None, None

    def _table(self, family: int, table: int) -> list[Answer]:
        key = (family, table)
        if key not in self._tables:
            head = ROUTE_HEAD.pack(FAMILIES[family], 0, 0, 0, 0, 0, 0, 0, 0)
            message = request(RTM_GETROUTE, NLM_F_DUMP, head, (RTA_TABLE, u32(table)))
            found = [self._answer(answer.body) for answer in self._socket.dump(message)]
            self._tables[key] = [route for route in found if route.table == table]
        return self._tables[key]

    def _kind(self, interface: str) -> str:
        """Return the kind of a virtual interface, such as vrf, bond or bridge."""
        head = LINK_HEAD.pack(0, 0, socket.if_nametoindex(interface), 0, 0)
        _error, answers, _why = self._socket.ask([request(RTM_GETLINK, NLM_F_ACK, head)])[0]
        for answer in answers:
            info = attributes(attributes(answer.body, LINK_HEAD.size).get(IFLA_LINKINFO, b""), 0)
            return info.get(IFLA_INFO_KIND, b"").rstrip(b"\0").decode(errors="replace")
        return ""

    def _name(self, index: int) -> str:
        if index not in self._names:
            try:
                self._names[index] = socket.if_indextoname(index)
            except OSError:
                self._names[index] = f"if{index}"
        return self._names[index]


def _gateway(have: t.Mapping[int, bytes]) -> str:
    # RTA_VIA: an address of the other family, behind its family in two bytes (struct rtvia).
    raw = have.get(RTA_GATEWAY) or have.get(RTA_VIA, b"")[2:]
    return text_address(raw) if raw else ""


def _leads(route: Answer, flow: Flow) -> bool:
    if route.prefix and not inside(flow.destination, route.prefix):
        return False
    return not flow.interface or route.kind != UNICAST or any(hop.interface == flow.interface for hop in route.hops)


def prove(
    want: Want, host: Host, neighbours: t.Sequence[t.Mapping[str, t.Any]], tos: int = 0, wire: Wire | None = None
) -> tuple[list[Target], PathState]:
    """Return the ways of a host and what the kernel says of them. For checks: paths.checks_of().

    :param host: what Kernel.read() returned.
    :param neighbours: as targets_of() takes them.
    """
    names = {rail.name: link.name for rail in want.rails for link in [link_of(rail, host)] if link}
    targets = targets_of(want, names, neighbours)
    with Asker() as asker:
        return targets, asker.state(want, host, targets, tos, wire)
