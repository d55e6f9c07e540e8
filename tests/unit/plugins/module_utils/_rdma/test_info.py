# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._card.vpd import parse_vpd
from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._rdma.checks import CHECKS, check_rails
from ansible_collections.railops.rdma.plugins.module_utils._rdma.info import read_info, roce_mtu
from ansible_collections.railops.rdma.tests.unit import machines


@pytest.fixture
def host(tmp_path):
    def lay_out(name):
        machines.lay_out(name, tmp_path)
        return Sysfs(str(tmp_path))

    return lay_out


def rails(count=8, **more):
    return [
        {"name": f"rail{n}", "interface": f"ens{n}np0", "pci": None, "mtu": 1500, **more} for n in range(1, count + 1)
    ]


def test_a_complete_machine(host):
    info = read_info(host("one-switch-each"))
    assert len(info["devices"]) == 18
    first = info["devices"][0]
    assert (first["pci"], first["numa_node"], first["firmware"]) == ("0000:19:00.0", 0, "28.39.1002")
    assert first["nearest_gpus"] == ["0000:18:00.0"]
    port = first["ports"][0]
    assert (port["link_layer"], port["state"], port["phys_state"]) == ("Ethernet", "ACTIVE", "LinkUp")
    assert (port["netdev"], port["netdev_mtu"], port["active_mtu"]) == ("ens1np0", 1500, 1024)
    assert [(gid["index"], gid["type"]) for gid in port["gids"]] == [(0, "IB/RoCE v1"), (1, "RoCE v2")]
    storage = next(device for device in info["devices"] if device["pci"] == "0000:5a:00.0")
    assert (storage["num_vfs"], storage["vfs"]) == (4, [f"0000:5a:02.{number}" for number in range(4)])
    vf = next(device for device in info["devices"] if device["pci"] == "0000:5a:02.0")
    assert (vf["vf"], vf["physfn"]) == (True, "0000:5a:00.0")
    assert [nic["netdevs"] for nic in info["nics_without_rdma"]] == [["eno1"]]
    assert [gpu["index"] for gpu in info["gpus"]] == list(range(8))


def test_the_gid_tables_can_be_left_out(host):
    info = read_info(host("one-switch-each"), gids=False)
    assert (info["devices"][0]["ports"][0]["gids"], info["devices"][0]["ports"][0]["netdev"]) == ([], "ens1np0")


def test_a_kernel_without_rdma(tmp_path):
    info = read_info(Sysfs(str(tmp_path)))
    assert (info["devices"], info["netns_mode"]) == ([], None)


@pytest.mark.parametrize(("text", "mode"), [("Y\n", "shared"), ("N\n", "exclusive")])
def test_the_namespace_mode(tmp_path, text, mode):
    sysfs = Sysfs(str(tmp_path))
    machines.put(tmp_path, "/sys/module/ib_core/parameters/netns_mode", text)
    assert read_info(sysfs)["netns_mode"] == mode


def test_a_software_device_is_found_by_its_parent(tmp_path):
    sysfs = Sysfs(str(tmp_path))
    home = "/sys/devices/virtual/infiniband/rxe0"
    machines.put(tmp_path, f"{home}/parent", "ens1np0\n")
    machines.put(tmp_path, f"{home}/ports/1/link_layer", "Ethernet\n")
    machines.put(tmp_path, "/sys/class/net/ens1np0/mtu", "4200\n")
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    (tmp_path / "sys/class/infiniband/rxe0").symlink_to(tmp_path / home.lstrip("/"))
    device = read_info(sysfs)["devices"][0]
    assert (device["name"], device["pci"], device["ports"][0]["netdev"]) == ("rxe0", None, "ens1np0")
    assert device["ports"][0]["active_mtu"] == 4096


def test_two_ports_of_one_function_are_distinguished(host, tmp_path):
    sysfs = host("one-switch-each")
    real = sysfs.real("/sys/bus/pci/devices/0000:19:00.0")
    machines.put(tmp_path, f"{real}/net/aaa1/dev_port", "1\n")
    machines.Path(sysfs.path("/sys/class/net/aaa1")).symlink_to(sysfs.path(f"{real}/net/aaa1"))
    machines.put(tmp_path, f"{real}/infiniband/mlx5_0/ports/2/link_layer", "Ethernet\n")
    ports = read_info(sysfs)["devices"][0]["ports"]
    assert [port["netdev"] for port in ports] == ["ens1np0", "aaa1"]


def test_vital_product_data_that_is_cut_short_is_no_crash():
    complete = machines.vpd("PART", "SERIAL")
    assert parse_vpd(complete) == {"PN": "PART", "SN": "SERIAL"}
    for size in range(len(complete)):
        parse_vpd(complete[:size])
    assert parse_vpd(b"\xff" * 64) == {}


@pytest.mark.parametrize(("mtu", "expected"), [(9000, 4096), (4200, 4096), (4191, 2048), (1500, 1024), (300, None)])
def test_what_an_interface_mtu_allows(mtu, expected):
    assert roce_mtu(mtu) == expected


def test_rails_that_are_as_planned_pass(host):
    checks = check_rails(read_info(host("one-switch-each")), rails(), "roce")
    assert len(checks) == 8 * len(CHECKS)
    assert {check["status"] for check in checks} == {"ok", "skipped"}
    assert {check["id"] for check in checks if check["status"] == "skipped"} == {"rdma_subnet_manager"}


def test_rails_of_infiniband_pass(host):
    planned = [{"name": "rail1", "interface": "ibs1", "pci": None, "mtu": None}]
    checks = check_rails(read_info(host("one-switch-each-ib")), planned, "infiniband")
    assert [check["id"] for check in checks if check["status"] == "ok"] == [
        "rdma_device",
        "rdma_link_layer",
        "rdma_port_state",
        "rdma_subnet_manager",
    ]


def one(checks, name):
    return next(check for check in checks if check["id"] == name)


@pytest.mark.parametrize(
    ("change", "network", "check", "word"),
    [
        pytest.param({"link_layer": "InfiniBand"}, "roce", "rdma_link_layer", "nic_link_type", id="other-link-layer"),
        pytest.param({"state": "DOWN", "phys_state": "Disabled"}, "roce", "rdma_port_state", "cable", id="no-cable"),
        pytest.param({"state": "DOWN"}, "roce", "rdma_port_state", "rail_network", id="interface-down"),
        pytest.param({"state": "INIT"}, "infiniband", "rdma_port_state", "subnet manager", id="no-subnet-manager"),
        pytest.param({"sm_lid": 0}, "infiniband", "rdma_subnet_manager", "OpenSM", id="sm-lid"),
        pytest.param({"netdev_mtu": 9000}, "roce", "rdma_mtu", "rail_network", id="mtu"),
        pytest.param({"active_mtu": 512}, "roce", "rdma_active_mtu", "4200", id="active-mtu"),
    ],
)
def test_each_deviation_says_what_to_do(host, change, network, check, word):
    info = read_info(host("one-switch-each"))
    info["devices"][0]["ports"][0].update(change)
    found = one(check_rails(info, rails(1), network), check)
    assert (found["status"], bool(found["cause"])) == ("deviation", True)
    assert word in found["fix"]


def test_a_rail_without_a_device_says_why(host):
    info = read_info(host("one-switch-each"))
    checks = check_rails(info, [{"name": "rail9", "interface": "ens9np0", "pci": None, "mtu": 1500}], "roce")
    assert checks[0]["status"] == "deviation"
    assert "discover" in checks[0]["fix"]
    assert {check["status"] for check in checks[1:]} == {"skipped"}
    checks = check_rails(info, [{"name": "rail9", "interface": "eno1", "pci": None, "mtu": 1500}], "roce")
    assert "rdma_driver" in checks[0]["fix"]
    info["devices"] = []
    checks = check_rails(info, rails(1), "roce")
    assert "no RDMA device at all" in checks[0]["cause"]


def test_a_rail_may_be_named_by_pci_or_an_alternative_name(host):
    info = read_info(host("one-switch-each"))
    by_pci = [{"name": "rail1", "interface": "elsewhere", "pci": "19:00.0", "mtu": 1500}]
    assert one(check_rails(info, by_pci, "roce"), "rdma_device")["observed"] == "mlx5_0"
    by_alias = [{"name": "rail1", "interface": "rail1", "pci": None, "mtu": 1500}]
    assert one(check_rails(info, by_alias, "roce", {"rail1": "ens1np0"}), "rdma_device")["observed"] == "mlx5_0"


def test_a_soft_device_is_of_the_rail_whose_interface_it_has_also_where_the_plan_knows_its_pci_address(host):
    info = read_info(host("one-switch-each"))
    soft = [{**device, "pci": None, "name": f"rxe{number}"} for number, device in enumerate(info["devices"][:2], 1)]
    found = check_rails({**info, "devices": soft}, rails(2, pci="19:00.0"), "roce")
    assert [row["observed"] for row in found if row["id"] == "rdma_device"] == ["rxe1", "rxe2"]


def functions(guids):
    """Return the device of an InfiniBand rail and its virtual functions, as rdma_info shows them."""
    port = {"port": 1, "link_layer": "InfiniBand", "state": "ACTIVE", "phys_state": "LinkUp", "lid": 2, "sm_lid": 1}
    port |= {"netdev": "ibs1", "netdev_mtu": 2044, "active_mtu": None}
    rail = {"name": "mlx5_0", "pci": "0000:19:00.0", "vf": False, "physfn": None, "num_vfs": 2, "node_guid": "a:b:c:1"}
    found = [{**rail, "ports": [port]}]
    for number, guid in enumerate(guids, 1):
        own = {"name": f"mlx5_{number}", "pci": f"0000:19:00.{number}", "vf": True, "physfn": rail["pci"], "num_vfs": 0}
        found.append({**own, "node_guid": guid, "ports": [{**port, "netdev": None}]})
    return {"devices": found, "nics_without_rdma": []}


@pytest.mark.parametrize(
    ("info", "status"),
    [
        pytest.param(functions(["a:b:c:2", "a:b:c:3"]), "ok", id="sound"),
        pytest.param(functions(["0000:0000:0000:0000", "a:b:c:3"]), "deviation", id="no GUID"),
        pytest.param(functions(["a:b:c:2", "a:b:c:2"]), "deviation", id="the same GUID"),
        pytest.param(functions([]), "skipped", id="all in pods"),
    ],
)
def test_virtual_functions_of_an_infiniband_rail_have_guids(info, status):
    rails = [{"name": "rail1", "interface": "ibs1", "pci": "0000:19:00.0", "mtu": 2044}]
    checks = {check["id"]: check for check in check_rails(info, rails, "infiniband")}
    assert checks["rdma_vf_guid"]["status"] == status
