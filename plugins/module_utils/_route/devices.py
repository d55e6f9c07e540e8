# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Kinds of a host's links, and the interfaces stacked on its ports, also in pods.

This file classifies netlink messages before it decodes them.
"""

from __future__ import annotations

import contextlib
import os
import struct
import typing as t
from dataclasses import replace
from glob import glob

from . import netlink as nl
from .model import Link
from .netlink import Socket, attribute, attributes, request, text_of, u32

if t.TYPE_CHECKING:
    from .route_options import RouteOptions

# Whose MTU goes down with that of the link they stand on (net/8021q/vlan.c, drivers/net/macvlan.c, ipvlan_main.c,
# macsec.c, which takes a header of 16 bytes and the length of its check value of it).
FOLLOWERS = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap", "macsec"}
IFLA_MACSEC_ICV_LEN, MACSEC_HEAD, MACSEC_ICV = 3, 16, 16
# include/uapi/linux/if_link.h, net_namespace.h, sched.h
IFLA_ADDRESS, IFLA_PERM_ADDRESS, IFLA_INFO_DATA = 1, 54, 2
IFLA_LINK_NETNSID, RTM_GETNSID, NETNSA_NSID, NETNSA_FD, CLONE_NEWNET = 37, 90, 1, 3, 0x40000000


def kind_of(body: bytes) -> str:
    """Return the kind of a link from its message."""
    have = attributes(body, nl.LINK_HEAD.size)
    kind = text_of(attributes(have.get(nl.IFLA_LINKINFO, b"")).get(nl.IFLA_INFO_KIND, b""))
    # Every interface of IP over InfiniBand has that kind; those of partitions stand on another link.
    # struct ifinfomsg: the number of the link begins at the fourth byte.
    return "" if kind == "ipoib" and have.get(nl.IFLA_LINK, body[4:8]) == body[4:8] else kind


def mac_of(body: bytes) -> str:
    """Return a link's permanent MAC address from its message; InfiniBand's GUID is the end of its address."""
    have = attributes(body, nl.LINK_HEAD.size)
    return (have.get(IFLA_PERM_ADDRESS) or have.get(IFLA_ADDRESS, b""))[-8:].hex(":")


def standing(want: RouteOptions, ports: t.Mapping[str, Link]) -> dict[str, Link]:
    """Return the interfaces of the host and its pods that lose their MTU when the plan lowers the MTU of their port.

    :param ports: the port of each existing rail, by the name that the plan requests.
    """
    asked = [(ports[rail.asked], rail.mtu or 0) for rail in want.rails if want.present and rail.asked in ports]
    lowered = {port.index: port.name for port, mtu in asked if 0 < mtu < port.mtu}
    devices = {rail.device for rail in want.rails}
    above = list(_stacked()) if lowered else []
    found: dict[tuple[int, int], Link] = {}
    ahead = {(0, index): Link(name, 0, True, parent=name) for index, name in lowered.items()}
    while ahead:
        more = {key: (ahead[below], link) for key, below, link in above if below in ahead and key not in found}
        ahead = {
            key: replace(link, parent=low.parent, depth=low.depth + 1, head=low.head + link.head)
            for key, (low, link) in more.items()
        }
        found.update(ahead)
    return {link.name: link for link in found.values() if link.netns or link.name not in devices}


def _stacked() -> t.Iterator[tuple[tuple[int, int], tuple[int, int], Link]]:
    """Yield the links of FOLLOWERS that are stacked on others, in all network namespaces of this host.

    Each with what it is stacked on, both by namespace and number; its name contains its place.
    """
    with contextlib.ExitStack() as stack:
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        stack.callback(os.close, home)
        for netns, path in {0: "", **other_namespaces()}.items():
            if not (ask := socket_in(path) if netns else Socket()):
                continue
            stack.callback(ask.close)
            place, host = (f" ({whose(path)})", _number_of(home, ask)) if netns else ("", None)
            for answer in ask.dump(request(nl.RTM_GETLINK, nl.NLM_F_DUMP, bytes(nl.LINK_HEAD.size))):
                have = attributes(answer, nl.LINK_HEAD.size)
                if nl.IFLA_LINK not in have or (made := kind_of(answer)) not in FOLLOWERS:
                    continue
                _family, _type, index, flags, _change = nl.LINK_HEAD.unpack_from(answer)
                elsewhere = have.get(IFLA_LINK_NETNSID)
                there = netns if elsewhere is None else 0 if elsewhere == host else -1
                name, up = text_of(have[nl.IFLA_IFNAME]) + place, bool(flags & nl.IFF_UP)
                mtu, head = _number(have[nl.IFLA_MTU]), _head(have) if made == "macsec" else 0
                link = Link(name, mtu, up, index=index, netns=netns, made=made, head=head)
                yield (netns, index), (there, _number(have[nl.IFLA_LINK])), link


def _head(have: t.Mapping[int, bytes]) -> int:
    """Return how many bytes MACsec takes of the MTU of what it is stacked on."""
    data = attributes(attributes(have[nl.IFLA_LINKINFO]).get(IFLA_INFO_DATA, b""))
    value = data.get(IFLA_MACSEC_ICV_LEN, b"")
    return MACSEC_HEAD + (value[0] if value else MACSEC_ICV)


def _number(value: bytes) -> int:
    return int(struct.unpack("=I", value)[0])


def _number_of(namespace: int, ask: Socket) -> bytes | None:
    """Return what another namespace calls this one."""
    # struct rtgenmsg with its padding: the family.
    _error, answers, _why = ask.ask(
        [request(RTM_GETNSID, nl.NLM_F_ACK, bytes(4), attribute(NETNSA_FD, u32(namespace)))]
    )[0]
    return attributes(answers[0], 4).get(NETNSA_NSID) if answers else None


def other_namespaces() -> dict[int, str]:
    """Return the network namespaces of this host beside this one: a file of each, by its number."""
    found: dict[int, str] = {}
    names = sorted(glob("/proc/[0-9]*/ns/net"), key=lambda path: int(path.split("/")[2]))
    for path in [*names, *glob("/run/netns/*"), *glob("/run/docker/netns/*")]:
        with contextlib.suppress(OSError):
            found.setdefault(os.stat(path).st_ino, path)
    found.pop(os.stat("/proc/thread-self/ns/net").st_ino, None)
    return found


def whose(path: str) -> str:
    """Return in words whose a network namespace is, by a file of it."""
    process = path.split("/")[2]
    if not process.isdigit():
        return f"namespace {os.path.basename(path)}"
    with contextlib.suppress(OSError), open(f"/proc/{process}/comm", encoding="utf-8", errors="replace") as stream:
        process += f", {stream.read().strip()}"
    return f"process {process}"


def socket_in(path: str) -> Socket | None:
    """Return a socket of another network namespace; None where that has gone, or may not be entered."""
    import ctypes

    enter = ctypes.CDLL(None, use_errno=True).setns
    with contextlib.ExitStack() as stack:
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        stack.callback(os.close, home)
        try:
            there = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        stack.callback(os.close, there)
        if enter(there, CLONE_NEWNET):
            return None
        try:
            return Socket()
        finally:
            if enter(home, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "The way back to the host's network namespace is closed.")
