# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Conflicts between a host and the plan: links, MTUs, unmanaged addresses and routes. Pure."""

from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import replace

from .._errors import Problem
from .._fabric.numbers import EXCLUSION_PRIORITY, IPOIB_CONNECTED_MTU, IPOIB_DATAGRAM_MTU
from .._formatting import shortened
from . import model
from .change import Op
from .desired import covers, desired_state, inside
from .ownership import Ownership, in_metrics
from .route_options import NO_INTERFACE, RailOptions, RouteOptions, management_network_problem

MOST_NAMES = 5
# Kinds that a rail may be on: a NIC's port (the kernel lists no kind for it), and virtual replacements of one.
PORTS = frozenset({"", "ipoib", "veth", "dummy", "netdevsim"})
KIND_FIX = {
    "bond": "Make each port a rail of its own, with its own leaf and subnets. [rail_is_bond]",
    "team": "Make each port a rail of its own, with its own leaf and subnets. [rail_is_bond]",
    "bridge": "Take the rail's port out of the bridge and name that. [rail_in_bridge]",
    "vlan": "Name the port below, and give the VLAN as fabric_vlan (or fabric_rails[].vlan). [rail_is_vlan]",
}


def problems_of(want: RouteOptions, host: model.RouteHost, owned: Ownership) -> list[Problem]:
    """Return all conflicts between a host and the plan."""
    found = [*link_problems(want, host), *_moved_ports(want, host)]
    found += [*address_problems(want, host, owned), *_existing_problems(want, host, owned)]
    return [*found, *_lost_routes(want, host, owned)]


def link_problems(want: RouteOptions, host: model.RouteHost) -> t.Iterator[Problem]:
    """Find what keeps the rails' interfaces from being rails."""
    seen: dict[str, str] = {}
    for number, rail in enumerate(want.rails):
        place, link = f"rails[{number}]", model.port_of(rail, host)
        forced = link is not None and bool(want.force & {rail.identifier, link.name})
        if link and not forced and (carried := host.management_network.why(link.name)):
            yield management_network_problem(place, rail, link.name, carried)
        for item in _rail_problems(want, rail, link, host, seen, forced=forced):
            yield replace(item, place=f"{place}.{item.place}", problem=f"{rail.name}: {item.problem}")
    for key, _value in want.sysctls if want.present else ():
        if key not in host.snapshot.sysctls:
            text = f"/proc/sys/{key} does not exist on this host."
            yield Problem(f"sysctls[{key}]", text, "Correct the interface or the name. [sysctl_missing]")


def _moved_ports(want: RouteOptions, host: model.RouteHost) -> t.Iterator[Problem]:
    """Find rails whose port was another rail's in the last run, under another name: addresses would change wires."""
    had = {mac: rail for rail, (_name, mac) in host.ports.items()}
    for rail in want.rails if want.present else ():
        port, (_name, own) = model.port_of(rail, host), host.ports.get(rail.name, ("", ""))
        other = had.get(port.mac) if port and port.mac != own else None
        if port and other and host.ports[other][0] != port.name:
            lost = f"{host.ports[other][0]}; {rail.name} had {own}" if own else host.ports[other][0]
            text = f"{rail.name}: {port.name} has the MAC address {port.mac}, which {other} had as {lost}."
            fix = (
                "Give the ports their names again (a .link file or udev rule), or exchange them in fabric_interfaces."
                " If the cards were exchanged on purpose, remove /var/lib/railops-rdma/rails.json on the host."
                " [rails_exchanged]"
            )
            yield Problem("interface", text, fix)


def _rail_problems(
    want: RouteOptions,
    rail: RailOptions,
    link: model.Link | None,
    host: model.RouteHost,
    seen: dict[str, str],
    *,
    forced: bool,
) -> t.Iterator[Problem]:
    """Find the problems that keep an interface from being a rail; their place is only the key.

    :param link: the rail's port.
    :param seen: the rail of each interface so far.
    :param forced: whether the user declared the port to be a rail.
    """
    if link is None:
        text = f"this host has no interface {rail.identifier!r}."
        if want.present and rail.name not in want.lost:
            yield Problem("interface", text, NO_INTERFACE)
        return
    if seen.setdefault(link.name, rail.name) != rail.name:
        text = f"{rail.identifier!r} is {link.name}, which is {seen[link.name]} already."
        yield Problem("interface", text, "Give each rail an interface of its own. [rail_duplicate]")
    if not want.present:
        return
    if link.made not in PORTS:
        text = f"{link.name} is a {link.made}, and a rail is a port of its own."
        yield Problem("interface", text, KIND_FIX.get(link.made, "Name the network card's own port. [rail_is_a_port]"))
    if link.master and not forced:
        text = f"{link.name} is a port of {link.master}, where an address of its own has no effect."
        fix = (
            f"Remove it from {link.master}, name the rail's own interface, or list this one in "
            "rail_network_force. [rail_is_a_port]"
        )
        yield Problem("interface", text, fix)
    yield from _mtu_problems(want, rail, link, host)
    own = model.link_of(rail, host)
    if rail.vlan and own and (own.vlan, own.parent) != (rail.vlan, link.name):
        is_now = f"VLAN {own.vlan} of {own.parent}" if own.vlan else "no VLAN's interface"
        text = f"{own.name} is {is_now}, and the plan has VLAN {rail.vlan} of {link.name}."
        yield Problem("vlan", text, f"Remove it on the host: `ip link delete {own.name}`. [rail_other_vlan]")


def _mtu_problems(
    want: RouteOptions, rail: RailOptions, link: model.Link, host: model.RouteHost
) -> t.Iterator[Problem]:
    infiniband = link.kind == "infiniband"
    if infiniband != (want.network == "infiniband"):
        have, need = ("InfiniBand", "Ethernet") if infiniband else ("Ethernet", "InfiniBand")
        text = f"{link.name} is an {have} link, and the fabric is {want.network}."
        fix = f"Set the link type to {need} with the role nic_link_type, or correct fabric_network. [rail_link_type]"
        yield Problem("interface", text, fix)
        return
    if rail.mtu is None:
        return
    limit = link.max_mtu
    if infiniband:
        cap = IPOIB_CONNECTED_MTU if link.mode == "connected" else IPOIB_DATAGRAM_MTU
        limit = min(limit or cap, cap)
    text = f"{link.name} cannot carry an MTU of {rail.mtu}."
    if limit and rail.mtu > limit:
        fix = (
            f"Its driver{f' in {link.mode} mode' if link.mode else ''} allows at most {limit}: declare that or less as"
            " fabric_mtu. [mtu_too_large]"
        )
        yield Problem("mtu", text, fix)
    stacked = model.stacked_on(link, host, rail.mtu)
    if stacked and not want.adopt_ports & {rail.identifier, link.name}:
        names = shortened([f"{item.name} with {item.mtu}" for item in stacked], MOST_NAMES)
        lost = (
            f"{link.name} has an MTU of {link.mtu}, and {rail.mtu} would also lower interfaces stacked on it: {names}."
        )
        fix = (
            f"Declare {max(item.mtu for item in stacked)} as fabric_mtu, remove them, or list {link.name} in"
            " rail_network_adopt_ports (policy_route: adopt_ports). [mtu_lowers_others]"
        )
        yield Problem("mtu", lost, fix)
    if rail.mtu < link.min_mtu:
        yield Problem("mtu", text, f"Its driver requires at least {link.min_mtu}. [mtu_too_small]")


def address_problems(want: RouteOptions, host: model.RouteHost, owned: Ownership) -> t.Iterator[Problem]:
    """Find planned addresses and prefixes that the host has elsewhere already."""
    if not want.present:
        return
    peer = host.management_network.peer
    for prefix in want.prefixes if peer else ():
        if inside(peer, prefix):
            yield Problem(
                "rdma_prefixes",
                f"Ansible's connection comes from {peer}, inside of {prefix}: its answers would leave by a rail.",
                "Connect from another address of the controller, or plan another supernet. [ssh_over_fabric]",
            )
    planned = {(item.family, item.address) for rail in want.rails for item in rail.addresses}
    nets = [ipaddress.ip_network(prefix) for prefix in sorted(owned.prefixes)]
    for item in sorted(host.addresses):
        rails = item.interface in owned.interfaces
        managed = item in owned.addresses
        if (item.family, item.address) in planned and not rails and not managed:
            command = f"ip address del {item}"
            fix = f"Remove it there (`{command}`), or plan another. [address_on_other_interface]"
            yield Problem("rails", f"the planned address {item.address} is held by {item.interface}.", fix)
        elif not rails and not managed and item.interface not in want.force:
            have = ipaddress.ip_network(f"{item.address}/{item.length}", strict=False)
            clash: list[t.Any] = [net for net in nets if net.version == have.version and net.overlaps(have)]
            if clash:
                yield Problem(
                    "rdma_prefixes",
                    f"{', '.join(map(str, ipaddress.collapse_addresses(clash)))} overlaps {have},"
                    f" which {item.interface} has on this host.",
                    "Move that network (Docker: `bip` and `default-address-pools` in daemon.json) or plan another"
                    f" supernet; list {item.interface} in rail_network_force if that is intended. [prefix_overlaps]",
                )
    yield from _match_problems(want, host, owned)


def _match_problems(want: RouteOptions, host: model.RouteHost, owned: Ownership) -> t.Iterator[Problem]:
    for prefix, route in host.matches:
        if route.table != model.MAIN_TABLE or route.dst == model.DEFAULT or route in owned.routes:
            continue
        if route.interface in owned.interfaces | want.force or route.protocol in model.KERNEL_PROTOCOLS:
            continue
        if covers(prefix, route.dst):
            text = f"{prefix} is routed elsewhere on this host: {route}."
            yield Problem("rdma_prefixes", text, "Remove that route, or plan another supernet. [prefix_routed]")


def _existing_problems(want: RouteOptions, host: model.RouteHost, owned: Ownership) -> t.Iterator[Problem]:
    """Find unmanaged entries where only this collection's entries may be."""
    if not want.present:
        # Our entries can be removed beside unmanaged ones.
        return
    tables, priorities, metrics = want.claimed("table"), want.claimed("priority"), want.claimed("metric")
    for rule in sorted(host.snapshot.rules - owned.rules):
        if rule.priority in priorities or rule.table in tables:
            six = " -6" if rule.family == 6 else ""
            # Others' selectors are shown as the kernel calls them.
            command = f"ip{six} rule del priority {rule.priority}" if rule.other else Op("delete", rule)
            yield Problem(
                "rules",
                f"the existing rule `{rule}` uses a claimed priority or table"
                f" ({priorities[0]}-{priorities[-1]}, {tables[0]}-{tables[-1]}).",
                f"Renumber it at its source; to remove it: `{command}`. [rule_existing]",
            )
        elif rule.priority == EXCLUSION_PRIORITY and rule.invert and want.policy == "default_route":
            yield Problem(
                "rules",
                f"the rule `{rule}` conflicts with the exclusion rule.",
                "Remove it (setRdmaRule.sh's unit: `systemctl disable --now rdma-routing.service`). [rule_exclusion]",
            )
    for route in sorted(host.snapshot.routes - owned.routes):
        in_table = route.table in tables
        if in_table or (in_metrics(route, metrics) and route.interface in owned.interfaces):
            what = f"table {route.table}" if in_table else f"metric {route.metric} on {route.interface}"
            numbers = tables if in_table else metrics
            fix = "Use another table at its source"
            if not in_table:
                key = f"ipv{route.family}.route-metric"
                fix = f"Give it another metric (set by NetworkManager: `nmcli c modify NAME {key} 300`)"
            text = f"the existing route `{route}` uses {what}: {numbers[0]} to {numbers[-1]} are claimed."
            yield Problem("routes", text, f"{fix}; to remove it: `{Op('delete', route)}`. [route_existing]")


def _lost_routes(want: RouteOptions, host: model.RouteHost, owned: Ownership) -> t.Iterator[Problem]:
    """Find routes of others whose gateway or source no address of their interface would reach any more."""
    target = desired_state(want, host).addresses if want.present else frozenset()
    removed = owned.addresses - target
    preserved = (host.addresses | host.snapshot.addresses) - removed | target

    def reaches(addresses: t.Collection[model.Address], hop: model.Hop) -> bool:
        own = (f"{item.address}/{item.length}" for item in addresses if item.interface == hop.interface)
        return any(inside(hop.gateway, net) for net in own)

    for route in sorted(host.snapshot.routes - owned.routes) if removed else ():
        hops = [hop for hop in route.next_hops if hop.gateway and reaches(removed, hop) and not reaches(preserved, hop)]
        sources = {item.address for item in removed} - {item.address for item in preserved}
        if hops or route.source in sources:
            what = f"leads to {hops[0].gateway}" if hops else f"has the source {route.source}"
            text = f"the existing route `{route}` {what}, in a subnet that this run removes from {route.interface}."
            # Several next hops have no short form; the other fields identify the route.
            bare = replace(route, interface="", gateway="", source="", other="", mtu="") if route.hops else route
            fix = f"Remove it: `{Op('delete', bare)}`. Add it again by another gateway where it is needed."
            yield Problem("routes", text, f"{fix} [route_by_gateway]")
