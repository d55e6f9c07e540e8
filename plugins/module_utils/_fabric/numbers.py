# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's numbers and names that plan and host both go by."""

from __future__ import annotations

MANAGER = "railops.rdma"
"""Field manager and label in the cluster, alias of the interfaces that we make on a host."""

MAX_RAILS = 99

TABLES = range(1001, 1001 + MAX_RAILS)
"""Rail N's routing table is the Nth (Spiderpool uses table 500, the kernel 253 to 255)."""

PRIORITIES = range(10001, 10001 + MAX_RAILS)
"""Rail N's rule priority is the Nth (Spiderpool uses priority 1000, the guides' exclusion rule 2000)."""

METRICS = range(101, 101 + MAX_RAILS)
"""Rail N's metric in the main table is the Nth, so that the first rail is main's choice."""

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
