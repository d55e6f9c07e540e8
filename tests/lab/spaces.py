# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts that are namespaces: network, mounts, processes and a name of their own, in milliseconds.

Each has /etc and /var/lib as a private copy of the machine's (overlays in memory), an empty /run (so no systemd and no
D-Bus to talk to) and a /proc/sys/net that is its own to write. Whatever manages the machine's network, a host is one of
systemd-networkd: roles write its files, into the private /etc. What a role persists there never reaches the machine.
"""

from __future__ import annotations

import os
import sys
import typing as t
from pathlib import Path

import state
from fabric import cable as fabric_cable
from fabric import exists, plug
from shell import CHECKOUT, LabError, ip, run, wait_for
from topology import FABRIC_MTU, MANAGEMENT, MANAGEMENT6, Host, Lab

if t.TYPE_CHECKING:
    from collections.abc import Sequence

TOOLS = {"ip": "iproute2", "unshare": "util-linux", "nsenter": "util-linux", "mount": "mount"}
FIRST_PROCESS = CHECKOUT / "tests/lab/hostinit.py"


def up(lab: Lab, python: Path) -> None:
    """Make all hosts of the lab and plug them in."""
    for host in lab.hosts:
        _start(lab, host)
    for host in lab.hosts:
        _finish(lab, host, python)


def _start(lab: Lab, host: Host) -> None:
    """Make the namespace of one host with its cables, and start its first process."""
    namespace, home = lab.namespace(host), state.folder(lab.name) / host.name
    home.mkdir(mode=0o700)
    run(["ip", "netns", "add", namespace])
    (home / "namespace").touch()
    names = ["mgmt0", *lab.interfaces]
    commands: list[list[object]] = []
    for rail, name in enumerate(names):
        mtu = FABRIC_MTU if rail else 1500
        peer = ["peer", "name", name, "netns", namespace, "address", host.mac(rail), "mtu", 1500]
        commands.append(["link", "add", host.port(rail), "mtu", mtu, "type", "veth", *peer])
    ip(lab.fabric, commands)
    plug(lab, host)
    ip(
        namespace,
        [
            ["link", "set", "lo", "up"],
            ["link", "set", "mgmt0", "up"],
            ["address", "add", f"{host.address}/{MANAGEMENT.prefixlen}", "dev", "mgmt0"],
            ["address", "add", f"{host.address6}/{MANAGEMENT6.prefixlen}", "dev", "mgmt0", "nodad"],
            ["route", "add", "default", "via", MANAGEMENT[1], "dev", "mgmt0"],
            ["route", "add", "::/0", "via", MANAGEMENT6[1], "dev", "mgmt0"],
        ],
    )
    state.start(namespace, [sys.executable, "-S", "-E", str(FIRST_PROCESS), host.name, str(home)], home, "unshare")


def _finish(lab: Lab, host: Host, python: Path) -> None:
    """Wait for the first process and write the interpreter that runs modules beside it."""
    home = state.folder(lab.name) / host.name
    wait_for(
        f"The host {host.name}",
        (home / "ready").exists,
        seconds=30,
        step=0.01,
        fix=f"Its first process said: {(home / 'unshare.log').read_text(encoding='utf-8').strip()}",
    )
    parent = state.recorded_process(home / "unshare.pid")
    children = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="utf-8").split()
    state.record_process(home / "init.pid", int(children[0]))
    wrapper = home / "python"
    wrapper.write_text(f'#!/bin/sh\nexec {" ".join(entering(lab, host))} {python} "$@"\n', encoding="utf-8")
    wrapper.chmod(0o755)


def entering(lab: Lab, host: Host) -> list[str]:
    """Return the command that runs what follows it inside a host."""
    pid = state.recorded_process(state.folder(lab.name) / host.name / "init.pid")
    if pid is None:
        raise LabError(f"The host {host.name} of {lab.name!r} has ended.", f"Start again: lab.py down {lab.name}, up.")
    return ["nsenter", f"--target={pid}", "--mount", "--uts", "--net", "--pid", "--"]


def command(lab: Lab, host: Host, argv: Sequence[str]) -> list[str]:
    """Return what runs a command on a host, its arguments separate; without one, a shell."""
    return [*entering(lab, host), *(argv or [os.environ.get("SHELL", "/bin/sh")])]


def is_up(lab: Lab, host: Host) -> bool:
    """Say whether a host runs."""
    return state.recorded_process(state.folder(lab.name) / host.name / "init.pid") is not None


def down(lab: Lab) -> None:
    """End the hosts' processes (the first one takes all others with it) and remove their namespaces."""
    for host in lab.hosts:
        home = state.folder(lab.name) / host.name
        state.end_group(home / "unshare.pid")
        # A namespace that was there before us is not ours to delete.
        if (home / "namespace").exists() and exists(lab.namespace(host)):
            run(["ip", "netns", "delete", lab.namespace(host)])


def cable(lab: Lab, host: Host, rail: int, *, plugged: bool) -> None:
    """Pull or plug a cable: the host loses its carrier with the switch's end."""
    fabric_cable(lab, host, rail, plugged=plugged)
