# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module util is PRIVATE to the collection.

"""Compares the test application's pods with the plan. Pure.

First networks and addresses as Multus wrote them, then NICs, rules and RDMA devices as commands inside of the pod print
them. Every check names its node: the verdict puts it to the host of that node.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import typing as t
from dataclasses import dataclass

from ansible_collections.railops.rdma.plugins.module_utils._fabric_names import short_name

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Json = t.Dict[str, t.Any]  # noqa: UP006 - evaluated on Python 3.9
Check = Json

STATUS_ANNOTATION = "k8s.v1.cni.cncf.io/network-status"
# Attachments that move the RDMA device into the pod, with the interface; the others share the node's.
OWN_DEVICE = ("sriov", "ib-sriov")
# What is run in a pod: no shell, as an image may have none. Address and rule are asked for the families of the plan.
COMMANDS: dict[str, tuple[str, ...]] = {
    "rules4": ("ip", "-json", "-4", "rule", "show"),
    "rules6": ("ip", "-json", "-6", "rule", "show"),
    "routes4": ("ip", "-json", "-4", "route", "show", "table", "all"),
    "routes6": ("ip", "-json", "-6", "route", "show", "table", "all"),
    "links": ("ip", "-json", "address", "show"),
    "rdma": ("rdma", "-json", "link", "show"),
}


@dataclass(frozen=True)
class Network:
    """What a pod on one node gets of one rail. `subnets` is empty where pods have no address (LID only)."""

    rail: str
    name: str
    """namespace/name of the network."""
    kind: str
    resource: str
    subnets: tuple[str, ...]
    gateway: bool
    mtu: int


@dataclass(frozen=True)
class Node:
    """One node of the plan and the networks of its pods."""

    name: str
    networks: tuple[Network, ...]


def _config_of(configs: Mapping[str, Json], fabric: str, rail: str, interfaces: Sequence[str]) -> Json | None:
    """Return a rail's config on a node with these interfaces: that of its name profile, else the declared one."""
    digest = hashlib.sha256("\0".join(interfaces).encode()).hexdigest()[:6]
    own = configs.get(short_name(f"{fabric}-{rail}-p{digest}"))
    return own or configs.get(short_name(f"{fabric}-{rail}"))


def node_of(piece: Mapping[str, t.Any], configs: Iterable[Json]) -> Node:
    """Return what pods on the node of a slice get.

    :param piece: the host's slice of the plan.
    :param configs: the plan's SpiderMultusConfigs.
    """
    named = {config["metadata"]["name"]: config for config in configs}
    interfaces = [rail["interface"] for rail in piece["rails"]]
    networks = []
    for rail in piece["rails"]:
        config = _config_of(named, piece["fabric"], rail["name"], interfaces)
        if config is None:
            continue
        spec = config["spec"]
        block = spec.get(spec["cniType"].replace("-", "")) or {}
        pooled = not spec.get("disableIPAM")
        tuned = spec.get("enableCoordinator") and (spec.get("coordinator") or {}).get("tunePodRoutes", True)
        networks.append(
            Network(
                rail["name"],
                f"{config['metadata']['namespace']}/{config['metadata']['name']}",
                spec["cniType"],
                str(block.get("rdmaResourceName") or block.get("resourceName") or ""),
                tuple(address["subnet"] for address in rail.get("addresses") or ()) if pooled else (),
                bool(tuned) and any(address.get("gateway") for address in rail.get("addresses") or ()),
                int(block.get("mtu") or 0),
            )
        )
    return Node(piece["node"], tuple(networks))


def check(
    name: str, node: str, rail: str | None, planned: object, observed: object, cause: str = "", fix: str = ""
) -> Check:
    """Return a check; one with a cause is a deviation."""
    status = "deviation" if cause else "ok"
    made = {"id": name, "rail": rail, "node": node, "status": status}
    return {**made, "planned": planned, "observed": observed, "cause": cause, "fix": fix}


def left_out(name: str, node: str | None, cause: str, fix: str = "", rail: str | None = None) -> Check:
    """Return a check that was not made."""
    made = {"id": name, "rail": rail, "node": node, "status": "skipped"}
    return {**made, "planned": None, "observed": None, "cause": cause, "fix": fix}


def pod_name(pod: Mapping[str, t.Any]) -> str:
    """Return namespace/name."""
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def attachments(pod: Mapping[str, t.Any]) -> dict[str, Json]:
    """Return what Multus wrote of each network of a pod: name, interface, ips. Nothing when it cannot be read."""
    text = (pod["metadata"].get("annotations") or {}).get(STATUS_ANNOTATION) or "[]"
    try:
        return {entry["name"]: entry for entry in json.loads(text) if isinstance(entry, dict) and "name" in entry}
    except (ValueError, TypeError):
        return {}


def newest(pods: Iterable[Json]) -> dict[str, Json]:
    """Return the pod of each node: not one that is going, and the newest where a new one comes in its place."""
    found: dict[str, Json] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "")):
        name = wanted_node(pod)
        if name and not pod["metadata"].get("deletionTimestamp"):
            found[name] = pod
    return found


def wanted_node(pod: Mapping[str, t.Any]) -> str:
    """Return the node of a pod: where it runs, else where alone it may."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    for term in affinity.get("nodeSelectorTerms") or ():
        for row in term.get("matchFields") or ():
            if row.get("key") == "metadata.name" and len(row.get("values") or ()) == 1:
                return str(row["values"][0])
    return ""


def stuck(pod: Mapping[str, t.Any], events: Sequence[str] = ()) -> tuple[str, str]:
    """Say why a pod does not run, and what to do.

    :param events: messages of the pod's warnings, the newest last.
    """
    status = pod.get("status") or {}
    name = pod_name(pod)
    look = f"Look at kubectl -n {name.partition('/')[0]} describe pod {name.partition('/')[2]}."
    for row in status.get("conditions") or ():
        if row.get("type") == "PodScheduled" and row.get("status") == "False":
            told = str(row.get("message") or row.get("reason") or "no reason given").rstrip(".")
            if "Insufficient" in told:
                fix = (
                    "The node offers too little of that resource, or pods hold all of it: compare the check "
                    "node_resources, fabric_hca_max and fabric_vfs."
                )
            else:
                fix = "Look at the node's taints and at kubectl get nodes (cordoned, not ready)."
            return f"no node takes the pod: {told}", fix
    for row in status.get("containerStatuses") or ():
        waiting = (row.get("state") or {}).get("waiting") or {}
        reason = str(waiting.get("reason") or "")
        if reason and reason not in ("ContainerCreating", "PodInitializing"):
            told = str(waiting.get("message") or "").rstrip(".")
            if "Image" in reason:
                look = "Check that the node can pull the image of the test application (rail_objects_test_image)."
            return f"its container does not start: {reason}{': ' + told if told else ''}", look
    if events:
        told = events[-1].strip().rstrip(".")
        if "IPPool" in told or "no available IP" in told:
            look = "Look at kubectl get spiderippools: the rail's pool for this node is full, disabled or missing."
        return f"the pod does not start: {told}", look
    if status.get("reason") or status.get("message"):
        told = ": ".join(str(status[key]).rstrip(".") for key in ("reason", "message") if status.get(key))
        return f"the pod is {status.get('phase') or 'Unknown'}: {told}", look
    return f"the pod is {status.get('phase') or 'Unknown'}", look


def ready(pod: Mapping[str, t.Any]) -> bool:
    """Say whether commands can be run in a pod."""
    return bool((pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"))


def _inside(address: str, subnets: Iterable[str]) -> bool:
    try:
        value = ipaddress.ip_address(address)
        return any(value in ipaddress.ip_network(subnet) for subnet in subnets)
    except ValueError:
        return False


def network_checks(node: Node, pod: Mapping[str, t.Any], events: Sequence[str] = ()) -> list[Check]:
    """Return whether the pod runs, and for each rail whether it has the rail's network with the planned addresses."""
    name = pod_name(pod)
    planned = f"{name} runs with {len(node.networks)} rails"
    if not ready(pod):
        phase = (pod.get("status") or {}).get("phase") or "Unknown"
        cause, fix = stuck(pod, events)
        return [check("pod", node.name, None, planned, phase, cause, fix)]
    found = attachments(pod)
    checks = [check("pod", node.name, None, planned, "Running")]
    for network in node.networks:
        have = found.get(network.name)
        told = ", ".join((network.name, *network.subnets))
        if have is None:
            cause = "the pod was started without this network" if found else "Multus wrote no network-status to the pod"
            fix = (
                "Apply the test application again (role rail_objects, tasks_from test_application); with injection see "
                "that the namespace is among namespacesInclude."
            )
            checks.append(check("pod_network", node.name, network.rail, told, "not attached", cause, fix))
            continue
        ips = [str(address) for address in have.get("ips") or ()]
        shown = f"{have.get('interface', '?')} {', '.join(ips) or 'without address'}"
        outside = [address for address in ips if not _inside(address, network.subnets)]
        lacking = [subnet for subnet in network.subnets if not any(_inside(address, [subnet]) for address in ips)]
        cause = fix = ""
        if network.subnets and (outside or lacking):
            cause = (
                f"{', '.join(outside)} is not of the planned pool"
                if outside
                else f"it has no address of {', '.join(lacking)}"
            )
            fix = "Delete the pod, so that it gets its addresses from the present pools (kubectl get spiderippools)."
        checks.append(check("pod_network", node.name, network.rail, told, shown, cause, fix))
    return checks


def commands(node: Node) -> dict[str, tuple[str, ...]]:
    """Return the commands that are worth running in a pod of a node."""
    families = {str(ipaddress.ip_network(subnet).version) for net in node.networks for subnet in net.subnets}
    return {
        name: argv
        for name, argv in COMMANDS.items()
        if name[-1] not in "46" or (name[-1] in families and any(net.gateway for net in node.networks))
    }


def rows_of(text: str) -> list[Json] | None:
    """Return what `ip -json` or `rdma -json` printed; None when that is no list of rows."""
    try:
        rows = json.loads(text or "[]")
    except ValueError:
        return None
    if not isinstance(rows, list):
        return None
    return [row for row in rows if isinstance(row, dict)]


def inside_checks(node: Node, pod: Mapping[str, t.Any], outputs: Mapping[str, str]) -> list[Check]:
    """Return what the commands inside of the pod say of each rail.

    :param outputs: by the name in COMMANDS; what is not there was not asked, or could not be.
    """
    printed = {name: rows_of(text) for name, text in outputs.items()}
    found = attachments(pod)
    checks = []
    for network in node.networks:
        have = found.get(network.name)
        if have is None:
            continue
        interface = str(have.get("interface") or "")
        if printed.get("links") is not None:
            checks.append(_link_check(node, network, interface, have, printed["links"] or []))
        for family in ("4", "6"):
            rules, routes = printed.get(f"rules{family}"), printed.get(f"routes{family}")
            if network.gateway and rules is not None and routes is not None:
                addresses = [a for a in have.get("ips") or () if (":" in str(a)) == (family == "6")]
                checks += [_rule_check(node, network, interface, str(a), rules, routes) for a in addresses]
    if printed.get("rdma") is not None:
        checks += _device_checks(node, found, printed["rdma"] or [])
    return checks


def _link_check(node: Node, network: Network, interface: str, have: Json, links: list[Json]) -> Check:
    """Return whether the interface is up, with the planned MTU and the addresses that Multus wrote."""
    ips = sorted(str(address) for address in have.get("ips") or ())
    planned = f"{interface} up" + (f", mtu {network.mtu}" if network.mtu else "") + "".join(f", {ip}" for ip in ips)
    link = next((row for row in links if row.get("ifname") == interface), None)
    fix = "Delete the pod, so that its network is made anew; look at the log of the Spiderpool agent on the node."
    if link is None:
        cause = f"the pod has no interface {interface}"
        return check("pod_nic", node.name, network.rail, planned, "not there", cause, fix)
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
    return check("pod_nic", node.name, network.rail, planned, shown, cause, fix if cause else "")


def _rule_check(
    node: Node, network: Network, interface: str, address: str, rules: list[Json], routes: list[Json]
) -> Check:
    """Return whether answers leave by the NIC of their source address: by a rule, and a route in its table."""
    planned = f"from {address} by {interface}"
    tables = [str(row.get("table")) for row in rules if row.get("src") == address and row.get("table")]
    by = {str(row.get("table", "main")) for row in routes if row.get("dev") == interface}
    # The NIC that carries the pod's default route needs no rule.
    default = any(
        row.get("dst") == "default" and row.get("dev") == interface and str(row.get("table", "main")) == "main"
        for row in routes
    )
    fix = "See coordinator.tunePodRoutes of the network's config and the Spiderpool agent's log, then delete the pod."
    if default:
        return check("pod_rule", node.name, network.rail, planned, f"{interface} carries the default route")
    shown = ", ".join(f"lookup {table}" for table in tables) or "no rule"
    if not tables:
        cause = f"no rule chooses a table for packets from {address}"
    elif not any(table in by for table in tables):
        cause = f"table {', '.join(tables)} holds no route over {interface}"
    else:
        cause = ""
    return check("pod_rule", node.name, network.rail, planned, shown, cause, fix if cause else "")


def _device_checks(node: Node, found: Mapping[str, Json], links: list[Json]) -> list[Check]:
    """Return whether each rail has its RDMA device: its own, or where devices are shared, an active one a rail."""
    checks = []
    active = sorted({str(row.get("ifname")).partition("/")[0] for row in links if row.get("state") == "ACTIVE"})
    shared = [network for network in node.networks if network.kind not in OWN_DEVICE and network.name in found]
    for network in node.networks:
        if network.kind not in OWN_DEVICE or network.name not in found:
            continue
        interface = str(found[network.name].get("interface") or "")
        mine = [row for row in links if row.get("netdev") == interface]
        shown = ", ".join(f"{row.get('ifname')} {row.get('state')}" for row in mine) or "none"
        cause = fix = ""
        if not mine:
            cause = f"the pod has no RDMA device for {interface}"
            fix = "See that the node's RDMA namespace mode is exclusive (rdma system), then delete the pod."
        elif not any(row.get("state") == "ACTIVE" for row in mine):
            cause = f"the RDMA device of {interface} is not active"
            fix = "Look at the rail on the node: cable, leaf port and, on InfiniBand, the subnet manager."
        checks.append(
            check("pod_rdma", node.name, network.rail, f"an active RDMA device of {interface}", shown, cause, fix)
        )
    if shared:
        cause = fix = ""
        if len(active) < len(shared):
            cause = f"the pod sees {len(active)} active RDMA devices for {len(shared)} rails"
            fix = (
                "See the node's own RDMA devices (the checks rdma_device and rdma_port_state), and that its RDMA "
                "namespace mode is shared."
            )
        shown = ", ".join(active) or "none"
        checks.append(check("pod_rdma", node.name, None, f"{len(shared)} active RDMA devices", shown, cause, fix))
    return checks
