# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings the wheel of pyroute2 from the controller to the host, and runs the module of this name."""

from __future__ import annotations

import os
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.plugins.action import ActionBase


class ActionModule(ActionBase):
    """Hands the module a path on the host."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Send the wheel when one is named, run the module."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        wheel = arguments.pop("pyroute2_wheel", None)
        if wheel:
            source = os.path.expanduser(str(wheel))
            if not os.path.isfile(source):
                fix = "Fetch it (pip download --no-deps pyroute2==0.9.4), or leave rdma_driver_pyroute2_wheel out."
                raise AnsibleActionFail(f"There is no wheel {source!r} on the controller. {fix}", result={"fix": fix})
            shell = self._connection._shell
            if not shell.tmpdir:
                self._make_tmp_path()
            remote = self._connection._shell.join_path(shell.tmpdir, os.path.basename(source))
            self._transfer_file(source, remote)  # type: ignore[no-untyped-call]
            self._fixup_perms2((shell.tmpdir, remote))  # type: ignore[no-untyped-call]
            arguments["pyroute2_wheel"] = remote
        try:
            result: dict[str, t.Any] = self._execute_module(
                module_name="railops.rdma.rdma_driver", module_args=arguments, task_vars=task_vars
            )
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)  # type: ignore[no-untyped-call]
        return result
