# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether a run has a cluster, and by which kubeconfig it gets there: the one answer for all playbooks and roles."""

from __future__ import annotations

import os
import typing as t

DOCUMENTATION = r"""
name: cluster_access
short_description: Say whether there is a cluster, and by which kubeconfig it is reached
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - There is a cluster when the inventory names a kubeconfig, when the controller's environment has E(KUBECONFIG), or
    when the controller runs in a pod with a service account. The first of these counts.
options:
  _input:
    description: The kubeconfig that the inventory names (C(fabric_kubeconfig)); empty for none.
    type: str
    required: true
"""

EXAMPLES = r"""
---
- name: Say whether there is a cluster
  ansible.builtin.debug:
    msg: "{{ (fabric_kubeconfig | default('') | railops.rdma.cluster_access).there }}"
"""

RETURN = r"""
_value:
  description:
    - C(there) (bool), and C(kubeconfig) (str), which is empty without a cluster and where the pod's own identity
      is used.
  type: dict
"""

SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount/token"


def cluster_access(kubeconfig: str | None) -> dict[str, t.Any]:
    """Return whether there is a cluster, and the kubeconfig that reaches it."""
    path = kubeconfig or os.environ.get("KUBECONFIG", "")
    inside = "KUBERNETES_SERVICE_HOST" in os.environ and os.path.isfile(SERVICE_ACCOUNT)
    return {"there": bool(path) or inside, "kubeconfig": path}


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"cluster_access": cluster_access}
