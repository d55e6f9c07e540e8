# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which packages a host needs for RDMA, and whether a reboot is due. No files, no programs."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._check import Check, by_role, compared
from .._errors import InputError, Problem, RdmaError

# Names of the packages in Debian 12, Ubuntu 22.04 and 24.04, and in RHEL 8 and 9 and what is built from them.
EVERYWHERE = ("rdma-core", "infiniband-diags", "perftest", "mstflint", "ethtool", "pciutils")
INBOX = {
    "debian": (*EVERYWHERE, "ibverbs-providers", "ibverbs-utils", "rdmacm-utils"),
    "rhel": (*EVERYWHERE, "libibverbs", "libibverbs-utils", "librdmacm-utils"),
}
# What lies beside a DOCA-OFED, which brings the rest itself.
BESIDE_DOCA = ("ethtool", "pciutils")
# The kernel modules that must be there; a module compiled into the kernel counts too.
KERNEL_MODULES = ("ib_core", "ib_uverbs", "rdma_cm", "rdma_ucm")
MELLANOX_MODULES = ("mlx5_core", "mlx5_ib")
# What DKMS needs beside the headers of the kernel; no package of DOCA-OFED brings it when recommendations are off.
BUILD_TOOLS = ("gcc", "make")
HEADERS = ("linux-headers-", "kernel-devel-")
# ansible.builtin.apt installs it first where it is missing.
APT_LIBRARY = ("python3-apt",)
CHECKSUM = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True)
class DriverHost:
    """What was read of a host."""

    family: str  # debian, rhel, or another ID that is not known
    distribution: str
    kernel: str
    installed: t.Mapping[str, str] = field(default_factory=dict)  # versions of the queried packages
    modules: frozenset[str] = frozenset()  # kernel modules on disk or compiled in
    loaded: frozenset[str] = frozenset()
    has_mellanox: bool = False
    container: str | None = None  # what shows that a driver container serves this host
    container_ready: bool = False  # whether its driver runs: it has written its file
    ofed_version: str | None = None  # of the running mlx5_core
    running_srcversion: str | None = None
    disk_srcversion: str | None = None
    headers: bool = True  # whether modules can be built for the running kernel


Options = t.Mapping[str, t.Any]
"""What the inventory asks for: the module's options."""


def pinned_versions(want: Options) -> dict[str, str]:
    """Return the version of each package that has to have one."""
    profile = want["source"] == "doca" and want["doca_version"]
    versions = {name: str(version) for name, version in want["versions"].items()}
    return {**versions, **({want["doca_profile"]: want["doca_version"]} if profile else {})}


@dataclass(frozen=True)
class DriverPlan:
    """What to install: the repository package, then the packages."""

    repository: bool
    packages: tuple[str, ...]
    pinned: dict[str, str]
    steps: tuple[tuple[str, ...], ...] = ()  # the packages as the package manager takes them, with pinned versions
    notes: tuple[str, ...] = ()
    replaced: t.Mapping[str, str] = field(default_factory=dict)  # the versions that packages have before


def family_of(identity: str, like: str) -> str:
    """Return the family of an /etc/os-release: its ID, else what it says to be like."""
    words = [identity, *like.split()]
    if any(word in ("debian", "ubuntu") for word in words):
        return "debian"
    if any(word in ("rhel", "fedora", "centos") for word in words):
        return "rhel"
    return identity


def want_problems(want: Options) -> t.Iterator[Problem]:
    """Yield what is wrong with the wish before any host is queried."""
    if want["source"] != "doca":
        return
    if want["upgrade"] and not want["doca_version"]:
        yield Problem(
            "doca_version",
            "An upgrade of DOCA-OFED needs its target version.",
            f"Give the version of the package {want['doca_profile']}, as the package manager writes it. [doca_version]",
        )
    if not want["doca_repository"]:
        yield Problem(
            "doca_repository",
            "DOCA-OFED comes from a repository package, and none is named.",
            "Give the address or the host's path of one doca-host package. [doca_package]",
        )
    if not CHECKSUM.fullmatch(want["doca_checksum"] or ""):
        yield Problem(
            "doca_checksum",
            f"{want['doca_checksum']!r} is no pinned checksum.",
            "Give sha256: and the 64 digits of that package. [checksum_missing]",
        )


def wanted_packages(want: Options, host: DriverHost) -> tuple[str, ...]:
    """Return all packages that have to be on a host."""
    if problems := list(want_problems(want)):
        raise InputError(problems)
    if host.family not in INBOX and want["packages"] is None:
        raise RdmaError(
            f"The distribution {host.distribution!r} is not known: Debian, Ubuntu and the RHEL family are.",
            "Name its packages in rdma_driver_packages. [driver_distribution]",
            distribution=host.distribution,
        )
    if want["source"] == "doca":
        if host.container:
            raise RdmaError(
                f"A containerized OFED driver serves this host ({host.container}); a second would conflict with it.",
                "Set rdma_driver_source to inbox, which then installs user space only, or remove the host from the"
                " driver container's node selector first. [driver_container]",
            )
        base = want["packages"] if want["packages"] is not None else (want["doca_profile"], *BESIDE_DOCA)
    else:
        base = want["packages"] if want["packages"] is not None else INBOX[host.family]
    return tuple(dict.fromkeys([*base, *want["extra_packages"], *want["versions"], *_kernel_packages(want, host)]))


def _kernel_packages(want: Options, host: DriverHost) -> tuple[str, ...]:
    """Ubuntu's small kernels leave the RDMA modules to a package of their own; DOCA-OFED builds its own by DKMS."""
    if want["source"] == "doca" and not host.headers:
        return (f"{HEADERS[host.family != 'debian']}{host.kernel}", *BUILD_TOOLS)
    if host.container or host.distribution != "ubuntu" or want["source"] != "inbox":
        return ()
    wanted = (*KERNEL_MODULES, *(MELLANOX_MODULES if host.has_mellanox else ()))
    return () if set(wanted) <= host.modules else (f"linux-modules-extra-{host.kernel}",)


def make_plan(want: Options, host: DriverHost) -> DriverPlan:
    """Return what has to be installed. `host.installed` must cover wanted_packages()."""
    wanted = wanted_packages(want, host)
    missing = tuple(name for name in wanted if name not in host.installed)
    other = differing(want, host) if want["upgrade"] else {}
    replaced = {name: host.installed[name] for name in wanted if name in other}
    note = f"A containerized OFED driver serves this host ({host.container}): its kernel modules are not changed."
    packages = (*missing, *replaced)
    if packages and host.family == "debian":
        packages = (*(name for name in APT_LIBRARY if name not in (*host.installed, *packages)), *packages)
    pinned = {name: version for name, version in pinned_versions(want).items() if name in packages}
    sign = "=" if host.family == "debian" else "-"
    # Before the driver: its DKMS build needs them.
    first = [name for name in packages if name in BUILD_TOOLS or name.startswith(HEADERS)]
    steps = (first, [name for name in packages if name not in first])
    return DriverPlan(
        repository=want["source"] == "doca" and want["doca_profile"] in packages,
        packages=packages,
        pinned=pinned,
        steps=tuple(
            tuple(f"{name}{sign}{pinned[name]}" if name in pinned else name for name in step) for step in steps if step
        ),
        notes=(note,) if host.container else (),
        replaced=replaced,
    )


def differing(want: Options, host: DriverHost) -> dict[str, str]:
    """Return the wanted versions of packages that are installed in another one."""
    have = host.installed
    # An RPM may be named without its release.
    return {
        name: version
        for name, version in pinned_versions(want).items()
        if name in have
        and have[name] != version
        and not (host.family == "rhel" and have[name].startswith(f"{version}-"))
    }


def reboot_reasons(want: Options, host: DriverHost, plan: DriverPlan) -> t.Iterator[str]:
    """Yield why a reboot is due; the host is as it is after the installation, or before it in check mode."""
    for name, version in plan.replaced.items():
        yield f"{name} was {version}: the old one runs until the next boot"
    if want["source"] == "doca" and want["doca_profile"] in plan.packages and want["doca_profile"] not in plan.replaced:
        yield f"{want['doca_profile']} is new: its kernel modules replace the running ones at boot"
    elif (
        not host.container
        and host.running_srcversion
        and host.disk_srcversion
        and host.running_srcversion != host.disk_srcversion
    ):
        yield "the running mlx5_core is not the one on disk"


def checks_of(want: Options, host: DriverHost, plan: DriverPlan) -> list[Check]:
    """Return the checks of the host, from the plan that would change it."""
    found = [_package_check(plan), _module_check(host), _source_check(want, host)]
    return found + ([_version_check(want, host)] if pinned_versions(want) else [])


def _version_check(want: Options, host: DriverHost) -> Check:
    other = differing(want, host)
    have = {name: host.installed.get(name) for name in pinned_versions(want)}
    cause = f"Another version is installed of {', '.join(other)}."
    fix = "Run the playbook railops.rdma.upgrade, which changes one node at a time."
    return compared("driver_versions", pinned_versions(want), have, cause, fix, good=not other)


def _package_check(plan: DriverPlan) -> Check:
    listed = ", ".join(name for name in plan.packages if name not in plan.replaced)
    planned, cause = "all packages installed", "Packages are not installed."
    observed = f"missing: {listed}" if listed else planned
    return compared("driver_packages", planned, observed, cause, by_role("rdma_driver"))


def _module_check(host: DriverHost) -> Check:
    wanted = [*KERNEL_MODULES, *(MELLANOX_MODULES if host.has_mellanox else ())]
    have = [name for name in wanted if name in host.modules | host.loaded]
    cause = f"The kernel {host.kernel} has no module {', '.join(name for name in wanted if name not in have)}."
    fix = "Boot the distribution's full kernel (on Ubuntu install linux-modules-extra for it), or use DOCA-OFED."
    return compared("driver_modules", wanted, have, cause, fix)


def _source_check(want: Options, host: DriverHost) -> Check:
    name, observed = "driver_source", running_source(host)
    if want["source"] == "container":
        cause = "The driver container is not ready." if host.container else "No driver container serves this host."
        fix = "See its pod on this node (kubectl get pods -A -l nvidia.com/ofed-driver -o wide), and its log."
        return compared(name, "container, ready", observed, cause, fix, good=host.container_ready)
    bad = want["source"] == "doca" and "mlx5_core" in host.loaded and observed == "inbox"
    fix = "Reboot. If that was done, rebuild its modules for this kernel (doca-kernel-support), and enroll its key."
    planned = "ofed" if want["source"] == "doca" else "any"
    seen = f"{observed} {host.ofed_version}" if host.ofed_version else observed
    return compared(name, planned, seen, "The kernel's own driver is running, not DOCA-OFED's.", fix, good=not bad)


def running_source(host: DriverHost) -> str:
    """Return where the running driver comes from: container, ofed or inbox."""
    return "container" if host.container else ("ofed" if host.ofed_version else "inbox")
