# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask many addresses for an echo at once, each from a rail's address and bound to its interface.

ICMP (RFC 792) and ICMPv6 (RFC 4443) over raw sockets: one process and one wait for all rails and neighbours.
"""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import time
import typing as t
from dataclasses import dataclass

from .._check import CheckData, compared
from .._errors import RdmaError
from .._files import Sysfs
from .across import CHECK, Pair, judge, sample
from .options import host_plan_spec
from .want import Neighbour, Want, neighbours_of, parse_want

if t.TYPE_CHECKING:
    # Addresses by interface in, who answered for them out: hardware address by address, by interface.
    Wire = t.Callable[[t.Mapping[str, t.Sequence[str]]], t.Mapping[str, t.Mapping[str, str]]]

# linux/in.h, linux/in6.h, asm-generic/socket.h
SO_BINDTODEVICE = 25
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
IPV6_MTU_DISCOVER = 23
ECHO = {4: (8, 0), 6: (128, 129)}
HEADERS = {4: 28, 6: 48}
INTERVAL = 0.2
PLAIN_SIZE = 16
SILENT = 3
TOKEN = struct.Struct(">HHI")

SPEC = {
    **host_plan_spec(),
    "full_size": {"type": "bool", "default": False},
    "across": {"type": "int", "default": 0},
    "rails_meet": {"type": "bool"},
    "seed": {"type": "int", "default": 0},
    "count": {"type": "int", "default": 10},
    "timeout": {"type": "float", "default": 1.0},
}


@dataclass(frozen=True)
class Target:
    """One question: whether `address` answers what is sent from `source` on `interface`.

    `size` is the length in bytes of the whole IP packet that must pass unfragmented; 0 is a small one. `peer` is the
    host whose address it is, empty for a gateway.
    """

    check: str
    rail: str
    interface: str
    source: str
    address: str
    size: int = 0
    peer: str = ""

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4


@dataclass
class Outcome:
    """What came of a target."""

    sent: int = 0
    received: int = 0
    best: float = 0.0
    error: str = ""


def targets_of(
    want: Want,
    names: t.Mapping[str, str],
    neighbours: t.Collection[Neighbour] = (),
    *,
    full_size: bool = False,
) -> list[Target]:
    """Return what to ask: each rail's gateways, and the neighbours' addresses on the same rail and family.

    :param full_size: whether packets as large as the MTU are sent too.
    :param names: the interface name of each rail.
    """
    found = []
    for rail in want.rails:
        name = names[rail.name]
        for item in rail.addresses:
            others = [("gateway", item.gateway, "")] if item.gateway else []
            others += [
                ("neighbour", there.address, there.host)
                for there in neighbours
                if (there.rail, there.family) == (rail.name, item.family)
            ]
            for kind, address, peer in others:
                for size in [0, rail.mtu] if full_size and rail.mtu else [0]:
                    check = f"ping_{kind}_mtu" if size else f"ping_{kind}"
                    found.append(Target(check, rail.name, name, item.address, address, size, peer))
    return found


def pairs_of(want: Want, neighbours: t.Iterable[Neighbour]) -> list[Pair]:
    """Return every pair of one of this host's rails and another rail of a neighbour, by family."""
    return [
        Pair(rail.name, there.rail, item.family, there.address)
        for rail in want.rails
        for item in rail.addresses
        for there in neighbours
        if there.rail != rail.name and there.family == item.family
    ]


def names_of(want: Want, sysfs: Sysfs | None = None) -> dict[str, str]:
    """Return the interface name of each rail; of one named by PCI address alone, what the kernel calls it."""
    files = sysfs or Sysfs()
    return {
        rail.name: rail.device if rail.interface else next(iter(files.pci_interfaces(rail.pci)), rail.pci)
        for rail in want.rails
    }


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(family: int, ident: int, number: int, token: int, size: int = 0) -> bytes:
    """Return an echo request; the kernel fills in ICMPv6's checksum itself.

    :param ident: of the sender, 16 bits.
    :param number: of the request, 16 bits.
    :param token: tells this run's answers.
    :param size: of the IP packet in bytes; 0 for the smallest.
    """
    length = max(size - HEADERS[family], PLAIN_SIZE) if size else PLAIN_SIZE
    body = TOKEN.pack(ident, number, token).ljust(length, b"r")
    head = struct.pack(">BBHHH", ECHO[family][0], 0, 0, ident, number)
    if family == 4:
        head = struct.pack(">BBHHH", ECHO[family][0], 0, checksum(head + body), ident, number)
    return head + body


def answer(family: int, data: bytes) -> tuple[int, int, int] | None:
    """Return ident, number and token of an echo reply, or None when it is something else."""
    if family == 4:
        data = data[(data[0] & 0xF) * 4 :]
    if len(data) < 8 + TOKEN.size or data[0] != ECHO[family][1]:
        return None
    ident, number, token = TOKEN.unpack_from(data, 8)
    return (ident, number, token)


class Sweep:
    """All targets, asked at the same time."""

    def __init__(self, targets: list[Target], count: int, timeout: float) -> None:
        self.targets = targets
        self.count = count
        self.timeout = timeout
        self.outcomes = [Outcome() for _target in targets]
        self._token = int.from_bytes(os.urandom(4), "big")
        self._sockets: dict[int, socket.socket] = {}
        self._sent: dict[tuple[int, int], float] = {}

    def run(self) -> list[Outcome]:
        """Send all, wait for all, and say what came."""
        try:
            for number, target in enumerate(self.targets):
                self._open(number, target)
            start = time.monotonic()
            for turn in range(self.count):
                for number, sock in self._sockets.items():
                    self._send(number, turn, sock)
                self._collect(start + (turn + 1) * INTERVAL)
                if self._done():
                    break
            self._collect(time.monotonic() + self.timeout)
        finally:
            for sock in self._sockets.values():
                sock.close()
        return self.outcomes

    def _open(self, number: int, target: Target) -> None:
        four = target.family == 4
        family = socket.AF_INET if four else socket.AF_INET6
        try:
            sock = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_ICMP if four else socket.IPPROTO_ICMPV6)
        except PermissionError as exc:
            raise RdmaError(
                "Echo requests need a raw socket.", "Run the task with become: true (CAP_NET_RAW)."
            ) from exc
        self._sockets[number] = sock
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, target.interface.encode() + b"\0")
            if target.size:
                level, option = (0, IP_MTU_DISCOVER) if four else (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER)
                sock.setsockopt(level, option, IP_PMTUDISC_PROBE)
            sock.bind((target.source, 0))
            sock.setblocking(False)
        except OSError as exc:
            where = f"{target.source} on {target.interface}"
            self.outcomes[number].error = f"cannot send from {where}: {os.strerror(exc.errno or 0)}"
            self._sockets.pop(number).close()

    def _send(self, number: int, turn: int, sock: socket.socket) -> None:
        target, outcome = self.targets[number], self.outcomes[number]
        data = packet(target.family, number & 0xFFFF, turn, self._token, target.size)
        self._sent[(number, turn)] = time.monotonic()
        outcome.sent += 1
        try:
            sock.sendto(data, (target.address, 0))
        except OSError as exc:
            text = {errno.EMSGSIZE: f"a packet of {target.size} bytes does not fit the interface's MTU"}
            outcome.error = text.get(exc.errno or 0, os.strerror(exc.errno or 0))

    def _done(self) -> bool:
        return all(self.outcomes[number].received for number in self._sockets)

    def _collect(self, until: float) -> None:
        numbers = {sock.fileno(): number for number, sock in self._sockets.items()}
        poller = select.poll()
        for descriptor in numbers:
            poller.register(descriptor, select.POLLIN)
        while not self._done():
            left = until - time.monotonic()
            if left <= 0:
                return
            for descriptor, _event in poller.poll(left * 1000):
                self._receive(numbers[descriptor])

    def _receive(self, number: int) -> None:
        target, outcome = self.targets[number], self.outcomes[number]
        try:
            data, sender = self._sockets[number].recvfrom(65535)
        except OSError:
            # An error that the network reported: the question stays unanswered.
            return
        found = answer(target.family, data)
        # Every raw socket sees every answer of its interface.
        if not found or found[0] != number & 0xFFFF or found[2] != self._token:
            return
        if sender[0].partition("%")[0] != target.address or (number, found[1]) not in self._sent:
            return
        took = time.monotonic() - self._sent.pop((number, found[1]))
        outcome.received += 1
        outcome.error = ""
        outcome.best = min(outcome.best or took, took)


def checks_of(targets: list[Target], outcomes: list[Outcome]) -> list[CheckData]:
    """Return one check per target."""
    checks = []
    for target, outcome in zip(targets, outcomes):
        good = outcome.received > 0
        size = f" with {target.size} bytes unfragmented" if target.size else ""
        cause = "" if good else outcome.error or f"no answer to {outcome.sent} echo requests{size}"
        check = compared(
            target.check,
            f"{target.address} answers {target.source} on {target.interface}{size}",
            f"answer in {outcome.best * 1000:.1f} ms" if good else "no answer",
            cause,
            _fix(target),
            good=good,
            rail=target.rail,
            peers=() if good or not target.peer else (target.peer,),
        )
        checks.append(check.data())
    return checks


def _fix(target: Target) -> str:
    if target.size:
        return "Compare the MTU of host, switch port and gateway interface; the switch needs the host's MTU or more."
    if target.check == "ping_gateway":
        return f"Look at link, VLAN and address of the switch's side: `ip neighbor show dev {target.interface}`."
    return "Look at the routes between the leaves, and at the neighbour's own checks."


def checks_of_rails(params: dict[str, t.Any], hosts: t.Iterable[t.Mapping[str, t.Any]], wire: Wire) -> list[CheckData]:
    """Send echo requests from every rail, and return the checks of what answered.

    :param params: those of SPEC.
    :param hosts: the neighbours with their rails.
    :param wire: queries interfaces for these addresses, for isolated rails without a gateway. Of IPv6 no echo
        request leaves by a rail towards another one there, whoever has joined the two; of IPv4 one does, since the
        kernel takes what it has no route for to be on the link that the socket is bound to.
    """
    want, neighbours = parse_want(params), neighbours_of(hosts)
    names = names_of(want)
    targets = targets_of(want, names, neighbours, full_size=params["full_size"])
    pairs, meet = _across(want, params, neighbours)
    sources = {(rail.name, item.family): item.address for rail in want.rails for item in rail.addresses}
    crossing = [Target(CHECK, p.rail, names[p.rail], sources[p.rail, p.family], p.address) for p in pairs]
    # What must not answer is not waited for as long as what should.
    outcomes = Sweep(targets + (crossing if meet else []), params["count"], params["timeout"]).run()
    if crossing and not meet:
        outcomes += Sweep(crossing, min(params["count"], SILENT), params["timeout"]).run()
    checks = checks_of(targets, outcomes[: len(targets)])
    answered = dict(zip(pairs, (outcome.received > 0 for outcome in outcomes[len(targets) :])))
    if not meet:
        _add_the_wire(answered, want, names, wire)
    alive = {
        (target.rail, target.family)
        for target, outcome in zip(targets, outcomes)
        if target.check == "ping_neighbour" and outcome.received
    }
    crossed = judge(answered, alive, bool(meet), params["rails_meet"] is not None)
    return checks + [check.data() for check in crossed]


def _add_the_wire(answered: dict[Pair, bool], want: Want, names: t.Mapping[str, str], wire: Wire) -> None:
    """Put into `answered` what the wire answers of pairs whose rail has no gateway."""
    routed = {(rail.name, item.family) for rail in want.rails for item in rail.addresses if item.gateway}
    linked = [pair for pair in answered if (pair.rail, pair.family) not in routed]
    queries: dict[str, list[str]] = {}
    for pair in linked:
        queries.setdefault(names[pair.rail], []).append(pair.address)
    if not queries:
        return
    found = wire(queries)
    answered.update({pair: answered[pair] or pair.address in found[names[pair.rail]] for pair in linked})


def _across(want: Want, params: dict[str, t.Any], neighbours: list[Neighbour]) -> tuple[list[Pair], bool | None]:
    """Return the pairs of rails to ask, and whether they meet; no pair where nobody knows that."""
    meet = params["rails_meet"]
    if meet is None and params["network"] != "infiniband":
        meet = any(item.gateway for rail in want.rails for item in rail.addresses)
    pairs = [] if meet is None else pairs_of(want, neighbours)
    host = " ".join(item.address for rail in want.rails for item in rail.addresses)
    return sample(pairs, params["across"], params["seed"], host), meet
