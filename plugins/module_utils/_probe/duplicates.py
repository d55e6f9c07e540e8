# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Queries all rails at once for other holders of their addresses, by packet sockets. Read-only, and over in a second.

One frame for each address and one for its gateway, by whose answer a proxy is known. Nothing is announced.
"""

from __future__ import annotations

import ctypes
import socket
import struct
import time
import typing as t
from dataclasses import replace
from functools import partial

from .._files import Sysfs
from .._listen import PACKET_OTHERHOST, PACKET_OUTGOING, PACKETS, Sockets
from . import duplicates_plan as planning
from .sysfs import gid_indexes, ports

if t.TYPE_CHECKING:
    from .._check import Check

NET = "/sys/class/net"
# An anycast holder or a proxy may wait a second (RFC 4861 MAX_ANYCAST_DELAY_TIME), others answer in milliseconds.
WAIT = 1.0
SO_ATTACH_FILTER = 26
# linux/filter.h: an IPv6 packet whose next header is 58 and whose ICMPv6 type is 136; offsets count from the frame's
# beginning. (code, jump if true, jump if false, value)
ADVERTISEMENTS = (
    (0x30, 0, 0, 20),
    (0x15, 0, 3, 58),
    (0x30, 0, 0, 54),
    (0x15, 0, 1, 136),
    (6, 0, 0, 0xFFFF),
    (6, 0, 0, 0),
)


def check_duplicates(
    rails: t.Sequence[t.Mapping[str, t.Any]], options: t.Mapping[str, t.Any]
) -> tuple[list[Check], dict[str, t.Any]]:
    """Return the checks `address_duplicate` of a host, and the MAC address of each rail.

    :param rails: the rails of the host plan.
    :raises RdmaError: when the process may not open packet sockets.
    """
    sysfs = options.get("sysfs") or Sysfs()
    known = inet6(sysfs)
    questions = [question for rail in rails for question in _questions(sysfs, rail, known)]
    answers, failed = query(questions, {name: found[0] for name, found in known.items() if found[0]})
    questions = [replace(item, silent=item.silent or failed.get(item, "")) for item in questions]
    own = {sysfs.text(f"{NET}/{name}/address") or "" for name in sysfs.names(NET)}
    macs = {item.rail: item.mac for item in questions if item.mac}
    return planning.duplicate_checks(questions, answers, own), {"macs": macs}


def answers_at(wanted: t.Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Resolve addresses to MAC addresses by ARP or NDP, where no route leads; those without an answer are absent.

    :param wanted: (interface, address) pairs.
    """
    local = {name: found[0] for name, found in inet6(Sysfs()).items() if found[0]}
    rows = [(name, address) for name, address in wanted if ":" not in address or name in local]
    answers, _failed = query([planning.AddressQuery(row[0], *row) for row in rows], local)
    found = {(name, item.address): item.mac for name, items in answers.items() for item in items}
    return {key: mac for key, mac in found.items() if key in wanted}


def inet6(sysfs: Sysfs) -> dict[str, tuple[str, dict[str, int]]]:
    """Return the link-local address of each interface, and the flags of its addresses (/proc/net/if_inet6)."""
    found: dict[str, tuple[str, dict[str, int]]] = {}
    for line in (sysfs.text("/proc/net/if_inet6") or "").splitlines():
        raw, _index, _length, scope, flags, name = line.split()
        address = socket.inet_ntop(socket.AF_INET6, bytes.fromhex(raw))
        local, all_flags = found.setdefault(name, ("", {}))
        all_flags[address] = int(flags, 16)
        if scope == "20" and not local:
            found[name] = (address, all_flags)
    return found


def _questions(
    sysfs: Sysfs, rail: t.Mapping[str, t.Any], known: t.Mapping[str, tuple[str, dict[str, int]]]
) -> t.Iterator[planning.AddressQuery]:
    interface = sysfs.rail_interface(rail)
    why = sysfs.receive_problem(interface)
    local, flags = known.get(interface, ("", {}))
    for item in rail.get("addresses") or []:
        address = item["address"]
        six = ":" in address
        yield planning.AddressQuery(
            rail=rail["name"],
            interface=interface,
            mac=sysfs.text(f"{NET}/{interface}/address") or "",
            address=address,
            gateway=item.get("gateway") or "",
            silent=why or ("the interface has no link-local address to query from." if six and not local else ""),
            refused=bool(flags.get(address, 0) & planning.DAD_FAILED),
            inside=_inside(sysfs, address, interface),
        )


def _inside(sysfs: Sysfs, address: str, interface: str) -> tuple[str, ...]:
    """Return the other interfaces that the address's GID belongs to: a parent does not hear its pods answer."""
    owners = {
        sysfs.text(f"{port.folder}/gid_attrs/ndevs/{index}")
        for port in ports(sysfs)
        for index in gid_indexes(sysfs, port, address)
    }
    return tuple(sorted(owner for owner in owners if owner and owner != interface))


def query(
    questions: t.Sequence[planning.AddressQuery], link_local: t.Mapping[str, str]
) -> tuple[dict[str, list[planning.AddressReply]], dict[planning.AddressQuery, str]]:
    """Send all questions, listen to all rails for WAIT seconds; return the answers by rail, and why what failed."""
    answers: dict[str, list[planning.AddressReply]] = {}
    failed: dict[planning.AddressQuery, str] = {}
    with Sockets[planning.AddressQuery]("Checking for duplicate addresses needs a packet socket") as sockets:
        for question in (item for item in questions if not item.silent):
            if why := sockets.open(question, PACKETS, partial(_bind, question)):
                failed[question] = f"the interface cannot be listened to: {why}."
            elif why := _send(sockets.of[question], question, link_local.get(question.interface, "")):
                failed[question] = why
        for question, frame, sender in sockets.received(time.monotonic() + WAIT):
            known, found = (question.address, question.gateway), planning.read_frame(frame)
            if found and found.address in known and sender[2] not in (PACKET_OUTGOING, PACKET_OTHERHOST):
                answers.setdefault(question.rail, []).append(found)
    return answers, failed


def _bind(question: planning.AddressQuery, sock: socket.socket) -> None:
    if question.family == 6:
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in ADVERTISEMENTS))
        program = struct.pack("HL", len(ADVERTISEMENTS), ctypes.addressof(code))
        sock.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    sock.bind((question.interface, planning.IPV6 if question.family == 6 else planning.ARP))


def _send(sock: socket.socket, question: planning.AddressQuery, local: str) -> str:
    """Ask for the address and for its gateway; return why that failed, or nothing."""
    mac = sock.getsockname()[4][:6].hex(":")
    for address in (question.address, question.gateway):
        if not address:
            continue
        frame = planning.solicitation(mac, local, address) if local and question.family == 6 else b""
        frame = frame or planning.arp_probe(mac, address)
        try:
            sock.send(frame)
        except OSError as exc:
            return f"nothing could be sent: {exc.strerror}."
    return ""
