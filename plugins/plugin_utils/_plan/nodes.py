# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From raw nodes (inventory name, groups, and what the host's own fabric_* variables say) to validated candidates."""

from __future__ import annotations

import typing as t

from ...module_utils._validation import HOST, PCI
from .._fabric.model import NO_SLOT, Fabric, Node
from .check import INTERFACE, SUBDOMAIN, Checker, shown

ALL = "all"
OUT_FORM = '{node2: {rails: [rail2], reason: "RMA 4711"}}'

Interfaces = tuple[tuple[str, ...], tuple[str | None, ...]]
"""A node's interface and PCI address of each rail."""


def read_nodes(
    check: Checker, fabric: Fabric, nodes: t.Iterable[t.Mapping[str, t.Any]], out_of_service: object
) -> tuple[Node, ...]:
    """Validate the nodes, which have no slot yet but the one that they ask for.

    :param nodes: `host` of each, and `groups`, `name`, `interfaces`, `cables`, `slot` where the inventory has them.
    :param out_of_service: the rails of hosts that are out of service, with the reason.
    """
    found: list[Node] = []
    names: dict[str, str] = {}
    usual = tuple(rail.interface for rail in fabric.rails), tuple(rail.pci for rail in fabric.rails)
    for item in nodes:
        one = _read_node(check, fabric, usual, item)
        if one is None:
            continue
        other = names.setdefault(one.name, one.host)
        if other != one.host:
            problem = f"{one.name!r} is already the node name of host {other!r}."
            fix = "Give each host the name that Kubernetes knows it by. [node_name_in_use]"
            check.add(f"hosts.{one.host}.fabric_node_name", problem, fix)
        found.append(one)
    out = _out_of_service(check, fabric, {node.host: node.name for node in found}, out_of_service)
    return tuple(node._replace(**out.get(node.host, {})) for node in found)


def _out_of_service(
    check: Checker, fabric: Fabric, nodes: t.Mapping[str, str], given: object
) -> dict[str, dict[str, t.Any]]:
    """Return the fields of a node that say which rails are out of service, by host.

    :param nodes: the node name of each host.
    """
    variable = "fabric_out_of_service"
    rails = {rail.name: index for index, rail in enumerate(fabric.rails)}
    found: dict[str, dict[str, t.Any]] = {}
    for host, value in check.dictionary(variable, {} if given is None else given, OUT_FORM).items():
        place = f"{variable}.{host}"
        if host not in nodes:
            named = next((f"; it is the node name of {other!r}" for other, node in nodes.items() if node == host), "")
            problem = f"{shown(host)} is not a host of the group {fabric.group!r}{named}."
            wrong = "Correct the inventory name, or remove the entry. [out_of_service_host]"
            check.add(place, problem, wrong)
        row = check.mapping(place, value, ("rails", "reason", "taint"), OUT_FORM[len("{node2: ") : -1])
        names = row.get("rails")
        if names != ALL and not (isinstance(names, list) and names) and isinstance(value, dict):
            problem = f"{shown(names)} is neither {ALL} nor a list of rails."
            check.add(f"{place}.rails", problem, "Set rails: [rail2], or rails: all. [out_of_service_rails]")
        listed = names if isinstance(names, list) else []
        for name in (name for name in listed if not isinstance(name, str) or name not in rails):
            fix = f"Set one of: {', '.join(rails)}. [rail_unknown]"
            check.add(f"{place}.rails", f"{shown(name)} is not a rail of this fabric.", fix)
        reason = check.printable(f"{place}.reason", row["reason"]) if "reason" in row else ""
        if not isinstance(row.get("taint", False), bool):
            problem = f"{shown(row['taint'])} is not a boolean."
            check.add(f"{place}.taint", problem, "Set true or false. [not_boolean]")
        out = frozenset(index for rail, index in rails.items() if names == ALL or rail in listed)
        found[host] = {"out": out, "reason": reason, "taint": row.get("taint") is True}
    return found


def _read_node(check: Checker, fabric: Fabric, usual: Interfaces, item: t.Mapping[str, t.Any]) -> Node | None:
    host: str = item["host"]
    if not HOST.fullmatch(host):
        fix = "Rename the host in the inventory: letters, digits, dots, dashes, underscores. [host_name]"
        check.add(f"hosts.{host}", f"{shown(host)} cannot be the name of a file in hosts/.", fix)
        return None
    name = host if item.get("name") is None else item["name"]
    if not isinstance(name, str) or not SUBDOMAIN.fullmatch(name):
        problem = f"{shown(name)} is not a Kubernetes node name (DNS-1123: small letters, digits, dashes, dots)."
        fix = "Set fabric_node_name to the name in `kubectl get nodes`; without Kubernetes, any such name. [node_name]"
        check.add(f"hosts.{host}.fabric_node_name", problem, fix)
        return None
    zone = _zone(check, fabric, host, item.get("groups")) if fabric.zoned else 0
    given = item.get("interfaces")
    interfaces, pcis = _interfaces(check, fabric, usual, host, given) if given else usual
    cables = _cables(check, fabric, host, item["cables"]) if item.get("cables") else ()
    pin = NO_SLOT
    if item.get("slot") is not None:
        pin = check.integer(f"hosts.{host}.fabric_slot", item["slot"], 0, fabric.zones[zone].max_nodes - 1)
    return Node(name, host, zone, pin, interfaces, pcis, cables)


def _zone(check: Checker, fabric: Fabric, host: str, groups: object) -> int:
    member = set(groups) if isinstance(groups, (list, tuple)) else set()
    zones = [index for index, zone in enumerate(fabric.zones) if zone.group in member]
    if len(zones) == 1:
        return zones[0]
    if not zones:
        listed = ", ".join(zone.group for zone in fabric.zones[:10])
        problem, fix = "It is in no zone.", f"Put it into one of the zones' groups: {listed}. [zone_of_host]"
    else:
        listed = ", ".join(fabric.zones[index].group for index in zones)
        problem, fix = f"It is in {len(zones)} zones: the groups {listed}.", "Leave it in one of them. [zone_of_host]"
    check.add(f"hosts.{host}", problem, fix)
    return 0


def _by_rail(
    check: Checker, fabric: Fabric, host: str, variable: str, given: object, form: str
) -> t.Iterator[tuple[int, str, t.Any]]:
    """Yield the rail's position, the place and the value of each thing that a host says of its rails.

    :param variable: of the host.
    :param given: its value.
    :param form: what it looks like.
    """
    place = f"hosts.{host}.{variable}"
    rails = {rail.name: index for index, rail in enumerate(fabric.rails)}
    for rail, value in check.dictionary(place, given, form).items():
        if rail in rails:
            yield rails[rail], f"{place}.{rail}", value
        else:
            known = f"Known are: {', '.join(rails)}. [rail_unknown]"
            check.add(f"{place}.{rail}", f"{shown(rail)} is not a rail.", known)


def _interfaces(check: Checker, fabric: Fabric, usual: Interfaces, host: str, given: object) -> Interfaces:
    """Return what the node says itself, and what is usual for the rest; a PCI address leaves the rail its name."""
    variable = "fabric_interfaces"
    names, addresses = list(usual[0]), list(usual[1])
    for index, where, value in _by_rail(check, fabric, host, variable, given, "{rail1: ens1np0}"):
        if isinstance(value, str) and PCI.fullmatch(value.lower()):
            addresses[index] = value.lower()
        elif isinstance(value, str) and INTERFACE.fullmatch(value):
            names[index] = value
            check.vlan_interface(where, value, fabric.rails[index].vlan)
            addresses[index] = None
        else:
            problem = f"{shown(value)} is neither an interface name (at most 15 characters) nor a PCI address."
            check.add(where, problem, "Give one such as ens1np0 or 0000:1a:00.0. [interface_format]")
    for values, what in ((names, "Interface"), (addresses, "PCI address")):
        check.unique(lambda index: f"hosts.{host}.{variable}.{fabric.rails[index].name}", values, what)
    return tuple(names), tuple(addresses)


def _cables(check: Checker, fabric: Fabric, host: str, given: object) -> tuple[tuple[str, str], ...]:
    """Return leaf and port of each rail, empty where the node says nothing of it."""
    form = "{rail1: {leaf: leaf1, port: swp1}}"
    found = [("", "")] * len(fabric.rails)
    for index, where, value in _by_rail(check, fabric, host, "fabric_cables", given, form):
        row = check.mapping(where, value, ("leaf", "port"), form)
        ends = {key: check.printable(f"{where}.{key}", name) for key, name in row.items()}
        found[index] = (ends.get("leaf", ""), ends.get("port", ""))
    return tuple(found)
