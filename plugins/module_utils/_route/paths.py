# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: the queries to the kernel, and the meaning of its answers. Pure.

Two flows are RoCE's: UDP to port 4791 with the planned TOS, user 0, no mark, from the rail's address; one names the
rail's interface, as RDMA's own look-up does (drivers/infiniband/core/addr.c), and one does not, as sockets do. The
third flow is TCP. Each is queried for the route of the tables: all its hops, its table, its protocol. RoCE's flows are
also queried for a random sample of the plan's other hosts.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .desired import inside
from .model import link_of

if t.TYPE_CHECKING:
    from .model import Route, RouteHost
    from .route_options import AddressOptions, Neighbor, RouteOptions

BOUND, UNBOUND, TCP = "bound", "unbound", "tcp"
"""The flows: RoCE with the rail's interface, RoCE without it, and TCP."""
LOCAL_TABLE = 255


@dataclass(frozen=True)
class PathTarget:
    """One way to prove: from a rail's address to another; `gateway` is the planned one, empty for on link.

    A `short` target gets RoCE's flows only, and is listed only where something is wrong.
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
    short: bool = False

    @property
    def flows(self) -> tuple[str, ...]:
        """The flows to query."""
        return (BOUND, UNBOUND) if self.short else (BOUND, UNBOUND, TCP)

    def __str__(self) -> str:
        """Return the planned way as text."""
        via = f" via {self.gateway}" if self.gateway else ""
        return f"{self.address}{via} dev {self.interface} src {self.source} table {self.table}"


@dataclass(frozen=True)
class LookupResult:
    """One query with its answer: the route of the tables, or an error."""

    target: PathTarget
    flow: str
    route: Route | None
    error: int = 0


@dataclass(frozen=True)
class PathState:
    """The state of a host for the proof; `existing` are unmanaged routes of the tables main and local."""

    host: RouteHost
    lookups: tuple[LookupResult, ...]
    existing: t.Sequence[Route] = ()


def targets_of(
    want: RouteOptions,
    host: RouteHost,
    neighbors: t.Sequence[Neighbor],
    more: t.Mapping[str, t.Sequence[str]],
) -> t.Iterator[PathTarget]:
    """Yield the ways to prove: to each rail's gateway, and to the neighbors on the same rail and on the next one.

    The ways to the neighbors on the other rails are short.

    :param more: addresses of other hosts by rail, which get short targets.
    """
    for place, rail in enumerate(want.rails):
        near = {rail.name, want.rails[(place + 1) % len(want.rails)].name}
        link = link_of(rail, host)
        name = link.name if link else rail.identifier
        for item in rail.addresses:
            others = [(item.gateway, "its gateway", False)] if item.gateway else []
            for there in neighbors:
                what = f"{there.host or 'neighbor'} {there.rail}{f' in {there.zone}' if there.zone else ''}"
                others.append((there.address, what, there.rail not in near))
            others += [(address, f"another host's {rail.name}", True) for address in more.get(rail.name, ())]
            own = (rail.name, name, rail.table, rail.priority, item.family, item.address)
            known = set()
            for address, what, short in others:
                gateway = planned_gateway(want, item, address) if (":" in address) == (item.family == 6) else None
                if gateway is not None and address not in known:
                    known.add(address)
                    yield PathTarget(*own, address, what, gateway, short)


def planned_gateway(want: RouteOptions, item: AddressOptions, address: str) -> str | None:
    """Return by which gateway the plan leads from a rail's address: empty is on link, None is not at all."""
    if inside(address, item.subnet):
        return ""
    planned = any(inside(address, prefix) for prefix in want.prefixes_of(item.family))
    return item.gateway if item.gateway and planned else None
