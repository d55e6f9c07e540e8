# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and validates the declared rails and zones, item by item."""

from __future__ import annotations

import re
import typing as t

from ...module_utils._fabric.numbers import MAX_RAILS
from ...module_utils._validation import LABEL, PCI
from .._fabric.model import Prefix, Rail, Zone
from .._fabric.options import OPTIONS
from .check import INTERFACE, RESOURCE, Checker, shown

MAX_SLOTS = 100_000
DEVICE = re.compile(r"[A-Za-z0-9_.-]{1,63}")
"""Name of an RDMA device (IB_DEVICE_NAME_MAX 64 with its zero), without what shells and NCCL's lists trip over."""


def read_group(check: Checker, place: str, value: object) -> str:
    """Return the name of an inventory group."""
    if isinstance(value, str) and value.strip():
        return value
    check.add(place, f"{shown(value)} is not the name of an inventory group.", "Give a group's name. [group_name]")
    return "gpu_nodes"


def read_optional(check: Checker, place: str, value: object, low: int, high: int) -> int | None:
    """Return an integer from `low` to `high`, None where none is given.

    :param value: the input.
    :param place: its place in the input, for a problem that goes to `check`.
    """
    return None if value is None else check.integer(place, value, low, high, default=low)


def read_networks(check: Checker, place: str, value: object) -> tuple[Prefix, ...]:
    """Return at most one network per family, IPv4 first."""
    found: dict[int, Prefix] = {}
    for entry, item in check.entries(place, value, "networks in CIDR form"):
        prefix = check.prefix(entry, item)
        if prefix and found.setdefault(prefix.family, prefix) is not prefix:
            problem = f"{prefix} is a second IPv{prefix.family} network beside {found[prefix.family]}."
            fix = "Give at most one per family; more room means a shorter prefix. [family_duplicate]"
            check.add(entry, problem, fix)
    return tuple(found[family] for family in sorted(found))


def read_rails(check: Checker, given: dict[str, t.Any], fabric: str, *, own_device: bool) -> tuple[Rail, ...]:
    """Return the rails in order; what is wrong goes to `check`.

    :param own_device: whether a pod gets a device of its own.
    """
    items = check.listing("fabric_rails", given["rails"], "rails such as {interface: ens1np0}")
    if not items and isinstance(given["rails"], (list, tuple, type(None))):
        problem = "There is no rail."
        check.add("fabric_rails", problem, "Give a list such as [{name: rail1, interface: ens1np0}]. [rails_missing]")
    if len(items) > MAX_RAILS:
        problem = f"There are {len(items)} rails."
        check.add("fabric_rails", problem, f"Give at most {MAX_RAILS}: a table each. [rails_too_many]")
        items = items[:MAX_RAILS]
    digits = len(str(len(items)))
    vlan = check.integer("fabric_vlan", given["vlan"], 0, 4094)
    rails = tuple(
        _rail(check, index, item, f"rail{index + 1:0{digits}d}", fabric, vlan) for index, item in enumerate(items)
    )
    check.unique(lambda i: f"fabric_rails[{i}].name", [rail.name for rail in rails], "Rail name")
    check.unique(lambda i: f"fabric_rails[{i}].interface", [rail.interface for rail in rails], "Interface")
    if any(rail.vlan for rail in rails):
        check.unique(lambda i: f"fabric_rails[{i}].vlan", [rail.parent for rail in rails], "VLAN's interface")
    if own_device:
        # Of a resource for several rails a pod would get a virtual function of any of them.
        check.unique(lambda i: f"fabric_rails[{i}].resource", [rail.resource for rail in rails], "Resource")
    check.unique(lambda i: f"fabric_rails[{i}].pci", [rail.pci for rail in rails], "PCI address")
    check.unique(lambda i: f"fabric_rails[{i}].device", [rail.device or None for rail in rails], "RDMA device")
    return rails


def _rail(check: Checker, index: int, item: object, usual: str, fabric: str, usual_vlan: int) -> Rail:
    place = f"fabric_rails[{index}]"
    given = check.mapping(place, item, OPTIONS["rails"]["suboptions"], "{name: rail1, interface: ens1np0}")
    name = check.text(f"{place}.name", given.get("name", usual), LABEL, "a DNS-1123 label", default=usual)
    interface = ""
    if "interface" in given:
        what = "an interface name (1 to 15 of letters, digits, dot, dash, underscore)"
        interface = check.text(f"{place}.interface", given["interface"], INTERFACE, what)
    elif isinstance(item, dict):
        fix = "Give the name of the rail's interface, such as ens1np0. [interface_missing]"
        check.add(f"{place}.interface", "It is not set.", fix)
    resource = given.get("resource", re.sub(r"[^A-Za-z0-9_]", "_", f"{fabric}_{name}")[:63])
    what = "a resource name: 1 to 63 letters, digits and underscores, without the prefix"
    pci = str(given["pci"]).lower() if "pci" in given else None
    if pci is not None:
        pci = check.text(f"{place}.pci", pci, PCI, "a PCI address such as 0000:1a:00.0")
    vlan = check.integer(f"{place}.vlan", given["vlan"], 0, 4094) if "vlan" in given else usual_vlan
    check.vlan_interface(f"{place}.interface", interface, vlan)
    what_device = "the name of an RDMA device such as mlx5_0"
    device = check.text(f"{place}.device", given["device"], DEVICE, what_device) if "device" in given else ""
    return Rail(
        index=index + 1,
        name=name,
        interface=interface,
        subnets=read_networks(check, f"{place}.subnets", given.get("subnets")),
        gpu=read_optional(check, f"{place}.gpu", given.get("gpu"), 0, 255),
        resource=check.text(f"{place}.resource", resource, RESOURCE, what),
        pci=pci,
        vlan=vlan,
        device=device,
    )


def read_zones(check: Checker, given: dict[str, t.Any]) -> tuple[Zone, ...]:
    """Return the zones in order, one without a name where none is declared; what is wrong goes to `check`."""
    supernets = read_networks(check, "fabric_supernets", given["supernets"])
    items = check.listing("fabric_zones", given["zones"], "zones such as {name: su1, group: su1}")
    slots = read_optional(check, "fabric_max_nodes", given["max_nodes"], 1, MAX_SLOTS)
    if not items:
        if slots is None:
            fix = "Set it to the fabric's final number of nodes: subnets cannot be changed later. [max_nodes_missing]"
            check.add("fabric_max_nodes", "It is not set.", fix)
        leaves = _leaves(check, "fabric_leaves", given["leaves"])
        return (Zone("", read_group(Checker(), "", given["group"]), supernets, slots or 1, leaves),)
    if given["leaves"]:
        check.add("fabric_leaves", "It is set beside fabric_zones.", "Give each zone its own leaves. [zone_leaves]")
    zones = tuple(_zone(check, index, item, supernets, slots) for index, item in enumerate(items))
    check.unique(lambda i: f"fabric_zones[{i}].name", [zone.name for zone in zones], "Zone name")
    check.unique(lambda i: f"fabric_zones[{i}].group", [zone.group for zone in zones], "Group")
    families = [tuple(prefix.family for prefix in zone.supernets) for zone in zones]
    for index, own in enumerate(families):
        if own != families[0]:
            problem = f"The families differ from those of zone {zones[0].name!r}."
            fix = "Give every zone a supernet of the same families. [zone_families]"
            check.add(f"fabric_zones[{index}].supernets", problem, fix)
    return zones


def _zone(check: Checker, index: int, item: object, supernets: tuple[Prefix, ...], slots: int | None) -> Zone:
    place = f"fabric_zones[{index}]"
    example = "{name: su1, group: su1, supernets: [172.20.0.0/16]}"
    given = check.mapping(place, item, OPTIONS["zones"]["suboptions"], example)
    name = check.text(f"{place}.name", given.get("name"), LABEL, "a DNS-1123 label", default=f"zone{index}")
    own = read_optional(check, f"{place}.max_nodes", given.get("max_nodes", slots), 1, MAX_SLOTS)
    if own is None:
        problem = "It is not set, here or as fabric_max_nodes."
        check.add(f"{place}.max_nodes", problem, "Set it to the slots of the zone. [zone_slots]")
    nets = read_networks(check, f"{place}.supernets", given["supernets"]) if "supernets" in given else supernets
    group = read_group(check, f"{place}.group", given.get("group", name))
    return Zone(name, group, nets, own or 1, _leaves(check, f"{place}.leaves", given.get("leaves")))


def _leaves(check: Checker, place: str, value: object) -> tuple[str, ...]:
    return tuple(check.printable(*leaf) for leaf in check.entries(place, value, "leaf names"))
