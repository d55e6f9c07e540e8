# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Detects duplicate addresses on rails: builds the probe frames and evaluates the answers. No sockets.

IPv4: an ARP probe, whose sender address is 0.0.0.0, so that no cache learns from it (RFC 5227). IPv6: a
neighbor solicitation from the rail's link-local address (RFC 4861 7.2.2). Never from `::`, which would be duplicate
address detection itself and take the address away from a holder that is just starting (RFC 4862 5.4.3).
"""

from __future__ import annotations

import socket
import struct
import typing as t
from dataclasses import dataclass

from .._check import Check, deviation, ok, skipped, warning
from .._files import ETHERNET
from .._route.icmp import checksum

ARP, IPV6 = 0x0806, 0x86DD
ICMPV6, SOLICITATION, ADVERTISEMENT = 58, 135, 136
# Offsets in a frame without a VLAN tag.
ARP_SENDER, ARP_SENDER_IP = 22, 28
NA_TYPE, NA_FLAGS, NA_TARGET, NA_OPTIONS = 54, 58, 62, 78
ROUTER, OVERRIDE = 0x80, 0x20
TARGET_LINK_ADDRESS = 2
DAD_FAILED = 0x08  # IFA_F_DADFAILED, linux/if_addr.h


@dataclass(frozen=True)
class AddressReply:
    """A host's claim of an address. `override` is false for a proxy (RFC 4861 7.2.8); ARP has no such bit."""

    address: str
    mac: str
    override: bool = True


@dataclass(frozen=True)
class AddressQuery:
    """A rail's address of one family, and what the host knows of the rail.

    :param interface: the kernel's name of the rail's interface.
    :param mac: the rail's MAC address; the prober reads it from the socket.
    :param gateway: the switch's address, or empty.
    :param silent: why it was not queried; empty when it was.
    :param refused: whether the kernel's own detection refused the address (IPv6).
    :param inside: other interfaces of this host whose RDMA GIDs have the address: a pod, where devices are shared.
    """

    rail: str
    interface: str
    address: str
    mac: str = ""
    gateway: str = ""
    silent: str = ""
    refused: bool = False
    inside: tuple[str, ...] = ()

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4


def mac_bytes(mac: str) -> bytes:
    """Return the six bytes of a MAC address."""
    return bytes.fromhex(mac.replace(":", ""))


def arp_probe(mac: str, address: str) -> bytes:
    """Return the frame of an ARP probe (RFC 5227 1.1): broadcast, sender 0.0.0.0, padded to Ethernet's 60 bytes."""
    own = mac_bytes(mac)
    head = b"\xff" * 6 + own + struct.pack(">HHHBBH", ARP, ETHERNET, 0x0800, 6, 4, 1)
    return (head + own + bytes(4) + bytes(6) + socket.inet_aton(address)).ljust(60, b"\0")


def solicitation(mac: str, link_local: str, address: str) -> bytes:
    """Return the frame of a neighbor solicitation (RFC 4861 4.3) to the address's solicited-node group."""
    own, source = mac_bytes(mac), socket.inet_pton(socket.AF_INET6, link_local)
    target = socket.inet_pton(socket.AF_INET6, address)
    group = bytes.fromhex("ff0200000000000000000001ff") + target[13:]
    body = struct.pack(">BBHI", SOLICITATION, 0, 0, 0) + target + b"\1\1" + own
    total = checksum(source + group + struct.pack(">II", len(body), ICMPV6) + body)
    body = body[:2] + struct.pack(">H", total) + body[4:]
    head = b"\x33\x33" + group[12:] + own + struct.pack(">HIHBB", IPV6, 6 << 28, len(body), ICMPV6, 255)
    return head + source + group + body


def read_frame(frame: bytes) -> AddressReply | None:
    """Return the address that a frame claims, and the claimant; None for a frame that claims none."""
    kind = int.from_bytes(frame[12:14], "big")
    if kind == ARP and len(frame) >= ARP_SENDER_IP + 4:
        # Any ARP packet whose sender has the address counts, not only replies (RFC 5227 2.1.1).
        sender = frame[ARP_SENDER:ARP_SENDER_IP]
        return AddressReply(socket.inet_ntoa(frame[ARP_SENDER_IP : ARP_SENDER_IP + 4]), sender.hex(":"))
    if kind != IPV6 or len(frame) < NA_OPTIONS or frame[20] != ICMPV6 or frame[NA_TYPE] != ADVERTISEMENT:
        return None
    mac, place = frame[6:12], NA_OPTIONS
    while place + 8 <= len(frame) and frame[place + 1]:
        if frame[place] == TARGET_LINK_ADDRESS:
            mac = frame[place + 2 : place + 8]
        place += frame[place + 1] * 8
    target = socket.inet_ntop(socket.AF_INET6, frame[NA_TARGET : NA_TARGET + 16])
    return AddressReply(target, mac.hex(":"), bool(frame[NA_FLAGS] & OVERRIDE))


def duplicate_checks(
    questions: t.Sequence[AddressQuery], answers: t.Mapping[str, t.Collection[AddressReply]], own: t.Collection[str]
) -> list[Check]:
    """Return one check for each rail and family.

    :param answers: the replies received on each rail, by its name.
    :param own: the MAC addresses of all interfaces of this host.
    """
    return [_check(question, answers.get(question.rail, ()), own) for question in questions]


def _check(question: AddressQuery, received: t.Collection[AddressReply], own: t.Collection[str]) -> Check:
    address, name = question.address, "address_duplicate"
    where: dict[str, t.Any] = {"rail": question.rail, "family": question.family}
    planned = f"no other host has {address}"
    if question.inside:
        there = ", ".join(question.inside)
        cause = f"{address} is on {there} of this host too: a pod has it."
        return deviation(name, planned, f"an RDMA GID on {there}", cause, _FIX, **where)
    if question.refused:
        cause = "The kernel's own detection found another holder when the address was set, and does not use it."
        return deviation(name, planned, "refused by the kernel (dadfailed)", cause, _FIX, **where)
    if question.silent:
        return skipped(name, f"Not queried: {question.silent}", planned=planned, **where)
    # A host's rails receive each other's answers in a shared network, and a leaf may answer with the host's address.
    others = {item.mac: item for item in received if item.address == address and item.mac not in own}
    gates = {item.mac for item in received if question.gateway and item.address == question.gateway}
    claims = {item.mac for item in received if item.mac in gates - {*own} and item.address != address and item.override}
    if len(claims) > 1:
        shown = " and ".join(sorted(claims))
        cause = f"{shown} both answer for the gateway {question.gateway}: one of them is no leaf."
        return deviation(name, f"one gateway {question.gateway}", shown, cause, _FIX, **where)
    if strangers := sorted(mac for mac in others if mac not in gates):
        shown = ", ".join(strangers)
        cause = f"{shown} answers for {address} on {question.interface}: another host or pod has the address."
        return deviation(name, planned, shown, cause, _FIX, **where)
    if not others:
        return ok(name, planned, "no answer", **where)
    shown = f"the gateway {question.gateway} ({', '.join(sorted(others))})"
    if question.family == 6 and any(item.override for item in others.values()):
        cause = f"{shown} has {address} itself."
        return deviation(name, planned, shown, cause, "Remove the address from the leaf, or plan another one.", **where)
    cause = f"{shown} answers for {address}: a proxy" + (
        "." if question.family == 6 else ", an EVPN leaf that answers for others, or it has the address itself."
    )
    return warning(name, planned, shown, cause, "Look on the leaf for the address, and for proxy ARP or NDP.", **where)


_FIX = "Find the holder by its MAC address (on the leaf: its MAC table), and remove the address from it."
