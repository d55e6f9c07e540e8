# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
from types import SimpleNamespace

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._netns import run as work
from ansible_collections.railops.rdma.tests.unit import machines

KERNEL = "6.1.0-9-amd64"
OWNED_FILE = "/etc/modprobe.d/zz-railops-rdma.conf"
EXCLUSIVE = """\
# Written by railops.rdma (module rdma_netns): do not edit; to remove it, set state: absent.
# RDMA network namespace mode: exclusive
options ib_core netns_mode=0
"""

LSINITRAMFS = """#!/bin/sh
cat "$1"
"""
# A real tool packs what lies in modprobe.d at the time.
UPDATE_INITRAMFS = """#!/bin/sh
[ -e "{root}/broken" ] && {{ echo "E: no space left" >&2; exit 1; }}
echo "$*" >> "{root}/update.log"
image="{root}/boot/initrd.img-$3"
grep -v modprobe.d "$image" > "$image.new"
[ -e "{root}{owned}" ] && echo "{owned}" | cut -c2- >> "$image.new"
mv "$image.new" "$image"
"""


# The kernel's RDMA subsystem as iproute2 sets it: the mode, and whether other namespaces forbid a change, are files.
RDMA = """#!/bin/sh
[ "$1 $2 $3" = "system set netns" ] || exit 2
[ -e "{root}/busy" ] && {{ echo "error: Device or resource busy" >&2; exit 1; }}
echo "$4" >> "{root}/writes"
[ -e "{root}/deaf" ] && exit 0
[ "$4" = exclusive ] && mode=N || mode=Y
echo $mode > "{root}/sys/module/ib_core/parameters/netns_mode"
"""
MODE = "sys/module/ib_core/parameters/netns_mode"


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A host in a folder, with ib_core loaded."""
    for folder in (
        "sys/module/ib_core/parameters",
        "etc/modprobe.d",
        f"lib/modules/{KERNEL}",
        "boot",
        "proc/1/ns",
        "bin",
    ):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / f"lib/modules/{KERNEL}/modules.dep").write_text("kernel/drivers/infiniband/core/ib_core.ko.xz:\n")
    (tmp_path / "proc/cmdline").write_text("root=/dev/vda\n")
    (tmp_path / "proc/1/ns/net").symlink_to("net:[4026531840]")
    (tmp_path / "proc/1/mountinfo").write_text("24 29 0:22 / /proc rw - proc proc rw\n")
    machines.stand_for_the_host(monkeypatch, tmp_path)
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=KERNEL))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    host = Host(tmp_path)
    host.write(MODE, "Y\n")
    host.tool("rdma", RDMA)
    return host


class Host:
    def __init__(self, root):
        self.root = root

    def text(self, path):
        file = self.root / path.lstrip("/")
        return file.read_text() if file.exists() else None

    def write(self, path, text):
        machines.put(self.root, path, text)

    def tool(self, name, text):
        machines.program(self.root / "bin" / name, text.format(root=self.root, owned=OWNED_FILE))

    def initramfs(self, *contents):
        self.tool("lsinitramfs", LSINITRAMFS)
        self.tool("update-initramfs", UPDATE_INITRAMFS)
        self.write(f"boot/initrd.img-{KERNEL}", "\n".join(contents) + "\n")


def test_the_first_run_changes_and_the_second_does_not(host, run_module):
    first = run_module(mode="exclusive")
    assert (first["changed"], first["live"], first["reboot_required"]) == (True, "set", False)
    assert host.text(OWNED_FILE) == EXCLUSIVE
    second = run_module(mode="exclusive")
    assert (second["changed"], second["live"]) == (False, "unchanged")
    assert host.text("writes") == "exclusive\n"


def test_check_mode_predicts_the_same_diff_and_writes_nothing(host, run_module):
    predicted = run_module(mode="exclusive", _ansible_check_mode=True, _ansible_diff=True)
    assert (host.text(OWNED_FILE), host.text("writes"), host.text(MODE)) == (None, None, "Y\n")
    assert {item["status"] for item in predicted["checks"]} == {"deviation"}
    real = run_module(mode="exclusive", _ansible_diff=True)
    assert predicted["diff"] == real["diff"]
    assert {item["status"] for item in real["checks"]} == {"ok"}


def test_absent_undoes_present(host, run_module):
    run_module(mode="exclusive")
    result = run_module(state="absent")
    assert (result["changed"], result["current"], result["persistent"]) == (True, "shared", "shared")
    assert host.text(OWNED_FILE) is None
    assert run_module(state="absent")["changed"] is False


def test_a_namespace_that_proc_shows_is_foreseen(host, run_module):
    host.write("busy", "")
    host.write("proc/1/mountinfo", "99 24 0:4 net:[4026532100] /run/netns/pod rw - nsfs nsfs rw\n")
    predicted = run_module(mode="exclusive", _ansible_check_mode=True, _ansible_diff=True)
    real = run_module(mode="exclusive", _ansible_diff=True)
    assert predicted["diff"] == real["diff"]
    assert (real["live"], real["reboot_required"], real["namespaces"]) == ("busy", True, 1)
    again = run_module(mode="exclusive")
    assert (again["changed"], again["reboot_required"]) == (False, True)


def test_an_unreachable_namespace_is_the_same_state(host, run_module):
    host.write("busy", "")
    result = run_module(mode="exclusive")
    assert (result["live"], result["current"], result["reboot_required"]) == ("busy", "shared", True)


def test_a_removed_namespace_does_no_harm(host, run_module):
    host.write("proc/1/mountinfo", "99 24 0:4 net:[4026532100] /run/netns/pod rw - nsfs nsfs rw\n")
    result = run_module(mode="exclusive")
    assert (result["live"], result["current"], result["reboot_required"]) == ("set", "exclusive", False)


def test_ib_core_not_loaded(host, run_module):
    shutil.rmtree(host.root / "sys/module/ib_core")
    result = run_module(mode="exclusive")
    assert (result["support"], result["current"], result["reboot_required"]) == ("not_loaded", None, False)
    assert host.text("writes") is None


def test_a_kernel_without_rdma_says_so(host, run_module, refused):
    shutil.rmtree(host.root / "sys/module/ib_core")
    host.write(f"lib/modules/{KERNEL}/modules.dep", "")
    refused("no RDMA subsystem", fix="rdma_driver", mode="exclusive")
    assert host.text(OWNED_FILE) is None
    looked = run_module(mode="exclusive", _ansible_check_mode=True)
    assert {item["observed"] for item in looked["checks"]} == {"absent", "shared"}


def test_a_kernel_without_the_mode_says_so(host, run_module, refused):
    (host.root / MODE).unlink()
    refused("no network namespace mode", mode="exclusive")
    assert run_module(mode="shared")["support"] == "too_old"


def test_a_file_of_others_is_reported(host, run_module, monkeypatch):
    warnings = []
    monkeypatch.setattr(work.AnsibleModule, "warn", lambda self, text: warnings.append(text))
    host.write("etc/modprobe.d/sriov_network_operator_modules_config.conf", "options ib_core netns_mode=1\n")
    result = run_module(mode="exclusive")
    assert result["persistent"] == "exclusive"
    assert result["conflicts"][0]["path"] == "/etc/modprobe.d/sriov_network_operator_modules_config.conf"
    assert any("sriov_network_operator" in text for text in warnings)


def test_an_initramfs_with_ib_core_is_made_again_once(host, run_module):
    host.initramfs("usr/lib/modules/x/ib_core.ko.xz")
    predicted = run_module(mode="exclusive", _ansible_check_mode=True)
    assert predicted["initramfs"] == [f"/boot/initrd.img-{KERNEL}"]
    assert host.text("update.log") is None
    assert run_module(mode="exclusive")["initramfs"] == [f"/boot/initrd.img-{KERNEL}"]
    assert host.text("update.log") == f"-u -k {KERNEL}\n"
    assert run_module(mode="exclusive")["changed"] is False
    assert run_module(state="absent")["initramfs"] == [f"/boot/initrd.img-{KERNEL}"]
    assert run_module(state="absent")["changed"] is False


def test_an_initramfs_without_ib_core_stays_unchanged(host, run_module):
    host.initramfs("usr/lib/modules/x/virtio_net.ko", "usr/share/ib_core.kotest")
    assert run_module(mode="exclusive")["initramfs"] == []
    assert host.text("update.log") is None


def test_a_failed_initramfs_is_finished_by_the_next_run(host, run_module):
    host.initramfs("usr/lib/modules/x/ib_core.ko")
    os.utime(host.root / f"boot/initrd.img-{KERNEL}", (1, 1))
    host.write("broken", "")
    assert "no space left" in run_module(mode="exclusive")["msg"]
    (host.root / "broken").unlink()
    assert run_module(mode="exclusive")["initramfs"] == [f"/boot/initrd.img-{KERNEL}"]
    assert run_module(mode="exclusive")["changed"] is False


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(f"boot/initramfs-{KERNEL}.img", id="the-rhel-family"),
        pytest.param(f"boot/0b5e/{KERNEL}/initrd", id="boot-loader-specification"),
        pytest.param(f"efi/Default/{KERNEL}/initrd.img", id="efi"),
        pytest.param(f"usr/lib/modules/{KERNEL}/initrd", id="beside-the-modules"),
    ],
)
def test_dracut_makes_the_image_of_the_running_kernel_where_it_lies(host, run_module, path):
    host.tool("lsinitrd", LSINITRAMFS)
    host.tool("dracut", '#!/bin/sh\necho "$*" > "{root}/dracut.log"\n')
    for image in (path, "boot/initramfs-0-rescue-1234.img", "boot/0b5e/0-rescue/initrd"):
        host.write(image, "-rw-r--r-- 1 root usr/lib/modules/x/ib_core.ko.xz\n")
    assert run_module(mode="exclusive")["initramfs"] == [f"/{path}"]
    assert host.text("dracut.log") == f"-f {host.root}/{path} {KERNEL}\n"


def test_a_mode_that_does_not_come_is_no_success(host, refused):
    host.write("deaf", "")
    refused("still reports shared", fix="dmesg", mode="exclusive")


def test_a_refusal_without_root_is_no_busy_kernel(host, refused, monkeypatch):
    host.write("busy", "")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refused("Device or resource busy", fix="become: true", mode="exclusive")


def test_without_the_program_a_host_in_the_mode_is_fine_and_a_live_change_says_what_to_install(
    host, run_module, refused, monkeypatch
):
    real = work.AnsibleModule.get_bin_path

    def there(self, name, *more):
        return None if name == "rdma" else real(self, name, *more)

    monkeypatch.setattr(work.AnsibleModule, "get_bin_path", there)
    host.write(MODE, "N\n")
    assert run_module(mode="exclusive")["current"] == "exclusive"
    refused("rdma is missing", fix="live: false", mode="shared")
    assert host.text(OWNED_FILE) == EXCLUSIVE, "refused before anything is written"
    (problem,) = run_module(mode="shared", _ansible_check_mode=True)["problems"]
    assert "rdma is missing" in problem["problem"]
    assert run_module(mode="shared", live=False)["reboot_required"] is True


@pytest.mark.parametrize("owned", [None, EXCLUSIVE])
def test_without_a_mode_the_host_keeps_what_it_has(host, run_module, owned):
    if owned:
        host.write(OWNED_FILE, owned)
    kept = run_module()
    assert (kept["changed"], kept["reboot_required"], kept["checks"], kept["current"]) == (False, False, [], "shared")
    assert (host.text(OWNED_FILE), host.text("writes")) == (owned, None)
