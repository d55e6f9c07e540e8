# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the NVIDIA (Mellanox) cards of a host, what each does beside carrying rails, and where the rails lie."""

from __future__ import annotations

import json
import os
import typing as t

from .._untouchable import default_interfaces
from .duty import serving, storage_devices, storage_interfaces, used_vf
from .model import Card, PlacedRail
from .pci import ADDRESS, VENDOR_MELLANOX, PciFunction, PciTree, normal_address, pci_key, read_pci

if t.TYPE_CHECKING:
    from .._files import Run, Sysfs

ARPHRD_INFINIBAND = "32"
LAYER_OF_TYPE = {ARPHRD_INFINIBAND: "InfiniBand", "1": "Ethernet"}
# BlueField 2, 3 (with its Lx and SuperNIC models) and 4, and what their integrated controllers are called (pci.ids).
BLUEFIELDS = frozenset({0xA2D2, 0xA2D6, 0xA2D9, 0xA2DC, 0xA2DF})
# bond on vlan on card is three; more than a handful is a loop.
STACK_DEPTH = 8


def read_cards(sysfs: Sysfs, run: Run) -> tuple[Card, ...]:
    """Return the cards in PCI order, each with what it does beside carrying rails."""
    tree = read_pci(sysfs)
    functions: dict[str, list[PciFunction]] = {}
    for nic in tree.nics:
        if nic.vendor == VENDOR_MELLANOX:
            functions.setdefault(nic.card, []).append(nic)
    duties = _duties(sysfs, tree, functions, run) if functions else {}
    return tuple(
        Card(
            name=name,
            addresses=tuple(item.address for item in items),
            devices=tuple(device for item in items for device in (item.rdma or item.netdevs)),
            layers={item.address: layer for item in items if (layer := _layer(sysfs, item))},
            total_vfs=max(item.total_vfs for item in items),
            num_vfs=sum(item.num_vfs for item in items),
            bluefield=any(item.device in BLUEFIELDS for item in items),
            duty=duties.get(name),
        )
        for name, items in sorted(functions.items(), key=lambda entry: pci_key(f"{entry[0]}.0"))
    )


def place_rails(sysfs: Sysfs, rails: t.Iterable[dict[str, t.Any]]) -> tuple[PlacedRail, ...]:
    """Return where each rail of the plan lies: by its PCI address, or by the interface that it has now."""
    placed = []
    for rail in rails:
        address = normal_address(rail["pci"]) if rail.get("pci") else None
        if address is None:
            real = sysfs.real(f"/sys/class/net/{sysfs.kernel_name(rail['interface'])}/device") or ""
            address = next((part for part in reversed(real.split("/")) if ADDRESS.fullmatch(part)), None)
        placed.append(PlacedRail(rail["name"], rail["interface"], address))
    return tuple(placed)


def boot_id(sysfs: Sysfs) -> str:
    """Return this boot's identifier."""
    return sysfs.text("/proc/sys/kernel/random/boot_id") or ""


def _layer(sysfs: Sysfs, function: PciFunction) -> str | None:
    for device in function.rdma:
        for port in sysfs.names(f"/sys/class/infiniband/{device}/ports"):
            layer = sysfs.text(f"/sys/class/infiniband/{device}/ports/{port}/link_layer")
            if layer:
                return layer
    for netdev in function.netdevs:
        layer = LAYER_OF_TYPE.get(sysfs.text(f"/sys/class/net/{netdev}/type") or "")
        if layer:
            return layer
    return None


def _duties(sysfs: Sysfs, tree: PciTree, functions: dict[str, list[PciFunction]], run: Run) -> dict[str, str]:
    found = serving(sysfs, [item for items in functions.values() for item in items])
    for interface in default_interfaces(sysfs, run):
        for card in _cards_under(sysfs, tree, interface):
            found.setdefault(card, f"carries the default route ({interface})")
    for interface in connection_interfaces(sysfs, run):
        for card in _cards_under(sysfs, tree, interface):
            found.setdefault(card, f"carries Ansible's connection ({interface})")
    for device, duty in storage_devices(sysfs, run).items():
        for card in _card_of(sysfs, tree, f"/sys/class/infiniband/{device}"):
            found.setdefault(card, duty)
    for interface, duty in storage_interfaces(sysfs, run).items():
        for card in _cards_under(sysfs, tree, interface):
            found.setdefault(card, duty)
    for card, items in functions.items():
        used = next((used for item in items if (used := used_vf(tree, item))), None)
        if used:
            found.setdefault(card, used)
    return found


def connection_address(sysfs: Sysfs, pid: int | None = None) -> str | None:
    """Return this host's address of the SSH connection that this process hangs on, or None.

    sudo takes the variable out of its own environment, so the ancestors are asked.
    """
    current = os.getpid() if pid is None else pid
    for _generation in range(32):
        data = sysfs.data(f"/proc/{current}/environ") or b""
        for entry in data.split(b"\0"):
            if entry.startswith(b"SSH_CONNECTION="):
                words = entry.partition(b"=")[2].decode("ascii", "replace").split()
                if len(words) == 4:
                    return words[2].partition("%")[0]
        # The command's name stands in parentheses and may hold anything.
        fields = (sysfs.text(f"/proc/{current}/stat") or "").rpartition(")")[2].split()
        if len(fields) < 2 or int(fields[1]) < 1:
            return None
        current = int(fields[1])
    return None


def connection_interfaces(sysfs: Sysfs, run: Run) -> list[str]:
    """Return the interfaces that have this host's address of Ansible's connection."""
    address = connection_address(sysfs)
    return _interfaces_of(address, run) if address else []


def _interfaces_of(address: str, run: Run) -> list[str]:
    code, output, _errors = run(["ip", "-j", "address", "show"])
    if code:
        return []
    try:
        links = json.loads(output)
    except ValueError:
        return []
    return [
        link["ifname"]
        for link in links
        if any(item.get("local") == address for item in link.get("addr_info", [])) and link.get("ifname") != "lo"
    ]


def _cards_under(sysfs: Sysfs, tree: PciTree, interface: str) -> set[str]:
    """Return the cards below an interface: through bonds, bridges and VLANs; a VF counts for its card."""
    names, cards = {interface}, set()
    for _depth in range(STACK_DEPTH):
        lower = set()
        for name in names:
            cards |= _card_of(sysfs, tree, f"/sys/class/net/{name}")
            lower |= {entry[6:] for entry in sysfs.names(f"/sys/class/net/{name}") if entry.startswith("lower_")}
        names = lower
    return cards


def _card_of(sysfs: Sysfs, tree: PciTree, path: str) -> set[str]:
    real = sysfs.real(f"{path}/device") or ""
    addresses = [part for part in real.split("/") if ADDRESS.fullmatch(part)]
    if not addresses:
        return set()
    function = tree.functions.get(addresses[-1])
    physical = function.physfn if function is not None and function.physfn else addresses[-1]
    return {physical.rsplit(".", 1)[0]}
