# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the wire itself who has an address: for entries of the neighbour table that somebody set by hand."""

from __future__ import annotations

import fcntl
import socket
import struct
import typing as t

from .._probe.duplicates import ask, inet6
from .._probe.duplicates_plan import Question
from .._sysfs import Sysfs

WAIT = 1.0
SIOCGIFHWADDR = 0x8927  # linux/sockios.h


def answers_on(interface: str, addresses: t.Sequence[str]) -> dict[str, str]:
    """Return the hardware address of each of these addresses that somebody at the interface answers for."""
    sysfs = Sysfs()
    mac = _own_mac(interface)
    questions = [Question(address, interface, mac, address) for address in addresses]
    locals_of = {name: found[0] for name, found in inet6(sysfs).items() if found[0]}
    answers, _failed = ask(questions, locals_of, WAIT)
    return {item.address: item.mac for found in answers.values() for item in found if item.address in addresses}


def _own_mac(interface: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        # struct ifreq: the name, then struct sockaddr with the address behind two bytes.
        said = fcntl.ioctl(sock, SIOCGIFHWADDR, struct.pack("16s24x", interface.encode()))
    return said[18:24].hex(":")
