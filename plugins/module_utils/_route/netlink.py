# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A socket for rtnetlink.

The kernel filters (NETLINK_GET_STRICT_CHK), so that the cost does not grow with the host's other routes, and
sends many messages at once. pyroute2's own sockets do neither in the same way in all releases (they are asynchronous
since 0.9). pyroute2 encodes and decodes the messages: `decode`.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import typing as t

# include/uapi/linux/netlink.h
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK = 270, 10, 11, 12
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS, NLMSGERR_ATTR_MSG = 0x100, 0x200, 1
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
NLMSG_ERROR, NLMSG_DONE = 2, 3
# Answers wait in the socket's buffer (212,992 bytes by default) until the last message of a batch is sent.
BATCH = 32


class Socket:
    """An rtnetlink socket that filters in the kernel and sends many messages at once."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        # A lost answer would hang; the kernel answers from memory.
        self._socket.settimeout(30)
        for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK):
            # Before 4.20 there is no strict checking: the same answers, filtered here instead.
            with contextlib.suppress(OSError):
                self._socket.setsockopt(SOL_NETLINK, option, 1)
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def exchange(self, messages: list[bytes]) -> list[tuple[int, list[bytes], str]]:
        """Send messages and return, for each, its error number (0 is success), answers and explanation.

        An error stops no later message. All answers of a batch are read before the next batch is sent. Answers come
        without their header.
        """
        batches = (messages[first : first + BATCH] for first in range(0, len(messages), BATCH))
        return [answer for batch in batches for answer in self._exchange(batch)]

    def _exchange(self, messages: list[bytes]) -> list[tuple[int, list[bytes], str]]:
        first = self._sequence + 1
        self._sequence += len(messages)
        numbered = (message[:8] + struct.pack("=I", seq) + message[12:] for seq, message in enumerate(messages, first))
        self._socket.send(b"".join(numbered))
        answers: list[list[bytes]] = [[] for _message in messages]
        ends: dict[int, tuple[int, str]] = {}
        while len(ends) < len(messages):
            for kind, flags, sequence, body in _split(self._socket.recv(1 << 18)):
                number = sequence - first
                if not 0 <= number < len(messages):
                    continue
                if kind == NLMSG_DONE:
                    code = struct.unpack_from("=i", body)[0] if len(body) >= 4 else 0
                    ends[number] = (-code, "")
                elif kind == NLMSG_ERROR:
                    ends[number] = (-struct.unpack_from("=i", body)[0], _explanation(flags, body))
                else:
                    answers[number].append(body)
        return [(ends[number][0], answers[number], ends[number][1]) for number in range(len(messages))]


def _split(data: bytes) -> t.Iterator[tuple[int, int, int, bytes]]:
    offset = 0
    while offset + 16 <= len(data):
        length, kind, flags, sequence, _port = struct.unpack_from("=IHHII", data, offset)
        yield kind, flags, sequence, data[offset + 16 : offset + length]
        offset += (length + 3) & ~3


def _explanation(flags: int, body: bytes) -> str:
    """Return the text of an extended acknowledgement, if the kernel gave one."""
    if not flags & NLM_F_ACK_TLVS:
        return ""
    offset = 4 + (16 if flags & NLM_F_CAPPED else struct.unpack_from("=I", body, 4)[0])
    return attributes(body, offset).get(NLMSGERR_ATTR_MSG, b"").rstrip(b"\0").decode(errors="replace")


def request(kind: int, flags: int, body: bytes) -> bytes:
    """Return a request: header, fixed part, attributes."""
    return struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body


def attributes(body: bytes, offset: int = 0) -> dict[int, bytes]:
    """Return the attributes of a message from `offset` on, by number."""
    found = {}
    while offset + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, offset)
        if length < 4:
            break
        found[kind & 0x3FFF] = body[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found
