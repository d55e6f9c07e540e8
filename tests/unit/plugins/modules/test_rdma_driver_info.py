# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.tests.unit import machines

EVERYWHERE = {"rdma-core", "infiniband-diags", "perftest", "mstflint", "ethtool", "pciutils"}
DEBIAN = {*EVERYWHERE, "ibverbs-providers", "ibverbs-utils", "rdmacm-utils"}
RHEL = {*EVERYWHERE, "libibverbs", "libibverbs-utils", "librdmacm-utils"}
TOOL = (Path(__file__).parents[2] / "fixtures/programs/package-manager").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "installed").write_text("python3-apt\n")
    return folder


@pytest.fixture
def host(tmp_path, home, monkeypatch):
    """A Debian host; root() writes its files, tools() its programs."""
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    root = tmp_path / "root"

    def write(path, text):
        machines.put(root, path, text)

    def tools(*names):
        for old in bin_folder.iterdir():
            old.unlink()
        for name in names:
            machines.program(bin_folder / name, f"#!{sys.executable}\n{TOOL}".replace("@HOME@", str(home)))

    write("/etc/os-release", 'ID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n')
    modules = ("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm", "mlx5_core", "mlx5_ib")
    write(
        f"/lib/modules/{os.uname().release}/modules.dep", "".join(f"kernel/x/{name}.ko.xz: a.ko\n" for name in modules)
    )
    write(f"/lib/modules/{os.uname().release}/build/Makefile", "")
    tools("dpkg-query")
    monkeypatch.setenv("PATH", str(bin_folder))
    machines.stand_for_the_host(monkeypatch, root)
    write.tools = tools
    write.bin = bin_folder
    write.root = root
    return write


@pytest.fixture
def params(host):
    return {}


def one(result, name):
    return next(check for check in result["checks"] if check["id"] == name)


def install(home, *names):
    with (home / "installed").open("a") as file:
        file.write("".join(f"{name}\n" for name in names))


def test_missing_packages_are_listed_until_they_are_installed(run_module, home):
    first = run_module()
    assert {*first["packages"]} == DEBIAN
    assert first["steps"] == [first["packages"]]
    assert one(first, "driver_packages")["status"] == "deviation"
    install(home, *first["packages"])
    second = run_module()
    assert (second["packages"], second["steps"]) == ([], [])
    assert {check["status"] for check in second["checks"]} == {"ok"}


def test_check_mode_predicts_and_runs_no_step(run_module):
    real, foretold = run_module(), run_module(_ansible_check_mode=True)
    assert foretold == {**real, "steps": []}


def test_the_library_of_apt_is_listed_where_apt_would_install_it(run_module, home):
    (home / "installed").write_text("")
    assert run_module()["packages"][0] == "python3-apt"
    install(home, *DEBIAN)
    assert run_module()["packages"] == []


def test_after_the_installation_what_is_missing_fails(run_module, refused, home):
    packages = run_module()["packages"]
    refused("rdma-core", fix="log", done=packages)
    install(home, *packages)
    assert run_module(done=packages)["packages"] == packages


def test_a_package_that_only_left_its_settings_is_not_there(run_module, home):
    (home / "removed").write_text("rdma-core\n")
    assert "rdma-core" in run_module()["packages"]


def test_the_rhel_family(run_module, host, home):
    host("/etc/os-release", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n')
    host.tools("rpm")
    found = run_module(versions={"perftest": "4.5"})
    assert {*found["packages"]} == RHEL
    assert "perftest-4.5" in found["steps"][0]
    install(home, *RHEL)
    assert run_module()["packages"] == []


def test_a_host_without_its_package_manager(run_module, refused, host):
    host.tools()
    refused("dpkg-query")
    assert run_module(packages=[])["packages"] == []


def test_an_unknown_distribution(refused, host):
    host("/etc/os-release", "ID=plan9\n")
    refused("plan9")


def test_ubuntus_small_kernel_gets_its_modules(run_module, host):
    host("/etc/os-release", "ID=ubuntu\nID_LIKE=debian\n")
    assert f"linux-modules-extra-{os.uname().release}" not in run_module(_ansible_check_mode=True)["packages"]
    host(f"/lib/modules/{os.uname().release}/modules.dep", "kernel/x/veth.ko: \n")
    assert f"linux-modules-extra-{os.uname().release}" in run_module()["packages"]


def test_a_kernel_without_modules_is_a_deviation(run_module, host):
    host(f"/lib/modules/{os.uname().release}/modules.dep", "")
    check = one(run_module(), "driver_modules")
    assert check["status"] == "deviation"
    assert "ib_core" in check["cause"]


DOCA = {"source": "doca", "doca_repository": "/srv/doca-host.deb", "doca_checksum": f"sha256:{'0' * 64}"}


def test_doca_ofed_and_why_it_reboots(run_module, home):
    first = run_module(**DOCA, doca_version="3.1.0-091000")
    assert (first["repository"], first["reboot_required"]) == (True, True)
    assert first["steps"] == [["doca-ofed=3.1.0-091000", "ethtool", "pciutils"]]
    install(home, *first["packages"])
    done = run_module(**DOCA, done=first["packages"])
    assert (done["repository"], done["reboot_reasons"]) == (False, first["reboot_reasons"])
    assert "doca-ofed is new" in done["reboot_reasons"][0]
    assert run_module(**DOCA)["reboot_required"] is False


def test_doca_without_kernel_headers_gets_them_first(run_module, host):
    kernel = os.uname().release
    os.unlink(f"{host.root}/lib/modules/{kernel}/build/Makefile")
    assert run_module(**DOCA)["steps"] == [
        [f"linux-headers-{kernel}", "gcc", "make"],
        ["doca-ofed", "ethtool", "pciutils"],
    ]


def test_doca_without_a_pin_is_refused(run_module):
    result = run_module(source="doca", doca_checksum="latest")
    assert {problem["place"] for problem in result["problems"]} == {"doca_repository", "doca_checksum"}


def test_a_driver_container_is_respected(run_module, host):
    host("/run/mellanox/drivers/.driver-ready", "")
    host("/sys/module/mlx5_core/version", "24.10-0.7.0\n")
    result = run_module()
    assert result["driver"]["source"] == "container"
    assert "its kernel modules are not changed" in result["notes"][0]
    assert not any("linux-modules" in name for name in result["packages"])
    assert "rdma_driver_source" in run_module(**DOCA)["fix"]


def test_a_driver_container_that_is_not_ready_is_a_deviation(run_module, host):
    found = run_module(source="container")
    assert one(found, "driver_source")["status"] == "deviation"
    assert not any("linux-modules" in name for name in found["packages"])
    host("/run/mellanox/drivers/.driver-ready", "")
    assert one(run_module(source="container"), "driver_source")["status"] == "ok"


def test_a_driver_on_disk_that_is_not_the_running_one(run_module, host):
    machines.program(host.bin / "modinfo", "echo AAAA")
    host("/sys/module/mlx5_core/srcversion", "BBBB\n")
    assert run_module()["reboot_reasons"] == ["the running mlx5_core is not the one on disk"]
    host("/sys/module/mlx5_core/srcversion", "AAAA\n")
    assert run_module()["reboot_required"] is False


def test_the_inbox_driver_after_the_reboot_is_a_deviation_and_no_second_reboot(run_module, host, home):
    install(home, "doca-ofed", "ethtool", "pciutils")
    host("/sys/module/mlx5_core/version", "5.0-0\n")
    result = run_module(**DOCA)
    check = one(result, "driver_source")
    assert (result["reboot_required"], check["status"]) == (False, "deviation")
    assert "doca-kernel-support" in check["fix"]


WITH = {"versions": {"demo-driver": "2.0-1"}, "packages": ["rdma-core"]}


@pytest.fixture
def old(home):
    """demo-driver 1.0-1 is installed."""
    install(home, "rdma-core", "demo-driver")


def test_a_named_version_is_installed_where_the_package_is_missing(run_module):
    found = run_module(**WITH)
    assert found["steps"] == [["rdma-core", "demo-driver=2.0-1"]]
    assert found["reboot_required"] is False


def test_another_version_is_reported_and_left_without_upgrade(run_module, old):
    result = run_module(**WITH)
    assert result["packages"] == []
    found = one(result, "driver_versions")
    assert (found["status"], found["observed"]) == ("deviation", {"demo-driver": "1.0-1"})
    assert "railops.rdma.upgrade" in found["fix"]


def test_upgrade_replaces_another_version_and_needs_one_reboot(run_module, refused, home, old):
    found = run_module(upgrade=True, **WITH)
    assert (found["replaced"], found["steps"]) == ({"demo-driver": "1.0-1"}, [["demo-driver=2.0-1"]])
    assert found["reboot_reasons"] == ["demo-driver was 1.0-1: the old one runs until the next boot"]
    done = {"done": found["packages"], "replaced": found["replaced"]}
    refused("demo-driver", upgrade=True, **WITH, **done)
    (home / "versions").write_text("demo-driver=2.0-1\n")
    assert run_module(upgrade=True, **WITH, **done)["reboot_reasons"] == found["reboot_reasons"]
    again = run_module(upgrade=True, **WITH)
    assert (again["packages"], again["reboot_required"]) == ([], False)


def test_an_upgrade_of_doca_needs_its_version(run_module):
    assert "doca_version" in run_module(upgrade=True, **DOCA)["msg"]


def test_an_rpm_may_be_named_without_its_release(run_module, host, home, old):
    host("/etc/os-release", 'ID=rocky\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n')
    host.tools("rpm")
    assert run_module(upgrade=True, versions={"demo-driver": "1.0"}, packages=[])["packages"] == []
