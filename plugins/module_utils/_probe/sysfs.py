# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds the RDMA device, port and GID index behind a rail, and reads a port's counters, from sysfs."""

from __future__ import annotations

import ipaddress
import typing as t
from dataclasses import dataclass, replace

from .._errors import RdmaError
from .counters import kind_of

if t.TYPE_CHECKING:
    from .._files import Sysfs

DEVICES = "/sys/class/infiniband"
ROCE_V2 = "RoCE v2"


@dataclass(frozen=True)
class Port:
    """One RDMA port in sysfs. `gid_index`: of the rail's address; None on InfiniBand, which has LIDs."""

    device: str
    number: int
    state: str
    gid_index: int | None = None

    @property
    def folder(self) -> str:
        """The port's folder in sysfs."""
        return f"{DEVICES}/{self.device}/ports/{self.number}"


def gid_of(address: str) -> str:
    """Return the GID of an address as sysfs writes it; an IPv4 address is mapped (::ffff:a.b.c.d)."""
    parsed = ipaddress.ip_address(address)
    value = int(parsed) if parsed.version == 6 else 0xFFFF << 32 | int(parsed)
    # Python 3.13 writes mapped addresses with dots, also exploded.
    return value.to_bytes(16, "big").hex(":", 2)


def ports(sysfs: Sysfs) -> t.Iterator[Port]:
    """Yield every RDMA port that this network namespace sees."""
    for device in sysfs.names(DEVICES):
        for number in sysfs.names(f"{DEVICES}/{device}/ports"):
            folder = f"{DEVICES}/{device}/ports/{number}"
            state = (sysfs.text(f"{folder}/state") or "").partition(":")[2].strip()
            yield Port(device, int(number), state)


def gid_indexes(sysfs: Sysfs, port: Port, address: str) -> t.Iterator[int]:
    """Yield the indexes of an address's RoCE v2 GIDs at a port."""
    wanted = gid_of(address)
    for name in sorted(sysfs.names(f"{port.folder}/gids"), key=int):
        own = sysfs.text(f"{port.folder}/gids/{name}") == wanted
        if own and sysfs.text(f"{port.folder}/gid_attrs/types/{name}") == ROCE_V2:
            yield int(name)


def rdma_port(sysfs: Sysfs, interface: str, known: t.Sequence[Port]) -> Port | None:
    """Return the RDMA port of an interface: of its function, or a soft-RoCE device stacked on it."""
    own = sysfs.names(f"/sys/class/net/{interface}/device/infiniband")
    number = (sysfs.number(f"/sys/class/net/{interface}/dev_port") or 0) + 1
    found = (
        port
        for port in known
        if (port.device in own and (port.number == number or len(own) > 1))
        or sysfs.text(f"{DEVICES}/{port.device}/parent") == interface
    )
    return next(found, None)


def find_endpoint(sysfs: Sysfs, rail: str, interface: str, address: str, network: str) -> Port:
    """Return the RDMA end of a rail.

    :param address: the rail's own.
    :param network: `roce` (by the address's RoCE v2 GID) or `infiniband` (by the interface).
    :raises RdmaError: with the cause when there is none.
    """
    seen = list(ports(sysfs))
    if not seen:
        raise RdmaError(
            f"Rail {rail!r} ({interface}): this host shows no RDMA device.",
            "Load the NIC's RDMA driver (mlx5_ib, rdma_rxe ...), and check whether a pod holds them (rdma dev "
            "show). [rdma_device_missing]",
        )
    if network == "infiniband":
        port = rdma_port(sysfs, interface, seen)
        if port is None:
            raise RdmaError(
                f"Rail {rail!r}: no InfiniBand port belongs to the interface {interface!r}.",
                "Look at /sys/class/net/INTERFACE/device/infiniband, and set the port's link type with role "
                "nic_link_type. [ib_port_missing]",
            )
        if port.state != "ACTIVE":
            raise RdmaError(
                f"Rail {rail!r}: port {port.device}/{port.number} is {port.state or 'without state'}, not ACTIVE.",
                "Look at the cable and the switch port, then for the fabric's subnet manager. [ib_not_active]",
            )
        return port
    for port in seen:
        for index in gid_indexes(sysfs, port, address):
            return replace(port, gid_index=index)
    raise RdmaError(
        f"Rail {rail!r} ({interface}): no RoCE v2 GID of {address} on {', '.join(port.device for port in seen)}.",
        "Check whether the rail has its address and is up (role rail_network), and whether its NIC speaks RoCE v2 "
        "(cat /sys/class/infiniband/*/ports/*/gid_attrs/types/*). [gid_missing]",
    )


def counters(sysfs: Sysfs, port: Port) -> dict[str, int]:
    """Return the health counters of an RDMA port."""
    folders = [f"{port.folder}/{kind}" for kind in ("counters", "hw_counters")]
    places = {name: f"{folder}/{name}" for folder in folders for name in sysfs.names(folder) if kind_of(name)}
    return {name: value for name, path in places.items() if (value := sysfs.number(path)) is not None}
