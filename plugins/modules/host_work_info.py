#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: host_work_info
short_description: Return the workloads of a host, and its node in a cluster
version_added: 1.0.0
description:
  - Lists running jobs of Slurm, and the processes that hold RDMA or GPU devices. Services that hold them and have no
    job, such as nvidia-persistenced, nv-fabricmanager, dcgm-exporter, device plugins and ibacm, do not count.
  - Returns the IDs by which a kubelet identifies the host. Reads C(/proc) and C(/etc/machine-id) and changes nothing.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The module changes nothing.
  idempotent:
    support: full
"""

EXAMPLES = r"""
---
- name: List the workloads of the host
  railops.rdma.host_work_info:
  become: true
  register: __example_work
"""

RETURN = r"""
work:
  description: Jobs and processes that are not in pods, one line each.
  returned: success
  type: list
  elements: str
  sample: ["job 4711 of Slurm", "python3 (pid 4712) holds /dev/infiniband/uverbs0, /dev/nvidia0"]
pods:
  description: Processes in pods, one line each.
  returned: success
  type: list
  elements: str
  sample: []
kubelet:
  description: The program that runs pods on the host, V(kubelet) or V(k3s-server) for instance; empty for none.
  returned: success
  type: str
  sample: kubelet
machine_id:
  description: The host's machine ID, as a node has it in C(status.nodeInfo).
  returned: success
  type: str
  sample: 3ffb27cb8d8a4ba6a2f1c1b3f9b9e1f0
boot_id:
  description: The identifier of the running boot.
  returned: success
  type: str
  sample: 6d0c1a52-3b84-4fb2-a4ea-9a31bb9b1c0e
emptied:
  description:
    - The purpose for which the role rdma_host emptied the host by a command, V(reboot) or V(upgrade). Only a run of
      that purpose returns the host to its scheduler.
    - Empty for all other hosts.
  returned: success
  type: str
  sample: ""
"""

from ..module_utils._module import run_module
from ..module_utils._rdma.workload import SPEC, run


def main() -> None:
    """Read, and report."""
    run_module(run, SPEC)


if __name__ == "__main__":
    main()
