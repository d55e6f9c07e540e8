# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of a host's network as values: links, addresses, routes, rules, sysctls, and their text form.

No sockets, no files, no AnsibleModule. Addresses and prefixes are canonical text (as the standard library's
ipaddress prints them), so that equal things compare equal.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field, replace

from .._management_network import ManagementNetwork

if t.TYPE_CHECKING:
    from .route_options import RailOptions

# The routing protocol of this collection, named in rt_protos.d by rail_persist: 143 is free in iproute2's list.
PROTOCOL, PROTOCOL_NAME = 143, "railops"
MAIN_TABLE = 254
# rtnetlink(7): scope of routes to a directly attached network, and of everything else.
SCOPE_LINK = 253
SCOPE_GLOBAL = 0
# include/uapi/linux/rtnetlink.h, RTPROT_*: what the kernel creates automatically and no manager owns.
KERNEL_PROTOCOLS = frozenset({1, 2})
ROUTER_PROTOCOLS = frozenset({9, 16})
# The metric that the kernel gives to an IPv6 route without one (IP6_RT_PRIO_USER).
IPV6_METRIC = 1024
DEFAULT = "default"
# sysctls of which the kernel takes the larger of `all` and the interface (ip-sysctl).
STRICTER_WINS = frozenset({"rp_filter", "arp_ignore", "arp_announce"})


def of_all(key: str) -> str:
    """Return the key of `all` that the kernel combines with an interface's setting; empty where it combines none."""
    folder, _interface, name = key.rsplit("/", 2)
    return f"{folder}/all/{name}" if name in STRICTER_WINS else ""


@dataclass(frozen=True)
class Link:
    """A network link. MTUs are bytes; `max_mtu` 0 means that the driver names no limit.

    `master` is the bond or bridge that has the link as a port. `parent` is the lower device (of a VLAN's interface).
    `vlan` is the ID of a VLAN's interface, `ours` whether this collection created it. An unmanaged interface that is
    stacked on a rail's port and would lose its MTU has a `depth`: its distance from the port, its `parent`. MACsec
    takes `head` bytes of the MTU. `netns` is the number of the network namespace, where that is another one. `made` is
    the kernel's kind of a link that is no plain port (bridge). `dormant` means that another program blocks the link
    (802.1X). `mac` is the card's own address; InfiniBand has its GUID there.
    """

    name: str
    mtu: int
    up: bool
    index: int = field(default=0, compare=False)
    kind: str = field(default="ethernet", compare=False)
    carrier: bool = field(default=True, compare=False)
    min_mtu: int = field(default=0, compare=False)
    max_mtu: int = field(default=0, compare=False)
    mode: str = field(default="", compare=False)
    master: str = field(default="", compare=False)
    parent: str = field(default="", compare=False)
    vlan: int = field(default=0, compare=False)
    ours: bool = field(default=False, compare=False)
    depth: int = field(default=0, compare=False)
    head: int = field(default=0, compare=False)
    netns: int = field(default=0, compare=False)
    made: str = field(default="", compare=False)
    dormant: bool = field(default=False, compare=False)
    mac: str = field(default="", compare=False)

    def __str__(self) -> str:
        made = f" vlan {self.vlan} on {self.parent}" if self.vlan else ""
        return f"{self.name}{made} mtu {self.mtu} {'up' if self.up else 'down'}"


@dataclass(frozen=True, order=True)
class Address:
    """An address of an interface.

    A planned address is not `usable` while duplicate address detection runs, after the detection failed, and where the
    address has a lifetime: then it `ends` automatically.
    """

    interface: str
    family: int
    address: str
    length: int
    usable: bool = True
    ends: bool = field(default=False, compare=False)
    protocol: int = field(default=0, compare=False)
    raw: str = field(default="", compare=False)

    def __str__(self) -> str:
        text = f"{self.address}/{self.length} dev {self.interface}"
        return text if self.usable else f"{text} {'dynamic' if self.ends else 'tentative'}"


class Hop(t.NamedTuple):
    """A next hop of a route: an interface, and the gateway there (empty: on link)."""

    interface: str
    gateway: str = ""

    def __str__(self) -> str:
        return f"{self.interface}{f' via {self.gateway}' if self.gateway else ', on link'}"


@dataclass(frozen=True, order=True)
class Route:
    """A unicast route with one next hop, or (`other` not empty) something that this collection never makes.

    `hops` are those of a multipath route, of which `interface` and `gateway` are the first; `mtu` is the route's own:
    `mtu 1400` or `mtu lock 1400`. Ours have none.
    """

    family: int
    table: int
    dst: str
    metric: int
    interface: str = ""
    gateway: str = ""
    source: str = ""
    scope: int = SCOPE_GLOBAL
    other: str = ""
    mtu: str = ""
    protocol: int = field(default=0, compare=False)
    raw: str = field(default="", compare=False)
    hops: tuple[Hop, ...] = field(default=(), compare=False)

    @property
    def next_hops(self) -> tuple[Hop, ...]:
        """All next hops; none where the route has only a next hop object."""
        return self.hops or ((Hop(self.interface, self.gateway),) if self.interface else ())

    @property
    def key(self) -> tuple[int, int, str, int]:
        """The kernel's key of a route for replacements: family, table, destination, metric."""
        return (self.family, self.table, self.dst, self.metric)

    def __str__(self) -> str:
        usual = {0, IPV6_METRIC} if self.family == 6 else {0}
        words = (
            ("via", self.gateway),
            ("dev", self.interface),
            ("table", self.table if self.table != MAIN_TABLE else ""),
            ("scope", "link" if self.scope == SCOPE_LINK else ""),
            ("src", self.source),
            ("metric", self.metric if self.metric not in usual else ""),
        )
        parts = [self.other, self.dst, *(f"{word} {value}" for word, value in words if value != ""), self.mtu]
        return " ".join(filter(None, parts))


@dataclass(frozen=True, order=True)
class Rule:
    """A policy rule. `other` holds, as text, every selector that this collection never uses."""

    family: int
    priority: int
    table: int
    source: str = ""
    dest: str = ""
    invert: bool = False
    other: str = ""
    protocol: int = field(default=0, compare=False)
    raw: str = field(default="", compare=False)

    def __str__(self) -> str:
        parts = [
            f"{self.priority}:{' not' if self.invert else ''} from {_host_text(self.source) or 'all'}",
            f"to {self.dest}" if self.dest else "",
            self.other,
            f"lookup {'main' if self.table == MAIN_TABLE else self.table}" if self.table else "",
        ]
        return " ".join(filter(None, parts))


def _host_text(prefix: str) -> str:
    address, _slash, length = prefix.partition("/")
    return address if length in ("32", "128") else prefix


EQUAL_SETTINGS = {"arp_ignore": ("1", "2")}
"""Values of a setting that serve a rail equally: arp_ignore 2 also compares the asker's subnet, which is the rail's."""


def as_good(key: str, now: str, wanted: str) -> bool:
    """Whether a setting (a path below /proc/sys) has the wanted value, or one that serves a rail equally."""
    equal = EQUAL_SETTINGS.get(key.rpartition("/")[2], ())
    if "/gc_thresh" in key and now.isdigit():
        return int(now) >= int(wanted)
    return now == wanted or (now in equal and wanted in equal)


T = t.TypeVar("T")


@dataclass(frozen=True)
class Snapshot:
    """The present or the wanted network of a host: everything that a change here could touch."""

    links: dict[str, Link]
    addresses: frozenset[Address]
    routes: frozenset[Route]
    rules: frozenset[Rule]
    sysctls: dict[str, str]


@dataclass(frozen=True)
class RouteHost:
    """What was read of a host.

    `names` maps the interface that a rail asks for (a name, an alternative name or a PCI address) to the link's name;
    `tables` are those that were read, `claimed` those of the fabric; `planned` the addresses of the rails; `addresses`
    are all of the host;
    `management_network` carries the host's own network, and `paths` are the addresses whose routes must stay;
    `matches` says by which route the host reaches a planned network today;
    `sysctls_all` has, for a planned setting of an interface, the value of `all`; `coming` are the interfaces of VLANs
    that are not there yet; `retained` is what our own files for the next boot name, `noted` the interface and address
    of what stood there before us.
    """

    snapshot: Snapshot
    tables: frozenset[int] = frozenset()
    claimed: frozenset[int] = frozenset()
    planned: frozenset[str] = frozenset()
    names: dict[str, str] = field(default_factory=dict)
    addresses: frozenset[Address] = frozenset()
    paths: tuple[str, ...] = ()
    management_network: ManagementNetwork = field(default_factory=ManagementNetwork)
    matches: tuple[tuple[str, Route], ...] = ()
    sysctls_all: dict[str, str] = field(default_factory=dict)
    coming: frozenset[str] = frozenset()
    retained: Snapshot = field(default_factory=lambda: Snapshot({}, frozenset(), frozenset(), frozenset(), {}))
    noted: frozenset[tuple[str, str]] = frozenset()
    ports: dict[str, tuple[str, str]] = field(default_factory=dict)
    out_of_service: frozenset[str] = frozenset()
    """The links of rails that are out of service."""


def without_rails(host: RouteHost, rails: t.Sequence[RailOptions]) -> RouteHost:
    """Return the host without what belongs to some rails: nothing of it is seen, so nothing changes it."""
    if not rails:
        return host
    here = host.snapshot
    links = {host.names.get(text, text) for rail in rails for text in (rail.interface or rail.asked, rail.device)}
    links |= {link.name for link in here.links.values() if link.parent in links}
    tables, priorities = {rail.table for rail in rails}, {rail.priority for rail in rails}
    snapshot = Snapshot(
        {name: link for name, link in here.links.items() if name not in links},
        frozenset(item for item in here.addresses if item.interface not in links),
        frozenset(
            item
            for item in here.routes
            if item.table not in tables and links.isdisjoint(hop.interface for hop in item.next_hops)
        ),
        frozenset(item for item in here.rules if item.priority not in priorities and item.table not in tables),
        here.sysctls,
    )
    return replace(
        host,
        snapshot=snapshot,
        addresses=frozenset(item for item in host.addresses if item.interface not in links),
        matches=tuple(row for row in host.matches if links.isdisjoint(hop.interface for hop in row[1].next_hops)),
        out_of_service=frozenset(links),
    )


def port_of(rail: RailOptions, host: RouteHost) -> Link | None:
    """Return the port of a rail, or None."""
    return host.snapshot.links.get(host.names.get(rail.asked, ""))


def link_of(rail: RailOptions, host: RouteHost) -> Link | None:
    """Return what a rail's addresses are on, or None: its port, or the interface of its VLAN."""
    return host.snapshot.links.get(host.names.get(rail.device, ""))


def missing(rail: RailOptions, host: RouteHost, *, known: bool) -> bool:
    """Whether a rail has no interface.

    :param known: whether it had one in the last run, which is gone: else its declaration may be wrong.
    """
    name, _mac = host.ports.get(rail.name, ("", ""))
    return port_of(rail, host) is None and ((bool(name) and name not in host.snapshot.links) or not known)


def links_of(rail: RailOptions, host: RouteHost) -> list[Link]:
    """Return the links of a rail that there are: its port, and the interface of its VLAN."""
    return [link for link in (port_of(rail, host), link_of(rail, host) if rail.vlan else None) if link]


def standing_on(port: Link, host: RouteHost, mtu: int) -> list[Link]:
    """Return the interfaces stacked on a port that would lose their MTU if the port had this one."""
    return [
        link
        for link in host.snapshot.links.values()
        if link.depth and link.parent == port.name and link.mtu > mtu - link.head
    ]


def toward(now: Snapshot, source: Snapshot, target: Snapshot) -> Snapshot:
    """Return `now` with the difference between `source` and `target` applied, and what others did meanwhile kept.

    Everything of `target` is in the result, so what the kernel dropped as a side effect comes back.
    """

    def pick(have: dict[str, T], old: dict[str, T], new: dict[str, T]) -> dict[str, T]:
        return {key: new[key] if key in new and old.get(key) != new[key] else value for key, value in have.items()}

    # A VLAN's interface comes and goes with a change; no other link does.
    links = {name: link for name, link in now.links.items() if name in target.links or name not in source.links}
    made = {name: link for name, link in target.links.items() if link.ours and name not in now.links}
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
    gone = now.addresses - target.addresses
    new = target.addresses - now.addresses
    # The kernel drops routes along with their source address, and a rule must not outlive them.
    cycled = {item.address for item in gone}
    rules_new = target.rules - now.rules
    rules_gone = now.rules - target.rules
    again = {rule for rule in target.rules & now.rules if rule.source.partition("/")[0] in cycled}
    written = {route for route in target.routes if route not in now.routes or (route.source and route.source in cycled)}
    keys = {route.key for route in target.routes}
    routes_gone = {route for route in now.routes - target.routes if route.key not in keys}
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
        [Op("delete", rule) for rule in sorted(rules_gone | again)],
        [Op("delete", route) for route in sorted(routes_gone)],
        [Op("delete", item) for item in sorted(gone)],
        [Op("add", item) for item in sorted(new)],
        [Op("replace" if route.key in have_keys else "add", route) for route in needed],
        [Op("add", rule) for rule in sorted(rules_new | again)],
        [Op("delete", link) for name, link in sorted(now.links.items()) if name not in target.links],
        [Op("set", link) for link in links if not link.up],
    )
    return tuple(tuple(phase) for phase in phases if phase)


KINDS: dict[str, t.Any] = {"addresses": Address, "routes": Route, "rules": Rule}


def as_data(snapshot: Snapshot) -> dict[str, t.Any]:
    """Return the snapshot as plain data for JSON."""
    sets = {part: [vars(item) for item in sorted(getattr(snapshot, part))] for part in KINDS}
    return {"links": [vars(link) for link in snapshot.links.values()], **sets, "sysctls": snapshot.sysctls}


def from_data(data: dict[str, t.Any]) -> Snapshot:
    """Return the snapshot that as_data() made plain."""
    sets = {part: frozenset(kind(**item) for item in data[part]) for part, kind in KINDS.items()}
    return Snapshot({item["name"]: Link(**item) for item in data["links"]}, **sets, sysctls=dict(data["sysctls"]))


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
