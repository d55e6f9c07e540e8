# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Computes which NIC is next to which GPU from the PCI tree, without a vendor tool.

The terms are those of `nvidia-smi topo -m`. The distance of two functions follows from the components
of their real paths (/sys/devices/pci0000:17/0000:17:01.0/...): the same computation that NCCL makes.
"""

from __future__ import annotations

import enum
import functools
import itertools
import re
import typing as t
from dataclasses import dataclass, field

from .._formatting import group_by

if t.TYPE_CHECKING:
    from .._files import Sysfs

PCI_DEVICES = "/sys/bus/pci/devices"
ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-1][0-9a-f]\.[0-7]")

VENDOR_MELLANOX = 0x15B3
# PCI code and ID assignment specification, class and sub-class.
CLASS_NETWORK = 0x02
CLASS_VGA = 0x0300
CLASS_3D = 0x0302
CLASS_DISPLAY_OTHER = 0x0380
CLASS_ACCELERATOR = 0x1200
# Others' VGA functions are screens of management controllers and virtual machines.
ACCELERATED_DISPLAY_VENDORS = frozenset({0x1002, 0x10DE, 0x8086})  # AMD, NVIDIA, Intel (Data Center GPU Max)


class Distance(enum.IntEnum):
    """How far two PCI functions are apart; smaller is nearer."""

    PIX = 1  # at most one PCIe switch between them
    PXB = 2  # several PCIe switches, but no host bridge
    PHB = 3  # one host bridge
    NODE = 4  # host bridges of one NUMA node
    SYS = 5  # another NUMA node


@dataclass(frozen=True)
class PciFunction:
    """One PCI function. `path` holds the real path's components from the host bridge down to itself."""

    address: str
    path: tuple[str, ...]
    class_code: int = 0  # class << 8 | sub-class
    vendor: int = 0
    device: int = 0
    numa_node: int = -1
    driver: str | None = None
    physfn: str | None = None  # set on virtual functions: the address of their physical one
    total_vfs: int = 0
    num_vfs: int = 0
    netdevs: tuple[str, ...] = ()
    rdma: tuple[str, ...] = ()

    @property
    def is_vf(self) -> bool:
        """Whether this is a virtual function."""
        return self.physfn is not None

    @property
    def is_gpu(self) -> bool:
        """Whether this is a GPU or another accelerator."""
        if self.class_code in (CLASS_3D, CLASS_ACCELERATOR):
            return True
        displays = self.class_code in (CLASS_VGA, CLASS_DISPLAY_OTHER)
        return displays and self.vendor in ACCELERATED_DISPLAY_VENDORS

    @property
    def card(self) -> str:
        """The card that the function belongs to: domain:bus:device."""
        return self.address.rsplit(".", 1)[0]

    @property
    def bridges(self) -> tuple[str, ...]:
        """The addresses of the bridges above, from the root port down."""
        return tuple(part for part in self.path[:-1] if ADDRESS.fullmatch(part))


@dataclass(frozen=True)
class PciTree:
    """All PCI functions of a host, by address."""

    functions: dict[str, PciFunction] = field(default_factory=dict)
    numa_nodes: int = 1

    # A node with pods has thousands of virtual functions: what walks over all of them is cached.
    @functools.cached_property
    def gpus(self) -> tuple[PciFunction, ...]:
        """The GPUs in PCI order; their virtual functions left out."""
        return tuple(item for item in self._ordered if item.is_gpu and not item.is_vf)

    @functools.cached_property
    def nics(self) -> tuple[PciFunction, ...]:
        """The network functions, of any class that carries RDMA, in PCI order; virtual functions left out."""
        nics = (item for item in self._ordered if item.rdma or item.class_code >> 8 == CLASS_NETWORK)
        return tuple(item for item in nics if not item.is_vf)

    def vfs(self, address: str) -> tuple[PciFunction, ...]:
        """Return the virtual functions of a physical one."""
        return tuple(self._by_physfn.get(address, ()))

    def distance(self, one: str, other: str) -> Distance:
        """Return how far two functions are apart."""
        first, second = self.functions[one], self.functions[other]
        shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first.path, second.path))
        common = len([*shared])
        if common == 0:
            # -1 is the kernel's "unknown": the same node only where there is but one.
            known = first.numa_node >= 0 or self.numa_nodes <= 1
            return Distance.NODE if known and first.numa_node == second.numa_node else Distance.SYS
        if common == 1:
            return Distance.PHB
        # Below the last shared bridge each has at most the switch's own downstream port and itself.
        return Distance.PIX if max(len(first.path), len(second.path)) - common <= 2 else Distance.PXB

    def gpu_distances(self, nic: str) -> tuple[tuple[str, Distance], ...]:
        """Return all GPUs with their distance from a NIC, the nearest first."""
        found = [(gpu.address, self.distance(nic, gpu.address)) for gpu in self.gpus]
        return tuple(sorted(found, key=lambda item: (item[1], pci_key(item[0]))))

    def nearest_gpus(self, nic: str) -> tuple[str, ...]:
        """Return the GPUs that share a PCIe switch with a NIC, at its smallest distance; none when no GPU does."""
        near = [item for item in self.gpu_distances(nic) if item[1] <= Distance.PXB]
        return tuple(gpu for gpu, distance in near if distance == near[0][1])

    def gpu_affine_nics(self) -> tuple[PciFunction, ...]:
        """Return the NICs that share a PCIe switch with a GPU (PIX or PXB).

        Only GPUs count: two ports of a storage card are PIX to each other and still far from every GPU.
        """
        return tuple(nic for nic in self.nics if self.nearest_gpus(nic.address))

    @functools.cached_property
    def _ordered(self) -> list[PciFunction]:
        return sorted(self.functions.values(), key=lambda item: pci_key(item.address))

    @functools.cached_property
    def _by_physfn(self) -> dict[str, list[PciFunction]]:
        return group_by((item.physfn, item) for item in self._ordered if item.physfn is not None)


def pci_key(address: str) -> tuple[int, ...]:
    """Return the sort key of a PCI address: its numbers, since a domain may have more than four digits."""
    return tuple(int(part, 16) for part in re.split("[:.]", address))


def normal_address(address: str) -> str:
    """Return a PCI address in the kernel's form: lower case, with its domain (`1A:00.0` is `0000:1a:00.0`)."""
    text = address.strip().lower()
    return text if text.count(":") == 2 else f"0000:{text}"


def read_pci(sysfs: Sysfs) -> PciTree:
    """Read the PCI tree of a host."""
    functions = {
        address: _read_function(sysfs, address, real)
        for address in sysfs.names(PCI_DEVICES)
        if (real := sysfs.real(f"{PCI_DEVICES}/{address}")) is not None
    }
    nodes = [name for name in sysfs.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    return PciTree(functions=functions, numa_nodes=max(1, len(nodes)))


def _read_function(sysfs: Sysfs, address: str, real: str) -> PciFunction:
    physfn = sysfs.real(f"{real}/physfn")
    driver = sysfs.real(f"{real}/driver")
    class_code = (sysfs.number(f"{real}/class") or 0) >> 8
    network = class_code >> 8 == CLASS_NETWORK
    return PciFunction(
        address=address,
        path=host_path(real),
        class_code=class_code,
        vendor=sysfs.number(f"{real}/vendor") or 0,
        device=sysfs.number(f"{real}/device") or 0,
        numa_node=-1 if (node := sysfs.number(f"{real}/numa_node")) is None else node,
        driver=driver.rsplit("/", 1)[-1] if driver else None,
        physfn=physfn.rsplit("/", 1)[-1] if physfn else None,
        total_vfs=sysfs.number(f"{real}/sriov_totalvfs") or 0,
        num_vfs=sysfs.number(f"{real}/sriov_numvfs") or 0,
        netdevs=tuple(sysfs.own_interfaces(real)) if network else (),
        rdma=tuple(sysfs.names(f"{real}/infiniband")) if network else (),
    )


def host_path(real: str) -> tuple[str, ...]:
    """Return the components of a device's path from its PCI host bridge (`pci0000:17`) on.

    Some platforms put folders before the bridge (/sys/devices/platform/...) or hide it behind a VMD controller.
    Components before the first `pciDDDD:BB` do not affect the distance.
    """
    parts = real.strip("/").split("/")
    root = next((index for index, part in enumerate(parts) if re.fullmatch(r"pci[0-9a-f]{4,8}:[0-9a-f]{2}", part)), 0)
    return tuple(parts[root:])
