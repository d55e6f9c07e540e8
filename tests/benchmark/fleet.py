# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Time and memory of the host part of site, few hosts against many: both must stay flat per host.

Hosts are namespaces, so the modules run on this machine too: the ratio says how the controller scales.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import typing as t
from pathlib import Path

from ran import CHECKOUT, Pair, Took, playbook, run

MANY, FEW = 25, 5
FORKS = "5"


def lab(*words: str) -> list[str]:
    """Return a command line of the lab."""
    return [sys.executable, str(CHECKOUT / "tests/lab/lab.py"), *words]


@contextlib.contextmanager
def fleet(hosts: int, folder: Path) -> t.Iterator[t.Callable[..., Took]]:
    """Start namespace hosts that are as planned, and give what runs the host part, or another playbook, once more."""
    name, inventory = f"bench{os.getpid() % 10000}n{hosts}", folder / "inventory"
    shutil.copytree(CHECKOUT / "inventory/demo", inventory)
    (inventory / "hosts").write_text(f"[gpu_nodes]\nnode[1:{hosts}]\n", encoding="utf-8")
    for path, key, value in (("site.yml", "site_serial", '["100%"]'), ("fabric.yml", "fabric_max_nodes", "64")):
        variables = inventory / "group_vars/all" / path
        kept = [line for line in variables.read_text(encoding="utf-8").splitlines() if key not in line]
        variables.write_text("\n".join([*kept, f"{key}: {value}"]) + "\n", encoding="utf-8")
    playbook(folder, "-i", "inventory", "railops.rdma.plan")

    def play(book: str = "hosts", *words: str) -> Took:
        where = subprocess.run(lab("inventory", name), capture_output=True, text=True, check=True).stdout.strip()
        command = ["ansible-playbook", "-i", "inventory", "-i", where, f"railops.rdma.{book}", *words]
        return run(lab("exec", name, "--", *command), folder, ANSIBLE_FORKS=FORKS)

    try:
        run(lab("up", "--name", name, "--nodes", str(hosts), "--plan", str(folder / "plan/fabric")), folder)
        play()
        yield play
    finally:
        subprocess.run(lab("down", name), capture_output=True, check=False)


def site() -> t.Iterator[dict[str, Pair]]:
    """Play both fleets by turns."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65536)), hard))
    with tempfile.TemporaryDirectory(prefix="railops-bench-") as name, contextlib.ExitStack() as stack:
        many, few = (stack.enter_context(fleet(hosts, Path(name) / str(hosts))) for hosts in (MANY, FEW))
        while True:
            ours, theirs, audit = many(), few(), many("audit").wall
            pairs = {"time": (ours.wall / MANY, theirs.wall / FEW), "memory": (ours.memory, theirs.memory)}
            yield {**pairs, "hosts": (ours.wall, audit), "unchanged": (many("site", "--tags", "hosts").wall, audit)}
