# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs host_record_info; what lies in folders of the controller is read here. A failure is shown once."""

from __future__ import annotations

import os
import typing as t

from ..module_utils._intake import Nonsense, measured
from ..module_utils._record.run import SPEC, users
from ..plugin_utils._arguments import arguments
from ..plugin_utils._module_action import ModuleAction
from ..plugin_utils._record.bundle import bundle
from ..plugin_utils._refusal import fail


class ActionModule(ModuleAction):
    """The action in front of the module host_record_info."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Record a host by the module, or the folders of a plan and a verdict."""
        if not args.get("folders"):
            result = super().act(args, task_vars)
            try:
                # A record's files stay as they are; its measure counts, and what of it a person reads.
                measured(result.get("record"))
                return {**result, **{key: measured(result[key]) for key in ("summary",) if key in result}}
            except Nonsense as exc:
                fail(f"The record of this host is refused: it is {exc}.", "Look at who answers there. [record_refused]")
        args = arguments(args, SPEC)
        files = bundle(args["folders"], args["key"], [*args["names"], os.uname().nodename, *users()])
        return {"changed": False, "bundle": files}
