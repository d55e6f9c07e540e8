# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the kernel says of the host network, as the values of model.

pyroute2's message classes decode it; they are the same from 0.7.2 to 0.9, unlike its sockets (asynchronous since 0.9),
of which `netlink` has its own.
"""

from __future__ import annotations

import os
import socket
import struct
import traceback
import typing as t

from .._fabric.numbers import MANAGER
from .._files import Sysfs
from . import netlink as nl
from .devices import kind_of
from .model import DEFAULT, PROTOCOL, Address, Link, Route, Rule
from .netlink import Answer, attributes, headed

PYROUTE2_NEEDED = "pyroute2 >= 0.7.2"
PYROUTE2_ERROR: str | None = None
try:
    import pyroute2
    from pyroute2.netlink.rtnl.fibmsg import fibmsg
    from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
    from pyroute2.netlink.rtnl.rtmsg import rtmsg
except ImportError:
    PYROUTE2_ERROR = traceback.format_exc()


def pyroute2_problem() -> str:
    """Return what is wrong with the installed pyroute2, or an empty string.

    Probed by what it can do: distributions patch and renumber.
    """
    known = [name for entry in fibmsg.nla_map for name in entry if isinstance(name, str)]
    mtu = [name for entry in ifinfmsg.nla_map for name in entry if isinstance(name, str)]
    if "FRA_PROTOCOL" in known and "IFLA_MAX_MTU" in mtu:
        return ""
    version = getattr(pyroute2, "__version__", "of unknown version")
    return f"pyroute2 {version} in {os.path.dirname(pyroute2.__file__)} is too old: {PYROUTE2_NEEDED} is needed."


def decoded(cls: t.Any, answer: Answer) -> t.Any:
    """Return a message by its class of pyroute2."""
    message = cls(headed(answer.kind, 0, answer.body))
    message.decode()
    return message


class Decoder:
    """Knows the names of links by their numbers, and decodes messages."""

    def __init__(self, sysfs: Sysfs) -> None:
        self._sysfs = sysfs
        self._index: dict[str, int] = {}
        self._name: dict[int, str] = {}
        self._known: dict[bytes, Route] = {}

    def _name_of(self, index: int) -> str:
        if index not in self._name:
            try:
                self._name[index] = socket.if_indextoname(index)
            except OSError:
                self._name[index] = f"if{index}"
        return self._name[index]

    def _link(self, answer: Answer) -> Link:
        message = decoded(ifinfmsg, answer)
        name = message.get_attr("IFLA_IFNAME")
        infiniband = message["ifi_type"] == nl.ARPHRD_INFINIBAND
        mode = ""
        if infiniband:
            mode = self._sysfs.text(f"/sys/class/net/{name}/mode") or "datagram"
        master, parent = message.get_attr("IFLA_MASTER"), message.get_attr("IFLA_LINK")
        elsewhere = message.get_attr("IFLA_LINK_NETNSID") is not None
        info = message.get_attr("IFLA_LINKINFO")
        data = info.get_attr("IFLA_INFO_DATA") if info and info.get_attr("IFLA_INFO_KIND") == "vlan" else None
        vlan = data.get_attr("IFLA_VLAN_ID") if data else 0
        marks = (message.get_attr("IFLA_IFALIAS"), message.get_attr("IFLA_GROUP"))
        return Link(
            name=name,
            mtu=message.get_attr("IFLA_MTU"),
            up=bool(message["flags"] & nl.IFF_UP),
            index=message["index"],
            kind="infiniband" if infiniband else "ethernet",
            carrier=bool(message["flags"] & nl.IFF_LOWER_UP),
            min_mtu=message.get_attr("IFLA_MIN_MTU") or 0,
            max_mtu=message.get_attr("IFLA_MAX_MTU") or 0,
            mode=mode,
            master=self._name_of(master) if master else "",
            parent=self._name_of(parent) if parent and not elsewhere else "",
            vlan=vlan,
            ours=bool(vlan) and (marks[0] == MANAGER or marks[1] == PROTOCOL),
            made=kind_of(answer.body),
        )

    def _address(self, answer: Answer, planned: t.Collection[str]) -> Address:
        message = decoded(ifaddrmsg, answer)
        family = nl.NUMBERS[message["family"]]
        flags = message.get_attr("IFA_FLAGS") or message["flags"]
        local = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        # Of others' addresses the state may change while this runs; it is none of ours.
        held = family == 6 and flags & (nl.IFA_F_TENTATIVE | nl.IFA_F_DADFAILED) and local in planned
        return Address(
            interface=self._name_of(struct.unpack_from("=I", answer.body, 4)[0]),
            family=family,
            address=local,
            length=message["prefixlen"],
            usable=not held,
            protocol=attributes(answer.body, 8).get(nl.IFA_PROTO, b"\0")[0],
            raw=answer.body.hex(),
        )

    def _route(self, answer: Answer) -> Route:
        # Decoding is what takes the time here, and the same route comes by several questions.
        known = self._known.get(answer.body)
        if known is None:
            known = self._known[answer.body] = self._decode_route(answer)
        return known

    def _decode_route(self, answer: Answer) -> Route:
        message = decoded(rtmsg, answer)
        family = nl.NUMBERS.get(message["family"], 4)
        kind = message["type"]
        other = "" if kind == nl.RTN_UNICAST else nl.ROUTE_TYPES.get(kind, f"type {kind}")
        hops = message.get_attr("RTA_MULTIPATH")
        index = message.get_attr("RTA_OIF")
        if hops:
            other = "multipath"
            index = hops[0]["oif"]
        if message["flags"] & nl.RTM_F_CLONED:
            other = "cache"
        if message["tos"]:
            other = f"{other} tos {message['tos']}".strip()
        dst = message.get_attr("RTA_DST")
        return Route(
            family=family,
            table=message.get_attr("RTA_TABLE") or message["table"],
            dst=f"{dst}/{message['dst_len']}" if dst else DEFAULT,
            metric=message.get_attr("RTA_PRIORITY") or 0,
            interface=self._name_of(index) if index else "",
            gateway=message.get_attr("RTA_GATEWAY") or "",
            source=message.get_attr("RTA_PREFSRC") or "",
            scope=message["scope"] if family == 4 else 0,
            other=other,
            protocol=message["proto"],
            raw=answer.body.hex(),
            hops=tuple(self._name_of(hop["oif"]) for hop in hops or ()),
        )

    def _rule(self, answer: Answer) -> Rule:
        message = decoded(fibmsg, answer)
        source, dest = message.get_attr("FRA_SRC"), message.get_attr("FRA_DST")
        return Rule(
            family=nl.NUMBERS[message["family"]],
            priority=message.get_attr("FRA_PRIORITY") or 0,
            table=message.get_attr("FRA_TABLE") or message["table"],
            source=f"{source}/{message['src_len']}" if source else "",
            dest=f"{dest}/{message['dst_len']}" if dest else "",
            invert=bool(message["flags"] & nl.FIB_RULE_INVERT),
            other=_selectors(message),
            protocol=message.get_attr("FRA_PROTOCOL") or 0,
            raw=answer.body.hex(),
        )


# What a rule of ours never has; the rest of a rule's attributes say nothing about what it selects.
PLAIN_RULE = {"FRA_PRIORITY", "FRA_TABLE", "FRA_PROTOCOL", "FRA_SRC", "FRA_DST", "FRA_UNSPEC", "FRA_PAD"}


def _selectors(message: t.Any) -> str:
    action = message["action"]
    # One that jumps has its target as an attribute.
    parts = [] if action in (nl.FR_ACT_TO_TBL, nl.FR_ACT_GOTO) else [nl.RULE_ACTIONS.get(action, f"action {action}")]
    if message["tos"]:
        parts.append(f"tos {message['tos']}")
    for name, value in message["attrs"]:
        if name in PLAIN_RULE or (name == "FRA_SUPPRESS_PREFIXLEN" and value == 0xFFFFFFFF):
            continue
        parts.append(f"{name[4:].lower() if name.startswith('FRA_') else name} {value}")
    return " ".join(parts)
