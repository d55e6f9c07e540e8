# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares what commands inside of a pod print with the plan: interfaces, rules, routes, RDMA devices. Pure.

A rail's packets must leave by the rail and its own gateway, everything else must not leave by a rail, and a pod must
see the RDMA devices of its rails, and where devices are its own, no others.
"""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t

from .._check import Check
from .._cluster.model import Json
from .._fabric.attachments import ATTACHMENTS
from .._fabric.facts import status_rows
from .._validation import InvalidData, parsed, sanitize, validate
from .checks import Network, PodNode, PodRail, check, pod_rails

# All GIDs but those of no address and of the link. One process for all: a device has up to 1024 entries.
_GIDS = "grep -hsv -e ^0000:0000:0000:0000:0000:0000:0000:0000 -e ^fe80: /sys/class/infiniband/*/ports/*/gids/*; :"
# What is run in a pod. Rules and routes are read for the families of the plan. `rdma` has no -json, only -j.
COMMANDS: dict[str, tuple[str, ...]] = {
    "rules4": ("ip", "-json", "-4", "rule", "show"),
    "rules6": ("ip", "-json", "-6", "rule", "show"),
    "routes4": ("ip", "-json", "-4", "route", "show", "table", "all"),
    "routes6": ("ip", "-json", "-6", "route", "show", "table", "all"),
    "links": ("ip", "-json", "address", "show"),
    "rdma": ("rdma", "-j", "link", "show"),
    "gids": ("sh", "-c", _GIDS),
}
CHECKS = {"rules": "pod_rule", "routes": "pod_table", "links": "pod_interface", "rdma": "pod_rdma", "gids": "pod_gid"}
"""The check that each command is for, by its name in COMMANDS without the family."""
_TUNE = (
    "See coordinator.tunePodRoutes of the network's config and the Spiderpool agent's log, or with nv-ipam the plugin "
    "sbr of the network, then delete the pod."
)
_IMAGE = "Give the test application an image with iproute2, and check which users can change its pods."
_ROW = {"flags": (None, [str]), "addr_info": (None, [{}]), "mtu": (None, int)}
_REMAKE = (
    "Delete the pod, so that its network is set up again; look at the log of the Spiderpool agent on the node, or with "
    "nv-ipam at those of kubelet and Multus."
)


def commands(node: PodNode) -> dict[str, tuple[str, ...]]:
    """Return the commands that are worth running in a pod of a node."""
    families = {str(ipaddress.ip_network(subnet).version) for net in node.networks for subnet in net.subnets}
    routed = any(net.gateways for net in node.networks)
    shared = any(not ATTACHMENTS[net.kind].own_device for net in node.networks)
    return {
        name: argv
        for name, argv in COMMANDS.items()
        if (name != "gids" or shared) and (name[-1] not in "46" or (routed and name[-1] in families))
    }


def gids_of(text: str) -> set[str]:
    """Return the GIDs that are IP addresses, as these."""
    found = set()
    for word in text.split():
        with contextlib.suppress(ValueError):
            address = ipaddress.IPv6Address(word)
            found.add(str(address.ipv4_mapped or address))
    return found


def inside_checks(node: PodNode, pod: t.Mapping[str, t.Any], outputs: t.Mapping[str, str]) -> list[Check]:
    """Return the checks of each rail, from what the commands inside of the pod printed.

    :param outputs: by the name in COMMANDS; what is not there was not run, or could not be.
    """
    printed: dict[str, list[Json]] = {}
    checks = []
    for name in outputs.keys() - {"gids"}:
        try:
            printed[name] = validate(sanitize(parsed(outputs[name] or "[]")), [_ROW], "what it printed")
        except InvalidData as exc:
            argv = " ".join(COMMANDS[name])
            cause = f"it printed {exc}"
            checks.append(check("pod_exec", node.name, None, f"rows of {argv}", "nonsense", cause, _IMAGE))
    rails = list(pod_rails(node, pod).values())
    for rail in rails:
        if "links" in printed:
            checks.append(_link_check(node, rail, printed["links"]))
        for family in (4, 6) if rail.network.gateways and not rail.default else ():
            if {f"rules{family}", f"routes{family}"} <= printed.keys():
                for address in _of_family(rail.ips, family):
                    rows = printed[f"rules{family}"], printed[f"routes{family}"]
                    checks += _way_checks(node, rail, address, *rows)
    for family in (4, 6):
        if f"routes{family}" in printed:
            checks.append(_main_check(node, rails, printed[f"routes{family}"], family))
    if "rdma" in printed:
        gids = gids_of(outputs["gids"]) if "gids" in outputs else None
        known = {str(row.get("interface") or "") for row in status_rows(pod["metadata"]) if row.get("name")}
        checks += _device_checks(node, rails, printed["rdma"], gids, known)
    return checks


def _of_family(addresses: t.Iterable[str], family: int) -> list[str]:
    return [address for address in addresses if (":" in address) == (family == 6)]


def _link_check(node: PodNode, rail: PodRail, links: list[Json]) -> Check:
    """Return whether the interface is up, with the planned MTU and the addresses that Multus wrote."""
    network, interface, ips = rail.network, rail.interface, sorted(rail.ips)
    planned = f"{interface} up" + (f", mtu {network.mtu}" if network.mtu else "") + "".join(f", {ip}" for ip in ips)
    link = next((row for row in links if row.get("ifname") == interface), None)
    fix = _REMAKE
    if link is None:
        cause = f"the pod has no interface {interface}"
        return check("pod_interface", node.name, network.rail, planned, "not there", cause, fix)
    flags = link.get("flags") or ()
    addresses = {str(row.get("local")) for row in link.get("addr_info") or () if row.get("scope") != "link"}
    shown = f"{interface} {'up' if 'UP' in flags else 'down'}, mtu {link.get('mtu')}"
    shown += "".join(f", {address}" for address in sorted(addresses))
    missing = [address for address in ips if address not in addresses]
    cause = ""
    if "UP" not in flags:
        cause = f"{interface} is down in the pod"
    elif "NO-CARRIER" in flags:
        cause = f"{interface} has no carrier: the node's rail is down"
        fix = "Look at the rail on the node: cable, leaf port, and the host's checks above."
    elif network.mtu and link.get("mtu") != network.mtu:
        cause = f"{interface} has another MTU than the network's config"
        fix = "Apply the objects (playbook railops.rdma.cluster), see the node's own MTU, and delete the pod."
    elif missing:
        cause = f"{', '.join(missing)} is not on {interface}"
    return check("pod_interface", node.name, network.rail, planned, shown, cause, fix)


def _way_checks(node: PodNode, rail: PodRail, address: str, rules: list[Json], routes: list[Json]) -> list[Check]:
    """Return whether packets from an address leave by its rail: by a rule, and by the table that the rule names."""
    network, interface = rail.network, rail.interface
    planned = f"from {address} by {interface}"
    tables = [str(row.get("table")) for row in rules if row.get("src") == address and row.get("table")]
    shown = ", ".join(f"lookup {table}" for table in tables) or "no rule"
    cause = "" if tables else f"no rule chooses a table for packets from {address}"
    found = [check("pod_rule", node.name, network.rail, planned, shown, cause, _TUNE)]
    gateway = next(iter(_of_family(network.gateways, 6 if ":" in address else 4)), "")
    if not tables or not gateway:
        return found
    table = tables[0]
    default = next((row for row in routes if row.get("dst") == "default" and str(row.get("table")) == table), None)
    planned = f"table {table}: default via {gateway} dev {interface}"
    shown, cause = f"table {table}: no default route", f"table {table} has no default route"
    if default is not None:
        shown = f"table {table}: {_route_text(default)}"
        if (default.get("gateway"), default.get("dev")) == (gateway, interface):
            cause = ""
        elif default.get("dev") != interface:
            cause = f"packets from {address} leave by {default.get('dev')}"
        else:
            cause = f"packets from {address} go to {default.get('gateway')}, which is not the rail's gateway"
    pools = "kubectl get spiderippools (with nv-ipam: cidrpools) -o yaml"
    fix = f"{_TUNE} The gateway comes from the rail's pool: {pools}."
    return [*found, check("pod_table", node.name, network.rail, planned, shown, cause, fix)]


def _route_text(route: Json) -> str:
    by = f" via {route['gateway']}" if route.get("gateway") else ""
    return f"{route.get('dst')}{by} dev {route.get('dev')}"


def _main_check(node: PodNode, rails: list[PodRail], routes: list[Json], family: int) -> Check:
    """Return whether the main table sends anything by a rail but what belongs to the rail's own subnet."""
    # A rail may be the pod's first network, by the annotation of its default network: then all of it is meant so.
    by_name = {rail.interface: rail.network for rail in rails if rail.interface and not rail.default}
    main = [
        row for row in routes if str(row.get("table", "main")) == "main" and row.get("type", "unicast") == "unicast"
    ]
    wrong = [
        row for row in main if (network := by_name.get(str(row.get("dev")))) and not _own(str(row.get("dst")), network)
    ]
    default = next((row for row in main if row.get("dst") == "default"), None)
    shown = "; ".join(_route_text(row) for row in wrong) or (_route_text(default) if default else "no default route")
    cause = fix = ""
    if wrong:
        cause = f"{wrong[0].get('dst')} leaves by {wrong[0].get('dev')}: traffic of the cluster goes over a rail"
        fix = f"Set coordinator.podDefaultRouteNIC to eth0 or leave it empty. {_TUNE}"
    planned = f"IPv{family}: default, service and pod networks by no rail"
    return check("pod_main_table", node.name, None, planned, shown, cause, fix)


def _own(destination: str, network: Network) -> bool:
    """Whether a destination is the rail's own: inside its subnets, or of the link alone."""
    try:
        target = ipaddress.ip_network(destination)
    except ValueError:
        return False
    if target.is_link_local or target.is_multicast:
        return True
    subnets = [ipaddress.ip_network(subnet) for subnet in network.subnets]
    return any(target.version == own.version and target.subnet_of(own) for own in subnets)  # type: ignore[arg-type]


def _device_checks(
    node: PodNode, rails: list[PodRail], links: list[Json], gids: t.Collection[str] | None, known: t.Collection[str]
) -> list[Check]:
    """Return whether each rail has its RDMA device, and whether the pod sees one that it must not see.

    :param gids: the addresses that devices have; None when they are not known.
    :param known: the interfaces of all networks of the pod, others' too.
    """
    checks = []
    active = sorted({str(row.get("ifname")).partition("/")[0] for row in links if row.get("state") == "ACTIVE"})
    for rail in rails:
        kind = ATTACHMENTS[rail.network.kind]
        if kind.own_device:
            checks.append(_own_device(node, rail, links))
        elif gids is not None and kind.gid_by_address and rail.ips:
            address = rail.ips[0]
            cause = "" if address in gids else f"no RDMA device in the pod has the GID of {address}"
            fix = "The kernel makes it when the interface is up on the rail's device: see the host's check rdma_device."
            planned, shown = f"an RDMA device with {address}", "none" if cause else address
            checks.append(check("pod_gid", node.name, rail.network.rail, planned, shown, cause, fix))
    if shared := [rail for rail in rails if not ATTACHMENTS[rail.network.kind].own_device]:
        few = f"the pod sees {len(active)} active RDMA devices for {len(shared)} rails"
        cause = few if len(active) < len(shared) else ""
        fix = "See the node's own RDMA devices (the checks rdma_device and rdma_port_state), and that its RDMA "
        fix += "namespace mode is shared."
        shown = ", ".join(active) or "none"
        checks.append(check("pod_rdma", node.name, None, f"{len(shared)} active RDMA devices", shown, cause, fix))
    elif rails:
        others = [row for row in links if str(row.get("netdev") or "") not in known]
        shown = ", ".join(f"{row.get('ifname')} {row.get('netdev') or ''}".strip() for row in others) or "none"
        cause = f"the pod also sees {len(others)} RDMA devices that are not its own" if others else ""
        fix = "Set the node's RDMA namespace mode to exclusive (role rdma_host), then delete the pod."
        checks.append(check("pod_rdma_isolation", node.name, None, "no other RDMA device", shown, cause, fix))
    return checks


def _own_device(node: PodNode, rail: PodRail, links: list[Json]) -> Check:
    """Return whether the interface came with its RDMA device."""
    interface = rail.interface
    rows = [row for row in links if row.get("netdev") == interface]
    shown = ", ".join(f"{row.get('ifname')} {row.get('state')}" for row in rows) or "none"
    cause = fix = ""
    if not rows:
        cause = f"the pod has no RDMA device for {interface}"
        fix = "See that the node's RDMA namespace mode is exclusive (rdma system), then delete the pod."
    elif not any(row.get("state") == "ACTIVE" for row in rows):
        cause = f"the RDMA device of {interface} is not active"
        fix = "Look at the rail on the node: cable, leaf port and, on InfiniBand, the subnet manager."
    return check("pod_rdma", node.name, rail.network.rail, f"an active RDMA device of {interface}", shown, cause, fix)
