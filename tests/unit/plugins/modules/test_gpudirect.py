# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import functools
import json
import os
import struct
import subprocess
import sys

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card.pci import read_pci
from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles, Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._gpudirect import acs
from ansible_collections.railops.rdma.plugins.module_utils._gpudirect import run as work
from ansible_collections.railops.rdma.plugins.module_utils._gpudirect.acs import Bridges, acs_offset
from ansible_collections.railops.rdma.plugins.module_utils._gpudirect.plan import p2p_bridges
from ansible_collections.railops.rdma.tests.unit import machines

BLOCKED = 0x1D
NVIDIA = "NVRM version: NVIDIA UNIX {kind}x86_64  560.35.03  Release Build  (dvs-builder)\n"
RDMA_TOPO = """#!/bin/sh
export PATH=/usr/bin:/bin
echo "$@" >> {log}
case "$1" in
check) test -e {done} && echo "OK\tACS" && exit 0; echo "FAIL\tACS for cx_switch 0000:03:00.0"; exit 100;;
write-grub-acs) test "$2" = -n && cat {want} && exit 0; cp {want} {grub};;
esac
"""


def config_space(bits, after_aer=0x148):
    """Return 4 KiB of configuration space: AER (0x0001) first, then ACS (0x000d) with its control bits."""
    data = bytearray(4096)
    struct.pack_into("<I", data, 0x100, after_aer << 20 | 1 << 16 | 0x0001)
    struct.pack_into("<IHH", data, 0x148, 0 << 20 | 1 << 16 | 0x000D, 0x5F, bits)
    return bytes(data)


class Machine:
    """A recorded machine whose bridges have ACS."""

    def __init__(self, name, root):
        self.root = machines.lay_out(name, root)
        self.sysfs = Sysfs(str(root))
        self.tree = read_pci(self.sysfs)
        self.bridges = [item.address for item in self.tree.functions.values() if item.class_code == 0x0604]
        for address in self.bridges:
            # A switch's upstream port has no ACS.
            if not self.is_upstream(address):
                (root / "sys/bus/pci/devices" / address / "config").write_bytes(config_space(BLOCKED))
        machines.put(self.root, "/proc/driver/nvidia/version", NVIDIA.format(kind="Open Kernel Module for "))

    def is_upstream(self, address):
        return len(self.tree.functions[address].path) % 2 == 1

    def bits(self):
        host = Bridges(str(self.root))
        found = {address: host.read(address) for address in self.bridges}
        return {address: bits for address, bits in found.items() if bits is not None}


@pytest.fixture
def machine(tmp_path):
    return Machine("one-switch-each", tmp_path / "root")


@pytest.fixture
def params(machine, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    for kind in (HostFiles, Bridges):
        monkeypatch.setattr(work, kind.__name__, functools.partial(kind, str(machine.root)))
    return {}


def one(result, name):
    return next(check for check in result["checks"] if check["id"] == name)


def test_nothing_is_changed_unless_asked(run_module, machine):
    result = run_module()
    assert (result["changed"], result["path"]) == (False, "dmabuf")
    assert set(machine.bits().values()) == {BLOCKED}


def test_what_is_kept_is_told_and_fails_nothing(run_module, machine):
    check = one(run_module(), "gpudirect_acs")
    assert (check["status"], check["observed"]) == (
        "warning",
        sorted(set(p2p_bridges(machine.tree)) & set(machine.bits())),
    )
    assert "gpudirect_acs to relax" in check["fix"]


def test_the_first_run_changes_and_the_second_does_not(run_module, machine):
    assert run_module(acs="relax")["changed"] is True
    again = run_module(acs="relax")
    assert (again["changed"], one(again, "gpudirect_acs")["status"]) == (False, "ok")


def test_check_mode_predicts_and_writes_nothing(run_module, machine):
    predicted = run_module(acs="relax", _ansible_check_mode=True, _ansible_diff=True)
    assert set(machine.bits().values()) == {BLOCKED}
    assert not (machine.root / "etc").exists()
    real = run_module(acs="relax", _ansible_diff=True)
    assert (predicted["diff"], predicted["changes"]) == (real["diff"], real["changes"])


def test_only_the_bridges_of_gpus_and_their_nics_are_relaxed(run_module, machine):
    run_module(acs="relax")
    bits = machine.bits()
    relaxed = {address for address, value in bits.items() if value == 0}
    assert relaxed == set(p2p_bridges(machine.tree)) & set(bits)
    assert (bits["0000:59:01.0"], bits["0000:00:1d.0"]) == (BLOCKED, BLOCKED)
    assert len(relaxed) == 8 * 3  # root port, and the switch's ports to the GPU and to the NIC


def test_keep_puts_the_bits_back(run_module, machine):
    run_module(acs="relax")
    assert run_module(acs="keep")["changed"] is True
    assert set(machine.bits().values()) == {BLOCKED}
    assert not (machine.root / "etc/railops-rdma/acs.json").exists()
    assert run_module(acs="keep")["changed"] is False


def test_a_failure_says_what_to_do(refused, monkeypatch):
    def refuse(self, address, value):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Bridges, "write", refuse)
    refused(fix="Secure Boot", acs="relax")


def test_a_bridge_that_keeps_its_bits(refused, monkeypatch):
    monkeypatch.setattr(Bridges, "write", lambda self, address, value: None)
    refused("did not keep", acs="relax")


def test_a_virtual_machine_is_left_alone(run_module, machine):
    machines.put(machine.root, "/proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n")
    result = run_module(acs="relax")
    assert (result["changed"], one(result, "gpudirect_acs")["status"]) == (False, "skipped")
    assert "virtual machine" in result["notes"][0]


def test_a_host_that_passes_devices_through_is_left_alone(run_module, machine):
    (machine.root / "sys/bus/pci/drivers/vfio-pci").mkdir(parents=True)
    driver = machine.root / "sys/bus/pci/devices/0000:18:00.0/driver"
    driver.symlink_to(machine.root / "sys/bus/pci/drivers/vfio-pci")
    result = run_module(acs="relax")
    assert result["changed"] is False
    assert "passed through" in result["notes"][0]


@pytest.fixture
def direct_nic(machine, tmp_path):
    """Give the machine the DMA function of a Direct-NIC platform, and the tool that knows it."""
    machines.put(machine.root, "/sys/bus/pci/devices/0000:1a:00.0/device", "0x2100\n")
    machines.put(machine.root, "/sys/bus/pci/devices/0000:19:00.0/device", "0x2100\n")

    def install():
        grub = machine.root / "etc/default/grub.d/config-acs.cfg"
        grub.parent.mkdir(parents=True)
        (tmp_path / "want").write_text('GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX pci=config_acs=x"\n')
        names = {"log": tmp_path / "log", "done": tmp_path / "done", "want": tmp_path / "want", "grub": grub}
        machines.program(tmp_path / "bin/rdma_topo", RDMA_TOPO.format(**names))

    return install


def test_a_direct_nic_platform_is_left_to_its_tool(run_module, refused, machine, direct_nic, tmp_path):
    refused(fix="rdma_topo", acs="relax")
    assert set(machine.bits().values()) == {BLOCKED}
    direct_nic()
    assert run_module(acs="relax", _ansible_check_mode=True)["reboot_required"] is True
    assert "write-grub-acs\n" not in (tmp_path / "log").read_text()
    assert run_module(acs="relax")["changed"] is True
    waiting = run_module(acs="relax")
    status = one(waiting, "gpudirect_acs")["status"]
    assert (waiting["changed"], waiting["reboot_required"], status) == (False, True, "deviation")
    (tmp_path / "done").touch()
    assert run_module(acs="relax")["reboot_required"] is False
    assert set(machine.bits().values()) == {BLOCKED}


def test_no_second_reboot_when_the_argument_did_not_help(run_module, machine, direct_nic):
    direct_nic()
    run_module(acs="relax")
    machines.put(machine.root, "/proc/cmdline", "root=/dev/sda1 pci=config_acs=x\n")
    result = run_module(acs="relax")
    assert (result["reboot_required"], one(result, "gpudirect_acs")["status"]) == (False, "deviation")


@pytest.mark.parametrize(
    ("files", "mode", "path", "status", "word"),
    [
        pytest.param({}, "auto", "dmabuf", "ok", None, id="open-modules"),
        pytest.param(
            {"/proc/driver/nvidia/version": NVIDIA.format(kind="")},
            "auto",
            None,
            "deviation",
            "open kernel",
            id="closed",
        ),
        pytest.param(
            {"/proc/driver/nvidia/version": NVIDIA.format(kind=""), "/sys/module/nvidia_peermem/refcnt": "0\n"},
            "auto",
            "peermem",
            "ok",
            None,
            id="closed-with-peermem",
        ),
        pytest.param({}, "peermem", None, "deviation", "peer-memory interface", id="no-peer-memory"),
        pytest.param(
            {"/proc/kallsyms": "0 T ib_register_peer_memory_client\t[ib_core]\n"},
            "peermem",
            None,
            "deviation",
            "not loaded",
            id="peermem-not-loaded",
        ),
        pytest.param({"/proc/driver/nvidia/version": ""}, "auto", None, "skipped", "GPU Operator", id="no-driver-yet"),
    ],
)
def test_which_way_is_open(run_module, machine, files, mode, path, status, word):
    for name, text in files.items():
        machines.put(machine.root, name, text)
    result = run_module(mode=mode)
    check = one(result, "gpudirect_path")
    assert (result.get("failed"), result["path"], check["status"]) == (None, path, status)
    assert word is None or word in check["cause"] + (check["fix"] or "")


@pytest.mark.parametrize("interface", [True, False], ids=["loaded-now", "the-driver-comes-with-the-reboot"])
def test_peermem_is_loaded_where_the_kernel_can_and_at_every_boot(run_module, machine, tmp_path, interface):
    machines.put(machine.root, f"/lib/modules/{os.uname().release}/modules.dep", "extra/nvidia-peermem.ko: x\n")
    if interface:
        machines.put(machine.root, "/proc/kallsyms", "0 T ib_register_peer_memory_client\t[ib_core]\n")
    log = tmp_path / "modprobe.log"
    machines.program(tmp_path / "bin/modprobe", f'#!/bin/sh\necho "$*" >> {log}\n')
    result = run_module(mode="peermem")
    assert (result.get("failed"), result["changed"], log.exists()) == (None, True, interface)
    assert "nvidia_peermem" in (machine.root / "etc/modules-load.d/railops-gpudirect.conf").read_text()
    assert one(result, "gpudirect_path")["status"] == "deviation"
    assert ("load nvidia_peermem" in result["changes"]) is interface


def test_an_old_kernel_has_no_dmabuf(run_module, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: type("Uname", (), {"release": "4.18.0-553.el8.x86_64"}))
    assert "older than 5.12" in one(run_module(), "gpudirect_path")["cause"]


def test_a_host_without_gpus_is_no_failure(run_module, machine):
    for gpu in machine.tree.gpus:
        (machine.root / "sys/bus/pci/devices" / gpu.address).unlink()
    result = run_module(acs="relax")
    assert result["changed"] is False
    assert {check["status"] for check in result["checks"]} == {"skipped"}


def test_gdrcopy(run_module, machine):
    assert one(run_module(gdrcopy=True), "gpudirect_gdrcopy")["status"] == "deviation"
    machines.put(machine.root, "/sys/module/gdrdrv/refcnt", "0\n")
    assert one(run_module(gdrcopy=True), "gpudirect_gdrcopy")["status"] == "ok"
    assert one(run_module(), "gpudirect_gdrcopy")["status"] == "skipped"


def test_a_translating_iommu_is_pointed_out(run_module, machine):
    machines.put(machine.root, "/sys/kernel/iommu_groups/0/type", "DMA-FQ\n")
    assert "iommu=pt" in run_module()["notes"][0]


def test_two_levels_of_switches_take_all_bridges_between(tmp_path):
    machine = Machine("cascaded", tmp_path / "root")
    bridges = p2p_bridges(machine.tree)
    assert "0000:10:01.0" in bridges
    assert not any(address.startswith(("0000:30", "0000:b0")) for address in bridges)


@pytest.mark.parametrize("size", [0, 64, 256, 260, 0x14C])
def test_a_short_or_empty_configuration_space_has_no_acs(size):
    for data in (config_space(BLOCKED)[:size], bytes(size), b"\xff" * size):
        assert acs_offset(data) is None


def test_a_capability_list_that_bites_its_tail_ends():
    assert acs_offset(config_space(BLOCKED, after_aer=0x100)) is None


def test_the_boot_program(machine, tmp_path, monkeypatch):
    settings = tmp_path / "acs.json"
    settings.write_text(json.dumps({"bridges": ["0000:15:01.0", "0000:ff:00.0"]}))
    host = Bridges(str(machine.root))
    monkeypatch.setattr(acs, "Bridges", lambda: host)
    assert acs.main([str(settings)]) == 0
    assert (host.read("0000:15:01.0"), host.read("0000:26:01.0")) == (0, BLOCKED)
    done = subprocess.run(
        [sys.executable, "-I", acs.__file__, str(tmp_path / "none")], capture_output=True, check=False
    )
    assert b"FileNotFoundError" in done.stderr
