# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ..plugin_utils._host_plan_action import HostPlanAction


class ActionModule(HostPlanAction):
    """Refuse the options that rdma_driver does not have any more, and show a failure once."""
