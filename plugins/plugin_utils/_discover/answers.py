# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host answered to rdma_info, as far as a proposal is made of it. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils._intake import INTERFACE, LINK, PCI, excerpt, measured, named, typed

if t.TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, t.Any]

_INFO = {"gpus": list, "devices": list, "default_interfaces": list, "lldp": dict}
_DEVICE = {"name": str, "pci": str, "vf": bool, "serves": str, "nearest_gpus": list, "ports": list}
_PORT = {"netdev": str, "link_layer": str, "state": str}


def info_of(answer: t.Any) -> Json:
    """Return a host's answer, measured, with the keys and types that a proposal is made of.

    :raises Nonsense: it is none.
    """
    info = typed(measured(answer), _INFO, "info")
    gpus = [typed(gpu, {"pci": str, "index": int}, "a GPU") for gpu in info["gpus"] or ()]
    devices = [_device(device) for device in info["devices"] or ()]
    kept = [name for name in info["default_interfaces"] or () if isinstance(name, str)]
    lldp = {name: row for name, row in (info["lldp"] or {}).items() if row}
    for row in lldp.values():
        typed(row, {"is_switch": bool}, "a neighbour")
    gpus = [gpu for gpu in gpus if None not in (gpu["pci"], gpu["index"])]
    return {**info, "gpus": gpus, "devices": devices, "default_interfaces": kept, "lldp": lldp}


def _device(answer: t.Any) -> Json:
    device = typed(answer, _DEVICE, "a device")
    named(device["name"], INTERFACE, "name of a device")
    if device["pci"] is not None:
        named(device["pci"], PCI, "PCI address")
    ports = [typed(port, _PORT, f"a port of {device['name']}") for port in device["ports"] or ()]
    for port in ports:
        if port["netdev"] is not None:
            named(port["netdev"], INTERFACE, "name of an interface")
    near = [gpu for gpu in device["nearest_gpus"] or () if isinstance(gpu, str)]
    return {**device, "ports": ports, "nearest_gpus": near}


def cable_of(neighbour: Mapping[str, t.Any]) -> tuple[str | None, str | None, str]:
    """Return switch and port at the other end of a cable, and what of them is no name, so that there is neither.

    Nothing where the neighbour is no switch: it is the NIC's own firmware, or another host.
    """
    if not neighbour.get("is_switch"):
        return None, None, ""
    names = [neighbour.get("switch"), neighbour.get("port")]
    for name in names:
        if name and not (isinstance(name, str) and LINK.fullmatch(name)):
            return None, None, excerpt(name)
    return names[0] or None, names[1] or None, ""
