# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Owned files and links: only what differs is written, all of it goes again, and a refusal says what to do.

Of the kernel's files, the interfaces of a PCI function: its own ports, and neither representors nor partitions.
"""

from __future__ import annotations

import os

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._files import HostFiles, Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._programs import Machine, ProgramResult
from ansible_collections.railops.rdma.tests.unit.machines import put

PCI = "0000:1a:00.0"
FILE, LINK = "/etc/railops-rdma/one.json", "/etc/systemd/system/some.wants/one.service"


def test_written_once_and_taken_back(tmp_path):
    files = HostFiles(str(tmp_path))
    wanted = ({FILE: "text\n"}, {LINK: FILE})
    files.apply(files.changes(*wanted))
    assert (files.read(FILE), files.link(LINK)) == ("text\n", FILE)
    assert files.changes(*wanted) == []
    files.apply(files.changes({FILE: None}, {LINK: None}))
    os.mkfifo(tmp_path / "etc/pipe")
    assert (files.read(FILE), files.link(LINK), files.read("/etc/pipe")) == (None, None, "")
    # The folder of the links was made for them.
    assert not (tmp_path / "etc/systemd/system/some.wants").exists()


def test_a_file_has_its_mode_and_its_context_and_leaves_nothing_beside_it(tmp_path):
    labeled = []

    class Module:
        def set_default_selinux_context(self, path, changed):
            labeled.append((path, os.stat(path).st_mode & 0o777))

    files = HostFiles(str(tmp_path), Module())
    files.put(FILE, "old\n", 0o600)
    files.put(FILE, "new\n")
    place = tmp_path / FILE.lstrip("/")
    assert labeled == [(str(place), 0o600), (str(place), 0o644)]
    assert [item.name for item in place.parent.iterdir()] == [place.name]


def test_what_cannot_be_written_is_named_with_a_remedy(tmp_path):
    (tmp_path / "etc").write_text("no folder", encoding="utf-8")
    files = HostFiles(str(tmp_path))
    with pytest.raises(RdmaError, match=FILE) as caught:
        files.apply(files.changes({FILE: "text\n"}, {}))
    assert "become" in caught.value.fix


def test_a_program_is_run_by_its_name_and_one_that_is_not_there_is_no_failure():
    class Module:
        answer = (1, "", "ip: no such thing\n")

        def get_bin_path(self, name):
            return f"/usr/sbin/{name}" if name == "ip" else None

        def run_command(self, argv, environ_update):
            assert (argv[0], environ_update) == ("/usr/sbin/ip", {"LC_ALL": "C.UTF-8"})
            return self.answer

    machine = Machine(module=Module())
    assert machine.run(["ip", "rule"]) == ProgramResult(1, "", "ip: no such thing\n")
    assert machine.run(["ip", "rule"]).reported() == "ip: no such thing"
    assert machine.run(["rdma", "link"]).status == Machine().run(["ip"]).status == 127
    with pytest.raises(RdmaError, match="does not list the interfaces: ip: no such thing"):
        machine.links()
    assert Machine().links() == []


def test_modules_of_the_running_kernel_are_named_as_the_kernel_does(tmp_path):
    folder = f"lib/modules/{os.uname().release}"
    assert Sysfs(str(tmp_path)).kernel_modules() == {}
    put(tmp_path, f"{folder}/modules.dep", "kernel/a/ib-core.ko.xz: kernel/b/x.ko\nextra/mlx5_ib.ko:\nnonsense\n")
    put(tmp_path, f"{folder}/modules.builtin", "kernel/net/8021q/8021q.ko\n")
    assert Sysfs(str(tmp_path)).kernel_modules() == {"ib_core": False, "mlx5_ib": False, "8021q": True}


def netdev(root, name, *, below="", **files):
    """Record an interface of the function PCI, or of a device below it."""
    function = root / f"sys/devices/pci0000:17/{PCI}"
    home = function / below / "net" / name
    home.mkdir(parents=True)
    for file, text in files.items():
        put(home, file, f"{text}\n")
    for folder, target in (("bus/pci/devices", function), ("class/net", home)):
        link = root / "sys" / folder / target.name
        link.parent.mkdir(parents=True, exist_ok=True)
        if not link.exists():
            link.symlink_to(target)


def test_representors_are_not_taken_for_the_port(tmp_path):
    # By name alone, a representor would come first.
    netdev(tmp_path, "eth3", phys_port_name="pf0vf1")
    netdev(tmp_path, "eth4", phys_port_name="c1pf0sf7")
    netdev(tmp_path, "eth5", phys_port_name="pf1")
    netdev(tmp_path, "rail1", phys_port_name="p0")
    assert Sysfs(str(tmp_path)).pci_interfaces(PCI) == ["rail1"]


def test_a_device_behind_virtio_is_found(tmp_path):
    """A guest's card: its rails may be named by PCI address as those of metal are."""
    netdev(tmp_path, "ens2np0", below="virtio3")
    assert Sysfs(str(tmp_path)).pci_interfaces(PCI) == ["ens2np0"]


def test_ports_of_one_function_are_all_reported_and_partitions_are_not(tmp_path):
    netdev(tmp_path, "ib1")
    netdev(tmp_path, "ib0.8001", parent="ib0")
    netdev(tmp_path, "ib0", phys_port_name="")
    assert Sysfs(str(tmp_path)).pci_interfaces(PCI) == ["ib0", "ib1"]
