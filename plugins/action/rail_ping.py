# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._slice import neighbours_of
from ..plugin_utils._slice_action import SliceAction


class ActionModule(SliceAction):
    """Give rail_ping the host's slice of the plan, and those of its neighbours."""

    SLICE_KEYS = ("rails", "rdma_prefixes", "policy", "network")
    RAIL_KEYS = SliceAction.ROUTED_RAIL_KEYS

    def more_args(self, args: dict[str, t.Any], plan_dir: str, host: str) -> None:
        """Add the neighbours' addresses."""
        count = int(args.get("neighbours", 1))
        if args.get("neighbour_hosts") is None and count:
            args["neighbour_hosts"] = neighbours_of(plan_dir, host, count)
