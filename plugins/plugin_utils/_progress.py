# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows the progress of a module while it runs: some of them take minutes to hours."""

from __future__ import annotations

import os
import tempfile
import threading
import typing as t

from ansible.utils.display import Display

from ..module_utils._validation import shown as printable
from ._module_action import ModuleAction

LOOK_SECONDS = 2.0
display = Display()


class Follower(threading.Thread):
    """Shows the lines that appear in a file."""

    def __init__(self, path: str, name: str) -> None:
        super().__init__(daemon=True)
        self._path = path
        self._name = name
        self._over = threading.Event()

    def run(self) -> None:
        """Display new lines until `_over` is set."""
        shown: t.Any = display
        with open(self._path, encoding="utf-8") as stream:
            over = False
            while not over:
                over = self._over.wait(LOOK_SECONDS)
                for line in stream:
                    shown.display(f"{self._name}: {printable(line.rstrip())}")

    def stop(self) -> None:
        """Show what is left and end."""
        self._over.set()
        self.join(5)


class ProgressAction(ModuleAction):
    """The action in front of a module that has the option progress_file."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module with a file for its progress, and follow that file."""
        local = self._connection.transport == "local"
        if args.get("progress_file") or not local:
            return super().act(args, task_vars)
        handle, path = tempfile.mkstemp(prefix="railops-rdma-progress-")
        os.close(handle)
        follower = Follower(path, self.name)
        follower.start()
        try:
            result = super().act({**args, "progress_file": path}, task_vars)
        finally:
            follower.stop()
            os.unlink(path)
        result.get("invocation", {}).get("module_args", {}).pop("progress_file", None)
        return result
