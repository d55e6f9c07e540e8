# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._driver import run as work
from ansible_collections.railops.rdma.tests.unit import machines

EVERYWHERE = {"rdma-core", "infiniband-diags", "perftest", "mstflint", "python3-pyverbs", "ethtool", "pciutils"}
DEBIAN = {*EVERYWHERE, "ibverbs-providers", "ibverbs-utils", "rdmacm-utils"}
RHEL = {*EVERYWHERE, "libibverbs", "libibverbs-utils", "librdmacm-utils"}
TOOL = (Path(__file__).parents[2] / "fixtures/programs/package-manager").read_text(encoding="utf-8")


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "packages"
    folder.mkdir()
    names = {*DEBIAN, *RHEL, "linux-modules-extra-" + os.uname().release}
    (folder / "available").write_text("\n".join(sorted(names)) + "\n")
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
    tools("dpkg-query", "dpkg", "apt-get")
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


def log(home):
    return (home / "log").read_text().split() if (home / "log").exists() else []


def test_the_first_run_changes_and_the_second_does_not(run_module, home):
    first = run_module()
    assert (first["changed"], first["reboot_required"]) == (True, False)
    assert {*first["packages"]} == DEBIAN
    writes = log(home)
    second = run_module()
    assert (second["changed"], log(home)) == (False, writes)
    assert {check["status"] for check in second["checks"]} == {"ok"}


def test_check_mode_predicts_and_writes_nothing(run_module, home):
    predicted = run_module(_ansible_check_mode=True, _ansible_diff=True)
    assert log(home) == []
    real = run_module(_ansible_diff=True)
    assert (predicted["diff"], predicted["packages"]) == (real["diff"], real["packages"])


def test_a_package_that_only_left_its_settings_is_not_there(run_module, home):
    (home / "removed").write_text("rdma-core\n")
    assert "rdma-core" in run_module()["packages"]


def test_the_rhel_family(run_module, host, home):
    host("/etc/os-release", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n')
    host.tools("rpm", "dnf")
    assert {*run_module()["packages"]} == RHEL
    assert log(home)[-1].startswith("dnf_-y_--refresh_install")
    assert "pyroute2" not in " ".join(log(home))
    assert run_module()["changed"] is False


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("E: Failed to fetch http://deb.example/x  Could not resolve 'deb.example'", "mirror"),
        ("Error: Failed to download metadata for repo 'appstream': Cannot download repomd.xml", "mirror"),
        ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 1", "Wait"),
        ("Error: Unable to find a match: perftest", "Enable the repository"),
        ("something else", "Run the command"),
    ],
)
def test_every_failure_is_one_error_with_its_remedy(refused, home, text, fix):
    (home / "failure").write_text(text)
    refused(text.split(":")[0][:10], fix=fix)


def test_a_package_in_no_repository(refused, home):
    refused("no-such-package", fix="rdma_driver_packages", extra_packages=["no-such-package"])


def test_a_host_without_its_package_manager(run_module, refused, host):
    host.tools()
    refused("dpkg-query")
    assert run_module(packages=[])["changed"] is False


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


def doca(tmp_path, text="doca"):
    package = tmp_path / "doca-host.deb"
    package.write_text(text)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"source": "doca", "doca_repository": str(package), "doca_checksum": f"sha256:{digest}"}


def test_doca_ofed_from_its_pinned_package(run_module, home, tmp_path):
    params = {**doca(tmp_path), "doca_version": "3.1.0-091000"}
    first = run_module(**params)
    assert first["reboot_required"] is True
    assert "doca-ofed is new" in first["reboot_reasons"][0]
    assert [line.split("_")[0] for line in log(home)] == ["dpkg", "apt-get", "apt-get"]
    assert "doca-ofed=3.1.0-091000" in log(home)[-1]
    assert all("--force-confold" in line for line in log(home) if "_update" not in line), "nobody is there to answer"
    assert run_module(**params)["changed"] is False


@pytest.mark.parametrize("there", [True, False])
def test_doca_without_kernel_headers_gets_them_first_or_touches_nothing(run_module, home, host, tmp_path, there):
    kernel = os.uname().release
    os.unlink(f"{host.root}/lib/modules/{kernel}/build/Makefile")
    if there:
        (home / "available").open("a").write(f"linux-headers-{kernel}\ngcc\nmake\n")
    result = run_module(**doca(tmp_path))
    assert f"linux-headers-{kernel}" in log(home)[1]
    if there:
        assert [line.split("_")[0] for line in log(home)] == ["apt-get", "apt-get", "dpkg", "apt-get", "apt-get"]
        assert result["packages"][-3:] == [f"linux-headers-{kernel}", "gcc", "make"]
    else:
        assert "headers of its running kernel" in result["msg"]
        assert "Boot a kernel" in result["fix"]
        assert not any(line.startswith("dpkg") for line in log(home))


def test_another_checksum_is_refused_before_anything_is_installed(refused, home, tmp_path):
    refused(fix="publishes", **{**doca(tmp_path), "doca_checksum": f"sha256:{'0' * 64}"})
    assert log(home) == []


def test_doca_without_a_pin_is_refused(run_module):
    result = run_module(source="doca", doca_checksum="latest")
    assert {problem["place"] for problem in result["problems"]} == {"doca_repository", "doca_checksum"}


def test_a_mirror_that_is_not_there(refused, tmp_path):
    for where, fix in (("http://127.0.0.1:9/doca-host.deb", "mirror"), (str(tmp_path / "none.deb"), "Copy it there")):
        refused(fix=fix, **{**doca(tmp_path), "doca_repository": where})


def test_a_driver_container_is_respected(run_module, host, tmp_path, home):
    host("/run/mellanox/drivers/.driver-ready", "")
    host("/sys/module/mlx5_core/version", "24.10-0.7.0\n")
    result = run_module()
    assert result["driver"]["source"] == "container"
    assert "left alone" in result["notes"][0]
    assert not any("linux-modules" in name for name in result["packages"])
    assert "rdma_driver_source" in run_module(**doca(tmp_path))["fix"]


def test_a_driver_container_is_waited_for(run_module, refused, host, monkeypatch):
    now = {"source": "container", "container_timeout": 0}
    empty = "was not ready within 0 s: its folder /run/mellanox/drivers is empty or missing"
    refused(empty, fix="nvidia.com/ofed-driver", **now)
    host("/run/mellanox/drivers/lib/modules/x", "")
    refused("its file .driver-ready is not", **now)
    looked = run_module(source="container", _ansible_check_mode=True)
    assert [check["status"] for check in looked["checks"] if check["id"] == "driver_source"] == ["deviation"]
    monkeypatch.setattr(work.time, "sleep", lambda _seconds: host("/run/mellanox/drivers/.driver-ready", ""))
    done = run_module(source="container", container_timeout=60)
    assert done["driver"]["source"] == "container"
    assert [check["status"] for check in done["checks"] if check["id"] == "driver_source"] == ["ok"]
    assert not any("linux-modules" in name for name in done["packages"])


def test_a_driver_on_disk_that_is_not_the_running_one(run_module, host):
    machines.program(host.bin / "modinfo", "echo AAAA")
    host("/sys/module/mlx5_core/srcversion", "BBBB\n")
    assert run_module()["reboot_reasons"] == ["the running mlx5_core is not the one on disk"]
    host("/sys/module/mlx5_core/srcversion", "AAAA\n")
    assert run_module()["reboot_required"] is False


def test_the_inbox_driver_after_the_reboot_is_a_deviation_and_no_second_reboot(run_module, host, home, tmp_path):
    (home / "installed").write_text("doca-ofed\nethtool\npciutils\n")
    host("/sys/module/mlx5_core/version", "5.0-0\n")
    result = run_module(**doca(tmp_path))
    check = one(result, "driver_source")
    assert (result["reboot_required"], check["status"]) == (False, "deviation")
    assert "doca-kernel-support" in check["fix"]


def test_the_error_shows_the_lines_that_matter(refused, home):
    (home / "failure").write_text("Reading package lists...\nE: Unable to locate package x\n")
    assert "Reading" not in refused("E: Unable to locate package x")["msg"]


WITH = {"versions": {"demo-driver": "2.0-1"}, "packages": ["rdma-core"]}


@pytest.fixture
def old(home):
    """demo-driver 1.0-1 is installed."""
    with (home / "available").open("a") as file:
        file.write("demo-driver\n")
    (home / "installed").write_text("rdma-core\ndemo-driver\n")


def test_a_named_version_is_installed_where_the_package_is_missing(run_module, home):
    with (home / "available").open("a") as file:
        file.write("demo-driver\n")
    assert run_module(**WITH)["packages"] == ["rdma-core", "demo-driver"]
    assert "demo-driver=2.0-1" in log(home)[-1]
    again = run_module(**WITH)
    assert (again["changed"], again["reboot_required"]) == (False, False)


def test_another_version_is_told_of_and_left_without_upgrade(run_module, home, old):
    result = run_module(**WITH)
    assert (result["changed"], log(home)) == (False, [])
    found = one(result, "driver_versions")
    assert (found["status"], found["observed"]) == ("deviation", {"demo-driver": "1.0-1"})
    assert "railops.rdma.upgrade" in found["fix"]


def test_upgrade_replaces_another_version_and_asks_for_one_reboot(run_module, home, old):
    foretold = run_module(upgrade=True, **WITH, _ansible_check_mode=True, _ansible_diff=True)
    assert log(home) == []
    done = run_module(upgrade=True, **WITH, _ansible_diff=True)
    assert foretold["diff"] == done["diff"]
    assert (done["replaced"], done["packages"]) == ({"demo-driver": "1.0-1"}, ["demo-driver"])
    assert done["reboot_reasons"] == ["demo-driver was 1.0-1: what runs is still the old one until the next boot"]
    assert "--allow-downgrades" in log(home)[-1], "the way back is a version too"
    again = run_module(upgrade=True, **WITH)
    assert (again["changed"], again["reboot_required"]) == (False, False)


def test_an_upgrade_that_brought_another_version_fails(refused, home, old):
    (home / "stuck").write_text("")
    refused("demo-driver is 1.0-1, not 2.0-1", upgrade=True, **WITH)


def test_an_upgrade_of_doca_needs_its_version(run_module, home):
    wants = {"source": "doca", "doca_repository": "/x.deb", "doca_checksum": f"sha256:{'0' * 64}"}
    assert "doca_version" in run_module(upgrade=True, **wants)["msg"]


def test_an_rpm_may_be_named_without_its_release(run_module, host, home, old):
    host("/etc/os-release", 'ID=rocky\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.4"\n')
    host.tools("rpm", "dnf")
    assert run_module(upgrade=True, versions={"demo-driver": "1.0"}, packages=[])["changed"] is False


def test_the_distributions_packages_remove_nothing_of_a_driver_that_was_installed_by_hand(run_module, refused, home):
    run_module()
    assert "_--no-remove_" in log(home)[-1]
    (home / "installed").write_text("")
    (home / "failure").write_text("E: Packages need to be removed but remove is disabled.\n")
    refused("installed by hand", "rdma_driver_source to doca")
