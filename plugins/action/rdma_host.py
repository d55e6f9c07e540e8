# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Gives the module of this name the rails of its host."""

from __future__ import annotations

import typing as t

from ansible_collections.railops.rdma.plugins.plugin_utils._host_slice_action import HostSliceAction


class ActionModule(HostSliceAction):
    """Reads the plan on the controller, changes the host."""

    MODULE = "railops.rdma.rdma_host"

    def parameters(self, host_slice: dict[str, t.Any]) -> dict[str, t.Any]:
        """Return the rails and the kind of network."""
        keys = ("name", "interface", "pci", "mtu")
        return {
            "network": host_slice["network"],
            "rails": [{key: rail.get(key) for key in keys} for rail in host_slice["rails"]],
        }
