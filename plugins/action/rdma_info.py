# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs `rdma_info`, and each other module that needs no action of its own: meta/runtime.yml names them."""

from __future__ import annotations

import typing as t

from ..plugin_utils._module_action import ModuleAction

SECRET = {"cluster_components_info": ("values", "release")}
"""Options that may hold passwords, by module: an answer repeats all options, and -vvv shows it."""


class ActionModule(ModuleAction):
    """The action in front of these modules."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module, and keep what is secret out of its answer."""
        result = super().act(args, task_vars)
        for option in SECRET.get(self.name, ()):
            result.get("invocation", {}).get("module_args", {}).pop(option, None)
        return result
