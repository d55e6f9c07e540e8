# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs cluster_objects, or cluster_wait, and shows its progress: thousands of pools, or a rollout, take hours."""

from __future__ import annotations

import typing as t

from ..plugin_utils._module_action import refuse_gone
from ..plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """The action in front of the modules cluster_objects and cluster_wait (plugin_routing of meta/runtime.yml)."""

    def act(self, task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Refuse the options that it had once, and run the module."""
        refuse_gone(f"option {str(self._task.action).rpartition('.')[2]}", self._task.args)
        return super().act(task_vars)
