# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces stacked on a host's ports, also in pods, and the network namespaces of a host."""

from __future__ import annotations

import contextlib
import os
import typing as t
from dataclasses import replace
from glob import glob

from .model import Link
from .netlink import Socket

if t.TYPE_CHECKING:
    from .route_options import RouteOptions

    Place = tuple[int, int]
    """A network namespace (0 is the host's) and the number of a link in it."""

# Whose MTU decreases with that of the link they are stacked on (net/8021q/vlan.c, drivers/net/macvlan.c,
# ipvlan_main.c).
FOLLOWERS = {"vlan", "macvlan", "macvtap", "ipvlan", "ipvtap"}
CLONE_NEWNET = 0x40000000  # include/uapi/linux/sched.h


def stacked_links(
    want: RouteOptions, ports: t.Mapping[str, Link], stacked: t.Callable[[], t.Iterable[tuple[Place, Place, Link]]]
) -> dict[str, Link]:
    """Return the interfaces of the host and its pods that lose their MTU when the plan lowers the MTU of their port.

    :param ports: the port of each existing rail, by the name that the plan requests.
    :param stacked: returns all stacked links of the host, each with its place and the place of its lower device.
    """
    present = [(ports.get(rail.identifier), rail.mtu or 0) for rail in want.rails if want.present]
    lowered = {port.index: port.name for port, mtu in present if port and 0 < mtu < port.mtu}
    devices = {rail.device for rail in want.rails}
    above = list(stacked()) if lowered else []
    found: dict[Place, Link] = {}
    ahead = {(0, index): Link(name, 0, True, parent=name) for index, name in lowered.items()}
    while ahead:
        more = {key: (ahead[below], link) for key, below, link in above if below in ahead and key not in found}
        ahead = {key: replace(link, parent=low.parent, depth=low.depth + 1) for key, (low, link) in more.items()}
        found.update(ahead)
    return {link.name: link for link in found.values() if link.netns or link.name not in devices}


def other_namespaces() -> dict[int, str]:
    """Return the network namespaces of this host beside this one: a file of each, by its number."""
    found: dict[int, str] = {}
    names = sorted(glob("/proc/[0-9]*/ns/net"), key=lambda path: int(path.split("/")[2]))
    for path in [*names, *glob("/run/netns/*"), *glob("/run/docker/netns/*")]:
        with contextlib.suppress(OSError):
            found.setdefault(os.stat(path).st_ino, path)
    found.pop(os.stat("/proc/thread-self/ns/net").st_ino, None)
    return found


def socket_in(path: str) -> Socket:
    """Return a socket of another network namespace.

    :raises OSError: where that is removed, or may not be entered.
    """
    import ctypes

    enter = ctypes.CDLL(None, use_errno=True).setns
    with contextlib.ExitStack() as stack:
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        stack.callback(os.close, home)
        there = os.open(path, os.O_RDONLY)
        stack.callback(os.close, there)
        if enter(there, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), path)
        try:
            return Socket()
        finally:
            if enter(home, CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "The way back to the host's network namespace is closed.")
