# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A socket for rtnetlink, and requests as bytes.

The socket asks the kernel to filter (NETLINK_GET_STRICT_CHK), so that the cost does not grow with the host's other
routes, and sends a whole phase of messages at once. pyroute2's own sockets do neither alike in all its releases (they
are asynchronous since 0.9). Requests are packed here: pyroute2 takes 0.3 to 0.6 ms for one, and a first apply has a
hundred; nor does it know RTA_IP_PROTO, RTA_SPORT and RTA_DPORT. Answers are decoded by it (`decode`), but for what must
be known before it is installed (`devices`).
"""

from __future__ import annotations

import socket
import struct
import typing as t

# include/uapi/linux/netlink.h
SOL_NETLINK, NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK = 270, 10, 11, 12
NLM_F_REQUEST, NLM_F_ACK, NLM_F_DUMP = 0x1, 0x4, 0x300
NLM_F_CAPPED, NLM_F_ACK_TLVS = 0x100, 0x200
NLMSG_ERROR, NLMSG_DONE = 2, 3
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
# Fixed parts of the messages: struct ifinfomsg, ifaddrmsg, rtmsg, fib_rule_hdr.
LINK_HEAD, ADDRESS_HEAD, ROUTE_HEAD, RULE_HEAD = (struct.Struct(text) for text in ("=BxHiII", "=BBBBI", "=8BI", "=8BI"))
# include/uapi/linux/if_link.h, if_addr.h, rtnetlink.h, fib_rules.h: the attributes that are sent.
IFLA_IFNAME, IFLA_MTU, IFLA_LINK, IFLA_LINKINFO, IFLA_IFALIAS, IFLA_GROUP, IFLA_ALT_IFNAME = 3, 4, 5, 18, 20, 27, 53
IFLA_INFO_KIND, IFLA_INFO_DATA, IFLA_VLAN_ID = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL, IFA_PROTO = 1, 2, 11
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_TABLE = 1, 4, 5, 6, 7, 15
FRA_DST, FRA_SRC, FRA_PRIORITY, FRA_TABLE, FRA_PROTOCOL = 1, 2, 6, 15, 21
# include/uapi/linux/rtnetlink.h
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_SETLINK = 16, 17, 18, 19
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWRULE, RTM_DELRULE, RTM_GETRULE = 32, 33, 34
RTM_F_CLONED, RTM_F_FIB_MATCH = 0x200, 0x2000
RTN_UNICAST = 1
RTNH_F_ONLINK = 0x4
ROUTE_TYPES = {2: "local", 6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw"}
IFF_UP, IFF_LOWER_UP = 0x1, 0x10000
IFA_F_NODAD, IFA_F_DADFAILED, IFA_F_TENTATIVE = 0x02, 0x08, 0x40
FR_ACT_TO_TBL, FR_ACT_GOTO, FIB_RULE_INVERT = 1, 2, 0x2
RULE_ACTIONS = {3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
ARPHRD_INFINIBAND = 32
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
NUMBERS = {value: key for key, value in FAMILIES.items()}
IFNAMSIZ = 16


class Answer(t.NamedTuple):
    """One message that came back, undecoded: its type and what follows the header."""

    kind: int
    body: bytes


class Socket:
    """An rtnetlink socket that filters in the kernel and sends many messages at once."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        # A lost answer would hang; the kernel answers from memory.
        self._socket.settimeout(30)
        for option in (NETLINK_CAP_ACK, NETLINK_EXT_ACK, NETLINK_GET_STRICT_CHK):
            try:
                self._socket.setsockopt(SOL_NETLINK, option, 1)
            except OSError:
                # Before 4.20 there is no strict checking: the same answers, filtered here instead.
                continue
        self._sequence = 0

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def dump(self, message: bytes) -> list[Answer]:
        """Send one dump request and return what came."""
        return self._exchange([message])[0][1]

    def ask(self, messages: list[bytes]) -> list[tuple[int, list[Answer], str]]:
        """Send messages in one go and return, for each, its error number (0 is success), answers and explanation."""
        return self._exchange(messages)

    def _exchange(self, messages: list[bytes]) -> list[tuple[int, list[Answer], str]]:
        first = self._sequence + 1
        numbered = []
        for message in messages:
            self._sequence += 1
            numbered.append(message[:8] + struct.pack("=I", self._sequence) + message[12:])
        self._socket.send(b"".join(numbered))
        answers: list[list[Answer]] = [[] for _message in messages]
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
                    answers[number].append(Answer(kind, body))
        return [(ends[number][0], answers[number], ends[number][1]) for number in range(len(messages))]


def _split(data: bytes) -> t.Iterator[tuple[int, int, int, bytes]]:
    offset = 0
    while offset + 16 <= len(data):
        length, kind, flags, sequence, _port = struct.unpack_from("=IHHII", data, offset)
        yield kind, flags, sequence, data[offset + 16 : offset + length]
        offset += (length + 3) & ~3


def _explanation(flags: int, body: bytes) -> str:
    """Return the text of an extended acknowledgement (NLMSGERR_ATTR_MSG), if the kernel gave one."""
    if not flags & NLM_F_ACK_TLVS:
        return ""
    offset = 4 + (16 if flags & NLM_F_CAPPED else struct.unpack_from("=I", body, 4)[0])
    while offset + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, offset)
        if length < 4:
            break
        if kind & 0x3FFF == 1:
            return body[offset + 4 : offset + length].rstrip(b"\0").decode(errors="replace")
        offset += (length + 3) & ~3
    return ""


def u32(value: int) -> bytes:
    return struct.pack("=I", value)


def packed(text: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in text else socket.AF_INET, text)


def attribute(number: int, value: bytes) -> bytes:
    """Return an attribute with its padding; attributes that lie in it are its value."""
    return struct.pack("=HH", 4 + len(value), number) + value + b"\0" * (-len(value) % 4)


def request(kind: int, flags: int, head: bytes, *attributes: tuple[int, bytes]) -> bytes:
    """Return a request: header, fixed part, attributes."""
    return headed(kind, flags, b"".join((head, *(attribute(number, value) for number, value in attributes))))


def link_by_name(name: str) -> bytes:
    """Return the question for a link, by its name or an alternative name."""
    by = IFLA_IFNAME if len(name) < IFNAMSIZ else IFLA_ALT_IFNAME
    return request(RTM_GETLINK, NLM_F_ACK, bytes(LINK_HEAD.size), (by, name.encode() + b"\0"))


def headed(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, NLM_F_REQUEST | flags, 0, 0) + body


def attributes(body: bytes, offset: int) -> dict[int, bytes]:
    """Return the attributes of a message from `offset` on, by number."""
    found = {}
    while offset + 4 <= len(body):
        length, kind = struct.unpack_from("=HH", body, offset)
        if length < 4:
            break
        found[kind & 0x3FFF] = body[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return found
