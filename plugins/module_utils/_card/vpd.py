# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A card's vital product data, and whether it says that the card serves NVSwitches. Pure.

On HGX and DGX boards with B200 and B300 the NVSwitches are managed over ConnectX-7 functions with the PCI ID of any
other ConnectX-7. Fabric Manager and NVLSM know them by SMDL=SW_MNG in the vendor's field VA (NVIDIA's Fabric Manager
guide); a reset of one resets its NVSwitch.
"""

from __future__ import annotations

import typing as t

# PSIDs of such boards, as sysfs' board_id: those that mstfwreset refuses ("Canoe", mstflint 4.31), and that of B300.
SWITCH_BOARDS = frozenset(
    {
        "MT_0000001121",
        "MT_0000001122",
        "MT_0000001181",
        "MT_0000001182",
        "NVD0000000079",
        "OMN0000000006",
    }
)

SWITCHES, UNKNOWN = "serves the NVSwitches", "has a management role that this collection does not know"
NO_NIC = (SWITCHES, UNKNOWN)
"""How the roles begin that no card with a rail can have."""


def parse_vpd(data: bytes) -> dict[str, str]:
    """Return the read-only keywords of vital product data (PCI Local Bus Specification 3.0, appendix I)."""
    found: dict[str, str] = {}
    place = 0
    # The only small resource of such data ends it.
    while place < len(data) and data[place] & 0x80:
        size = int.from_bytes(data[place + 1 : place + 3], "little")
        body = data[place + 3 : place + 3 + size]
        if data[place] == 0x90:
            found.update(_keywords(body))
        place += 3 + size
    return found


def _keywords(body: bytes) -> dict[str, str]:
    found = {}
    place = 0
    while place + 3 <= len(body):
        key, size = body[place : place + 2].decode("ascii", "replace"), body[place + 2]
        if key != "RV":
            found[key] = body[place + 3 : place + 3 + size].decode("ascii", "replace").strip(" \0")
        place += 3 + size
    return found


def serves_switches(vpd: t.Mapping[str, str], board_id: str | None) -> str | None:
    """Return what a card serves instead of being a NIC, as "serves the NVSwitches (...)"; None when it is a NIC.

    :param vpd: the card's keywords, as parse_vpd() returns them; none when they cannot be read.
    :param board_id: what sysfs says of the board (the PSID).
    """
    for item in vpd.get("VA", "").split(":"):
        key, _equals, value = item.partition("=")
        if key == "SMDL" and value == "SW_MNG":
            return f"{SWITCHES} (VPD SMDL=SW_MNG)"
        if key == "SMDL" and value not in ("", "0"):
            return f"{UNKNOWN} (VPD SMDL={value})"
    return f"{SWITCHES} (board {board_id})" if board_id in SWITCH_BOARDS else None
