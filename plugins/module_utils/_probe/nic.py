# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks a driver for its counters and versions, as `ethtool -S` and `ethtool -i` do (linux/ethtool.h). Read-only."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

SIOCETHTOOL = 0x8946
GET_DRIVER, GET_STRINGS, GET_STATISTICS, GET_SET_SIZE = 0x03, 0x1B, 0x1D, 0x37
STATISTICS_SET = 1  # ETH_SS_STATS
NAME_BYTES = 32
DRIVER_BYTES = 196


def _call(sock: socket.socket, interface: str, request: bytes) -> bytes:
    data = array.array("B", request)
    place, _size = data.buffer_info()
    fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", interface.encode(), place))
    return data.tobytes()


def _text(data: bytes, place: int) -> str:
    return data[place : place + NAME_BYTES].split(b"\0")[0].decode("ascii", "replace")


def statistics(interface: str) -> dict[str, int]:
    """Return a driver's own counters by name; none where it has none or there is no such interface."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            head = struct.pack("=IIQI", GET_SET_SIZE, 0, 1 << STATISTICS_SET, 0)
            _command, _pad, known, count = struct.unpack("=IIQI", _call(sock, interface, head))
            if not known or not count:
                return {}
            head = struct.pack("=III", GET_STRINGS, STATISTICS_SET, count)
            text = _call(sock, interface, head + bytes(NAME_BYTES * count))[len(head) :]
            head = struct.pack("=II", GET_STATISTICS, count)
            numbers = _call(sock, interface, head + bytes(8 * count))[len(head) :]
        except OSError:
            return {}
    names = [_text(text, place) for place in range(0, len(text), NAME_BYTES)]
    return dict(zip(names, struct.unpack(f"={count}Q", numbers)))


def driver(interface: str) -> dict[str, str]:
    """Return `driver`, its `version` and the card's `firmware`; nothing where the driver does not say."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        try:
            data = _call(sock, interface, struct.pack("=I", GET_DRIVER) + bytes(DRIVER_BYTES - 4))
        except OSError:
            return {}
    return {key: _text(data, place) for key, place in {"driver": 4, "version": 36, "firmware": 68}.items()}
