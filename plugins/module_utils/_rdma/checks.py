# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the RDMA devices that are there with the rails that were planned. No files, no sockets."""

from __future__ import annotations

import typing as t

from .._card.pci import normal_address
from .._check import Check, by_role, compared, deviation, ok, skipped
from .info import roce_mtu

LAYERS = {"roce": "Ethernet", "infiniband": "InfiniBand"}
CHECKS = ("rdma_device", "rdma_link_layer", "rdma_port_state", "rdma_mtu", "rdma_active_mtu", "rdma_subnet_manager")


def find_port(
    devices: t.Sequence[t.Mapping[str, t.Any]], rail: t.Mapping[str, t.Any], names: t.Mapping[str, str]
) -> tuple[t.Mapping[str, t.Any], t.Mapping[str, t.Any]] | None:
    """Return a rail's device and port: by its PCI address when both have one, else by its interface."""
    interface = names.get(rail["interface"], rail["interface"])
    address = normal_address(rail["pci"]) if rail.get("pci") else None
    for device in devices:
        for port in device["ports"]:
            # Soft-RoCE devices have no place on the PCI bus.
            if device["vf"] or (address and device["pci"] not in (None, address)):
                continue
            if port["netdev"] == interface or (address and device["pci"] and len(device["ports"]) == 1):
                return device, port
    return None


def check_rails(
    info: t.Mapping[str, t.Any],
    rails: t.Sequence[t.Mapping[str, t.Any]],
    network: str,
    names: t.Mapping[str, str] | None = None,
) -> list[Check]:
    """Return the checks of all rails. `names` gives the kernel's name for alternative names."""
    return [check for rail in rails for check in _check_rail(info, rail, network, names or {})]


def _check_rail(
    info: t.Mapping[str, t.Any], rail: t.Mapping[str, t.Any], network: str, names: t.Mapping[str, str]
) -> t.Iterator[Check]:
    rail_name = rail["name"]
    found = find_port(info["devices"], rail, names)
    if found is None:
        yield _missing(info, rail, names)
        for check in CHECKS[1:]:
            yield skipped(check, "The rail has no RDMA device.", rail=rail_name)
        return
    device, port = found
    where = f"{device['name']} port {port['port']}"
    yield ok("rdma_device", rail["interface"], device["name"], rail=rail_name)
    yield compared(
        "rdma_link_layer",
        LAYERS[network],
        port["link_layer"],
        f"{where} runs the other link layer.",
        "Set the port's link type with the role nic_link_type (site_host_roles), or correct fabric_network.",
        rail=rail_name,
    )
    yield compared(
        "rdma_port_state",
        "ACTIVE",
        port["state"],
        f"{where} is {port['state']}, physically {port['phys_state']}.",
        _state_fix(port, network),
        rail=rail_name,
    )
    yield _check_mtu(rail, port, where)
    yield _check_active_mtu(rail, port, where, network)
    yield _check_subnet_manager(rail_name, port, where, network)
    if network == "infiniband" and device["num_vfs"]:
        yield _check_functions(rail_name, device, info["devices"])


NO_GUID = "0000:0000:0000:0000"


def _check_functions(rail: str, device: t.Mapping[str, t.Any], devices: t.Sequence[t.Mapping[str, t.Any]]) -> Check:
    """Check an InfiniBand rail's virtual functions that are not in pods."""
    here = [item for item in devices if item["vf"] and item["physfn"] == device["pci"]]
    if not here:
        cause = f"Not seen: all {device['num_vfs']} virtual functions are in pods, or none has a driver."
        return skipped("rdma_vf_guid", cause, rail=rail)
    guids = [item["node_guid"] for item in devices if item["node_guid"]]
    bad = [item["name"] for item in here if item["node_guid"] in (None, NO_GUID) or guids.count(item["node_guid"]) > 1]
    return compared(
        "rdma_vf_guid",
        [],
        bad,
        f"{', '.join(bad)}: no GUID, or that of another device; no pod can use such a function.",
        "Check whether the SR-IOV operator has finished the node, and its GUIDs (/etc/sriov-operator/infiniband).",
        rail=rail,
    )


def _missing(info: t.Mapping[str, t.Any], rail: t.Mapping[str, t.Any], names: t.Mapping[str, str]) -> Check:
    interface = names.get(rail["interface"], rail["interface"])
    without = [nic for nic in info["nics_without_rdma"] if interface in nic["netdevs"]]
    planned = rail.get("pci") or rail["interface"]
    if without:
        cause = f"{interface} exists (driver {without[0]['driver']}), but no RDMA device belongs to it."
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
    return deviation("rdma_device", planned, None, cause, fix, rail=rail["name"])


def _state_fix(port: t.Mapping[str, t.Any], network: str) -> str:
    if port["phys_state"] not in (None, "LinkUp"):
        return "Check the cable, the transceiver and the switch port."
    if network == "infiniband":
        return "Start a subnet manager for this fabric: the link is up, but no subnet manager has configured the port."
    return "Bring the interface up with the role rail_network."


def _check_mtu(rail: t.Mapping[str, t.Any], port: t.Mapping[str, t.Any], where: str) -> Check:
    name = rail["name"]
    if not rail.get("mtu"):
        return skipped("rdma_mtu", "The plan sets no MTU.", rail=name)
    if port["netdev"] is None:
        return skipped("rdma_mtu", f"{where} has no network interface.", planned=rail["mtu"], rail=name)
    cause = f"{port['netdev']} has another MTU."
    return compared("rdma_mtu", rail["mtu"], port["netdev_mtu"], cause, by_role("rail_network"), rail=name)


def _check_active_mtu(rail: t.Mapping[str, t.Any], port: t.Mapping[str, t.Any], where: str, network: str) -> Check:
    wanted = roce_mtu(rail["mtu"]) if rail.get("mtu") and network == "roce" else None
    active = port["active_mtu"]
    if wanted is None or active is None:
        cause = "The plan sets no RoCE MTU." if wanted is None else "ibv_devinfo is needed to read the active MTU."
        return skipped("rdma_active_mtu", cause, planned=wanted, rail=rail["name"])
    return compared(
        "rdma_active_mtu",
        wanted,
        active,
        f"{where} moves at most {active} bytes per packet.",
        "Raise the MTU of the interface to 4200 or more for 4096, on the host and on the switch.",
        good=active >= wanted,
        rail=rail["name"],
    )


def _check_subnet_manager(rail: str, port: t.Mapping[str, t.Any], where: str, network: str) -> Check:
    if network != "infiniband":
        return skipped("rdma_subnet_manager", "RoCE has no subnet manager.", rail=rail)
    return compared(
        "rdma_subnet_manager",
        "a LID",
        port["sm_lid"],
        f"{where} has no subnet manager.",
        "Start a subnet manager for this fabric (OpenSM, UFM or a managed switch) and check the cabling.",
        good=bool(port["sm_lid"]),
        rail=rail,
    )
