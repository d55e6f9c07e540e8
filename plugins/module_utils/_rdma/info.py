# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the RDMA hardware of a host, only from its /sys and /proc.

File formats: Documentation/ABI/stable/sysfs-class-infiniband and testing/sysfs-class-net of the Linux sources.
"""

from __future__ import annotations

import typing as t

from .._card.pci import PciFunction, PciTree, pci_key, read_pci
from .._card.port_roles import serving

if t.TYPE_CHECKING:
    from .._files import Sysfs
    from .verbs import Mtus

CLASS = "/sys/class/infiniband"
NET = "/sys/class/net"
NETNS_MODE = "/sys/module/ib_core/parameters/netns_mode"
NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
# iboe_get_mtu() of include/rdma/ib_addr.h: GRH 40, UDP 8, BTH 12, XRC 4, AtomicETH 28, ICRC 4 bytes.
ROCE_HEADERS = 96
IB_MTUS = (4096, 2048, 1024, 512, 256)

Info = dict[str, t.Any]


def roce_mtu(mtu: int) -> int | None:
    """Return the RDMA path MTU in bytes that a netdev's MTU allows; None below the smallest."""
    return next((size for size in IB_MTUS if size <= mtu - ROCE_HEADERS), None)


def read_info(sysfs: Sysfs, *, gids: bool = True) -> Info:
    """Read everything that sysfs shows of RDMA on a host."""
    tree = read_pci(sysfs)
    devices = [_read_device(sysfs, tree, name, gids=gids) for name in sysfs.names(CLASS)]
    devices.sort(key=lambda row: (not row["pci"], pci_key(row["pci"]) if row["pci"] else (), row["name"]))
    roles = serving(sysfs, tree.nics)
    for device in devices:
        device["serves"] = roles.get(device["card"])
    return {
        "netns_mode": {"Y": "shared", "N": "exclusive"}.get(sysfs.text(NETNS_MODE) or ""),
        "default_interfaces": [],
        "devices": devices,
        "nics_without_rdma": [
            {"pci": nic.address, "vendor": f"{nic.vendor:04x}", "driver": nic.driver, "netdevs": list(nic.netdevs)}
            for nic in tree.nics
            if not nic.rdma
        ],
        "gpus": [
            {"pci": gpu.address, "vendor": f"{gpu.vendor:04x}", "numa_node": gpu.numa_node, "index": index}
            for index, gpu in enumerate(tree.gpus)
        ],
    }


def _read_device(sysfs: Sysfs, tree: PciTree, name: str, *, gids: bool) -> Info:
    home = f"{CLASS}/{name}"
    real = sysfs.real(f"{home}/device")
    function = tree.functions.get(real.rsplit("/", 1)[-1]) if real else None
    at = function or PciFunction("", ())  # soft-RoCE
    return {
        "name": name,
        "pci": at.address or None,
        "card": at.card or None,
        "numa_node": at.numa_node if function else None,
        "driver": at.driver,
        "vf": at.is_vf,
        "physfn": at.physfn,
        "total_vfs": at.total_vfs,
        "num_vfs": at.num_vfs,
        "vfs": [vf.address for vf in tree.vfs(at.address)],
        "gpu_distances": {gpu: far.name for gpu, far in tree.gpu_distances(at.address)} if function else {},
        "nearest_gpus": list(tree.nearest_gpus(at.address)) if function else [],
        "node_guid": sysfs.text(f"{home}/node_guid"),
        "firmware": sysfs.text(f"{home}/fw_ver"),
        "hca_type": sysfs.text(f"{home}/hca_type"),
        "board_id": sysfs.text(f"{home}/board_id"),
        "ports": [
            _read_port(sysfs, home, function, int(port), gids=gids)
            for port in sorted(sysfs.names(f"{home}/ports"), key=int)
        ],
    }


def _read_port(sysfs: Sysfs, home: str, function: PciFunction | None, port: int, *, gids: bool) -> Info:
    path = f"{home}/ports/{port}"
    table = list(_read_gids(sysfs, path))
    layer = sysfs.text(f"{path}/link_layer")
    netdev = _port_netdev(sysfs, home, function, port, table)
    mtu = sysfs.number(f"{NET}/{netdev}/mtu") if netdev else None
    return {
        "port": port,
        "link_layer": layer,
        "state": _word(sysfs.text(f"{path}/state")),
        "phys_state": _word(sysfs.text(f"{path}/phys_state")),
        "rate": sysfs.text(f"{path}/rate"),
        "lid": sysfs.number(f"{path}/lid"),
        "sm_lid": sysfs.number(f"{path}/sm_lid"),
        "netdev": netdev,
        "netdev_mtu": mtu,
        "netdev_state": sysfs.text(f"{NET}/{netdev}/operstate") if netdev else None,
        "mac": sysfs.text(f"{NET}/{netdev}/address") if netdev else None,
        # sysfs has no file for it; for Ethernet the kernel derives it from the netdev's MTU just so.
        "active_mtu": roce_mtu(mtu) if mtu and layer == "Ethernet" else None,
        "active_mtu_source": "netdev" if mtu and layer == "Ethernet" else None,
        "gids": table if gids else [],
    }


def _word(text: str | None) -> str | None:
    # `4: ACTIVE`
    return text.split(":", 1)[-1].strip() if text else None


def _read_gids(sysfs: Sysfs, path: str) -> t.Iterator[Info]:
    for index in sorted(map(int, sysfs.names(f"{path}/gids"))):
        if (gid := sysfs.text(f"{path}/gids/{index}")) and gid != NO_GID:
            yield {
                "index": index,
                "gid": gid,
                "type": sysfs.text(f"{path}/gid_attrs/types/{index}"),
                "netdev": sysfs.text(f"{path}/gid_attrs/ndevs/{index}"),
            }


def _port_netdev(sysfs: Sysfs, home: str, function: PciFunction | None, port: int, table: list[Info]) -> str | None:
    """Return a port's own netdev. The GID table also names its VLAN and macvlan children."""
    own = list(function.netdevs) if function else []
    if len(own) > 1:
        # Two ports on one function: the netdev shows which one it is, from 0.
        own = [name for name in own if sysfs.number(f"{NET}/{name}/dev_port") == port - 1] or own
    if own:
        return own[0]
    return sysfs.text(f"{home}/parent") or next((row["netdev"] for row in table if row["netdev"]), None)  # soft-RoCE


def merge_verbs(info: Info, mtus: Mtus) -> None:
    """Add what the devices say of their ports: the MTUs, which no file in sysfs has."""
    for device in info["devices"]:
        for port in device["ports"]:
            reported = mtus.get(device["name"], {}).get(port["port"], {})
            port.update(reported)
            if "active_mtu" in reported:
                port["active_mtu_source"] = "verbs"
