# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the module of this name, and writes the Helm values on the controller."""

from __future__ import annotations

import json
import os
import typing as t

import yaml
from ansible.plugins.action import ActionBase

from ..plugin_utils._refusal import once

HEADER = """\
# Helm values of the NVIDIA GPU Operator, written by the role railops.rdma.gpudirect:
#   helm upgrade --install gpu-operator nvidia/gpu-operator --values THIS_FILE
---
"""


class ActionModule(ActionBase):
    """The values are the same for all hosts of one inventory, so any of them may write the file."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """Run the module, write the file when it differs."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        dest = arguments.get("values_dest")
        result: dict[str, t.Any] = self._execute_module(
            module_name="railops.rdma.gpudirect", module_args=arguments, task_vars=task_vars
        )
        if dest and "gpu_operator_values" in result:
            plain = json.loads(json.dumps(result["gpu_operator_values"]))
            if self._write(str(dest), HEADER + yaml.safe_dump(plain)):
                result["changed"] = True
                result["changes"] = [*result["changes"], f"write {dest} on the controller"]
        return once(self._task, result)

    def _write(self, path: str, text: str) -> bool:
        old = None
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                old = file.read()
        if old != text and not self._task.check_mode:
            os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
            fresh = f"{path}.{os.getpid()}.new"
            with open(fresh, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(fresh, path)
        return old != text
