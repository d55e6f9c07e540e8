# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..module_utils._fabric.shapes import HostPlan
from ..plugin_utils._module_action import ModuleAction, lossless_options, refuse_two_declarations, torn_options


class ActionModule(ModuleAction):
    """Give roce_qos the rails' interfaces, the kind of network, and what the plan says of the switches."""

    def options(self, have: HostPlan) -> dict[str, t.Any]:
        """Return the options that the host plan gives.

        :raises AnsibleActionFail: when the task says otherwise than the plan.
        """
        given = self._task.args
        if given.get("state") != "absent":
            refuse_two_declarations({row: [have["node"]] for row in torn_options(have, given)})
        return {**super().options(have), **lossless_options(have)}
