# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What of a host's network is this collection's, whoever made it (see docs/host-network.md). Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from .._fabric.numbers import METRICS, PRIORITIES, TABLES
from .model import (
    EXCLUSION_PRIORITY,
    KERNEL_PROTOCOLS,
    MAIN_TABLE,
    PROTOCOL,
    ROUTER_PROTOCOLS,
    Address,
    Host,
    Route,
    Rule,
    links_of,
)
from .wanted import inside

if t.TYPE_CHECKING:
    from .want import Want


class Mine:
    """What of a host is this collection's, whoever made it (see docs/host-network.md)."""

    def __init__(self, want: Want, host: Host) -> None:
        self.interfaces = {link.name for rail in want.rails for link in links_of(rail, host)}
        self.interfaces |= {link.name for link in host.snapshot.links.values() if link.ours}
        self.prefixes = {*want.prefixes, *(item.subnet for rail in want.rails for item in rail.addresses)}
        self.rules = {rule for rule in host.snapshot.rules if self.owns_rule(rule)}
        sources = {rule.source.partition("/")[0] for rule in self.rules if rule.source}
        self.addresses = {
            item
            for item in host.snapshot.addresses
            if item.protocol == PROTOCOL or (item.interface in self.interfaces and item.address in sources)
        }
        self.sources = {item.address for item in self.addresses}
        self.subnets = {network_of(item) for item in self.addresses}
        self.routes = {route for route in host.snapshot.routes if self.owns_route(route)}

    def owns_rule(self, rule: Rule) -> bool:
        """Whether the rule is ours: by protocol, or by a number of ours and the shape that we make."""
        if rule.protocol == PROTOCOL:
            return True
        plain = not rule.invert and not rule.dest and not rule.other
        one = rule.source.endswith(("/32", "/128"))
        if rule.priority in PRIORITIES and rule.table in TABLES and plain and one:
            return True
        exclusion = rule.priority == EXCLUSION_PRIORITY and rule.table == MAIN_TABLE and rule.invert and not rule.source
        return exclusion and not rule.other and rule.dest in self.prefixes

    def owns_route(self, route: Route) -> bool:
        """Whether the route is ours: by protocol, by table, or by metric on a rail's interface."""
        if route.protocol == PROTOCOL:
            return True
        if route.other or route.interface not in self.interfaces:
            return False
        if route.table in TABLES:
            return True
        if not in_metrics(route):
            return False
        if route.dst in self.prefixes or (route.source and route.source in self.sources):
            return True
        return bool(route.gateway) and any(inside(route.gateway, net) for net in self.subnets)


def in_metrics(route: Route) -> bool:
    """Whether the route is one of main's with a metric of ours, and made by neither kernel, router nor DHCP."""
    made = route.protocol not in KERNEL_PROTOCOLS | ROUTER_PROTOCOLS
    return route.table == MAIN_TABLE and route.metric in METRICS and made


def network_of(item: Address) -> str:
    """Return the network that an address is in."""
    return str(ipaddress.ip_network(f"{item.address}/{item.length}", strict=False))
