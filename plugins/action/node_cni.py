# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs node_cni; a failure is shown once."""

from __future__ import annotations

import typing as t

from ..plugin_utils._module_action import ModuleAction
from ..plugin_utils._report.equal import folded


class ActionModule(ModuleAction):
    """The action in front of the module node_cni."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Run the module, and add names of nodes for people."""
        result = super().act(args, task_vars)
        lacking: dict[str, list[str]] = {}
        for node, names in result.get("lacking", {}).items():
            lacking.setdefault(", ".join(names), []).append(node)
        told = {
            "unseen": folded(sorted({*result.get("left", ()), *result.get("down", ())})),
            "lacks": "; ".join(f"{folded(nodes)}: {names}" for names, nodes in lacking.items()),
        }
        return {**told, **result}
