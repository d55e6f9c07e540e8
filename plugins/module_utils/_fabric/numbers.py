# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The numbers of the kernel's routing that are this collection's. Plan and host both go by them."""

from __future__ import annotations

MAX_RAILS = 99

TABLES = range(1001, 1001 + MAX_RAILS)
"""Rail N's routing table is the Nth (Spiderpool uses table 500, the kernel 253 to 255)."""

PRIORITIES = range(10001, 10001 + MAX_RAILS)
"""Rail N's rule priority is the Nth (Spiderpool uses priority 1000, the guides' guard 2000)."""

METRICS = range(101, 101 + MAX_RAILS)
"""Rail N's metric in the main table is the Nth, so that the first rail is main's choice."""
