#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Keep a second run away from a fabric."""

from __future__ import annotations

DOCUMENTATION = r"""
module: fabric_lease
short_description: Keep a second run away from a fabric while this one lasts
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Takes the C(Lease) of the fabric in the cluster. A process of this run renews it every 15 seconds, ends with the
    run and gives the lease back then, also when the run was killed.
  - Waits up to 60 seconds for a lease that another run holds. Fails with that run's name only when that run renewed the
    lease meanwhile. The next run after a lost controller therefore continues automatically.
  - Makes the namespace where it is missing.
  - Without a cluster, and where its API does not answer or refuses leases, RV(run) is for the environment variable
    E(RAILOPS_RUN) of the tasks on hosts. Each module of this collection then keeps other runs off its host in the same
    way, by a file below C(/run) there.
  - Run it on the controller, by C(delegate_to=localhost).
options:
  fabric:
    description: The fabric's name, which is the lease's.
    type: str
    required: true
  namespace:
    description: The lease's namespace.
    type: str
    required: true
  cluster:
    description: Whether there is a cluster.
    type: bool
    required: true
  run:
    description: Whose run it is; filled in on the controller.
    type: dict
    suboptions:
      user:
        description: User and controller.
        type: str
      pid:
        description: The process that the lease lasts as long as.
        type: int
  progress_file:
    description: A file to which lines of progress are appended. Without it the lines are shown.
    type: path
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: Takes nothing.
  diff_mode:
    support: none
  idempotent:
    support: full
    details: A run that has the lease keeps it.
"""

EXAMPLES = r"""
---
- name: Take the fabric's lease
  railops.rdma.fabric_lease:
    fabric: fabric
    namespace: spiderpool
    cluster: true
  run_once: true
  delegate_to: localhost
"""

RETURN = r"""
lease:
  description: Whether the cluster's lease is this run's.
  returned: success
  type: bool
  sample: true
run:
  description: The value of E(RAILOPS_RUN) for tasks on hosts; empty with a lease.
  returned: success
  type: str
  sample: ""
"""

from ..module_utils._cluster.lease import run
from ..module_utils._cluster.requirements import spec_of
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, spec_of(DOCUMENTATION))


if __name__ == "__main__":
    main()
