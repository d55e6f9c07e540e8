# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Slurm's own controller for tests: Debian's packages unpacked into the cache. Nothing is installed, no host is asked.

slurm.py    print the folder, unpacked
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import env

# The controller, its plugins, the client, and the library that both stand on.
PACKAGES = ("slurmctld", "slurm-wlm-basic-plugins", "slurm-client", "libslurm38", "munge", "libmunge2")


class MissingError(Exception):
    """There is no Slurm here; the text says why and what to do."""


def unpacked() -> Path:
    """Return the folder with the packages' files.

    :raises MissingError: this is no Debian 12, or apt does not offer them.
    """
    if not (shutil.which("apt-get") and shutil.which("dpkg")):
        raise MissingError("apt-get and dpkg are not here: it needs Debian 12")
    asked = ["apt-get", "--print-uris", "download", *PACKAGES]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        raise MissingError(f"apt offers no {', '.join(PACKAGES)} here (Debian 12 does); run: apt-get update")
    home = env.cache() / f"slurm-{hashlib.sha256(done.stdout.encode()).hexdigest()[:12]}"

    def make() -> None:
        home.mkdir()
        with tempfile.TemporaryDirectory(prefix="rr-slurm-") as name:
            for argv in (
                ["apt-get", "-qq", "download", *PACKAGES],
                ["sh", "-c", 'for deb in *.deb; do dpkg -x "$deb" "$1"; done', "sh", str(home)],
            ):
                ended = subprocess.run(argv, cwd=name, capture_output=True, text=True, check=False)
                if ended.returncode:
                    raise MissingError(f"{' '.join(argv[:3])} failed: {ended.stderr.strip()[-300:]}")

    env.once(home, make)
    return home


if __name__ == "__main__":
    try:
        print(unpacked())
    except MissingError as exc:
        sys.exit(str(exc))
