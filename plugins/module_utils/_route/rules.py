# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Policy rules as the kernel sees them: what each selects, and which one won for a packet. Pure.

The kernel answers a question for a route with a table, and never with the rule that led there. This walks the rules as
net/core/fib_rules.c (fib_rules_lookup, fib_rule_match), net/ipv4/fib_rules.c and net/ipv6/fib6_rules.c of Linux 6.12
do. Rules are read from the messages themselves: pyroute2 up to 0.9 knows no selector after FRA_DPORT_RANGE.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import typing as t
from dataclasses import dataclass, replace

from .model import PROTOCOL as OUR_PROTOCOL
from .model import PROTOCOL_NAME
from .netlink import attributes

# include/uapi/linux/fib_rules.h, struct fib_rule_hdr: family, dst_len, src_len, tos, table, 2 reserved, action, flags.
HEAD = struct.Struct("=8BI")
INVERT, UNRESOLVED = 0x2, 0x4
TO_TABLE, GOTO, NOP = 1, 2, 3
ERRORS = {6: "blackhole", 7: "unreachable", 8: "prohibit"}
DST, SRC, IIF, GOTO_TARGET, PRIORITY = 1, 2, 3, 4, 6
MARK, FLOW, TUN_ID, SUPPRESS_GROUP, SUPPRESS_LENGTH, TABLE, MASK, OIF, PAD = range(10, 19)
L3MDEV, UID_RANGE, PROTOCOL, IP_PROTO, SPORT, DPORT, DSCP = range(19, 26)
SPORT_MASK, DPORT_MASK, DSCP_MASK = 28, 29, 30
# What selects nothing, and what is understood here; a rule with anything else cannot be judged.
KNOWN = {0, DST, SRC, IIF, GOTO_TARGET, PRIORITY, MARK, FLOW, TUN_ID, SUPPRESS_GROUP, SUPPRESS_LENGTH, TABLE, MASK}
KNOWN |= {OIF, PAD, L3MDEV, UID_RANGE, PROTOCOL, IP_PROTO, SPORT, DPORT, DSCP, SPORT_MASK, DPORT_MASK, DSCP_MASK}
NONE = 0xFFFFFFFF
UDP = 17
# IPTOS_RT_MASK of IPv4's tos selector (include/uapi/linux/in_route.h); IPv6's is all but ECN.
TOS_MASK = {4: 0x1C, 6: 0xFC}
FAMILIES = {socket.AF_INET: 4, socket.AF_INET6: 6}
# Who made a rule or route: RTPROT_* of include/uapi/linux/rtnetlink.h as iproute2 names them, and ours.
MAKERS = {
    0: "unspec",
    1: "redirect",
    2: "kernel",
    3: "boot",
    4: "static",
    9: "ra",
    11: "zebra",
    12: "bird",
    16: "dhcp",
    OUR_PROTOCOL: PROTOCOL_NAME,
    186: "bgp",
    187: "isis",
    188: "ospf",
}
TABLES = {255: "local", 254: "main", 253: "default"}


def maker(protocol: int) -> str:
    """Return who made a rule or route, by its protocol number."""
    return MAKERS.get(protocol, f"protocol {protocol}")


def table_name(table: int) -> str:
    """Return a table as iproute2 names it."""
    return TABLES.get(table, str(table))


def number(value: bytes | None, default: int = 0) -> int:
    """Return an attribute of 32 bits (host order) as a number."""
    return int(struct.unpack("=I", value)[0]) if value else default


def text_address(value: bytes) -> str:
    """Return an address of four or sixteen bytes as text."""
    return socket.inet_ntop(socket.AF_INET if len(value) == 4 else socket.AF_INET6, value)


@dataclass(frozen=True)
class Flow:
    """A packet that a host is about to send. `interface` is the one it is bound to, or empty; `sport` 0 is any."""

    family: int
    source: str
    destination: str
    interface: str = ""
    tos: int = 0
    mark: int = 0
    uid: int = 0
    protocol: int = UDP
    sport: int = 0
    dport: int = 0
    vrf: bool = False


@dataclass(frozen=True)
class Ports:
    """A selector of ports: first to last, or those that equal `first` under a mask."""

    first: int
    last: int
    mask: int = 0

    def has(self, port: int) -> bool:
        """Whether a port is selected."""
        return ((port ^ self.first) & self.mask) == 0 if self.mask else self.first <= port <= self.last

    def __str__(self) -> str:
        if self.mask not in (0, 0xFFFF):
            return f"{self.first:#x}/{self.mask:#x}"
        return str(self.first) if self.first == self.last or self.mask else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class PolicyRule:
    """One rule with all its selectors; None is one that the rule does not have.

    `after` is the rule that jumped to it (goto), where one did.
    """

    family: int
    priority: int
    action: int
    table: int = 0
    protocol: int = 0
    invert: bool = False
    source: str = ""
    destination: str = ""
    iif: str = ""
    oif: str = ""
    mark: tuple[int, int] | None = None
    uid: tuple[int, int] | None = None
    tos: int = 0
    dscp: tuple[int, int] | None = None
    ip_proto: int = 0
    sport: Ports | None = None
    dport: Ports | None = None
    l3mdev: bool = False
    tunnel: int = 0
    target: int = 0
    suppress_length: int = -1
    suppress_group: int = -1
    unknown: tuple[int, ...] = ()
    after: PolicyRule | None = None

    @property
    def asks_packets_only(self) -> bool:
        """Whether it selects by what RDMA's own look-up of a route leaves out: ports, protocol of transport, DSCP."""
        return bool(self.ip_proto or self.sport or self.dport or self.tos or self.dscp)

    def matches(self, flow: Flow) -> bool:
        """Whether the rule selects a packet."""
        return all(self._selected(flow)) != self.invert

    def _selected(self, flow: Flow) -> t.Iterator[bool]:
        yield not self.source or inside(flow.source, self.source)
        yield not self.destination or inside(flow.destination, self.destination)
        # Of a packet that the host sends itself, the interface that it came from is the loopback.
        yield self.iif in ("", "lo")
        yield self.oif in ("", flow.interface)
        yield self.mark is None or ((self.mark[0] ^ flow.mark) & self.mark[1]) == 0
        yield not self.tunnel
        yield not self.l3mdev or flow.vrf
        yield self.uid is None or self.uid[0] <= flow.uid <= self.uid[1]
        yield not self.tos or (flow.tos & TOS_MASK[self.family]) == self.tos
        yield self.dscp is None or (((flow.tos >> 2) ^ self.dscp[0]) & self.dscp[1]) == 0
        yield self.ip_proto in (0, flow.protocol)
        yield self.sport is None or self.sport.has(flow.sport)
        yield self.dport is None or self.dport.has(flow.dport)

    def __str__(self) -> str:
        """Return it as iproute2 writes it, with who made it."""
        words = [f"{self.priority}:", *(["not"] if self.invert else []), "from", self.source or "all"]
        words += ["to", self.destination] if self.destination else []
        words += [f"tos {self.tos:#04x}"] if self.tos else []
        words += [f"dscp {self.dscp[0]}"] if self.dscp else []
        words += [f"fwmark {self.mark[0]:#x}/{self.mark[1]:#x}"] if self.mark else []
        words += ["iif", self.iif] if self.iif else []
        words += ["oif", self.oif] if self.oif else []
        words += ["l3mdev"] if self.l3mdev else []
        words += [f"uidrange {self.uid[0]}-{self.uid[1]}"] if self.uid else []
        words += [f"ipproto {IP_PROTOS.get(self.ip_proto, self.ip_proto)}"] if self.ip_proto else []
        words += [f"sport {self.sport}"] if self.sport else []
        words += [f"dport {self.dport}"] if self.dport else []
        words += [f"selector {kind}" for kind in self.unknown]
        if self.action == TO_TABLE:
            words += ["l3mdev-table"] if self.l3mdev else ["lookup", table_name(self.table)]
        else:
            words += [f"goto {self.target}"] if self.action == GOTO else [ERRORS.get(self.action, "nop")]
        return " ".join(words)


IP_PROTOS = {6: "tcp", 17: "udp", 1: "icmp", 58: "ipv6-icmp"}


def inside(address: str, prefix: str) -> bool:
    """Whether an address is inside a prefix in CIDR notation."""
    return ipaddress.ip_address(address) in ipaddress.ip_network(prefix, strict=False)


def rule_of(body: bytes) -> PolicyRule | None:
    """Return the rule of a message (what follows its header); None for families without addresses."""
    family, dst_len, src_len, tos, table, _one, _two, action, flags = HEAD.unpack_from(body)
    if family not in FAMILIES:
        return None
    have = attributes(body, HEAD.size)

    def prefix(kind: int, length: int) -> str:
        return f"{text_address(have[kind])}/{length}" if kind in have and length else ""

    def name(kind: int) -> str:
        return have[kind].rstrip(b"\0").decode(errors="replace") if kind in have else ""

    def ports(kind: int, mask: int) -> Ports | None:
        if kind not in have:
            return None
        first, last = struct.unpack("=HH", have[kind])
        return Ports(first, last, struct.unpack("=H", have[mask])[0] if mask in have else 0)

    def byte(kind: int, default: int = 0) -> int:
        return have[kind][0] if kind in have else default

    mark, mask = number(have.get(MARK)), number(have.get(MASK))
    return PolicyRule(
        family=FAMILIES[family],
        priority=number(have.get(PRIORITY)),
        action=NOP if action == GOTO and flags & UNRESOLVED else action,
        table=number(have.get(TABLE), table),
        protocol=byte(PROTOCOL),
        invert=bool(flags & INVERT),
        source=prefix(SRC, src_len),
        destination=prefix(DST, dst_len),
        iif=name(IIF),
        oif=name(OIF),
        mark=(mark, mask) if mask else None,
        uid=t.cast("tuple[int, int]", struct.unpack("=II", have[UID_RANGE])) if UID_RANGE in have else None,
        tos=tos,
        dscp=(byte(DSCP), byte(DSCP_MASK, 0x3F)) if DSCP in have else None,
        ip_proto=byte(IP_PROTO),
        sport=ports(SPORT, SPORT_MASK),
        dport=ports(DPORT, DPORT_MASK),
        l3mdev=bool(byte(L3MDEV)),
        tunnel=int.from_bytes(have.get(TUN_ID, b""), "big"),
        target=number(have.get(GOTO_TARGET)),
        suppress_length=_signed(have.get(SUPPRESS_LENGTH)),
        suppress_group=_signed(have.get(SUPPRESS_GROUP)),
        unknown=tuple(sorted(set(have) - KNOWN)),
    )


def _signed(value: bytes | None) -> int:
    return -1 if number(value, NONE) == NONE else number(value)


def walk(rules: t.Sequence[PolicyRule], flow: Flow) -> t.Iterator[PolicyRule]:
    """Yield the rules that decide about a packet, in the order in which the kernel takes them.

    It ends after a rule that answers with an error, and at one that cannot be judged (`unknown` not empty).
    """
    place, jump = 0, None
    while place < len(rules):
        rule = replace(rules[place], after=jump)
        place += 1
        if rule.unknown:
            yield rule
            return
        if not rule.matches(flow) or rule.action == NOP:
            continue
        if rule.action == GOTO:
            there = next((spot for spot in range(place, len(rules)) if rules[spot].priority == rule.target), None)
            place, jump = (place, jump) if there is None else (there, rule)
            continue
        yield rule
        if rule.action in ERRORS:
            return


def winner(rules: t.Sequence[PolicyRule], flow: Flow, table: int, length: int) -> PolicyRule | None:
    """Return the rule that led to a route.

    :param rules: those of the flow's family, in the kernel's order.
    :param table: the table that the kernel answered.
    :param length: the length of the answered route's prefix.
    :return: the rule; one with `unknown` selectors when it cannot be said; None when the rules contradict the answer.
    """
    for rule in walk(rules, flow):
        if rule.unknown:
            return rule
        # Without a route in its table (or with one that it suppresses) the kernel goes on.
        if rule.action == TO_TABLE and (rule.table == table or rule.l3mdev) and length > rule.suppress_length:
            return rule
    return None


def source_ports(rules: t.Iterable[PolicyRule], first: int, last: int, limit: int = 8) -> list[int]:
    """Return the ports of a range that rules by source port can tell apart, at most `limit` of them.

    :param first: of the range.
    :param last: of the range.
    """
    found = {first}
    for rule in rules:
        if rule.sport and rule.sport.mask in (0, 0xFFFF):
            top = rule.sport.first if rule.sport.mask else rule.sport.last
            found |= {port for port in (rule.sport.first, top + 1) if first <= port <= last}
        elif rule.sport:
            found |= {port for port in (first | (rule.sport.first & rule.sport.mask),) if first <= port <= last}
    return sorted(found)[:limit]
