# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what to ask of the kernel, and what its answers mean. Pure.

Two flows are RoCE's: UDP to port 4791 with the planned TOS, user 0, no mark, from the rail's address; one names the
rail's interface, as RDMA's own look-up does (drivers/infiniband/core/addr.c), and one does not, as sockets do. The
third flow is TCP. Each is queried twice: for the route of the tables (all its hops, its table, its protocol), and for
what this packet gets. RoCE's flows are also queried for a draw of the plan's other hosts, and for addresses inside the
RDMA prefixes that a rule or a route of another user names.
"""

from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import dataclass

from .desired import inside
from .model import PROTOCOL, link_of

if t.TYPE_CHECKING:
    from .model import Route, RouteHost, Rule
    from .route_options import AddressOptions, Neighbor, RouteOptions

BOUND, UNBOUND, TCP = "bound", "unbound", "tcp"
"""The flows: RoCE with the rail's interface, RoCE without it, and TCP."""
LOCAL_TABLE, MOST_NAMED = 255, 64
# The rule and table by which Spiderpool's coordinator leads to the pods of this very host.
SPIDERPOOL = (1000, 500)


@dataclass(frozen=True)
class PathTarget:
    """One way to prove: from a rail's address to another; `gateway` is the planned one, empty for on link.

    A `brief` target gets RoCE's flows only, one query each, and is listed only where something is wrong.
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

    @property
    def flows(self) -> tuple[str, ...]:
        """The flows to query."""
        return (BOUND, UNBOUND) if self.brief else (BOUND, UNBOUND, TCP)

    def __str__(self) -> str:
        """Return the planned way as text."""
        via = f" via {self.gateway}" if self.gateway else ""
        return f"{self.address}{via} dev {self.interface} src {self.source} table {self.table}"


@dataclass(frozen=True)
class LookupResult:
    """One query with its answers: `match` is the route of the tables, `plain` what the packet gets, or an error."""

    target: PathTarget
    flow: str
    match: Route | None
    plain: Route | None
    error: int = 0


@dataclass(frozen=True)
class PathState:
    """The state of a host for the proof; `local` are unmanaged routes of the table local."""

    host: RouteHost
    asked: tuple[LookupResult, ...]
    local: tuple[Route, ...] = ()


def targets_of(
    want: RouteOptions,
    host: RouteHost,
    neighbors: t.Sequence[Neighbor],
    more: t.Mapping[str, t.Sequence[str]] | None = None,
    named: t.Sequence[tuple[str, str]] = (),
) -> t.Iterator[PathTarget]:
    """Yield the ways to prove: to each rail's gateway, and to the neighbors on the same rail and on the next one.

    In brief those to the neighbors on the other rails.

    :param more: addresses of other hosts by rail, to be asked for in brief; `named` those for all rails, each with what
        it is.
    """
    for place, rail in enumerate(want.rails):
        near = {rail.name, want.rails[(place + 1) % len(want.rails)].name}
        link = link_of(rail, host)
        for item in rail.addresses:
            others = [(item.gateway, "its gateway", False)] if item.gateway else []
            for there in neighbors:
                what = f"{there.host or 'neighbor'} {there.rail}{f' in {there.zone}' if there.zone else ''}"
                others.append((there.address, what, there.rail not in near))
            others += [(address, f"another host's {rail.name}", True) for address in (more or {}).get(rail.name, ())]
            others += [(address, what, True) for address, what in named]
            own = (rail.name, link.name if link else rail.asked, rail.table, rail.priority, item.family, item.address)
            known = set()
            for address, what, brief in others:
                gateway = planned_gateway(want, item, address) if (":" in address) == (item.family == 6) else None
                if gateway is not None and address not in known:
                    known.add(address)
                    yield PathTarget(*own, address, what, gateway, brief)


def named_by_others(
    want: RouteOptions, host: RouteHost, targets: t.Iterable[PathTarget], local: t.Iterable[Route]
) -> list[tuple[str, str]]:
    """Return an address of all that other users put into the RDMA prefixes, and in words where it is.

    :param targets: what is queried anyway.
    :param local: what other users put into the table local.
    """
    own, tables = set(host.scope.planned), {rail.table for rail in want.rails}
    planned = {target.address for target in targets} - own
    routes = [*local, *(item for item in sorted(host.snapshot.routes) if item.table in tables)]
    named = [
        (rule.dest, f"which the rule {rule.priority} names") for rule in sorted(host.snapshot.rules) if _strange(rule)
    ]
    named += [(item.dst, f"which `{item}` names") for item in routes if item.protocol != PROTOCOL and "/" in item.dst]
    named += [(item.address, "which is here") for item in sorted(host.addresses) if item.address in planned]
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


def planned_gateway(want: RouteOptions, item: AddressOptions, address: str) -> str | None:
    """Return by which gateway the plan leads from a rail's address: empty is on link, None is not at all."""
    if inside(address, item.subnet):
        return ""
    planned = any(inside(address, prefix) for prefix in want.prefixes_of(item.family))
    return item.gateway if item.gateway and planned else None
