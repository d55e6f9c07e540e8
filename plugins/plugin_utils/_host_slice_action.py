# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Runs a module of the host with what the plan says of that host, read when the task runs."""

from __future__ import annotations

import typing as t

from ansible.plugins.action import ActionBase

from ansible_collections.railops.rdma.plugins.plugin_utils._slice import read_slice


class HostSliceAction(ActionBase):
    """Turns `plan_dir` into the module's own parameters, and runs the module."""

    MODULE: t.ClassVar[str]

    def parameters(self, host_slice: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the module's parameters that follow from the slice."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Read the slice, run the module."""
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        plan_dir = arguments.pop("plan_dir", None)
        if plan_dir:
            arguments |= self.parameters(read_slice(str(plan_dir), task_vars["inventory_hostname"]))
        result: dict[str, t.Any] = self._execute_module(
            module_name=self.MODULE, module_args=arguments, task_vars=task_vars
        )
        return result
