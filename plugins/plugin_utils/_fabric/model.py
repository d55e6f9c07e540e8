# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data model of a fabric and its plan: frozen values, plain integers inside, text only at the edges.

An address is an int, a prefix an int and a length. Text is made by `address_text` and `str(Prefix)` when a file is
written. Nothing here reads a file or checks input: `_plan.input` does the checking, `_plan.blocks` the arithmetic.
"""

from __future__ import annotations

import functools
import socket
import typing as t
from dataclasses import dataclass, field

from ...module_utils import _intervals as intervals
from ...module_utils._fabric.attachments import ATTACHMENTS, Attachment
from ...module_utils._fabric.backends import BACKENDS, Backend
from ...module_utils._fabric.neighbors import most_neighbors
from ...module_utils._fabric.numbers import vlan_interface
from ...module_utils._formatting import group_by
from .options import DEFAULTS, NODE_PREFIX, RAIL_PREFIX

WIDTH = {4: 32, 6: 128}
"""Bits of an address, by family."""

MAX_POOL = 4096
"""Addresses in one pool; Spiderpool's agent stops at 5000 allocated addresses and expands ranges one by one."""

Range = intervals.Interval
"""First and last address, both included."""


def address_text(family: int, value: int) -> str:
    """Return the canonical text of an address (RFC 5952 for IPv6)."""
    kind = socket.AF_INET if family == 4 else socket.AF_INET6
    return socket.inet_ntop(kind, value.to_bytes(WIDTH[family] // 8, "big"))


def range_text(family: int, span: Range) -> str:
    """Write a range as Spiderpool's normal form writes it: `a-b`, and a single address as `a`."""
    first, last = span
    if first == last:
        return address_text(family, first)
    return f"{address_text(family, first)}-{address_text(family, last)}"


@dataclass(frozen=True, order=True)
class Prefix:
    """A canonical network: no host bits, `length` bits of `family` (4 or 6)."""

    family: int
    network: int
    length: int

    @property
    def size(self) -> int:
        """The number of its addresses, including network and broadcast address."""
        return 1 << (WIDTH[self.family] - self.length)

    @property
    def last(self) -> int:
        """The last address (IPv4: the broadcast address)."""
        return self.network + self.size - 1

    def contains(self, other: Prefix) -> bool:
        """Whether all of the other network lies in this one."""
        return self.family == other.family and self.network <= other.network and other.last <= self.last

    def overlaps(self, other: Prefix) -> bool:
        """Whether the two have an address in common."""
        return self.family == other.family and self.network <= other.last and other.network <= self.last

    def __str__(self) -> str:
        return f"{address_text(self.family, self.network)}/{self.length}"


@dataclass(frozen=True)
class Rail:
    """One rail: the same position of every node, cabled to one leaf of each zone."""

    index: int
    """From 1, in the order of fabric_rails."""
    name: str
    """DNS-1123 label."""
    interface: str
    """The interface's name on nodes that say nothing else; also the rail's stable name."""
    subnets: tuple[Prefix, ...] = ()
    """Explicit networks, at most one per family: shared, the rail's subnet; exclusive, its aggregate."""
    gpu: int | None = None
    resource: str = ""
    """Resource name without its prefix, `[A-Za-z0-9_]+`; default `<fabric>_<rail>`."""
    pci: str | None = None
    """PCI address of the NIC (`0000:1a:00.0`) on nodes that say nothing else."""
    vlan: int = 0
    """The VLAN of host, pods and gateway on this rail; 0: untagged."""
    device: str = ""
    """Name of the NIC's RDMA device on every host (`mlx5_0`); empty where it is not declared."""

    @property
    def parent(self) -> str:
        """The lower device of pods' interfaces, with the host's address: the interface, or that of its VLAN."""
        return vlan_interface(self.interface, self.vlan)


class Lossless(t.NamedTuple):
    """The settings of the site's switches for lossless RoCE."""

    priority: int
    """0 to 7."""
    dscp: int
    """Of RoCE traffic, 0 to 63."""
    cnp: int
    """The DSCP of congestion notifications, 0 to 63."""

    @property
    def traffic_class(self) -> int:
        """The traffic class byte of RoCE packets: the DSCP, and ECT(0) so that switches can mark (RFC 3168)."""
        return self.dscp << 2 | 2


@dataclass(frozen=True)
class Zone:
    """A scalable unit. A fabric without fabric_zones has exactly one, whose name is empty."""

    name: str
    group: str
    """The inventory group whose hosts are in the zone."""
    supernets: tuple[Prefix, ...]
    """At most one per family, IPv4 first."""
    max_nodes: int
    """Slots reserved from day one."""
    leaves: tuple[str, ...] = ()
    """Names of the leaf switches, one per rail, or one for all, or none: as LLDP names them, or patterns of that."""

    def leaf(self, rail: int) -> str:
        """Return the name of a rail's leaf (index from 0), empty where the inventory has none."""
        if len(self.leaves) == 1:
            return self.leaves[0]
        return self.leaves[rail] if rail < len(self.leaves) else ""


NO_SLOT = -1
"""Of a node that the inventory has, and that asks for no slot of its own (fabric_slot)."""


class Node(t.NamedTuple):
    """A node of the fabric."""

    name: str
    """The Kubernetes name, a DNS-1123 subdomain; the lock's key."""
    host: str
    """The inventory name; names the file in hosts/."""
    zone: int
    """Index into Fabric.zones."""
    slot: int
    """From 0; the node's only state: every address is arithmetic on it."""
    interfaces: tuple[str, ...]
    """The interface of each rail on this node."""
    pcis: tuple[str | None, ...]
    """The PCI address of each rail on this node, where it is known."""
    cables: tuple[tuple[str, str], ...] = ()
    """Leaf and port of each rail, each empty where the node does not say it; () when it says none."""
    out: frozenset[int] = frozenset()
    """The rails (from 0) that are out of service."""
    reason: str = ""
    """Why they are."""
    taint: bool = False
    """Whether a taint keeps new pods off the node meanwhile."""


class Retired(t.NamedTuple):
    """A slot that no node gets until you release it."""

    name: str
    zone: int
    slot: int


@dataclass(frozen=True)
class Fabric:
    """All fabric_* parameters, validated; the names are theirs without the prefix.

    What decides addresses: mode, zones, rails' names and subnets, prefixes, subnet_offset, gateway, host_addresses,
    pods_per_node, reserved, ipam. Those are frozen in the lock, and so are the bases of numbers.
    """

    name: str
    mode: str
    """`shared`, `exclusive` or `flat`."""
    zones: tuple[Zone, ...]
    rails: tuple[Rail, ...]
    rail_prefix: t.Mapping[int, int] = field(default_factory=lambda: RAIL_PREFIX)
    """Length of a rail's subnet by family (shared)."""
    node_prefix: t.Mapping[int, int] = field(default_factory=lambda: NODE_PREFIX)
    """Length of a node's and rail's subnet by family (exclusive)."""
    subnet_offset: int = DEFAULTS["subnet_offset"]
    gateway: t.Mapping[int, str | int] = field(default_factory=lambda: dict.fromkeys(WIDTH, DEFAULTS["gateway"]))
    """By family `first`, `last`, `none` or an offset from the network address, negative from the end."""
    host_addresses: str = DEFAULTS["host_addresses"]
    """`start` or `end` (shared and flat)."""
    pods_per_node: int | None = None
    reserved: tuple[tuple[int, int, int], ...] = ()
    """(family, first, last), merged and sorted."""
    reserved_per_subnet: t.Mapping[str, int] | None = None
    """The number of reserved addresses at the `first` and the `last` end of each subnet."""
    group: str = DEFAULTS["group"]
    network: str = DEFAULTS["network"]
    """`roce` or `infiniband`."""
    attachment: str = "macvlan"
    """A name of `attachments.ATTACHMENTS`."""
    table_base: int = DEFAULTS["table_base"]
    """The rails' tables come after it; after the next two their rules' priorities and main's metrics."""
    rule_base: int = DEFAULTS["rule_base"]
    metric_base: int = DEFAULTS["metric_base"]
    ipam: str = DEFAULTS["ipam"]
    """A name of `backends.BACKENDS`."""
    existing: tuple[Prefix, ...] = ()
    policy: str = DEFAULTS["policy"]
    """`prefixes` or `default_route`."""
    mtu: int = 4200
    neighbor_tables: bool = False
    vfs: int = DEFAULTS["vfs"]
    hca_max: int = DEFAULTS["hca_max"]
    namespace: str = DEFAULTS["namespace"]
    resource_prefix: str = DEFAULTS["resource_prefix"]
    inject: tuple[str, str] | None = None
    """(annotation key, value) of pod resource injection."""
    pod_default_rail: str = ""
    """The rail that job pods have instead of the cluster's network; empty: none."""
    lossless: Lossless | None = None
    """None: not declared."""
    rails_reachable: bool | None = None
    """Whether one rail's NIC reaches those of other rails; None: it follows from the gateways."""

    @property
    def attached(self) -> Attachment:
        """What follows from the attachment."""
        return ATTACHMENTS[self.attachment]

    @property
    def pod_addresses(self) -> bool:
        """Whether pods get addresses on the rails."""
        return self.attached.pods and bool(self.families)

    @property
    def reached(self) -> str:
        """The network, and the attachment where pods have one."""
        return f"{self.network} by {self.attachment}" if self.attached.pods else self.network

    @property
    def backend(self) -> Backend:
        """The IPAM backend."""
        return BACKENDS[self.ipam]

    @property
    def families(self) -> tuple[int, ...]:
        """The families that nodes get addresses of: (4,), (6,), (4, 6), or () for LID only."""
        found = {prefix.family for zone in self.zones for prefix in zone.supernets}
        found.update(prefix.family for rail in self.rails for prefix in rail.subnets)
        return tuple(sorted(found))

    def neighbors(self, zone: int) -> int:
        """Return how many neighbors of one family a host of a zone (index) has on all rails."""
        return most_neighbors(self.mode, self.zones[zone].max_nodes, len(self.rails))

    @property
    def zoned(self) -> bool:
        """Whether the fabric has named zones."""
        return bool(self.zones[0].name)

    @property
    def resources(self) -> tuple[str, ...]:
        """The full resource name of each rail, such as `spidernet.io/fabric_rail1`."""
        return tuple(f"{self.resource_prefix}/{rail.resource}" for rail in self.rails)


class SlotOverride(t.NamedTuple):
    """A node's subnet that a reserved range cuts into: absolute addresses instead of the block's offsets."""

    host: int | None
    pods: tuple[Range, ...]


@dataclass(frozen=True)
class Block:
    """All addresses of one rail in one zone and one family.

    exclusive: one subnet per slot, all of one shape; a few may be cut by reserved ranges.
    shared: one subnet for all slots. flat: one subnet for all rails, this is the rail's part of it.
    """

    zone: int
    """Index into Fabric.zones."""
    rail: int
    """Index into Fabric.rails, from 0."""
    family: int
    aggregate: Prefix
    """exclusive: everything the rail's leaf announces for all slots; shared and flat: the subnet itself."""
    subnet_length: int
    per_node: bool
    """Whether each slot has its own subnet and pools (exclusive)."""
    slots: int
    """The zone's max_nodes."""
    gateway_offset: int | None
    """From the subnet's network address."""
    host_offsets: tuple[Range, ...]
    """per_node: one offset, as a range; else the offsets of all slots in order. From the subnet's network address."""
    pod_offsets: tuple[Range, ...]
    """Offsets for pods: of each subnet (per_node), of the rail (else). Empty for links and without pools."""
    cuts: t.Mapping[int, SlotOverride] = field(default_factory=dict)
    """per_node: the slots whose subnet a reserved range cuts."""

    @property
    def subnet_size(self) -> int:
        """Addresses of one subnet."""
        return 1 << (WIDTH[self.family] - self.subnet_length)

    def subnet_first(self, slot: int) -> int:
        """Return the network address of the slot's subnet."""
        return self.aggregate.network + (slot * self.subnet_size if self.per_node else 0)

    def subnet(self, slot: int) -> Prefix:
        """Return the subnet of the slot; the same for all unless per_node."""
        return Prefix(self.family, self.subnet_first(slot), self.subnet_length)

    def gateway(self, slot: int) -> int | None:
        """Return the gateway in the slot's subnet."""
        return None if self.gateway_offset is None else self.subnet_first(slot) + self.gateway_offset

    def host(self, slot: int) -> int | None:
        """Return the node's address; None only for a slot whose subnet is reserved whole (input checks refuse that)."""
        if slot in self.cuts:
            return self.cuts[slot].host
        first = self.subnet_first(slot)
        rest = 0 if self.per_node else slot
        for low, high in self.host_offsets:
            if rest <= high - low:
                return first + low + rest
            rest -= high - low + 1
        return None

    def texts(self, slot: int) -> tuple[str, str, str]:
        """Return the slot's node address, its subnet with its length, and its gateway; the last is empty for none."""
        host, gateway = self.host(slot), self.gateway(slot)
        address = "" if host is None else address_text(self.family, host)
        subnet = f"{address_text(self.family, self.subnet_first(slot))}/{self.subnet_length}"
        return address, subnet, "" if gateway is None else address_text(self.family, gateway)

    def pods(self, slot: int = 0) -> tuple[Range, ...]:
        """Return the pods' addresses as maximal ranges: of the slot (per_node), of the whole rail and zone (else)."""
        if slot in self.cuts:
            return self.cuts[slot].pods
        first = self.subnet_first(slot)
        return tuple((first + low, first + high) for low, high in self.pod_offsets)

    def pools(self, slot: int = 0) -> tuple[tuple[Range, ...], ...]:
        """Return the same addresses as pools: each the sorted, maximal ranges of at most MAX_POOL addresses."""
        return intervals.split(self.pods(slot), MAX_POOL)


@dataclass(frozen=True)
class FabricPlan:
    """The whole plan. Everything that is written, shown or compared comes from it."""

    fabric: Fabric
    nodes: tuple[Node, ...]
    """The active nodes, in natural order of their names (node2 before node10)."""
    retired: tuple[Retired, ...]
    """In natural order of their names."""
    blocks: tuple[Block, ...]
    """Sorted by zone, rail, family; none when the fabric is LID only."""
    warnings: tuple[str, ...] = ()

    @functools.cached_property
    def by_interfaces(self) -> t.Mapping[tuple[str, ...], tuple[Node, ...]]:
        """The active nodes by the names of their interfaces."""
        known = group_by((node.interfaces, node) for node in self.nodes)
        return {interfaces: tuple(nodes) for interfaces, nodes in known.items()}

    def nodes_of(self, zone: int) -> tuple[Node, ...]:
        """Return the active nodes of a zone (index), in natural order."""
        return tuple(node for node in self.nodes if node.zone == zone)
