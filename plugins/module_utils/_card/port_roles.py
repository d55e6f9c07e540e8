# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Other roles of a port or card on its host, for every module that changes one.

A role is the host's own network, storage, a stacked interface, a bond or bridge with the port as a member, unmanaged
addresses, NVSwitches behind the card, or an allocated virtual function. The code opens no device and queries no
firmware: it reads /sys, /proc, and the output of iproute2's `ip` and `rdma`.
"""

from __future__ import annotations

import ipaddress
import json
import re
import typing as t

from .._fabric.numbers import BASES, MANAGER, MAX_RAILS, claimed
from .pci import VENDOR_MELLANOX
from .vpd import parse_vpd, serves_switches

if t.TYPE_CHECKING:
    from .._files import Sysfs
    from .._management_network import ManagementNetwork
    from .._programs import Machine
    from .pci import PciFunction, PciTree

MANAGED = ("143", "railops")
"""The protocol of our rules until a reboot, as `ip` prints it."""
# Kernel modules whose queue pairs mean storage or the host's own traffic. The kernel names a queue pair after the
# module that made it (KBUILD_MODNAME, include/rdma/ib_verbs.h); ib_core, ib_ipoib and mlx5_ib have some on every card.
USERS = frozenset(
    {
        "cifs",
        "ib_iser",
        "ib_isert",
        "ib_srp",
        "ib_srpt",
        "ko2iblnd",
        "nvme_rdma",
        "nvmet_rdma",
        "rds_rdma",
        "rpcrdma",
        "smbdirect",
        "smc",
    }
)
NETWORK_FILE_SYSTEMS = frozenset({"ceph", "cifs", "lustre", "nfs", "nfs4", "smb3"})


def device_roles(machine: Machine, network: ManagementNetwork) -> dict[str, str]:
    """Return what interfaces and RDMA devices carry of the host's own network and storage, by folder in /sys/class.

    :param network: what carries the host's own network.
    """
    found = {name: f"carries {network.why(name)}" for name in (*sorted(network.default), *sorted(network.connection))}
    for interface, role in storage_interfaces(machine).items():
        for name in sorted(network.under([interface])):
            found.setdefault(name, role)
    devices = {f"/sys/class/infiniband/{name}": role for name, role in storage_devices(machine).items()}
    return {**{f"/sys/class/net/{name}": role for name, role in found.items()}, **devices}


def dependents(
    network: ManagementNetwork, prefixes: t.Iterable[str] = (), adopt_ports: t.Collection[str] = ()
) -> dict[str, str]:
    """Return what a new name or kind of an interface would remove, by interface: members, upper devices, addresses.

    :param network: the output of `ip` on the host.
    :param prefixes: the networks of the fabric: the plan owns addresses in them, and a VLAN with such an address.
    :param adopt_ports: interfaces whose addresses may be replaced.
    """
    nets = [ipaddress.ip_network(prefix) for prefix in prefixes]
    ruled = {rule.get("src") for _links, _held, rules in network.seen for rule in rules if _is_managed(rule)}
    found: dict[str, str] = {}
    planned: set[str] = set()
    for name, item in network.assigned:
        address = ipaddress.ip_address(item["local"])
        if item["local"] in ruled or any(address in net for net in nets):
            planned.add(name)
        elif name not in adopt_ports:
            found.setdefault(name, f"has the address {item['local']}/{item.get('prefixlen', address.max_prefixlen)}")
    links = network.links
    for name, link in sorted(links.items()):
        below = link.get("link", "")
        # The two ends of a veth stand on each other.
        peers = below in links and links[below].get("link") == name
        if below in links and not peers and link.get("ifalias") != MANAGER and name not in planned:
            found[below] = f"carries {name}"
        if "master" in link:
            found[name] = f"is a port of {link['master']}"
    return found


def _is_managed(rule: dict[str, t.Any]) -> bool:
    if str(rule.get("protocol")) in MANAGED:
        return True
    tables, priorities = (claimed(BASES[key], MAX_RAILS) for key in ("table", "priority"))
    return rule.get("priority") in priorities and str(rule.get("table")) in map(str, tables)


def serving(sysfs: Sysfs, functions: t.Iterable[PciFunction]) -> dict[str, str]:
    """Return, by card, what an NVIDIA card serves instead of being a NIC.

    Only some of a board's functions say so: all cards with the same serial number or UUID (V3) are one board.
    """
    boards: dict[str, str] = {}
    found: dict[str, str] = {}
    numbers: dict[str, set[str]] = {}
    for function in (item for item in functions if item.vendor == VENDOR_MELLANOX):
        vpd = parse_vpd(sysfs.data(f"/sys/bus/pci/devices/{function.address}/vpd") or b"")
        marks = {f"{key}={vpd[key]}" for key in ("SN", "V3") if vpd.get(key)}
        numbers.setdefault(function.card, set()).update(marks)
        board_id = next((sysfs.text(f"/sys/class/infiniband/{name}/board_id") for name in function.rdma), None)
        if role := serves_switches(vpd, board_id):
            found.setdefault(function.card, role)
            boards.update(dict.fromkeys(marks, role))
    for card, marks in numbers.items():
        if role := next((boards[mark] for mark in sorted(marks) if mark in boards), None):
            found.setdefault(card, role)
    return found


def storage_devices(machine: Machine) -> dict[str, str]:
    """Return the RDMA devices that the kernel's own storage or traffic uses, with what uses them."""
    if not machine.names("/sys/class/infiniband"):
        return {}
    found: dict[str, str] = {}
    for row in _rows(machine, ["rdma", "-j", "resource", "show", "qp"]):
        # Brackets stand around a kernel module's name; an application's row has a pid.
        user = str(row.get("comm", "")).strip("[]")
        if "pid" not in row and user in USERS and row.get("ifname"):
            found.setdefault(row["ifname"], f"carries storage ({user} on {row['ifname']})")
    return found


def storage_interfaces(machine: Machine) -> dict[str, str]:
    """Return the interfaces over which the host reaches its storage, with what it is; by the kernel's own routes."""
    found: dict[str, str] = {}
    for what, peer in dict.fromkeys(_peers(machine)):
        for row in _rows(machine, ["ip", "-j", "route", "get", peer]):
            if row.get("dev") and row["dev"] != "lo":
                found.setdefault(row["dev"], f"carries storage ({what} {peer} over {row['dev']})")
    return found


def _rows(machine: Machine, argv: list[str]) -> list[dict[str, t.Any]]:
    # A new host has no `rdma` yet, nor anything that uses RDMA.
    code, output, _errors = machine.run(argv)
    try:
        return [] if code else list(json.loads(output or "[]"))
    except ValueError:
        return []


def _peers(sysfs: Sysfs) -> t.Iterator[tuple[str, str]]:
    """Yield the storage servers of the host by kind and address: NVMe over fabrics, file systems, iSCSI."""
    for name in sysfs.names("/sys/class/nvme"):
        transport = sysfs.text(f"/sys/class/nvme/{name}/transport")
        address = dict(
            part.partition("=")[::2] for part in (sysfs.text(f"/sys/class/nvme/{name}/address") or "").split(",")
        )
        if transport in ("rdma", "tcp") and address.get("traddr"):
            yield f"nvme-{transport}", address["traddr"]
    for line in (sysfs.text("/proc/mounts") or "").splitlines():
        words = line.split()
        remote = len(words) > 3 and words[2] in NETWORK_FILE_SYSTEMS
        if remote and (peer := re.search(r"(?:^|,)addr=([0-9A-Fa-f.:]+)", words[3])):
            yield words[2], peer[1]
    for name in sysfs.names("/sys/class/iscsi_connection"):
        if peer_address := sysfs.text(f"/sys/class/iscsi_connection/{name}/address"):
            yield "iscsi", peer_address.strip("[]")


def used_vf(tree: PciTree, function: PciFunction) -> str | None:
    """Return what has one of a function's virtual functions, as "has a virtual function in use (...)"; or None.

    A pod's virtual function is in the pod's network namespace: its interface, or in exclusive mode its RDMA device, is
    not to be seen here. A virtual machine's is bound to vfio-pci.
    """
    infiniband = function.class_code & 0xFF == 0x07
    for vf in tree.vfs(function.address):
        if vf.driver == "vfio-pci":
            return f"has a virtual function in use ({vf.address}, given to a virtual machine)"
        if vf.driver == "mlx5_core" and not (vf.rdma if infiniband else vf.netdevs):
            return f"has a virtual function in use ({vf.address}, in a pod)"
    return None
