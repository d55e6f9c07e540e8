# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The names of everything that a plan puts into a cluster, defined once.

Pools `<fabric>-<rail>-v4[-<node or zone>]` (v6 likewise), configs and policies `<fabric>-<rail>[-<profile>]`. A name
has at most 63 characters and no dots (injection takes DNS-1123 labels only); a longer one, or one with dots, is its
first 54 characters, a hyphen and eight hex digits of SHA-256.
"""

from __future__ import annotations

import hashlib
import typing as t

from ...module_utils._fabric.labels import (
    DECLARED,
    MAX_NAME,
    NODE_PREFIX,
    STEM_LENGTH,
    labels,
    profile_name,
    short_name,
)
from .model import Fabric, FabricPlan, Node, Rail

Body = dict[str, t.Any]


def pool_stem(fabric: Fabric, rail: Rail, family: int) -> str:
    """Return what all pool names of a rail and family begin with."""
    return f"{fabric.name}-{rail.name}-v{family}"


def pool_name(stem: str, owner: str = "", part: int = 0) -> str:
    """Return a pool's name; `owner` is a node or a zone, `part` counts the pools of one owner from 0."""
    name = f"{stem}-{owner}" if owner else stem
    return short_name(f"{name}-part{part + 1}" if part else name)


def config_name(fabric: Fabric, rail: Rail, profile: str = DECLARED) -> str:
    """Return the name of a rail's SpiderMultusConfig and of its SriovNetworkNodePolicy."""
    name = f"{fabric.name}-{rail.name}"
    return short_name(name if profile == DECLARED else f"{name}-{profile}")


def inject_value(value: str, profile: str = DECLARED) -> str:
    """Return the value of the injection annotation that a pod names to get all rails of a profile's nodes."""
    if profile == DECLARED:
        return value
    if len(value) + len(profile) < MAX_NAME:
        return f"{value}-{profile}"
    return f"{value[: STEM_LENGTH - len(profile)]}-{profile}-{hashlib.sha256(value.encode()).hexdigest()[:6]}"


def node_label(fabric: Fabric) -> str:
    """Return the label that nodes of the fabric carry; its value is the node's profile."""
    return f"{NODE_PREFIX}/{fabric.name}"


def leaf_label(rail: Rail) -> str:
    """Return the label of nodes that names a rail's leaf: at most 63 characters behind its prefix."""
    return f"{NODE_PREFIX}/{short_name(f'leaf-{rail.name}')}"


def manifest(
    api: str,
    kind: str,
    fabric: Fabric,
    name: str,
    spec: Body,
    *,
    notes: t.Mapping[str, str] | None = None,
    namespaced: bool = True,
) -> Body:
    """Return an object of the fabric.

    :param api: its apiVersion, and `kind` beside that.
    :param name: its own.
    :param spec: what it says.
    :param notes: its annotations.
    :param namespaced: whether it lies in the fabric's namespace.
    """
    place = {"namespace": fabric.namespace} if namespaced else {}
    more = {"annotations": dict(notes)} if notes else {}
    meta = {"name": name, **place, "labels": labels(fabric.name), **more}
    return {"apiVersion": api, "kind": kind, "metadata": meta, "spec": spec}


def profile_of(fabric: Fabric, interfaces: tuple[str, ...]) -> str:
    """Return the name profile of a node: its interfaces decide, nothing else, so it never changes under anyone."""
    return DECLARED if interfaces == tuple(rail.interface for rail in fabric.rails) else profile_name(interfaces)


def profiles(plan: FabricPlan) -> t.Mapping[str, tuple[Node, ...]]:
    """Return the nodes of each name profile, the declared one first; with no nodes at all the declared one alone."""
    found = {profile_of(plan.fabric, interfaces): nodes for interfaces, nodes in plan.by_interfaces.items()}
    if not found:
        return {DECLARED: ()}
    return {name: found[name] for name in sorted(found, key=lambda name: (name != DECLARED, name))}


def labeled(plan: FabricPlan) -> dict[str, tuple[str, tuple[Node, ...]]]:
    """Return the name profile and the nodes of each value of the node label.

    Virtual functions are made where a policy finds this label: a node without some rails has a value of its own.
    """
    fabric, own_device = plan.fabric, plan.fabric.attached.own_device
    found: dict[str, tuple[str, list[Node]]] = {profile: (profile, []) for profile in profiles(plan)}
    for profile, nodes in profiles(plan).items():
        for node in nodes:
            out = [fabric.rails[rail].name for rail in sorted(node.out)] if own_device else []
            value = short_name(f"{profile}-without-{'-'.join(out)}") if out else profile
            found.setdefault(value, (profile, []))[1].append(node)
    return {value: (profile, tuple(nodes)) for value, (profile, nodes) in found.items()}


def interfaces_of(fabric: Fabric, nodes: t.Sequence[Node]) -> tuple[str, ...]:
    """Return the interface of each rail on the nodes of one profile."""
    return nodes[0].interfaces if nodes else tuple(rail.interface for rail in fabric.rails)


def full_resource(plan: FabricPlan, rail: Rail, profile: str = DECLARED) -> str:
    """Return the resource that a pod asks for to get a rail on the nodes of a profile.

    Profiles share it, unless pods share the devices (which are found by name) and a name is another rail's elsewhere.
    """
    seen: dict[str, int] = {}
    clash = not plan.fabric.attached.own_device and any(
        seen.setdefault(interface, index) != index
        for interfaces in plan.by_interfaces
        for index, interface in enumerate(interfaces)
    )
    name = f"{rail.resource}_{profile}" if clash and profile != DECLARED else rail.resource
    return f"{plan.fabric.resource_prefix}/{name}"
