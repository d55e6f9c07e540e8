# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs node_cni; a failure is shown once."""

from __future__ import annotations

from ..plugin_utils._localhost import OnceAction


class ActionModule(OnceAction):
    """The action in front of the module node_cni."""
