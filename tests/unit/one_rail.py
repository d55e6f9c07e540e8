# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with one rail, as policy_route and rail_persist are asked for it."""

from __future__ import annotations

RAIL = {
    "name": "rail1",
    "interface": "ens1np0",
    "mtu": 4200,
    "addresses": [{"address": "192.0.2.2", "subnet": "192.0.2.0/27", "gateway": "192.0.2.1"}],
}
WANT = {"rails": [RAIL], "rdma_prefixes": ["192.0.2.0/24"]}
