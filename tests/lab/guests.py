# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that are QEMU guests: a real kernel with ib_core and soft-RoCE, systemd, a network manager and sshd.

A guest's disk is an overlay over the common image. Its own part (name, keys, addresses, interface names) is a tar
archive that QEMU hands over. Each of its NICs is a tap device on the fabric, with a fixed address and PCI slot.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import shlex
import socket
import subprocess
import tarfile
import typing as t
from pathlib import Path

import cluster
import state
from fabric import cable as fabric_cable
from fabric import plug
from image import Image, image
from shell import LabError, ip, run, wait_for
from topology import FABRIC_MTU, FIRST_RAIL_SLOT, MANAGEMENT, MANAGEMENT6, Host, Lab

if t.TYPE_CHECKING:
    from collections.abc import Sequence

# Without the mitigations an emulated system call is much cheaper, and labs have no attackers. On a busy machine
# the kernel would distrust the TSC and ask the HPET instead, emulated at each look: programs in Go ask all the time.
KERNEL_ARGUMENTS = (
    "root=/dev/vda rw console=ttyS0 quiet systemd.show_status=1 panic=5 mitigations=off audit=0 nowatchdog "
    "tsc=reliable transparent_hugepage=madvise damon_stat.enabled=N"
)
UNITS = "/lib/systemd/system"
ENABLED = {
    "networkd": {
        "multi-user.target.wants/systemd-networkd.service": "systemd-networkd.service",
        "sockets.target.wants/systemd-networkd.socket": "systemd-networkd.socket",
        "dbus-org.freedesktop.network1.service": "systemd-networkd.service",
    },
    "networkmanager": {
        "multi-user.target.wants/NetworkManager.service": "NetworkManager.service",
        "dbus-org.freedesktop.nm-dispatcher.service": "NetworkManager-dispatcher.service",
    },
}
ENABLED["netplan"] = ENABLED["networkd"]


def up(lab: Lab, *, wait: float) -> None:
    """Start all guests at once and wait (seconds, for all together) until each answers over ssh."""
    parts = image(node=lab.cluster, suite=lab.suite)
    home = state.folder(lab.name)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"lab {lab.name}", "-f", str(home / "key")])
    for host in lab.hosts:
        _prepare(lab, host, parts)
    known = [f"{host.address} {_public_key(home / host.name / 'host_key')}" for host in lab.hosts]
    (home / "known_hosts").write_text("\n".join(known) + "\n", encoding="utf-8")
    for host in lab.hosts:
        _boot(lab, host, parts)
    for host in lab.hosts:
        wait_for_ssh(lab, host, seconds=wait)


def _public_key(private: Path) -> str:
    """Return type and key of the public half."""
    return " ".join(Path(f"{private}.pub").read_text(encoding="utf-8").split()[:2])


def _prepare(lab: Lab, host: Host, parts: Image) -> None:
    """Make a guest's disk, keys, seed and cables."""
    home = state.folder(lab.name) / host.name
    home.mkdir(mode=0o700)
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host.name, "-f", str(home / "host_key")])
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(parts.disk), str(home / "disk.qcow2")])
    (home / "seed.tar").write_bytes(_seed(lab, host))
    ports = [["tuntap", "add", "dev", host.port(rail), "mode", "tap"] for rail in (0, *lab.rails)]
    ip(lab.fabric, [*ports, *(["link", "set", host.port(rail), "mtu", FABRIC_MTU] for rail in lab.rails)])
    plug(lab, host)


def _seed(lab: Lab, host: Host) -> bytes:
    """Return the archive with what is one guest's own."""
    home = state.folder(lab.name)
    names = {host.name: host.address for host in lab.hosts}
    hosts = "".join(f"{address} {name}\n" for name, address in names.items())
    files = {
        "etc/hostname": (f"{host.name}\n", 0o644),
        "etc/hosts": (f"127.0.0.1 localhost\n::1 localhost\n{hosts}", 0o644),
        "etc/machine-id": (hashlib.sha256(f"{lab.name}/{host.name}".encode()).hexdigest()[:32] + "\n", 0o444),
        "root/.ssh/authorized_keys": ((home / "key.pub").read_text(encoding="utf-8"), 0o600),
        "etc/ssh/ssh_host_ed25519_key": ((home / host.name / "host_key").read_text(encoding="utf-8"), 0o600),
        "usr/local/sbin/lab-rxe": (_rxe_script(lab), 0o755),
    }
    for rail, name in enumerate(("mgmt0", *lab.interfaces)):
        # After every file that the roles may write, before systemd's own 99-default.link.
        text = f"[Match]\nPath=pci-{_pci(rail)}\n\n[Link]\nName={name}\n"
        files[f"etc/systemd/network/90-lab-{name}.link"] = (text, 0o644)
    files |= _management(lab.manager, host)
    if lab.cluster:
        files |= cluster.node_files(lab, host)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, (content, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content.encode()), mode
            archive.addfile(member, io.BytesIO(content.encode()))
        for link, unit in ENABLED[lab.manager].items():
            member = tarfile.TarInfo(f"etc/systemd/system/{link}")
            member.type, member.linkname = tarfile.SYMTYPE, f"{UNITS}/{unit}"
            archive.addfile(member)
    return buffer.getvalue()


def _rxe_script(lab: Lab) -> str:
    """Return what makes a soft-RoCE device on every rail at boot, as if it were hardware."""
    # By slot, as a card's driver does: a role may have given the rails other names.
    adds = "".join(f"add rxe{rail} {_pci(rail)}\n" for rail in lab.rails)
    add = 'add() { rdma link add "$1" type rxe netdev "$(ls /sys/bus/pci/devices/$2/virtio*/net)"; }'
    return f"#!/bin/sh\nset -e\nmodprobe rdma_rxe\nudevadm settle --timeout=600\n{add}\n{adds}"


def _pci(rail: int) -> str:
    """Return the PCI address of a rail's NIC; rail 0 is the management's."""
    return f"0000:00:{FIRST_RAIL_SLOT - 1 + rail:02x}.0"


def _management(manager: str, host: Host) -> dict[str, tuple[str, int]]:
    """Return the file that configures mgmt0 the way of a network manager."""
    address, address6 = f"{host.address}/{MANAGEMENT.prefixlen}", f"{host.address6}/{MANAGEMENT6.prefixlen}"
    gateway, gateway6 = MANAGEMENT[1], MANAGEMENT6[1]
    if manager == "networkd":
        text = (
            f"[Match]\nName=mgmt0\n\n[Network]\nAddress={address}\nAddress={address6}\n"
            f"Gateway={gateway}\nGateway={gateway6}\nIPv6AcceptRA=no\n"
        )
        return {"etc/systemd/network/10-mgmt0.network": (text, 0o644)}
    if manager == "netplan":
        content = {
            "addresses": [address, address6],
            "accept-ra": False,
            "routes": [{"to": "0.0.0.0/0", "via": str(gateway)}, {"to": "::/0", "via": str(gateway6)}],
        }
        network = {"version": 2, "renderer": "networkd", "ethernets": {"mgmt0": content}}
        # JSON is YAML.
        return {"etc/netplan/01-mgmt0.yaml": (json.dumps({"network": network}, indent=2) + "\n", 0o600)}
    text = (
        "[connection]\nid=mgmt0\ntype=ethernet\ninterface-name=mgmt0\n\n"
        f"[ipv4]\nmethod=manual\naddress1={address},{gateway}\n\n"
        f"[ipv6]\nmethod=manual\naddress1={address6},{gateway6}\n"
    )
    return {"etc/NetworkManager/system-connections/mgmt0.nmconnection": (text, 0o600)}


@functools.cache
def has_kvm(kernel: Path) -> bool:
    """Say whether KVM boots a stock kernel within three seconds: some machines have /dev/kvm and boot none."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return False
    argv = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-machine", "pc,accel=kvm", "-cpu", "host"]
    argv += ["-m", "256", "-display", "none", "-serial", "stdio", "-no-reboot", "-kernel", str(kernel)]
    argv += ["-append", "earlyprintk=serial console=ttyS0 panic=-1"]
    try:
        text = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=3).stdout
    except subprocess.TimeoutExpired as exc:
        text = exc.stdout or b""
    return b"Linux version" in text


def _boot(lab: Lab, host: Host, parts: Image) -> None:
    """Start QEMU for a guest inside the fabric's namespace."""
    home = state.folder(lab.name) / host.name
    accelerator = "kvm" if has_kvm(parts.kernel) else "tcg"
    argv = ["qemu-system-x86_64", "-name", f"{lab.fabric}.{host.name}", "-nodefaults", "-no-user-config"]
    argv += ["-machine", f"pc,accel={accelerator}", "-cpu", "max" if accelerator == "tcg" else "host"]
    argv += ["-smp", "1", "-m", str(lab.memory), "-display", "none", "-serial", "file:serial.log"]
    argv += ["-qmp", "unix:qmp,server=on,wait=off", "-pidfile", "qemu.number", "-daemonize"]
    argv += ["-kernel", str(parts.kernel), "-initrd", str(parts.initramfs), "-append", KERNEL_ARGUMENTS]
    argv += ["-fw_cfg", "name=opt/railops.lab/seed,file=seed.tar"]
    argv += ["-drive", "file=disk.qcow2,if=none,id=disk,cache=unsafe,discard=unmap"]
    argv += ["-device", "virtio-blk-pci,drive=disk,bus=pci.0,addr=0x4", "-device", "virtio-rng-pci,bus=pci.0,addr=0x5"]
    for rail in (0, *lab.rails):
        slot = FIRST_RAIL_SLOT - 1 + rail
        argv += ["-netdev", f"tap,id=net{rail},ifname={host.port(rail)},script=no,downscript=no"]
        argv += ["-device", f"virtio-net-pci,id=nic{rail},netdev=net{rail},mac={host.mac(rail)},addr={slot:#x}"]
        # Without a boot ROM: nothing boots from the network, and it costs a second a NIC.
        argv[-1] += ",bus=pci.0,romfile="
    done = subprocess.run(
        ["ip", "netns", "exec", lab.fabric, *argv], cwd=home, capture_output=True, text=True, check=False, timeout=60
    )
    if done.returncode:
        raise LabError(
            f"QEMU did not start {host.name} ({done.returncode}).", done.stderr.strip() or "It said nothing."
        )
    state.record_process(home / "qemu.pid", int((home / "qemu.number").read_text(encoding="utf-8")))


def ssh_command(lab: Lab, host: Host) -> list[str]:
    """Return the command that logs in to a guest."""
    home = state.folder(lab.name)
    options = ["IdentitiesOnly=yes", f"UserKnownHostsFile={home / 'known_hosts'}", "StrictHostKeyChecking=yes"]
    words = [word for option in (*options, "ConnectTimeout=20") for word in ("-o", option)]
    return ["ip", "netns", "exec", lab.fabric, "ssh", "-i", str(home / "key"), *words, f"root@{host.address}"]


def wait_for_ssh(lab: Lab, host: Host, *, seconds: float) -> None:
    """Wait until a guest lets us in."""
    command = [*ssh_command(lab, host), "-o", "BatchMode=yes", "true"]

    def answers() -> bool:
        if not is_up(lab, host):
            raise LabError(f"The guest {host.name} has ended.", "Its console is reported by serial.log (use --keep).")
        return run(command, check=False).returncode == 0

    log = state.folder(lab.name) / host.name / "serial.log"
    fix = f"Start with --keep and read {log}."
    wait_for(
        f"ssh of {host.name}",
        answers,
        seconds=seconds,
        step=1,
        fix=fix,
        moved=lambda: log.exists() and log.stat().st_size,
    )


def command(lab: Lab, host: Host, argv: Sequence[str]) -> list[str]:
    """Return what runs a command on a guest, its arguments separate; without one, a login."""
    return [*ssh_command(lab, host), *([shlex.join(argv)] if argv else [])]


def is_up(lab: Lab, host: Host) -> bool:
    """Say whether a guest's QEMU runs."""
    return state.recorded_process(state.folder(lab.name) / host.name / "qemu.pid") is not None


def cable(lab: Lab, host: Host, rail: int, *, plugged: bool) -> None:
    """Pull or plug a cable at both ends: a tap's carrier does not reach the guest."""
    fabric_cable(lab, host, rail, plugged=plugged)
    qmp(lab, host, "set_link", name=f"nic{rail}", up=plugged)


def qmp(lab: Lab, host: Host, command: str, **arguments: object) -> t.Any:
    """Send one command to QEMU over its control socket."""
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(10)
        # A socket's path may be 107 bytes long at most.
        os.chdir(state.folder(lab.name) / host.name)
        try:
            connection.connect("qmp")
        finally:
            os.chdir(here)
        stream = connection.makefile("rw", encoding="utf-8")
        stream.readline()
        for name, values in (("qmp_capabilities", {}), (command, arguments)):
            stream.write(json.dumps({"execute": name, "arguments": values}) + "\n")
            stream.flush()
            while "return" not in (answer := json.loads(stream.readline())):
                if "error" in answer:
                    raise LabError(f"QEMU refused {name}: {answer['error']['desc']}.", "See the lab's serial.log.")
        return answer["return"]


def down(lab: Lab) -> None:
    """End the guests."""
    for host in lab.hosts:
        state.end_process(state.folder(lab.name) / host.name / "qemu.pid", seconds=5)
