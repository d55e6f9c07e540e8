# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From raw fabric_* values to a validated Fabric, or to all problems at once, each with its place and its fix.

It rejects, before anything is written, input that the API would reject, and input that the API would accept but that
would not work (Spiderpool's admission code checks no reserved, host or switch address).
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ...module_utils import _intervals as intervals
from ...module_utils._fabric.attachments import ATTACHMENTS, names_of
from ...module_utils._fabric.numbers import IPOIB_CONNECTED_MTU, claimed, taken_by
from ...module_utils._validation import LABEL
from .._fabric.model import Fabric, Lossless, Prefix
from .._fabric.options import DEFAULTS, INJECT_KEYS, NODE_PREFIX, OPTIONS, RAIL_PREFIX
from .check import LABEL_VALUE, SUBDOMAIN, Checker, shown
from .input_rails import read_group, read_optional, read_rails, read_zones

PLACE = "fabric_"
FAMILIES = {"ipv4": 4, "ipv6": 6}
MAX_BLOCK = 1 << 24
MAX_PODS = 1_000_000
BASES = {"table_base": "table", "rule_base": "priority", "metric_base": "metric"}
"""Options, and what each numbers."""
BOOLEANS = tuple(name for name, option in OPTIONS.items() if option["type"] == "bool")
# Of a port of a ConnectX card (NVIDIA DOCA documentation, SR-IOV; ConnectX-7 release notes); some firmware has fewer.
MOST_VFS = 127
RANGES = {
    **dict.fromkeys(BASES, (0, 2**31 - 1)),
    **{"subnet_offset": (0, MAX_BLOCK), "vfs": (1, MOST_VFS), "hca_max": (1, 10_000)},
}
"""The lowest and the highest value of options."""
MTU = {"roce": (1280, 9978, 4200), "infiniband": (1280, IPOIB_CONNECTED_MTU, 2044)}
"""Lowest, highest, default. RoCE 4200 carries a path MTU of 4096; IPoIB 2044 works on every subnet manager."""


@dataclass(frozen=True)
class Options:
    """Options of one run of the planner that are no property of the fabric."""

    retire: tuple[str, ...] = ()
    release: tuple[str, ...] = ()
    rename: tuple[tuple[str, str], ...] = ()
    """Old and new names of nodes."""
    allow_renumber: bool = False
    accept_lock: bool = False


def read_options(check: Checker, raw: t.Mapping[str, t.Any]) -> Options:
    """Validate what governs the run."""
    given = _with_defaults(raw)
    names: dict[str, tuple[str, ...]] = {}
    for key in ("retire", "release"):
        names[key] = tuple(
            check.text(*item, SUBDOMAIN, "a Kubernetes node name (DNS-1123)")
            for item in check.entries(PLACE + key, given[key], "node names")
        )
    place = PLACE + "rename"
    pairs = tuple(check.dictionary(place, given["rename"], "{old name: new name}").items())
    for pair in pairs:
        for name in pair:
            check.text(f"{place}.{pair[0]}", name, SUBDOMAIN, "a Kubernetes node name (DNS-1123)")
    check.unique(lambda index: f"{place}.{pairs[index][0]}", [str(new) for _old, new in pairs], "The name")
    for key in BOOLEANS:
        if given[key] is not None and not isinstance(given[key], bool):
            check.add(PLACE + key, f"{shown(given[key])} is not a boolean.", "Give true or false. [not_boolean]")
    if not isinstance(given["plan_dir"], str):
        fix = "Give a folder, such as plan. [not_a_path]"
        check.add("fabric_plan_dir", f"{shown(given['plan_dir'])} is not a path.", fix)
    return Options(names["retire"], names["release"], pairs, given["allow_renumber"], given["accept_lock"])


def _with_defaults(raw: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    return {**DEFAULTS, **{key: value for key, value in raw.items() if value is not None}}


def fabric_of(check: Checker, raw: t.Mapping[str, t.Any]) -> Fabric:
    """Return a fabric. A value that is not valid becomes another one, with its problem in `check`.

    :param raw: the fabric_* values by their names without the prefix; missing and None mean the default.
    """
    given = _with_defaults(raw)
    name = check.text(PLACE + "name", given["name"], LABEL, "a DNS-1123 label", default="fabric")
    network = _choice(check, given, "network")
    attachment = _attachment(check, given, network)
    rails = read_rails(check, given, name, own_device=ATTACHMENTS[attachment].own_device)
    zones = read_zones(check, given)
    mode = _mode(check, given, network, any(one.subnets for one in rails) or any(zone.supernets for zone in zones))
    values: dict[str, t.Any] = {key: _choice(check, given, key) for key in ("host_addresses", "ipam", "policy")}
    for key, (low, high) in RANGES.items():
        values[key] = check.integer(PLACE + key, given[key], low, high, default=DEFAULTS[key])
    low, high, usual = MTU[network]
    fabric = Fabric(
        name=name,
        group=read_group(check, "fabric_group", given["group"]),
        mode=mode,
        network=network,
        attachment=attachment,
        zones=zones,
        rails=rails,
        rail_prefix=_lengths(check, "fabric_rail_prefix", given["rail_prefix"], RAIL_PREFIX),
        node_prefix=_lengths(check, "fabric_node_prefix", given["node_prefix"], NODE_PREFIX),
        gateway=_gateways(check, given["gateway"]),
        pods_per_node=_pods_per_node(check, given, attachment),
        reserved=_reserved(check, given["reserved"]),
        reserved_per_subnet=_ends(check, given["reserved_per_subnet"]),
        **values,
        existing=_existing(check, given["existing_networks"]),
        mtu=check.integer("fabric_mtu", usual if given["mtu"] is None else given["mtu"], low, high, default=usual),
        neighbor_tables=given["neighbor_tables"] is True,
        namespace=check.text("fabric_namespace", given["namespace"], LABEL, "a DNS-1123 label"),
        resource_prefix=check.text("fabric_resource_prefix", given["resource_prefix"], SUBDOMAIN, "a DNS-1123 name"),
        inject=_inject(check, given["inject"], name),
        lossless=_lossless(check, given["lossless"], network),
        rails_reachable=given["rails_reachable"],
        pod_default_rail=given["pod_default_rail"] or "",
    )
    for key, numbered in BASES.items():
        if reason := taken_by(numbered, claimed(getattr(fabric, key), len(rails)), fabric.policy):
            fix = f"Give another {PLACE}{key}, such as {DEFAULTS[key]}. [number_in_use]"
            check.add(PLACE + key, f"The rails' numbers {reason}.", fix)
    _check_network(check, given, fabric)
    if fabric.attached.pods:
        _check_backend(check, fabric)
    return fabric


def _mode(check: Checker, given: dict[str, t.Any], network: str, addresses: bool) -> str:
    if given["mode"] is None and network == "infiniband" and not addresses:
        return "flat"  # it decides nothing
    if given["mode"] is None:
        fix = "Set it to shared, exclusive or flat, in group_vars/all where localhost sees it. [mode_missing]"
        check.add("fabric_mode", "It is not set.", fix)
        return "exclusive"
    mode = _choice(check, given, "mode")
    if mode == "flat" and network == "roce":
        problem = "'flat' is for InfiniBand, and fabric_network is 'roce'."
        check.add("fabric_mode", problem, "Give shared or exclusive. [flat_on_roce]")
    return mode


def _ends(check: Checker, value: object) -> dict[str, int] | None:
    """Return how many addresses at both ends of each subnet are reserved, None where none are."""
    if value is None:
        return None
    place = "fabric_reserved_per_subnet"
    given = check.mapping(place, value, ("first", "last"), "{first: 3, last: 0}")
    found = {key: check.integer(f"{place}.{key}", given.get(key, 0), 0, MAX_PODS) for key in ("first", "last")}
    return found if any(found.values()) else None


def _choice(check: Checker, given: dict[str, t.Any], key: str) -> str:
    return check.choice(PLACE + key, given[key], OPTIONS[key]["choices"])


def _attachment(check: Checker, given: dict[str, t.Any], network: str) -> str:
    allowed = names_of(network)
    value = given["attachment"] if given["attachment"] is not None else allowed[0]
    return check.choice("fabric_attachment", value, allowed, why=f" (fabric_network is {network!r})")


def _check_network(check: Checker, given: t.Mapping[str, t.Any], fabric: Fabric) -> None:
    """Check what belongs to one kind of network only, and what needs addresses."""
    if fabric.network == "infiniband" and (vlan := next((rail.vlan for rail in fabric.rails if rail.vlan), 0)):
        check.add("fabric_vlan", f"{vlan} is set on InfiniBand.", "Remove it: VLANs are Ethernet's. [vlan_on_ib]")
    for index, zone in enumerate(fabric.zones):
        if len(zone.leaves) not in (0, 1, len(fabric.rails)):
            problem = f"There are {len(zone.leaves)} leaves for {len(fabric.rails)} rails."
            fix = "Name one leaf per rail, one for all, or none. [leaves_count]"
            check.add(f"fabric_zones[{index}].leaves" if fabric.zoned else "fabric_leaves", problem, fix)
    if fabric.name == "zone" or fabric.name.startswith("leaf-"):
        fix = "Give the fabric another name. [label_in_use]"
        check.add("fabric_name", f"{fabric.name!r} would make two labels of nodes one: its own and the zone's.", fix)
    for key in ("rail_prefix", "node_prefix"):
        if fabric.families == (6,) and given[key] is not None and not isinstance(given[key], dict):
            problem = f"{shown(given[key])} is an IPv4 prefix length, but the fabric has only IPv6."
            check.add(PLACE + key, problem, "Write it as {ipv6: 64}. [prefix_ipv6_only]")
    if fabric.families or check.problems:
        return
    if fabric.network == "roce":
        problem = "It is empty, and RoCE needs addresses."
        check.add("fabric_supernets", problem, "Give a network such as 172.17.0.0/16. [supernet_missing]")
    elif fabric.attached.needs_addresses:
        fix = "Give a network, or use attachment ib-sriov for LID only. [supernet_missing]"
        check.add("fabric_supernets", f"It is empty, and attachment {fabric.attachment} needs addresses.", fix)


def _check_backend(check: Checker, fabric: Fabric) -> None:
    """Reject options that the IPAM backend does not support."""
    backend = fabric.backend
    for key, can in (("mode", backend.modes), ("attachment", backend.attachments)):
        if (value := getattr(fabric, key)) not in can:
            problem = f"{backend.name} does not support fabric_{key} {value}; supported: {', '.join(can)}."
            check.add(PLACE + key, problem, "Change one of the two (docs/guides/ipam-backend.md). [backend_cannot]")
    if fabric.inject and not backend.injects:
        problem = f"{backend.name} cannot inject rails into pods."
        check.add("fabric_inject", problem, "Remove it: pods name their networks. [injection_backend]")
    if rail := fabric.pod_default_rail:
        place, names = "fabric_pod_default_rail", [row.name for row in fabric.rails]
        if rail not in names:
            fix = f"Set one of: {', '.join(names)}. [default_rail_unknown]"
            check.add(place, f"{shown(rail)} is not a rail of this fabric.", fix)
        if fabric.inject:
            problem = f"{shown(rail)} would be attached twice: fabric_inject attaches it too."
            check.add(place, problem, "Remove one of the two. [default_rail_injected]")
        if not (fabric.families and backend.injects):
            problem = f"{shown(rail)} cannot be a pod's default network without an address from Spiderpool."
            fix = "Remove it, or set fabric_supernets and fabric_ipam: spiderpool. [default_rail_no_pool]"
            check.add(place, problem, fix)
    if backend.namespace and fabric.namespace == DEFAULTS["namespace"]:
        problem = f"{fabric.namespace!r} is not where {backend.name} looks for its pools."
        fix = f"Set the namespace that its controller watches, such as {backend.namespace}. [namespace_backend]"
        check.add("fabric_namespace", problem, fix)


def _lengths(check: Checker, place: str, value: object, usual: dict[int, int]) -> dict[int, int]:
    """Read a prefix length for IPv4, or one per family."""
    if value is None:
        return dict(usual)
    if not isinstance(value, dict):
        value = {"ipv4": value}
    given = check.mapping(place, value, FAMILIES, "{ipv4: 27, ipv6: 64}")
    found = dict(usual)
    for key, item in given.items():
        low, high = (8, 31) if key == "ipv4" else (16, 127)
        found[FAMILIES[key]] = check.integer(f"{place}.{key}", item, low, high, default=high)
    return found


def _gateways(check: Checker, value: object) -> dict[int, str | int]:
    """Read a gateway for both families, or one per family."""
    if not isinstance(value, dict):
        return dict.fromkeys(FAMILIES.values(), _gateway(check, "fabric_gateway", value))
    given = {
        **dict.fromkeys(FAMILIES, DEFAULTS["gateway"]),
        **check.mapping("fabric_gateway", value, FAMILIES, "{ipv4: last, ipv6: 2}"),
    }
    return {family: _gateway(check, f"fabric_gateway.{name}", given[name]) for name, family in FAMILIES.items()}


def _pods_per_node(check: Checker, given: t.Mapping[str, t.Any], attachment: str) -> int | None:
    """Return the most pods per node; without pod networks there are none, and no other option of pods."""
    if ATTACHMENTS[attachment].pods:
        return read_optional(check, "fabric_pods_per_node", given["pods_per_node"], 1, MAX_PODS)
    for key in ("inject", "ipam", "pods_per_node", "pod_default_rail"):
        if given[key] not in (DEFAULTS.get(key), {}):
            problem = f"{shown(given[key])} is set, and fabric_attachment {attachment} connects no pods to the rails."
            check.add(PLACE + key, problem, "Remove it, or set another fabric_attachment. [option_without_pods]")
    return 0


def _gateway(check: Checker, place: str, value: object) -> str | int:
    """Return `first`, `last`, `none` or an offset."""
    if value in ("first", "last", "none"):
        return str(value)
    if isinstance(value, str) and not re.fullmatch(r"-?[0-9]{1,9}", value):
        check.add(
            place, f"{shown(value)} is neither first, last, none nor an offset.", "Give one of those. [gateway_format]"
        )
        return "first"
    return check.integer(place, value, -(1 << 30), 1 << 30, default=1)


def _inject(check: Checker, value: object, name: str) -> tuple[str, str] | None:
    if value is None or value == {}:
        return None
    given = check.mapping("fabric_inject", value, OPTIONS["inject"]["suboptions"], "{key: ..., value: ...}")
    key = check.choice("fabric_inject.key", given.get("key", INJECT_KEYS[0]), INJECT_KEYS)
    what = "a label value of at most 63 characters"
    return key, check.text("fabric_inject.value", given.get("value", name), LABEL_VALUE, what, default="x")


def _lossless(check: Checker, value: object, network: str) -> Lossless | None:
    if value is None or value == {}:
        return None
    place = "fabric_lossless"
    given = check.mapping(place, value, OPTIONS["lossless"]["suboptions"], "{priority: 3, dscp: 26, cnp: 48}")
    if network == "infiniband":
        check.add(place, "It is set on InfiniBand, which is lossless.", "Remove it. [lossless_on_ib]")
    for key in ("priority", "dscp"):
        if isinstance(value, dict) and key not in given:
            check.add(f"{place}.{key}", "It is not set.", "Set it as on the switches. [lossless_missing]")
    return Lossless(
        check.integer(f"{place}.priority", given.get("priority", 0), 0, 7),
        check.integer(f"{place}.dscp", given.get("dscp", 0), 0, 63),
        check.integer(f"{place}.cnp", given.get("cnp", 48), 0, 63),
    )


def _reserved(check: Checker, value: object) -> tuple[tuple[int, int, int], ...]:
    """Return addresses, ranges and networks as (family, first, last), merged and sorted."""
    spans = [check.span(*item) for item in check.entries("fabric_reserved", value, "addresses and ranges")]
    merged: list[tuple[int, int, int]] = []
    for family in (4, 6):
        ranges = intervals.merge((span[1], span[2]) for span in spans if span and span[0] == family)
        merged.extend((family, first, last) for first, last in ranges)
    return tuple(merged)


def _existing(check: Checker, value: object) -> tuple[Prefix, ...]:
    networks = check.entries("fabric_existing_networks", value, "networks")
    # Places of later problems are indexes: an invalid existing network stops the run before they are used.
    return tuple(filter(None, (check.prefix(*item, rail=False) for item in networks)))
