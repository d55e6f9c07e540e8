# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads the drivers and packages of a host."""

from __future__ import annotations

import os
import typing as t
from dataclasses import replace

from ansible.module_utils.distro import LinuxDistribution  # type: ignore[attr-defined]

from .._card.pci import PCI_DEVICES, VENDOR_MELLANOX
from .._errors import RdmaError
from .plan import APT_LIBRARY, DriverHost, Options, family_of, wanted_packages

if t.TYPE_CHECKING:
    from .._programs import Machine

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")  # os-release(5)
# The driver containers of the network operator mount their root here (Mellanox/doca-driver-build, entrypoint).
CONTAINER_ROOT = "/run/mellanox/drivers"
INBOX_VERSION = "5.0-0"  # what the kernel's own mlx5_core called itself as long as it had a version


def installed(machine: Machine, family: str, names: t.Collection[str]) -> dict[str, str]:
    """Return the versions of those of the names that are installed."""
    if not names:
        return {}
    if family == "debian":
        argv = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n"]
    else:
        # `package X is not installed` comes on standard output, too.
        argv = ["rpm", "-q", "--qf", "%{NAME} installed %{VERSION}-%{RELEASE}\n"]
    if not machine.tool(argv[0]):
        raise RdmaError(
            f"This host has no {argv[0]}.",
            "Install the packages with the host's package manager, and set rdma_driver_packages to an empty list. "
            "[package_manager]",
        )
    rows = map(str.split, machine.run([*argv, *names]).out.splitlines())
    return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed" and row[0] in names}


def read_host(sysfs: Machine, want: Options) -> DriverHost:
    """Read a host."""
    place = next(filter(sysfs.exists, OS_RELEASE), "")
    # Without programs that say the same.
    distribution = LinuxDistribution(include_lsb=False, os_release_file=sysfs.path(place), include_uname=False)
    release = distribution.os_release_info()
    kernel = os.uname().release
    version = sysfs.text("/sys/module/mlx5_core/version")
    running = sysfs.text("/sys/module/mlx5_core/srcversion")
    disk = sysfs.run(["modinfo", "-F", "srcversion", "mlx5_core"]) if running else None
    bare = DriverHost(
        family=family_of(release.get("id", "unknown"), release.get("id_like", "")),
        distribution=release.get("id", "unknown"),
        kernel=kernel,
        modules=frozenset(sysfs.kernel_modules()),
        loaded=frozenset(sysfs.names("/sys/module")),
        has_mellanox=any(
            sysfs.number(f"{PCI_DEVICES}/{name}/vendor") == VENDOR_MELLANOX for name in sysfs.names(PCI_DEVICES)
        ),
        container=CONTAINER_ROOT if sysfs.names(CONTAINER_ROOT) else None,
        container_ready=sysfs.exists(f"{CONTAINER_ROOT}/.driver-ready"),
        ofed_version=version if version and version != INBOX_VERSION else None,
        running_srcversion=running,
        disk_srcversion=disk.out.strip() or None if disk and not disk.status else None,
        headers=sysfs.exists(f"/lib/modules/{kernel}/build/Makefile"),
    )
    names = wanted_packages(want, bare)
    queried = [*names, *APT_LIBRARY] if names and bare.family == "debian" else names
    return replace(bare, installed=installed(sysfs, bare.family, queried))
