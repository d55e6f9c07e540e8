# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._gpudirect import run as work
from ansible_collections.railops.rdma.plugins.module_utils._programs import ProgramResult
from ansible_collections.railops.rdma.tests.unit import machines

BLOCKED = 0x1D
BUSES = (0x15, 0x26, 0x37, 0x48, 0x97, 0xA7, 0xB7, 0xC7)  # of the GPUs
# Root port, and the switch's ports to the GPU and to the NIC.
ABOVE_GPUS = {f"0000:{bus + port[0]:02x}:{port[1]:02x}.0" for bus in BUSES for port in ((0, 1), (2, 0), (2, 1))}
NVIDIA = "NVRM version: NVIDIA UNIX {kind}x86_64  560.35.03  Release Build  (dvs-builder)\n"


class Machine:
    """A recorded machine whose bridges have ACS."""

    def __init__(self, name, home):
        self.root = machines.lay_out(name, home / "root")
        # A switch's upstream port has no ACS.
        devices = (self.root / "sys/bus/pci/devices").iterdir()
        bridges = [item for item in devices if (item / "class").read_text() == "0x060400\n"]
        self.control = {item.name: BLOCKED for item in bridges if len(item.readlink().parts) % 2 == 0}
        self.refuses = None
        machines.put(self.root, "/proc/driver/nvidia/version", NVIDIA.format(kind="Open Kernel Module for "))

    def run(self, argv):
        """Do what pciutils does; bits behind a colon say which of those before it count."""
        assert (argv[1], argv[3].partition("=")[0]) == ("-s", "ECAP_ACS+6.w")
        value, _colon, mask = argv[3].partition("=")[2].partition(":")
        if argv[2] not in self.control:
            return ProgramResult(1, "", f"setpci: {argv[2]}: Instance #0 of Capability 000d not found.")
        if value and self.refuses is not None:
            return ProgramResult(0, "", self.refuses)
        if value:
            chosen = int(mask or "ffff", 16)
            self.control[argv[2]] = self.control[argv[2]] & ~chosen | int(value, 16) & chosen
        return ProgramResult(0, "" if value else f"{self.control[argv[2]]:04x}\n", "")


@pytest.fixture
def machine(request, tmp_path):
    return Machine(getattr(request, "param", "one-switch-each"), tmp_path)


@pytest.fixture
def params(machine, monkeypatch, tmp_path):
    (tmp_path / "bin").mkdir()
    machines.program(tmp_path / "bin/setpci", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    machines.stand_for_the_host(monkeypatch, machine.root)
    real = work.Machine.run
    monkeypatch.setattr(
        work.Machine, "run", lambda own, argv: machine.run(argv) if argv[0] == "setpci" else real(own, argv)
    )
    return {}


def one(result, name):
    return next(check for check in result["checks"] if check["id"] == name)


def test_nothing_changes_by_default(run_module, machine):
    result = run_module()
    assert (result["changed"], result["path"]) == (False, "dmabuf")
    assert set(machine.control.values()) == {BLOCKED}


def test_retained_objects_are_reported_and_fail_nothing(run_module):
    check = one(run_module(), "gpudirect_acs")
    assert (check["status"], check["observed"]) == ("warning", sorted(ABOVE_GPUS))
    assert "gpudirect_acs to relax" in check["fix"]


def test_the_first_run_changes_and_the_second_does_not(run_module, machine):
    assert run_module(acs="relax")["changed"] is True
    again = run_module(acs="relax")
    assert (again["changed"], one(again, "gpudirect_acs")["status"]) == (False, "ok")


def test_check_mode_predicts_and_writes_nothing(run_module, machine):
    predicted = run_module(acs="relax", _ansible_check_mode=True, _ansible_diff=True)
    assert set(machine.control.values()) == {BLOCKED}
    assert not (machine.root / "etc").exists()
    real = run_module(acs="relax", _ansible_diff=True)
    assert (predicted["diff"], predicted["changes"]) == (real["diff"], real["changes"])


def test_only_the_bridges_of_gpus_and_their_nics_are_relaxed(run_module, machine):
    run_module(acs="relax")
    bits = machine.control
    assert {address for address, value in bits.items() if value == 0} == ABOVE_GPUS
    assert (bits["0000:59:01.0"], bits["0000:00:1d.0"]) == (BLOCKED, BLOCKED)


def test_keep_puts_the_bits_back(run_module, machine):
    run_module(acs="relax")
    assert run_module(acs="keep")["changed"] is True
    assert set(machine.control.values()) == {BLOCKED}
    assert not (machine.root / "etc/railops-rdma/acs.json").exists()
    assert run_module(acs="keep")["changed"] is False


def test_a_run_that_fails_forgets_no_bits(run_module, refused, machine):
    """A GPU leaves, its bridges refuse their earlier bits, and another GPU's bridges stay relaxed."""
    run_module(acs="relax")
    (machine.root / f"sys/bus/pci/devices/0000:{BUSES[0] + 3:02x}:00.0").unlink()
    machine.refuses = "sysfs_write: write failed: Operation not permitted"
    refused("not permitted", acs="relax")
    machine.refuses = None
    assert run_module(acs="relax")["changed"] is True
    assert {address for address, bits in machine.control.items() if bits != BLOCKED} < ABOVE_GPUS
    run_module(acs="keep")
    assert set(machine.control.values()) == {BLOCKED}


def test_the_bits_of_a_bridge_that_cannot_be_read_are_not_forgotten(run_module, machine):
    run_module(acs="relax")
    bridge = min(ABOVE_GPUS)
    bits = machine.control.pop(bridge)
    for state in ("relax", "keep"):
        run_module(acs=state)
    machine.control[bridge] = bits
    run_module(acs="keep")
    assert machine.control[bridge] == BLOCKED
    assert not (machine.root / "etc/railops-rdma/acs.json").exists()


@pytest.mark.parametrize(
    ("text", "words", "fix"),
    [
        pytest.param(
            "sysfs_write: write failed: Operation not permitted", "not permitted", "Secure Boot", id="refused"
        ),
        pytest.param("", "did not keep", "BIOS", id="not-kept"),
    ],
)
def test_a_failure_says_what_to_do(refused, machine, text, words, fix):
    machine.refuses = text
    refused(words, fix=fix, acs="relax")


def test_without_its_program_access_control_is_not_known(run_module, refused, machine, monkeypatch):
    run_module(acs="relax")
    monkeypatch.setattr(work.Machine, "tool", lambda _machine, _name: None)
    for state in ("relax", "keep"):
        refused("no program setpci", fix="pciutils", acs=state)
        check = one(run_module(acs=state, _ansible_check_mode=True), "gpudirect_acs")
        assert (check["status"], "no program setpci" in check["cause"]) == ("skipped", True)


def test_a_virtual_machine_stays_unchanged(run_module, machine):
    machines.put(machine.root, "/proc/cpuinfo", "flags\t\t: fpu vme hypervisor lahf_lm\n")
    result = run_module(acs="relax")
    assert (result["changed"], one(result, "gpudirect_acs")["status"]) == (False, "skipped")
    assert "virtual machine" in result["notes"][0]


def test_a_host_that_passes_devices_through_stays_unchanged(run_module, machine):
    (machine.root / "sys/bus/pci/drivers/vfio-pci").mkdir(parents=True)
    driver = machine.root / "sys/bus/pci/devices/0000:18:00.0/driver"
    driver.symlink_to(machine.root / "sys/bus/pci/drivers/vfio-pci")
    result = run_module(acs="relax")
    assert result["changed"] is False
    assert "passed through" in result["notes"][0]


@pytest.mark.parametrize("state", ["keep", "relax"])
def test_a_direct_nic_platform_is_left_to_its_tool(run_module, machine, state):
    machines.put(machine.root, "/sys/bus/pci/devices/0000:1a:00.0/device", "0x2100\n")
    machines.put(machine.root, "/sys/bus/pci/devices/0000:19:00.0/device", "0x2100\n")
    result = run_module(acs=state)
    check = one(result, "gpudirect_acs")
    assert (result["changed"], check["status"], "rdma_topo" in check["cause"]) == (False, "skipped", True)
    assert set(machine.control.values()) == {BLOCKED}


CLOSED = {"/proc/driver/nvidia/version": NVIDIA.format(kind="")}
LOADED = {**CLOSED, "/sys/module/nvidia_peermem/refcnt": "0\n"}
CAN_LOAD = {"/proc/kallsyms": "0 T ib_register_peer_memory_client\t[ib_core]\n"}
NO_DRIVER = {"/proc/driver/nvidia/version": ""}


@pytest.mark.parametrize(
    ("files", "mode", "path", "status", "word"),
    [
        pytest.param({}, "auto", "dmabuf", "ok", None, id="open-modules"),
        pytest.param(CLOSED, "auto", None, "deviation", "open kernel", id="closed"),
        pytest.param(LOADED, "auto", "peermem", "ok", None, id="closed-with-peermem"),
        pytest.param({}, "peermem", None, "deviation", "peer-memory interface", id="no-peer-memory"),
        pytest.param(CAN_LOAD, "peermem", None, "deviation", "not loaded", id="peermem-not-loaded"),
        pytest.param(NO_DRIVER, "auto", None, "skipped", "GPU Operator", id="no-driver-yet"),
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
    for bus in BUSES:
        (machine.root / f"sys/bus/pci/devices/0000:{bus + 3:02x}:00.0").unlink()
    result = run_module(acs="relax")
    assert result["changed"] is False
    assert {check["status"] for check in result["checks"]} == {"skipped"}


def test_a_translating_iommu_is_pointed_out(run_module, machine):
    machines.put(machine.root, "/sys/kernel/iommu_groups/0/type", "DMA-FQ\n")
    assert "iommu=pt" in run_module()["notes"][0]


@pytest.mark.parametrize("machine", ["cascaded"], indirect=True)
def test_two_levels_of_switches_take_all_bridges_between(run_module, machine):
    run_module(acs="relax")
    assert {address for address, bits in machine.control.items() if bits} == {"0000:30:01.0", "0000:b0:01.0"}


def test_the_boot_unit_clears_the_same_bits(run_module, machine, tmp_path):
    run_module(acs="relax")
    unit = (machine.root / "etc/systemd/system/railops-acs.service").read_text()
    lines = [line.partition("=-")[2] for line in unit.splitlines() if line.startswith("ExecStart=")]
    machine.control.update(dict.fromkeys(machine.control, 0x5F))
    for line in lines:
        tool, *rest = line.split()
        assert tool == str(tmp_path / "bin/setpci")
        assert machine.run(["setpci", *rest]).status == 0
    assert {address for address, bits in machine.control.items() if bits == 0x42} == ABOVE_GPUS
