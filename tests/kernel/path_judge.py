# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Where a rail's packets really go: sends RoCE's flow from a host, and counts at the leaves what arrives there.

It shares nothing with what it judges: no question to the kernel, no routing table. A packet is UDP to port 4791 from
the rail's address with the planned TOS, once from a plain socket and once with the rail's interface (IP_PKTINFO), as
RDMA's own look-up names it. It went right when it came in at the port of its rail's leaf, addressed to that leaf. The
same is sent by an ordinary user, and a connection of TCP is begun.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import struct
import time
import typing as t

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import entered, inside, run

PORT, TCP_PORT, TCP_FROM, USER = 4791, 18515, 30000, 1000
TOKEN = b"railops-path:"
# linux/in.h, linux/in6.h, linux/if_packet.h
IP_PKTINFO, IPV6_PKTINFO, IPV6_TCLASS, PACKET_OUTGOING, ETH_P_ALL = 8, 50, 67, 4, 3
WAIT = 0.6


class Shot(t.NamedTuple):
    """One packet: from a rail's address to another; RoCE's, or that of a `user` or of `tcp`."""

    rail: str
    interface: str
    family: int
    source: str
    destination: str
    sport: int
    bound: bool
    whose: str = ""
    dport: int = PORT


def shots_of(host: dict, others: t.Iterable[dict], sports: t.Sequence[int]) -> list[Shot]:
    """Every rail and family to its gateway and every rail of others; users and TCP to the same and the next rail."""
    made = []
    for place, rail in enumerate(host["rails"]):
        near = {rail["name"], host["rails"][(place + 1) % len(host["rails"])]["name"]}
        for item in rail["addresses"]:
            six = ":" in item["address"]
            far = [
                (entry["address"], there["name"] in near)
                for other in others
                for there in other["rails"]
                for entry in there["addresses"]
                if (":" in entry["address"]) == six
            ]
            for address, beside in ((item["gateway"], True), *far):
                for sport in sports:
                    for bound in (False, True):
                        start = (rail["name"], rail["interface"], 6 if six else 4, item["address"])
                        made.append(Shot(*start, address, sport, bound))
                    for dport in (PORT, 53) if beside else ():
                        made.append(Shot(*start, address, sport, False, "user", dport))
                if beside:
                    made.append(Shot(*start, address, 0, False, "tcp", TCP_PORT))
    return made


def fire(shots: list[list], tos: int) -> list[str]:
    """Send every shot from inside of a host's namespace; return why each could not be sent."""
    said: list[str] = []
    flying: list[int] = []
    for number, raw in enumerate(shots):
        shot = Shot(*raw)
        six, tcp = shot.family == 6, shot.whose == "tcp"
        os.seteuid(USER if shot.whose == "user" else 0)
        kind = socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM
        with socket.socket(socket.AF_INET6 if six else socket.AF_INET, kind) as sock:
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if tcp:
                    sock.setblocking(False)
                    sock.bind((shot.source, TCP_FROM + number))
                    said.append(os.strerror(sock.connect_ex((shot.destination, shot.dport))))
                    flying.append(os.dup(sock.fileno()))
                    continue
                if shot.whose:
                    pass
                elif six:
                    sock.setsockopt(socket.IPPROTO_IPV6, IPV6_TCLASS, tos)
                else:
                    sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
                sock.bind((shot.source, shot.sport))
                extra = []
                if shot.bound and six:
                    info = struct.pack("=16sI", socket.inet_pton(socket.AF_INET6, shot.source), index_of(shot))
                    extra = [(socket.IPPROTO_IPV6, IPV6_PKTINFO, info)]
                elif shot.bound:
                    own = socket.inet_aton(shot.source)
                    extra = [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("=I4s4s", index_of(shot), own, bytes(4)))]
                sock.sendmsg([TOKEN + str(number).encode()], extra, 0, (shot.destination, shot.dport))
                said.append("")
            except OSError as exc:
                said.append(os.strerror(exc.errno or 0))
    os.seteuid(0)
    return said


def index_of(shot: Shot) -> int:
    return socket.if_nametoindex(shot.interface)


class Leaves:
    """Listens at all ports that a host has at the leaves and at the management switch."""

    def __init__(self, core: str, ports: dict[str, str]) -> None:
        """Open the sockets. `ports`: the name of each port in the core's namespace, to the leaf that it belongs to."""
        self._sockets: dict[int, tuple[socket.socket, str]] = {}
        with entered(core):
            for port in ports:
                sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
                sock.bind((port, ETH_P_ALL))
                sock.setblocking(False)
                self._sockets[sock.fileno()] = (sock, port)

    def close(self) -> None:
        for sock, _port in self._sockets.values():
            sock.close()

    def heard(self, wait: float) -> list[tuple[int, str, str]]:
        """Return the shots that came in until nothing came for `wait` seconds: number, port and hardware address."""
        found = []
        poller = select.poll()
        for descriptor in self._sockets:
            poller.register(descriptor, select.POLLIN)
        end = time.monotonic() + wait
        while (left := end - time.monotonic()) > 0:
            for descriptor, _event in poller.poll(left * 1000):
                sock, port = self._sockets[descriptor]
                with contextlib.suppress(OSError):
                    while True:
                        frame, sender = sock.recvfrom(2048)
                        place = frame.find(TOKEN)
                        # An answer of ICMP quotes the packet: only one that comes from the host counts.
                        if place in (42, 62) and sender[2] != PACKET_OUTGOING:
                            digits = frame[place + len(TOKEN) :].split(b"\0")[0]
                            found.append((int(digits), port, frame[:6].hex(":")))
                            end = time.monotonic() + wait
                        elif sender[2] != PACKET_OUTGOING and (tcp := _tcp_of(frame)) is not None:
                            found.append((tcp, port, frame[:6].hex(":")))
                            end = time.monotonic() + wait
        return found


def _tcp_of(frame: bytes) -> int | None:
    """Return the number of a shot of TCP."""
    at = (
        54
        if frame[12:14] == b"\x86\xdd" and frame[20] == 6
        else 34
        if frame[12:14] == b"\x08\0" and frame[23] == 6
        else 0
    )
    sport, dport = struct.unpack_from(">HH", frame, at) if at and len(frame) >= at + 14 else (0, 0)
    return sport - TCP_FROM if dport == TCP_PORT and frame[at + 13] == 2 else None


def judge(fabric, host, shots: list[Shot], tos: int) -> dict[tuple[str, int], list[str]]:
    """Send all shots from a host; return what went wrong, by rail and family."""
    ports = {f"h{host.number}r{number}": f"leaf{number}" for number in range(1, fabric.rails + 1)}
    ports[f"h{host.number}m"] = "mgmt"
    macs = {
        item["ifname"]: item["address"]
        for item in json.loads(run("ip", "-n", fabric.core, "-j", "link", "show", "type", "bridge"))
    }
    leaves = Leaves(fabric.core, ports)
    try:
        said = inside(host.name, fire, [list(shot) for shot in shots], tos)
        arrived: dict[int, list[tuple[str, str]]] = {}
        for number, port, mac in leaves.heard(WAIT):
            arrived.setdefault(number, []).append((port, mac))
    finally:
        leaves.close()
    wrong: dict[tuple[str, int], list[str]] = {}
    for number, shot in enumerate(shots):
        leaf = int(shot.rail.removeprefix("rail"))
        good = (f"h{host.number}r{leaf}", macs[f"leaf{leaf}"])
        where = arrived.get(number, [])
        if where and all(item == good for item in where):
            continue
        came = ", ".join(f"{port} for {mac}" for port, mac in where) or said[number] or "nowhere"
        side = shot.whose or ("with the interface" if shot.bound else "without")
        wrong.setdefault((shot.rail, shot.family), []).append(f"{shot.destination}:{shot.sport} {side}: {came}")
    return wrong
