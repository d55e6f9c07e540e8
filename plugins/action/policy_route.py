# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleConnectionFailure

from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._module_action import ModuleAction
from ..plugin_utils._refusal import once

NEW_CONNECTION = "new_connection"


class ActionModule(ModuleAction):
    """Give policy_route the host plan, and confirm a change over a new connection where that is asked.

    Change and confirmation are one task: in a batch, no host's rollback timer waits for the changes of the others.
    """

    # The rollback timer outlives the task and its temporary folder.
    KEEPS_LIBRARY = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module, and once more to confirm."""
        FabricAction.run(self, tmp, task_vars)
        args = dict(self._task.args)
        confirm = args.get("confirm") == NEW_CONNECTION
        self._task.args = {**args, "confirm": None} if confirm else args
        changed = self.asked(task_vars or {})
        if changed.get("failed") or not (confirm and changed.get("token")):
            return once(self._task, changed)
        self._task.args = {**args, "confirm": changed["token"]}
        try:
            self._connection.reset()
            kept = self.asked(task_vars or {})
        except AnsibleConnectionFailure as exc:
            raise AnsibleConnectionFailure(
                f"After the change no new connection came about, and the host takes the change back: {exc}"
            ) from exc
        checks = [*changed["checks"], *kept.get("checks", ())]
        return once(self._task, {**changed, **kept, "changed": True, "checks": checks})
