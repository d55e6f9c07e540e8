# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whole systems in folders of the cache: what may not be on this machine, or must not see it, runs in one of them.

    roots.py bare [SUITE]       print the folder of a pristine system, made when missing
    roots.py managers [SUITE]   print the folder of one with the network managers, made when missing
    roots.py run ROOT -- WORDS  run a command in such a folder (changes stay in it)

A command in a root has mounts, processes and a name of its own, and ends with everything that it started (rootinit.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import typing as t
import urllib.request
from dataclasses import asdict, dataclass, field
from pathlib import Path

import env
import progress

# What the README asks for.
STRANGER = ("python3", "python3-venv", "make", "git", "ca-certificates")
# Started by tests in separate namespaces only: what each manages is a test's host.
MANAGERS = ("systemd", "netplan.io", "network-manager", "dbus", "procps", "lldpd")
# Count up when a step of the making changes.
RECIPE = 1


@dataclass(frozen=True)
class Suite:
    """A release, where it comes from, and who signs it."""

    name: str
    mirror: str
    system: str = "debian"
    components: str = "main"


DEBIAN = os.environ.get("RAILOPS_DEBIAN_MIRROR", "http://deb.debian.org/debian")
UBUNTU = os.environ.get("RAILOPS_UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu")
# Debian has no package with Ubuntu's keys; the digest is that of the archive's signed index.
UBUNTU_KEYS = "pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
UBUNTU_KEYS_SHA256 = "36de43b15853ccae0028e9a767613770c704833f82586f28eb262f0311adb8a8"
KEYRING = "usr/share/keyrings/{}-archive-keyring.gpg"
SUITES = {
    **{name: Suite(name, DEBIAN) for name in ("bookworm", "trixie")},
    **{name: Suite(name, UBUNTU, "ubuntu", "main,universe") for name in ("jammy", "noble", "resolute")},
}


def keyring(suite: Suite) -> Path:
    """Return the keys that a release is signed with."""
    path = Path("/", KEYRING.format(suite.system))
    if suite.system == "debian" or path.exists():
        return path
    home = env.cache() / f"keys-{UBUNTU_KEYS_SHA256[:12]}"

    def make() -> None:
        home.mkdir()
        with urllib.request.urlopen(f"{UBUNTU}/{UBUNTU_KEYS}", timeout=60) as answer:
            package = answer.read()
        if hashlib.sha256(package).hexdigest() != UBUNTU_KEYS_SHA256:
            raise progress.Failure("Ubuntu's keys were not used.", "Another file came.", f"Look at {UBUNTU}.")
        (home / "keys.deb").write_bytes(package)
        subprocess.run(["dpkg-deb", "--extract", str(home / "keys.deb"), str(home)], check=True)

    env.once(home, make)
    return home / KEYRING.format(suite.system)


@dataclass(frozen=True)
class Room:
    """How a command sees a root.

    :param binds: (source, target, writable) of what it sees of this machine.
    :param user: the number of a user of the root; 0 is its root.
    :param writable: whether the root itself may be changed.
    :param grace: seconds that what the command has started gets to end after it.
    """

    root: str
    binds: tuple[tuple[str, str, bool], ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    user: int = 0
    folder: str = "/"
    writable: bool = True
    grace: float = 5


def entering(room: Room, argv: t.Sequence[str]) -> list[str]:
    """Return the command that runs another one in a root."""
    unshared = ["unshare", "--mount", "--uts", "--ipc", "--pid", "--fork", "--kill-child"]
    init = [sys.executable, "-S", "-E", str(Path(__file__).with_name("rootinit.py"))]
    return [*unshared, *init, json.dumps({**asdict(room), "argv": list(argv)})]


def archives(suite: str) -> Path:
    """Return the folder that keeps a release's packages; the guests' image is of the first one."""
    path = env.cache() / ("debs" if suite == "bookworm" else f"debs-{suite}")
    (path / "partial").mkdir(parents=True, exist_ok=True)
    return path


def debootstrap(root: Path, name: str = "bookworm", packages: t.Sequence[str] = ()) -> list[str]:
    """Return the command that makes a minimal system; what it downloads is kept in the cache."""
    suite, script = SUITES[name], Path("/usr/share/debootstrap/scripts", name)
    # Ubuntu's releases differ in nothing that matters here.
    recipe = [] if script.exists() else [str(script.with_name("gutsy"))]
    options = [f"--components={suite.components}", f"--keyring={keyring(suite)}", f"--cache-dir={archives(name)}"]
    more = [f"--include={','.join(packages)}"] if packages else []
    return ["debootstrap", "--variant=minbase", *options, *more, name, str(root), suite.mirror, *recipe]


def pristine(name: str = "bookworm") -> Path:
    """Return the folder of a system as it is freshly installed, with what the README asks for and no more."""
    suite = SUITES[name]
    home = env.cache() / f"bare-{name}-{env.digest(repr((RECIPE, suite, STRANGER)))}"

    def make() -> None:
        _make(f"make a pristine {name}", debootstrap(home, name, STRANGER), suite)
        for package in (home / "var/cache/apt/archives").glob("*.deb"):
            package.unlink()
        # debootstrap knows the archive only; updates come with the machine's sources or not at all.
        line = f"deb {suite.mirror} {name} {suite.components.replace(',', ' ')}\n"
        (home / "etc/apt/sources.list").write_text(line, encoding="utf-8")

    env.once(home, make)
    return home


def copied(source: Path, target: Path) -> Path:
    """Copy a root: an overlay would be one layer too many for the overlays of the lab's hosts."""
    subprocess.run(["cp", "-a", "-T", "--reflink=auto", str(source), str(target)], check=True)
    (target / ".complete").unlink()
    return target


def managers(name: str = "bookworm") -> Path:
    """Return the folder of a system with netplan, NetworkManager, systemd-networkd and lldpd, of one of SUITES."""
    suite = SUITES[name]
    kind = "managers" if name == "bookworm" else f"managers-{name}"
    home = env.cache() / f"{kind}-{env.digest(repr((RECIPE, suite, STRANGER, MANAGERS)))}"

    def make() -> None:
        copied(pristine(name), home)
        take_sources(home)
        kept = ((str(archives(name)), "/var/cache/apt/archives", True),)
        room = Room(str(home), kept, {"DEBIAN_FRONTEND": "noninteractive"})
        (home / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n", encoding="utf-8")
        (home / "usr/sbin/policy-rc.d").chmod(0o755)
        install = "apt-get -q update && apt-get -q -y install --no-install-recommends " + " ".join(MANAGERS)
        _make(f"unpack the network managers of {name} into the cache", entering(room, ["sh", "-c", install]), suite)

    env.once(home, make)
    return home


def _make(title: str, argv: list[str], suite: Suite) -> None:
    log = env.cache() / "logs/roots.log"
    done = progress.step(title, argv, log=log, timeout=1800, stream=env.stream)
    if done.code:
        errors = re.findall(r"^(?:E|W): (.+)$", done.output, re.MULTILINE) or ["it did not end in time"]
        raise progress.Failure(
            f"`{title}` failed (exit code {done.code}).",
            errors[-1],
            f"See that this machine reaches {suite.mirror}, or name another mirror in"
            f" RAILOPS_{suite.system.upper()}_MIRROR.",
            log,
        )


# --- how this machine reaches its package sources, for a root ---------------------------------------------------------

VARIABLES = re.compile(r"(?i)(PIP_.*|(https?|ftp|all|no)_proxy|.*_CA_(BUNDLE|CERTS.*)|SSL_CERT_(FILE|DIR)|.*CAINFO)")
CERTIFICATES = ("/etc/ssl/certs/ca-certificates.crt", "/usr/local/share/ca-certificates")
PIP_FILES = ("/etc/pip.conf", "/etc/xdg/pip/pip.conf")
PIP_HOME_FILES = (".config/pip/pip.conf", ".pip/pip.conf", ".netrc")
APT_KEYS = tuple(
    f"/etc/apt/{name}" for name in ("trusted.gpg", "trusted.gpg.d", "keyrings", "auth.conf", "auth.conf.d")
)


def take_sources(root: Path, *homes: str) -> dict[str, str]:
    """Copy into a root how this machine reaches its package sources; return the variables that belong to it.

    :param homes: home folders inside the root that get this user's settings of pip.
    """
    for place in (*CERTIFICATES, *PIP_FILES, *APT_KEYS, "/usr/share/keyrings"):
        _copy(Path(place), root / place.lstrip("/"))
    for place in ("/etc/resolv.conf", "/etc/hosts"):
        # Not a link into the machine's /run.
        if Path(place).exists():
            (root / place.lstrip("/")).unlink(missing_ok=True)
            (root / place.lstrip("/")).write_bytes(Path(place).read_bytes())
    for home in homes:
        for name in PIP_HOME_FILES:
            _copy(Path.home() / name, root / home.lstrip("/") / name)
    # Proxies, certificates, and whether dates count: but no hooks, which are programs of the machine.
    known = subprocess.run(["apt-config", "dump", "Acquire"], capture_output=True, text=True, check=False).stdout
    (root / "etc/apt/apt.conf.d/90machine").write_text(known, encoding="utf-8")
    if codename("/") == codename(str(root)) and not os.environ.get("RAILOPS_DEBIAN_MIRROR"):
        (root / "etc/apt/sources.list").unlink()
        own = Path("/etc/apt")
        for place in (own / "sources.list", *own.glob("sources.list.d/*.list"), *own.glob("sources.list.d/*.sources")):
            _copy(place, root / str(place).lstrip("/"))
    return {name: value for name, value in os.environ.items() if VARIABLES.fullmatch(name)}


def codename(root: str) -> str:
    """Return the name of a root's release."""
    text = Path(root, "etc/os-release").read_text(encoding="utf-8")
    return "".join(re.findall(r"^VERSION_CODENAME=(.*)$", text, re.MULTILINE))


def _copy(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
    elif source.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)


def folders(root: Path, environ: t.Mapping[str, str], *homes: str) -> tuple[tuple[str, str, bool], ...]:
    """Return the folders of this machine that its settings of pip name, to be bound read-only."""
    files = [root / name.lstrip("/") for name in PIP_FILES]
    files += [root / home.lstrip("/") / name for home in homes for name in PIP_HOME_FILES]
    text = "\n".join([*environ.values(), *(path.read_text(encoding="utf-8") for path in files if path.exists())])
    # A folder of wheels, or the top of an index with the files beside it; and certificates that lie anywhere.
    named = {match.removeprefix("file://") for match in re.findall(r"(?:file://)?(/[\w./+-]+)", text)}
    top = {name.removesuffix("/simple").rstrip("/") for name in named if Path(name).exists()}
    inside = {name for name in top if not (root / name.lstrip("/")).exists()}
    return tuple((name, name, False) for name in sorted(inside))


def main() -> None:
    """Run one command."""
    words = sys.argv[1:]
    env.stream = sys.stderr
    try:
        if words[:1] == ["bare"] and len(words) < 3:
            print(pristine(*words[1:]))
        elif words[:1] == ["managers"] and len(words) < 3:
            print(managers(*words[1:]))
        elif words[:1] == ["run"] and words[2:3] == ["--"]:
            argv = entering(Room(words[1]), words[3:])
            os.execvp(argv[0], argv)
        else:
            sys.exit(__doc__)
    except progress.Failure as exc:
        sys.exit(str(exc))


if __name__ == "__main__":
    main()
