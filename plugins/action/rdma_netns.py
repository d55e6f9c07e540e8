# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives the module of this name the mode that the plan's attachment needs, unless the task names one."""

from __future__ import annotations

import typing as t

from ansible_collections.railops.rdma.plugins.plugin_utils._host_slice_action import HostSliceAction

# macvlan, ipvlan and ipoib share one device between namespaces; a virtual function belongs to one pod.
EXCLUSIVE_ATTACHMENTS = frozenset({"sriov", "ib-sriov"})


class ActionModule(HostSliceAction):
    """Reads the plan on the controller, changes the host."""

    MODULE = "railops.rdma.rdma_netns"

    def parameters(self, host_slice: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the mode."""
        needed = "exclusive" if host_slice["attachment"] in EXCLUSIVE_ATTACHMENTS else "shared"
        return {"mode": self._task.args.get("mode") or needed}
