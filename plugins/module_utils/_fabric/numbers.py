# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's numbers and names that plan and hosts share."""

from __future__ import annotations

MANAGER = "railops.rdma"
"""Field manager and label in the cluster, alias of the interfaces that we make on a host."""

MAX_RAILS = 99

BASES = {"table": 1000, "priority": 10000, "metric": 100}
"""Rail N has the Nth number behind each: of its table, its rule, and its routes in main, where the lowest wins."""

EXCLUSION_PRIORITY = 2000
"""Of the guides' exclusion rule."""

RESERVED_NUMBERS = {
    "table": (
        (-(2**32), 0, "invalid"),
        (253, 255, "the kernel's"),
        (500, 500, "Spiderpool's"),
        (2**31, 2**33, "invalid"),
    ),
    "priority": (
        (-(2**32), 0, "the kernel's"),
        (1000, 1000, "Spiderpool's"),
        (EXCLUSION_PRIORITY, EXCLUSION_PRIORITY, "the exclusion rule's"),
        (32766, 2**33, "the kernel's"),
    ),
    "metric": ((-(2**32), 0, "invalid"), (1024, 1024, "the kernel's for IPv6"), (2**31, 2**33, "invalid")),
}
"""First and last of the numbers that no rail can have, and whose they are."""


def claimed(base: int, rails: int) -> range:
    """Return the numbers of a fabric behind a base: those of its rails, up to the next multiple of 8."""
    return range(base + 1, base + 1 + (rails + 7) // 8 * 8)


def taken_by(key: str, numbers: range, policy: str) -> str:
    """Return why numbers cannot be a fabric's, or nothing.

    :param key: of BASES.
    :param policy: default_route needs its exclusion rule before those of the rails.
    """
    for first, last, owner in RESERVED_NUMBERS[key]:
        if numbers and numbers[0] <= last and first <= numbers[-1]:
            return f"{numbers[0]} to {numbers[-1]} include {max(first, numbers[0])}, which is {owner}"
    if key == "priority" and policy == "default_route" and numbers and numbers[0] < EXCLUSION_PRIORITY:
        return f"{numbers[0]} to {numbers[-1]} come before the exclusion rule {EXCLUSION_PRIORITY}"
    return ""


TEST_PORT = 18515
"""TCP port of a perftest server that is given none: the programs' own."""

IPOIB_HEADER, IPOIB_DATAGRAM_MTU, IPOIB_CONNECTED_MTU = 4, 4092, 65520
"""IP over InfiniBand: bytes of its header (RFC 4391), and the largest MTU of datagram mode (4096 less that) and of
connected mode (the kernel's IPOIB_CM_MTU)."""

IFNAME_MAX = 15
"""Characters of an interface's name (IFNAMSIZ 16 with its zero)."""


def vlan_interface(interface: str, vlan: int) -> str:
    """Return the name of a VLAN's interface, as Spiderpool's plugin ifacer makes it; of no VLAN the interface's own."""
    return f"{interface}.{vlan}" if vlan else interface
