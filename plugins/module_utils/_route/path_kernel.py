# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the kernel where packets would go (RTM_GETROUTE), and for the neighbours that somebody set by hand.

Changes nothing and sends nothing. Questions are packed here: pyroute2 up to 0.9 knows no RTA_IP_PROTO, RTA_SPORT,
RTA_DPORT and RTA_UID. So are the source ports of rules: it knows no FRA_SPORT_MASK.
"""

from __future__ import annotations

import errno
import socket
import struct
import typing as t
from collections import defaultdict

from . import netlink as nl
from .devices import link_kind
from .model import KERNEL_PROTOCOLS, link_of
from .netlink import (
    Answer as Message,
)
from .netlink import attributes, packed, request, u32
from .paths import (
    PORT,
    Answer,
    Asked,
    Flow,
    Hop,
    PathState,
    RailLink,
    Target,
    flows_of,
    source_ports,
    targets_of,
)
from .read import Reader

if t.TYPE_CHECKING:
    from .model import Host, Route, Rule
    from .want import Want

# include/uapi/linux/rtnetlink.h, neighbour.h, fib_rules.h
RTM_GETNEIGH, RTM_F_LOOKUP_TABLE, UDP = 30, 0x1000, 17
NEIGH_HEAD, HOP_HEAD = struct.Struct("=B3xiHBB"), struct.Struct("=HBBi")
RTA_SRC, RTA_MULTIPATH, RTA_MARK, RTA_VIA, RTA_ENCAP_TYPE, RTA_UID = 2, 9, 16, 18, 21, 25
RTA_IP_PROTO, RTA_SPORT, RTA_DPORT = range(27, 30)
NDA_DST, NDA_LLADDR, NDA_IFINDEX, NUD_PERMANENT = 1, 2, 8, 0x80
FRA_SPORT_RANGE, FRA_SPORT_MASK = 23, 28
REFUSING = ("blackhole", "prohibit", "unreachable", "throw")
# Answers wait in the socket's buffer (212,992 bytes by default) until the last question of a batch is asked.
BATCH = 32

Wire = t.Callable[[str, t.Sequence[str]], t.Mapping[str, str]]
"""Asks the wire at an interface who has these addresses: the hardware address of each that somebody answers for."""


class Asker(Reader):
    """Asks over one socket."""

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
                vrf = link.master if link.master and link_kind(link.master) == "vrf" else ""
                links[rail.name] = RailLink(link.name, link.up, link.carrier, vrf)
        holders: dict[str, list[str]] = defaultdict(list)
        for item in sorted(host.addresses):
            holders[item.address].append(item.interface)
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
            rules=tuple(sorted(host.snapshot.rules)),
            asked=tuple(self._asked(there, host.snapshot.rules, tos)),
            refusing=tuple(sorted(self._refusing())),
            tentative=frozenset(item.address for item in host.addresses if not item.usable),
            neighbours=neighbours,
            seen=seen,
        )

    def _refusing(self) -> t.Iterator[Route]:
        """Return the routes of all tables that refuse or pass on what they are for: the kernel filters by type."""
        for family in nl.FAMILIES.values():
            for kind, name in nl.ROUTE_TYPES.items():
                if name in REFUSING:
                    head = nl.ROUTE_HEAD.pack(family, 0, 0, 0, 0, 0, 0, kind, 0)
                    found = map(self._route, self._dump(request(nl.RTM_GETROUTE, nl.NLM_F_DUMP, head)))
                    yield from (item for item in found if item.other == name and item.protocol not in KERNEL_PROTOCOLS)

    def set_by_hand(self, interface: str) -> dict[str, str]:
        """Return the neighbours of an interface whose hardware address somebody set: by address."""
        index = self._index_of(interface)
        found = {}
        message = request(RTM_GETNEIGH, nl.NLM_F_DUMP, bytes(NEIGH_HEAD.size), (NDA_IFINDEX, u32(index)))
        for answer in self._dump(message):
            _family, where, state, _flags, _kind = NEIGH_HEAD.unpack_from(answer.body)
            have = attributes(answer.body, NEIGH_HEAD.size)
            if state & NUD_PERMANENT and where == index and NDA_LLADDR in have and NDA_DST in have:
                found[_text(have[NDA_DST])] = have[NDA_LLADDR].hex(":")
        return found

    def _asked(self, targets: t.Sequence[Target], rules: t.Iterable[Rule], tos: int) -> t.Iterator[Asked]:
        ports = source_ports(port for rule in sorted(rules) for port in _ports_of(rule))
        pairs = [(target, flow) for target in targets for flow in flows_of(target, tos, ports)]
        answers = self._answers([_question(flow, match) for _target, flow in pairs for match in (True, False)])
        for (target, flow), match, plain in zip(pairs, answers[::2], answers[1::2]):
            yield Asked(target, flow, match, plain)

    def _answers(self, questions: t.Sequence[bytes]) -> list[Answer]:
        return [
            self._answer(answers[0]) if answers and not error else Answer(error or errno.ENODATA)
            for first in range(0, len(questions), BATCH)
            for error, answers, _why in self._ask(list(questions[first : first + BATCH]))
        ]

    def _answer(self, answer: Message) -> Answer:
        have = attributes(answer.body, nl.ROUTE_HEAD.size)
        hops = [have] if nl.RTA_OIF in have else []
        rest = have.get(RTA_MULTIPATH, b"")
        while len(rest) >= HOP_HEAD.size:
            length, _flags, _weight, index = HOP_HEAD.unpack_from(rest)
            hops.append({**attributes(rest[:length], HOP_HEAD.size), nl.RTA_OIF: u32(index)})
            rest = rest[max(length + 3 & ~3, HOP_HEAD.size) :]
        return Answer(
            route=self._route(answer),
            hops=tuple(self._hop(hop) for hop in hops),
            encapsulated=any(RTA_ENCAP_TYPE in hop for hop in hops),
        )

    def _hop(self, have: t.Mapping[int, bytes]) -> Hop:
        # RTA_VIA: an address of the other family, behind its family in two bytes (struct rtvia).
        raw = have.get(nl.RTA_GATEWAY) or have.get(RTA_VIA, b"")[2:]
        return Hop(self._name_of(struct.unpack("=I", have[nl.RTA_OIF])[0]), _text(raw) if raw else "")


def _question(flow: Flow, match: bool) -> bytes:
    family = 6 if ":" in flow.destination else 4
    # IPv6 tells the real table anyway, and refuses the flag under strict checking.
    flags = (nl.RTM_F_FIB_MATCH if match else 0) | (RTM_F_LOOKUP_TABLE if family == 4 else 0)
    length = 32 if family == 4 else 128
    head = nl.ROUTE_HEAD.pack(nl.FAMILIES[family], length, length if flow.source else 0, flow.tos, 0, 0, 0, 0, flags)
    asked = [(nl.RTA_DST, packed(flow.destination))]
    asked += [(RTA_SRC, packed(flow.source))] if flow.source else []
    asked += [(nl.RTA_OIF, u32(socket.if_nametoindex(flow.interface)))] if flow.interface else []
    asked += [(RTA_MARK, u32(0)), (RTA_UID, u32(0)), (RTA_IP_PROTO, bytes([UDP]))]
    asked += [(RTA_SPORT, struct.pack(">H", flow.sport)), (RTA_DPORT, struct.pack(">H", PORT))]
    return request(nl.RTM_GETROUTE, nl.NLM_F_ACK, head, *asked)


def _ports_of(rule: Rule) -> t.Iterator[tuple[int, int, int]]:
    """Return the selector by source port of a rule, where it has one."""
    have = attributes(bytes.fromhex(rule.raw), nl.RULE_HEAD.size)
    if FRA_SPORT_RANGE in have:
        mask = struct.unpack("=H", have.get(FRA_SPORT_MASK, bytes(2)))[0]
        yield (*struct.unpack("=HH", have[FRA_SPORT_RANGE]), mask)


def _text(value: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(value) == 4 else socket.AF_INET6, value)


def prove(
    want: Want, host: Host, neighbours: t.Sequence[t.Mapping[str, t.Any]], tos: int = 0, wire: Wire | None = None
) -> tuple[list[Target], PathState]:
    """Return the ways of a host and what the kernel says of them. For checks: path_checks.checks_of().

    :param host: what Kernel.read() returned.
    :param neighbours: as targets_of() takes them.
    """
    names = {rail.name: link.name for rail in want.rails for link in [link_of(rail, host)] if link}
    targets = targets_of(want, names, neighbours)
    with Asker() as asker:
        return targets, asker.state(want, host, targets, tos, wire)
