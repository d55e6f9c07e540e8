# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card.pci import (
    Distance,
    PciFunction,
    PciTree,
    host_path,
    normal_address,
    pci_key,
    read_pci,
)
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.tests.unit import machines


@pytest.fixture
def read(tmp_path):
    def read_machine(name):
        return read_pci(Sysfs(str(machines.lay_out(name, tmp_path))))

    return read_machine


def test_two_levels_of_switches_give_pix_and_pxb(read):
    tree = read("cascaded")
    assert [nic.netdevs[0] for nic in tree.gpu_affine_nics()] == [f"ens{rail}np0" for rail in range(1, 5)]
    first = tree.gpu_affine_nics()[0]
    assert [distance.name for _gpu, distance in tree.gpu_distances(first.address)] == (
        ["PIX"] * 2 + ["PXB"] * 2 + ["SYS"] * 4
    )
    assert tree.nearest_gpus(first.address) == tuple(gpu.address for gpu in tree.gpus[:2])
    storage = next(nic for nic in tree.nics if nic.netdevs == ("sto0",))
    assert tree.gpu_distances(storage.address)[0][1] is Distance.NODE
    assert tree.nearest_gpus(storage.address) == ()


def test_a_guest_hides_the_switches(read):
    tree = read("virtual-machine")
    assert len(tree.gpus) == 2
    assert {distance for _gpu, distance in tree.gpu_distances("0000:00:07.0")} == {Distance.PHB}
    assert tree.gpu_affine_nics() == ()


def test_a_function_knows_its_card_bridges_and_driver(read):
    nic = read("one-switch-each").functions["0000:5a:00.1"]
    assert (nic.card, nic.driver, nic.numa_node, nic.num_vfs, nic.total_vfs) == ("0000:5a:00", "mlx5_core", 0, 4, 16)
    assert nic.bridges == ("0000:59:01.0",)
    assert not nic.is_vf


def function(path, numa):
    parts = tuple(path.split("/"))
    return PciFunction(address=parts[-1], path=parts, numa_node=numa)


PORT = "pci0000:00/0000:00:01.0"
CARD, FAR = f"{PORT}/0000:01:00.0", "pci0000:40/0000:40:01.0/0000:41:00.0"
ONE, OTHER = f"{CARD}/0000:02:00.0/0000:03:00.0", f"{CARD}/0000:02:01.0/0000:04:00.0"


@pytest.mark.parametrize(
    ("one", "other", "numa", "nodes", "expected"),
    [
        pytest.param(CARD, f"{PORT}/0000:01:00.1", (0, 0), 2, Distance.PIX, id="functions-of-one-card"),
        pytest.param(CARD, "pci0000:00/0000:00:02.0/0000:02:00.0", (0, 0), 2, Distance.PHB, id="two-root-ports"),
        pytest.param(CARD, FAR, (1, 1), 2, Distance.NODE, id="host-bridges-of-one-node"),
        pytest.param(CARD, FAR, (0, 1), 2, Distance.SYS, id="two-nodes"),
        pytest.param(CARD, FAR, (-1, -1), 2, Distance.SYS, id="nodes-unknown"),
        pytest.param(CARD, FAR, (-1, -1), 1, Distance.NODE, id="only-one-node"),
        pytest.param(ONE, OTHER, (0, 0), 2, Distance.PIX, id="one-switch"),
        pytest.param(ONE, f"{OTHER}/0000:05:00.0/0000:06:00.0", (0, 0), 2, Distance.PXB, id="a-switch-below-a-switch"),
        pytest.param("pci0001:00/0001:00:01.0/0001:01:00.0", CARD, (0, 0), 2, Distance.NODE, id="two-domains"),
    ],
)
def test_distance(one, other, numa, nodes, expected):
    first, second = function(one, numa[0]), function(other, numa[1])
    tree = PciTree({first.address: first, second.address: second}, numa_nodes=nodes)
    assert tree.distance(first.address, second.address) is expected
    assert tree.distance(second.address, first.address) is expected


@pytest.mark.parametrize(
    ("class_code", "vendor", "expected"),
    [
        pytest.param(0x0302, 0x10DE, True, id="nvidia-3d"),
        pytest.param(0x0300, 0x10DE, True, id="nvidia-vga"),
        pytest.param(0x1200, 0x1002, True, id="amd-accelerator"),
        pytest.param(0x0380, 0x1002, True, id="amd-display"),
        pytest.param(0x0380, 0x8086, True, id="intel-max"),
        pytest.param(0x0300, 0x1A03, False, id="aspeed"),
        pytest.param(0x0300, 0x102B, False, id="matrox"),
        pytest.param(0x0680, 0x10DE, False, id="nvswitch"),
        pytest.param(0x0403, 0x10DE, False, id="audio"),
    ],
)
def test_what_counts_as_a_gpu(class_code, vendor, expected):
    item = PciFunction(address="0000:01:00.0", path=(), class_code=class_code, vendor=vendor)
    assert item.is_gpu is expected


def test_paths_start_at_the_host_bridge():
    assert host_path("/sys/devices/pci0000:00/0000:00:0e.0/pci10000:e0/10000:e0:01.0")[0] == "pci0000:00"
    assert host_path("/sys/devices/platform/soc/pci0005:00/0005:00:00.0") == ("pci0005:00", "0005:00:00.0")


def test_addresses_are_made_equal():
    assert normal_address(" 1A:00.0 ") == "0000:1a:00.0"
    assert normal_address(normal_address("1A:00.0")) == "0000:1a:00.0"
    assert sorted(["10000:00:00.0", "0000:9a:00.0", "0000:0a:00.1"], key=pci_key) == [
        "0000:0a:00.1",
        "0000:9a:00.0",
        "10000:00:00.0",
    ]
