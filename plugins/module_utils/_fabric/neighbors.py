# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kernel's neighbor tables (ARP, ND), one per family for all network namespaces of a host. Pure."""

from __future__ import annotations

SOFT_LIMIT = 512
"""The kernel's gc_thresh2: with more entries it removes those in use every five seconds."""


def most_neighbors(mode: str, slots: int, rails: int) -> int:
    """Return how many neighbors of one family a host has on its rails; with subnets of its own only gateways count.

    :param mode: `fabric_mode`, and `slots` the zone's `max_nodes`.
    """
    return rails if mode == "exclusive" else slots * rails


def thresholds(count: int, family: int) -> dict[str, str]:
    """Return the settings (below /proc/sys) that hold a number of neighbors, with room for those of pods."""
    first = 1 << max(count - 1, 0).bit_length()
    return {f"net/ipv{family}/neigh/default/gc_thresh{step + 1}": str(first << step) for step in range(3)}
