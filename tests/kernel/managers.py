# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real network managers: netplan, NetworkManager and systemd-networkd of Debian, in a system of their own.

Nothing of them is installed on the machine, and none that the machine has is used. Each run has mounts and processes
of its own; the network is the namespace of whoever starts it.
"""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

import roots

needs_managers = pytest.mark.skipif(
    # Where the check is required, their absence is a failure.
    "kernel" not in os.environ.get("RAILOPS_REQUIRE", "").split()
    and (os.geteuid() != 0 or shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin") is None),
    reason="the network managers are unpacked by debootstrap, which is not here or needs root; run as root: make deps",
)


@cache
def folder() -> str:
    """Return the system that has them, made when missing."""
    return str(roots.managers())


def in_managers(argv: list[str], shown: Path) -> list[str]:
    """Return the command that runs another one there, with a folder of this machine as /mnt and the collection."""
    collections = "/srv/ansible_collections/railops/rdma"
    return roots.entering(
        roots.Room(
            root=folder(),
            binds=((str(shown), "/mnt", True), (str(CHECKOUT), collections, False)),
            environ={"PYTHONPATH": "/srv", "PYTHONDONTWRITEBYTECODE": "1"},
            writable=False,
            grace=0,
        ),
        argv,
    )
