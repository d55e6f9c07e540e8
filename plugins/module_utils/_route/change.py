# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The change from one state of a host's network to another: its messages in order, and its text. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .model import Address, Link, Route, Rule, Snapshot

T = t.TypeVar("T")


def toward(now: Snapshot, source: Snapshot, target: Snapshot) -> Snapshot:
    """Return `now` with the difference between `source` and `target` applied, and what others did meanwhile kept.

    Everything of `target` is in the result, so what the kernel dropped as a side effect comes back.
    """

    def pick(have: dict[str, T], old: dict[str, T], new: dict[str, T]) -> dict[str, T]:
        return {key: new[key] if key in new and old.get(key) != new[key] else value for key, value in have.items()}

    # A VLAN's interface comes and goes with a change; no other link does.
    links = {name: link for name, link in now.links.items() if name in target.links or name not in source.links}
    made = {name: link for name, link in target.links.items() if link.managed and name not in now.links}
    return Snapshot(
        links={**pick(links, source.links, target.links), **made},
        addresses=(now.addresses - (source.addresses - target.addresses)) | target.addresses,
        routes=(now.routes - (source.routes - target.routes)) | target.routes,
        rules=(now.rules - (source.rules - target.rules)) | target.rules,
        sysctls=pick(now.sysctls, source.sysctls, target.sysctls),
    )


@dataclass(frozen=True)
class Op:
    """One message to the kernel (or one write below /proc/sys)."""

    verb: str  # add, replace, delete, set
    what: Link | Address | Route | Rule | tuple[str, str]

    def __str__(self) -> str:
        if isinstance(self.what, tuple):
            return f"sysctl {self.what[0]}={self.what[1]}"
        if isinstance(self.what, Link) and self.verb != "set":
            kind = f" type vlan id {self.what.vlan}" if self.verb == "add" else ""
            return f"ip link {self.verb} {f'link {self.what.parent} name ' if kind else ''}{self.what.name}{kind}"
        if isinstance(self.what, Link):
            return f"ip link set {self.what.name} mtu {self.what.mtu} {'up' if self.what.up else 'down'}"
        six = " -6" if self.what.family == 6 else ""
        noun = {Address: "address", Route: "route", Rule: "rule"}[type(self.what)]
        text = str(self.what)
        if isinstance(self.what, Rule):
            priority, _colon, rest = text.partition(":")
            text = f"priority {priority}{rest}"
        return f"ip{six} {noun} {self.verb} {text}"


Phase = tuple[Op, ...]


def steps(now: Snapshot, target: Snapshot) -> tuple[Phase, ...]:
    """Return the messages that lead from `now` to `target`, in phases that must follow each other.

    The order is what keeps a killed run harmless: rules go first and come last, so at no time does a rule point to a
    table that has lost its routes. Links come up before anything needs them and go down after everything.
    """
    removed = now.addresses - target.addresses
    new = target.addresses - now.addresses
    # The kernel drops routes along with their source address, and a rule must not outlive them.
    cycled = {item.address for item in removed}
    rules_new = target.rules - now.rules
    rules_removed = now.rules - target.rules
    again = {rule for rule in target.rules & now.rules if rule.source.partition("/")[0] in cycled}
    written = {route for route in target.routes if route not in now.routes or (route.source and route.source in cycled)}
    keys = {route.key for route in target.routes}
    routes_removed = {route for route in now.routes - target.routes if route.key not in keys}
    have_keys = {route.key for route in now.routes}
    # A stacked link has at most its lower device's MTU: the kernel lowers both together, and raises neither.
    order = sorted(target.links.values(), key=lambda link: (link.depth, link.name))
    links = [link for link in order if now.links.get(link.name) != link]
    links = [link for link in links if not link.depth or link.mtu > now.links[link.name].mtu]
    news = [link for link in links if link.name not in now.links]
    # Without a value there is nothing to set: its interface was not there, or will not be.
    sysctls = [pair for pair in sorted(target.sysctls.items()) if pair[1] and now.sysctls.get(pair[0]) != pair[1]]
    later = [pair for pair in sysctls if not now.sysctls.get(pair[0])]
    # The route to a gateway comes before the routes through it.
    needed = sorted(written, key=lambda route: (bool(route.gateway), route))
    phases = (
        [Op("set", pair) for pair in sysctls if pair not in later],
        [Op("set", link) for link in links if link.up and not link.vlan],
        [Op("add", link) for link in news],
        [Op("set", pair) for pair in later],
        [Op("set", link) for link in links if link.up and link.vlan],
        [Op("delete", rule) for rule in sorted(rules_removed | again)],
        [Op("delete", route) for route in sorted(routes_removed)],
        [Op("delete", item) for item in sorted(removed)],
        [Op("add", item) for item in sorted(new)],
        [Op("replace" if route.key in have_keys else "add", route) for route in needed],
        [Op("add", rule) for rule in sorted(rules_new | again)],
        [Op("delete", link) for name, link in sorted(now.links.items()) if name not in target.links],
        [Op("set", link) for link in links if not link.up],
    )
    return tuple(tuple(phase) for phase in phases if phase)


def render(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the snapshot as a network engineer writes it, in a stable order and without protocols or counters."""
    return {
        "links": [str(link) for _name, link in sorted(snapshot.links.items())],
        "addresses": [str(item) for item in sorted(snapshot.addresses)],
        "routes": [str(item) for item in sorted(snapshot.routes)],
        "rules": [f"-6 {item}" if item.family == 6 else str(item) for item in sorted(snapshot.rules)],
        "sysctls": [f"{key} = {value}" for key, value in sorted(snapshot.sysctls.items())],
    }


# What lines of links and sysctls have of their interface.
_NAMED = re.compile(r"(link |sysctl net/ipv[46]/\w+/)([^/ ]+)(.*)")


def as_text(rendered: dict[str, list[str]], other: dict[str, list[str]]) -> str:
    """Return what render() gave and another does not have as one text for a diff; what is the same of links once."""
    prefix = {"links": "link", "addresses": "address", "routes": "route", "rules": "rule", "sysctls": "sysctl"}
    groups: dict[tuple[str, str], list[str]] = {}
    for part, lines in rendered.items():
        same = set(other[part])
        for line in (f"{prefix[part]} {line}" for line in lines if line not in same):
            found = _NAMED.fullmatch(line)
            head, name, rest = found.groups() if found else (line, "", "")
            groups.setdefault((head, rest), []).append(name)
    texts = []
    for (head, rest), names in groups.items():
        more = f" (the same for {', '.join(names[1:])})" if names[1:] else ""
        texts.append(f"{head}{names[0]}{rest}{more}\n")
    return "".join(texts)
