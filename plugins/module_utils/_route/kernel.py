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
from . import netlink as nl
from .model import DEFAULT, PROTOCOL, Address, Link, Op, Phase, Route, Rule
from .netlink import attribute, headed, packed, request, u32
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
            for netns in sorted({getattr(op.what, "netns", 0) for op, _data in messages}):
                there = [item for item in messages if getattr(item[0].what, "netns", 0) == netns]
                try:
                    plain = self.transact(there) and plain
                except OSError as exc:  # its network namespace has gone
                    raise self.refusal(there[0][0], exc.errno or errno.ENODEV, "") from exc
        return plain

    def transact(self, messages: list[tuple[Op, bytes]]) -> bool:
        """Send one phase of messages and look at every answer; return whether none was an error."""
        results = self._ask([data for _op, data in messages], getattr(messages[0][0].what, "netns", 0))
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
        name = (nl.IFLA_IFNAME, link.name.encode() + b"\0")
        if verb == "delete":
            return request(nl.RTM_DELLINK, nl.NLM_F_ACK, nl.LINK_HEAD.pack(0, 0, self._index_of(link.name), 0, 0))
        if verb == "add":
            # One that was there before gets its number again: what is put back on it names that.
            self._index.pop(link.name, None)
            data = attribute(nl.IFLA_VLAN_ID, struct.pack("=H", link.vlan))
            info = attribute(nl.IFLA_INFO_KIND, b"vlan") + attribute(nl.IFLA_INFO_DATA, data)
            # With the link, so that one which a killed run left before its alias is known as ours.
            mark = (nl.IFLA_GROUP, u32(PROTOCOL))
            parts = (name, (nl.IFLA_LINK, u32(self._index_of(link.parent))), mark, (nl.IFLA_LINKINFO, info))
            head = nl.LINK_HEAD.pack(0, 0, link.index, 0, 0)
            return request(nl.RTM_NEWLINK, nl.NLM_F_ACK | nl.NLM_F_CREATE | nl.NLM_F_EXCL, head, *parts)
        head = nl.LINK_HEAD.pack(0, 0, link.index or self._index_of(link.name), nl.IFF_UP if link.up else 0, nl.IFF_UP)
        # The kernel takes no alias along with a new link.
        alias = ((nl.IFLA_IFALIAS, MANAGER.encode()),) if link.ours else ()
        return request(nl.RTM_SETLINK, nl.NLM_F_ACK, head, (nl.IFLA_MTU, u32(link.mtu)), *alias)

    def _encode_address(self, verb: str, item: Address) -> bytes:
        create = nl.NLM_F_ACK | nl.NLM_F_CREATE | nl.NLM_F_EXCL
        if verb == "add" and item.raw:
            return headed(nl.RTM_NEWADDR, create, bytes.fromhex(item.raw))
        flags = nl.IFA_F_NODAD if verb == "add" and item.family == 6 else 0
        head = nl.ADDRESS_HEAD.pack(nl.FAMILIES[item.family], item.length, flags, 0, self._index_of(item.interface))
        own = packed(item.address)
        if verb == "delete":
            return request(nl.RTM_DELADDR, nl.NLM_F_ACK, head, (nl.IFA_LOCAL, own), (nl.IFA_ADDRESS, own))
        # Kernels before 5.18 ignore the protocol.
        mark = (nl.IFA_PROTO, bytes([item.protocol]))
        return request(nl.RTM_NEWADDR, create, head, (nl.IFA_LOCAL, own), (nl.IFA_ADDRESS, own), mark)

    def _encode_route(self, verb: str, route: Route) -> bytes:
        how = nl.NLM_F_REPLACE if verb == "replace" else nl.NLM_F_EXCL
        kind, flags = nl.RTM_NEWROUTE, nl.NLM_F_ACK | nl.NLM_F_CREATE | how
        if verb == "delete":
            kind, flags = nl.RTM_DELROUTE, nl.NLM_F_ACK
        elif route.raw:
            body = bytearray.fromhex(route.raw)
            # The kernel refuses its own marks (dead, linkdown, offload) when it gets them back.
            struct.pack_into("=I", body, 8, struct.unpack_from("=I", body, 8)[0] & nl.RTNH_F_ONLINK)
            return headed(kind, flags, bytes(body))
        attributes = [(nl.RTA_TABLE, u32(route.table))]
        length = 0
        if route.dst != DEFAULT:
            address, _slash, text = route.dst.partition("/")
            length = int(text)
            attributes.append((nl.RTA_DST, packed(address)))
        attributes += [(nl.RTA_PRIORITY, u32(route.metric))] if route.metric else []
        attributes += [(nl.RTA_GATEWAY, packed(route.gateway))] if route.gateway else []
        attributes += [(nl.RTA_OIF, u32(self._index_of(route.interface)))] if route.interface else []
        attributes += [(nl.RTA_PREFSRC, packed(route.source))] if route.source else []
        made = (route.protocol, route.scope, nl.RTN_UNICAST)
        head = nl.ROUTE_HEAD.pack(nl.FAMILIES[route.family], length, 0, 0, 0, *made, 0)
        return request(kind, flags, head, *attributes)

    def _encode_rule(self, verb: str, rule: Rule) -> bytes:
        kind, flags = nl.RTM_NEWRULE, nl.NLM_F_ACK | nl.NLM_F_CREATE | nl.NLM_F_EXCL
        if verb == "delete":
            kind, flags = nl.RTM_DELRULE, nl.NLM_F_ACK
        if rule.raw:
            return headed(kind, flags, bytes.fromhex(rule.raw))
        lengths = {}
        attributes = [(nl.FRA_PRIORITY, u32(rule.priority)), (nl.FRA_TABLE, u32(rule.table))]
        for number, prefix in ((nl.FRA_SRC, rule.source), (nl.FRA_DST, rule.dest)):
            if prefix:
                address, _slash, text = prefix.partition("/")
                lengths[number] = int(text)
                attributes.append((number, packed(address)))
        attributes.append((nl.FRA_PROTOCOL, bytes([rule.protocol])))
        sizes = (lengths.get(nl.FRA_DST, 0), lengths.get(nl.FRA_SRC, 0))
        invert = nl.FIB_RULE_INVERT if rule.invert else 0
        head = nl.RULE_HEAD.pack(nl.FAMILIES[rule.family], *sizes, 0, 0, 0, 0, nl.FR_ACT_TO_TBL, invert)
        return request(kind, flags, head, *attributes)
