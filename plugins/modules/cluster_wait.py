#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until parts of a cluster are ready, and report in one sentence why they are not."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_wait
short_description: Wait until parts of a Kubernetes cluster are ready, and report the pod that blocks them
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Follows rollouts. There is no time for all of it, which on a large fleet takes hours. O(timeout) is for how long
    nothing may move.
  - Does not wait for pods on nodes that are down, and lists these nodes, also where a rollout cannot continue because
    of them.
  - Prints the progress and the blocking pod every ten seconds.
  - A failure is one sentence with the pod, its container, the reason, the exit code and the end of its log.
options:
  parts:
    description: The parts to wait for.
    type: list
    elements: dict
    required: true
    suboptions:
      kind:
        description: Its kind. A SpiderCoordinator is ready when its phase is C(Synced).
        type: str
        required: true
        choices: [Deployment, DaemonSet, SpiderCoordinator]
      name:
        description: Its name.
        type: str
        required: true
      namespace:
        description: Its namespace. A SpiderCoordinator has none.
        type: str
        default: ""
      nodes:
        description:
          - Nodes that must each have a ready pod of a DaemonSet, which by its own numbers is ready without any. One
            that has none is named with the reason. Those that are down are named and not waited for.
        type: list
        elements: str
        default: []
  timeout:
    description: >-
      Seconds for which nothing may move, neither a pod more nor a container started. V(0) fails at once when a part is
      not ready.
    type: int
    default: 300
  progress_file:
    description: A file to which a line of progress is appended every ten seconds. Without it the lines are shown.
    type: path
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: Waits for nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
"""

EXAMPLES = r"""
---
- name: Wait until the agents of all nodes that are up run
  railops.rdma.cluster_wait:
    parts:
      - kind: DaemonSet
        name: spiderpool-agent
        namespace: spiderpool
"""

RETURN = r"""
down:
  description: Nodes that are down, whose pods were not waited for.
  returned: always
  type: list
  elements: str
  sample: ["node7"]
"""

from ..module_utils._cluster.requirements import NEEDS, spec_of
from ..module_utils._module import run_module
from ..module_utils._pods.wait_run import run


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION), NEEDS)


if __name__ == "__main__":
    main()
