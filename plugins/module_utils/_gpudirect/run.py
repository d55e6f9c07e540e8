# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUDirect RDMA of a host: read, plan, write bits and files, and report."""

from __future__ import annotations

import json
import os
import re
import typing as t

from .._card.pci import PciTree, read_pci
from .._errors import RdmaError
from .._programs import Machine
from .plan import NO_SETPCI, P2P_BITS, GpuDirectHost, GpuDirectPlan, checks_of, make_plan, p2p_bridges

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

NOTE = "Written by the module railops.rdma.gpudirect: change the inventory instead."
SETTINGS = "/etc/railops-rdma/acs.json"
UNIT = "/etc/systemd/system/railops-acs.service"
LINK = "/etc/systemd/system/multi-user.target.wants/railops-acs.service"
MODULES = "/etc/modules-load.d/railops-gpudirect.conf"
# The control of access control, as setpci calls it.
ACS = "ECAP_ACS+6.w"
UNIT_TEXT = """\
# {note}
[Unit]
Description=PCIe access control between GPUs and NICs (railops.rdma)

[Service]
Type=oneshot
RemainAfterExit=yes
{start}

[Install]
WantedBy=multi-user.target
"""

SPEC = {
    "mode": {"type": "str", "choices": ["auto", "dmabuf", "peermem"], "default": "auto"},
    "acs": {"type": "str", "choices": ["keep", "relax"], "default": "keep"},
}


def read_acs(machine: Machine, address: str) -> int | None:
    """Return the access control bits of a bridge; None when it has none, or does not show them."""
    reported = machine.run(["setpci", "-s", address, ACS]).out.strip()
    return int(reported, 16) if re.fullmatch("[0-9a-f]{4}", reported) else None


def read_host(machine: Machine, tree: PciTree, recorded: t.Iterable[str]) -> GpuDirectHost:
    """Read what matters for GPUDirect.

    :param recorded: bridges that an earlier run changed.
    """
    version = machine.text("/proc/driver/nvidia/version") or ""
    found = re.search(r"NVRM version:.*?(\d+\.\d+(?:\.\d+)?)", version)
    acs = {address: read_acs(machine, address) for address in {*p2p_bridges(tree), *recorded}}
    # The list of all kernel symbols is large; it is only asked where the answer counts.
    symbols = machine.text("/proc/kallsyms") or "" if tree.gpus and found else ""
    return GpuDirectHost(
        kernel=os.uname().release,
        loaded=frozenset(machine.names("/sys/module")),
        nvidia=found.group(1) if found else machine.text("/sys/module/nvidia/version"),
        nvidia_open="Open Kernel Module" in version,
        peer_memory="ib_register_peer_memory_client" in symbols,
        virtual=bool(re.search(r"^flags\s*:.*\bhypervisor\b", machine.text("/proc/cpuinfo") or "", re.MULTILINE)),
        setpci=machine.tool("setpci"),
        acs={address: bits for address, bits in acs.items() if bits is not None},
        iommu=machine.text("/sys/kernel/iommu_groups/0/type"),
        peermem_on_disk="nvidia_peermem" in machine.kernel_modules(),
    )


def wanted_files(plan: GpuDirectPlan, host: GpuDirectHost, original: dict[str, int]) -> dict[str, str | None]:
    """Return the owned files with their contents, None where there must be none.

    :param original: the access control bits of bridges before the first change, to record.
    """
    files: dict[str, str | None] = {MODULES: f"# {NOTE}\nnvidia_peermem\n" if plan.keep_peermem else None}
    record = json.dumps({"note": NOTE, "original": original}, indent=1, sort_keys=True) + "\n"
    files.update({SETTINGS: record if original else None, UNIT: None})
    if plan.bridges:
        # Clears the bits of each bridge; one that is not there stops nothing.
        start = "\n".join(f"ExecStart=-{host.setpci} -s {address} {ACS}=0:{P2P_BITS:x}" for address in plan.bridges)
        files[UNIT] = UNIT_TEXT.format(note=NOTE, start=start)
    return files


def apply(machine: Machine, plan: GpuDirectPlan) -> None:
    """Write the bits, read them back, and load the module."""
    for address, bits in plan.acs.items():
        done = machine.run(["setpci", "-s", address, f"{ACS}={bits:04x}"])
        if read_acs(machine, address) == bits:
            continue
        raise RdmaError(
            f"Bridge {address} did not keep the access control bits: {done.reported() or 'setpci prints nothing'}.",
            "Set them in the BIOS, or with the kernel argument pci=disable_acs_redir=; kernel lockdown (Secure Boot) "
            "forbids to write them. [acs_not_kept]",
            bridge=address,
        )
    if plan.load_peermem and (done := machine.run(["modprobe", "nvidia_peermem"])).status:
        raise RdmaError(
            f"nvidia_peermem cannot be loaded: {done.err.strip()}",
            "It needs the peer-memory interface of DOCA-OFED; DMA-BUF (gpudirect_mode: dmabuf) does not. [peermem_off]",
        )


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Read, plan, write unless in check mode, and report."""
    machine = Machine(module=module)
    tree = read_pci(machine)
    # The bridges that an earlier run relaxed, with the bits that they had before.
    recorded: dict[str, int] = json.loads(machine.read(SETTINGS) or '{"original": {}}')["original"]
    host = read_host(machine, tree, recorded)
    plan = make_plan(params, tree, host, recorded)
    lacking = any(note.endswith(NO_SETPCI) for note in plan.notes) or (bool(recorded) and not host.setpci)
    if lacking and not check_mode:
        fix = "Install the package pciutils (role rdma_driver does). [pciutils_missing]"
        raise RdmaError(f"Access control of bridges cannot be changed: {NO_SETPCI}", fix)
    links = {LINK: UNIT if plan.bridges else None}
    writes = machine.changes(wanted_files(plan, host, plan.original), links)
    changes = [
        f"{address}: access control {host.acs[address]:#06x} to {bits:#06x}" for address, bits in plan.acs.items()
    ]
    changes += ["load nvidia_peermem"] if plan.load_peermem else []
    changes += [f"{'remove' if item.content is None else 'write'} {item.path}" for item in writes]
    if not check_mode:
        # The record of all old bits must be there while they change.
        first = machine.changes(wanted_files(plan, host, {**plan.original, **recorded}), links)
        machine.apply(item for item in first if item.content is not None)
        apply(machine, plan)
        machine.apply(writes)
        if any(item.path in (UNIT, LINK) for item in writes):
            machine.run(["systemctl", "daemon-reload"])
    return {
        "changed": bool(changes),
        "changes": changes,
        "path": plan.path,
        "notes": list(plan.notes),
        "checks": checks_of(params, tree, host, plan),
        "before": {address: f"{host.acs[address]:#06x}" for address in sorted(plan.acs)},
        "after": {address: f"{plan.acs[address]:#06x}" for address in sorted(plan.acs)},
    }
