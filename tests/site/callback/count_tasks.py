# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes one JSON line for each task and host: what ran there, on whom, and whether a module was sent to the host."""

from __future__ import annotations

import json
import os

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = r"""
name: count_tasks
type: aggregate
short_description: Write what ran on whom
description: Writes a JSON line for each result to the file that the environment variable RAILOPS_TASKS names.
requirements: []
"""

# Actions that run on the controller and never reach a host.
CONTROLLER = {
    "assert",
    "debug",
    "fail",
    "gather_facts",
    "group_by",
    "import_role",
    "import_tasks",
    "include_role",
    "include_tasks",
    "include_vars",
    "meta",
    "pause",
    "set_fact",
    "set_stats",
    "validate_argument_spec",
    "railops.rdma.message",
    "railops.rdma.verdict",
    "railops.rdma.verify_result",
}


class CallbackModule(CallbackBase):
    """The callback."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "count_tasks"

    def __init__(self) -> None:
        super().__init__()
        self._play = ""
        self._file = open(os.environ["RAILOPS_TASKS"], "a", encoding="utf-8")  # noqa: SIM115 - as long as the run

    def v2_playbook_on_play_start(self, play):
        self._play = play.get_name()

    def _write(self, status, result):
        task = result.task if hasattr(result, "task") else result._task
        host = result.host if hasattr(result, "host") else result._host
        data = result.result if hasattr(result, "result") else result._result
        action = task.action.removeprefix("ansible.builtin.").removeprefix("ansible.legacy.")
        record = {
            "play": self._play,
            "host": host.get_name(),
            "task": task.get_name(),
            "module": action not in CONTROLLER and not task.delegate_to,
            "status": status,
            "changed": bool(data.get("changed")),
        }
        self._file.write(json.dumps(record) + "\n")
        self._file.flush()

    def v2_runner_on_ok(self, result):
        self._write("ok", result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self._write("failed", result)

    def v2_runner_on_unreachable(self, result):
        self._write("unreachable", result)

    def v2_runner_on_skipped(self, result):
        self._write("skipped", result)
