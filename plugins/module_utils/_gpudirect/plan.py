# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How GPU memory reaches the NICs of a host, and on which bridges access control blocks it.

No files, no sockets. Two ways: DMA-BUF (kernel 5.12 and later; NVIDIA's open kernel modules, or amdgpu), and
nvidia-peermem (needs the peer-memory interface of OFED, which some distributions carry too).
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._check import Check, by_role, compared, deviation, ok, skipped, warning

if t.TYPE_CHECKING:
    from .._card.pci import PciTree

# Of ACS: source validation, P2P request redirect, P2P completion redirect, upstream forwarding (PCI_ACS_CTRL of
# include/uapi/linux/pci_regs.h).
P2P_BITS = 0x01 | 0x04 | 0x08 | 0x10
ACS_CAUSE = "These bridges send traffic between GPU and NIC up to the processor."
NO_SETPCI = "this host has no program setpci."
DMABUF_KERNEL = (5, 12)
VENDOR_NVIDIA = 0x10DE
VENDOR_AMD = 0x1002
# The DMA function that a Direct-NIC platform puts behind the GPU (rdma-core, kernel-boot/rdma_topo).
DIRECT_NIC = (0x15B3, 0x2100)


@dataclass(frozen=True)
class GpuDirectHost:
    """What was read of a host."""

    kernel: str
    loaded: frozenset[str] = frozenset()
    nvidia: str | None = None  # the loaded driver's version
    nvidia_open: bool = False
    peer_memory: bool = False  # the kernel offers ib_register_peer_memory_client
    virtual: bool = False
    setpci: str | None = None  # the tool's path
    acs: dict[str, int] = field(default_factory=dict)  # bridge: its bits; only bridges that have ACS
    iommu: str | None = None  # the default domain's type
    peermem_on_disk: bool = False


@dataclass(frozen=True)
class GpuDirectPlan:
    """What to change, and what to say."""

    path: str | None  # dmabuf, peermem, or None: no way is open
    keep_peermem: bool  # whether it is loaded at every boot
    load_peermem: bool
    acs: dict[str, int]  # bridge: the bits to write
    bridges: tuple[str, ...]  # that a boot unit has to clear
    original: dict[str, int]  # bridge: the bits before the first change, to record
    notes: tuple[str, ...]


def open_paths(tree: PciTree, host: GpuDirectHost) -> dict[str, str | None]:
    """Return each way with None when it is open, else with what is missing."""
    vendors = {gpu.vendor for gpu in tree.gpus}
    dmabuf: str | None = None
    if tuple(map(int, re.findall(r"\d+", host.kernel)[:2])) < DMABUF_KERNEL:
        dmabuf = f"kernel {host.kernel} is older than 5.12"
    elif VENDOR_NVIDIA in vendors and host.nvidia is None:
        dmabuf = "the NVIDIA driver is not loaded"
    elif VENDOR_NVIDIA in vendors and not host.nvidia_open:
        dmabuf = "the NVIDIA driver is not the one with open kernel modules"
    elif VENDOR_AMD in vendors and "amdgpu" not in host.loaded:
        dmabuf = "amdgpu is not loaded"
    peermem: str | None = None
    if VENDOR_NVIDIA not in vendors:
        peermem = "it is for NVIDIA GPUs only"
    elif "nvidia_peermem" not in host.loaded:
        peermem = "nvidia_peermem is not loaded"
        if not host.peer_memory:
            peermem += " and the kernel has no peer-memory interface (DOCA-OFED has)"
    return {"dmabuf": dmabuf, "peermem": peermem}


def p2p_bridges(tree: PciTree) -> tuple[str, ...]:
    """Return the bridges above the NICs and GPUs that share a PCIe switch, and no others."""
    near = [address for nic in tree.gpu_affine_nics() for address in (nic.address, *tree.nearest_gpus(nic.address))]
    return tuple(sorted({bridge for address in near for bridge in tree.functions[address].bridges}))


def make_plan(
    params: t.Mapping[str, t.Any], tree: PciTree, host: GpuDirectHost, recorded: t.Mapping[str, int]
) -> GpuDirectPlan:
    """Return what to change.

    :param recorded: the bridges that an earlier run relaxed, with the bits that they had before.
    """
    notes: list[str] = []
    paths = open_paths(tree, host)
    wanted = params["mode"]
    order = ("dmabuf", "peermem") if wanted == "auto" else (wanted,)
    path = next((name for name in order if paths[name] is None), None) if tree.gpus else None
    acs: dict[str, int] = {}
    bridges: tuple[str, ...] = ()
    if params["acs"] == "relax":
        if reason := _keep_reason(tree, host):
            notes.append(reason)
        else:
            bridges = tuple(address for address in p2p_bridges(tree) if address in host.acs)
            acs = {address: host.acs[address] & ~P2P_BITS for address in bridges if host.acs[address] & P2P_BITS}
    # What an earlier run relaxed and is no longer wanted gets its bits back.
    for address, bits in recorded.items():
        if address not in bridges and address in host.acs and host.acs[address] != bits:
            acs[address] = bits
    # A bridge that does not show its bits in this run keeps its record.
    unread = {*recorded} & {*tree.functions} - {*host.acs}
    original = {address: {**host.acs, **recorded}[address] for address in (*bridges, *unread)}
    if host.iommu and host.iommu.startswith("DMA") and tree.gpus and not host.virtual:
        notes.append(
            f"The IOMMU translates every access (domain type {host.iommu}): peer-to-peer traffic is slower. The kernel"
            " argument iommu=pt lets it through."
        )
    # A kernel without the interface cannot load it: the file for the next boot does, when a new driver brings it.
    keep = wanted == "peermem" and bool(tree.gpus) and (path == "peermem" or host.peermem_on_disk)
    load = keep and path != "peermem" and host.peer_memory
    return GpuDirectPlan(path, keep, load, acs, bridges, original, tuple(notes))


def _keep_reason(tree: PciTree, host: GpuDirectHost) -> str | None:
    """Return why access control is left as it is."""
    if host.virtual:
        return "Access control is not changed: this is a virtual machine, its host decides."
    if passed := sorted(item.address for item in tree.functions.values() if item.driver == "vfio-pci"):
        return (
            f"Access control is not changed: {', '.join(passed[:3])} is passed through to a virtual machine, which"
            " needs it for isolation."
        )
    if any((item.vendor, item.device) == DIRECT_NIC for item in tree.functions.values()):
        return (
            "Access control is not changed: on this Direct-NIC platform only rdma_topo knows which bits are right"
            " (docs/guides/gpudirect.md)."
        )
    if not tree.gpu_affine_nics():
        return "Access control is not changed: no NIC shares a PCIe switch with a GPU."
    return None if host.setpci else f"Access control is not known: {NO_SETPCI}"


def checks_of(params: t.Mapping[str, t.Any], tree: PciTree, host: GpuDirectHost, plan: GpuDirectPlan) -> list[Check]:
    """Return the checks of a host."""
    return [_path_check(params["mode"], tree, host, plan), _acs_check(params, tree, host, plan)]


def _path_check(wanted: str, tree: PciTree, host: GpuDirectHost, plan: GpuDirectPlan) -> Check:
    name = "gpudirect_path"
    if not tree.gpus:
        return skipped(name, "The host has no GPU.", planned=wanted)
    if plan.path:
        return ok(name, wanted, plan.path)
    if VENDOR_NVIDIA in {gpu.vendor for gpu in tree.gpus} and host.nvidia is None:
        # The GPU Operator loads it later; that is no fault of the host.
        cause = "The NVIDIA driver is not loaded (yet): the GPU Operator may bring it."
        return skipped(name, cause, planned=wanted)
    paths = open_paths(tree, host)
    names = ("dmabuf", "peermem") if wanted == "auto" else (wanted,)
    cause = "; ".join(f"{item}: {paths[item]}" for item in names)
    fix = (
        "Install NVIDIA's open kernel modules (driver.kernelModuleType=open in the GPU Operator), or load"
        " nvidia-peermem on a host with DOCA-OFED."
    )
    return deviation(name, wanted, "none", f"{cause}.", fix)


def _acs_check(params: t.Mapping[str, t.Any], tree: PciTree, host: GpuDirectHost, plan: GpuDirectPlan) -> Check:
    name = "gpudirect_acs"
    if params["acs"] != "relax":
        reason = _keep_reason(tree, host)
        up = [address for address in p2p_bridges(tree) if host.acs.get(address, 0) & P2P_BITS]
        if reason or not up:
            return skipped(name, reason or "gpudirect_acs is keep, and no bridge needs a change.", planned="as it is")
        fix = "Set gpudirect_acs to relax where no device is passed through to a guest (docs/guides/gpudirect.md)."
        return warning(name, "as it is (gpudirect_acs is keep)", up, ACS_CAUSE, fix)
    if not plan.bridges:
        return skipped(name, " ".join(plan.notes) or "No bridge has it.", planned="peer-to-peer")
    blocked = sorted(set(plan.acs) & set(plan.bridges))
    return compared(name, "peer-to-peer", blocked or "peer-to-peer", ACS_CAUSE, by_role("gpudirect"))
