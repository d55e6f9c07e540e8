# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs cluster_objects, or cluster_wait, and shows its progress: thousands of pools, or a rollout, take hours."""

from __future__ import annotations

from ..plugin_utils._progress import ProgressAction


class ActionModule(ProgressAction):
    """The action in front of the modules cluster_objects and cluster_wait (plugin_routing of meta/runtime.yml)."""
