# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The fabric of a lab: one network namespace with a bridge per rail (leaf), forwarding between them (spine) and a
management bridge. Nothing in it leads out of the machine."""

from __future__ import annotations

import typing as t
from pathlib import Path

import state
from shell import LabError, ip, run
from topology import FABRIC_MTU, MANAGEMENT, MANAGEMENT6, Gateway, Host, Lab, routed_ports

if t.TYPE_CHECKING:
    from collections.abc import Iterable

NAMESPACES = Path("/run/netns")
# A switch forwards, announces no shorter ways (several subnets may share a port), and does not check who sends.
SETTINGS = {
    "net/ipv4/ip_forward": 1,
    "net/ipv4/conf/all/rp_filter": 0,
    "net/ipv4/conf/default/rp_filter": 0,
    "net/ipv4/conf/all/send_redirects": 0,
    "net/ipv4/conf/default/send_redirects": 0,
    "net/ipv6/conf/all/forwarding": 1,
    "net/ipv6/conf/default/forwarding": 1,
    "net/ipv6/conf/all/accept_dad": 0,
    "net/ipv6/conf/default/accept_dad": 0,
    # A port has its gateway address again when a pulled cable is plugged.
    "net/ipv6/conf/all/keep_addr_on_down": 1,
    # Fleets of namespaces fill the default neighbor tables.
    "net/ipv6/icmp/ratelimit": 0,
}


def exists(namespace: str) -> bool:
    """Say whether a named network namespace is there."""
    return (NAMESPACES / namespace).exists()


def up(lab: Lab) -> None:
    """Make the fabric without any host."""
    if exists(lab.fabric):
        raise LabError(
            f"The network namespace {lab.fabric} is there, but no lab of that name is.",
            f"If it is unused: ip netns delete {lab.fabric}",
        )
    run(["ip", "netns", "add", lab.fabric])
    (state.folder(lab.name) / "namespace").touch()
    for name, value in SETTINGS.items():
        # Not every kernel has each of them.
        run(["ip", "netns", "exec", lab.fabric, "tee", f"/proc/sys/{name}"], stdin=f"{value}\n", check=False)
    bridges = ["mgmt", *(f"leaf{rail}" for rail in lab.rails)]
    commands: list[list[object]] = [["link", "set", "lo", "up"]]
    for bridge in bridges:
        commands.append(["link", "add", bridge, "type", "bridge", "mcast_snooping", 0])
        commands.append(["link", "set", bridge, "mtu", FABRIC_MTU if bridge != "mgmt" else 1500, "up"])
    commands.append(["address", "add", f"{MANAGEMENT[1]}/{MANAGEMENT.prefixlen}", "dev", "mgmt"])
    commands.append(["address", "add", f"{MANAGEMENT6[1]}/{MANAGEMENT6.prefixlen}", "dev", "mgmt", "nodad"])
    ip(lab.fabric, commands)


def plug(lab: Lab, host: Host) -> None:
    """Connect the ports of a host, which are there, to their bridges."""
    commands: list[list[object]] = [["link", "set", host.port(0), "master", "mgmt", "up"]]
    for rail in lab.rails:
        commands.append(["link", "set", host.port(rail), "mtu", FABRIC_MTU, "master", f"leaf{rail}", "up"])
        commands.append(["link", "set", host.port(rail), "alias", f"{host.name}:{lab.interfaces[rail - 1]}"])
    ip(lab.fabric, commands)


def set_gateways(lab: Lab, gateways: Iterable[Gateway]) -> None:
    """Give the leaves exactly these addresses; what an earlier plan gave them goes."""
    gateways = tuple(gateways)
    routed = routed_ports(lab, gateways)
    commands: list[list[object]] = []
    for rail in lab.rails:
        for device in (f"leaf{rail}", *(host.port(rail) for host in lab.hosts)):
            commands.append(["address", "flush", "dev", device, "scope", "global"])
    for (rail, name), alone in routed.items():
        port = lab.host(name).port(rail)
        commands.append(["link", "set", port, *(["nomaster"] if alone else ["master", f"leaf{rail}"])])
    for gateway in gateways:
        alone = gateway.host is not None and routed[gateway.rail, gateway.host]
        device = lab.host(gateway.host).port(gateway.rail) if alone and gateway.host else f"leaf{gateway.rail}"
        nodad = ["nodad"] if gateway.family == 6 else []
        commands.append(["address", "add", gateway.address, "dev", device, *nodad])
    ip(lab.fabric, commands)


def cable(lab: Lab, host: Host, rail: int, *, plugged: bool) -> None:
    """Pull or plug the cable of a rail at the switch's end."""
    ip(lab.fabric, [["link", "set", host.port(rail), "up" if plugged else "down"]])


def down(lab: Lab) -> None:
    """Remove the fabric and whatever cable ends in it."""
    if (state.folder(lab.name) / "namespace").exists() and exists(lab.fabric):
        run(["ip", "netns", "delete", lab.fabric])
