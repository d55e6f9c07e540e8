# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the RDMA devices that are there with the rails that were planned. No files, no sockets."""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass

from .._card.pci import normal_address
from .info import roce_mtu

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LAYERS = {"roce": "Ethernet", "infiniband": "InfiniBand"}
CHECKS = ("rdma_device", "rdma_link_layer", "rdma_port_state", "rdma_mtu", "rdma_active_mtu", "rdma_subnet_manager")


@dataclass(frozen=True)
class Check:
    """One comparison: what was planned, what is there, and if they differ why and what to do."""

    id: str
    rail: str | None
    status: str  # ok, deviation, skipped
    planned: t.Any = None
    observed: t.Any = None
    cause: str | None = None
    fix: str | None = None


def compare(check: str, rail: str | None, planned: t.Any, observed: t.Any, cause: str, fix: str) -> Check:
    """Return a check that is ok when both are equal."""
    if planned == observed:
        return Check(check, rail, "ok", planned, observed)
    return Check(check, rail, "deviation", planned, observed, cause, fix)


def find_port(
    devices: Sequence[Mapping[str, t.Any]], rail: Mapping[str, t.Any], names: Mapping[str, str]
) -> tuple[Mapping[str, t.Any], Mapping[str, t.Any]] | None:
    """Return a rail's device and port: by its PCI address when it has one, else by its interface."""
    interface = names.get(rail["interface"], rail["interface"])
    address = normal_address(rail["pci"]) if rail.get("pci") else None
    for device in devices:
        for port in device["ports"]:
            if device["vf"] or (address and device["pci"] != address):
                continue
            if port["netdev"] == interface or (address and len(device["ports"]) == 1):
                return device, port
    return None


def check_rails(
    info: Mapping[str, t.Any],
    rails: Sequence[Mapping[str, t.Any]],
    network: str,
    names: Mapping[str, str] | None = None,
) -> list[dict[str, t.Any]]:
    """Return the checks of all rails. `names` gives the kernel's name for alternative names."""
    return [asdict(check) for rail in rails for check in _check_rail(info, rail, network, names or {})]


def _check_rail(
    info: Mapping[str, t.Any], rail: Mapping[str, t.Any], network: str, names: Mapping[str, str]
) -> Iterator[Check]:
    rail_name = rail["name"]
    found = find_port(info["devices"], rail, names)
    if found is None:
        yield _missing(info, rail, names)
        for check in CHECKS[1:]:
            yield Check(check, rail_name, "skipped", cause="The rail has no RDMA device.")
        return
    device, port = found
    where = f"{device['name']} port {port['port']}"
    yield Check("rdma_device", rail_name, "ok", rail["interface"], device["name"])
    layer = LAYERS[network]
    yield compare(
        "rdma_link_layer",
        rail_name,
        layer,
        port["link_layer"],
        f"{where} runs the other link layer.",
        "Set the rail's link type with the role nic_mode; it takes effect after a reset or reboot.",
    )
    yield compare(
        "rdma_port_state",
        rail_name,
        "ACTIVE",
        port["state"],
        f"{where} is {port['state']}, physically {port['phys_state']}.",
        _state_fix(port, network),
    )
    yield _check_mtu(rail, port, where)
    yield _check_active_mtu(rail, port, where, network)
    yield _check_subnet_manager(rail_name, port, where, network)


def _missing(info: Mapping[str, t.Any], rail: Mapping[str, t.Any], names: Mapping[str, str]) -> Check:
    interface = names.get(rail["interface"], rail["interface"])
    without = [nic for nic in info["nics_without_rdma"] if interface in nic["netdevs"]]
    planned = rail.get("pci") or rail["interface"]
    if without:
        cause = f"{interface} is there (driver {without[0]['driver']}), but no RDMA device belongs to it."
        fix = "Load the RDMA half of its driver (mlx5_ib for ConnectX) with the role rdma_driver."
    elif not info["devices"]:
        cause = "The host has no RDMA device at all."
        fix = "Install and load the drivers with the role rdma_driver, then look for the cards with lspci."
    else:
        cause = f"No RDMA device belongs to {planned}."
        fix = (
            "Look for the card with lspci -d 15b3:, for a renamed interface with the playbook railops.rdma.discover,"
            " and name it for this host in fabric_interfaces."
        )
    return Check("rdma_device", rail["name"], "deviation", planned, None, cause, fix)


def _state_fix(port: Mapping[str, t.Any], network: str) -> str:
    if port["phys_state"] not in (None, "LinkUp"):
        return "Check the cable, the transceiver and the switch port."
    if network == "infiniband":
        return "Start a subnet manager for this fabric: the link is up, but nobody has configured the port."
    return "Bring the interface up with the role rail_network."


def _check_mtu(rail: Mapping[str, t.Any], port: Mapping[str, t.Any], where: str) -> Check:
    if not rail.get("mtu"):
        return Check("rdma_mtu", rail["name"], "skipped", cause="The plan sets no MTU.")
    if port["netdev"] is None:
        return Check("rdma_mtu", rail["name"], "skipped", rail["mtu"], cause=f"{where} has no network interface.")
    return compare(
        "rdma_mtu",
        rail["name"],
        rail["mtu"],
        port["netdev_mtu"],
        f"{port['netdev']} has another MTU.",
        "Run the role rail_network.",
    )


def _check_active_mtu(rail: Mapping[str, t.Any], port: Mapping[str, t.Any], where: str, network: str) -> Check:
    wanted = roce_mtu(rail["mtu"]) if rail.get("mtu") and network == "roce" else None
    active = port["active_mtu"]
    if wanted is None or active is None:
        cause = "The plan sets no RoCE MTU." if wanted is None else "pyverbs is needed to read the active MTU."
        return Check("rdma_active_mtu", rail["name"], "skipped", wanted, active, cause)
    if active >= wanted:
        return Check("rdma_active_mtu", rail["name"], "ok", wanted, active)
    return Check(
        "rdma_active_mtu",
        rail["name"],
        "deviation",
        wanted,
        active,
        f"{where} moves at most {active} bytes a packet.",
        "Raise the MTU of the interface to 4200 or more for 4096, on the host and on the switch.",
    )


def _check_subnet_manager(rail: str, port: Mapping[str, t.Any], where: str, network: str) -> Check:
    if network != "infiniband":
        return Check("rdma_subnet_manager", rail, "skipped", cause="RoCE has no subnet manager.")
    if port["sm_lid"]:
        return Check("rdma_subnet_manager", rail, "ok", "a LID", port["sm_lid"])
    return Check(
        "rdma_subnet_manager",
        rail,
        "deviation",
        "a LID",
        port["sm_lid"],
        f"{where} knows no subnet manager.",
        "Start a subnet manager for this fabric (OpenSM, UFM or a managed switch) and check the cabling.",
    )
