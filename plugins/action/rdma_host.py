# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..plugin_utils._host_plan_action import HostPlanAction


class ActionModule(HostPlanAction):
    """Give rdma_host the rails of its host, the kind of network and whether pods share its devices."""

    HOST_PLAN_KEYS = ("network", "rdma_mode", "rails", "rdma_prefixes")
