# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fill a folder with a Debian or Ubuntu: files written into it, commands run in it, and a log of both."""

from __future__ import annotations

import shutil
import subprocess
import typing as t

from shell import LabError, roots

if t.TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def debootstrap(root: Path, log: Path, packages: Sequence[str] = (), suite: str = "bookworm") -> None:
    """Make a minimal system."""
    logged(roots.debootstrap(root, suite, packages), log)


def keep_archives(root: Path, suite: str = "bookworm") -> None:
    """Take what the cache lacks of the packages that were downloaded into it."""
    archives = roots.archives(suite)
    for package in (root / "var/cache/apt/archives").glob("*.deb"):
        if not (archives / package.name).exists():
            shutil.copy2(package, archives)


def lay_archives(root: Path, suite: str) -> None:
    """Put the packages of the cache where apt looks before it downloads."""
    cached = root / "var/cache/apt/archives"
    for package in roots.archives(suite).glob("*.deb"):
        if not (cached / package.name).exists():
            shutil.copy2(package, cached)


def write(root: Path, name: str, content: str | bytes, mode: int = 0o644) -> None:
    """Write one file of the system."""
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    path.chmod(mode)


def in_root(root: Path, argv: Sequence[str], log: Path, *, check: bool = True) -> None:
    """Run a command of the system's own, with a /proc that ends with it."""
    mounted = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root / 'proc'}", "chroot", str(root)]
    logged([*mounted, "env", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C", *argv], log, check=check)


def logged(argv: Sequence[str], log: Path, *, check: bool = True) -> None:
    """Run one step of the build with its output in the build's log."""
    with log.open("a", encoding="utf-8") as stream:
        print(f"+ {' '.join(argv)}", file=stream, flush=True)
        done = subprocess.run(
            list(argv), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, check=False, timeout=1800
        )
    if check and done.returncode:
        raise LabError(f"`{' '.join(argv)}` failed ({done.returncode}).", f"Read the end of {log}.")
