# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether rails carry packets, and which way: sends them, counts them at their target and watches the leaf ports.

UDP to port 4791 with 4000 bytes that may not be fragmented and the planned TOS, with the rail's interface named and not
named; between rails that are near each other also a connection of TCP. It uses no code of the collection: no plan
except addresses, no query to the kernel, no echo.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import select
import socket
import struct
import time
import typing as t

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import entered

PORT, TCP_PORT, TCP_FROM, SIZE = 4791, 18515, 30000, 4000
# linux/if_packet.h, linux/in.h, linux/in6.h, asm-generic/socket.h
ETH_P_ALL, SOL_PACKET, PACKET_IGNORE_OUTGOING, SO_RCVBUFFORCE = 3, 263, 23, 33
IP_PKTINFO, IPV6_PKTINFO = 8, 50
MTU_DISCOVER = {socket.AF_INET: (0, 10), socket.AF_INET6: (41, 23)}
TRAFFIC_CLASS = {socket.AF_INET: (0, 1), socket.AF_INET6: (41, 67)}
# Not fragmented, whatever the kernel has learned about the path.
DONT_FRAGMENT = 3
HEAD = struct.Struct(">12sI")
TOKEN = b"railops-path"


class End(t.NamedTuple):
    """An address: of a rail on a host, or of a gateway.

    :param port: the leaf's end of the rail's cable.
    :param leaf: the MAC address to which all packets leave; empty where some stay in the rail's own subnet.
    """

    host: str
    rail: str
    interface: str
    address: str
    port: str = ""
    leaf: str = ""

    @property
    def kind(self) -> socket.AddressFamily:
        """The family, as sockets have it."""
        return socket.AF_INET6 if ":" in self.address else socket.AF_INET


class Flow(t.NamedTuple):
    """Packets from one end to another; `how` is bound, unbound or tcp."""

    source: End
    target: End
    how: str


def flows_of(source: End, targets: t.Iterable[End], near: t.Collection[str]) -> list[Flow]:
    """Return the flows from an end to others; over TCP to the rails that are `near`."""
    return [
        Flow(source, target, how)
        for target in targets
        if target.kind == source.kind
        for how in ("bound", "unbound", *(["tcp"] if target.rail in near else []))
    ]


class Oracle:
    """Sends from and to the hosts of a fabric."""

    def __init__(self, spaces: dict[str, str], core: str, rounds: int = 6, tos: int = 0) -> None:
        """Remember the namespace of each host, that of the leaves, the packets per way and the planned TOS."""
        self.spaces, self.core, self.rounds, self.tos = {**spaces, "": core}, core, rounds, tos

    def lost(self, ways: t.Sequence[Flow]) -> dict[Flow, str]:
        """Return the ways on which something was lost or left by another port, each with what came."""
        got: collections.Counter[int] = collections.Counter()
        seen: dict[int, set[tuple[str, str]]] = collections.defaultdict(set)
        with contextlib.ExitStack() as stack:
            ears: dict[int, tuple[socket.socket, str]] = {}
            for target in dict.fromkeys(way.target for way in ways if way.how != "tcp"):
                if sock := self._receiver(stack, target):
                    ears[sock.fileno()] = (sock, "")
            for port in dict.fromkeys(way.source.port for way in ways):
                sock = self._watcher(stack, port)
                ears[sock.fileno()] = (sock, port)
            voices = {key: self._sender(stack, *key) for key in dict.fromkeys((way.source, way.how) for way in ways)}
            by = {(way.source, way.how): self._interface(way.source) if way.how == "bound" else [] for way in ways}
            plain = [(number, way) for number, way in enumerate(ways) if way.how != "tcp"]
            for _turn in range(self.rounds):
                for number, way in plain:
                    if sock := voices[way.source, way.how]:
                        with contextlib.suppress(OSError):
                            data = HEAD.pack(TOKEN, number).ljust(SIZE, b".")
                            sock.sendmsg([data], by[way.source, way.how], 0, (way.target.address, PORT))
                    if not number % 64:
                        _listen(ears, got, seen, 0)
                _listen(ears, got, seen, 0.02)
            answered = self._tcp(stack, ways)
            _listen(ears, got, seen, 0.3)
        got.update(dict.fromkeys(answered, self.rounds))
        wrong = {}
        for number, way in enumerate(ways):
            seen_at = {(way.source.port, way.source.leaf or mac) for _port, mac in seen[number]}
            if got[number] < self.rounds or not seen_at or seen[number] != seen_at:
                came = ", ".join(f"by {port} to {mac}" for port, mac in sorted(seen[number]))
                wrong[way] = f"{got[number]} of {self.rounds} {came}"
        return wrong

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

    def _watcher(self, stack: contextlib.ExitStack, port: str) -> socket.socket:
        with entered(self.core):
            sock = stack.enter_context(socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
            sock.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
            sock.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
            sock.bind((port, ETH_P_ALL))
        sock.setblocking(False)
        return sock

    def _sender(self, stack: contextlib.ExitStack, end: End, how: str) -> socket.socket | None:
        if how == "tcp":
            return None
        with entered(self.spaces[end.host]):
            sock = stack.enter_context(socket.socket(end.kind, socket.SOCK_DGRAM))
        try:
            sock.setsockopt(*MTU_DISCOVER[end.kind], DONT_FRAGMENT)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setsockopt(*TRAFFIC_CLASS[end.kind], self.tos)
            sock.bind((end.address, 0))
        except OSError:
            return None
        return sock

    def _interface(self, end: End) -> list[tuple[int, int, bytes]]:
        """Return what names the rail's interface in a packet, as RDMA's look-up does: a bound socket asks otherwise."""
        with entered(self.spaces[end.host]):
            index = socket.if_nametoindex(end.interface)
        address = socket.inet_pton(end.kind, end.address)
        if end.kind == socket.AF_INET6:
            return [(socket.IPPROTO_IPV6, IPV6_PKTINFO, struct.pack("=16sI", address, index))]
        return [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("=I4s4s", index, address, bytes(4)))]

    def _tcp(self, stack: contextlib.ExitStack, ways: t.Sequence[Flow]) -> set[int]:
        """Return the ways whose first packet of TCP was answered: no program listens, so by a refusal."""
        waiting: dict[int, tuple[int, socket.socket]] = {}
        answered: set[int] = set()
        poller = select.poll()
        for number, way in enumerate(ways):
            if way.how != "tcp":
                continue
            with entered(self.spaces[way.source.host]):
                sock = stack.enter_context(socket.socket(way.source.kind, socket.SOCK_STREAM))
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                sock.bind((way.source.address, TCP_FROM + number))
                if sock.connect_ex((way.target.address, TCP_PORT)) == errno.ECONNREFUSED:
                    answered.add(number)
                    continue
                waiting[sock.fileno()] = (number, sock)
                poller.register(sock.fileno(), select.POLLOUT)
        end = time.monotonic() + 1.5
        while waiting and (left := end - time.monotonic()) > 0:
            for descriptor, _event in poller.poll(left * 1000):
                number, sock = waiting.pop(descriptor)
                poller.unregister(descriptor)
                if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.ECONNREFUSED:
                    answered.add(number)
        return answered


def _listen(
    ears: dict[int, tuple[socket.socket, str]],
    got: collections.Counter[int],
    seen: dict[int, set[tuple[str, str]]],
    wait: float,
) -> None:
    """Count what has come to receivers, and note what has come to leaf ports, until nothing comes for so long."""
    poller = select.poll()
    for descriptor in ears:
        poller.register(descriptor, select.POLLIN)
    while ready := poller.poll(wait * 1000):
        for descriptor, _event in ready:
            sock, port = ears[descriptor]
            with contextlib.suppress(OSError):
                while True:
                    data = sock.recv(SIZE)
                    if port and (number := _shot(data)) is not None:
                        seen[number].add((port, data[:6].hex(":")))
                    elif not port and len(data) == SIZE:
                        got[HEAD.unpack_from(data)[1]] += 1


def _shot(frame: bytes) -> int | None:
    """Return the number of the way that a frame belongs to; an answer that quotes the packet is none."""
    six = frame[12:14] == b"\x86\xdd"
    at = 54 if six else 34
    protocol = frame[20 if six else 23 : 21 if six else 24]
    if protocol == b"\x11" and frame[at + 8 : at + 20] == TOKEN:
        return HEAD.unpack_from(frame, at + 8)[1]
    if protocol == b"\x06" and len(frame) >= at + 14 and frame[at + 13] == 2:
        sport, dport = struct.unpack_from(">HH", frame, at)
        return sport - TCP_FROM if dport == TCP_PORT else None
    return None
