# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""GPUDirect RDMA of a host: read, plan, write bits and files, and report."""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
import typing as t

from .._card.pci import PciTree, read_pci
from .._errors import RdmaError
from .._files import HostFiles, Sysfs
from . import acs as gpudirect_acs
from .acs import Bridges
from .plan import Host, Plan, checks_of, make_plan, p2p_bridges

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

NOTE = "Written by the module railops.rdma.gpudirect: change the inventory instead."
PROGRAM = "/usr/local/lib/railops-rdma/acs.py"
SETTINGS = "/etc/railops-rdma/acs.json"
UNIT = "/etc/systemd/system/railops-acs.service"
LINK = "/etc/systemd/system/multi-user.target.wants/railops-acs.service"
MODULES = "/etc/modules-load.d/railops-gpudirect.conf"
GRUB = "/etc/default/grub.d/config-acs.cfg"
UNIT_TEXT = """\
# {note}
[Unit]
Description=PCIe access control between GPUs and NICs (railops.rdma)

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart={python} {program} {settings}

[Install]
WantedBy=multi-user.target
"""

SPEC = {
    # Read by the action plugin, on the controller.
    "variables_of": {"type": "str"},
    "mode": {"type": "str", "choices": ["auto", "dmabuf", "peermem"], "default": "auto"},
    "gdrcopy": {"type": "bool", "default": False},
    "acs": {"type": "str", "choices": ["keep", "relax"], "default": "keep"},
}


def read_host(module: AnsibleModule, sysfs: Sysfs, tree: PciTree, bridges: Bridges, recorded: t.Iterable[str]) -> Host:
    """Read what matters for GPUDirect.

    :param recorded: bridges that an earlier run changed.
    """
    release = os.uname().release
    version = sysfs.text("/proc/driver/nvidia/version") or ""
    found = re.search(r"NVRM version:.*?(\d+\.\d+(?:\.\d+)?)", version)
    acs = {address: bridges.read(address) for address in {*p2p_bridges(tree), *recorded}}
    # The list of all kernel symbols is large; it is only asked where the answer counts.
    symbols = sysfs.text("/proc/kallsyms") or "" if tree.gpus and found else ""
    modules = sysfs.text(f"/lib/modules/{release}/modules.dep") or ""
    return Host(
        kernel=release,
        loaded=frozenset(sysfs.names("/sys/module")),
        nvidia=found.group(1) if found else sysfs.text("/sys/module/nvidia/version"),
        nvidia_open="Open Kernel Module" in version,
        peer_memory="ib_register_peer_memory_client" in symbols,
        gdrcopy=sysfs.exists("/sys/module/gdrdrv") or sysfs.exists("/dev/gdrdrv"),
        virtual=bool(re.search(r"^flags\s*:.*\bhypervisor\b", sysfs.text("/proc/cpuinfo") or "", re.MULTILINE)),
        rdma_topo=module.get_bin_path("rdma_topo"),
        grub_folder=bool(sysfs.exists("/etc/default/grub.d")),
        acs={address: bits for address, bits in acs.items() if bits is not None},
        iommu=sysfs.text("/sys/kernel/iommu_groups/0/type"),
        peermem_on_disk=bool(re.search(r"nvidia[-_]peermem\.ko", modules)),
    )


def recorded_bits(files: HostFiles) -> dict[str, int]:
    """Return the bridges that an earlier run relaxed, with the bits that they had before."""
    try:
        return {str(key): int(value) for key, value in json.loads(files.read(SETTINGS) or "")["original"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def wanted_files(plan: Plan, host: Host, recorded: dict[str, int]) -> dict[str, str | None]:
    """Return the owned files with their contents, None where there must be none.

    :param recorded: the access control bits of bridges before the first change.
    """
    files: dict[str, str | None] = {MODULES: f"# {NOTE}\nnvidia_peermem\n" if plan.keep_peermem else None}
    if not plan.bridges:
        return {**files, PROGRAM: None, SETTINGS: None, UNIT: None}
    original = {address: recorded.get(address, host.acs[address]) for address in plan.bridges}
    settings = {"note": NOTE, "bridges": list(plan.bridges), "original": original}
    return {
        **files,
        PROGRAM: inspect.getsource(gpudirect_acs),
        SETTINGS: json.dumps(settings, indent=1, sort_keys=True) + "\n",
        UNIT: UNIT_TEXT.format(note=NOTE, python=sys.executable, program=PROGRAM, settings=SETTINGS),
    }


def direct_nic(
    module: AnsibleModule, sysfs: Sysfs, host: Host, check: tuple[int, str] | None
) -> tuple[bool, list[str]]:
    """Let rdma_topo write the kernel argument; return whether that changes something, and why to reboot.

    :param check: exit status and output of `rdma_topo check`; None where there is none.
    """
    if host.rdma_topo is None:
        raise RdmaError(
            "On this Direct-NIC platform only rdma_topo knows which access control bits are right, and it is missing.",
            "Install a rdma-core that has it (rdma_topo, 2025 and later), or set gpudirect_acs to keep.",
        )
    if not host.grub_folder:
        raise RdmaError(
            "rdma_topo writes to /etc/default/grub.d, which this distribution does not have.",
            "Take the argument from rdma_topo write-grub-acs -n, set it with grubby --update-kernel=ALL --args=..., and"
            " set gpudirect_acs to keep.",
        )
    code, out, err = module.run_command([host.rdma_topo, "write-grub-acs", "-n"])
    if code:
        raise RdmaError(f"rdma_topo write-grub-acs fails: {(err or out).strip()}", "Set gpudirect_acs to keep.")
    changed = (sysfs.text(GRUB) or "") != out.strip()
    if changed and not module.check_mode:
        code, out, err = module.run_command([host.rdma_topo, "write-grub-acs"])
        if code:
            raise RdmaError(f"rdma_topo write-grub-acs fails: {(err or out).strip()}", "Run update-grub by hand.")
    waiting = changed or bool(check and check[0] and "config_acs" not in (sysfs.text("/proc/cmdline") or ""))
    return changed, ["the kernel argument for access control (pci=config_acs) is new"] if waiting else []


def apply(module: AnsibleModule, plan: Plan, bridges: Bridges) -> None:
    """Write the bits, read them back, and load the module."""
    for address, bits in plan.acs.items():
        try:
            bridges.write(address, bits)
        except OSError as exc:
            raise RdmaError(
                f"Access control of bridge {address} cannot be written: {exc}.",
                "Kernel lockdown (Secure Boot) forbids it: use the kernel argument pci=disable_acs_redir= or the BIOS.",
                bridge=address,
            ) from exc
        if bridges.read(address) != bits:
            raise RdmaError(
                f"Bridge {address} did not keep the access control bits.",
                "Set them in the BIOS, or with the kernel argument pci=disable_acs_redir=.",
                bridge=address,
            )
    if plan.load_peermem:
        code, _out, err = module.run_command(["modprobe", "nvidia_peermem"])
        if code:
            raise RdmaError(
                f"nvidia_peermem cannot be loaded: {err.strip()}",
                "It needs the peer-memory interface of DOCA-OFED; DMA-BUF (gpudirect_mode: dmabuf) does not.",
            )


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Read, plan, write unless in check mode, and report."""
    params, files, bridges = module.params, HostFiles(module=module), Bridges()
    tree = read_pci(files)
    recorded = recorded_bits(files)
    host = read_host(module, files, tree, bridges, recorded)
    plan = make_plan(params, tree, host, recorded)
    check = None
    topo_changed = False
    reasons: list[str] = []
    if plan.use_rdma_topo:
        if host.rdma_topo:
            code, out, err = module.run_command([host.rdma_topo, "check"])
            check = (code, out + err)
        topo_changed, reasons = direct_nic(module, files, host, check)
    writes = files.changes(wanted_files(plan, host, recorded), {LINK: UNIT if plan.bridges else None})
    changes = [
        f"{address}: access control {host.acs[address]:#06x} to {bits:#06x}" for address, bits in plan.acs.items()
    ]
    changes += ["load nvidia_peermem"] if plan.load_peermem else []
    changes += ["rdma_topo write-grub-acs"] if topo_changed else []
    changes += [f"{'remove' if item.content is None else 'write'} {item.path}" for item in writes]
    if not module.check_mode:
        # The record of the old bits must be there before they are gone.
        files.apply([item for item in writes if item.content is not None])
        apply(module, plan, bridges)
        files.apply(item for item in writes if item.content is None)
        if any(item.path in (UNIT, LINK) for item in writes) and (systemctl := module.get_bin_path("systemctl")):
            module.run_command([systemctl, "daemon-reload"])
    return {
        "changed": bool(changes),
        "changes": changes,
        "path": plan.path,
        "notes": list(plan.notes),
        "reboot_required": bool(reasons),
        "reboot_reasons": reasons,
        "checks": checks_of(params, tree, host, plan, check),
        "before": {address: f"{host.acs[address]:#06x}" for address in sorted(plan.acs)},
        "after": {address: f"{plan.acs[address]:#06x}" for address in sorted(plan.acs)},
    }
