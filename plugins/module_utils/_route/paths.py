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

import ipaddress
import typing as t
from dataclasses import dataclass, field

if t.TYPE_CHECKING:
    from .model import Route, Rule
    from .want import Want, WantAddress, WantRail

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
class Hop:
    """Where a route leads: an interface, and the gateway there (empty: on link)."""

    interface: str
    gateway: str = ""

    def __str__(self) -> str:
        return f"{self.interface}{f' via {self.gateway}' if self.gateway else ', on link'}"


@dataclass(frozen=True)
class Answer:
    """What the kernel says to one question: an error number, or a route with all its hops."""

    error: int = 0
    route: Route | None = None
    hops: tuple[Hop, ...] = ()
    encapsulated: bool = False


@dataclass(frozen=True)
class Flow:
    """A packet that a host is about to send. `source` and `interface` are empty where it is not bound to them."""

    source: str
    destination: str
    interface: str = ""
    tos: int = 0
    sport: int = 0


@dataclass(frozen=True)
class Asked:
    """One question with its two answers: `match` is the route of the tables, `plain` what the packet gets."""

    target: Target
    flow: Flow
    match: Answer
    plain: Answer


@dataclass(frozen=True)
class RailLink:
    """What is known of a rail's interface; `vrf` is the VRF that it is in."""

    name: str
    up: bool
    carrier: bool
    vrf: str = ""


@dataclass(frozen=True)
class PathState:
    """What was read of a host for the proof.

    :param links: by rail; a rail without an interface is missing.
    :param holders: the interfaces that hold an address, by address; `tentative` are addresses not usable yet.
    :param rules: of both families; `refusing` are the routes of the rails' tables that refuse what they are for.
    :param neighbours: entries of the neighbour tables that somebody set by hand: (interface, address) to its hardware
        address; `seen` is what the wire answers for the same address, empty where nothing answered.
    """

    links: dict[str, RailLink]
    holders: dict[str, list[str]]
    rules: tuple[Rule, ...]
    asked: tuple[Asked, ...]
    refusing: tuple[Route, ...] = ()
    tentative: frozenset[str] = frozenset()
    neighbours: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: dict[tuple[str, str], str] = field(default_factory=dict)


def targets_of(want: Want, names: t.Mapping[str, str], neighbours: t.Sequence[t.Mapping[str, t.Any]]) -> list[Target]:
    """Return the ways to prove: to each rail's gateway, to the neighbours on the same rail, and on the next one.

    :param names: the link's name of each rail.
    :param neighbours: other hosts of the plan: `host`, `zone` where it is another one than this host's, and `rails`.
    """
    found = []
    for place, rail in enumerate(want.rails):
        beside = want.rails[(place + 1) % len(want.rails)].name
        for item in rail.addresses:
            others = [(item.gateway, "its gateway")] if item.gateway else []
            for host in neighbours:
                for name in dict.fromkeys((rail.name, beside)):
                    zone = f" in {host['zone']}" if host.get("zone") else ""
                    others += [
                        (address, f"{host.get('host', 'neighbour')} {name}{zone}")
                        for address in _addresses(host, name, item.family)
                    ]
            for address, what in others:
                if (gateway := way(want, item, address)) is not None:
                    found.append(_target(rail, names, item, address, what, gateway))
    return found


def _target(
    rail: WantRail, names: t.Mapping[str, str], item: WantAddress, address: str, what: str, gateway: str
) -> Target:
    interface = names.get(rail.name) or rail.interface or rail.pci
    return Target(rail.name, interface, rail.table, rail.priority, item.family, item.address, address, what, gateway)


def _addresses(host: t.Mapping[str, t.Any], rail: str, family: int) -> t.Iterator[str]:
    for other in host.get("rails") or []:
        for item in other.get("addresses") or []:
            if other.get("name") == rail and (":" in item["address"]) == (family == 6):
                yield item["address"].partition("/")[0]


def way(want: Want, item: WantAddress, address: str) -> str | None:
    """Return by which gateway the plan leads from a rail's address: empty is on link, None is not at all."""
    if inside(address, item.subnet):
        return ""
    planned = any(inside(address, prefix) for prefix in want.prefixes_of(item.family))
    return item.gateway if item.gateway and planned else None


def inside(address: str, prefix: str) -> bool:
    """Whether an address is inside a prefix in CIDR notation."""
    return ipaddress.ip_address(address) in ipaddress.ip_network(prefix, strict=False)


def flows_of(target: Target, tos: int, source_ports: t.Iterable[int]) -> t.Iterator[Flow]:
    """Return the packets to ask for: from the rail's address, without and with its interface; and from nowhere.

    :param source_ports: of UDP.
    """
    for port in source_ports:
        for source, interface in ((target.source, ""), (target.source, target.interface), ("", "")):
            yield Flow(source, target.address, interface, tos, port)


def source_ports(selectors: t.Iterable[tuple[int, int, int]], limit: int = 8) -> list[int]:
    """Return the source ports of RoCE v2 that rules can tell apart, at most `limit` of them.

    :param selectors: of rules: first and last port; or a port and its mask, 0 where there is none.
    """
    found = {FIRST_SOURCE_PORT}
    for first, last, mask in selectors:
        fits = (FIRST_SOURCE_PORT | (first & mask),) if mask else (first, last + 1)
        found |= {port for port in fits if FIRST_SOURCE_PORT <= port <= LAST_SOURCE_PORT}
    return sorted(found)[:limit]


def ways_of(want: Want, names: t.Mapping[str, str], address: str) -> set[Hop]:
    """Return all ways to an address that are planned, by whichever rail: for who does not choose one.

    :param names: the link's name of each rail.
    """
    found = set()
    for rail in want.rails:
        for item in rail.addresses:
            if (item.family == 6) == (":" in address) and (gateway := way(want, item, address)) is not None:
                found |= {Hop(names.get(rail.name, ""), gateway), Hop(names.get(rail.name, ""), gateway or address)}
    return found
