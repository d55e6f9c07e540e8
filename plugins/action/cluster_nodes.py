# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs cluster_nodes and shows its progress meanwhile: a node may need minutes until it offers what is planned."""

from __future__ import annotations

from ..plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """The action in front of the module cluster_nodes."""
