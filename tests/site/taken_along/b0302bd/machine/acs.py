# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads and writes the access control (ACS) bits of PCIe bridges. Standard library only.

The module gpudirect uses this file, and installs it on the host as it is: a systemd unit runs it at boot. It therefore
imports nothing of the collection. Register layout: PCI Express Base Specification, extended capability 0x000d;
control at offset 6 (include/uapi/linux/pci_regs.h, PCI_ACS_CTRL).
"""

from __future__ import annotations

import json
import os
import struct
import sys

EXTENDED_START = 0x100
CAPABILITY_ACS = 0x000D
CONTROL = 6
# Source validation, P2P request redirect, P2P completion redirect, upstream forwarding.
P2P_BITS = 0x01 | 0x04 | 0x08 | 0x10


def acs_offset(config: bytes) -> int | None:
    """Return where the ACS capability begins in a function's configuration space, or None."""
    place = EXTENDED_START
    seen = set()
    while EXTENDED_START <= place <= len(config) - 8 and place not in seen:
        seen.add(place)
        (header,) = struct.unpack_from("<I", config, place)
        if header in (0, 0xFFFFFFFF):
            return None
        if header & 0xFFFF == CAPABILITY_ACS:
            return place
        place = header >> 20 & 0xFFC
    return None


class Bridges:
    """The bridges of a host, by PCI address."""

    def __init__(self, root: str = "/") -> None:
        self._root = root

    def _config(self, address: str) -> str:
        return os.path.join(self._root, "sys/bus/pci/devices", address, "config")

    def read(self, address: str) -> int | None:
        """Return the ACS control bits of a bridge; None when it has none, or does not show them."""
        try:
            with open(self._config(address), "rb") as file:
                config = file.read(4096)
        except OSError:
            return None
        place = acs_offset(config)
        return None if place is None else int(struct.unpack_from("<H", config, place + CONTROL)[0])

    def write(self, address: str, value: int) -> None:
        """Set the ACS control bits of a bridge."""
        with open(self._config(address), "r+b", buffering=0) as file:
            place = acs_offset(file.read(4096))
            if place is None:
                raise OSError(f"{address} has no ACS")
            file.seek(place + CONTROL)
            file.write(struct.pack("<H", value))


def main(arguments: list[str]) -> int:
    """Clear the bits on the bridges that a settings file lists: the program of the systemd unit."""
    with open(arguments[0], encoding="utf-8") as file:
        bridges = json.load(file)["bridges"]
    host = Bridges()
    failed = 0
    for address in bridges:
        value = host.read(address)
        if value is None:
            continue
        try:
            if value & P2P_BITS:
                host.write(address, value & ~P2P_BITS)
        except OSError as exc:
            print(f"{address}: {exc}", file=sys.stderr)  # pylint: disable=ansible-bad-function
            failed = 1
    return failed


if __name__ == "__main__":
    # This file is also installed as a boot program.
    sys.exit(main(sys.argv[1:]))  # pylint: disable=ansible-bad-function
