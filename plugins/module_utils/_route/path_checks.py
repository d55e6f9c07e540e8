# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what the kernel's answers mean. Pure. What was asked: paths."""

from __future__ import annotations

import errno
import os
import typing as t

from .._check import Check, deviation, ok, skipped, warning
from .model import DEFAULT, MAIN_TABLE, PROTOCOL, PROTOCOL_NAME, Route, Rule
from .paths import Asked, Hop, PathState, Target, inside, ways_of

if t.TYPE_CHECKING:
    from .want import Want, WantAddress, WantRail

ROLE = "Run the role railops.rdma.rail_network on this host."
# What rules and routes of the types blackhole, prohibit, unreachable answer with (net/ipv4/fib_semantics.c, fib_props).
REFUSED = {
    errno.EINVAL: "it is dropped silently",
    errno.EACCES: "it is prohibited",
    errno.EHOSTUNREACH: "it is unreachable",
    errno.ENETUNREACH: "no route leads there",
    0: "no route leads there",
}
# Of the rule that looks into main (include/uapi/linux/fib_rules.h does not say it; every kernel has it).
MAIN_PRIORITY = 32766
# Who made a rule or route: RTPROT_* of include/uapi/linux/rtnetlink.h as iproute2 names them, and ours.
MAKERS = {
    0: "unspec",
    1: "redirect",
    2: "kernel",
    3: "boot",
    4: "static",
    9: "ra",
    11: "zebra",
    12: "bird",
    16: "dhcp",
    PROTOCOL: PROTOCOL_NAME,
    186: "bgp",
    187: "isis",
    188: "ospf",
}


class Finding(t.NamedTuple):
    """What is wrong with a way (`bad`), or remarkable: its cause and its fix."""

    bad: bool
    cause: str
    fix: str


def checks_of(want: Want, targets: t.Sequence[Target], state: PathState) -> list[Check]:
    """Return one check a rail and family."""
    if want.network == "infiniband":
        return [skipped("route_path", "InfiniBand has no routes of its own: its subnet manager finds the way")]
    return [
        _check(rail, item, [one for one in targets if (one.rail, one.family) == (rail.name, item.family)], state, want)
        for rail in want.rails
        for item in rail.addresses
    ]


def _check(rail: WantRail, item: WantAddress, targets: list[Target], state: PathState, want: Want) -> Check:
    where: dict[str, t.Any] = {"rail": rail.name, "family": item.family}
    if not targets:
        return skipped("route_path", "the plan has no gateway and no neighbour to prove a way to", **where)
    planned = [str(target) for target in targets]
    if broken := rail_problem(rail, item, state):
        return deviation("route_path", planned, [], broken.cause, broken.fix, **where)
    by_finding: dict[Finding, list[Target]] = {}
    names = {name: link.name for name, link in state.links.items()}
    for target in targets:
        for finding in _findings(target, state, ways_of(want, names, target.address)):
            by_finding.setdefault(finding, []).append(target)
    if not by_finding:
        return ok("route_path", planned, planned, **where)
    wrong = {str(target) for finding, own in by_finding.items() if finding.bad for target in own}
    observed = [line for line in planned if line not in wrong]
    make = deviation if wrong else warning
    told = [(finding, own) for finding, own in by_finding.items() if finding.bad or not wrong]
    causes = [f"to {_listed(own)}: {finding.cause}" for finding, own in told]
    fixes = dict.fromkeys(finding.fix for finding, _own in told)
    return make("route_path", planned, observed, "; ".join(causes), " ".join(fixes), **where)


def _listed(targets: t.Sequence[Target]) -> str:
    return ", ".join(dict.fromkeys(f"{target.address} ({target.what})" for target in targets))


def rail_problem(rail: WantRail, item: WantAddress, state: PathState) -> Finding | None:
    """Return what keeps every packet of a rail's address from leaving, whatever the routes are."""
    link = state.links.get(rail.name)
    if link is None:
        asked = rail.interface or rail.pci
        return Finding(True, f"this host has no interface {asked}", "Look with `ip -br link`; see fabric_interfaces.")
    if not link.up:
        return Finding(True, f"{link.name} is down", ROLE)
    if not link.carrier:
        return Finding(True, f"{link.name} has no carrier", "Look at cable, transceiver and switch port.")
    holders = state.holders.get(item.address, [])
    if link.name not in holders:
        there = f" but on {', '.join(holders)}" if holders else ""
        return Finding(True, f"{item.address} is not on {link.name}{there}", ROLE)
    if item.address in state.tentative:
        fix = "Look for the host that has the same address: `journalctl -k | grep -i duplicate`."
        return Finding(True, f"{item.address} is held back by duplicate address detection", fix)
    return None


def _findings(target: Target, state: PathState, ways: set[Hop]) -> t.Iterator[Finding]:
    if here := [name for name in state.holders.get(target.address, []) if name]:
        fix = f"Take it away (`ip address del {target.address} dev {here[0]}`, with its prefix length)."
        yield Finding(True, f"{target.address} is an address of this host itself, on {', '.join(here)}", fix)
        return
    own = [asked for asked in state.asked if asked.target == target]
    found = [(asked, _judged(asked, state, ways)) for asked in own]
    said: set[Finding] = set()
    for asked, finding in found:
        if finding is None or finding in said:
            continue
        said.add(finding)
        sides = {bool(other.flow.interface) for other, same in found if same == finding}
        yield finding if len(sides) == 2 or not finding.bad else finding._replace(cause=finding.cause + _side(asked))
    yield from _neighbour(target, state)


def _side(asked: Asked) -> str:
    if asked.flow.interface:
        return f" (a packet bound to {asked.flow.interface}, as RDMA's own look-up asks)"
    return " (a packet that is not bound to the interface)"


def _judged(asked: Asked, state: PathState, ways: set[Hop]) -> Finding | None:
    """Hold the kernel's answer against the plan.

    :param ways: all planned ways to the address, for who asks without a source.
    """
    target, route, bound = asked.target, asked.match.route, bool(asked.flow.source)
    good = {Hop(target.interface, target.gateway), Hop(target.interface, target.gateway or target.address)}
    good = good if bound else ways
    plain = asked.plain.route
    # A route by a next hop object may name that alone: what the packet gets has the hop.
    hops = asked.match.hops or asked.plain.hops
    # With an interface and without a route, IPv4 takes the destination for a neighbour: table 0 (net/ipv4/route.c).
    if not route or not plain or not plain.table:
        cause = _refused(asked)
    elif route.other in ("", "multipath") and set(hops) <= good and not asked.match.encapsulated:
        if not set(asked.plain.hops) <= good:
            cause = f"the route is right, and the packet leaves by {asked.plain.hops[0]}: an ICMP redirect?"
            return Finding(bound, cause, "Switch accept_redirects off and flush: `ip route flush cache`.")
        if route.table == target.table or not bound:
            return None
        led, fix = _why(asked, state)
        return Finding(False, f"it leaves as planned, and not by table {target.table}{led}", fix)
    else:
        where = " and ".join(map(str, dict.fromkeys(hops))) or route.other
        where += " inside of another packet" if asked.match.encapsulated else ""
        by_name = all(hop.interface != target.interface for hop in hops)
        instead = target.interface if by_name else Hop(target.interface, target.gateway)
        cause = f"it leaves by {where} instead of {instead if bound else 'a rail'}"
    led, fix = _why(asked, state)
    if bound:
        return Finding(True, cause + led, fix)
    return Finding(False, f"without a source address, as programs ask that do not bind to a rail: {cause}{led}", fix)


def _refused(asked: Asked) -> str:
    target, error = asked.target, asked.match.error or asked.plain.error
    if asked.flow.interface and target.family == 4 and asked.plain.route:
        return f"no route leaves by {target.interface}, and IPv4 would look for it on the link itself"
    return REFUSED.get(error, os.strerror(error))


def _why(asked: Asked, state: PathState) -> tuple[str, str]:
    """Return what may have led there, and the fix: routes, rules that select the packet, what ours lack."""
    target, route, bound = asked.target, asked.match.route, bool(asked.flow.source)
    six = " -6" if target.family == 6 else ""
    own = target.table if bound else MAIN_TABLE
    before = target.priority if bound else MAIN_PRIORITY
    rules = [] if bound and route and route.table == own else _rules_that_fit(asked, state)
    tables = {own, *(rule.table for rule in rules)}
    refusing = [
        item
        for item in state.refusing
        if item.family == target.family and item.table in tables
        if item.dst == DEFAULT or inside(target.address, item.dst)
        if not route or (item.other == "throw" and route.table != item.table)
    ]
    if any(item.table == own and item.other != "throw" for item in refusing):
        rules = [rule for rule in rules if rule.priority < before]
    routes = [*([route] if route else []), *refusing]
    missing = bound and not any(
        rule.priority == target.priority and rule.table == target.table and _fits(target.source, rule.source)
        for rule in state.rules
        if rule.source and rule.family == target.family
    )
    vrf = state.links[target.rail].vrf
    parts = [f"rule `{rule}` (made by {_maker(rule)}) selects it" for rule in rules]
    parts += [f"{_of_table(item)} (made by {_maker(item)})" for item in routes]
    parts += [f"{target.interface} is in VRF {vrf}"] if vrf else []
    parts += [f"the rail's own rule {target.priority} is missing"] if missing else []
    led = "".join(f"; {part}" for part in parts)
    # What is behind ours is asked only where ours lead nowhere.
    foreign = [rule for rule in rules if rule.protocol != PROTOCOL and rule.priority < before]
    if foreign:
        words = " and ".join(f"`ip{six} rule del priority {rule.priority}`" for rule in foreign)
        what, them = ("that rule", "it") if len(foreign) == 1 else ("those rules", "them")
        return led, f"Move {what} behind {before}, or take {them} away: {words}."
    others = [item for item in routes if item.protocol != PROTOCOL and item.dst != DEFAULT]
    if others and not missing:
        return led, f"Take that route away: `ip{six} route del {others[0]}`."
    return led, ROLE


def _rules_that_fit(asked: Asked, state: PathState) -> list[Rule]:
    """Return the rules before main's that select the packet's addresses and lead to its route, or nobody knows where.

    Their other selectors are shown and not judged.
    """
    route = asked.match.route
    return [
        rule
        for rule in state.rules
        if rule.family == asked.target.family and 0 < rule.priority < MAIN_PRIORITY
        if rule.table != asked.target.table and (not route or rule.table in (0, route.table))
        if (_fits(asked.flow.source, rule.source) and _fits(asked.target.address, rule.dest)) != rule.invert
        or (rule.invert and rule.other)
    ]


def _of_table(route: Route) -> str:
    return f"route `{route}`{' of the table main' if route.table == MAIN_TABLE else ''}"


def _fits(address: str, prefix: str) -> bool:
    return not prefix or (bool(address) and inside(address, prefix))


def _maker(item: Rule | Route) -> str:
    return MAKERS.get(item.protocol, f"protocol {item.protocol}")


def _neighbour(target: Target, state: PathState) -> t.Iterator[Finding]:
    """Look at an entry of the neighbour table that somebody set by hand for the next hop."""
    hop = target.gateway or target.address
    key = (target.interface, hop)
    entry = state.neighbours.get(key)
    if entry is None:
        return
    seen = state.seen.get(key, "")
    fix = f"Take it away: `ip neighbor del {hop} dev {target.interface}`."
    if seen == entry:
        yield Finding(False, f"{hop} has an entry set by hand in the neighbour table ({entry}), right today", fix)
    elif seen:
        yield Finding(True, f"{hop} is set by hand to {entry}, and {seen} answers for it on {target.interface}", fix)
    else:
        yield Finding(True, f"{hop} is set by hand to {entry}, and nothing answers for it on {target.interface}", fix)
