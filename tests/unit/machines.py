# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Builds the recorded machines of fixtures/sysfs/: one text file each, which tests lay out as a /sys tree.

Run it to write them anew. A line is a kind, a path and a content, parted by tabs: `f` a file, `b` a file in
base64, `l` a link with its target, `d` an empty folder.
"""

from __future__ import annotations

import base64
import os
import typing as t
from pathlib import Path

FIXTURES = Path(__file__).resolve().parent / "fixtures/sysfs"


class Machine:
    """The /sys of a machine that is being described."""

    def __init__(self) -> None:
        self.lines: dict[str, tuple[str, str]] = {}
        self.rdma_count = 0

    def file(self, path: str, content: object) -> None:
        self.lines[path] = ("f", str(content))

    def files(self, home: str, **contents: object) -> None:
        """Add files of one folder by their names."""
        for name, content in contents.items():
            self.file(f"{home}/{name}", content)

    def link(self, path: str, target: str) -> None:
        self.lines[path] = ("l", os.path.relpath(target, os.path.dirname(path)))

    def nodes(self, count: int) -> None:
        for index in range(count):
            self.file(f"/sys/devices/system/node/node{index}/cpulist", f"{index * 48}-{index * 48 + 47}")

    def function(self, path: str, class_code: int, vendor: int = 0x8086, device: int = 0x1234, numa: int = -1) -> str:
        """Add a PCI function; its path is given from the host bridge on."""
        real = f"/sys/devices/{path}"
        codes = {"class": f"0x{class_code:04x}00", "vendor": f"0x{vendor:04x}", "device": f"0x{device:04x}"}
        self.files(real, **codes, numa_node=numa)
        self.link(f"/sys/bus/pci/devices/{path.rsplit('/', 1)[-1]}", real)
        return real

    def bridges(self, path: str, numa: int) -> None:
        """Add every bridge on the way to a function."""
        parts = path.split("/")
        for index in range(2, len(parts)):
            above = "/".join(parts[:index])
            if f"/sys/devices/{above}/class" not in self.lines:
                self.function(above, 0x0604, 0x1000, 0xC030, numa)

    def gpu(self, path: str, numa: int, vendor: int = 0x10DE, class_code: int = 0x0302) -> None:
        self.bridges(path, numa)
        self.function(path, class_code, vendor, 0x2330, numa)

    def netdev(self, real: str, name: str, address: str, *, kind: int = 1, mtu: int = 1500, port: int = 0) -> None:
        home = f"{real}/net/{name}"
        self.files(home, address=address, type=kind, mtu=mtu, operstate="up", carrier=1, dev_port=port)
        self.link(f"{home}/device", real)
        self.link(f"/sys/class/net/{name}", home)

    def rdma(self, real: str, layer: str, netdev: str | None, *, state: str = "4: ACTIVE", mtu: int = 1500) -> str:
        """Add an RDMA device with one port to a function."""
        name = f"mlx5_{self.rdma_count}"
        guid = f"946d:ae03:0000:{self.rdma_count:04x}"
        self.rdma_count += 1
        home = f"{real}/infiniband/{name}"
        port = f"{home}/ports/1"
        self.files(home, node_guid=guid, fw_ver="28.39.1002", hca_type="MT4129", board_id="MT_0000000838")
        self.file(f"{home}/node_type", "1: CA")
        self.link(f"{home}/device", real)
        phys_state = "5: LinkUp" if state.startswith("4") else "3: Disabled"
        self.files(port, link_layer=layer, state=state, phys_state=phys_state, rate="400 Gb/sec (4X NDR)")
        infiniband = layer == "InfiniBand"
        sm_lid, lid = ("0x1", f"0x{self.rdma_count + 1:x}") if infiniband else ("0x0", "0x0")
        self.files(port, sm_lid=sm_lid, lid=lid)
        gid = f"fe80:0000:0000:0000:{guid}"
        self.file(f"{port}/gids/0", gid)
        self.file(f"{port}/gid_attrs/types/0", "IB/RoCE v1")
        if not infiniband:
            self.file(f"{port}/gids/1", gid)
            self.file(f"{port}/gid_attrs/types/1", "RoCE v2")
            if netdev:
                self.files(f"{port}/gid_attrs/ndevs", **{"0": netdev, "1": netdev})
        for index in (2, 3):
            self.file(f"{port}/gids/{index}", "0000:0000:0000:0000:0000:0000:0000:0000")
        self.link(f"/sys/class/infiniband/{name}", home)
        return name

    def nic(self, path: str, numa: int, netdev: str, layer: str = "Ethernet", **more: object) -> str:
        """Add an mlx5 physical function with its netdev and RDMA device."""
        self.bridges(path, numa)
        real = self.function(path, 0x0207 if layer == "InfiniBand" else 0x0200, 0x15B3, 0x1021, numa)
        self.file("/sys/bus/pci/drivers/mlx5_core/bind", "")
        self.link(f"{real}/driver", "/sys/bus/pci/drivers/mlx5_core")
        self.files(real, sriov_totalvfs=more.get("total_vfs", 16), sriov_numvfs=more.get("vfs", 0))
        self.lines[f"{real}/vpd"] = ("b", base64.b64encode(vpd("MCX75310AAS-NEAT", f"MT23{numa}")).decode())
        last = len(self.lines) % 256
        mac = f"00:00:5e:00:53:{last:02x}"
        self.netdev(
            real,
            netdev,
            mac,
            kind=32 if layer == "InfiniBand" else 1,
            mtu=int(str(more.get("mtu", 1500))),
            port=int(path[-1]) if more.get("same_card") else 0,
        )
        self.rdma(real, layer, netdev, state=str(more.get("state", "4: ACTIVE")))
        for index in range(int(str(more.get("vfs", 0)))):
            self.vf(path, real, index, numa)
        return real

    def vf(self, path: str, physfn: str, index: int, numa: int) -> None:
        """Add a virtual function beside its physical one; VF numbers run on over the functions of a bus."""
        above, address = path.rsplit("/", 1)
        number = 16 + int(address[-1]) * 16 + index
        name = f"{address.rsplit(':', 1)[0]}:{number // 8:02x}.{number % 8}"
        real = self.function(f"{above}/{name}", 0x0200, 0x15B3, 0x101E, numa)
        self.link(f"{real}/physfn", physfn)
        self.link(f"{physfn}/virtfn{index}", real)
        netdev = f"{physfn.rsplit(':', 1)[-1].replace('.', 'f')}v{index}x{address[5:7]}"
        self.netdev(real, netdev, f"00:00:5e:00:53:{number % 256:02x}")
        self.rdma(real, "Ethernet", netdev)

    def text(self) -> str:
        rows = (f"{kind}\t{path}\t{content}\n" for path, (kind, content) in sorted(self.lines.items()))
        return "".join(rows)


def vpd(part: str, serial: str) -> bytes:
    """Return vital product data (PCI Local Bus Specification 3.0, appendix I): name, PN, SN, end."""
    name = b"NVIDIA ConnectX-7"
    fields = b"".join(
        key + bytes([len(value)]) + value for key, value in ((b"PN", part.encode()), (b"SN", serial.encode()))
    )
    fields += b"RV" + bytes([1, 0])
    return (
        b"\x82"
        + len(name).to_bytes(2, "little")
        + name
        + b"\x90"
        + len(fields).to_bytes(2, "little")
        + fields
        + b"\x78"
    )


def dmi(machine: Machine, vendor: str, product: str) -> None:
    machine.files("/sys/class/dmi/id", sys_vendor=vendor, product_name=product)


def one_switch_each(layer: str = "Ethernet") -> Machine:
    """Build two sockets with four PCIe switches each; a switch holds one GPU and its NIC. The dual-port storage
    card with its VFs, the management card and the BMC's screen stand apart.
    """
    machine = Machine()
    machine.nodes(2)
    dmi(machine, "Example", "GPU server, eight rails")
    # The management controller's VGA and the management NIC.
    machine.bridges("pci0000:00/0000:00:1c.0/0000:01:00.0/0000:02:00.0", 0)
    machine.function("pci0000:00/0000:00:1c.0/0000:01:00.0/0000:02:00.0", 0x0300, 0x1A03, 0x2000, 0)
    machine.bridges("pci0000:00/0000:00:1d.0/0000:03:00.0", 0)
    management = machine.function("pci0000:00/0000:00:1d.0/0000:03:00.0", 0x0200, 0x8086, 0x1521, 0)
    machine.netdev(management, "eno1", "00:00:5e:00:53:01")
    # PCI order and NUMA order agree; the GPUs' order is the rails' order.
    for index, bus in enumerate((0x15, 0x26, 0x37, 0x48, 0x97, 0xA7, 0xB7, 0xC7), start=1):
        numa = 0 if index <= 4 else 1
        switch = f"pci0000:{bus:02x}/0000:{bus:02x}:01.0/0000:{bus + 1:02x}:00.0"
        machine.gpu(f"{switch}/0000:{bus + 2:02x}:00.0/0000:{bus + 3:02x}:00.0", numa)
        name = f"ens{index}np0" if layer == "Ethernet" else f"ibs{index}"
        machine.nic(f"{switch}/0000:{bus + 2:02x}:01.0/0000:{bus + 4:02x}:00.0", numa, name, layer)
    for port in (0, 1):
        machine.nic(
            f"pci0000:59/0000:59:01.0/0000:5a:00.{port}", 0, f"ens20f{port}np{port}", "Ethernet", vfs=4, same_card=True
        )
    return machine


def cascaded() -> Machine:
    """Build two sockets, on each one root port over a two-level switch: four AMD accelerators and two NICs
    (PIX to two GPUs, PXB to the other two), and a storage card below the root port of its own.
    """
    machine = Machine()
    machine.nodes(2)
    dmi(machine, "Example", "GPU server, four rails")
    rail = 0
    for numa, bus in enumerate((0x10, 0x90)):
        top = f"pci0000:{bus:02x}/0000:{bus:02x}:01.0/0000:{bus + 1:02x}:00.0"
        for half in (0, 1):
            leaf = f"{top}/0000:{bus + 2:02x}:{half:02x}.0/0000:{bus + 3 + 8 * half:02x}:00.0"
            base = bus + 4 + 8 * half
            for slot in (0, 1):
                path = f"{leaf}/0000:{base:02x}:{slot:02x}.0/0000:{base + 1 + slot:02x}:00.0"
                machine.gpu(path, numa, 0x1002, 0x1200)
            rail += 1
            machine.nic(f"{leaf}/0000:{base:02x}:08.0/0000:{base + 4:02x}:00.0", numa, f"ens{rail}np0")
        machine.nic(
            f"pci0000:{bus + 0x20:02x}/0000:{bus + 0x20:02x}:01.0/0000:{bus + 0x21:02x}:00.0", numa, f"sto{numa}"
        )
    return machine


def virtual_machine() -> Machine:
    """Build a guest with two GPUs and two NICs passed through: all on the root bus, no NUMA."""
    machine = Machine()
    machine.nodes(1)
    dmi(machine, "QEMU", "Standard PC (Q35 + ICH9, 2009)")
    machine.function("pci0000:00/0000:00:01.0", 0x0300, 0x1234, 0x1111, -1)
    machine.gpu("pci0000:00/0000:00:05.0", -1)
    machine.gpu("pci0000:00/0000:00:06.0", -1)
    machine.nic("pci0000:00/0000:00:07.0", -1, "ens7")
    machine.nic("pci0000:00/0000:00:08.0", -1, "ens8")
    return machine


MACHINES = {
    "one-switch-each": one_switch_each,
    "one-switch-each-ib": lambda: one_switch_each("InfiniBand"),
    "cascaded": cascaded,
    "virtual-machine": virtual_machine,
}


def stand_for_the_host(monkeypatch: t.Any, root: Path) -> None:
    """Let the files of this host that modules read and write lie below a folder."""
    from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles

    monkeypatch.setattr(HostFiles.__init__, "__defaults__", (str(root), None))


def put(root: Path, path: str, text: str = "") -> None:
    """Write a file of a machine, with the folders above it."""
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text, encoding="utf-8")


def program(path: Path, text: str) -> None:
    """Write a program; what does not say what runs it is a shell's."""
    put(path.parent, path.name, text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def lay_out(name: str, root: Path) -> Path:
    """Make the tree of a recorded machine under a folder."""
    for line in (FIXTURES / f"{name}.tree").read_text(encoding="utf-8").splitlines():
        kind, path, content = line.split("\t")
        target = root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        if kind == "d":
            target.mkdir(exist_ok=True)
        elif kind == "l":
            target.symlink_to(content)
        else:
            target.write_bytes(base64.b64decode(content) if kind == "b" else f"{content}\n".encode())
    return root


if __name__ == "__main__":
    for machine_name, build in MACHINES.items():
        FIXTURES.mkdir(parents=True, exist_ok=True)
        (FIXTURES / f"{machine_name}.tree").write_text(build().text(), encoding="utf-8")
