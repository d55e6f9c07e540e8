# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Shows lines to the person who runs a playbook, or refuses the run with them."""

from __future__ import annotations

import typing as t

from ..module_utils._validation import shown
from ..modules.message import DOCUMENTATION
from ..plugin_utils._arguments import arguments, documented
from ..plugin_utils._localhost import FabricAction
from ..plugin_utils._refusal import refuse, show

ARGUMENT_SPEC = documented(DOCUMENTATION)


class ActionModule(FabricAction):
    """The action behind the module message."""

    _requires_connection = False

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Show the lines; with fail, and where there are any, as a failure."""
        args = arguments(args, ARGUMENT_SPEC)
        text = f"\n  {'- ' if args['fail'] else ''}".join([*filter(None, [args["heading"]]), *args["lines"]])
        # Some lines are text of hosts.
        text = "\n".join(shown(line).rstrip() for line in text.split("\n"))
        if args["fail"] and args["lines"]:
            refuse(self._task, text)
        if not args["fail"]:
            show(f"\n{text}")
        return {"changed": False}
