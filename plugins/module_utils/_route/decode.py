# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages of rtnetlink by pyroute2's classes, made and decoded; what the kernel says becomes the values of model.

The classes are the same from 0.7.2 to 0.9, unlike pyroute2's sockets, of which `netlink` has its own. Attributes that
they lack to 0.9.7 are added here: RTA_UID, RTA_IP_PROTO, RTA_SPORT, RTA_DPORT, FRA_SPORT_MASK, IFA_PROTO.
"""

from __future__ import annotations

import functools
import os
import socket
import sys
import typing as t

from .._fabric.numbers import MANAGER
from .._files import INFINIBAND, Sysfs
from .._pyroute2 import add_wheel
from . import netlink as nl
from .model import DEFAULT, PROTOCOL, PROTOCOL_NAME, Address, Hop, Link, Route, Rule

# include/uapi/linux/rtnetlink.h
RTM_F_CLONED, RTM_F_LOOKUP_TABLE, RTM_F_FIB_MATCH = 0x200, 0x1000, 0x2000
RTN_UNICAST = 1
# include/uapi/linux/if.h, if_addr.h, fib_rules.h, if_arp.h
IFF_UP, IFF_NOARP, IFF_LOWER_UP = 0x1, 0x80, 0x10000
RTAX_MTU = 2
IFA_F_NODAD, IFA_F_DADFAILED, IFA_F_TENTATIVE, IFA_F_PERMANENT = 0x02, 0x08, 0x40, 0x80
FR_ACT_TO_TBL, FR_ACT_GOTO, FIB_RULE_INVERT = 1, 2, 0x2
RULE_ACTIONS = {3: "nop", 6: "blackhole", 7: "unreachable", 8: "prohibit"}
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
NUMBERS = {value: key for key, value in FAMILIES.items()}

# Of RTPROT_* (include/uapi/linux/rtnetlink.h) those that pyroute2 lacks, and ours.
PROTOCOLS = {PROTOCOL: PROTOCOL_NAME, 186: "bgp", 187: "isis", 188: "ospf"}

PYROUTE2_NEEDED = "pyroute2 >= 0.7.2"
PYROUTE2_ERROR = ""


def extended(base: t.Any, *more: tuple[int, str, str]) -> t.Any:
    """Return a class of messages with attributes that pyroute2's own lacks: number, name and type."""
    known = (row if isinstance(row[0], int) else (number, *row) for number, row in enumerate(base.nla_map))
    return type(base.__name__, (base,), {"nla_map": (*known, *more)})


try:
    add_wheel()
    import pyroute2
    from pyroute2.netlink import rtnl
    from pyroute2.netlink.rtnl import fibmsg, ifaddrmsg, ifinfmsg, nsidmsg, rtmsg

    PORTS = ((27, "RTA_IP_PROTO", "uint8"), (28, "RTA_SPORT", "be16"), (29, "RTA_DPORT", "be16"))
    # The class of each kind of message, by the last word of its name: RTM_NEWLINK, RTM_GETADDR, ...
    MESSAGES = {
        "LINK": ifinfmsg.ifinfmsg,
        "ADDR": extended(ifaddrmsg.ifaddrmsg, (11, "IFA_PROTO", "uint8")),
        "ROUTE": extended(rtmsg.rtmsg, (25, "RTA_UID", "uint32"), *PORTS),
        "RULE": extended(fibmsg.fibmsg, (28, "FRA_SPORT_MASK", "uint16")),
        "NSID": nsidmsg.nsidmsg,
    }
except ImportError as missing:
    PYROUTE2_ERROR = str(missing)


def pyroute2_problem() -> str:
    """Return what is wrong with this host's pyroute2, or an empty string.

    Probed by what it can do: distributions patch and renumber.
    """
    if PYROUTE2_ERROR:
        return f"{PYROUTE2_NEEDED} cannot be imported by {sys.executable}: {PYROUTE2_ERROR}."
    known = {word for kind in ("RULE", "LINK") for row in MESSAGES[kind].nla_map for word in row}
    if {"FRA_PROTOCOL", "IFLA_MAX_MTU"} <= known:
        return ""
    version = getattr(pyroute2, "__version__", "of unknown version")
    return f"pyroute2 {version} in {os.path.dirname(pyroute2.__file__)} is too old: {PYROUTE2_NEEDED} is needed."


def packed(kind: str, how: int, attrs: t.Mapping[str, t.Any], /, **fields: t.Any) -> bytes:
    """Return a request: its fixed part from `fields`, and those attributes that have a value.

    :param kind: RTM_*; `how` are the flags of the header, NLM_F_*.
    """
    message = MESSAGES[kind[len("RTM_NEW") :]]()
    message.update(fields, attrs=[(name, value) for name, value in attrs.items() if value not in (None, "")])
    message["header"].update(type=getattr(rtnl, kind), flags=nl.NLM_F_REQUEST | how)
    message.encode()
    return bytes(message.data)


def repeated(kind: str, how: int, body: bytes) -> bytes:
    """Return a request of what came as an answer."""
    return nl.request(getattr(rtnl, kind), how, body)


def decoded(kind: str, body: bytes) -> t.Any:
    """Return a message of a kind of MESSAGES, from what follows the header."""
    message = MESSAGES[kind](nl.request(0, 0, body))
    message.decode()
    return message


def origin(protocol: int) -> str:
    """Return what made a rule or route, by its protocol."""
    return str({**rtnl.rt_proto, **PROTOCOLS}.get(protocol, f"protocol {protocol}"))


def kind_of(message: t.Any) -> str:
    """Return the kind of a link from its message; empty for a port of IP over InfiniBand, which has one too."""
    info = message.get_attr("IFLA_LINKINFO")
    kind = info.get_attr("IFLA_INFO_KIND") if info else ""
    # The interfaces of partitions are stacked on another link.
    return "" if kind == "ipoib" and message.get_attr("IFLA_LINK") in (None, message["index"]) else kind or ""


class Decoder:
    """Knows the names of links by their numbers, and decodes messages."""

    def __init__(self, sysfs: Sysfs) -> None:
        self._sysfs = sysfs
        self._index: dict[str, int] = {}
        self._name: dict[int, str] = {}
        # Decoding is what takes the time here, and the same route comes by several questions.
        self._route = functools.lru_cache(maxsize=None)(self._decode_route)

    def _name_of(self, index: int) -> str:
        if index not in self._name:
            try:
                self._name[index] = socket.if_indextoname(index)
            except OSError:
                self._name[index] = f"if{index}"
        return self._name[index]

    def _link(self, answer: bytes) -> Link:
        message = decoded("LINK", answer)
        name = message.get_attr("IFLA_IFNAME")
        infiniband = message["ifi_type"] == INFINIBAND
        master, parent = message.get_attr("IFLA_MASTER"), message.get_attr("IFLA_LINK")
        elsewhere = message.get_attr("IFLA_LINK_NETNSID") is not None
        info = message.get_attr("IFLA_LINKINFO")
        data = info.get_attr("IFLA_INFO_DATA") if info and info.get_attr("IFLA_INFO_KIND") == "vlan" else None
        vlan = data.get_attr("IFLA_VLAN_ID") if data else 0
        marks = (message.get_attr("IFLA_IFALIAS"), message.get_attr("IFLA_GROUP"))
        mac = self._sysfs.text(f"/sys/class/net/{name}/address") if infiniband else message.get_attr("IFLA_ADDRESS")
        return Link(
            name=name,
            mtu=message.get_attr("IFLA_MTU"),
            up=bool(message["flags"] & IFF_UP),
            index=message["index"],
            kind="infiniband" if infiniband else "ethernet",
            carrier=bool(message["flags"] & IFF_LOWER_UP),
            min_mtu=message.get_attr("IFLA_MIN_MTU") or 0,
            max_mtu=message.get_attr("IFLA_MAX_MTU") or 0,
            mode=(self._sysfs.text(f"/sys/class/net/{name}/mode") or "datagram") if infiniband else "",
            master=self._name_of(master) if master else "",
            parent=self._name_of(parent) if parent and not elsewhere else "",
            vlan=vlan,
            managed=bool(vlan) and (marks[0] == MANAGER or marks[1] == PROTOCOL),
            made=kind_of(message),
            dormant=message.get_attr("IFLA_OPERSTATE") == "DORMANT",
            arp=not message["flags"] & IFF_NOARP,
            # InfiniBand's GUID is the end of its address.
            mac=(message.get_attr("IFLA_PERM_ADDRESS") or mac or "")[-23:],
        )

    def _address(self, answer: bytes, planned: t.Collection[str]) -> Address:
        message = decoded("ADDR", answer)
        family = NUMBERS[message["family"]]
        flags = message.get_attr("IFA_FLAGS") or message["flags"]
        local = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
        ends = not flags & IFA_F_PERMANENT
        # Of others' addresses the state may change while this runs; it is none of ours.
        unusable = local in planned and (ends or (family == 6 and flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)))
        return Address(
            interface=self._name_of(message["index"]),
            family=family,
            address=local,
            length=message["prefixlen"],
            usable=not unusable,
            ends=ends,
            protocol=message.get_attr("IFA_PROTO") or 0,
            raw=answer.hex(),
        )

    def _decode_route(self, answer: bytes) -> Route:
        message = decoded("ROUTE", answer)
        family = NUMBERS.get(message["family"], 4)
        several = message.get_attr("RTA_MULTIPATH") or []
        hops = tuple(self._hop(hop, hop["oif"]) for hop in several)
        first = hops[0] if hops else self._hop(message, message.get_attr("RTA_OIF"))
        kind = message["type"]
        other = "" if kind == RTN_UNICAST else rtnl.rt_type.get(kind, f"type {kind}")
        if hops:
            other = "multipath"
        if message["flags"] & RTM_F_CLONED:
            other = "cache"
        if any(hop.get_attr("RTA_ENCAP_TYPE") for hop in (message, *several)):
            other = f"{other} encap".strip()
        if message["tos"]:
            other = f"{other} tos {message['tos']}".strip()
        dst = message.get_attr("RTA_DST")
        return Route(
            family=family,
            table=message.get_attr("RTA_TABLE") or message["table"],
            dst=f"{dst}/{message['dst_len']}" if dst else DEFAULT,
            metric=message.get_attr("RTA_PRIORITY") or 0,
            interface=first.interface,
            gateway=first.gateway,
            source=message.get_attr("RTA_PREFSRC") or "",
            scope=message["scope"] if family == 4 else 0,
            other=other,
            mtu=_mtu_of(message.get_attr("RTA_METRICS")),
            protocol=message["proto"],
            raw=answer.hex(),
            hops=hops,
        )

    def _hop(self, message: t.Any, index: int | None) -> Hop:
        # RTA_VIA is an address of the other family.
        gateway = message.get_attr("RTA_GATEWAY") or (message.get_attr("RTA_VIA") or {}).get("addr")
        return Hop(self._name_of(index) if index else "", gateway or "")

    def _rule(self, answer: bytes) -> Rule:
        message = decoded("RULE", answer)
        source, dest = message.get_attr("FRA_SRC"), message.get_attr("FRA_DST")
        return Rule(
            family=NUMBERS[message["family"]],
            priority=message.get_attr("FRA_PRIORITY") or 0,
            table=message.get_attr("FRA_TABLE") or message["table"],
            source=f"{source}/{message['src_len']}" if source else "",
            dest=f"{dest}/{message['dst_len']}" if dest else "",
            invert=bool(message["flags"] & FIB_RULE_INVERT),
            other=_selectors(message),
            protocol=message.get_attr("FRA_PROTOCOL") or 0,
            raw=answer.hex(),
        )


def _mtu_of(metrics: t.Any) -> str:
    mtu = metrics and metrics.get_attr("RTAX_MTU")
    lock = "lock " if mtu and (metrics.get_attr("RTAX_LOCK") or 0) & (1 << RTAX_MTU) else ""
    return f"mtu {lock}{mtu}" if mtu else ""


# What a rule of ours never has; the rest of a rule's attributes say nothing about what it selects.
PLAIN_RULE = {"FRA_PRIORITY", "FRA_TABLE", "FRA_PROTOCOL", "FRA_SRC", "FRA_DST", "FRA_UNSPEC", "FRA_PAD"}


def _selectors(message: t.Any) -> str:
    action = message["action"]
    # One that jumps has its target as an attribute.
    parts = [] if action in (FR_ACT_TO_TBL, FR_ACT_GOTO) else [RULE_ACTIONS.get(action, f"action {action}")]
    if message["tos"]:
        parts.append(f"tos {message['tos']}")
    for name, value in message["attrs"]:
        if name in PLAIN_RULE or (name == "FRA_SUPPRESS_PREFIXLEN" and value == 0xFFFFFFFF):
            continue
        parts.append(f"{name[4:].lower() if name.startswith('FRA_') else name} {value}")
    return " ".join(parts)
