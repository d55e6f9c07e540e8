# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The action in front of modules whose options follow from a host's slice of the plan."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.railops.rdma.plugins.plugin_utils._slice import read_slice


class HostAction(ActionBase):
    """Reads the slice on the controller and runs the module of the same name with what follows from it."""

    def options(self, host_slice: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the module's options that follow from the slice."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module; options of the task count more than those of the slice."""
        super().run(tmp, task_vars)
        variables = task_vars or {}
        given = {key: value for key, value in self._task.args.items() if value is not None}
        plan_dir = given.pop("plan_dir", None)
        if plan_dir:
            given = self.options(read_slice(str(plan_dir), variables["inventory_hostname"])) | given
        result: dict[str, t.Any] = self._execute_module(
            module_name=f"railops.rdma.{self._task.action.rpartition('.')[2]}", module_args=given, task_vars=variables
        )
        return result
