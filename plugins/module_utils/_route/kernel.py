# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the host network over rtnetlink and /proc/sys, and reads it as `read` does. Nobody else writes there."""

from __future__ import annotations

import errno
import os
import struct
import typing as t

from .._errors import RdmaError
from .._fabric.numbers import MANAGER
from .model import DEFAULT, PROTOCOL, Address, Link, Op, Phase, Route, Rule
from .netlink import (
    ADDRESS_HEAD,
    FAMILIES,
    FIB_RULE_INVERT,
    FR_ACT_TO_TBL,
    FRA_DST,
    FRA_PRIORITY,
    FRA_PROTOCOL,
    FRA_SRC,
    FRA_TABLE,
    IFA_ADDRESS,
    IFA_F_NODAD,
    IFA_LOCAL,
    IFA_PROTO,
    IFF_UP,
    IFLA_GROUP,
    IFLA_IFALIAS,
    IFLA_IFNAME,
    IFLA_INFO_DATA,
    IFLA_INFO_KIND,
    IFLA_LINK,
    IFLA_LINKINFO,
    IFLA_MTU,
    IFLA_VLAN_ID,
    LINK_HEAD,
    NLM_F_ACK,
    NLM_F_CREATE,
    NLM_F_EXCL,
    NLM_F_REPLACE,
    ROUTE_HEAD,
    RTA_DST,
    RTA_GATEWAY,
    RTA_OIF,
    RTA_PREFSRC,
    RTA_PRIORITY,
    RTA_TABLE,
    RTM_DELADDR,
    RTM_DELLINK,
    RTM_DELROUTE,
    RTM_DELRULE,
    RTM_NEWADDR,
    RTM_NEWLINK,
    RTM_NEWROUTE,
    RTM_NEWRULE,
    RTM_SETLINK,
    RTN_UNICAST,
    RTNH_F_ONLINK,
    RULE_HEAD,
    attribute,
    headed,
    packed,
    request,
    u32,
)
from .read import Reader

# Already so: an error of these kinds says that the message's aim is reached.
HARMLESS = {
    "add": {errno.EEXIST},
    "replace": set(),
    "set": set(),
    "delete": {errno.ESRCH, errno.ENOENT, errno.EADDRNOTAVAIL, errno.ENODEV},
}
NOT_PERMITTED = {errno.EPERM, errno.EACCES}


class KernelRefused(RdmaError):
    """The kernel refused a message."""


class Kernel(Reader):
    """Reads a host's network and writes it."""

    def apply(self, phases: t.Iterable[Phase]) -> bool:
        """Write the phases, one after the other; raise KernelRefused at the first refusal, after its phase.

        Return whether every message did something; some may have found their aim reached already.
        """
        plain = True
        for phase in phases:
            messages = []
            for op in phase:
                if isinstance(op.what, tuple):
                    self._write_sysctl(op)
                else:
                    try:
                        messages.append((op, self.encode(op)))
                    except OSError as exc:  # its interface has gone
                        raise self.refusal(op, exc.errno or errno.ENODEV, "") from exc
            if messages:
                plain = self.transact(messages) and plain
        return plain

    def transact(self, messages: list[tuple[Op, bytes]]) -> bool:
        """Send one phase of messages and look at every answer; return whether none was an error."""
        results = self._ask([data for _op, data in messages])
        for (op, _data), (error, _answers, why) in zip(messages, results):
            if error and error not in HARMLESS[op.verb]:
                raise self.refusal(op, error, why)
        return not any(error for error, _answers, _why in results)

    def refusal(self, op: Op, error: int, why: str) -> KernelRefused:
        """Return the error for a refused message."""
        said = f"{os.strerror(error)}{': ' + why if why else ''}"
        if error in NOT_PERMITTED and not why:
            fix = "Run the task with become: true, and inside a container with CAP_NET_ADMIN."
        else:
            fix = f"Try `{op}` by hand on the host to see what is in its way."
        return KernelRefused(f"The kernel refused `{op}`: {said}.", fix, errno=error, operation=str(op))

    def _write_sysctl(self, op: Op) -> None:
        key, value = t.cast("tuple[str, str]", op.what)
        try:
            with open(f"{self._proc}/{key}", "w", encoding="ascii") as stream:
                stream.write(f"{value}\n")
        except OSError as exc:
            raise self.refusal(op, exc.errno or errno.EIO, "") from exc

    def encode(self, op: Op) -> bytes:
        """Return the message of one operation."""
        what = op.what
        if isinstance(what, Link):
            return self._encode_link(op.verb, what)
        if isinstance(what, Address):
            return self._encode_address(op.verb, what)
        if isinstance(what, Route):
            return self._encode_route(op.verb, what)
        return self._encode_rule(op.verb, t.cast("Rule", what))

    def _encode_link(self, verb: str, link: Link) -> bytes:
        name = (IFLA_IFNAME, link.name.encode() + b"\0")
        if verb == "delete":
            return request(RTM_DELLINK, NLM_F_ACK, LINK_HEAD.pack(0, 0, self._index_of(link.name), 0, 0))
        if verb == "add":
            # One that was there before gets its number again: what is put back on it names that.
            self._index.pop(link.name, None)
            data = attribute(IFLA_VLAN_ID, struct.pack("=H", link.vlan))
            info = attribute(IFLA_INFO_KIND, b"vlan") + attribute(IFLA_INFO_DATA, data)
            # With the link, so that one which a killed run left before its alias is known as ours.
            mark = (IFLA_GROUP, u32(PROTOCOL))
            parts = (name, (IFLA_LINK, u32(self._index_of(link.parent))), mark, (IFLA_LINKINFO, info))
            head = LINK_HEAD.pack(0, 0, link.index, 0, 0)
            return request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, head, *parts)
        head = LINK_HEAD.pack(0, 0, link.index or self._index_of(link.name), IFF_UP if link.up else 0, IFF_UP)
        # The kernel takes no alias along with a new link.
        alias = ((IFLA_IFALIAS, MANAGER.encode()),) if link.ours else ()
        return request(RTM_SETLINK, NLM_F_ACK, head, (IFLA_MTU, u32(link.mtu)), *alias)

    def _encode_address(self, verb: str, item: Address) -> bytes:
        create = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
        if verb == "add" and item.raw:
            return headed(RTM_NEWADDR, create, bytes.fromhex(item.raw))
        flags = IFA_F_NODAD if verb == "add" and item.family == 6 else 0
        head = ADDRESS_HEAD.pack(FAMILIES[item.family], item.length, flags, 0, self._index_of(item.interface))
        own = packed(item.address)
        if verb == "delete":
            return request(RTM_DELADDR, NLM_F_ACK, head, (IFA_LOCAL, own), (IFA_ADDRESS, own))
        # Kernels before 5.18 ignore the protocol.
        mark = (IFA_PROTO, bytes([item.protocol]))
        return request(RTM_NEWADDR, create, head, (IFA_LOCAL, own), (IFA_ADDRESS, own), mark)

    def _encode_route(self, verb: str, route: Route) -> bytes:
        kind, flags = RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | (NLM_F_REPLACE if verb == "replace" else NLM_F_EXCL)
        if verb == "delete":
            kind, flags = RTM_DELROUTE, NLM_F_ACK
        elif route.raw:
            body = bytearray.fromhex(route.raw)
            # The kernel refuses its own marks (dead, linkdown, offload) when it gets them back.
            struct.pack_into("=I", body, 8, struct.unpack_from("=I", body, 8)[0] & RTNH_F_ONLINK)
            return headed(kind, flags, bytes(body))
        attributes = [(RTA_TABLE, u32(route.table))]
        length = 0
        if route.dst != DEFAULT:
            address, _slash, text = route.dst.partition("/")
            length = int(text)
            attributes.append((RTA_DST, packed(address)))
        attributes += [(RTA_PRIORITY, u32(route.metric))] if route.metric else []
        attributes += [(RTA_GATEWAY, packed(route.gateway))] if route.gateway else []
        attributes += [(RTA_OIF, u32(self._index_of(route.interface)))] if route.interface else []
        attributes += [(RTA_PREFSRC, packed(route.source))] if route.source else []
        head = ROUTE_HEAD.pack(FAMILIES[route.family], length, 0, 0, 0, route.protocol, route.scope, RTN_UNICAST, 0)
        return request(kind, flags, head, *attributes)

    def _encode_rule(self, verb: str, rule: Rule) -> bytes:
        kind, flags = RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
        if verb == "delete":
            kind, flags = RTM_DELRULE, NLM_F_ACK
        if rule.raw:
            return headed(kind, flags, bytes.fromhex(rule.raw))
        lengths = {}
        attributes = [(FRA_PRIORITY, u32(rule.priority)), (FRA_TABLE, u32(rule.table))]
        for number, prefix in ((FRA_SRC, rule.source), (FRA_DST, rule.dest)):
            if prefix:
                address, _slash, text = prefix.partition("/")
                lengths[number] = int(text)
                attributes.append((number, packed(address)))
        attributes.append((FRA_PROTOCOL, bytes([rule.protocol])))
        sizes = (lengths.get(FRA_DST, 0), lengths.get(FRA_SRC, 0))
        invert = FIB_RULE_INVERT if rule.invert else 0
        head = RULE_HEAD.pack(FAMILIES[rule.family], *sizes, 0, 0, 0, 0, FR_ACT_TO_TBL, invert)
        return request(kind, flags, head, *attributes)
