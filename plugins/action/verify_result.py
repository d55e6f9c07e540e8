# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Writes what verification found on one host, without contacting it."""

from __future__ import annotations

import typing as t

from ..modules.verify_result import DOCUMENTATION
from ..plugin_utils._arguments import arguments, documented
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._verdict.result import write_result

ARGUMENT_SPEC = documented(DOCUMENTATION)


class ActionModule(FabricAction):
    """The action behind the module verify_result."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Collect the checks and write the file."""
        args = arguments(args, ARGUMENT_SPEC)
        return write_result(args, task_vars["inventory_hostname"], args["results"], args["error"] or None, {})
