# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether rails carry packets: sends from every rail of every host to every rail of every other one, and counts.

UDP to port 4791 with 4000 bytes that may not be fragmented, bound to the rail's interface and not bound, in both
families; between the same rails also of an ordinary user, and whether TCP gets an answer. It shares nothing with what
it judges: no plan but addresses, no question to the kernel, no echo.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import socket
import struct
import time
import typing as t

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import entered

PORT, TCP_PORT, USER, ROUNDS, SIZE = 4791, 18515, 1000, 6, 4000
# linux/in.h, linux/in6.h, asm-generic/socket.h
SO_BINDTODEVICE, SO_RCVBUFFORCE = 25, 33
MTU_DISCOVER = {socket.AF_INET: (0, 10), socket.AF_INET6: (41, 23)}
# Not fragmented, whatever somebody has told of the path before.
DONT_FRAGMENT = 3
HEAD = struct.Struct(">I")


class End(t.NamedTuple):
    """A rail's address on a host."""

    host: str
    rail: str
    interface: str
    address: str

    @property
    def kind(self) -> int:
        """The family, as sockets have it."""
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET


class Way(t.NamedTuple):
    """What is sent: from an end to another; `how` is bound, unbound, user or tcp."""

    source: End
    target: End
    how: str


class Judge:
    """All ends of a fabric."""

    def __init__(self, spaces: dict[str, str], ends: list[End]) -> None:
        """Remember the namespace of each host, and the ends."""
        self.spaces, self.ends = spaces, ends

    def lost(self) -> dict[Way, str]:
        """Return the ways on which something was lost, each with how much."""
        with contextlib.ExitStack() as stack:
            receivers = [sock for end in self.ends if (sock := self._receiver(stack, end))]
            ways = [
                Way(source, target, how)
                for source in self.ends
                for target in self.ends
                if source.host != target.host and source.kind == target.kind
                for how in ("bound", "unbound", *(("user", "tcp") if source.rail == target.rail else ()))
            ]
            senders = {
                (end, how): self._sender(stack, end, how) for end in self.ends for how in ("bound", "unbound", "user")
            }
            got = dict.fromkeys(range(len(ways)), 0)
            plain = [(number, way) for number, way in enumerate(ways) if way.how != "tcp"]
            for _turn in range(ROUNDS):
                for number, way in plain:
                    if sock := senders[way.source, way.how]:
                        with contextlib.suppress(OSError):
                            sock.sendto(HEAD.pack(number).ljust(SIZE, b"."), (way.target.address, PORT))
                    if not number % 64:
                        self._count(receivers, got, 0)
                self._count(receivers, got, 0.02)
            self._count(receivers, got, 0.3)
            answered = self._tcp(stack, [way for way in ways if way.how == "tcp"])
        found = {way: f"{ROUNDS - got[number]} of {ROUNDS}" for number, way in plain if got[number] < ROUNDS}
        return found | {way: "no answer" for way in ways if way.how == "tcp" and way not in answered}

    def _receiver(self, stack: contextlib.ExitStack, end: End) -> socket.socket | None:
        with entered(self.spaces[end.host]):
            sock = stack.enter_context(socket.socket(end.kind, socket.SOCK_DGRAM))
        sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        sock.setblocking(False)
        try:
            sock.bind((end.address, PORT))
        except OSError:  # the address is not there
            return None
        return sock

    def _sender(self, stack: contextlib.ExitStack, end: End, how: str) -> socket.socket | None:
        with entered(self.spaces[end.host]):
            os.seteuid(USER if how == "user" else 0)
            sock = stack.enter_context(socket.socket(end.kind, socket.SOCK_DGRAM))
            os.seteuid(0)
        try:
            if how == "bound":
                sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, end.interface.encode() + b"\0")
            sock.setsockopt(*MTU_DISCOVER[end.kind], DONT_FRAGMENT)
            sock.bind((end.address, 0))
        except OSError:
            return None
        return sock

    @staticmethod
    def _count(receivers: list[socket.socket], got: dict[int, int], wait: float) -> None:
        poller = select.poll()
        socks = {sock.fileno(): sock for sock in receivers}
        for number in socks:
            poller.register(number, select.POLLIN)
        while ready := poller.poll(wait * 1000):
            for number, _event in ready:
                with contextlib.suppress(OSError):
                    while True:
                        data = socks[number].recv(SIZE)
                        if len(data) == SIZE:
                            got[HEAD.unpack_from(data)[0]] += 1

    def _tcp(self, stack: contextlib.ExitStack, ways: list[Way]) -> set[Way]:
        """Return the ways whose first packet of TCP was answered: nobody listens, so by a refusal."""
        waiting: dict[int, tuple[Way, socket.socket]] = {}
        answered: set[Way] = set()
        poller = select.poll()
        for way in ways:
            with entered(self.spaces[way.source.host]):
                sock = stack.enter_context(socket.socket(way.source.kind, socket.SOCK_STREAM))
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                sock.bind((way.source.address, 0))
                if sock.connect_ex((way.target.address, TCP_PORT)) == errno.ECONNREFUSED:
                    answered.add(way)
                    continue
                waiting[sock.fileno()] = (way, sock)
                poller.register(sock.fileno(), select.POLLOUT)
        end = time.monotonic() + 1.5
        while waiting and (left := end - time.monotonic()) > 0:
            for number, _event in poller.poll(left * 1000):
                way, sock = waiting.pop(number)
                poller.unregister(number)
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED:
                    answered.add(way)
        return answered
