# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of a host's network as values: links, addresses, routes, rules, sysctls, and their text form.

No sockets, no files, no AnsibleModule. Addresses and prefixes are canonical text (as the standard library's
ipaddress prints them), so that equal things compare equal.
"""

from __future__ import annotations

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
    `vlan` is the ID of a VLAN's interface, `managed` whether this collection created it. An unmanaged interface that is
    stacked on a rail's port and would lose its MTU has a `depth`: its distance from the port, its `parent`. `netns` is
    the number of the network namespace, where that is another one. `made` is the kernel's kind of a link that is no
    plain port (bridge). `dormant` means that another program blocks the link (802.1X). Without `arp` the kernel
    resolves no neighbor. `mac` is the card's own address; InfiniBand has its GUID there.
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
    managed: bool = field(default=False, compare=False)
    depth: int = field(default=0, compare=False)
    netns: int = field(default=0, compare=False)
    made: str = field(default="", compare=False)
    dormant: bool = field(default=False, compare=False)
    arp: bool = field(default=True, compare=False)
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


def equivalent(key: str, now: str, desired: str) -> bool:
    """Whether a setting (a path below /proc/sys) has the desired value, or one that serves a rail equally."""
    equal = EQUAL_SETTINGS.get(key.rpartition("/")[2], ())
    if "/gc_thresh" in key and now.isdigit():
        return int(now) >= int(desired)
    return now == desired or (now in equal and desired in equal)


@dataclass(frozen=True)
class Snapshot:
    """The current or the desired network of a host: everything that a change here could touch."""

    links: dict[str, Link]
    addresses: frozenset[Address]
    routes: frozenset[Route]
    rules: frozenset[Rule]
    sysctls: dict[str, str]


class Scope(t.NamedTuple):
    """What is read of a host again: tables, those that the fabric claims, the rails' addresses.

    The routes to the addresses in `paths` must stay.
    """

    tables: t.Collection[int] = ()
    claimed: t.Collection[int] = ()
    planned: t.Collection[str] = ()
    paths: t.Sequence[str] = ()


@dataclass(frozen=True)
class RouteHost:
    """What was read of a host.

    `names` maps the interface that a rail names (a name, an alternative name or a PCI address) to the link's name;
    `addresses` are all of the host; `management_network` carries the host's own network;
    `matches` has the route by which the host reaches a planned network today;
    `sysctls_all` has, for a planned setting of an interface, the value of `all`; `pending_links` are the interfaces of
    VLANs that do not exist yet; `retained` has the objects of the managed files for the next boot, `noted` interface
    and address of each object that existed before the first run.
    """

    snapshot: Snapshot
    scope: Scope = field(default_factory=Scope)
    names: dict[str, str] = field(default_factory=dict)
    addresses: frozenset[Address] = frozenset()
    management_network: ManagementNetwork = field(default_factory=ManagementNetwork)
    matches: tuple[tuple[str, Route], ...] = ()
    sysctls_all: dict[str, str] = field(default_factory=dict)
    pending_links: frozenset[str] = frozenset()
    retained: Snapshot = field(default_factory=lambda: Snapshot({}, frozenset(), frozenset(), frozenset(), {}))
    noted: frozenset[tuple[str, str]] = frozenset()
    ports: dict[str, tuple[str, str]] = field(default_factory=dict)
    out_of_service: frozenset[str] = frozenset()
    """The links of rails that are out of service."""


def snapshot_of_rails(snapshot: Snapshot, rails: t.Collection[RailOptions], links: t.Collection[str]) -> Snapshot:
    """Return what belongs to some rails and their links."""
    tables, priorities = {rail.table for rail in rails}, {rail.priority for rail in rails}
    return Snapshot(
        {name: link for name, link in snapshot.links.items() if name in links},
        frozenset(item for item in snapshot.addresses if item.interface in links),
        frozenset(
            item
            for item in snapshot.routes
            if item.table in tables or any(hop.interface in links for hop in item.next_hops)
        ),
        frozenset(item for item in snapshot.rules if item.priority in priorities or item.table in tables),
        {},
    )


def without_rails(host: RouteHost, rails: t.Sequence[RailOptions]) -> RouteHost:
    """Return the host without what belongs to some rails: nothing of it is seen, so nothing changes it."""
    if not rails:
        return host
    here = host.snapshot
    links = {host.names.get(text, text) for rail in rails for text in (rail.interface or rail.identifier, rail.device)}
    links |= {link.name for link in here.links.values() if link.parent in links}
    own = snapshot_of_rails(here, rails, links)
    rest = {part: getattr(here, part) - getattr(own, part) for part in KINDS}
    kept = {name: link for name, link in here.links.items() if name not in links}
    snapshot = Snapshot(kept, **rest, sysctls=here.sysctls)
    return replace(
        host,
        snapshot=snapshot,
        addresses=frozenset(item for item in host.addresses if item.interface not in links),
        matches=tuple(row for row in host.matches if links.isdisjoint(hop.interface for hop in row[1].next_hops)),
        out_of_service=frozenset(links),
    )


def port_of(rail: RailOptions, host: RouteHost) -> Link | None:
    """Return the port of a rail, or None."""
    return host.snapshot.links.get(host.names.get(rail.identifier, ""))


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


def stacked_on(port: Link, host: RouteHost, mtu: int) -> list[Link]:
    """Return the interfaces stacked on a port that would lose their MTU if the port had this one."""
    return [link for link in host.snapshot.links.values() if link.depth and link.parent == port.name and link.mtu > mtu]


KINDS: dict[str, t.Any] = {"addresses": Address, "routes": Route, "rules": Rule}


def as_data(snapshot: Snapshot) -> dict[str, t.Any]:
    """Return the snapshot as plain data for JSON."""
    sets = {part: [vars(item) for item in sorted(getattr(snapshot, part))] for part in KINDS}
    return {"links": [vars(link) for link in snapshot.links.values()], **sets, "sysctls": snapshot.sysctls}


def from_data(data: dict[str, t.Any]) -> Snapshot:
    """Return the snapshot that as_data() made plain."""
    sets = {part: frozenset(kind(**item) for item in data[part]) for part, kind in KINDS.items()}
    return Snapshot({item["name"]: Link(**item) for item in data["links"]}, **sets, sysctls=dict(data["sysctls"]))
