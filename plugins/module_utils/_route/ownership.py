# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides which parts of a host's network this collection owns (see docs/concepts/host-network.md). Pure."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from .desired import desired_state
from .model import KERNEL_PROTOCOLS, KINDS, MAIN_TABLE, PROTOCOL, ROUTER_PROTOCOLS, Route, RouteHost, links_of

if t.TYPE_CHECKING:
    from .route_options import RouteOptions


class Ownership:
    """Managed network objects: marked with the protocol number, or listed in the plan or the managed files."""

    def __init__(self, want: RouteOptions, host: RouteHost) -> None:
        self.interfaces = {link.name for rail in want.rails for link in links_of(rail, host)}
        self.interfaces |= {link.name for link in host.snapshot.links.values() if link.managed} | host.out_of_service
        self.prefixes = {*want.prefixes, *(item.subnet for rail in want.rails for item in rail.addresses)}
        here, retained = host.snapshot, host.retained
        proof = want.present or any(item.protocol == PROTOCOL for part in KINDS for item in getattr(here, part))
        # On a host without a managed object, a plan alone does not prove that an object is managed.
        plan = [desired_state(want, host)] if proof or any(getattr(retained, part) for part in KINDS) else []
        rules = {rule for named in (retained, *plan) for rule in named.rules}
        routes = {exactly(route) for named in (retained, *plan) for route in named.routes}
        # Our files have the old name of a port that got another one.
        renamed = [route for route in retained.routes if route.interface not in here.links]
        routes |= {exactly(replace(route, interface=name)) for route in renamed for name in self.interfaces}
        self.rules = {rule for rule in here.rules if rule.protocol == PROTOCOL or rule in rules}
        self.routes = {route for route in here.routes if route.protocol == PROTOCOL or exactly(route) in routes}
        own = {(item.interface, item.address) for item in retained.addresses}
        # Kernels before 5.18 keep no protocol of an address: one with a rule of ours is ours.
        sources = {rule.source.partition("/")[0] for rule in self.rules if rule.source}
        own |= {(name, address) for name in self.interfaces for address in sources}
        own -= host.noted
        self.addresses = {
            item for item in here.addresses if item.protocol == PROTOCOL or (item.interface, item.address) in own
        }


def exactly(route: Route) -> tuple[t.Any, ...]:
    """Return a route's identity. It omits the metric inside of our tables, which network managers choose."""
    metric = 0 if route.table != MAIN_TABLE else route.metric
    return (route.family, route.table, route.dst, metric, route.interface, route.gateway, route.source, route.other)


def in_metrics(route: Route, metrics: t.Collection[int]) -> bool:
    """Whether the route is one of main's with one of the metrics, and made by neither kernel, router nor DHCP."""
    made = route.protocol not in KERNEL_PROTOCOLS | ROUTER_PROTOCOLS
    return route.table == MAIN_TABLE and route.metric in metrics and made
