#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: collective_job
short_description: Run an MPI program over pods with the rails, and return its output
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Internal to the playbooks of this collection. It can change in any release.
  - Makes an Indexed Job with one pod on each of O(nodes), lets its first pod run O(words), returns the log, and deletes
    the Job. Nothing has to be installed in the cluster.
  - The pods find each other by a headless Service and by sshd, with a key that is made for the run. Secret and Service
    belong to the Job and go with it. The Job is bounded by C(activeDeadlineSeconds).
  - Pods have the annotations and limits of the plan's C(workload/pod.yaml), and the environment of its
    C(workload/nccl-pods.env).
  - The image needs sh, sshd, ssh, MPI and the program, and the cluster DNS.
options:
  plan_dir:
    description: The plan's folder, the one with C(plan.json).
    type: path
    required: true
  fabric:
    description: Name of the fabric, for labels and the Job's name.
    type: str
    default: fabric
  nodes:
    description: The nodes' names in Kubernetes.
    type: list
    elements: str
    required: true
  words:
    description:
      - The program and its arguments, as C([mpirun, --host, "{hosts}", all_reduce_perf]). C({hosts}) and C({count}) are
        replaced by the pods' names and their number.
    type: list
    elements: str
    required: true
  image:
    description: The image of the pods.
    type: str
    required: true
  namespace:
    description: The namespace of the Job.
    type: str
    default: default
  limits:
    description: Further limits of each pod, such as C(nvidia.com/gpu).
    type: dict
    default: {}
  seconds:
    description: Seconds that the program may take once its pods run.
    type: int
    default: 300
  tolerations:
    description: Tolerations of the pods, as a pod has them. That of the gate's taint is always there.
    type: list
    elements: dict
    default: []
  image_pull_secrets:
    description: Names of the Secrets by which the image is pulled.
    type: list
    elements: str
    default: []
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
    details: Makes nothing, and returns RV(objects).
  diff_mode:
    support: none
  idempotent:
    support: full
    details: Leaves nothing behind.
requirements:
  - kubernetes >= 31
  - cryptography >= 41
"""

EXAMPLES = r"""
---
- name: Run NCCL's all_reduce over two nodes
  railops.rdma.collective_job:
    plan_dir: plan/fabric
    nodes: [node1, node2]
    image: registry.example/nccl-tests
    limits:
      nvidia.com/gpu: "8"
    words: [mpirun, --host, "{hosts}", -x, NCCL_DEBUG=INFO, all_reduce_perf, -b, 1G, -e, 8G, -f, "2", -g, "8"]
"""

RETURN = r"""
code:
  description: The program's exit code, null when its time was up.
  returned: when it ran
  type: int
  sample: 0
output:
  description: The output of the first pod.
  returned: when it ran
  type: str
  sample: "# Avg bus bandwidth    : 47.9"
objects:
  description: The Job.
  returned: always
  type: list
  elements: dict
  sample: []
"""

import typing as t

from ..module_utils._cluster.client import Cluster
from ..module_utils._cluster.requirements import spec_of
from ..module_utils._cluster.tls_run import NEEDS
from ..module_utils._errors import RdmaError
from ..module_utils._fabric.facts import read_facts
from ..module_utils._module import run_module
from ..module_utils._pods.collective import indexed_job
from ..module_utils._pods.collective_run import Collective


def job_of(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Return the Job that the parameters and the plan make.

    :raises RdmaError: when they do not fit together.
    """
    facts = read_facts(params["plan_dir"])
    templates = facts["pod_templates"]
    if len(templates) != 1:
        fix = "Give the rails stable names (rdma_host), so that one template fits all nodes. [rail_names_differ]"
        raise RdmaError(f"The plan has {len(templates)} templates for pods: nodes name their rails differently.", fix)
    return indexed_job(params, templates[0]["template"], facts["pod_environment"])


def run(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Run it."""
    job = job_of(params)
    made: dict[str, t.Any] = {"changed": False, "objects": [job]}
    if check_mode:
        return made
    with Cluster(params) as cluster:
        return {**made, **Collective(cluster, job).run()}


def main() -> None:
    """Read the parameters, run, and report."""
    spec = spec_of(DOCUMENTATION, image_pull_secrets={"no_log": False})
    run_module(lambda module: run(module.params, check_mode=module.check_mode), spec, NEEDS)


if __name__ == "__main__":
    main()
