# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This doc fragment is PRIVATE to the collection.

from __future__ import annotations


class ModuleDocFragment:
    """How modules find the cluster's API."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description: Path of a kubeconfig. Without it, the usual one, or inside a pod its service account.
    type: path
  context:
    description: Context of the kubeconfig.
    type: str
"""
