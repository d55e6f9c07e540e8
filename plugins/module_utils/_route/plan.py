# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what to change of a host's network: from what is wanted and what was read, to before, after and messages.

What is set and why: docs/host-network.md. No sockets, no files, no AnsibleModule.
"""

from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import dataclass, field, replace

from .._check import compared, deviation
from .._errors import InputError, Problem
from .._fabric.numbers import METRICS, PRIORITIES, TABLES
from .._untouchable import Untouchable
from .model import (
    DEFAULT,
    GUARD_PRIORITY,
    IPV6_METRIC,
    KERNEL_PROTOCOLS,
    MAIN_TABLE,
    PROTOCOL,
    ROUTER_PROTOCOLS,
    SCOPE_GLOBAL,
    SCOPE_LINK,
    Address,
    Link,
    Phase,
    Route,
    Rule,
    Snapshot,
    as_text,
    render,
    steps,
)
from .want import named

if t.TYPE_CHECKING:
    from .want import Want, WantAddress, WantRail

# IP over InfiniBand, datagram mode: the largest InfiniBand MTU (4096) less the encapsulation header (RFC 4391).
IPOIB_DATAGRAM_MTU = 4092
# Connected mode's limit in the kernel (IPOIB_CM_MTU).
IPOIB_CONNECTED_MTU = 65520
# sysctls of which the kernel takes the larger of `all` and the interface (ip-sysctl).
STRICTER_WINS = frozenset({"rp_filter", "arp_ignore", "arp_announce"})


@dataclass(frozen=True)
class Host:
    """What was read of a host.

    `names` maps the interface that a rail asks for (a name, an alternative name or a PCI address) to the link's name;
    `tables` are those that were read; `planned` the addresses of the rails; `addresses` are all of the host;
    `untouchable` is what carries the host's own network, and `paths` the addresses whose routes must not get lost;
    `matches` says by which route the host reaches a planned network today;
    `sysctls_all` has, for a planned setting of an interface, the value of `all`; `coming` are the interfaces of VLANs
    that are not there yet.
    """

    snapshot: Snapshot
    tables: frozenset[int] = frozenset()
    planned: frozenset[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)
    addresses: frozenset[Address] = frozenset()
    paths: tuple[str, ...] = ()
    untouchable: Untouchable = field(default_factory=Untouchable)
    matches: tuple[tuple[str, Route], ...] = ()
    sysctls_all: dict[str, str] = field(default_factory=dict)
    coming: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Plan:
    """What to do: `now` and `target` hold all that was read, `before` and `after` only what is managed."""

    want: Want
    host: Host
    now: Snapshot
    target: Snapshot
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    checks: tuple[dict[str, t.Any], ...]

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The messages, in phases that must follow each other."""
        return steps(self.now, self.target)

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.phases)

    @property
    def diff(self) -> dict[str, str]:
        """Before and after as text, for Ansible's diff."""
        return {
            "before_header": "host network",
            "after_header": "host network",
            "before": as_text(self.before),
            "after": as_text(self.after),
        }


def port_of(rail: WantRail, host: Host) -> Link | None:
    """Return the port of a rail, or None."""
    return host.snapshot.links.get(host.names.get(rail.asked, ""))


def link_of(rail: WantRail, host: Host) -> Link | None:
    """Return what a rail's addresses are on, or None: its port, or the interface of its VLAN."""
    return host.snapshot.links.get(host.names.get(rail.device, ""))


def _links_of(rail: WantRail, host: Host) -> list[Link]:
    return [link for link in (port_of(rail, host), link_of(rail, host) if rail.vlan else None) if link]


def decide(want: Want, host: Host) -> Plan:
    """Return the plan; raise InputError with everything of the host that stands in its way."""
    want = named(want, host.names)
    mine = Mine(want, host)
    problems = [*_link_problems(want, host), *_address_problems(want, host, mine), *_foreign_problems(want, host, mine)]
    if problems:
        raise InputError(problems, checks=[problem_check(item) for item in problems])
    now = host.snapshot
    wanted = _wanted(want, host) if want.present else _nothing(want, host)
    stale = _stale(want, host, mine, wanted)
    kept = {name: link for name, link in now.links.items() if name not in stale.links}
    wanted = _keep_equal(wanted, now)
    target = Snapshot(
        links={**kept, **wanted.links},
        addresses=(now.addresses - stale.addresses) | wanted.addresses,
        routes=(now.routes - (stale.routes - wanted.routes)) | wanted.routes,
        rules=(now.rules - (stale.rules - wanted.rules)) | wanted.rules,
        sysctls={**now.sysctls, **wanted.sysctls},
    )
    before = Snapshot(
        links={name: link for name, link in now.links.items() if name in wanted.links or name in stale.links},
        addresses=now.addresses & (stale.addresses | wanted.addresses),
        routes=now.routes & (stale.routes | wanted.routes),
        rules=now.rules & (stale.rules | wanted.rules),
        sysctls={key: now.sysctls[key] for key in wanted.sysctls},
    )
    return Plan(
        want=want,
        host=host,
        now=now,
        target=target,
        before=render(before),
        after=render(wanted),
        checks=tuple(_checks(want, host, wanted, stale)),
    )


class Mine:
    """What of a host is this collection's, whoever made it (see docs/host-network.md)."""

    def __init__(self, want: Want, host: Host) -> None:
        self.interfaces = {link.name for rail in want.rails for link in _links_of(rail, host)}
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
        self.subnets = {_network(item) for item in self.addresses}
        self.routes = {route for route in host.snapshot.routes if self.owns_route(route)}

    def owns_rule(self, rule: Rule) -> bool:
        """Whether the rule is ours: by protocol, or by a number of ours and the shape that we make."""
        if rule.protocol == PROTOCOL:
            return True
        plain = not rule.invert and not rule.dest and not rule.other
        one = rule.source.endswith(("/32", "/128"))
        if rule.priority in PRIORITIES and rule.table in TABLES and plain and one:
            return True
        guard = rule.priority == GUARD_PRIORITY and rule.table == MAIN_TABLE and rule.invert and not rule.source
        return guard and not rule.other and rule.dest in self.prefixes

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
        return bool(route.gateway) and any(_inside(route.gateway, net) for net in self.subnets)


def in_metrics(route: Route) -> bool:
    """Whether the route is one of main's with a metric of ours, and made by neither kernel, router nor DHCP."""
    made = route.protocol not in KERNEL_PROTOCOLS | ROUTER_PROTOCOLS
    return route.table == MAIN_TABLE and route.metric in METRICS and made


def _network(item: Address) -> str:
    return str(ipaddress.ip_network(f"{item.address}/{item.length}", strict=False))


def _inside(address: str, network: str) -> bool:
    # Both are canonical, and a comparison across families is simply False.
    return ipaddress.ip_address(address) in ipaddress.ip_network(network)


# --- what is wanted ---------------------------------------------------------------------------------------------------


def _wanted(want: Want, host: Host) -> Snapshot:
    links: dict[str, Link] = {}
    addresses: set[Address] = set()
    routes: set[Route] = set()
    rules: set[Rule] = set()
    for rail in want.rails:
        port = port_of(rail, host)
        if port is None:  # _link_problems has reported it
            continue
        mtu = rail.mtu or port.mtu
        links[port.name] = have = replace(port, up=True, mtu=mtu)
        if rail.vlan:
            have = link_of(rail, host) or Link(rail.device, 0, False, parent=port.name, vlan=rail.vlan, ours=True)
            links[have.name] = have = replace(have, up=True, mtu=mtu)
        for item in rail.addresses:
            addresses.add(Address(have.name, item.family, item.address, item.length, protocol=PROTOCOL))
            if want.network != "infiniband":
                routes |= set(rail_routes(want, rail, item, have.name))
                rules.add(rail_rule(rail, item))
    if want.network != "infiniband":
        rules |= set(guards(want))
    return Snapshot(links, frozenset(addresses), frozenset(routes), frozenset(rules), dict(want.sysctls))


def rail_rule(rail: WantRail, item: WantAddress) -> Rule:
    """Return the rule that sends what comes from a rail's address by that rail's table."""
    length = 32 if item.family == 4 else 128
    return Rule(item.family, rail.priority, rail.table, source=f"{item.address}/{length}", protocol=PROTOCOL)


def guards(want: Want) -> t.Iterator[Rule]:
    """Return the guard rules of the style default_route: what is not RDMA is routed by main, whatever its source."""
    if want.policy != "default_route":
        return
    for family in (4, 6):
        if any(item.family == family for rail in want.rails for item in rail.addresses):
            for prefix in want.prefixes_of(family):
                yield Rule(family, GUARD_PRIORITY, MAIN_TABLE, dest=prefix, invert=True, protocol=PROTOCOL)


def rail_routes(want: Want, rail: WantRail, item: WantAddress, interface: str) -> t.Iterator[Route]:
    """Return the routes of one address of a rail: its table's, and main's with the rail's own metric."""
    plain = IPV6_METRIC if item.family == 6 else 0

    def route(table: int, dst: str, metric: int, gateway: str) -> Route:
        scope = SCOPE_LINK if item.family == 4 and not gateway else SCOPE_GLOBAL
        return Route(
            item.family,
            table,
            dst,
            metric,
            interface=interface,
            gateway=gateway,
            source=item.address,
            scope=scope,
            protocol=PROTOCOL,
        )

    yield route(rail.table, item.subnet, plain, "")
    if not item.gateway:
        return
    beyond = [prefix for prefix in want.prefixes_of(item.family) if not _covers(item.subnet, prefix)]
    if want.policy == "default_route":
        yield route(rail.table, DEFAULT, plain, item.gateway)
    else:
        for prefix in beyond:
            yield route(rail.table, prefix, plain, item.gateway)
    # UCX decides reachability by main alone; the first rail has the lowest metric, so main's choice is the first rail.
    for prefix in beyond:
        yield route(MAIN_TABLE, prefix, METRICS[0] - 1 + rail.index, item.gateway)


def _covers(outer: str, inner: str) -> bool:
    one, other = ipaddress.ip_network(outer), ipaddress.ip_network(inner)
    return one.version == other.version and other.subnet_of(one)  # type: ignore[arg-type]


def _nothing(want: Want, host: Host) -> Snapshot:
    """Return what stays of the rails when they are taken away: the links as they are."""
    links = {link.name: link for rail in want.rails for link in _links_of(rail, host) if not link.ours}
    return Snapshot(links, frozenset(), frozenset(), frozenset(), {})


def _stale(want: Want, host: Host, mine: Mine, wanted: Snapshot) -> Snapshot:
    """Return what has to go: ours and not wanted, and what stands where a wanted thing belongs."""
    now = host.snapshot
    addresses = set(mine.addresses) if want.purge else set()
    planned = {(item.family, item.address) for rail in want.rails for item in rail.addresses}
    addresses |= {
        item for item in now.addresses if item.interface in mine.interfaces and (item.family, item.address) in planned
    }
    if want.purge:
        routes, rules = set(mine.routes), set(mine.rules)
    else:
        tables, priorities = {rail.table for rail in want.rails}, {rail.priority for rail in want.rails}
        metrics = {METRICS[0] - 1 + rail.index for rail in want.rails}
        routes = {item for item in mine.routes if item.table in tables or (in_metrics(item) and item.metric in metrics)}
        rules = {item for item in mine.rules if item.priority in priorities or item in wanted.rules}
    links = {name: link for name, link in now.links.items() if want.purge and link.ours and name not in wanted.links}
    return Snapshot(links, frozenset(addresses - wanted.addresses), frozenset(routes), frozenset(rules), {})


def _keep_equal(wanted: Snapshot, now: Snapshot) -> Snapshot:
    """Prefer what is there where it does the same: the metric inside a table of ours decides nothing."""
    there = {_blind(route): route for route in sorted(now.routes, reverse=True) if route.table in TABLES}
    routes = frozenset(there.get(_blind(route), route) if route.table in TABLES else route for route in wanted.routes)
    return Snapshot(wanted.links, wanted.addresses, routes, wanted.rules, wanted.sysctls)


def _blind(route: Route) -> tuple[t.Any, ...]:
    return (route.family, route.table, route.dst, route.interface, route.gateway, route.source, route.other)


# --- what stands in the way -------------------------------------------------------------------------------------------


def untouchable_problem(place: str, rail: WantRail, interface: str, carried: str) -> Problem:
    """Return the refusal of a rail whose interface carries the host's own network."""
    return Problem(
        f"{place}.interface",
        f"{rail.name}: {interface} carries {carried}.",
        "Name the rail's own interface, or list this one in force if it really is a rail.",
    )


def _link_problems(want: Want, host: Host) -> t.Iterator[Problem]:
    seen: dict[str, str] = {}
    for number, rail in enumerate(want.rails):
        asked, place = rail.asked, f"rails[{number}]"
        link = port_of(rail, host)
        if link and seen.setdefault(link.name, rail.name) != rail.name:
            yield Problem(
                f"{place}.interface",
                f"{rail.name}: {asked!r} is {link.name}, which is {seen[link.name]} already.",
                "Give each rail an interface of its own.",
            )
        if link is None:
            if want.present:
                yield Problem(
                    f"{place}.interface",
                    f"{rail.name}: this host has no interface {asked!r}.",
                    "Look with `ip -br link`; declare the name or PCI address for this host in fabric_interfaces.",
                )
            continue
        carried = host.untouchable.why(link.name)
        if carried and not want.force & {asked, link.name}:
            yield untouchable_problem(place, rail, link.name, carried)
        if link.master and want.present and not want.force & {asked, link.name}:
            yield Problem(
                f"{place}.interface",
                f"{rail.name}: {link.name} is a port of {link.master}, where an address of its own has no effect.",
                f"Take it out of {link.master}, name the rail's own interface, or list this one in force if it is"
                " meant so.",
            )
        if want.present:
            yield from _mtu_problems(want, rail, link, place)
        own = link_of(rail, host)
        if want.present and rail.vlan and own and (own.vlan, own.parent) != (rail.vlan, link.name):
            is_now = f"VLAN {own.vlan} of {own.parent}" if own.vlan else "no VLAN's interface"
            yield Problem(
                f"{place}.vlan",
                f"{rail.name}: {own.name} is {is_now}, and the plan has VLAN {rail.vlan} of {link.name}.",
                f"Take it away on the host: `ip link delete {own.name}`.",
            )
    for key, _value in want.sysctls if want.present else ():
        if key not in host.snapshot.sysctls:
            yield Problem(
                f"sysctls[{key}]", f"/proc/sys/{key} does not exist on this host.", "Mend the interface or the name."
            )


def _mtu_problems(want: Want, rail: WantRail, link: Link, place: str) -> t.Iterator[Problem]:
    infiniband = link.kind == "infiniband"
    if infiniband != (want.network == "infiniband"):
        have, need = ("InfiniBand", "Ethernet") if infiniband else ("Ethernet", "InfiniBand")
        yield Problem(
            f"{place}.interface",
            f"{rail.name}: {link.name} is an {have} link, and the fabric is {want.network}.",
            f"Set the port's link type to {need} with the role nic_mode, or correct fabric_network.",
        )
        return
    if rail.mtu is None:
        return
    limit = link.max_mtu
    if infiniband:
        cap = IPOIB_CONNECTED_MTU if link.mode == "connected" else IPOIB_DATAGRAM_MTU
        limit = min(limit or cap, cap)
    if limit and rail.mtu > limit:
        yield Problem(
            f"{place}.mtu",
            f"{rail.name}: {link.name} cannot carry an MTU of {rail.mtu}.",
            f"Its driver{' in ' + link.mode + ' mode' if link.mode else ''} allows at most {limit}: declare that or"
            " less as fabric_mtu.",
        )
    if rail.mtu < link.min_mtu:
        yield Problem(
            f"{place}.mtu",
            f"{rail.name}: {link.name} cannot carry an MTU of {rail.mtu}.",
            f"Its driver asks for at least {link.min_mtu}.",
        )


def _address_problems(want: Want, host: Host, mine: Mine) -> t.Iterator[Problem]:
    """Find planned addresses and prefixes that the host has elsewhere already."""
    if not want.present:
        return
    planned = {(item.family, item.address) for rail in want.rails for item in rail.addresses}
    nets = [ipaddress.ip_network(prefix) for prefix in sorted(mine.prefixes)]
    for item in sorted(host.addresses):
        rails = item.interface in mine.interfaces
        owned = item in mine.addresses
        if (item.family, item.address) in planned and not rails and not owned:
            yield Problem(
                "rails",
                f"the planned address {item.address} is held by {item.interface}.",
                f"Take it away there (`ip address del {item}`), or plan another.",
            )
        elif not rails and not owned and item.interface not in want.force:
            have = ipaddress.ip_network(_network(item))
            clash = [str(net) for net in nets if net.version == have.version and net.overlaps(have)]
            if clash:
                yield Problem(
                    "rdma_prefixes",
                    f"{', '.join(clash)} overlaps {have}, which {item.interface} has on this host.",
                    "Move that network (Docker: `bip` and `default-address-pools` in daemon.json) or plan another"
                    f" supernet; list {item.interface} in force if it is meant so.",
                )
    yield from _match_problems(want, host, mine)


def _match_problems(want: Want, host: Host, mine: Mine) -> t.Iterator[Problem]:
    for prefix, route in host.matches:
        if route.table != MAIN_TABLE or route.dst == DEFAULT or route in mine.routes:
            continue
        if route.interface in mine.interfaces | want.force or route.protocol in KERNEL_PROTOCOLS:
            continue
        if _covers(prefix, route.dst):
            yield Problem(
                "rdma_prefixes",
                f"{prefix} is routed elsewhere on this host: {route}.",
                "Take that route away, or plan another supernet.",
            )


def _foreign_problems(want: Want, host: Host, mine: Mine) -> t.Iterator[Problem]:
    """Find what others have put where only this collection's entries may be."""
    if not want.present:
        # What is ours can be taken away beside it.
        return
    for rule in sorted(host.snapshot.rules - mine.rules):
        if rule.priority in PRIORITIES or rule.table in TABLES:
            six = " -6" if rule.family == 6 else ""
            yield Problem(
                "rules",
                f"the rule `{rule}` is not ours but uses a priority or a table of ours"
                f" ({PRIORITIES[0]}-{PRIORITIES[-1]}, {TABLES[0]}-{TABLES[-1]}).",
                f"Move it; to remove it: `ip{six} rule del priority {rule.priority}`.",
            )
        elif rule.priority == GUARD_PRIORITY and rule.invert and want.policy == "default_route":
            yield Problem(
                "rules",
                f"the rule `{rule}` stands where the guard belongs.",
                "Remove it (setRdmaRule.sh's unit: `systemctl disable --now rdma-routing.service`).",
            )
    for route in sorted(host.snapshot.routes - mine.routes):
        in_table = route.table in TABLES
        if in_table or (in_metrics(route) and route.interface in mine.interfaces):
            six = " -6" if route.family == 6 else ""
            what = f"table {route.table}" if in_table else f"metric {route.metric} on {route.interface}"
            yield Problem(
                "routes",
                f"the route `{route}` is not ours but uses {what}, which is.",
                f"Move it; to remove it: `ip{six} route del {route}`.",
            )


# --- checks -----------------------------------------------------------------------------------------------------------

FIX = "Run the role railops.rdma.rail_network on this host."


def _check(
    name: str, rail: str | None, planned: t.Any, observed: t.Any, *, cause: str = "", fix: str = FIX
) -> dict[str, t.Any]:
    return compared(name, planned, observed, cause, fix, good=not cause, rail=rail).data()


def problem_check(problem: Problem, name: str = "network_preflight") -> dict[str, t.Any]:
    """Return a problem as a check that deviates."""
    return deviation(name, problem.place, problem.problem, problem.problem, problem.fix).data()


def _checks(want: Want, host: Host, wanted: Snapshot, stale: Snapshot) -> t.Iterator[dict[str, t.Any]]:
    now = host.snapshot
    for rail in want.rails:
        port, link = port_of(rail, host), link_of(rail, host)
        if port is None or not want.present:
            continue
        yield from _link_checks(rail, link or replace(port, name=rail.device, up=False, mtu=0))
        for part, items in _parts(wanted, rail, link.name if link else rail.device).items():
            have = getattr(now, part)
            missing = sorted(str(item) for item in items if item not in have)
            cause = f"missing: {'; '.join(missing)}" if missing else ""
            yield _check(
                f"network_{part}",
                rail.name,
                sorted(map(str, items)),
                sorted(str(item) for item in items if item in have),
                cause=cause,
            )
    yield from _sysctl_checks(want, host)
    extra = sorted(map(str, stale.links.values()))
    extra += [str(item) for part in ("addresses", "routes", "rules") for item in _extra(now, stale, wanted, part)]
    yield _check("network_stale", None, [], extra, cause="left over from an earlier plan" if extra else "")
    for rule in guards(want) if want.present else ():
        there = rule in now.rules
        yield _check("network_guard", None, str(rule), str(rule) if there else "", cause="" if there else "missing")


def _extra(now: Snapshot, stale: Snapshot, wanted: Snapshot, part: str) -> list[t.Any]:
    found: t.Iterable[t.Any] = (getattr(stale, part) - getattr(wanted, part)) & getattr(now, part)
    return sorted(found)


def _parts(wanted: Snapshot, rail: WantRail, name: str) -> dict[str, list[t.Any]]:
    return {
        "addresses": [item for item in wanted.addresses if item.interface == name],
        "routes": [item for item in wanted.routes if item.interface == name],
        "rules": [item for item in wanted.rules if item.priority == rail.priority],
    }


def _link_checks(rail: WantRail, link: Link) -> t.Iterator[dict[str, t.Any]]:
    state = "no carrier" if link.up and not link.carrier else "up" if link.up else "down"
    cause = "" if state == "up" else f"{link.name}: {state}"
    fix = "Look at cable, transceiver and switch port." if state == "no carrier" else FIX
    yield _check("network_link", rail.name, "up", state, cause=cause, fix=fix)
    if rail.mtu is not None:
        cause = "" if link.mtu == rail.mtu else f"{link.name} has an MTU of {link.mtu}"
        yield _check("network_mtu", rail.name, rail.mtu, link.mtu, cause=cause)


def _sysctl_checks(want: Want, host: Host) -> t.Iterator[dict[str, t.Any]]:
    if not want.sysctls or not want.present:
        return
    now = host.snapshot.sysctls
    wrong = {key: now.get(key, "") for key, value in want.sysctls if now.get(key) != value}
    causes = [f"{key} is {value}" for key, value in wrong.items()]
    for key, value in want.sysctls:
        name = key.rpartition("/")[2]
        wider = host.sysctls_all.get(key, "")
        # The kernel takes the larger of the two, so `all` can undo what the interface says.
        if name in STRICTER_WINS and wider.isdigit() and value.isdigit() and int(wider) > int(value):
            causes.append(f"{name} of `all` is {wider}, and the kernel takes the larger of the two")
    yield _check(
        "network_sysctls",
        None,
        dict(want.sysctls),
        {key: now.get(key, "") for key, _value in want.sysctls},
        cause="; ".join(dict.fromkeys(causes)),
    )
