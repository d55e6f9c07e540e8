# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what the kernel's answers mean. Pure. What was asked: paths."""

from __future__ import annotations

import errno
import os
import typing as t

from .._check import Check, by_role, deviation, ok, skipped, warning
from .._fabric.numbers import TEST_PORT
from .._formatting import group_by, shortened
from .checks import DORMANT
from .decode import origin
from .desired import inside
from .model import DEFAULT, MAIN_TABLE, PROTOCOL, Hop, Route, RouteHost, Rule, link_of
from .ownership import Ownership
from .paths import BOUND, LOCAL_TABLE, TCP, UNBOUND, LookupResult, PathState, PathTarget

if t.TYPE_CHECKING:
    from .route_options import AddressOptions, RailOptions, RouteOptions

ROLE = by_role("rail_network")
# What rules and routes of the types blackhole, prohibit, unreachable answer with (net/ipv4/fib_semantics.c, fib_props).
REFUSED = {
    errno.EINVAL: "it is dropped silently",
    errno.EACCES: "it is prohibited",
    errno.EHOSTUNREACH: "it is unreachable",
    errno.ENETUNREACH: "no route leads there",
    0: "no route leads there",
}
TYPED = {errno.EINVAL, errno.EACCES, errno.EHOSTUNREACH}
# Of the rule that looks into main (include/uapi/linux/fib_rules.h does not say it; every kernel has it).
MAIN_PRIORITY = 32766
# Addresses or routes in one cause, and routes in one check.
MOST_LISTED, MOST_ROUTES = 6, 50


Answers = t.Mapping[PathTarget, list[LookupResult]]


class Finding(t.NamedTuple):
    """A problem of a route (`bad`), or a remark on it: its cause and its fix."""

    bad: bool
    cause: str
    fix: str


def checks_of(want: RouteOptions, targets: t.Sequence[PathTarget], state: PathState) -> list[Check]:
    """Return one check a rail and family."""
    if want.network == "infiniband":
        return [skipped("route_path", "InfiniBand has no routes of its own: its subnet manager selects the path")]
    lookups = group_by((one.target, one) for one in state.lookups)
    return [
        _check(rail, item, [one for one in targets if one.source == item.address], state, lookups)
        for rail in want.rails
        for item in rail.addresses
    ]


def existing_routes_check(want: RouteOptions, host: RouteHost, routes: t.Iterable[Route]) -> Check:
    """Return a warning about routes into the RDMA prefixes by other interfaces than the rails'.

    No present node needs to have an address there: a node that joins later may get one.

    :param routes: of other programs, in the tables main and local.
    """
    rails = Ownership(want, host).interfaces | want.force
    known = {route for _prefix, route in host.matches}  # problems.py reports these.
    elsewhere = [
        route for route in routes if route not in known and rails.isdisjoint(hop.interface for hop in route.next_hops)
    ]
    if not elsewhere:
        return ok("network_existing_routes", [], [])
    lines = [f"{route} (made by {origin(route.protocol)})" for route in elsewhere]
    cause = f"Other programs route parts of the fabric's networks elsewhere: {shortened(lines, MOST_LISTED)}."
    fix = (
        "Remove these routes at their source, or plan another supernet (fabric_supernets): a node that joins "
        "later may get an address there."
    )
    return warning("network_existing_routes", [], lines[:MOST_ROUTES], cause, fix)


def _check(
    rail: RailOptions, item: AddressOptions, targets: list[PathTarget], state: PathState, lookups: Answers
) -> Check:
    where: dict[str, t.Any] = {"rail": rail.name, "family": item.family}
    if not targets:
        return skipped("route_path", "the plan has no gateway and no neighbor to test a path to", **where)
    if broken := rail_problem(rail, item, state):
        return deviation("route_path", _listed(targets, targets), [], broken.cause, broken.fix, **where)
    found = group_by(
        (finding, target) for target in targets for finding in _findings(target, state, lookups.get(target, ()))
    )
    bad = {finding: own for finding, own in found.items() if finding.bad}
    wrong = {target for own in bad.values() for target in own}
    planned = _listed(targets, wrong)
    observed = _listed([target for target in targets if target not in wrong], ())
    if not found:
        return ok("route_path", planned, observed, **where)
    shown = bad or found
    causes = []
    for finding, own in shown.items():
        to = list(dict.fromkeys(f"{target.address} ({target.what})" for target in own))
        causes.append(f"to {shortened(to, MOST_LISTED)}: {finding.cause}")
    fixes = dict.fromkeys(finding.fix for finding in shown)
    make = deviation if bad else warning
    return make("route_path", planned, observed, "; ".join(causes), " ".join(fixes), **where)


def _listed(targets: t.Sequence[PathTarget], shown: t.Collection[PathTarget]) -> list[str]:
    """Format the routes. Targets marked `short` appear only if they are in `shown`; the rest are counted."""
    lines = [str(target) for target in targets if not target.short or target in shown]
    others = len(targets) - len(lines)
    return [*lines, f"{others} more addresses of the plan"] if others else lines


def rail_problem(rail: RailOptions, item: AddressOptions, state: PathState) -> Finding | None:
    """Return what keeps every packet of a rail's address from leaving or coming in, whatever the routes are."""
    host = state.host
    link = link_of(rail, host)
    if link is None:
        fix = "Look with `ip -br link`; see fabric_interfaces."
        return Finding(True, f"this host has no interface {rail.identifier}", fix)
    if not link.up:
        return Finding(True, f"{link.name} is down", ROLE)
    if not link.carrier:
        return Finding(True, f"{link.name} has no carrier", "Look at cable, transceiver and switch port.")
    if link.dormant:
        return Finding(True, f"{link.name} is dormant", DORMANT)
    holders = _holders(item.address, host)
    if link.name not in holders:
        there = f" but on {', '.join(holders)}" if holders else ""
        return Finding(True, f"{item.address} is not on {link.name}{there}", ROLE)
    if not all(holders.values()):
        fix = "Look for the host that has the same address: `journalctl -k | grep -i duplicate`."
        return Finding(True, f"{item.address} is held back by duplicate address detection", fix)
    return None


def _holders(address: str, host: RouteHost) -> dict[str, bool]:
    """Return the interfaces that have an address, and whether each may use it."""
    return {item.interface: item.usable for item in sorted(host.addresses) if item.address == address}


def _findings(target: PathTarget, state: PathState, answers: t.Iterable[LookupResult]) -> t.Iterator[Finding]:
    if here := list(_holders(target.address, state.host)):
        fix = f"Remove it (`ip address del {target.address} dev {here[0]}`, with its prefix length)."
        yield Finding(True, f"{target.address} is an address of this host itself, on {', '.join(here)}", fix)
        return
    flows = group_by((finding, lookup.flow) for lookup in answers if (finding := _evaluate(lookup, state)))
    for finding, each in flows.items():
        own, side = {*each}, ""
        if own == {TCP}:
            side = f" (not RoCE, but TCP to port {TEST_PORT})"
        elif finding.bad and own <= {UNBOUND, TCP}:
            side = " (a packet that is not bound to the interface)"
        elif finding.bad and own == {BOUND}:
            side = f" (a packet bound to {target.interface}, as in RDMA's own route lookup)"
        yield finding._replace(cause=finding.cause + side)


def _evaluate(lookup: LookupResult, state: PathState) -> Finding | None:
    """Compare the kernel's answer with the plan."""
    target, route = lookup.target, lookup.route
    good = {Hop(target.interface, target.gateway), Hop(target.interface, target.gateway or target.address)}
    if not route:
        cause = REFUSED.get(lookup.error, os.strerror(lookup.error))
        if lookup.flow == BOUND and target.family == 4 and lookup.error == errno.EHOSTUNREACH:
            # Without a route, IPv4 takes the destination for a neighbor on the link (net/ipv4/route.c).
            cause = f"no route leaves by {target.interface}"
    else:
        hops = route.next_hops
        if route.other in ("", "multipath") and set(hops) <= good:
            if route.table == target.table:
                return None
            led, fix = _why(lookup, state)
            return Finding(False, f"it leaves as planned, and not by table {target.table}{led}", fix)
        where = " and ".join(map(str, dict.fromkeys(hops))) or route.other
        where += " inside of another packet" if "encap" in route.other else ""
        by_name = all(hop.interface != target.interface for hop in hops)
        cause = (
            f"it leaves by {where} instead of {target.interface if by_name else Hop(target.interface, target.gateway)}"
        )
    led, fix = _why(lookup, state)
    return Finding(True, cause + led, fix)


def _why(lookup: LookupResult, state: PathState) -> tuple[str, str]:
    """Return what may have led there, and the fix: rules that select the packet, routes, what ours lack."""
    target, route = lookup.target, lookup.route
    six, length = (" -6", 128) if target.family == 6 else ("", 32)
    now = state.host.snapshot
    by_own = route is not None and route.table == target.table
    rules = [] if by_own else _rules_that_fit(lookup, now.rules)
    routes = [route] if route else []
    # Of the rails' tables everything was read: also what refuses there, or passes on.
    routes += [
        item
        for item in (*state.existing, *sorted(now.routes))
        if item.other and item.table in (target.table, LOCAL_TABLE) and item.family == target.family and not by_own
        if item not in routes and (item.dst == DEFAULT or inside(target.address, item.dst))
    ]
    managed = Rule(target.family, target.priority, target.table, source=f"{target.source}/{length}")
    missing = managed not in now.rules
    master = now.links[target.interface].master
    parts = [f"rule `{rule}` (made by {origin(rule.protocol)}) selects it" for rule in rules]
    place = {MAIN_TABLE: " of the table main"}
    parts += [f"route `{item}`{place.get(item.table, '')} (made by {origin(item.protocol)})" for item in routes]
    parts += [f"{target.interface} is a port of {master}"] if master else []
    parts += [f"the rail's own rule {target.priority} is missing"] if missing else []
    led = "".join(f"; {part}" for part in parts)
    # What is behind ours is queried only where ours lead nowhere.
    existing = [rule for rule in rules if rule.protocol != PROTOCOL and rule.priority < target.priority]
    others = [item for item in routes if item.protocol != PROTOCOL and item.dst != DEFAULT]
    if existing:
        commands = " and ".join(f"`ip{six} rule del priority {rule.priority}`" for rule in existing)
        if len(existing) > 1:
            return led, f"Move those rules behind {target.priority}, or remove them: {commands}."
        return led, f"Move that rule behind {target.priority}, or remove it: {commands}."
    if others and not missing:
        command = f"ip{six} route del {others[0]}"
        return led, f"Remove that route at its source; on this host: `{command}`."
    if lookup.error in TYPED and not missing:
        command = f"ip{six} route show table all match {target.address}/{length}"
        return led, f"Look for that route: `{command}`."
    return led, ROLE


def _rules_that_fit(lookup: LookupResult, rules: t.Iterable[Rule]) -> list[Rule]:
    """Return the rules before main's that select the packet's addresses and can have led to the kernel's answer.

    A rule that ends the look-up (unreachable, blackhole, prohibit) did not select a packet that got a route. Other
    selectors of the rules are shown and not judged.
    """
    route = lookup.route
    return [
        rule
        for rule in sorted(rules)
        if rule.family == lookup.target.family and 0 < rule.priority < MAIN_PRIORITY
        if rule.table != lookup.target.table
        and (not route or rule.table == route.table or (rule.table == 0 and "goto" in rule.other))
        if (_fits(lookup.target.source, rule.source) and _fits(lookup.target.address, rule.dest)) != rule.invert
        or (rule.invert and rule.other)
    ]


def _fits(address: str, prefix: str) -> bool:
    return not prefix or inside(address, prefix)
