# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""facts.json beside plan.json: the facts of a plan that this collection itself reads, the same for each IPAM backend.

The other files of a plan are for hosts, the cluster, switches and people.
"""

from __future__ import annotations

import ipaddress
import json
import typing as t

from .._validation import InvalidData, parsed, sanitize, validate
from .labels import DECLARED, POD_STATUS, profile_name
from .lock import FACTS, verified


class PodNetwork(t.TypedDict):
    """What a pod gets of one rail on the nodes of one profile."""

    rail: str
    name: str
    """namespace/name, as the pod's annotation names it."""
    attachment: str
    """A name of `attachments.ATTACHMENTS`."""
    resource: str
    """What the pod asks for, prefix and all."""
    ask: bool
    """Whether it has to ask itself even where injection adds the resources of its networks."""
    addresses: bool
    """Whether it gets an address of the rail's subnet on its node."""
    routes: bool
    """Whether each rail leaves its subnet by a table of its own."""
    mtu: int
    """In bytes; 0: what the parent has."""


class Leaf(t.TypedDict):
    """A leaf of a rail in a zone; its name is empty where the inventory has none."""

    zone: str
    rail: str
    leaf: str


class Aggregate(Leaf):
    """A network that such a leaf announces."""

    aggregate: str


class LabelGroup(t.TypedDict):
    """The labels of some nodes."""

    labels: dict[str, str]
    nodes: list[str]


class OutRow(t.TypedDict):
    """The rails of a node that are out of service."""

    host: str
    """Its inventory name."""
    node: str
    rails: list[str]
    reason: str
    all_rails: bool
    """Whether these are all rails of the node."""
    taint: bool
    """Whether a taint keeps new pods off the node."""


class Facts(t.TypedDict):
    """facts.json."""

    fabric: str
    namespace: str
    """Of the objects."""
    kinds: list[str]
    """Of the objects that give pods networks and addresses."""
    own_device: bool
    """Whether a pod gets a device of its own, a virtual function."""
    networks: dict[str, list[PodNetwork]]
    """What pods get, by profile; that of all nodes where their names of interfaces make no difference."""
    resources: dict[str, dict[str, int]]
    """What a node of each profile offers: how many of each resource."""
    interfaces: list[str]
    """What pods' interfaces stand on, over all nodes."""
    prefixes: list[Aggregate]
    node_label: str
    """The label by which objects select nodes; empty where none does."""
    node_labels: list[LabelGroup]
    """That label, and those of zone and leaves; each node once."""
    out_of_service: t.NotRequired[list[OutRow]]
    pod_templates: t.NotRequired[list[dict[str, t.Any]]]
    """Where pods get to the rails: PodTemplates with the rails' annotations and limits, one for each name profile."""
    pod_environment: t.NotRequired[dict[str, str]]
    """NCCL's variables in such a pod."""


def networks_of(networks: dict[str, list[PodNetwork]], interfaces: t.Sequence[str]) -> list[PodNetwork]:
    """Return what pods get on a node with these interfaces: that of its profile, else that of all nodes."""
    return networks.get(profile_name(interfaces)) or networks.get(DECLARED) or []


def read_facts(folder: str) -> Facts:
    """Return the facts of a plan.

    :param folder: the plan's folder.
    :raises RdmaError: as `verified` does.
    """
    return t.cast("Facts", json.loads(verified(folder, "facts")[1][FACTS]))


_STATUS = {"name": (None, str), "interface": (None, str), "ips": (None, [str]), "default": (None, bool)}


def inside(address: str, subnets: t.Iterable[str]) -> bool:
    """Return whether a text is an address of one of these networks."""
    try:
        value = ipaddress.ip_address(address)
        return any(value in ipaddress.ip_network(subnet) for subnet in subnets)
    except ValueError:
        return False


def status_rows(meta: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return a pod's networks as Multus recorded them: name, interface, ips, default; none if the record is invalid.

    :param meta: the pod's metadata; untrusted, since every user who may change the pod may write them.
    """
    try:
        rows = sanitize(parsed((meta.get("annotations") or {}).get(POD_STATUS) or "[]"))
        return t.cast("list[dict[str, t.Any]]", validate(rows, [_STATUS], "what Multus noted"))
    except InvalidData:
        return []
