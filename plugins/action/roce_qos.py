# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ..module_utils._fabric.shapes import HostPlan
from ..module_utils._qos.leaf import DECLARED, choose
from ..module_utils._qos.policy import switch_values
from ..module_utils._qos.run import SPEC
from ..plugin_utils._arguments import arguments
from ..plugin_utils._module_action import ModuleAction, lossless_options, without_null


class ActionModule(ModuleAction):
    """Pass roce_qos the rails' interfaces, the kind of network, and the plan's settings of the switches."""

    _declared: t.Mapping[str, t.Any]

    def options(self, have: HostPlan, folder: str, args: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
        """Return the options that the host plan gives."""
        self._declared = {"network": have["network"], **lossless_options(have)}
        return {**super().options(have, folder, args), **lossless_options(have)}

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module, and print the values for the switches by the declaration, not by a host's answer."""
        self._declared = {}
        result = super().act(args, task_vars)
        if result.get("switch"):
            policy, source = choose(arguments({**self._declared, **without_null(args)}, SPEC))
            result["switch"] = switch_values(policy) if source == DECLARED else []
        return result
