# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The real network managers: netplan, NetworkManager and systemd-networkd of Debian 12, in a system of their own.

RAILOPS_MANAGERS names another release of tests/tools/roots.py: the check `long` takes those of trixie (Debian 13),
jammy (Ubuntu 22.04) and noble (Ubuntu 24.04). Nothing of them is installed on the machine, and none that the machine
has is used. Each run has mounts and processes of its own; the network is the namespace of the process that starts it.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import ansible
import pyroute2
import pytest

CHECKOUT = Path(__file__).resolve().parents[2]

import progress
import roots

from ansible_collections.railops.rdma.tests.unit.one_rail import WANT

SUITE = os.environ.get("RAILOPS_MANAGERS") or "bookworm"


def why_not() -> str:
    """Return why they cannot be had here, with the remedy; empty where they can, or where that is a failure."""
    if "kernel" in os.environ.get("RAILOPS_REQUIRE", "").split():
        return ""
    if os.geteuid() != 0 or shutil.which("debootstrap", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        return (
            "the network managers are unpacked by debootstrap, which is not here or needs root; run as root: make deps"
        )
    if SUITE != "bookworm":
        # Asked for by name: another mirror may not be in reach.
        try:
            folder()
        except progress.Failure as exc:
            return f"the network managers of {SUITE} are not to be had: {exc}"
    return ""


@cache
def folder() -> str:
    """Return the system that has them, made when missing."""
    return str(roots.managers(SUITE))


# The first programs of Ubuntu 22.04: netplan 0.104 has neither `vrfs` nor `infiniband-mode`, nmcli 1.36 no `--offline`.
FIRST_PROGRAMS = SUITE == "jammy"
needs_managers = pytest.mark.skipif(bool(WHY_NOT := why_not()), reason=WHY_NOT)


def in_managers(argv: list[str], shown: Path) -> list[str]:
    """Return the command that runs another one there, with a folder of this machine as /mnt and the collection."""
    collections = "/srv/ansible_collections/railops/rdma"
    python = {"PYTHONPATH": f"/srv:{collections}/tests/tools:/run/core", "PYTHONDONTWRITEBYTECODE": "1"}
    return roots.entering(
        roots.Room(
            root=folder(),
            binds=(
                (str(shown), "/mnt", True),
                (str(CHECKOUT), collections, False),
                *((str(Path(one.__file__).parent), f"/run/core/{one.__name__}", False) for one in (ansible, pyroute2)),
            ),
            environ=python,
            writable=False,
            grace=0,
        ),
        argv,
    )


MANAGED = {"ens1np0": ["192.0.2.2/27", "mtu 4200"]}
STEPS = "/srv/ansible_collections/railops/rdma/tests/kernel/persist_steps.py"
DAEMON = {"netplan": "networkd", "networkd": "networkd", "networkmanager": "networkmanager"}


@contextlib.contextmanager
def stepped_host(shown: Path):
    """Make a host with two ports; yield the function that runs steps on it (persist_steps.py), with their results."""
    name = f"rr-life-{os.getpid()}"

    def ip(*argv: str) -> None:
        subprocess.run(["ip", "-n", name, *argv], check=True)

    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        ip("link", "set", "lo", "up")
        for number, port in enumerate(("ens1np0", "ens2np0"), 1):
            far = f"far{number}"
            ip("link", "add", port, "address", mac(number), "type", "veth", "peer", "name", far)
            ip("link", "set", far, "up", "mtu", "9000")

        def run_steps(*steps: dict) -> list[dict]:
            (shown / "steps.json").write_text(json.dumps(steps), encoding="utf-8")
            argv = in_managers(["env", "TMPDIR=/run", "python3", STEPS], shown)
            inside = ["ip", "netns", "exec", name, *argv]
            done = subprocess.run(inside, capture_output=True, text=True, timeout=500, check=False)
            assert done.returncode == 0, done.stderr
            return json.loads((shown / "results.json").read_text(encoding="utf-8"))

        yield run_steps
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def mac(number: int) -> str:
    """Return the MAC address of a port of `life`, by its number from 1."""
    return f"00:00:5e:00:53:{number:02x}"


def wrote(files: dict[str, str], *, instead: bool = False) -> dict:
    """Return the step that writes files of another tool, beside what is there or instead of it."""
    return {"do": "files", "files": files, "instead": instead}


def persist(manager: str, **more: object) -> dict:
    """Return the step in which rail_persist writes the files of RAIL."""
    return {"do": "persist", "manager": manager, "want": {**WANT, **more}}


def boot(manager: str, expect: dict[str, list[str]] | None = None) -> dict:
    """Return the step of a boot; it lasts until all that is expected is there, or nothing changes any more."""
    return {"do": "boot", "daemon": DAEMON[manager], "expect": expect}
