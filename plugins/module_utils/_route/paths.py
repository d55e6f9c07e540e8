# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what to ask of the kernel, and what its answers mean. Pure.

The question is RoCE's: UDP to port 4791 with the planned TOS, user 0, no mark, from the rail's address; once with the
rail's interface, as RDMA's own look-up asks (drivers/infiniband/core/addr.c), and once without, as sockets do. Each is
asked twice: for the route of the tables (all its hops, its table, who made it), and for what this very packet gets.
Each destination is asked for without a source too, as programs ask that do not bind to a rail; and as TCP and an
ordinary user ask, and whom else the host's rules tell apart. Of the other hosts of the plan a draw is asked for, in
short; and what somebody has put into the RDMA prefixes by a rule, a route or a neighbour.
"""

from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import dataclass, field, replace

from .._fabric.numbers import TEST_PORT
from .model import PROTOCOL, Hop, link_of
from .wanted import inside

if t.TYPE_CHECKING:
    from .model import Host, Route, Rule
    from .want import Neighbour, Want, WantAddress

# RoCE v2's destination port (IANA), and the source ports that it takes (RFC 6056's range, roce_sport of rdma-core).
PORT, FIRST_SOURCE_PORT, LAST_SOURCE_PORT = 4791, 49152, 65535
TCP, UDP = 6, 17
# A port that programs over RDMA listen on (perftest), and a user who is not root.
TCP_PORT, USER = TEST_PORT, 1000
LOCAL_TABLE, MOST_NAMED = 255, 64
# The rule and table by which Spiderpool's coordinator leads to the pods of this very host.
SPIDERPOOL = (1000, 500)


@dataclass(frozen=True)
class Target:
    """One way to prove: from a rail's address to another; `gateway` is the planned one, empty for on link.

    What is `brief` is asked for RoCE's flow alone, and listed only where something is wrong.
    """

    rail: str
    interface: str
    table: int
    priority: int
    family: int
    source: str
    address: str
    what: str
    gateway: str = ""
    brief: bool = False

    def __str__(self) -> str:
        """Return the planned way as text."""
        via = f" via {self.gateway}" if self.gateway else ""
        return f"{self.address}{via} dev {self.interface} src {self.source} table {self.table}"


@dataclass(frozen=True)
class Flow:
    """A packet that a host is about to send; `source` and `interface` are empty where it is not bound."""

    source: str
    interface: str
    sport: int
    protocol: int = UDP
    dport: int = PORT
    user: int = 0

    @property
    def whose(self) -> str:
        """Whose packet it is, where it is not RoCE's."""
        user = f"user {self.user}" if self.user else ""
        what = f"TCP to port {self.dport}" if self.protocol == TCP else f"UDP to port {self.dport}" if user else ""
        return f"{what} of {user}" if what and user else what


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
    :param local: what others have put into the table local; `foreign` are the rails' addresses that it lacks.
    :param taken: who takes all frames of a port, by interface; `hops` is how far packets get, by interface and family.
    """

    host: Host
    asked: tuple[Asked, ...]
    neighbours: dict[tuple[str, str], str] = field(default_factory=dict)
    seen: t.Mapping[tuple[str, str], str] = field(default_factory=dict)
    local: tuple[Route, ...] = ()
    foreign: frozenset[str] = frozenset()
    taken: dict[str, str] = field(default_factory=dict)
    hops: dict[tuple[str, int], int] = field(default_factory=dict)


def targets_of(
    want: Want,
    host: Host,
    neighbours: t.Sequence[Neighbour],
    more: t.Mapping[str, t.Sequence[str]] | None = None,
    named: t.Sequence[tuple[str, str]] = (),
) -> t.Iterator[Target]:
    """Yield the ways to prove: to each rail's gateway, and to the neighbours on the same rail and on the next one.

    In brief those to the neighbours on the other rails.

    :param more: addresses of other hosts by rail, to be asked for in brief; `named` those for all rails, each with what
        it is.
    """
    for place, rail in enumerate(want.rails):
        near = {rail.name, want.rails[(place + 1) % len(want.rails)].name}
        link = link_of(rail, host)
        for item in rail.addresses:
            others = [(item.gateway, "its gateway", False)] if item.gateway else []
            for there in neighbours:
                what = f"{there.host or 'neighbour'} {there.rail}{f' in {there.zone}' if there.zone else ''}"
                others.append((there.address, what, there.rail not in near))
            others += [(address, f"another host's {rail.name}", True) for address in (more or {}).get(rail.name, ())]
            others += [(address, what, True) for address, what in named]
            own = (rail.name, link.name if link else rail.asked, rail.table, rail.priority, item.family, item.address)
            known = set()
            for address, what, brief in others:
                gateway = way(want, item, address) if (":" in address) == (item.family == 6) else None
                if gateway is not None and address not in known:
                    known.add(address)
                    yield Target(*own, address, what, gateway, brief)


def named_by_others(
    want: Want, host: Host, targets: t.Iterable[Target], local: t.Iterable[Route], neighbours: t.Iterable[str]
) -> list[tuple[str, str]]:
    """Return an address of all that others have put into the RDMA prefixes, and in words where it stands.

    :param targets: what is asked for anyhow.
    :param local: what others have put into the table local, and `neighbours` into neighbour tables.
    """
    own, tables = set(host.planned), {rail.table for rail in want.rails}
    planned = {target.address for target in targets} - own
    routes = [*local, *(item for item in sorted(host.snapshot.routes) if item.table in tables)]
    named = [
        (rule.dest, f"which the rule {rule.priority} names") for rule in sorted(host.snapshot.rules) if _strange(rule)
    ]
    named += [(item.dst, f"which `{item}` names") for item in routes if item.protocol != PROTOCOL and "/" in item.dst]
    named += [(item.address, "which is here") for item in sorted(host.addresses) if item.address in planned]
    named += [(address, "whose neighbour is set by hand") for address in neighbours]
    there = [(_first_in(dest, planned), what) for dest, what in named]
    return [
        (address, what)
        for address, what in there
        if address and address not in own and any(inside(address, prefix) for prefix in want.prefixes)
    ][:MOST_NAMED]


def _strange(rule: Rule) -> bool:
    """Whether a rule that is not ours names a destination; Spiderpool's own leads to pods of this host."""
    known = rule.protocol == PROTOCOL or (rule.priority, rule.table) == SPIDERPOOL
    return bool(rule.dest) and not rule.invert and not known


def _first_in(dest: str, asked: t.Collection[str]) -> str:
    """Return an address of a destination; empty where one of it is asked for anyhow."""
    network = ipaddress.ip_network(dest, strict=False)
    if network.num_addresses == 1:
        return str(network.network_address)
    return "" if any(inside(address, dest) for address in asked) else str(network.network_address + 1)


def way(want: Want, item: WantAddress, address: str) -> str | None:
    """Return by which gateway the plan leads from a rail's address: empty is on link, None is not at all."""
    if inside(address, item.subnet):
        return ""
    planned = any(inside(address, prefix) for prefix in want.prefixes_of(item.family))
    return item.gateway if item.gateway and planned else None


def flows_of(target: Target, source_ports: t.Sequence[int], others: t.Iterable[Flow] = ()) -> t.Iterator[Flow]:
    """Return the packets to ask for: from the rail's address, without and with its interface; and from nowhere.

    :param source_ports: of UDP; `others` are the packets that are not RoCE's, as others_of() has them.
    """
    for port in source_ports[:1] if target.brief else source_ports:
        yield Flow(target.source, "", port)
        yield Flow(target.source, target.interface, port)
        yield from () if target.brief else (Flow("", "", port),)
    yield from () if target.brief else (replace(flow, source=target.source) for flow in others)


def others_of(selectors: t.Iterable[t.Mapping[str, int]], limit: int = 8) -> list[Flow]:
    """Return what TCP and ordinary users send, and what they would send to be told apart by rules.

    :param selectors: of rules, as far as they have them: `protocol`, and the first `sport`, `dport` and `user`.
    """
    found = [Flow("", "", FIRST_SOURCE_PORT, TCP, TCP_PORT), Flow("", "", FIRST_SOURCE_PORT, user=USER)]
    for have in selectors:
        protocol = have.get("protocol") or (TCP if {"sport", "dport"} & set(have) else UDP)
        dport = have.get("dport") or (PORT if protocol == UDP else TCP_PORT)
        flow = Flow("", "", have.get("sport") or FIRST_SOURCE_PORT, protocol, dport, have.get("user", 0))
        # No ordinary user sends from a port below 1024.
        if flow.whose and protocol in (TCP, UDP) and not (flow.user and flow.sport < 1024):
            found.append(flow)
    return list(dict.fromkeys(found))[:limit]


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
