# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..plugin_utils._slice_action import SliceAction


class ActionModule(SliceAction):
    """Give policy_route the host's slice of the plan."""

    SLICE_KEYS = ("rails", "rdma_prefixes", "policy", "network", "sysctls")
    RAIL_KEYS = SliceAction.ROUTED_RAIL_KEYS
