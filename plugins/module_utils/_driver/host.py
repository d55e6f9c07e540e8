# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what drivers and packages a host has, and installs what a plan says."""

from __future__ import annotations

import os
import typing as t
from dataclasses import replace

from ansible.module_utils.distro import LinuxDistribution  # type: ignore[attr-defined]

from .._card.pci import PCI_DEVICES, VENDOR_MELLANOX
from .._errors import RdmaError
from .failures import install_error
from .plan import DriverHost, DriverOptions, family_of, wanted_packages

if t.TYPE_CHECKING:
    from .._programs import Machine

OS_RELEASE = ("/etc/os-release", "/usr/lib/os-release")  # os-release(5)
# The driver containers of the network operator mount their root here (Mellanox/doca-driver-build, entrypoint).
CONTAINER_ROOT = "/run/mellanox/drivers"
# dpkg prompts where a configuration file was edited. A run cannot answer, so dpkg keeps the edited file (dpkg(1)).
KEEP_EDITED = ("--force-confdef", "--force-confold")
SECURE_BOOT = "/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
INBOX_VERSION = "5.0-0"  # what the kernel's own mlx5_core called itself as long as it had a version


class Packages:
    """A host's package manager."""

    def __init__(self, family: str, machine: Machine) -> None:
        self._debian = family == "debian"
        self._machine = machine

    def installed(self, names: t.Iterable[str]) -> dict[str, str]:
        """Return the versions of those of the names that are installed."""
        listed = list(names)
        if not listed:
            return {}
        if self._debian:
            argv = ["dpkg-query", "-W", "-f", "${Package} ${db:Status-Status} ${Version}\n"]
        else:
            # `package X is not installed` comes on standard output, too.
            argv = ["rpm", "-q", "--qf", "%{NAME} installed %{VERSION}-%{RELEASE}\n"]
        rows = map(str.split, self._do([*argv, *listed], ask=True).splitlines())
        return {row[0]: row[2] for row in rows if len(row) == 3 and row[1] == "installed" and row[0] in listed}

    def install_repository(self, path: str) -> None:
        """Install a repository package from a file."""
        argv = ["dpkg", *KEEP_EDITED, "-i"] if self._debian else ["rpm", "-U", "--replacepkgs"]
        self._do([*argv, path])

    def install(
        self, names: t.Sequence[str], pinned: dict[str, str], *, refresh: bool, older: bool = False, keep: bool = False
    ) -> None:
        """Install packages, the pinned ones in their version; with `older` also where a newer one is installed.

        With `keep` the package manager removes no package for them; dnf never does by default.

        :param names: of the packages.
        :param pinned: versions by package.
        :param refresh: ask the repositories what they have.
        """
        sign = "=" if self._debian else "-"
        rows = [f"{name}{sign}{pinned[name]}" if name in pinned else name for name in names]
        if self._debian:
            apt = ["apt-get", "-y", "-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]
            if refresh:
                self._do([*apt, "update"])
            edited = [f"-oDpkg::Options::={flag}" for flag in KEEP_EDITED]
            back = ["--allow-downgrades"] if older else []
            back += ["--no-remove"] if keep else []
            self._do([*apt, *edited, "install", "--no-install-recommends", *back, *rows])
            return
        tool = "dnf" if self._machine.tool("dnf") else "yum"
        self._do([tool, "-y", *(["--refresh"] if refresh and tool == "dnf" else []), "install", *rows])

    def _do(self, argv: t.Sequence[str], *, ask: bool = False) -> str:
        """Run a package manager, and return what it said.

        :param ask: whether a failure is an answer too.
        """
        if not self._machine.tool(argv[0]):
            raise RdmaError(
                f"This host has no {argv[0]}.",
                "Install the packages by what it has instead, and set rdma_driver_packages to an empty list. "
                "[package_manager]",
            )
        done = self._machine.run(argv, DEBIAN_FRONTEND="noninteractive")
        if done.status and not ask:
            raise install_error(argv, done.status, done.out + done.err)
        return done.out


def read_host(sysfs: Machine, want: DriverOptions) -> DriverHost:
    """Read a host."""
    place = next(filter(sysfs.exists, OS_RELEASE), "")
    # Without programs that say the same.
    told = LinuxDistribution(include_lsb=False, os_release_file=sysfs.path(place), include_uname=False)
    release = told.os_release_info()
    kernel = os.uname().release
    version = sysfs.text("/sys/module/mlx5_core/version")
    running = sysfs.text("/sys/module/mlx5_core/srcversion")
    disk = sysfs.run(["modinfo", "-F", "srcversion", "mlx5_core"]) if running else None
    secure = sysfs.data(SECURE_BOOT)
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
        secure_boot=bool(secure and secure[-1] == 1),
        headers=sysfs.exists(f"/lib/modules/{kernel}/build/Makefile"),
    )
    return replace(bare, installed=Packages(bare.family, sysfs).installed(wanted_packages(want, bare)))


def check_sum(path: str, digest: str, expected: str) -> None:
    """Compare a file with its pinned checksum.

    :param digest: its SHA-256.
    :param expected: the pinned one, with its kind.
    """
    if f"sha256:{digest}" != expected:
        raise RdmaError(
            f"The repository package {path} has sha256:{digest}, not {expected}.",
            "Fetch it again from the vendor, compare with the checksum it publishes, and only then change the "
            "pin. [checksum_differs]",
            expected=expected,
            found=f"sha256:{digest}",
        )
