# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..plugin_utils._host_plan_action import HostPlanAction

if t.TYPE_CHECKING:
    from ..module_utils._fabric.shapes import HostPlan


class ActionModule(HostPlanAction):
    """Give rdma_netns the mode of the plan."""

    def options(self, have: HostPlan) -> dict[str, t.Any]:
        """Return the mode."""
        return {"mode": have["rdma_mode"]}
