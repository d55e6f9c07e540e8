# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Switches that speak LLDP: the real lldpd, from a system in the cache, in the network namespace of their ports."""

from __future__ import annotations

import subprocess
import sys
import typing as t
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))

import roots

if t.TYPE_CHECKING:
    pass


def lldpd(namespace: str, name: str, folder: Path, *lines: str) -> subprocess.Popen[bytes]:
    """Start lldpd in a network namespace, under a system name; its socket is `NAME.sock` in the folder.

    :param folder: lldpd gives up its rights, and still has to reach its socket there.
    :param lines: more of its configuration.
    """
    settings = [f"configure system hostname {name}.dc.example", "configure lldp tx-interval 1", *lines]
    (folder / f"{name}.conf").write_text("\n".join(settings) + "\n", encoding="utf-8")
    room = roots.Room(str(roots.managers()), ((str(folder), "/mnt", True),), writable=False, grace=0)
    script = f"mkdir -p /run/lldpd && exec lldpd -d -u /mnt/{name}.sock -O /mnt/{name}.conf"
    argv = ["ip", "netns", "exec", namespace, *roots.entering(room, ["sh", "-c", script])]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End what `lldpd` started."""
    for process in processes:
        # `unshare --fork` blocks SIGTERM; when it is killed, its child and all below go with it.
        process.kill()
        process.wait()
