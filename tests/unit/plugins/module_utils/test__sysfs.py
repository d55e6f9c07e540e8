# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interfaces of a PCI function: its own ports, and neither representors nor partitions."""

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.module_utils._sysfs import Sysfs

PCI = "0000:1a:00.0"


def netdev(root, name, **files):
    """Record an interface of the function PCI."""
    home = root / f"sys/devices/pci0000:17/{PCI}/net/{name}"
    home.mkdir(parents=True)
    for file, text in files.items():
        (home / file).write_text(f"{text}\n", encoding="ascii")
    for folder, target in (("bus/pci/devices", home.parents[1]), ("class/net", home)):
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


def test_ports_of_one_function_are_all_told_and_partitions_are_not(tmp_path):
    netdev(tmp_path, "ib1")
    netdev(tmp_path, "ib0.8001", parent="ib0")
    netdev(tmp_path, "ib0", phys_port_name="")
    assert Sysfs(str(tmp_path)).pci_interfaces(PCI) == ["ib0", "ib1"]


def test_no_such_function(tmp_path):
    assert Sysfs(str(tmp_path)).pci_interfaces(PCI) == []
