# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs gpudirect, which has no option of the Helm values any more."""

from __future__ import annotations

from ..plugin_utils._host_plan_action import HostPlanAction


class ActionModule(HostPlanAction):
    """The action in front of the module gpudirect."""
