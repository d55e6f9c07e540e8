# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes the host network over rtnetlink and /proc/sys, and reads it as `read` does. No other file writes there."""

from __future__ import annotations

import errno
import os
import struct
import typing as t

from .._errors import RdmaError
from .._fabric.numbers import MANAGER
from . import decode as rt
from . import netlink as nl
from .change import Op, Phase
from .decode import FAMILIES, packed, repeated
from .model import PROTOCOL, Address, Link, Route, Rule
from .read import Reader

# Errors that mean that the state of the message is reached already.
HARMLESS = {
    "add": {errno.EEXIST},
    "replace": set(),
    "set": set(),
    "delete": {errno.ESRCH, errno.ENOENT, errno.EADDRNOTAVAIL, errno.ENODEV},
}
NOT_PERMITTED = {errno.EPERM, errno.EACCES}
# The word of a message's name and the flags of its header, by verb.
VERBS = {
    "add": ("NEW", nl.NLM_F_ACK | nl.NLM_F_CREATE | nl.NLM_F_EXCL),
    "replace": ("NEW", nl.NLM_F_ACK | nl.NLM_F_CREATE | nl.NLM_F_REPLACE),
    "set": ("SET", nl.NLM_F_ACK),
    "delete": ("DEL", nl.NLM_F_ACK),
}
# include/uapi/linux/rtnetlink.h
RTNH_F_ONLINK = 0x4


class KernelRejected(RdmaError):
    """The kernel refused a message."""


class Kernel(Reader):
    """Reads a host's network and writes it."""

    def apply(self, phases: t.Iterable[Phase]) -> bool:
        """Write the phases, one after the other; raise KernelRejected at the first refusal, after its phase.

        Return whether every message changed something; for some the state may be reached already.
        """
        plain = True
        for phase in phases:
            messages: dict[int, list[tuple[Op, bytes]]] = {}
            for op in phase:
                if isinstance(op.what, tuple):
                    self._write_sysctl(op)
                else:
                    try:
                        messages.setdefault(getattr(op.what, "netns", 0), []).append((op, self.encode(op)))
                    except OSError as exc:  # its interface is removed
                        raise self.refusal(op, exc.errno or errno.ENODEV, "") from exc
            for _netns, there in sorted(messages.items()):
                try:
                    plain = self.transact(there) and plain
                except OSError as exc:  # its network namespace is removed, or an answer is missing
                    raise self.refusal(there[0][0], exc.errno or errno.ETIMEDOUT, "") from exc
        return plain

    def transact(self, messages: list[tuple[Op, bytes]]) -> bool:
        """Send messages of one phase to one network namespace and look at every answer; return whether none failed."""
        results = self._exchange([data for _op, data in messages], getattr(messages[0][0].what, "netns", 0))
        for (op, _data), (error, _answers, why) in zip(messages, results):
            if error and error not in HARMLESS[op.verb]:
                raise self.refusal(op, error, why)
        return not any(error for error, _answers, _why in results)

    def refusal(self, op: Op, error: int, why: str) -> KernelRejected:
        """Return the error for a refused message."""
        reported = f"{os.strerror(error)}{': ' + why if why else ''}"
        if error in NOT_PERMITTED and not why:
            fix = "Run the task with become: true, and inside a container with CAP_NET_ADMIN. [permission_denied]"
        else:
            fix = f"Try `{op}` on the host to find the conflict. [kernel_rejected]"
        return KernelRejected(f"The kernel refused `{op}`: {reported}.", fix, errno=error, operation=str(op))

    def _write_sysctl(self, op: Op) -> None:
        key, value = t.cast("tuple[str, str]", op.what)
        try:
            with open(self._sysfs.path(f"/proc/sys/{key}"), "w", encoding="ascii") as stream:
                stream.write(f"{value}\n")
        except OSError as exc:
            raise self.refusal(op, exc.errno or errno.EIO, "") from exc

    def encode(self, op: Op) -> bytes:
        """Return the message of one operation."""
        (word, how), what = VERBS[op.verb], op.what
        if isinstance(what, Link):
            return self._encode_link(f"RTM_{word}LINK", how, what)
        if isinstance(what, Address):
            return self._encode_address(f"RTM_{word}ADDR", how, what)
        if isinstance(what, Route):
            return self._encode_route(f"RTM_{word}ROUTE", how, what)
        return _encode_rule(f"RTM_{word}RULE", how, t.cast("Rule", what))

    def _encode_link(self, kind: str, how: int, link: Link) -> bytes:
        if kind == "RTM_DELLINK":
            return packed(kind, how, {}, index=self._index_of(link.name))
        if kind == "RTM_NEWLINK":
            # One that was there before gets its number again: what is put back on it names that.
            self._index.pop(link.name, None)
            vlan = [("IFLA_INFO_KIND", "vlan"), ("IFLA_INFO_DATA", {"attrs": [("IFLA_VLAN_ID", link.vlan)]})]
            attrs = {
                "IFLA_IFNAME": link.name,
                "IFLA_LINK": self._index_of(link.parent),
                # With the link, so that one which a killed run left before its alias is known as ours.
                "IFLA_GROUP": PROTOCOL,
                "IFLA_LINKINFO": {"attrs": vlan},
            }
            return packed(kind, how, attrs, index=link.index)
        # The kernel takes no alias along with a new link.
        attrs = {"IFLA_MTU": link.mtu, "IFLA_IFALIAS": MANAGER if link.managed else None}
        index, flags = link.index or self._index_of(link.name), rt.IFF_UP if link.up else 0
        return packed(kind, how, attrs, index=index, flags=flags, change=rt.IFF_UP)

    def _encode_address(self, kind: str, how: int, item: Address) -> bytes:
        if kind == "RTM_NEWADDR" and item.raw:
            return repeated(kind, how, bytes.fromhex(item.raw))
        # Kernels before 5.18 ignore the protocol.
        attrs = {"IFA_LOCAL": item.address, "IFA_ADDRESS": item.address, "IFA_PROTO": item.protocol}
        head = {"prefixlen": item.length, "flags": rt.IFA_F_NODAD if item.family == 6 else 0}
        return packed(kind, how, attrs, family=FAMILIES[item.family], index=self._index_of(item.interface), **head)

    def _encode_route(self, kind: str, how: int, route: Route) -> bytes:
        if kind == "RTM_NEWROUTE" and route.raw:
            body = bytearray.fromhex(route.raw)
            # The kernel refuses its own marks (dead, linkdown, offload) when it gets them back.
            struct.pack_into("=I", body, 8, struct.unpack_from("=I", body, 8)[0] & RTNH_F_ONLINK)
            return repeated(kind, how, bytes(body))
        address, _slash, length = route.dst.partition("/")
        attrs = {
            "RTA_TABLE": route.table,
            "RTA_DST": address if length else None,
            "RTA_PRIORITY": route.metric or None,
            "RTA_GATEWAY": route.gateway,
            "RTA_OIF": self._index_of(route.interface) if route.interface else None,
            "RTA_PREFSRC": route.source,
        }
        made = {"proto": route.protocol, "scope": route.scope, "type": rt.RTN_UNICAST}
        return packed(kind, how, attrs, family=FAMILIES[route.family], dst_len=int(length or 0), **made)


def _encode_rule(kind: str, how: int, rule: Rule) -> bytes:
    if rule.raw:
        return repeated(kind, how, bytes.fromhex(rule.raw))
    source, _slash, source_length = rule.source.partition("/")
    dest, _slash, dest_length = rule.dest.partition("/")
    attrs = {
        "FRA_PRIORITY": rule.priority,
        "FRA_TABLE": rule.table,
        "FRA_SRC": source,
        "FRA_DST": dest,
        "FRA_PROTOCOL": rule.protocol,
    }
    lengths = {"src_len": int(source_length or 0), "dst_len": int(dest_length or 0)}
    made = {"action": rt.FR_ACT_TO_TBL, "flags": rt.FIB_RULE_INVERT if rule.invert else 0}
    return packed(kind, how, attrs, family=FAMILIES[rule.family], **lengths, **made)
