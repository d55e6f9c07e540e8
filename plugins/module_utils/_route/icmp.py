# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Send echo requests to many addresses at once, each from a rail's address and bound to its interface.

ICMP (RFC 792) and ICMPv6 (RFC 4443) over raw sockets: one process and one wait for all rails and neighbors. First
every address is knocked at until it has answered once, so that links that just came up and neighbor tables get their
moment; then those that did are sent more, close together, and what is lost of these is counted.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import time
import typing as t
from dataclasses import dataclass

from .._listen import Sockets

# linux/in.h, linux/in6.h, asm-generic/socket.h
SO_BINDTODEVICE, SO_RCVBUFFORCE = 25, 33
IP_MTU_DISCOVER, IP_PMTUDISC_PROBE = 10, 3
IPV6_MTU_DISCOVER = 23
TRAFFIC_CLASS = {4: (0, 1), 6: (41, 67)}
ECHO = {4: (8, 0), 6: (128, 129)}
HEADERS = {4: 28, 6: 48}
# Seconds between two knocks, and between two of the requests that are counted.
INTERVAL, STEP = 0.2, 0.01
PLAIN_SIZE = 16
# Every raw socket gets every answer of its interface, those of full size too.
BUFFER = 4 << 20
TOKEN = struct.Struct(">HHI")


@dataclass(frozen=True)
class EchoTarget:
    """One question: whether `address` answers what is sent from `source` on `interface`.

    `size` is the length in bytes of the whole IP packet that must pass unfragmented; 0 is a small one. `peer` is the
    host whose address it is, empty for a gateway; `other` the other rail that has it, where it is not the same one;
    `via` the gateway that forwards it, where the address is outside the rail's subnet.
    """

    check: str
    rail: str
    interface: str
    source: str
    address: str
    size: int = 0
    peer: str = ""
    other: str = ""
    via: str = ""

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4


@dataclass
class EchoOutcome:
    """A target's result: whether it answered at all; the counted requests and their answers; seconds; an error."""

    answered: bool = False
    knocks: int = 0
    sent: int = 0
    received: int = 0
    best: float = 0.0
    error: str = ""

    @property
    def lost(self) -> int:
        """The number of counted requests without an answer."""
        return self.sent - self.received


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
    :param token: identifies this run's answers.
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


class EchoRun:
    """All targets, asked at the same time."""

    def __init__(self, targets: list[EchoTarget], count: int, timeout: float, tos: int = 0) -> None:
        self.targets = targets
        self.count = count
        self.timeout = timeout
        self.tos = tos
        self.outcomes = [EchoOutcome() for _target in targets]
        self._token = int.from_bytes(os.urandom(4), "big")
        self._sockets: Sockets[int] = Sockets("Echo requests need a raw socket")
        self._sent: dict[tuple[int, int], float] = {}
        # Who is waited for, and for how many answers to what is counted.
        self._waiting: dict[int, int] = {}
        self._small = {(one.source, one.address): number for number, one in enumerate(targets) if not one.size}

    def run(self, echoes: int = 0) -> list[EchoOutcome]:
        """Knock at most `count` times until each has answered; then send `echoes` to those that have, and count."""
        with self._sockets:
            for number, target in enumerate(self.targets):
                self._open(number, target)
            self._turns(dict.fromkeys(self._sockets.of, 0), 0, self.count, INTERVAL)
            alive = [number for number in self._sockets.of if self.outcomes[number].answered]
            if echoes and alive:
                self._turns(dict.fromkeys(alive, echoes), self.count, echoes, STEP)
        return self.outcomes

    def _turns(self, waiting: dict[int, int], first: int, turns: int, interval: float) -> None:
        """Send to each of `waiting`, turn after turn, until all have answered; then wait for the rest."""
        self._waiting = waiting
        start = time.monotonic()
        for turn in range(turns):
            for number, counted in waiting.items():
                # Large replies to an unknown MAC address would fill the peer's ICMP socket: its other replies are lost.
                small = self._small.get((self.targets[number].source, self.targets[number].address), number)
                if not turn or counted or small == number or self.outcomes[small].answered:
                    self._send(number, first + turn, counted=counted > 0)
            self._collect(start + (turn + 1) * interval)
            if self._done():
                return
        self._collect(time.monotonic() + self.timeout)

    def _open(self, number: int, target: EchoTarget) -> None:
        four = target.family == 4
        family, protocol = (socket.AF_INET, socket.IPPROTO_ICMP) if four else (socket.AF_INET6, socket.IPPROTO_ICMPV6)

        def prepare(sock: socket.socket) -> None:
            with contextlib.suppress(OSError):  # without CAP_NET_ADMIN it has the usual room
                sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER)
            sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, target.interface.encode() + b"\0")
            sock.setsockopt(*TRAFFIC_CLASS[target.family], self.tos)
            if target.size:
                level, option = (0, IP_MTU_DISCOVER) if four else (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER)
                sock.setsockopt(level, option, IP_PMTUDISC_PROBE)
            sock.bind((target.source, 0))

        if why := self._sockets.open(number, (family, socket.SOCK_RAW, protocol), prepare):
            self.outcomes[number].error = f"cannot send from {target.source} on {target.interface}: {why}"

    def _send(self, number: int, turn: int, *, counted: bool) -> None:
        target, outcome = self.targets[number], self.outcomes[number]
        data = packet(target.family, number & 0xFFFF, turn, self._token, target.size)
        self._sent[(number, turn)] = time.monotonic()
        if counted:
            outcome.sent += 1
        else:
            outcome.knocks += 1
        try:
            self._sockets.of[number].sendto(data, (target.address, 0))
        except OSError as exc:
            text = {errno.EMSGSIZE: f"a packet of {target.size} bytes does not fit the interface's MTU"}
            outcome.error = text.get(exc.errno or 0, os.strerror(exc.errno or 0))

    def _done(self) -> bool:
        return all(
            self.outcomes[number].received == counted if counted else self.outcomes[number].answered
            for number, counted in self._waiting.items()
        )

    def _collect(self, until: float) -> None:
        for number, data, sender in self._sockets.received(until, self._done, self.timeout):
            self._take(number, data, sender)

    def _take(self, number: int, data: bytes, sender: t.Any) -> None:
        target, outcome = self.targets[number], self.outcomes[number]
        found = answer(target.family, data)
        # Every raw socket sees every answer of its interface.
        if not found or found[0] != number & 0xFFFF or found[2] != self._token:
            return
        if sender[0].partition("%")[0] != target.address or (number, found[1]) not in self._sent:
            return
        took = time.monotonic() - self._sent.pop((number, found[1]))
        outcome.answered = True
        outcome.received += found[1] >= self.count
        outcome.error = ""
        outcome.best = min(outcome.best or took, took)
