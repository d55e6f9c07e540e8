# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Prove where a rail's packets go: what the kernel's answers mean. Pure. What was asked: paths."""

from __future__ import annotations

import errno
import os
import typing as t

from .._check import Check, deviation, ok, skipped, warning
from .model import PROTOCOL
from .paths import NO_ROUTE, UNICAST, Answer, Asked, Hop, PathState, Target
from .rules import ERRORS, PolicyRule, inside, maker, table_name, winner

if t.TYPE_CHECKING:
    from .want import Want, WantAddress, WantRail

ROLE = "Run the role railops.rdma.rail_network on this host."
# What rules and routes of these types answer with (net/core/fib_rules.c; net/ipv4/fib_semantics.c, fib_props).
REFUSED = {"blackhole": "it is dropped silently", "prohibit": "it is prohibited", "unreachable": "it is unreachable"}


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
        _check(rail, item, [one for one in targets if (one.rail, one.family) == (rail.name, item.family)], state)
        for rail in want.rails
        for item in rail.addresses
    ]


def _check(rail: WantRail, item: WantAddress, targets: list[Target], state: PathState) -> Check:
    where: dict[str, t.Any] = {"rail": rail.name, "family": item.family}
    if not targets:
        return skipped("route_path", "the plan has no gateway and no neighbour to prove a way to", **where)
    planned = [str(target) for target in targets]
    if broken := rail_problem(rail, item, state):
        return deviation("route_path", planned, [], broken.cause, broken.fix, **where)
    by_finding: dict[Finding, list[Target]] = {}
    for target in targets:
        for finding in _findings(target, state):
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


def _findings(target: Target, state: PathState) -> t.Iterator[Finding]:
    if here := [name for name in state.holders.get(target.address, []) if name]:
        fix = f"Take it away (`ip address del {target.address} dev {here[0]}`, with its prefix length)."
        yield Finding(True, f"{target.address} is an address of this host itself, on {', '.join(here)}", fix)
        return
    found = [(asked, finding) for asked in state.asked if asked.target == target for finding in [_judged(asked, state)]]
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


def _judged(asked: Asked, state: PathState) -> Finding | None:
    target, match, plain = asked.target, asked.match, asked.plain
    planned = Hop(target.interface, target.gateway)
    good = {planned, Hop(target.interface, target.gateway or target.address)}
    rule = None if match.error else winner(state.rules[target.family], asked.flow, match.table, match.length)
    if match.error or (plain.error and match.kind == UNICAST) or not (plain.table or plain.error):
        return _refused(asked, state)
    vrf = state.links[target.rail].vrf
    hops = dict.fromkeys(match.hops or plain.hops)
    if match.kind == UNICAST and set(hops) <= good and not match.encapsulated:
        if not set(plain.hops) <= good:
            cause = f"the route is right, and the packet leaves by {plain.hops[0]}: an ICMP redirect?"
            return Finding(True, cause, "Switch accept_redirects off and flush: `ip route flush cache`.")
        if match.table == target.table:
            return None
        cause = f"it leaves as planned, and not by table {target.table}: {_led(rule, match)}"
        return Finding(False, cause, _fix(rule, match, target, state))
    where = " and ".join(map(str, hops)) or match.kind
    where += " inside of another packet" if match.encapsulated else ""
    instead = target.interface if all(hop.interface != target.interface for hop in hops) else planned
    beside = f"; {target.interface} is in VRF {vrf}" if vrf else ""
    cause = f"it leaves by {where} instead of {instead}: {_led(rule, match)}{beside}{_missing(target, state)}"
    return Finding(True, cause + _only_sockets(rule), _fix(rule, match, target, state))


def _refused(asked: Asked, state: PathState) -> Finding:
    target, rule = asked.target, asked.blame_rule
    if asked.blame is not None:
        cause = f"{REFUSED[asked.blame.kind]}: {_led(rule, asked.blame)}"
    elif rule is not None and rule.action in ERRORS:
        cause = f"{REFUSED[ERRORS[rule.action]]}: rule `{rule}` (made by {maker(rule.protocol)})"
    else:
        error = asked.match.error or asked.plain.error
        kind = NO_ROUTE.get(error, "")
        cause = (
            "no route leads there" if not error or error == errno.ENETUNREACH else REFUSED.get(kind, os.strerror(error))
        )
        if asked.flow.interface and target.family == 4 and not asked.plain.table:
            # net/ipv4/route.c: with an interface and without a route, IPv4 takes the destination for a neighbour.
            cause = f"no route leaves by {target.interface}, and IPv4 would look for it on the link itself"
        if rule is not None:
            cause += f"; `{rule}` has a selector that is not known here"
    vrf = state.links[target.rail].vrf
    cause += f"; {target.interface} is in VRF {vrf}" if vrf else ""
    return Finding(True, cause + _missing(target, state), _fix(rule, asked.blame, target, state))


def _led(rule: PolicyRule | None, route: Answer) -> str:
    made = f"route `{route}` (made by {maker(route.protocol)})"
    if rule is None:
        return made
    if rule.unknown:
        return f"{made}; which rule led there is undecided: `{rule}` has a selector that is not known here"
    jump = f", reached from `{rule.after}` (made by {maker(rule.after.protocol)})," if rule.after else ""
    return f"rule `{rule}` (made by {maker(rule.protocol)}){jump} led to {made}"


def _missing(target: Target, state: PathState) -> str:
    there = any(
        rule.priority == target.priority and rule.table == target.table and inside(target.source, rule.source)
        for rule in state.rules[target.family]
        if rule.source
    )
    return "" if there else f"; the rail's own rule {target.priority} is missing"


def _only_sockets(rule: PolicyRule | None) -> str:
    if rule is None or not rule.asks_packets_only or rule.invert:
        return ""
    return "; that rule selects by transport, ports or TOS, which sockets have and RDMA's own look-up leaves out"


def _fix(rule: PolicyRule | None, route: Answer | None, target: Target, state: PathState) -> str:
    six = " -6" if target.family == 6 else ""
    rule = rule.after if rule is not None and rule.after else rule
    foreign = rule is not None and (rule.priority, rule.table) != (target.priority, target.table)
    if _missing(target, state) and (rule is None or rule.priority > target.priority):
        return ROLE
    if rule is not None and foreign and rule.protocol != PROTOCOL:
        side = f"behind {target.priority}" if rule.priority < target.priority else "away"
        return f"Move that rule {side}, or take it away: `ip{six} rule del priority {rule.priority}`."
    if route is not None and route.protocol != PROTOCOL and route.prefix:
        kind = f"{route.kind} " if route.kind in ERRORS.values() else ""
        return f"Take that route away: `ip{six} route del {kind}{route.prefix} table {table_name(route.table)}`."
    return ROLE


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
