# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Action plugins as a playbook would make them, without a connection."""

from __future__ import annotations

import typing as t
from types import ModuleType, SimpleNamespace

from ansible.playbook.task import Task
from returned import returned

from ansible_collections.railops.rdma.plugins.action import rdma_info

STANDALONE_ACTIONS = ("acceptance", "rail_discover", "rail_upgrade_info", "verdict", "verify_result")
"""Actions that do the work themselves; what the others return is their module's."""


def action_of(
    module: ModuleType | str,
    args: dict[str, t.Any],
    *,
    check_mode: bool = False,
    diff: bool = False,
    templar: t.Any = None,
) -> t.Any:
    """Return the action plugin of a task with these arguments.

    :param module: the action's own file; or the name of a module that goes by the action of rdma_info.
    """
    name = module if isinstance(module, str) else module.__name__.rpartition(".")[2]
    module = rdma_info if isinstance(module, str) else module
    task = Task()
    task.args, task.check_mode, task.diff, task.async_val = args, check_mode, diff, 0
    task.action = f"railops.rdma.{name}"
    shell = SimpleNamespace(tmpdir="/tmp/remote", join_path=lambda *parts: "/".join(parts))
    context = SimpleNamespace(check_mode=check_mode, diff=diff)
    action = module.ActionModule(
        task, SimpleNamespace(_shell=shell), context, loader=None, templar=templar, shared_loader_obj=None
    )
    if name in STANDALONE_ACTIONS:
        run = action.run
        action.run = lambda *args, **more: returned(name, run(*args, **more))
    return action
