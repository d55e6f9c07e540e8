# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the deviation of a rail that causes others, and makes one card for each cause. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field
from functools import lru_cache

from ...module_utils._check import DEVIATION, SKIPPED, WARNING, Check, deviation, skipped
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._formatting import natural
from .._report.equal import entries
from .repairs import COMPLETE, Repair, repair_of

HOST_RESULT = "host_result"
FALLBACKS = {"plan": "plan_inventory", "cluster": "cluster_api"}
"""The check that represents a section without a result."""

# The beginnings of IDs, the first cause first: link, address, rules and routes, device, then pings and rates.
NAMES = """
host_result card_ nic_ network_link cable_ port_speed rdma_rename rdma_name network_mtu
network_addresses address_ network_sysctls network_exclusion_rule network_rules network_routes
network_existing network_echo network_neighbors network_ route_path
driver_ rdma_modules rdma_netns_ rdma_device rdma_link_layer rdma_port_state rdma_ roce_
plan_ cluster_api node_in_cluster object_ pool_ ping_gateway ping_gateway_mtu ping_ rail_ port_ pcie_ traffic_
node_ pod_running pod_network pod_ accept_ persist_ fleet_
"""
ORDER = NAMES.split()
_WIRE_CHECKS = ("ping_", "rail_isolation", "traffic_")
_POD_CHECKS = ("node_resources", "node_sriov", "pod_")
_PATH_CHECKS = ("route_path", *_WIRE_CHECKS)
EXPLAINED_IDS: dict[str, tuple[str, ...]] = {
    "nic_link_type": ("network_link", "rdma_", *_WIRE_CHECKS, *_POD_CHECKS),
    "rdma_name": ("network_", "rdma_", "roce_", *_PATH_CHECKS, *_POD_CHECKS),
    "network_link": (
        *("cable_", "network_addresses", "network_routes", "network_neighbors", "port_", "roce_switch", "fleet_speed"),
        *("rdma_active_mtu", "rdma_port_state", "rdma_subnet_manager", *_PATH_CHECKS, *_POD_CHECKS),
    ),
    "cable_leaf": ("cable_port", "roce_switch", *_WIRE_CHECKS),
    "network_mtu": (
        "rdma_mtu",
        "rdma_active_mtu",
        "ping_gateway_mtu",
        "ping_neighbor_mtu",
        "traffic_",
        "pod_interface",
    ),
    "network_addresses": ("network_routes", "network_stale", "address_", *_PATH_CHECKS, *_POD_CHECKS),
    "address_duplicate": ("network_addresses", *_PATH_CHECKS),
    "network_sysctls": ("network_neighbors", *_PATH_CHECKS),
    "network_exclusion_rule": ("rail_isolation", "route_path"),
    "network_rules": ("network_stale", *_PATH_CHECKS),
    "network_routes": ("network_stale", *_PATH_CHECKS),
    "network_existing_routes": _PATH_CHECKS,
    "network_echo": ("ping_",),
    "route_path": _WIRE_CHECKS,
    "driver_": ("rdma_", "roce_", "traffic_", *_POD_CHECKS),
    "rdma_modules": ("rdma_", "traffic_", *_POD_CHECKS),
    "rdma_netns_current": ("rdma_device", "traffic_", *_POD_CHECKS),
    "rdma_device": ("rdma_", "roce_", "traffic_", *_POD_CHECKS),
    "rdma_link_layer": ("rdma_", "traffic_", *_POD_CHECKS),
    "rdma_port_state": ("rdma_active_mtu", "rdma_subnet_manager", *_WIRE_CHECKS, *_POD_CHECKS),
    "rdma_subnet_manager": ("rdma_port_state", *_WIRE_CHECKS, *_POD_CHECKS),
    "cluster_api": ("object_", "pool_", *_POD_CHECKS),
    "object_state": _POD_CHECKS,
    "ping_gateway": ("ping_gateway_mtu", "ping_neighb", "rail_isolation", "traffic_", "pod_ping", "pod_read"),
    "ping_gateway_mtu": ("ping_neighbor_mtu", "traffic_"),
    "ping_neighbor": ("ping_neighb", "rail_isolation", "traffic_", "pod_ping", "pod_read"),
    "ping_neighbor_mtu": ("traffic_",),
    "ping_neighbor_tcp": ("traffic_",),
    "node_in_cluster": ("pool_prefix", *_POD_CHECKS),
    "node_sriov": _POD_CHECKS,
    "node_resources": ("pod_",),
    "pod_running": ("pod_",),
    "pod_network": ("pod_",),
}
"""The beginnings of the IDs that a deviation explains on the same rail. Counters and files explain nothing."""


@dataclass(eq=False)
class Defect:
    """A deviation or a warning, where it was made, and what it follows from."""

    host: str
    """The host, or the section of the verdict, that made it."""
    places: tuple[str, ...]
    """The host or section that it is attributed to; both ends where that is not decided."""
    check: Check
    root: Defect | None = None
    repair: Repair = field(init=False)

    def __post_init__(self) -> None:
        self.repair = repair_of(self.check)

    @property
    def peers(self) -> list[str]:
        """The other ends of a test."""
        return [end for end in (self.host, *self.check.get("peers", ())) if (end,) != self.places]


@lru_cache(maxsize=1024)
def rank(name: str) -> int:
    """Return where a check's ID is in the order of causes."""
    starts = [number for number, start in enumerate(ORDER) if name.startswith(start)]
    return max(starts, key=lambda number: len(ORDER[number]), default=len(ORDER))


@lru_cache(maxsize=1024)
def _explained(name: str) -> tuple[str, ...]:
    start = max((start for start in EXPLAINED_IDS if name.startswith(start)), key=len, default="")
    return EXPLAINED_IDS.get(start, ())


def _lost(name: str, error: str) -> Check:
    """Return why there is no result of a host or a section, as the first of its checks."""
    fix = "" if name in FALLBACKS else "Check that Ansible reaches the host and works there, and run the audit again."
    return deviation(FALLBACKS.get(name, HOST_RESULT), "a result", "none", error, fix)


def explains(cause: Check, check: Check) -> bool:
    """Return whether a deviation explains another one on the same rail, by their IDs."""
    if cause["status"] == WARNING:
        return False
    name, follows = cause["id"], check["id"]
    if name == HOST_RESULT:
        return True
    if name == follows:
        return bool(check.get("peers"))
    if name == "network_link" and cause["observed"] == "missing":
        return rank(follows) > rank(name)
    return follows.startswith(_explained(name)) and (name != "object_state" or _object_explains(cause, check))


def _object_explains(cause: Check, check: Check) -> bool:
    """Return whether a missing object explains a check: pods of its rail, and what nodes offer by an SR-IOV policy."""
    if not str(cause["observed"]).startswith(("not there", "another one")):
        return False
    planned = str(cause["planned"])
    if check["id"].startswith("node_"):
        return planned.startswith("Sriov")
    return check["rail"] is None or f"-{check['rail']}-" in f"{planned}-"


def _not_configured(found: t.Iterable[Defect], rails: t.Collection[str]) -> bool:
    """Return whether a host has no address, rule or route of the plan on any of its rails."""
    empty = {
        (item.check["id"], item.check["rail"])
        for item in found
        if item.check["status"] == DEVIATION and item.check["observed"] == [] and item.check["planned"]
    }
    parts = ("network_addresses", "network_rules", "network_routes")
    return bool(rails) and all((part, rail) in empty for part in parts for rail in rails)


def deviations_of(verdict: Verdict) -> list[Defect]:
    """Return all deviations and warnings, each with the one that it follows from."""
    hosts = verdict["hosts"]
    by_node = {entry["node"]: name for name, entry in hosts.items() if entry.get("node")}
    found: list[Defect] = []
    cells: dict[tuple[str, ...], dict[str | None, list[Defect]]] = {}
    for name, entry in entries(verdict):
        lost = [_lost(name, entry["error"])] if entry.get("error") else []
        for check in [*lost, *entry["checks"]]:
            if check["status"] not in (DEVIATION, WARNING):
                continue
            at = check.get("attributed_to", name)
            ends = [peer if peer in hosts else by_node.get(peer, peer) for peer in check.get("peers", ())]
            places = (at,) if at is not None else tuple(sorted({name, *ends}, key=natural))
            found.append(Defect(name, places, check))
            cells.setdefault(places, {}).setdefault(check["rail"], []).append(found[-1])
    above = _rooted([], cells.get(("cluster",), {}).pop(None, []))
    for places, by_rail in cells.items():
        host = hosts.get(places[0])
        own = [item for items in by_rail.values() for item in items]
        rails = [rail for rail, status in host["rails"].items() if status != SKIPPED] if host else []
        bare = len(places) == 1 and _not_configured(own, rails)
        if bare:
            first = [item for item in own if item.check["id"] == "network_addresses"]
            for item in own:
                if item not in first and (item.repair.playbook or explains(first[0].check, item.check)):
                    item.root = first[0]
            for item in first:
                item.repair = COMPLETE
            own = [item for item in own if item.root is None and item not in first]
            by_rail = {rail: [item for item in own if item.check["rail"] == rail] for rail in by_rail}
        of_host = by_rail.pop(None, [])
        # What the node offers, and entries that are not as planned, follow from its rails.
        last = [item for item in of_host if item.check["id"].startswith(("network_stale", *_POD_CHECKS))]
        before = _rooted(above, (item for item in of_host if item not in last))
        rails_of = [one for items in by_rail.values() for one in _rooted(before, items)[len(before) :]]
        _rooted([*before, *sorted(rails_of, key=lambda item: rank(item.check["id"]))], last)
    return found


def _rooted(seen: t.Sequence[Defect], items: t.Iterable[Defect]) -> list[Defect]:
    """Give each its root, and return all of them, the first cause first."""
    before = list(seen)
    for item in sorted(items, key=lambda item: (rank(item.check["id"]), (item.host,) == item.places)):
        cause = next((one for one in before if explains(one.check, item.check)), None)
        item.root = (cause.root or cause) if cause else None
        before.append(item)
    return before


def short_names(names: t.Iterable[str | None]) -> frozenset[str]:
    """Return names as LLDP is compared with them: in lower case, without a domain."""
    return frozenset(name.lower().partition(".")[0] for name in names if name)


def without_host_as_leaf(check: Check, hosts: t.Collection[str]) -> Check:
    """Return `cable_leaf` as skipped where the neighbor heard is a host of the inventory.

    A switch without LLDP of its own floods the frames of a host that bridges or routes.

    :param hosts: the inventory's hosts, as `short_names` has them.
    """
    received = str(check["observed"]).partition(" ")[0]
    if check["id"] != "cable_leaf" or check["status"] != DEVIATION or not short_names([received]) & frozenset(hosts):
        return check
    why = f"Not seen: the received neighbor is {received}, a host of the inventory, and no leaf."
    fix = "Enable LLDP on the leaf, or disable it on that host."
    return skipped("cable_leaf", why, fix, check["planned"], check["observed"], rail=check["rail"])
