# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Look into the pods of the test application and measure the read latency between pods."""

from __future__ import annotations

DOCUMENTATION = r"""
module: pod_probe
short_description: Compare the test application's pods with the plan and measure RDMA read latency between pods
version_added: 0.2.0
author: railops.rdma contributors (@railops)
description:
  - Finds the fabric's test application (a DaemonSet with the fabric's labels) and compares its pods with the plan. Each
    has to run, and to have every rail's network with addresses of the node's pools, as Multus wrote them to the pod.
  - Runs C(ip) and C(rdma) inside of each pod through the API and compares interfaces, rules and RDMA devices.
  - Starts C(ib_read_lat) between pods, a server's and a client's Job for each pair of nodes and rail, and reads the
    client's log. Jobs are pinned to their nodes, bounded by C(activeDeadlineSeconds), and deleted afterwards, after a
    failure as well.
  - What cannot be looked at is a check that is V(skipped) with its reason.
options:
  plan_dir:
    description: The plan's folder, the one with C(plan.json).
    type: path
    required: true
  fabric:
    description: Name of the fabric, by whose label the test application is found.
    type: str
    default: fabric
  depth:
    description:
      - V(status) reads what the API says of the pods. V(look) runs commands inside of them too, and needs C(pods/exec).
      - V(latency) also starts the Jobs.
    type: str
    choices: [status, look, latency]
    default: latency
  image:
    description: Image of the Jobs, with perftest, iproute2 and a shell. The test application's own by default.
    type: str
    default: ""
  schedule:
    description: Who tests with whom, as in the option O(railops.rdma.rdma_probe#module:schedule).
    type: str
    choices: [auto, ring, full, sample]
    default: ring
  peers:
    description: How many peers each node has with O(schedule=sample).
    type: int
    default: 3
  seed:
    description: Draws nodes and peers.
    type: int
    default: 0
  nodes:
    description: How many nodes take part, drawn with O(seed). V(0) takes all.
    type: int
    default: 8
  parallel:
    description: How many pairs are tested at the same time. Each is two pods.
    type: int
    default: 8
  timeout:
    description: Seconds that a pod may take to start, and again that the test may take.
    type: int
    default: 60
  iterations:
    description: Exchanges of one test.
    type: int
    default: 1000
  max_latency_us:
    description: A typical read latency above this many microseconds is a deviation. V(0) asks for nothing.
    type: float
    default: 0
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: partial
    details: No Jobs are started.
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
  - PyYAML
"""

EXAMPLES = r"""
---
- name: Look into the pods and measure the latency of every rail
  railops.rdma.pod_probe:
    plan_dir: plan/fabric
    max_latency_us: 8

- name: Read only what the API says of the pods
  railops.rdma.pod_probe:
    plan_dir: plan/fabric
    depth: status
"""

RETURN = r"""
checks:
  description: One entry for each comparison. C(node) is the node's name in Kubernetes, null where it is about none.
  returned: always
  type: list
  elements: dict
  sample:
    - id: pod_read_lat
      rail: rail1
      node: node1
      status: ok
      planned: a pod on node2 answers RDMA reads
      observed: 2.31 us with a pod on node2
      cause: ""
      fix: ""
"""

import json
import os
import typing as t
import uuid

from ..module_utils._cluster import client, source
from ..module_utils._cluster.client import Access
from ..module_utils._errors import RdmaError
from ..module_utils._module import run_module
from ..module_utils._pods import client as pods_client
from ..module_utils._pods.checks import Node, node_of
from ..module_utils._pods.client import PodCluster
from ..module_utils._pods.jobs import Limits
from ..module_utils._pods.run import Options, Pods

ARGUMENT_SPEC: dict[str, t.Any] = {
    "plan_dir": {"type": "path", "required": True},
    "fabric": {"type": "str", "default": "fabric"},
    "depth": {"type": "str", "choices": ["status", "look", "latency"], "default": "latency"},
    "image": {"type": "str", "default": ""},
    "schedule": {"type": "str", "choices": ["auto", "ring", "full", "sample"], "default": "ring"},
    "peers": {"type": "int", "default": 3},
    "seed": {"type": "int", "default": 0},
    "nodes": {"type": "int", "default": 8},
    "parallel": {"type": "int", "default": 8},
    "timeout": {"type": "int", "default": 60},
    "iterations": {"type": "int", "default": 1000},
    "max_latency_us": {"type": "float", "default": 0.0},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}


def read_nodes(folder: str) -> dict[str, Node]:
    """Return what pods get on each node of a plan.

    :raises RdmaError: when there is no whole plan.
    """
    cluster = os.path.join(folder, "cluster")
    source.check_plan(cluster)
    configs = list(source.documents(os.path.join(cluster, "multusconfigs.yaml")))
    nodes: dict[str, Node] = {}
    try:
        with open(os.path.join(folder, "plan.json"), encoding="utf-8") as stream:
            active = {name for name, row in json.load(stream)["nodes"].items() if not row.get("retired")}
        for name in sorted(os.listdir(os.path.join(folder, "hosts"))):
            with open(os.path.join(folder, "hosts", name), encoding="utf-8") as stream:
                made = node_of(json.load(stream), configs)
            if made.name in active:
                nodes[made.name] = made
    except (OSError, ValueError, KeyError) as exc:
        fix = "Run the playbook railops.rdma.plan."
        raise RdmaError(f"The plan in {folder!r} cannot be read: {exc}.", fix) from exc
    return nodes


def options_of(params: dict[str, t.Any]) -> Options:
    """Return what the parameters ask for.

    :raises RdmaError: for numbers that cannot be.
    """
    for name, least in (("timeout", 1), ("iterations", 1), ("parallel", 1), ("nodes", 0), ("peers", 1)):
        if params[name] < least:
            raise RdmaError(f"{name} is {params[name]}; it must be {least} or more.", f"Set {name}.")
    limits = Limits(params["timeout"], params["iterations"], params["max_latency_us"])
    return Options(
        params["fabric"],
        params["depth"],
        params["image"],
        params["schedule"],
        params["peers"],
        params["seed"],
        params["nodes"],
        params["parallel"],
        limits,
    )


def run(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Look and measure."""
    options = options_of(params)
    nodes = read_nodes(params["plan_dir"])
    cluster = PodCluster(Access(kubeconfig=params["kubeconfig"], context=params["context"]))
    try:
        checks = Pods(cluster, nodes, options, uuid.uuid4().hex[:12]).checks(check_mode=check_mode)
    finally:
        cluster.close()
    return {"changed": False, "checks": checks}


def main() -> None:
    """Read the parameters, run, and report."""
    needs = [("kubernetes >= 31", client.KUBERNETES_ERROR or pods_client.STREAM_ERROR), ("PyYAML", source.YAML_ERROR)]
    run_module(lambda module: run(module.params, check_mode=module.check_mode), ARGUMENT_SPEC, needs)


if __name__ == "__main__":
    main()
