# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs cluster_nodes; a host's node is the one that its host plan names."""

from __future__ import annotations

import os
import typing as t

from ..plugin_utils._host_plan import HOSTS_FOLDER, read_host_plan, refuse_other_node
from ..plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """The action in front of the module cluster_nodes."""

    def act(self, args: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        """Refuse to drain another node than the plan's, and run the module.

        Without a host plan, as in a cluster without a fabric, the name in the inventory is not checked.
        """
        host = task_vars.get("inventory_hostname")
        if args.get("drain") and args.get("plan_dir"):
            folder = os.path.expanduser(os.path.expandvars(str(args["plan_dir"])))
            if os.path.exists(os.path.join(folder, HOSTS_FOLDER, f"{host}.json")):
                node = read_host_plan(folder, str(host))["node"]
                for given in args.get("nodes") or ():
                    refuse_other_node(given, str(host), node)
        return super().act(args, task_vars)
