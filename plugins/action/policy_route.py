# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import typing as t

from ansible.errors import AnsibleConnectionFailure

from ..plugin_utils._module_action import ModuleAction

NEW_CONNECTION = "new_connection"


class ActionModule(ModuleAction):
    """Give policy_route the host plan, and confirm a change over a new connection where the task requests it.

    Change and confirmation are one task: in a batch, no host's rollback timer waits for the changes of the others.
    """

    # The rollback timer outlives the task and its temporary folder.
    KEEPS_LIBRARY = True

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module, and once more to confirm."""
        confirm = args.get("confirm") == NEW_CONNECTION
        changed = super().act({**args, "confirm": None} if confirm else args, task_vars)
        if changed.get("failed") or not (confirm and changed.get("token")):
            return changed
        try:
            self._connection.reset()
            confirmed = super().act({**args, "confirm": changed["token"]}, task_vars)
        except AnsibleConnectionFailure as exc:
            raise AnsibleConnectionFailure(
                f"After the change no new connection succeeded; the host reverts the change: {exc}"
            ) from exc
        checks = [*changed["checks"], *confirmed.get("checks", ())]
        return {**changed, **confirmed, "changed": True, "checks": checks}
