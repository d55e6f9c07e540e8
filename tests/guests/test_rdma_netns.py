# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""rdma_netns and the reboot of rdma_host against a real ib_core, over real restarts of a QEMU guest.

    lab.py up --name try --kind guests --nodes 1
    RAILOPS_LAB=try pytest tests/guests

Uses the lab's first host and leaves it as it was. The initramfs test ends the guest's QEMU and starts it again with the
initramfs that the guest made for itself: the lab boots its guests without a boot loader, with an image from outside.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest
import state
from guest import HOME, LAB, PATIENCE, lab, marks, shell
from guest import module as on_guest

HOST = "node1"
OWNED = "/etc/modprobe.d/zz-railops-rdma.conf"
NAMESPACE = f"rr-netns-{os.getpid()}"
guest = functools.partial(shell, HOST)
module = functools.partial(on_guest, HOST, "rdma_netns")
pytestmark = marks(LAB)


def mode():
    words = guest("rdma system").split()
    return words[words.index("netns") + 1]


def boot_id():
    return guest("cat /proc/sys/kernel/random/boot_id")


def wait_for_guest(before=None):
    """Wait until the guest answers, in another boot than before."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        done = lab("ssh", LAB, HOST, "--", "cat", "/proc/sys/kernel/random/boot_id", check=False)
        if done.returncode == 0 and done.stdout.strip() != before:
            # The soft-RoCE links come up with a unit of their own.
            guest("systemctl is-system-running --wait || true")
            return
        time.sleep(3)
    pytest.fail("The guest did not come back.")


def restart():
    before = boot_id()
    guest("systemctl reboot", check=False)
    wait_for_guest(before)


def restart_with(initramfs):
    """End the guest and start it again with another initramfs."""
    home = HOME / HOST
    number = int((home / "qemu.number").read_text())
    argv = Path(f"/proc/{number}/cmdline").read_bytes().decode().rstrip("\0").split("\0")
    space = os.stat(f"/proc/{number}/ns/net").st_ino
    name = next(path.name for path in Path("/run/netns").iterdir() if path.stat().st_ino == space)
    before = boot_id()
    guest("systemctl poweroff", check=False)
    deadline = time.monotonic() + 300
    while Path(f"/proc/{number}").exists() and time.monotonic() < deadline:
        time.sleep(1)
    argv[argv.index("-initrd") + 1] = str(initramfs)
    (home / "qemu.number").unlink(missing_ok=True)
    subprocess.run(["ip", "netns", "exec", name, *argv], cwd=home, check=True, capture_output=True, timeout=60)
    state.record_process(home / "qemu.pid", int((home / "qemu.number").read_text()))
    wait_for_guest(before)


@pytest.fixture(autouse=True)
def _as_it_was():
    if guest(f"ls {OWNED} 2>/dev/null", check=False) or mode() != "shared":
        module(state="absent")
    assert mode() == "shared"
    yield
    guest(f"ip netns del {NAMESPACE} 2>/dev/null; sleep 2", check=False)
    module(state="absent")
    assert guest(f"ls {OWNED} 2>/dev/null", check=False) == ""
    assert mode() == "shared"


def test_both_directions_without_another_namespace():
    predicted = module(mode="exclusive", check_mode=True)
    assert (predicted["live"], predicted["current"], mode()) == ("set", "exclusive", "shared")
    for wanted in ("exclusive", "shared"):
        result = module(mode=wanted)
        assert (result["live"], result["current"], result["reboot_required"]) == ("set", wanted, False)
        assert mode() == wanted
    again = module(mode="shared")
    assert (again["changed"], again["live"]) == (False, "unchanged")


@pytest.mark.parametrize("start", ["shared", "exclusive"])
def test_another_namespace_makes_it_a_reboot_in_both_directions(start):
    wanted = "exclusive" if start == "shared" else "shared"
    guest(f"rdma system set netns {start}; ip netns add {NAMESPACE}")
    result = module(mode=wanted)
    assert (result["live"], result["current"], result["reboot_required"]) == ("busy", start, True)
    assert result["namespaces"] >= 1
    assert "EBUSY" in result["reboot_reasons"][0]
    assert mode() == start
    again = module(mode=wanted)
    assert (again["changed"], again["reboot_required"]) == (False, True)


def test_ib_core_not_loaded_starts_in_the_mode_and_the_next_boot_too():
    # A boot without devices: what holds ib_core once it is there (configfs, a service) is not to be reported.
    guest("systemctl disable lab-rxe.service")
    restart()
    guest("systemctl enable lab-rxe.service")
    assert guest("lsmod | grep -c '^ib_core' || true") == "0"
    result = module(mode="exclusive")
    assert (result["support"], result["current"], result["live"]) == ("not_loaded", None, "not_loaded")
    assert (result["persistent"], result["reboot_required"], result["initramfs"]) == ("exclusive", False, [])
    guest("modprobe rdma_rxe")
    assert mode() == "exclusive"
    restart()
    assert "rxe1" in guest("rdma link")
    assert mode() == "exclusive"
    assert module(mode="exclusive")["changed"] is False


def last_rail():
    return guest("ls /sys/class/net | grep '^ens.np0$' | tail -n 1")


def host_plan_of(folder, interface):
    """Write a plan of one host manually, what the role reads: the interface is to be rail8."""
    frozen = {"by": "test_rdma_netns"}
    digest = hashlib.sha256(json.dumps(frozen, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    (folder / "plan/fabric/hosts").mkdir(parents=True)
    nodes = {HOST: {"zone": 0, "slot": 0, "retired": False}}
    plan = {"format": 1, "digest": digest, "frozen": frozen, "nodes": nodes}
    (folder / "plan/fabric/plan.json").write_text(json.dumps(plan))
    (folder / "plan/fabric/facts.json").write_text(json.dumps({"prefixes": []}))
    pci = guest(f"basename $(dirname $(readlink -f /sys/class/net/{interface}/device))")
    host = {
        "schema": 1,
        "frozen_digest": digest,
        "fabric": "fabric",
        "node": HOST,
        "slot": 0,
        "network": "roce",
        "rdma_mode": "exclusive",
        "rails": [{"name": "rail8", "index": 8, "interface": "rail8", "pci": pci, "mtu": 1500}],
    }
    (folder / f"plan/fabric/hosts/{HOST}.json").write_text(json.dumps(host))


PLAY = f"""
- hosts: {HOST}
  gather_facts: false
  tasks:
    - ansible.builtin.import_role:
        name: railops.rdma.rdma_host
    - ansible.builtin.import_role:
        name: railops.rdma.rdma_host
        tasks_from: reboot
"""


def play(folder, *options):
    return lab("exec", LAB, "--", "ansible-playbook", "play.yml", *options, cwd=folder).stdout


def test_the_role_brings_mode_and_names_with_one_reboot(tmp_path):
    usual = last_rail()
    host_plan_of(tmp_path, usual)
    (tmp_path / "play.yml").write_text(PLAY)
    guest(f"ip netns add {NAMESPACE}")
    before = boot_id()
    preview = play(tmp_path, "--check")
    assert "the kernel refuses the change" in preview
    assert f"is {usual} and becomes rail8 when the host starts" in preview
    assert boot_id() == before
    assert guest(f"ls {OWNED} /etc/systemd/network/05-railops-* 2>/dev/null", check=False) == ""
    play(tmp_path)
    after = boot_id()
    assert after != before
    assert mode() == "exclusive"
    assert "rail8" in guest("ls /sys/class/net").split()
    assert "changed=0" in play(tmp_path)
    assert boot_id() == after
    play(tmp_path, "-e", "rdma_host_state=absent")
    assert usual in guest("ls /sys/class/net").split()
    assert mode() == "shared"


def test_an_initramfs_with_ib_core_is_made_again_and_brings_the_mode(tmp_path):
    home = HOME / HOST
    argv = Path(f"/proc/{int((home / 'qemu.number').read_text())}/cmdline").read_bytes().decode().split("\0")
    original = argv[argv.index("-initrd") + 1]
    image = guest("echo /boot/initrd.img-$(uname -r)")

    def fetch(name):
        file = tmp_path / name
        file.write_bytes(lab("ssh", LAB, HOST, "--", "cat", image, text=False).stdout)
        return file

    # Packing as tightly as a real host does takes minutes on an emulated processor.
    cheap = "/etc/initramfs-tools/conf.d/zz-test"
    guest(f"cp {image} /root/image.before; echo COMPRESSLEVEL=1 > {cheap}")
    guest("echo ib_core >> /etc/initramfs-tools/modules; update-initramfs -u")
    try:
        without_file = fetch("without-file")
        guest(f"ip netns add {NAMESPACE}")
        result = module(mode="exclusive")
        assert (result["live"], result["reboot_required"], result["initramfs"]) == ("busy", True, [image])
        assert module(mode="exclusive")["changed"] is False
        with_file = fetch("with-file")
        # Why it has to be made again: the old image brings the old mode, whatever lies on the disk.
        restart_with(without_file)
        assert mode() == "shared"
        guest(f"ip netns add {NAMESPACE}")
        assert module(mode="exclusive")["reboot_required"] is True
        restart_with(with_file)
        assert mode() == "exclusive"
        assert module(state="absent")["initramfs"] == [image]
    finally:
        guest(f"sed -i '/^ib_core$/d' /etc/initramfs-tools/modules; rm {cheap}; mv /root/image.before {image}")
        restart_with(original)
