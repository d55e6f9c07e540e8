# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the test application's pods with the plan. Pure.

Covers networks and addresses as Multus wrote them; `inside` covers what commands in a pod print. Every check names its
node: the verdict puts it to the host of that node.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._check import Check, compared, skipped
from .._cluster.model import Json
from .._cluster.pod_state import name_of, ready, trouble
from .._fabric.facts import PodNetwork, inside, networks_of, status_rows
from .._fabric.shapes import HostPlan, planned_rails
from .._validation import line


@dataclass(frozen=True)
class Network:
    """The planned network of a pod on one node and rail. `subnets` is empty where pods have no address (LID only)."""

    rail: str
    name: str
    """namespace/name of the network."""
    kind: str
    subnets: tuple[str, ...]
    gateways: tuple[str, ...]
    """The next hop of each family in the rail's own table; empty where no plugin tunes routes."""
    mtu: int


@dataclass(frozen=True)
class PodNode:
    """One node of the plan and the networks of its pods."""

    name: str
    networks: tuple[Network, ...]


def node_of(host_plan: HostPlan, networks: dict[str, list[PodNetwork]]) -> PodNode:
    """Return what pods on the node of a host plan get.

    :param piece: the host plan.
    :param networks: what pods get, by name profile.
    """
    names = [rail["interface"] for rail in planned_rails(host_plan)]
    here = {row["rail"]: row for row in networks_of(networks, names)}
    found = []
    for rail in host_plan["rails"]:
        if row := here.get(rail["name"]):
            addresses = rail.get("addresses") or ()
            subnets = tuple(address["subnet"] for address in addresses if row["addresses"])
            gateways = tuple(gateway for address in addresses if row["routes"] and (gateway := address["gateway"]))
            found.append(Network(rail["name"], row["name"], row["attachment"], subnets, gateways, row["mtu"]))
    return PodNode(host_plan["node"], tuple(found))


def check(
    name: str,
    node: str,
    rail: str | None,
    planned: object,
    observed: object,
    cause: str = "",
    fix: str = "",
    peers: t.Sequence[str] = (),
) -> Check:
    """Return a check; one with a cause is a deviation, of which `peers` are the nodes at the other end.

    :param name: the check's id.
    """
    reported = line(observed) if isinstance(observed, str) else observed
    return compared(name, planned, reported, line(cause) or "", fix, good=not cause, rail=rail, node=node, peers=peers)


def skipped_check(name: str, node: str | None, cause: str, fix: str = "", rail: str | None = None) -> Check:
    """Return a check that was not made.

    :param name: the check's id.
    """
    return skipped(name, line(cause) or "", fix, rail=rail, node=node)


class PodRail(t.NamedTuple):
    """A pod's network of a rail, as Multus wrote it. `default`: it is the pod's first network, for all its traffic."""

    network: Network
    interface: str
    ips: list[str]
    default: bool


def pod_rails(node: PodNode, pod: t.Mapping[str, t.Any]) -> dict[str, PodRail]:
    """Return what a pod has of the rails of its node, by their names; nothing when what Multus wrote cannot be read."""
    found = {row["name"]: row for row in status_rows(pod["metadata"]) if row.get("name")}
    return {
        network.rail: PodRail(network, have.get("interface") or "", have.get("ips") or [], bool(have.get("default")))
        for network in node.networks
        if (have := found.get(network.name)) is not None
    }


def network_checks(node: PodNode, pod: t.Mapping[str, t.Any], events: t.Sequence[Json] = ()) -> list[Check]:
    """Return whether the pod runs, and for each rail whether it has the rail's network with the planned addresses.

    :param events: of a pod that does not run.
    """
    planned = f"{name_of(pod)} runs with {len(node.networks)} rails"
    if not ready(pod):
        phase = (pod.get("status") or {}).get("phase") or "Unknown"
        why = trouble(pod, events)
        return [check("pod_running", node.name, None, planned, phase, why.text, why.fix)]
    found = pod_rails(node, pod)
    checks = [check("pod_running", node.name, None, planned, "Running")]
    for network in node.networks:
        have = found.get(network.rail)
        planned_network = ", ".join((network.name, *network.subnets))
        if have is None:
            wrote = status_rows(pod["metadata"])
            cause = "the pod was started without this network" if wrote else "Multus wrote no network-status to the pod"
            fix = (
                "Apply the test application again (role rail_objects, tasks_from test_application); with injection "
                "check that the namespace is among namespacesInclude."
            )
            checks.append(check("pod_network", node.name, network.rail, planned_network, "not attached", cause, fix))
            continue
        shown = f"{have.interface or '?'} {', '.join(have.ips) or 'without address'}"
        outside = [address for address in have.ips if not inside(address, network.subnets)]
        lacking = [subnet for subnet in network.subnets if not any(inside(address, [subnet]) for address in have.ips)]
        cause = fix = ""
        if network.subnets and (outside or lacking):
            cause = f"it has no address of {', '.join(lacking)}"
            cause = f"{', '.join(outside)} is not of the planned pool" if outside else cause
            pools = "(kubectl get spiderippools, with nv-ipam cidrpools)"
            fix = f"Delete the pod, so that it gets its addresses from the present pools {pools}."
        checks.append(check("pod_network", node.name, network.rail, planned_network, shown, cause, fix))
    return checks
