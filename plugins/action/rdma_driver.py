# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Brings the wheel of pyroute2 from the controller to the host, and runs the module of this name."""

from __future__ import annotations

import hashlib
import os
import typing as t

from ansible.plugins.action import ActionBase

from ..plugin_utils._refusal import Refusal, once

# Travels with the collection for hosts whose distribution has none, or an older one; pypi.org/project/pyroute2/0.9.7.
WHEEL = "pyroute2-0.9.7-py3-none-any.whl"
SHA256 = "01a2a3afe565a6acb0a0d5d8ac86c9682b6564407e3d9589070191ae94b737e8"
FOLDER = os.path.join(os.path.dirname(__file__), "..", "..", "roles", "rdma_driver", "files")


class ActionModule(ActionBase):
    """Sends the user's wheel, or the carried one to a host that asks for it, and hands the module its path there."""

    TRANSFERS_FILES = True

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module; once more with the carried wheel when the host needs it."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        wheel = arguments.pop("pyroute2_wheel", None)
        try:
            if wheel:
                return self._module(
                    {**arguments, "pyroute2_wheel": self._send(os.path.expanduser(str(wheel)))}, task_vars
                )
            carried = os.path.normpath(os.path.join(FOLDER, WHEEL))
            there = os.path.isfile(carried)
            result = self._module({**arguments, "pyroute2_carried": there}, task_vars)
            if result.get("wheel_wanted") and there:
                self._check(carried)
                result = self._module({**arguments, "pyroute2_wheel": self._send(carried)}, task_vars)
            return result
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)  # type: ignore[no-untyped-call]

    def _module(self, arguments: dict[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        result: dict[str, t.Any] = self._execute_module(
            module_name="railops.rdma.rdma_driver", module_args=arguments, task_vars=task_vars
        )
        return once(self._task, result)

    def _check(self, path: str) -> None:
        with open(path, "rb") as file:
            found = hashlib.sha256(file.read()).hexdigest()
        if found != SHA256:
            fix = "Install the collection again."
            raise Refusal(f"The wheel {path!r} has sha256 {found}, not {SHA256}. {fix}")

    def _send(self, source: str) -> str:
        """Send a wheel to the host and return its path there."""
        if not os.path.isfile(source):
            fix = "Fetch it (pip download --no-deps pyroute2==0.9.7), or leave rdma_driver_pyroute2_wheel out."
            raise Refusal(f"There is no wheel {source!r} on the controller. {fix}")
        shell = self._connection._shell
        if not shell.tmpdir:
            self._make_tmp_path()
        remote: str = shell.join_path(shell.tmpdir, os.path.basename(source))
        self._transfer_file(source, remote)  # type: ignore[no-untyped-call]
        self._fixup_perms2((shell.tmpdir, remote))  # type: ignore[no-untyped-call]
        return remote
