# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what to ask of the kernel, and what its answers mean. Pure.

The question is RoCE's: UDP to port 4791 with the planned TOS, user 0, no mark, from the rail's address; once with the
rail's interface, as RDMA's own look-up asks (drivers/infiniband/core/addr.c), and once without, as sockets do. Each is
asked twice: for the route of the tables (all its hops, its table, who made it), and for what this very packet gets.
Each destination is asked for without a source too, as programs ask that do not bind to a rail.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .model import Hop, link_of
from .wanted import inside

if t.TYPE_CHECKING:
    from .model import Host, Route
    from .want import Neighbour, Want, WantAddress

# RoCE v2's destination port (IANA), and the source ports that it takes (RFC 6056's range, roce_sport of rdma-core).
PORT, FIRST_SOURCE_PORT, LAST_SOURCE_PORT = 4791, 49152, 65535


@dataclass(frozen=True)
class Target:
    """One way to prove: from a rail's address to another; `gateway` is the planned one, empty for on link."""

    rail: str
    interface: str
    table: int
    priority: int
    family: int
    source: str
    address: str
    what: str
    gateway: str = ""

    def __str__(self) -> str:
        """Return the planned way as text."""
        via = f" via {self.gateway}" if self.gateway else ""
        return f"{self.address}{via} dev {self.interface} src {self.source} table {self.table}"


@dataclass(frozen=True)
class Flow:
    """A packet of UDP that a host is about to send; `source` and `interface` are empty where it is not bound."""

    source: str
    interface: str
    sport: int


@dataclass(frozen=True)
class Asked:
    """One question with its answers: `match` is the route of the tables, `plain` what the packet gets, or an error."""

    target: Target
    flow: Flow
    match: Route | None
    plain: Route | None
    error: int = 0


@dataclass(frozen=True)
class PathState:
    """What was read of a host for the proof.

    :param neighbours: entries of the neighbour tables that somebody set by hand: (interface, address) to its hardware
        address; `seen` is what the wire answers for the same address, empty where nothing answered.
    """

    host: Host
    asked: tuple[Asked, ...]
    neighbours: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: dict[tuple[str, str], str] = field(default_factory=dict)


def targets_of(want: Want, host: Host, neighbours: t.Sequence[Neighbour]) -> list[Target]:
    """Return the ways to prove: to each rail's gateway, to the neighbours on the same rail, and on the next one."""
    found = []
    for place, rail in enumerate(want.rails):
        near = {rail.name, want.rails[(place + 1) % len(want.rails)].name}
        link = link_of(rail, host)
        for item in rail.addresses:
            others = [(item.gateway, "its gateway")] if item.gateway else []
            others += [
                (there.address, f"{there.host or 'neighbour'} {there.rail}{f' in {there.zone}' if there.zone else ''}")
                for there in neighbours
                if there.rail in near and there.family == item.family
            ]
            own = (rail.name, link.name if link else rail.asked, rail.table, rail.priority, item.family, item.address)
            for address, what in others:
                if (gateway := way(want, item, address)) is not None:
                    found.append(Target(*own, address, what, gateway))
    return found


def way(want: Want, item: WantAddress, address: str) -> str | None:
    """Return by which gateway the plan leads from a rail's address: empty is on link, None is not at all."""
    if inside(address, item.subnet):
        return ""
    planned = any(inside(address, prefix) for prefix in want.prefixes_of(item.family))
    return item.gateway if item.gateway and planned else None


def flows_of(target: Target, source_ports: t.Iterable[int]) -> t.Iterator[Flow]:
    """Return the packets to ask for: from the rail's address, without and with its interface; and from nowhere.

    :param source_ports: of UDP.
    """
    for port in source_ports:
        for source, interface in ((target.source, ""), (target.source, target.interface), ("", "")):
            yield Flow(source, interface, port)


def source_ports(selectors: t.Iterable[tuple[int, int, int]], limit: int = 8) -> list[int]:
    """Return the source ports of RoCE v2 that rules can tell apart, at most `limit` of them.

    :param selectors: of rules: first and last port; or a port and its mask, 0 where there is none.
    """
    found = {FIRST_SOURCE_PORT}
    for first, last, mask in selectors:
        fits = (FIRST_SOURCE_PORT | (first & mask),) if mask else (first, last + 1)
        found |= {port for port in fits if FIRST_SOURCE_PORT <= port <= LAST_SOURCE_PORT}
    return sorted(found)[:limit]


def ways_of(want: Want, host: Host, address: str) -> set[Hop]:
    """Return all ways to an address that are planned, by whichever rail: for who does not choose one."""
    found = set()
    for rail in want.rails:
        link = link_of(rail, host)
        for item in rail.addresses:
            if link and (item.family == 6) == (":" in address) and (gateway := way(want, item, address)) is not None:
                found |= {Hop(link.name, gateway), Hop(link.name, gateway or address)}
    return found
