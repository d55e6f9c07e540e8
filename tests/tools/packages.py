# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The Debian packages that the demo and each check stand on, and the one place that installs them.

    packages.py install [NAME]  install what these lack (demo, or the name of a check); without a name all but a browser

Root installs by apt on Debian 12 and Ubuntu 24.04 and later, after one line that says what; RAILOPS_INSTALL=0 forbids
it. Nothing that starts a daemon or manages a network is ever installed: what tests need of that kind lives in a system
of its own in the cache (roots.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import typing as t
from dataclasses import dataclass
from pathlib import Path

import env
import progress

# The oldest releases whose Python and packages are new enough.
RELEASE = Path("/etc/os-release")
OLDEST = {"debian": (12,), "ubuntu": (24, 4)}
# Programs of administrators are not on each user's PATH.
PLACES = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/local/sbin", "/usr/sbin", "/sbin"])
# Whatever else a package asks for: these would manage this machine's network or its services.
NEVER = re.compile(
    r"^(network-manager|netplan\.io|netplan-generator|ifupdown2?|connman|systemd-(resolved|networkd)|systemd-sysv|"
    r"snapd|dbus|dnsmasq|libvirt-daemon|openssh-server|isc-dhcp-client|dhcpcd(-base)?|lldpd)$"
)
APT = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
LISTS = Path("/var/lib/apt/lists")
LOG = "logs/packages.log"
APT_ENV = {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "LC_ALL": "C.UTF-8"}


class NotOfferedError(Exception):
    """A package cannot be had here: which, and why."""


@dataclass(frozen=True)
class Package:
    """A package, and what shows that it is here: a program or file, or several with a bar between.

    :param few: a few tests want it: without it they are skipped, and not their check.
    """

    name: str
    gives: str
    few: bool = False

    def is_here(self) -> bool:
        """Say whether this machine has what the package gives."""
        if self is VENV:
            return env.found_interpreter() is not None
        return any(Path(name).is_file() or shutil.which(name, path=PLACES) for name in self.gives.split("|"))


VENV = Package("python3-venv", "")
IP = Package("iproute2", "ip")
PING = Package("iputils-ping", "ping")
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# The whole browser wants a desktop's services.
BROWSERS = "chromium|chromium-browser|google-chrome|chromium-headless-shell"
SYSTEMS = (
    Package("debootstrap", "debootstrap"),
    Package("debian-archive-keyring", KEYS),
)
GUESTS = (
    *SYSTEMS,
    IP,
    PING,
    Package("qemu-system-x86", "qemu-system-x86_64"),
    Package("qemu-utils", "qemu-img"),
    Package("e2fsprogs", "mke2fs"),
    Package("openssh-client", "ssh"),
)
# What the demo, the lab and each check need beside the environments of env.py.
NEEDS: dict[str, tuple[Package, ...]] = {
    "demo": (VENV, IP),
    "lab": (VENV, IP, PING, Package("jq", "jq", few=True)),
    "kernel": (VENV, IP, PING, Package("ethtool", "ethtool", few=True), *SYSTEMS),
    "unit": (
        VENV,
        Package("iproute2", "dcb", few=True),
        Package("gcc", "cc", few=True),
        Package("libc6-dev", "/usr/include/stdlib.h", few=True),
        Package("busybox", "busybox", few=True),
    ),
    "main": (VENV, IP),
    "site": (VENV, IP),
    "molecule": (VENV, IP, PING),
    "cluster": (VENV,),
    "api": (VENV, IP),
    "guests": (VENV, *GUESTS),
    "bare": (VENV, *SYSTEMS),
    "bare-tests": (VENV, *SYSTEMS),
    "long": (VENV, IP),
    # Half a gigabyte: only where it is asked for by name.
    "report": (
        VENV,
        Package("chromium-headless-shell", BROWSERS),
        Package("poppler-utils", "pdftotext"),
    ),
}
NEEDS.update({f"{name}-slow": NEEDS[name] for name in ("unit", "kernel", "cluster")})
DEFAULT = (VENV,)


def needed(names: t.Iterable[str]) -> list[Package]:
    """Return the packages of these needs, each once."""
    return list(dict.fromkeys(package for name in names for package in NEEDS.get(name, DEFAULT)))


def lacking(*names: str) -> list[Package]:
    """Return the packages of these needs whose programs are not here."""
    return [package for package in needed(names) if not package.is_here()]


def manual(missing: t.Iterable[Package]) -> str:
    """Return the command that installs packages manually."""
    return f"apt-get install {' '.join(package.name for package in missing)}"


def no_namespaces() -> str | None:
    """Say why hosts cannot be namespaces here, or nothing."""
    if os.geteuid():
        return "it needs root, for network namespaces; run the same command with sudo"
    made = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False)
    return (
        "this root may make no namespaces (a container?); it needs the capability SYS_ADMIN"
        if made.returncode
        else None
    )


def release() -> tuple[str, bool]:
    """Return the name of this machine's system, and whether packages can be installed on it."""
    try:
        text = RELEASE.read_text(encoding="utf-8")
    except OSError:
        return "an unknown system", False
    about = dict(re.findall(r'^(\w+)="?([^"\n]*)"?$', text, re.MULTILINE))
    # Debian's next release has no number yet.
    version = tuple(int(number) for number in re.findall(r"\d+", about.get("VERSION_ID", "999")))
    oldest = OLDEST.get(about.get("ID", ""))
    return about.get("PRETTY_NAME", "an unknown system"), oldest is not None and version >= oldest


def forbidden() -> str:
    """Say why nothing may be installed here, or nothing."""
    if os.environ.get("RAILOPS_INSTALL") == "0":
        return "RAILOPS_INSTALL=0"
    name, known = release()
    if not known:
        return f"this is {name}, not Debian 12 or Ubuntu 24.04 or later"
    if not shutil.which("apt-get"):
        return "apt-get is not on PATH"
    return "only root may" if os.geteuid() else ""


def provide(*names: str) -> None:
    """Install what these needs lack, after a line that says what; where that may not be, say what is missing.

    :raises progress.Failure: the installation failed.
    """
    missing = list(dict.fromkeys(package.name for package in lacking(*names)))
    if not missing:
        return
    if why := forbidden():
        progress.say(f"Missing here: {', '.join(missing)}. Nothing is installed: {why}.")
        return
    progress.say(f"Installing with apt what is missing here: {', '.join(missing)} (RAILOPS_INSTALL=0 forbids it).")
    install(missing)


def unpacked(*names: str) -> Path:
    """Return a folder of the cache with the files of packages: nothing is installed.

    :raises NotOfferedError: apt does not have them.
    """
    about = RELEASE.read_text(encoding="utf-8") if RELEASE.exists() else ""
    home = env.cache() / f"unpacked-{names[0]}-{env.digest(about, *names)}"

    def make() -> None:
        if not (shutil.which("apt-get") and shutil.which("dpkg")):
            raise NotOfferedError(f"no {names[0]}: there is no apt")
        if not forbidden() and not any(LISTS.glob("*Packages*")):
            # Images of containers have no lists.
            update()
        home.mkdir()
        unpack = 'for deb in *.deb; do dpkg -x "$deb" . && rm "$deb"; done'
        for argv in (["apt-get", "-qq", "download", *names], ["sh", "-c", unpack]):
            done = subprocess.run(argv, cwd=home, capture_output=True, text=True, check=False)
            if done.returncode:
                raise NotOfferedError(f"no {names[0]}: `{' '.join(argv)}` failed: {done.stderr.strip()[-300:]}")

    env.once(home, make)
    return home


def update() -> None:
    """Fetch apt's lists."""
    progress.step("apt-get update", [*APT, "update"], log=env.cache() / LOG, env={**os.environ, **APT_ENV})


def install(missing: list[str]) -> None:
    """Install packages, and nothing that would manage this machine's network or remove anything."""
    log = env.cache() / LOG
    wanted = ["install", "--no-install-recommends", "--no-remove", *missing]
    update()
    simulation = subprocess.run([*APT, "--simulate", *wanted], capture_output=True, text=True, check=False)
    if refused := [name for name in re.findall(r"^Inst (\S+)", simulation.stdout, re.MULTILINE) if NEVER.match(name)]:
        raise progress.Failure(
            f"The packages {', '.join(missing)} were not installed.",
            f"They would bring {', '.join(refused)}, which may change this machine's network or start a service.",
            "Install what you want of them manually, or run with RAILOPS_INSTALL=0.",
        )
    done = progress.step("apt-get install", [*APT, *wanted], log=log, timeout=1800, env={**os.environ, **APT_ENV})
    if done.code:
        errors = re.findall(r"^E: (.+)$", done.output, re.MULTILINE) or ["it did not end in time"]
        raise progress.Failure(
            f"The packages {', '.join(missing)} were not installed.",
            errors[-1],
            "See that `apt-get update` works, then run it again; with RAILOPS_INSTALL=0 what needs them is skipped.",
            log,
        )


def main() -> None:
    """Install."""
    words = sys.argv[1:]
    if words[:1] != ["install"] or (unknown := set(words[1:]) - set(NEEDS)):
        sys.exit(f"Nothing is known of {', '.join(sorted(unknown))}." if words[:1] == ["install"] else __doc__)
    names = words[1:] or [name for name in NEEDS if name != "report"]
    try:
        provide(*names)
    except progress.Failure as exc:
        sys.exit(str(exc))
    if left := lacking(*names):
        sys.exit(f"Still missing: {', '.join(package.name for package in left)}.")
    progress.say("Everything is here.")


if __name__ == "__main__":
    main()
