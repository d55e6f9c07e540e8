# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What makes the guests' image a Kubernetes node's: kernel, container runtime, kubelet, and container images unpacked.

containerd unpacks the images once, while the image is built, and its folder goes into the disk: unpacking them in an
emulated guest takes minutes. Nothing here is one guest's own; a kubelet starts where a guest's seed brings its
configuration.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import shutil
import typing as t
from pathlib import Path

import container_images
import development
import programs
from rootfs import in_root, write
from shell import LabError, roots

HERE = Path(__file__).resolve().parent
# Count up when a step of the build changes, so that the image is built again.
RECIPE = 1
# Of the guests' own Debian: the development branch's want a newer C library.
INSTALLED = ("runc", "jq", "iptables", "conntrack", "socat")
STOCK_PLUGINS = "usr/lib/cni"
FILES = {
    "etc/containerd/config.toml": "containerd.toml",
    "etc/kubernetes/kubelet.yaml": "kubelet.yaml",
    "etc/systemd/system/kubelet.service": "kubelet.service",
}
WRITTEN = {
    "etc/modules-load.d/lab-node.conf": "overlay\nbr_netfilter\nmacvlan\nbridge\nveth\n",
    "etc/sysctl.d/90-lab-node.conf": "net.ipv4.ip_forward = 1\n",
    "etc/kubernetes/resolv.conf": "",
}
# What is not needed to unpack: without it containerd starts in a second and asks neither for a network of pods nor what
# the folder that it runs in is mounted on.
LEFT_OUT = (
    *(f"io.containerd.{kind}" for kind in ("grpc.v1.cri", "cri.v1.images", "cri.v1.runtime", "nri.v1.nri")),
    *(f"io.containerd.snapshotter.v1.{kind}" for kind in ("blockfile", "btrfs", "devmapper", "erofs", "native", "zfs")),
)
IMPORT = """
set -e
mount -t tmpfs tmpfs /run
containerd --config /var/tmp/unpack.toml &
running=$!
for _ in $(seq 100); do ctr version >/dev/null 2>&1 && break; sleep 0.2; done
ctr -n k8s.io images import --local --snapshotter overlayfs /var/tmp/images.tar
kill $running
wait $running || true
"""


def inputs() -> tuple[object, ...]:
    """Return everything that this part of the image is made from.

    :raises LabError: something of it cannot be had here.
    """
    own = sorted(HERE.glob("node/*"))
    return (
        RECIPE,
        INSTALLED,
        container_images.RAIL_PLUGINS,
        (IMPORT, LEFT_OUT),
        (container_images.BASE, container_images.MPI_PACKAGES),
        sorted(container_images.CONTENTS.items()),
        sorted(WRITTEN.items()),
        [(path.name, hashlib.sha256(path.read_bytes()).hexdigest()) for path in own],
        digests(),
        development.packages(roots.DEBIAN),
    )


@functools.cache
def digests() -> list[tuple[str, str]]:
    """Return the digest of each program of a cluster that the image holds; those that run outside are at hand, too.

    :raises UnavailableError: one is not there.
    """
    if why := programs.lacking("pods"):
        raise development.UnavailableError("There are no programs of a real cluster.", why)
    inside = {name for row in container_images.CONTENTS.values() for name in row.programs.values()}
    wanted = ("kubelet", programs.CHART, *filter(programs.is_wanted, sorted(inside)))
    return [(name, programs.digest(programs.program(name))) for name in wanted]


def kernel_release() -> str:
    """Return the release of the nodes' kernel, as `uname -r` says it."""
    return development.kernel_release(development.packages(roots.DEBIAN))


def install(root: Path, log: Path) -> None:
    """Install kernel and container runtime.

    :raises UnavailableError: they no longer run on the guests' Debian.
    """
    found = development.packages(roots.DEBIAN)
    folder = root / "var/tmp/development"
    folder.mkdir(parents=True)
    for path in development.fetch(found):
        shutil.copy2(path, folder)
    in_root(root, ["apt-get", "-q", "-y", "install", *INSTALLED], log)
    names = [f"/var/tmp/development/{package.file}" for package in found]
    with unavailable("Packages of Debian's development branch no longer run on the guests' Debian."):
        in_root(root, ["dpkg", "--install", *names], log)
        in_root(root, ["containerd", "--version"], log)
        in_root(root, ["runc", "--version"], log)
    shutil.rmtree(folder)
    release = kernel_release()
    # As the image's own package would: initramfs-tools asks the configuration.
    for name in ("vmlinuz", "config", "System.map"):
        shutil.copy2(root / f"usr/lib/modules/{release}/{name}", root / f"boot/{name}-{release}")
    in_root(root, ["depmod", release], log)


@contextlib.contextmanager
def unavailable(problem: str) -> t.Iterator[None]:
    """Turn the failure of a step into a skip: it is no fault of the test."""
    try:
        yield
    except LabError as exc:
        raise development.UnavailableError(f"{problem} {exc.problem}", exc.fix) from exc


def furnish(root: Path, work: Path, log: Path) -> dict[str, str]:
    """Put in what a node has: programs, configuration, container images; return the images' digests.

    :param work: a folder that is thrown away.
    """
    for place, name in FILES.items():
        write(root, place, (HERE / "node" / name).read_bytes())
    for place, content in WRITTEN.items():
        write(root, place, content)
    write(root, "usr/local/sbin/rail-runc", (HERE / "node/rail-runc").read_bytes(), 0o755)
    write(root, "usr/local/bin/kubelet", programs.program("kubelet").read_bytes(), 0o755)
    # Those of rails come with the chart.
    for path in (root / STOCK_PLUGINS).iterdir():
        if path.name not in container_images.RAIL_PLUGINS:
            write(root, f"opt/cni/bin/{path.name}", path.read_bytes(), 0o755)
    images = container_images.build(root / "var/tmp/images.tar", root / STOCK_PLUGINS, work, log)
    write(root, "var/tmp/unpack.toml", f"version = 3\ndisabled_plugins = {json.dumps(LEFT_OUT)}\n")
    in_root(root, ["sh", "-c", IMPORT], log)
    for name in ("images.tar", "unpack.toml"):
        (root / "var/tmp" / name).unlink()
    for unit in ("containerd.service", "kubelet.service"):
        in_root(root, ["systemctl", "enable", unit], log)
    return images
