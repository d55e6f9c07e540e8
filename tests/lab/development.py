# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Packages of Debian's development branch: which versions there are today, written down, fetched and kept.

What that branch has changes from day to day. So it is asked once, what it answered is kept in the cache with the digest
of each package, and an image is made of exactly these until the next request. apt checks Debian's signatures.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from shell import LabError, environments, missing_tools, say

if t.TYPE_CHECKING:
    from collections.abc import Sequence

SUITE = "sid"
KEYS = "/usr/share/keyrings/debian-archive-keyring.gpg"
# Kubernetes 1.36 wants containerd 2, which no release of Debian has.
PLAIN = ("containerd", "containernetworking-plugins")
# It depends on the packages of one release; of these, the ones that hold files. (The image's own package is empty, and
# asks for tools of the branch that Debian 12 does not have.)
KERNEL = "linux-image-amd64"
KERNEL_PARTS = ("linux-base-", "linux-binary-", "linux-modules-")


class UnavailableError(LabError):
    """These packages cannot be had here, or no longer run on the guests' Debian: nothing that a person did wrong."""


@dataclass(frozen=True)
class Package:
    """One package as the branch has it today."""

    name: str
    file: str
    sha256: str


def home() -> Path:
    """Return the folder that holds the answer and the packages."""
    key = hashlib.sha256(repr((SUITE, PLAIN, KERNEL, KERNEL_PARTS)).encode()).hexdigest()[:12]
    path = environments.cache() / f"development-{key}"
    path.mkdir(exist_ok=True)
    return path


def known() -> tuple[Package, ...]:
    """Return the packages that were written down, or none."""
    try:
        rows = json.loads((home() / "packages.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    return tuple(Package(**row) for row in rows)


def packages(mirror: str, *, renew: bool = False) -> tuple[Package, ...]:
    """Return the packages, asked for when nothing is written down or with `renew`.

    :raises UnavailableError: apt cannot have them.
    """
    with environments.Locked(home().name):
        if renew or not known():
            found = [asdict(package) for package in _ask(mirror)]
            (home() / "packages.part").write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
            (home() / "packages.part").rename(home() / "packages.json")
    return known()


def kernel_release(found: Sequence[Package]) -> str:
    """Return the release of the kernel among the packages, as `uname -r` says it."""
    prefix = "linux-modules-"
    return next(package.name for package in found if package.name.startswith(prefix)).removeprefix(prefix)


def fetch(found: Sequence[Package]) -> list[Path]:
    """Return the packages' files, downloaded when they are not kept yet.

    :raises UnavailableError: the branch has moved on, and this version was never fetched.
    """
    paths = [home() / package.file for package in found]
    with environments.Locked(home().name):
        wanted = [package.name for package, path in zip(found, paths, strict=True) if not path.exists()]
        if wanted:
            _apt("apt-get", "download", *wanted)
    for package, path in zip(found, paths, strict=True):
        if not path.exists() or hashlib.sha256(path.read_bytes()).hexdigest() != package.sha256:
            raise UnavailableError(
                f"Debian's {SUITE} no longer has {package.file}, which the image was to be made of.",
                "Take what it has today: lab.py image --cluster --renew",
            )
    return paths


def _ask(mirror: str) -> list[Package]:
    """Ask the branch which packages it has."""
    if lacking := missing_tools({"apt-get": "apt", "apt-cache": "apt"}) or ([] if Path(KEYS).exists() else [KEYS]):
        raise UnavailableError(
            f"Packages of Debian's {SUITE} cannot be had here: there is no {' and no '.join(lacking)}.",
            "Use a machine with Debian or Ubuntu, and there: apt-get install apt debian-archive-keyring",
        )
    say(f"Asking {mirror} what Debian's {SUITE} has today ...")
    for folder in ("state/lists/partial", "archives/partial"):
        (home() / "apt" / folder).mkdir(parents=True, exist_ok=True)
    (home() / "apt/status").touch()
    (home() / "apt/debian.list").write_text(f"deb [signed-by={KEYS}] {mirror} {SUITE} main\n", encoding="utf-8")
    _apt("apt-get", "update")
    image = _depends(KERNEL, "linux-image-")
    needed = _depends(image[0], "linux-")
    parts = [name for name in needed if name.startswith(KERNEL_PARTS)]
    if [sum(name.startswith(part) for name in parts) for part in KERNEL_PARTS] != [1] * len(KERNEL_PARTS):
        raise UnavailableError(
            f"The kernel of Debian's {SUITE} comes in other packages now: {image[0]} needs {', '.join(needed)}.",
            "Update KERNEL_PARTS in tests/lab/development.py.",
        )
    names = [*PLAIN, *parts]
    # 'http://...' file size SHA256:digest
    text = _apt("apt-get", "--print-uris", "download", *names)
    rows = re.findall(r"^'[^']+' (\S+) \d+ SHA256:([0-9a-f]{64})$", text, re.MULTILINE)
    if len(rows) != len(names):
        raise UnavailableError(f"apt reported of {len(rows)} packages, asked for {', '.join(names)}.", text[-400:])
    # apt writes a version's colon as %3a in the file's name.
    return sorted((Package(file.split("_")[0], file, digest) for file, digest in rows), key=lambda one: one.name)


def _depends(package: str, prefix: str) -> list[str]:
    """Return what a package depends on whose names begin so."""
    text = _apt("apt-cache", "depends", "--important", package)
    found = re.findall(rf"^\s*(?:Pre)?Depends: ({re.escape(prefix)}\S+)$", text, re.MULTILINE)
    if not found:
        raise UnavailableError(f"{package} of Debian's {SUITE} depends on no {prefix}*.", text.strip() or "It is gone.")
    return found


def _apt(program: str, *words: str) -> str:
    """Run a command of apt that knows this branch only, and nothing of this machine; return what it says."""
    apt = home() / "apt"
    options = {
        "Dir::State": apt / "state",
        "Dir::State::status": apt / "status",
        "Dir::Cache": apt,
        "Dir::Etc::sourcelist": apt / "debian.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::Etc::preferences": "-",
        "Dir::Etc::preferencesparts": "-",
        "APT::Architecture": "amd64",
        "APT::Architectures": "amd64",
        "APT::Sandbox::User": "root",
        "Acquire::Languages": "none",
    }
    given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
    done = subprocess.run(
        [program, "-qq", *given, *words], cwd=home(), capture_output=True, text=True, check=False, timeout=900
    )
    if done.returncode:
        raise UnavailableError(
            f"Packages of Debian's {SUITE} cannot be had: `{program} {' '.join(words)}` failed.",
            done.stderr.strip()[-600:] or "It said nothing.",
        )
    return done.stdout
