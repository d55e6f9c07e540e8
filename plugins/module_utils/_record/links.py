# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's own answers about links, addresses, routes and rules, with stand-ins. Asks nobody.

An attribute that is not in the tables is kept when it is a number, and left out when it is longer.
"""

from __future__ import annotations

import struct
import typing as t

from .._route import netlink as nl

if t.TYPE_CHECKING:
    from .scrub import Scrub

# By name: the question (include/uapi/linux/rtnetlink.h), and the size of the fixed part of question and answer.
DUMPS = {"link": (nl.RTM_GETLINK, nl.LINK_HEAD.size), "address": (22, 8), "route": (26, 12), "rule": (34, 12)}
# Attributes with addresses (if_addr.h, rtnetlink.h, fib_rules.h); where in the fixed part the length of their prefix
# is, 0 for whole addresses. The fourth of an address is its broadcast.
ADDRESSES = {"address": {1: 0, 2: 0, 4: 1, 5: 0, 7: 0}, "route": {1: 1, 2: 2, 5: 0, 7: 0}, "rule": {1: 1, 2: 2}}
# IFLA_ADDRESS, IFLA_BROADCAST, IFLA_PERM_ADDRESS: of tunnels they are their ends, and have four bytes.
ENDS = (1, 2, 54)
# RTA_NEWDST, RTA_ENCAP and what stands in it.
FOREIGN = [("route", number) for number in (19, 21, 22)]
IFLA_IFALIAS, IFLA_PROP_LIST, IFLA_INFO_DATA = 20, 52, 2
RTA_METRICS, RTA_MULTIPATH, RTA_VIA = 8, 9, 18
# Names: of interfaces, alternative ones, and of addresses.
TEXTS = {"link": {nl.IFLA_IFNAME, IFLA_IFALIAS, nl.IFLA_ALT_IFNAME}, "address": {3}, "route": set(), "rule": {3, 17}}
NUMBER = 8


def scrubbed(kind: str, body: bytes, scrub: Scrub) -> bytes:
    """Return an answer with stand-ins.

    :param kind: of DUMPS.
    """
    size = DUMPS[kind][1]
    return body[:size] + _attributes(kind, body[:size], body[size:], scrub)


def _attributes(kind: str, head: bytes, body: bytes, scrub: Scrub) -> bytes:
    found = b""
    for flagged, value in nl.parts(body, 0):
        number = flagged & 0x3FFF
        short = len(value) <= NUMBER and (kind, number) not in FOREIGN
        new: bytes | None = value if short or (kind, number) == ("route", RTA_METRICS) else None
        if number in ADDRESSES.get(kind, ()):
            place = ADDRESSES[kind][number]
            new = _address(value, scrub, head[place] if place else None)
        elif number in TEXTS[kind]:
            new = scrub.label(value.rstrip(b"\0").decode(errors="replace")).encode() + b"\0"
        elif kind == "link" and number == nl.IFLA_LINKINFO:
            new = _info(value)
        elif kind == "link" and number == IFLA_PROP_LIST:
            new = _attributes(kind, head, value, scrub)
        elif kind == "link":
            # Of six and eight bytes are addresses of hardware.
            new = value if len(value) in (1, 4) and number not in ENDS else None
        elif kind == "route" and number == RTA_VIA:
            # struct rtvia: the family, then the address.
            via = _address(value[2:], scrub)
            new = value[:2] + via if via else None
        elif kind == "route" and number == RTA_MULTIPATH:
            new = _hops(head, value, scrub)
        if new is not None:
            found += nl.attribute(flagged, new)
    return found


def _info(value: bytes) -> bytes:
    """Return what kind of link it is, and a VLAN's number; a tunnel's ends are left out."""
    have = dict(nl.parts(value, 0))
    vlan = have.get(nl.IFLA_INFO_KIND, b"").startswith(b"vlan")
    taken = (nl.IFLA_INFO_KIND, IFLA_INFO_DATA) if vlan else (nl.IFLA_INFO_KIND,)
    return b"".join(nl.attribute(number, part) for number, part in have.items() if number & 0x3FFF in taken)


def _hops(head: bytes, value: bytes, scrub: Scrub) -> bytes:
    found, place = b"", 0
    while place + 8 <= len(value):
        # struct rtnexthop: length, flags, hops, interface; then attributes.
        (length,) = struct.unpack_from("=H", value, place)
        inner = _attributes("route", head, value[place + 8 : place + max(length, 8)], scrub)
        found += struct.pack("=H", 8 + len(inner)) + value[place + 2 : place + 8] + inner
        place += max((length + 3) & ~3, 8)
    return found


def _address(value: bytes, scrub: Scrub, length: int | None = None) -> bytes | None:
    """Return the stand-in of an address; None for what has another length than one."""
    return scrub.packed(value, length) if len(value) in (4, 16) else None
