# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The desired network of a host: links, addresses, routes and rules of its rails. Pure.

What is set and why: docs/concepts/host-network.md.
"""

from __future__ import annotations

import functools
import ipaddress
import typing as t
from dataclasses import replace

from .._fabric.numbers import EXCLUSION_PRIORITY
from . import model

if t.TYPE_CHECKING:
    from .route_options import AddressOptions, RailOptions, RouteOptions


def desired_state(want: RouteOptions, host: model.RouteHost) -> model.Snapshot:
    """Return the desired network of the host."""
    links: dict[str, model.Link] = {}
    addresses: set[model.Address] = set()
    routes: set[model.Route] = set()
    rules: set[model.Rule] = set()
    for rail in want.rails:
        port = model.port_of(rail, host)
        if port is None:
            # Of a rail that lost its interface the rules are left; of others problems.py has reported it.
            own = {rail_rule(rail, item) for item in rail.addresses} if rail.name in want.lost else set()
            rules |= own & host.snapshot.rules
            continue
        mtu = rail.mtu or port.mtu
        links[port.name] = have = replace(port, up=True, mtu=mtu)
        # problems.py has rejected stacked interfaces that must keep their MTU.
        links.update({link.name: replace(link, mtu=mtu) for link in model.stacked_on(port, host, mtu)})
        if rail.vlan:
            have = model.link_of(rail, host) or model.Link(
                rail.device, 0, False, parent=port.name, vlan=rail.vlan, managed=True
            )
            links[have.name] = have = replace(have, up=True, mtu=mtu)
        for item in rail.addresses:
            addresses.add(model.Address(have.name, item.family, item.address, item.length, protocol=model.PROTOCOL))
            if want.network != "infiniband":
                routes |= set(rail_routes(want, rail, item, have.name))
                rules.add(rail_rule(rail, item))
    if want.network != "infiniband":
        rules |= set(exclusion_rules(want))
    return model.Snapshot(links, frozenset(addresses), frozenset(routes), frozenset(rules), dict(want.sysctls))


def rail_rule(rail: RailOptions, item: AddressOptions) -> model.Rule:
    """Return the rule that sends what comes from a rail's address by that rail's table."""
    length = 32 if item.family == 4 else 128
    return model.Rule(
        item.family, rail.priority, rail.table, source=f"{item.address}/{length}", protocol=model.PROTOCOL
    )


def exclusion_rules(want: RouteOptions) -> t.Iterator[model.Rule]:
    """Yield the exclusion rules of default_route: main routes packets that are not RDMA, whatever their source."""
    if want.policy != "default_route":
        return
    for family in (4, 6):
        if any(item.family == family for rail in want.rails for item in rail.addresses):
            for prefix in want.prefixes_of(family):
                yield model.Rule(
                    family,
                    EXCLUSION_PRIORITY,
                    model.MAIN_TABLE,
                    dest=prefix,
                    invert=True,
                    protocol=model.PROTOCOL,
                )


def rail_routes(want: RouteOptions, rail: RailOptions, item: AddressOptions, interface: str) -> t.Iterator[model.Route]:
    """Return the routes of one address of a rail: its table's, and main's with the rail's own metric."""
    plain = model.IPV6_METRIC if item.family == 6 else 0

    def route(table: int, dst: str, metric: int, gateway: str) -> model.Route:
        scope = model.SCOPE_LINK if item.family == 4 and not gateway else model.SCOPE_GLOBAL
        where = (interface, gateway, item.address, scope)
        return model.Route(item.family, table, dst, metric, *where, protocol=model.PROTOCOL)

    yield route(rail.table, item.subnet, plain, "")
    if not item.gateway:
        return
    beyond = [prefix for prefix in want.prefixes_of(item.family) if not covers(item.subnet, prefix)]
    if want.policy == "default_route":
        yield route(rail.table, model.DEFAULT, plain, item.gateway)
    else:
        for prefix in beyond:
            yield route(rail.table, prefix, plain, item.gateway)
    # UCX decides reachability by main alone; the first rail has the lowest metric, so main's choice is the first rail.
    for prefix in beyond:
        yield route(model.MAIN_TABLE, prefix, rail.metric, item.gateway)


@functools.lru_cache(maxsize=4096)
def inside(address: str, prefix: str) -> bool:
    """Whether an address is inside a prefix in CIDR notation; across families it never is."""
    return ipaddress.ip_address(address) in ipaddress.ip_network(prefix, strict=False)


def covers(outer: str, inner: str) -> bool:
    """Whether a prefix has all of another."""
    one, other = ipaddress.ip_network(outer), ipaddress.ip_network(inner)
    return one.version == other.version and other.subnet_of(one)  # type: ignore[arg-type]


def absent_state(want: RouteOptions, host: model.RouteHost) -> model.Snapshot:
    """Return what stays of the rails when they are taken away: the links as they are."""
    links = {link.name: link for rail in want.rails for link in model.links_of(rail, host) if not link.managed}
    return model.Snapshot(links, frozenset(), frozenset(), frozenset(), {})
