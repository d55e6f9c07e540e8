# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks a driver for counters, versions and link modes, as ethtool with -S, -i and no option (linux/ethtool.h)."""

from __future__ import annotations

import array
import fcntl
import re
import socket
import struct

SIOCETHTOOL = 0x8946
GET_DRIVER, GET_STRINGS, GET_STATISTICS, GET_SET_SIZE = 0x03, 0x1B, 0x1D, 0x37
GET_LINK = 0x4C
STATISTICS_SET, LINK_MODES_SET = 1, 9  # ETH_SS_STATS, ETH_SS_LINK_MODES
# struct ethtool_link_settings: the number of words of a mask comes after 15 bytes.
LINK_BYTES, LINK_WORDS_AT = 48, 15
NAME_BYTES = 32
DRIVER_BYTES = 196


def _call(sock: socket.socket, interface: str, request: bytes) -> bytes:
    data = array.array("B", request)
    place, _size = data.buffer_info()
    fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), place))
    return data.tobytes()


def _text(data: bytes, place: int) -> str:
    return data[place : place + NAME_BYTES].split(b"\0")[0].decode("ascii", "replace")


def _names(sock: socket.socket, interface: str, kind: int) -> list[str]:
    """Return the names of a set of strings."""
    head = struct.pack("=IIQI", GET_SET_SIZE, 0, 1 << kind, 0)
    _command, _pad, known, count = struct.unpack("=IIQI", _call(sock, interface, head))
    head = struct.pack("=III", GET_STRINGS, kind, count)
    text = _call(sock, interface, head + bytes(NAME_BYTES * count))[len(head) :] if known and count else b""
    return [_text(text, place) for place in range(0, len(text), NAME_BYTES)]


def statistics(interface: str) -> dict[str, int]:
    """Return a driver's own counters by name; none where it has none or there is no such interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            names = _names(sock, interface, STATISTICS_SET)
            head = struct.pack("=II", GET_STATISTICS, len(names))
            numbers = _call(sock, interface, head + bytes(8 * len(names)))[len(head) :] if names else b""
        except OSError:
            return {}
    return dict(zip(names, struct.unpack(f"={len(names)}Q", numbers)))


def offered(interface: str) -> int:
    """Return the fastest speed in Mb/s that both ends of a link advertise; 0 where one of them does not show it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            head = struct.pack(f"=I{LINK_BYTES - 4}x", GET_LINK)
            # The first answer has the number of words, as a negative one.
            words = -struct.unpack_from("b", _call(sock, interface, head), LINK_WORDS_AT)[0]
            head = struct.pack(f"=I{LINK_WORDS_AT - 4}xb{LINK_BYTES - LINK_WORDS_AT - 1}x", GET_LINK, words)
            masks = _call(sock, interface, head + bytes(3 * 4 * words))[LINK_BYTES:]
            names = _names(sock, interface, LINK_MODES_SET)
        except (OSError, struct.error):
            return 0
    # What the port supports, what it advertises, and what the other end advertises.
    own, peer = (struct.unpack_from(f"={words}I", masks, 4 * words * part) for part in (1, 2))
    common = (name for bit, name in enumerate(names) if own[bit // 32] & peer[bit // 32] & 1 << bit % 32)
    return max((int(found[0]) for name in common if (found := re.match(r"\d+(?=base)", name))), default=0)


def driver(interface: str) -> dict[str, str]:
    """Return `driver`, its `version` and the card's `firmware`; nothing where the driver does not say."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            data = _call(sock, interface, struct.pack("=I", GET_DRIVER) + bytes(DRIVER_BYTES - 4))
        except OSError:
            return {}
    return {key: _text(data, place) for key, place in {"driver": 4, "version": 36, "firmware": 68}.items()}
