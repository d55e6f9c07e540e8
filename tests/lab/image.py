# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The disk image of the guests: Debian or Ubuntu with everything the roles need, built once for each set of inputs.

No loop mounts and no boot loader: debootstrap and apt fill a folder, `mke2fs -d` turns it into a file system, and QEMU
boots kernel and initramfs from beside it. What is one guest's own (name, keys, addresses) comes at its first boot from
a tar archive that QEMU hands over (fw_cfg): the initramfs unpacks it before systemd starts.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

import mirror
import node_image
from rootfs import debootstrap, in_root, keep_archives, lay_archives, write
from shell import environments, require_root, require_tools, roots, run, say

TOOLS = {
    "debootstrap": "debootstrap",
    "mke2fs": "e2fsprogs",
    "dpkg-deb": "dpkg",
    "qemu-system-x86_64": "qemu-system-x86",
    "qemu-img": "qemu-utils",
    "ssh": "openssh-client",
    "ssh-keygen": "openssh-client",
    "ip": "iproute2",
}
DISK_SIZE = "6G"
# Count up when a step of the build changes, so that the image is built again.
RECIPE = 3
# A node of a cluster has another one.
KERNEL = "linux-image-amd64"
# Ubuntu has soft-RoCE in a package of its own; the archive keeps the first kernel of a release.
UBUNTU_KERNELS = {"jammy": "5.15.0-25-generic", "noble": "6.8.0-31-generic"}
SUITES = ("bookworm", *UBUNTU_KERNELS)

INSTALLED = (
    # the machine
    *("systemd-sysv", "udev", "dbus", "libpam-systemd", "kmod", "procps", "pciutils", "less", "zstd", "sudo"),
    *("openssh-server", "python3", "python3-apt", "initramfs-tools", "busybox", KERNEL),
    # its network, with each of the network managers that rail_network persists through
    *("iproute2", "iputils-ping", "iputils-arping", "ethtool", "tcpdump", "netplan.io", "network-manager", "lldpd"),
    # RDMA
    *("rdma-core", "ibverbs-utils", "ibverbs-providers", "perftest", "rdmacm-utils"),
    "python3-pyroute2",
)
# What acceptance runs instead of NCCL; neither a node of a cluster nor Ubuntu has it.
MPI = ("netpipe-openmpi",)
# In the local repository only: packages that a role installs.
OFFERED = ("infiniband-diags", "mstflint", "python3-netaddr", "fping")

FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults 0 1\n",
    "etc/hostname": "guest\n",
    "etc/apt/sources.list": "deb [trusted=yes] file:/srv/apt ./\n",
    "etc/apt/apt.conf.d/90lab": 'Acquire::Languages "none";\nAPT::Install-Recommends "false";\n',
    "etc/ssh/sshd_config.d/lab.conf": (
        "HostKey /etc/ssh/ssh_host_ed25519_key\nPermitRootLogin prohibit-password\nUseDNS no\nGSSAPIAuthentication no\n"
        "MaxStartups 100\nMaxSessions 100\n"
    ),
    "etc/NetworkManager/conf.d/90-lab.conf": "[main]\nno-auto-default=*\n",
    "etc/initramfs-tools/conf.d/lab": "MODULES=list\nBUSYBOX=y\nCOMPRESS=zstd\n",
    "etc/initramfs-tools/modules": "virtio_pci\nvirtio_blk\next4\ncrc32c_generic\nqemu_fw_cfg\n",
    "etc/initramfs-tools/scripts/init-bottom/lab-seed": """#!/bin/sh
# Give the guest what is its own, once, before systemd starts.
[ "$1" = prereqs ] && exit 0
seed=/sys/firmware/qemu_fw_cfg/by_name/opt/railops.lab/seed/raw
stamp=${rootmnt}/var/lib/railops-lab/seeded
[ -e "$stamp" ] && exit 0
modprobe qemu_fw_cfg
[ -r "$seed" ] || exit 0
chroot "${rootmnt}" /bin/tar -x -p -C / -f - < "$seed"
mkdir -p "${stamp%/*}" && : > "$stamp"
""",
    "etc/systemd/system/lab-rxe.service": """[Unit]
Description=Soft-RoCE devices of the lab's rails
DefaultDependencies=no
After=systemd-modules-load.service systemd-udevd.service systemd-udev-trigger.service local-fs.target
Before=network-pre.target rdma-hw.target sshd.service
Wants=network-pre.target
ConditionPathExists=/usr/local/sbin/lab-rxe

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-rxe

[Install]
WantedBy=multi-user.target
""",
}
EXECUTABLE = ("etc/initramfs-tools/scripts/init-bottom/lab-seed",)
# The guests' manager is enabled by the seed; the rest only costs time at boot.
DISABLED = (
    *("systemd-networkd.service", "systemd-networkd.socket", "systemd-networkd-wait-online.service"),
    *("NetworkManager.service", "NetworkManager-wait-online.service", "NetworkManager-dispatcher.service"),
    *("wpa_supplicant.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"),
    *("e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "systemd-timesyncd.service", "lldpd.service"),
)


@dataclass(frozen=True)
class Image:
    """Where the parts of the built image lie."""

    disk: Path
    kernel: Path
    initramfs: Path


def installed(suite: str) -> tuple[str, ...]:
    """Return the packages of an image of a release, but for MPI."""
    if suite not in UBUNTU_KERNELS:
        return INSTALLED
    kernel = [f"linux-{part}-{UBUNTU_KERNELS[suite]}" for part in ("image", "modules-extra")]
    other = {KERNEL: kernel, "busybox": ["busybox-initramfs"]}
    return tuple(package for name in INSTALLED for package in other.get(name, [name]))


def key(*, node: bool = False, suite: str = "bookworm") -> str:
    """Return the hash of everything that the image is made from."""
    text = repr((RECIPE, suite, installed(suite), OFFERED, sorted(FILES.items()), EXECUTABLE, DISABLED, DISK_SIZE))
    text += repr(node_image.inputs() if node else MPI)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def folder(*, node: bool = False, suite: str = "bookworm") -> Path:
    """Return the folder that holds, or will hold, the image."""
    return environments.cache() / f"{'node-' if node else ''}image-{key(node=node, suite=suite)}"


def image(*, node: bool = False, suite: str = "bookworm") -> Image:
    """Return the image, built when missing; two builds of one image do not meet.

    :param node: with what a node of a cluster has.
    """
    home = folder(node=node, suite=suite)

    def make() -> None:
        require_root()
        require_tools(TOOLS, "The image of the guests")
        say(f"Building {home.name}: {suite} from {roots.SUITES[suite].mirror} (once, about five minutes) ...")
        build(home, node=node, suite=suite)

    environments.once(home, make)
    return Image(disk=home / "disk.raw", kernel=home / "vmlinuz", initramfs=home / "initrd.img")


def container_images() -> dict[str, str]:
    """Return the digest of each container image that the nodes have, by name."""
    return t.cast("dict[str, str]", json.loads((folder(node=True) / "images.json").read_text(encoding="utf-8")))


def build(home: Path, *, node: bool, suite: str) -> None:
    """Build the image in a folder of its own."""
    home.mkdir()
    root, log = home / "root", home / "build.log"
    bootstrap(root, log, node=node, suite=suite)
    collect_repository(root)
    write_files(root)
    if node:
        with tempfile.TemporaryDirectory(dir=home) as work:
            digests = node_image.furnish(root, Path(work), log)
        (home / "images.json").write_text(json.dumps(digests, indent=2) + "\n", encoding="utf-8")
    take_out_user_manager(root)
    # A kernel that came as a package has an initramfs already.
    which = ["-c", "-k", node_image.kernel_release()] if node else ["-u", "-k", "all"]
    in_root(root, ["update-initramfs", *which], log)
    for unit in DISABLED:
        in_root(root, ["systemctl", "disable", unit], log, check=False)
    in_root(root, ["systemctl", "enable", "lab-rxe.service"], log)
    (root / "usr/sbin/policy-rc.d").unlink()
    for name, target in (("vmlinuz", "boot/vmlinuz-*"), ("initrd.img", "boot/initrd.img-*")):
        shutil.copy2(sorted(root.glob(target))[-1], home / name)
    run(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(home / "disk.raw"), DISK_SIZE], timeout=300)
    shutil.rmtree(root)


def bootstrap(root: Path, log: Path, *, node: bool, suite: str) -> None:
    """Install a release and the packages into a folder, keeping the archives."""
    debootstrap(root, log, suite=suite)
    write(root, "usr/sbin/policy-rc.d", "#!/bin/sh\nexit 101\n", 0o755)
    write(root, "etc/initramfs-tools/conf.d/lab", FILES["etc/initramfs-tools/conf.d/lab"])
    write(root, "etc/apt/apt.conf.d/90lab", FILES["etc/apt/apt.conf.d/90lab"] + 'APT::Keep-Downloaded-Packages "1";\n')
    lay_archives(root, suite)
    in_root(root, ["apt-get", "-q", "update"], log)
    wanted = [name for name in installed(suite) if not (node and name == KERNEL)]
    wanted += [] if node or suite in UBUNTU_KERNELS else MPI
    in_root(root, ["apt-get", "-q", "-y", "install", *wanted], log)
    if node:
        node_image.install(root, log)
    in_root(root, ["apt-get", "-q", "-y", "--download-only", "install", *OFFERED], log)
    keep_archives(root, suite)


def collect_repository(root: Path) -> None:
    """Turn the archives of the build into the guest's own package repository: guests reach no other."""
    repository = root / "srv/apt"
    repository.mkdir(parents=True)
    for package in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        if package.name.startswith(("linux-image", "linux-modules")):
            package.unlink()
        else:
            package.rename(repository / package.name.replace("%3a", "_"))
    mirror.index(repository)
    for leftover in (root / "var/lib/apt/lists").glob("*_*"):
        leftover.unlink()


def write_files(root: Path) -> None:
    """Lay the lab's own files over the system and take out what each guest must have for itself."""
    for name, content in FILES.items():
        write(root, name, content, 0o755 if name in EXECUTABLE else 0o644)
    for host_key in (root / "etc/ssh").glob("ssh_host_*"):
        host_key.unlink()
    (root / "etc/machine-id").write_text("uninitialized\n", encoding="utf-8")
    (root / "root/.ssh").mkdir(mode=0o700, exist_ok=True)


def take_out_user_manager(root: Path) -> None:
    """Let a login be a login: a user's systemd costs ten emulated seconds each time Ansible connects."""
    path = root / "etc/pam.d/common-session"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join(line for line in lines if "pam_systemd.so" not in line), encoding="utf-8")
