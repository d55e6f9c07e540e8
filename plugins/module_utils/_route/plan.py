# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what to change of a host's network: from what is wanted and what was read, to before, after and messages.

What is set and why: docs/concepts/host-network.md. No sockets, no files, no AnsibleModule.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from .._check import conflicting
from .._errors import InputError
from .change import Phase, as_text, render, steps, toward
from .checks import checks_of
from .desired import absent_state, desired_state
from .model import MAIN_TABLE, RouteHost, Snapshot, equivalent, missing, port_of
from .ownership import Ownership, exactly
from .problems import link_problems, problems_of
from .route_options import named, without

if t.TYPE_CHECKING:
    from .._check import Check
    from .._errors import Problem
    from .route_options import RouteOptions


@dataclass(frozen=True)
class RoutePlan:
    """A planned change: host and `target` hold all that was read, `before` and `after` only managed entries."""

    host: RouteHost
    target: Snapshot
    before: dict[str, list[str]]
    after: dict[str, list[str]]
    checks: tuple[Check, ...]
    original: frozenset[tuple[str, str]]
    """The interface and address of planned addresses that existed before the first run."""
    ports: dict[str, tuple[str, str]]
    """The interface and MAC address of each rail."""
    unknown: tuple[Problem, ...] = ()
    """Of rails without an interface, which a report passes over."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """The messages, in phases that must follow each other."""
        return steps(self.host.snapshot, self.target)

    @property
    def changed(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.phases)

    @property
    def diff(self) -> dict[str, str]:
        """Removed and added entries as text, for Ansible's diff."""
        sides = {"before": as_text(self.before, self.after), "after": as_text(self.after, self.before)}
        return {"before_header": "host network", "after_header": "host network", **sides}


def decide(want: RouteOptions, host: RouteHost, *, report: bool = False) -> RoutePlan:
    """Return the plan; raise InputError with all conflicts between the host and the plan.

    A rail whose interface is missing stays unchanged.

    :param report: whether the plan skips a rail that never had an interface too.
    """
    want = named(want, host.names)
    absent = [rail for rail in want.rails if want.present and missing(rail, host, known=False)]
    lost = [rail for rail in absent if missing(rail, host, known=True)]
    unknown = tuple(link_problems(replace(without(want, lost), sysctls=()), host)) if report else ()
    want = without(want, absent if report else lost)
    owned = Ownership(want, host)
    if problems := problems_of(want, host, owned):
        raise InputError(problems, checks=[conflicting("network_preflight", item) for item in problems])
    now = host.snapshot
    target = desired_state(want, host) if want.present else absent_state(want, host)
    stale = _stale(want, host, owned, target)
    target = _keep_equal(target, now)
    before = Snapshot(
        links={name: link for name, link in now.links.items() if name in target.links or name in stale.links},
        addresses=now.addresses & (stale.addresses | target.addresses),
        routes=now.routes & (stale.routes | target.routes),
        rules=now.rules & (stale.rules | target.rules),
        sysctls={key: now.sysctls[key] for key in target.sysctls},
    )
    checks = tuple(checks_of(want, host, target, stale))
    original = frozenset((item.interface, item.address) for item in now.addresses & target.addresses - owned.addresses)
    planned = {(item.interface, item.address) for item in target.addresses}
    # A missing interface may return with its address, and our files may list an address that the plan no longer has.
    original |= {row for row in host.noted if row[0] not in now.links or row not in planned}
    found = {rail.name: (port.name, port.mac) for rail in want.rails if (port := port_of(rail, host))}
    ports = {**host.ports, **found}
    return RoutePlan(host, toward(now, stale, target), render(before), render(target), checks, original, ports, unknown)


def _stale(want: RouteOptions, host: RouteHost, owned: Ownership, target: Snapshot) -> Snapshot:
    """Return the objects to remove: owned and not planned, and those that conflict with a planned object."""
    now = host.snapshot
    planned = {(item.family, item.address) for rail in want.rails for item in rail.addresses}
    unusable = {
        item
        for item in now.addresses
        if want.present and item.interface in owned.interfaces and (item.family, item.address) in planned
    }
    links = {name: link for name, link in now.links.items() if link.managed and name not in target.links}
    addresses = frozenset((owned.addresses | unusable) - target.addresses)
    return Snapshot(links, addresses, frozenset(owned.routes), frozenset(owned.rules), {})


def _keep_equal(target: Snapshot, now: Snapshot) -> Snapshot:
    """Prefer what is there where it does the same: the metric inside a table of ours decides nothing."""
    tables = [route for route in sorted(now.routes, reverse=True) if route.table != MAIN_TABLE]
    there = {(exactly(route), route.mtu): route for route in tables}
    routes = frozenset(there.get((exactly(route), route.mtu), route) for route in target.routes)
    equal = {key: now.sysctls[key] for key, value in target.sysctls.items() if equivalent(key, now.sysctls[key], value)}
    return Snapshot(target.links, target.addresses, routes, target.rules, {**target.sysctls, **equal})
