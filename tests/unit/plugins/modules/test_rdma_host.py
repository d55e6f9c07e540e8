# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os

import pytest

from ansible_collections.railops.rdma.tests.unit import machines
from ansible_collections.railops.rdma.tests.unit.management_network_cases import install, plain

RAIL = {"name": "rail1", "interface": "rail1", "pci": "19:00.0"}
CONF = "etc/modules-load.d/railops-rdma.conf"
LINK = "etc/systemd/network/05-railops-rail1.link"
MODPROBE = """#!/bin/sh
[ -e "{root}/broken" ] && {{ echo "modprobe: ERROR: could not insert '$1': Key was rejected by service" >&2; exit 1; }}
mkdir -p "{root}/sys/module/$1"
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    machines.lay_out("one-switch-each", tmp_path)
    names = ("core/ib_uverbs.ko.xz", "core/rdma_ucm.ko", "core/ib_umad.ko", "ulp/ipoib/ib_ipoib.ko.zst")
    modules = "".join(f"kernel/drivers/infiniband/{name}: x.ko\n" for name in names)
    machines.put(tmp_path, f"lib/modules/{os.uname().release}/modules.dep", modules)
    machines.program(tmp_path / "bin/modprobe", MODPROBE.format(root=tmp_path))
    install(tmp_path / "bin", plain("eth0"))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setenv("SSH_CONNECTION", "none")
    machines.stand_for_the_host(monkeypatch, tmp_path)
    return tmp_path


def test_the_first_run_changes_and_the_second_does_not(root, run_module):
    first = run_module(rails=[RAIL])
    assert (first["changed"], first["loaded"], first["reboot_required"]) == (True, ["ib_uverbs", "rdma_ucm"], True)
    assert "Name=rail1\n" in (root / LINK).read_text()
    second = run_module(rails=[RAIL])
    assert (second["changed"], second["reboot_required"]) == (False, True)
    assert {item["id"]: item["status"] for item in first["checks"]} == {"rdma_modules": "ok", "rdma_name": "deviation"}


def test_the_interface_of_the_default_route_keeps_its_name(root, run_module, refused):
    """Under another name it would have no network after the next start: nothing of it is written."""
    install(root / "bin", plain("ens1np0"))
    refused("ens1np0 carries the default route", rails=[RAIL])
    assert not (root / LINK).exists()
    foretold = run_module(rails=[RAIL], _ansible_check_mode=True)
    assert "ens1np0 carries the default route" in foretold["checks"][-1]["cause"]
    assert not run_module(rails=[RAIL], naming="none").get("failed")
    assert not run_module(rails=[{**RAIL, "interface": "ens1np0"}]).get("failed")


STORAGE = {"ens1np0.30": {"link": "ens1np0"}, "ens1np0": {}}


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        (plain("eth0", STORAGE), "ens1np0 carries ens1np0.30, and would be rail1"),
        (plain("eth0", {"ens1np0": {"master": "bond0"}, "bond0": {}}), "ens1np0 is a port of bond0"),
        (plain("eth0", ens1np0="10.66.0.5"), "ens1np0 has the address 10.66.0.5/32"),
    ],
)
def test_a_port_that_is_for_something_else_keeps_its_name(root, run_module, refused, answers, found):
    install(root / "bin", answers)
    result = refused(found, rails=[RAIL], rdma_prefixes=["172.17.0.0/16"])
    assert not (root / LINK).exists()
    assert ("rail_network_adopt_ports" in result["msg"]) is ("address" in found)
    (check,) = [item for item in run_module(rails=[RAIL], _ansible_check_mode=True)["checks"] if "name" in item["id"]]
    assert (check["id"], check["status"]) == ("rdma_rename", "deviation")


def test_a_port_over_which_storage_is_mounted_keeps_its_name(root, refused):
    machines.put(root, "proc/mounts", "filer:/home /home nfs4 rw,addr=192.0.2.7 0 0\n")
    install(root / "bin", plain("eth0", {"ens1np0": {}}), '[{"dst": "192.0.2.7", "dev": "ens1np0"}]')
    refused("ens1np0 carries storage (nfs4 192.0.2.7 over ens1np0)", rails=[RAIL])


@pytest.mark.parametrize("options", [{"rdma_prefixes": ["10.66.0.0/16"]}, {"adopt_ports": ["ens1np0"]}])
def test_what_is_the_fabrics_or_given_up_keeps_no_name(root, run_module, options):
    install(root / "bin", plain("eth0", STORAGE, **{"ens1np0.30": "10.66.0.6", "ens1np0": "10.66.0.5"}))
    if "adopt_ports" in options:
        install(root / "bin", plain("eth0", ens1np0="10.66.0.5"))
    assert run_module(rails=[RAIL], **options)["reboot_required"] is True
    assert (root / LINK).exists()


RINGS = "[Match]\n{}\n\n[Link]\nNamePolicy=onboard\nRxBufferSize=8192\nGenericReceiveOffload=false\n"


@pytest.mark.parametrize(
    "match", ["Path=pci-0000:19:00.*", "Driver=mlx5_core", "Type=ether\nOriginalName=*", "PermanentMACAddress={mac}"]
)
def test_a_users_settings_of_a_link_are_kept_beside_the_name(root, run_module, match):
    (root / "sys/class/net/ens1np0/address").write_text("00:00:5e:00:53:01\n")
    text = RINGS.format(match.format(mac="00-00-5E-00-53-01"))
    machines.put(root, "etc/systemd/network/10-rings.link", text)
    machines.put(root, "usr/lib/systemd/network/10-rings.link", "[Match]\nOriginalName=*\n")
    machines.put(
        root, "etc/systemd/network/10-rings.link.d/ours.conf", "[Link]\nTxBufferSize=4096\n[SR-IOV]\nTrust=yes"
    )
    machines.put(root, "etc/systemd/network/09-other.link", "[Match]\nPath=pci-0000:1a:*\n[Link]\nMTUBytes=9000\n")
    run_module(rails=[RAIL])
    output = (root / LINK).read_text()
    assert "# with the settings of /etc/systemd/network/10-rings.link\n" in output
    link = output.partition("[Link]\n")[2].partition("\n\n")[0].splitlines()
    assert link == [
        "Name=rail1",
        "AlternativeNamesPolicy=database onboard slot path",
        "MACAddressPolicy=persistent",
        "RxBufferSize=8192",
        "GenericReceiveOffload=false",
        "TxBufferSize=4096",
    ]
    assert output.endswith("\n[SR-IOV]\nTrust=yes\n")
    assert run_module(rails=[RAIL])["changed"] is False
    os.unlink(root / "etc/systemd/network/10-rings.link")
    assert run_module(rails=[RAIL])["changed"] is True
    assert "RxBufferSize" not in (root / LINK).read_text()


def test_a_secret_of_a_users_link_file_is_not_copied_to_where_all_read_it(root, refused):
    text = RINGS.format("Type=ether") + "WakeOnLanPassword=cb:a9:87:65:43:21\n"
    machines.put(root, "etc/systemd/network/10-rings.link", text)
    result = refused("sets WakeOnLanPassword=", "05-railops-rail1.link.d/wol.conf", rails=[RAIL])
    assert "cb:a9" not in str(result)
    assert not (root / LINK).exists()


@pytest.mark.parametrize("name", ["mlx5_ib\ninstall evil", "../x", "", "-r x", "a" * 65])
def test_what_is_no_name_of_a_kernel_module_is_refused(root, refused, name):
    refused("has no module", modules=["ib_uverbs", name])
    assert not (root / "etc/modules-load.d").exists()


def test_a_file_that_decides_before_ours_or_that_cannot_be_compared_is_refused(root, refused, run_module):
    machines.put(root, "etc/systemd/network/00-names.link", RINGS.format("Type=ether"))
    refused("/etc/systemd/network/00-names.link comes before 05-railops-rail1.link", rails=[RAIL])
    os.unlink(root / "etc/systemd/network/00-names.link")
    machines.put(root, "etc/systemd/network/10-host.link", RINGS.format("Host=gpu-*"))
    refused("whether /etc/systemd/network/10-host.link is for ens1np0 is not clear", rails=[RAIL])
    machines.put(root, "etc/systemd/network/10-host.link", RINGS.format("Host=gpu-*\nDriver=!mlx5*"))
    machines.put(root, "usr/lib/systemd/network/73-usb.link", "[Match]\nProperty=ID_USB_DRIVER=?*\n")
    machines.put(root, "usr/lib/systemd/network/99-default.link", "[Match]\nOriginalName=*\n[Link]\nNamePolicy=keep\n")
    assert not run_module(rails=[RAIL]).get("failed")
    assert "with the settings" not in (root / LINK).read_text()


def test_check_mode_predicts_the_same_diff_and_writes_nothing(root, run_module):
    predicted = run_module(rails=[RAIL], _ansible_check_mode=True, _ansible_diff=True)
    assert not (root / CONF).exists()
    assert not (root / "sys/module").exists()
    assert run_module(rails=[RAIL], _ansible_diff=True)["diff"] == predicted["diff"]


def test_absent_undoes_present(root, run_module):
    run_module(rails=[RAIL])
    # Ansible's list has the warnings of all modules of a process.
    warnings = run_module(rails=[RAIL], naming="none", _ansible_check_mode=True)["warnings"]
    assert f"the name rail1 was given by /{LINK} and holds until the host starts again. Set fabric_" in str(warnings)
    assert run_module(state="absent")["changed"] is True
    assert not (root / CONF).exists()
    assert not (root / LINK).exists()
    assert run_module(state="absent")["changed"] is False


def test_a_rail_out_of_service_keeps_its_name(root, run_module):
    other = {**RAIL, "name": "rail2", "interface": "rail2", "pci": None}
    run_module(rails=[RAIL])
    out = {"rails": [other], "out_of_service": [RAIL]}
    assert run_module(**out)["changed"] is False
    assert (root / LINK).exists()
    assert run_module(**out, state="absent")["changed"] is True
    assert not (root / LINK).exists()


def test_a_module_that_does_not_load_is_reported_with_the_kernels_reason(root, refused):
    (root / "broken").touch()
    refused("Key was rejected", fix="Secure Boot")


def test_a_host_without_rdma_modules_fails_and_in_check_mode_only_says_so(root, run_module, refused):
    (root / f"lib/modules/{os.uname().release}/modules.dep").write_text("")
    refused("no module ib_uverbs, rdma_ucm", "linux-modules-extra")
    assert run_module(_ansible_check_mode=True)["checks"][0]["status"] == "deviation"


def test_ipoib_interfaces_are_known(tmp_path, root, run_module, monkeypatch):
    machines.lay_out("one-switch-each-ib", tmp_path / "ib")
    machines.stand_for_the_host(monkeypatch, tmp_path / "ib")
    looked = run_module(
        network="infiniband", rails=[{"name": "rail1", "interface": "ibs1", "mtu": 4200}], _ansible_check_mode=True
    )
    assert {item["id"]: item["observed"] for item in looked["checks"]}["rdma_ipoib_mtu"] == "at most 4092"
