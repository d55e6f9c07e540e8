# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the NVIDIA (Mellanox) cards of a host, what each does beside carrying rails, and where the rails lie."""

from __future__ import annotations

import typing as t

from .._errors import RdmaError
from .._files import ETHERNET, INFINIBAND
from .._formatting import group_by
from .model import Card, PlacedRail
from .pci import VENDOR_MELLANOX, PciFunction, PciTree, normal_address, pci_key, read_pci
from .port_roles import dependents, device_roles, serving, used_vf

if t.TYPE_CHECKING:
    from .._files import Sysfs
    from .._management_network import ManagementNetwork
    from .._programs import Machine

LAYERS: dict[t.Any, str] = {"InfiniBand": "ib", "Ethernet": "eth", INFINIBAND: "ib", ETHERNET: "eth"}
# BlueField 2, 3 (with its Lx and SuperNIC models) and 4, and what their integrated controllers are called (pci.ids).
BLUEFIELDS = frozenset({0xA2D2, 0xA2D6, 0xA2D9, 0xA2DC, 0xA2DF})


def read_cards(
    machine: Machine, management_network: t.Callable[[], ManagementNetwork], prefixes: t.Iterable[str] = ()
) -> tuple[Card, ...]:
    """Return the cards in PCI order, each with what it does beside carrying rails.

    :param management_network: returns what carries the host's own network; called only when there are cards.
    :param prefixes: the networks of the fabric, whose addresses a card may have.
    """
    tree = read_pci(machine)
    functions = group_by((nic.card, nic) for nic in tree.nics if nic.vendor == VENDOR_MELLANOX)
    if not functions:
        return ()
    network = management_network()
    if machine.names("/sys/class/infiniband") and not machine.tool("rdma"):
        raise RdmaError(
            "This host has no program `rdma`: which card carries its own network or storage is not known.",
            "Install iproute2. [iproute2_missing]",
        )
    roles = _roles(machine, tree, functions, network)
    uses = dependents(network, prefixes)
    return tuple(
        Card(
            name=name,
            addresses=tuple(item.address for item in items),
            devices=tuple(device for item in items for device in (item.rdma or item.netdevs)),
            layers={item.address: layer for item in items if (layer := _layer(machine, item))},
            total_vfs=max(item.total_vfs for item in items),
            bluefield=any(item.device in BLUEFIELDS for item in items),
            role=roles.get(name),
            standing=next((f"{uses[port]} ({port})" for item in items for port in item.netdevs if port in uses), None),
        )
        for name, items in sorted(functions.items(), key=lambda entry: pci_key(f"{entry[0]}.0"))
    )


def place_rails(sysfs: Sysfs, rails: t.Iterable[dict[str, t.Any]]) -> t.Iterator[PlacedRail]:
    """Yield where each rail of the plan lies: by its PCI address, or by the interface that it has now."""
    for rail in rails:
        address = normal_address(rail["pci"]) if rail.get("pci") else None
        if address is None:
            address = sysfs.pci_address(f"/sys/class/net/{sysfs.kernel_name(rail['interface'])}")
        yield PlacedRail(rail["name"], rail["interface"], address)


def _layer(sysfs: Sysfs, function: PciFunction) -> str | None:
    homes = (f"/sys/class/infiniband/{device}/ports" for device in function.rdma)
    layers = (sysfs.text(f"{home}/{port}/link_layer") for home in homes for port in sysfs.names(home))
    kinds = (sysfs.number(f"/sys/class/net/{netdev}/type") for netdev in function.netdevs)
    return next(filter(None, map(LAYERS.get, (*layers, *kinds))), None)


def _roles(
    machine: Machine, tree: PciTree, functions: dict[str, list[PciFunction]], network: ManagementNetwork
) -> dict[str, str]:
    found = serving(machine, [item for items in functions.values() for item in items])
    for path, role in device_roles(machine, network).items():
        name = path.rpartition("/")[2]
        if function := tree.functions.get(machine.pci_address(path) or ""):
            card = (function.physfn or function.address).rsplit(".", 1)[0]
            found.setdefault(card, role if name in role else f"{role} ({name})")
    for card, items in functions.items():
        if used := next(filter(None, (used_vf(tree, item) for item in items)), None):
            found.setdefault(card, used)
    return found
