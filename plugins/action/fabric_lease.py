# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Sets the run that acquires the lease, and shows its progress."""

from __future__ import annotations

import getpass
import os
import socket
import typing as t

from ..plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """The action in front of the module fabric_lease."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Name the run by its user, its controller and its process, which is this worker's parent."""
        user = f"{getpass.getuser()}@{socket.gethostname()}"
        return super().act({**args, "run": {"user": user, "pid": os.getppid()}}, task_vars)
