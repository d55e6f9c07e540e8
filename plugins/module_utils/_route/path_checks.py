# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what the kernel's answers mean. Pure. What was asked: paths."""

from __future__ import annotations

import errno
import os
import typing as t

from .._check import Check, by_role, deviation, ok, skipped, warning
from .._words import shortened
from .model import DEFAULT, MAIN_TABLE, PROTOCOL, PROTOCOL_NAME, Hop, Host, Route, Rule, link_of
from .paths import LOCAL_TABLE, Asked, Flow, PathState, Target, ways_of
from .wanted import inside

if t.TYPE_CHECKING:
    from .want import Want, WantAddress, WantRail

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
# Addresses in one cause.
MOST_TOLD = 6
# Leaf, spine and the leaf beyond take one each.
FEW_HOPS = 8
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


Answers = dict[Target, list[Asked]]


class Finding(t.NamedTuple):
    """What is wrong with a way (`bad`), or remarkable: its cause and its fix."""

    bad: bool
    cause: str
    fix: str


def checks_of(want: Want, targets: t.Sequence[Target], state: PathState) -> list[Check]:
    """Return one check a rail and family."""
    if want.network == "infiniband":
        return [skipped("route_path", "InfiniBand has no routes of its own: its subnet manager finds the way")]
    asked: Answers = {}
    for one in state.asked:
        asked.setdefault(one.target, []).append(one)
    return [
        _check(rail, item, [one for one in targets if one.source == item.address], state, asked, want)
        for rail in want.rails
        for item in rail.addresses
    ]


def _check(
    rail: WantRail, item: WantAddress, targets: list[Target], state: PathState, asked: Answers, want: Want
) -> Check:
    where: dict[str, t.Any] = {"rail": rail.name, "family": item.family}
    if not targets:
        return skipped("route_path", "the plan has no gateway and no neighbour to prove a way to", **where)
    if broken := rail_problem(rail, item, state):
        return deviation("route_path", _listed(targets, targets), [], broken.cause, broken.fix, **where)
    found: dict[Finding, list[Target]] = {}
    for target in targets:
        # Who asks in brief chooses a rail.
        ways = set() if target.brief else ways_of(want, state.host, target.address)
        for finding in _findings(target, state, asked.get(target, ()), ways):
            found.setdefault(finding, []).append(target)
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
        causes.append(f"to {shortened(to, MOST_TOLD)}: {finding.cause}")
    fixes = dict.fromkeys(finding.fix for finding in shown)
    make = deviation if bad else warning
    return make("route_path", planned, observed, "; ".join(causes), " ".join(fixes), **where)


def _listed(targets: t.Sequence[Target], shown: t.Collection[Target]) -> list[str]:
    """Return the ways as text: of those asked for in brief the ones to be shown, and how many others there are."""
    lines = [str(target) for target in targets if not target.brief or target in shown]
    others = len(targets) - len(lines)
    return [*lines, f"{others} more addresses of the plan"] if others else lines


def rail_problem(rail: WantRail, item: WantAddress, state: PathState) -> Finding | None:
    """Return what keeps every packet of a rail's address from leaving or coming in, whatever the routes are."""
    host = state.host
    link = link_of(rail, host)
    if link is None:
        fix = "Look with `ip -br link`; see fabric_interfaces."
        return Finding(True, f"this host has no interface {rail.asked}", fix)
    if not link.up:
        return Finding(True, f"{link.name} is down", ROLE)
    if not link.carrier:
        return Finding(True, f"{link.name} has no carrier", "Look at cable, transceiver and switch port.")
    holders = _holders(item.address, host)
    if link.name not in holders:
        there = f" but on {', '.join(holders)}" if holders else ""
        return Finding(True, f"{item.address} is not on {link.name}{there}", ROLE)
    if not all(holders.values()):
        fix = "Look for the host that has the same address: `journalctl -k | grep -i duplicate`."
        return Finding(True, f"{item.address} is held back by duplicate address detection", fix)
    if link.silent:
        fix = f"Switch it on: `ip link set {link.name} arp on`."
        return Finding(True, f"ARP is off on {link.name}: nobody is asked, and nobody is answered", fix)
    if taker := state.taken.get(link.name):
        fix = f"Take {taker.partition(' ')[0]} away, or give the pod a rail of its own."
        return Finding(True, f"{taker} is a macvlan in mode passthru, and takes all that comes in on {link.name}", fix)
    if item.address in state.foreign:
        cause = f"the table local has no entry for {item.address}, so nothing that comes in for it is taken"
        if item.family == 6:
            # One that is put back by hand holds until the link comes up: the kernel then sets its dead one before it.
            fix = f"`ip -6 address del {item.address}/{item.length} dev {link.name}`. {ROLE}"
            return Finding(True, cause, f"Take the address away: {fix}")
        command = f"ip route add local {item.address} dev {link.name} table local proto kernel scope host"
        return Finding(True, cause, f"Put it back: `{command} src {item.address}`.")
    return None


def _holders(address: str, host: Host) -> dict[str, bool]:
    """Return the interfaces that have an address, and whether each may use it."""
    return {item.interface: item.usable for item in sorted(host.addresses) if item.address == address}


def _findings(target: Target, state: PathState, answers: t.Iterable[Asked], ways: set[Hop]) -> t.Iterator[Finding]:
    if here := list(_holders(target.address, state.host)):
        fix = f"Take it away (`ip address del {target.address} dev {here[0]}`, with its prefix length)."
        yield Finding(True, f"{target.address} is an address of this host itself, on {', '.join(here)}", fix)
        return
    left = state.hops.get((target.interface, target.family), 255)
    if left < FEW_HOPS and target.gateway:
        key = "net.ipv4.ip_default_ttl" if target.family == 4 else f"net.ipv6.conf.{target.interface}.hop_limit"
        cause = f"packets live {left} hop{'' if left == 1 else 's'}: {key} is {left}, and the gateway takes one"
        yield Finding(left < 2, cause, f"Set it: `sysctl -w {key}=64`, and where sysctl.d has it.")
    sides: dict[Finding, list[Flow]] = {}
    for asked in answers:
        if finding := _judged(asked, state, ways):
            sides.setdefault(finding, []).append(asked.flow)
    for finding, flows in sides.items():
        side, bound_to = "", {flow.interface for flow in flows}
        if whose := all(flow.whose for flow in flows) and dict.fromkeys(flow.whose for flow in flows):
            side = f" (not RoCE, but {' and '.join(whose)})"
        elif finding.bad and bound_to == {""}:
            side = " (a packet that is not bound to the interface)"
        elif finding.bad and "" not in bound_to:
            side = f" (a packet bound to {target.interface}, as RDMA's own look-up asks)"
        yield finding._replace(cause=finding.cause + side)
    yield from _neighbour(target, state)


def _judged(asked: Asked, state: PathState, ways: set[Hop]) -> Finding | None:
    """Hold the kernel's answer against the plan.

    :param ways: all planned ways to the address, for who asks without a source.
    """
    target, route, plain, bound = asked.target, asked.match, asked.plain, bool(asked.flow.source)
    good = {Hop(target.interface, target.gateway), Hop(target.interface, target.gateway or target.address)}
    good = good if bound else ways
    # With an interface and without a route, IPv4 takes the destination for a neighbour: table 0 (net/ipv4/route.c).
    if not route or not plain or not plain.table:
        cause = REFUSED.get(asked.error, os.strerror(asked.error))
        if asked.flow.interface and target.family == 4 and plain:
            cause = f"no route leaves by {target.interface}, and IPv4 would look for it on the link itself"
    else:
        # A route by a next hop object may name that alone: what the packet gets has the hop.
        hops = route.next_hops or plain.next_hops
        if route.other in ("", "multipath") and set(hops) <= good:
            if not set(plain.next_hops) <= good:
                cause = f"the route is right, and the packet leaves by {plain.next_hops[0]}: an ICMP redirect?"
                return Finding(bound, cause, "Switch accept_redirects off and flush: `ip route flush cache`.")
            if route.table == target.table or not bound:
                return None
            led, fix = _why(asked, state)
            return Finding(False, f"it leaves as planned, and not by table {target.table}{led}", fix)
        where = " and ".join(map(str, dict.fromkeys(hops))) or route.other
        where += " inside of another packet" if "encap" in route.other else ""
        by_name = all(hop.interface != target.interface for hop in hops)
        instead = target.interface if by_name else Hop(target.interface, target.gateway)
        cause = f"it leaves by {where} instead of {instead if bound else 'a rail'}"
    led, fix = _why(asked, state)
    if bound:
        return Finding(True, cause + led, fix)
    return Finding(False, f"without a source address, as programs ask that do not bind to a rail: {cause}{led}", fix)


def _why(asked: Asked, state: PathState) -> tuple[str, str]:
    """Return what may have led there, and the fix: rules that select the packet, routes, what ours lack."""
    target, route, bound = asked.target, asked.match, bool(asked.flow.source)
    six, length = (" -6", 128) if target.family == 6 else ("", 32)
    now = state.host.snapshot
    own, before = (target.table, target.priority) if bound else (MAIN_TABLE, MAIN_PRIORITY)
    by_own = route is not None and route.table == own
    rules = [] if bound and by_own else _rules_that_fit(asked, now.rules)
    routes = [route] if route else []
    # Of the rails' tables everything was read: also what refuses there, or passes on.
    routes += [
        item
        for item in (*state.local, *sorted(now.routes))
        if item.other and item.table in (own, LOCAL_TABLE) and item.family == target.family and not by_own
        if item not in routes and (item.dst == DEFAULT or inside(target.address, item.dst))
    ]
    ours = Rule(target.family, target.priority, target.table, source=f"{target.source}/{length}")
    missing = bound and ours not in now.rules
    master = now.links[target.interface].master
    parts = [f"rule `{rule}` (made by {_maker(rule)}) selects it" for rule in rules]
    place = {MAIN_TABLE: " of the table main"}
    parts += [f"route `{item}`{place.get(item.table, '')} (made by {_maker(item)})" for item in routes]
    parts += [f"{target.interface} is a port of {master}"] if master else []
    parts += [f"the rail's own rule {target.priority} is missing"] if missing else []
    led = "".join(f"; {part}" for part in parts)
    # What is behind ours is asked only where ours lead nowhere.
    foreign = [rule for rule in rules if rule.protocol != PROTOCOL and rule.priority < before]
    others = [item for item in routes if item.protocol != PROTOCOL and item.dst != DEFAULT]
    if foreign:
        commands = " and ".join(f"`ip{six} rule del priority {rule.priority}`" for rule in foreign)
        if len(foreign) > 1:
            return led, f"Move those rules behind {before}, or take them away: {commands}."
        return led, f"Move that rule behind {before}, or take it away: {commands}."
    if others and not missing:
        command = f"ip{six} route del {others[0]}"
        return led, f"Take that route away where it comes from; on this host: `{command}`."
    if asked.error in TYPED and not missing:
        command = f"ip{six} route show table all match {target.address}/{length}"
        return led, f"Look for the route that does it: `{command}`."
    return led, ROLE


def _rules_that_fit(asked: Asked, rules: t.Iterable[Rule]) -> list[Rule]:
    """Return the rules before main's that select the packet's addresses and can have led to the kernel's answer.

    A rule that ends the look-up (unreachable, blackhole, prohibit) did not select a packet that got a route. Other
    selectors of the rules are shown and not judged.
    """
    route = asked.match
    return [
        rule
        for rule in sorted(rules)
        if rule.family == asked.target.family and 0 < rule.priority < MAIN_PRIORITY
        if rule.table != asked.target.table
        and (not route or rule.table == route.table or (rule.table == 0 and "goto" in rule.other))
        if (_fits(asked.flow.source, rule.source) and _fits(asked.target.address, rule.dest)) != rule.invert
        or (rule.invert and rule.other)
    ]


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
    cause = f"{hop} is set by hand to {entry}, and {seen or 'nothing'} answers for it on {target.interface}"
    if seen == entry:
        cause = f"{hop} has an entry set by hand in the neighbour table ({entry}), right today"
    yield Finding(seen != entry, cause, fix)
