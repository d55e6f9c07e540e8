# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Spiderpool's host ports that another program holds: its pods would restart without end. Read from /proc."""

from __future__ import annotations

import typing as t

from .._check import Check, deviation, warning
from .._files import HostFiles

AGENT = "spiderpoolAgent."
PROCESS_PREFIX = "spiderpool-"
"""How the names of Spiderpool's processes begin."""


def holders(files: HostFiles, sockets: t.Collection[str]) -> dict[str, str]:
    """Return which process holds each socket: its name and number."""
    found = {}
    wanted = {f"socket:[{inode}]": inode for inode in sockets}
    for pid in (name for name in files.names("/proc") if name.isdigit()):
        opened = {files.link(f"/proc/{pid}/fd/{number}") or "" for number in files.names(f"/proc/{pid}/fd")}
        for link in opened & wanted.keys():
            found[wanted[link]] = f"{files.text(f'/proc/{pid}/comm')} (pid {pid})"
    return found


def port_checks(ports: t.Mapping[str, t.Any], files: HostFiles) -> list[Check]:
    """Return the ports that another program holds.

    The agent runs on each node; the controller may run on this one.

    :param ports: by the Helm value that changes each.
    """
    open_ports = files.listening()
    # Helm itself refuses a value that is no number.
    numbers = {option: int(port) for option, port in ports.items() if str(port).isdecimal()}
    in_use = {option: port for option, port in numbers.items() if port in open_ports}
    by = holders(files, {inode for port in in_use.values() for inode in open_ports[port]})
    checks = []
    for option, port in in_use.items():
        names = sorted({by.get(inode, "a process that /proc does not show") for inode in open_ports[port]})
        if all(name.startswith(PROCESS_PREFIX) for name in names):
            continue
        cause = f"Spiderpool needs TCP port {port}, and {', '.join(names)} listens there"
        fix = f"Stop that program, or change this Helm value in spiderpool_values: {option}."
        make = deviation if option.startswith(AGENT) else warning
        checks.append(make("host_port", port, names, cause, fix))
    return checks
