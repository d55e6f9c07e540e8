# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Label the nodes of a fabric, and compare what they offer with the plan."""

from __future__ import annotations

DOCUMENTATION = r"""
module: cluster_nodes
short_description: Label a fabric's nodes in a Kubernetes cluster and compare what they offer with the plan
version_added: 0.1.0
author: railops.rdma contributors (@railops)
description:
  - Puts the plan's node label (C(cluster/nodelabels.json)) on nodes, by which SR-IOV policies choose them, and takes
    it off others. Nodes are never created.
  - Puts the labels of zone and leaves (C(workload/nodelabels.json)) on the plan's nodes, for schedulers.
  - Compares every node's allocatable resources and its SR-IOV node state with the plan, and waits for them when told
    to.
options:
  plan_dir:
    description: The plan's folder, the one with C(plan.json). Needed unless O(drain) is given.
    type: path
  namespace:
    description: Namespace of the SR-IOV operator.
    type: str
    default: spiderpool
  state:
    description: V(absent) takes the label off all nodes and compares nothing.
    type: str
    choices: [present, absent]
    default: present
  nodes:
    description: Label only these nodes, leave the others as they are. All by default.
    type: list
    elements: str
    default: []
  label:
    description: Whether to change labels. Otherwise nodes are only compared.
    type: bool
    default: true
  drain:
    description:
      - V(begin) cordons O(nodes) and notes on them how they were, in an annotation. Emptying them is the work of
        another module.
      - V(end) makes O(nodes) that carry the note as they were, and takes it off.
      - Nothing else is done with them then. Nodes that the cluster does not have are left out.
    type: str
    choices: [begin, end]
  purpose:
    description: What O(drain) is for; each has a note of its own, C(railops.io/PURPOSE-drain), and ends no other's.
    type: str
    choices: [sriov, reboot, upgrade]
    default: sriov
    version_added: 0.2.0
  wait_seconds:
    description:
      - Seconds for which nothing may move while nodes are not as planned. V(0) compares without waiting.
      - Nodes that are down or not in the cluster are not waited for.
    type: int
    default: 0
  progress_file:
    description: A file to which a line of progress is appended every ten seconds. Without it the lines are shown.
    type: path
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._cluster
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - kubernetes >= 31
  - PyYAML
"""

EXAMPLES = r"""
---
- name: Label the nodes and wait until they offer what is planned
  railops.rdma.cluster_nodes:
    plan_dir: plan/fabric
    wait_seconds: 600

- name: Compare only
  railops.rdma.cluster_nodes:
    plan_dir: plan/fabric
    label: false
"""

RETURN = r"""
labelled:
  description: The label's new value by node, null where it was taken off.
  returned: always
  type: dict
  sample: {"node1": "declared"}
topology:
  description: The new values of the labels of zone and leaves by node, null where one was taken off.
  returned: always
  type: dict
  sample: {"node1": {"fabric.railops.io/zone": "su1"}}
unlabelled:
  description: Nodes in the cluster that still lack the planned label, when O(nodes) or O(label) left them out.
  returned: always
  type: list
  elements: str
  sample: [node2]
unfinished:
  description:
    - Nodes with the note of O(drain=begin), from this run or one that ended in the middle. With O(drain), those of
      O(nodes) with the note of O(purpose).
  returned: always
  type: list
  elements: str
  sample: [node1]
checks:
  description: One entry for each comparison with the plan.
  returned: always
  type: list
  elements: dict
  sample:
    - id: node_resources
      rail: null
      node: node1
      status: ok
      planned: {spidernet.io/fabric_rail1: 100}
      observed: {spidernet.io/fabric_rail1: 100}
      cause: ""
      fix: ""
"""

import json
import os
import time
import typing as t
from dataclasses import replace

from ..module_utils._cluster import client, source
from ..module_utils._cluster.client import Access, Cluster
from ..module_utils._cluster.model import Ref
from ..module_utils._cluster.nodes import (
    PURPOSES,
    Node,
    Want,
    awaited,
    checks,
    drain_changes,
    label_changes,
    progress,
    steps,
    topology_changes,
    want_of,
)
from ..module_utils._errors import RdmaError
from ..module_utils._fabric.names import SRIOV
from ..module_utils._module import run_module
from ..module_utils._pods.wait import Patience

ARGUMENT_SPEC: dict[str, t.Any] = {
    "plan_dir": {"type": "path"},
    "namespace": {"type": "str", "default": "spiderpool"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "label": {"type": "bool", "default": True},
    "drain": {"type": "str", "choices": ["begin", "end"]},
    "purpose": {"type": "str", "choices": list(PURPOSES), "default": "sriov"},
    "wait_seconds": {"type": "int", "default": 0},
    "progress_file": {"type": "path"},
    "kubeconfig": {"type": "path"},
    "context": {"type": "str"},
}
POLL_SECONDS = 5.0
TELL_SECONDS = 10.0


def read_want(folder: str) -> Want:
    """Return what the plan says about nodes.

    :raises RdmaError: when there is no whole plan.
    """
    source.check_plan(os.path.join(folder, "cluster"))
    try:
        with open(os.path.join(folder, "plan.json"), encoding="utf-8") as stream:
            seats = json.load(stream)["nodes"]
        nodes = {name for name, row in seats.items() if not row.get("retired")}
        interfaces: dict[str, set[str]] = {}
        hosts = os.path.join(folder, "hosts")
        for name in os.listdir(hosts):
            with open(os.path.join(hosts, name), encoding="utf-8") as stream:
                row = json.load(stream)
            interfaces[row["node"]] = {rail["interface"] for rail in row["rails"]}
        topology: dict[str, dict[str, str]] = {}
        path = os.path.join(folder, "workload", "nodelabels.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as stream:
                for group in json.load(stream)["groups"]:
                    topology.update(dict.fromkeys(group["nodes"], group["labels"]))
        marks = None
        path = os.path.join(folder, "cluster", "nodelabels.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as stream:
                marks = json.load(stream)
    except (OSError, ValueError, KeyError) as exc:
        raise RdmaError(
            f"The plan in {folder!r} cannot be read: {exc}.", "Run the playbook railops.rdma.plan."
        ) from exc
    cluster = os.path.join(folder, "cluster")
    values: dict[str, t.Any] = next(iter(source.documents(os.path.join(cluster, "values.yaml"))), {})
    policies = list(source.documents(os.path.join(cluster, "sriovpolicies.yaml")))
    want = want_of(nodes, interfaces, values, policies, marks)
    return replace(want, topology=topology, known=frozenset(seats))


class Nodes:
    """The nodes of a cluster, as far as a plan goes."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._resource = cluster.resource("v1", "Node")

    def read(self, label: str) -> dict[str, Node]:
        """Return what matters of each node."""
        return {
            node["metadata"]["name"]: Node.of(node, label)
            for page in self._cluster.pages(self._resource)
            for node in page
        }

    def some(self, names: t.Iterable[str], purpose: str) -> dict[str, Node]:
        """Return what matters of these nodes for emptying them; those that the cluster does not have are left out."""
        found = {name: self._cluster.get(self._resource, Ref("", "Node", "", name)) for name in names}
        return {name: Node.of(node, "", purpose) for name, node in found.items() if node}

    def states(self) -> dict[str, dict[str, t.Any]]:
        """Return the SR-IOV node states' status by node."""
        resource = self._cluster.resource(SRIOV, "SriovNetworkNodeState")
        if resource is None:
            return {}
        pages = self._cluster.pages(resource, namespace=self._namespace)
        return {row["metadata"]["name"]: row.get("status") or {} for page in pages for row in page}

    def patch(self, name: str, patch: dict[str, t.Any]) -> None:
        """Change a node."""
        self._cluster.merge_patch(self._resource, name, patch)


def run(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Label, wait and compare; or begin or end the emptying of nodes."""
    if params["drain"]:
        return run_drain(params, check_mode=check_mode)
    if not params["plan_dir"]:
        raise RdmaError("plan_dir is missing.", "Give the plan's folder, or drain with nodes.")
    want = read_want(params["plan_dir"])
    absent = params["state"] == "absent"
    cluster = Cluster(Access(kubeconfig=params["kubeconfig"], context=params["context"]))
    try:
        nodes = Nodes(cluster, params["namespace"])
        live = nodes.read(want.label)
        whole = label_changes(want, {name: node.label for name, node in live.items()}, absent=absent)
        chosen = set(params["nodes"])
        changes = {name: value for name, value in whole.items() if params["label"] and (not chosen or name in chosen)}
        places = {
            name: change
            for name, change in topology_changes(want, live, absent=absent).items()
            if params["label"] and (not chosen or name in chosen)
        }
        if not check_mode:
            for name in sorted({*changes, *places}):
                own = {want.label: changes[name]} if name in changes else {}
                nodes.patch(name, {"metadata": {"labels": {**own, **places.get(name, {})}}})
        found = [] if absent else checks(want, live, nodes.states())
        if not absent and not check_mode and params["wait_seconds"]:
            found = waited(want, nodes, chosen or set(want.nodes), params, found, live)
    finally:
        cluster.close()
    return {
        "changed": bool(changes or places),
        "labelled": changes,
        "topology": places,
        "unlabelled": sorted(name for name, value in whole.items() if value is not None and name not in changes),
        "unfinished": sorted(name for name, node in live.items() if node.note),
        "checks": found,
        "diff": differences(want.label, live, changes, places),
    }


def run_drain(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Cordon nodes with a note, or make those with the note as they were. Only these are read of the cluster."""
    cluster = Cluster(Access(kubeconfig=params["kubeconfig"], context=params["context"]))
    try:
        nodes = Nodes(cluster, params["namespace"])
        live = nodes.some(sorted(set(params["nodes"])), params["purpose"])
        changes = drain_changes(live, params["drain"], params["purpose"])
        if not check_mode:
            for name, patch in changes.items():
                nodes.patch(name, patch)
    finally:
        cluster.close()
    noted = {name for name, node in live.items() if node.note}
    cordons = {name: bool(patch["spec"]["unschedulable"]) for name, patch in changes.items() if "spec" in patch}
    return {
        "changed": bool(changes),
        "labelled": {},
        "topology": {},
        "unlabelled": [],
        "unfinished": sorted(noted | set(changes) if params["drain"] == "begin" else noted - set(changes)),
        "checks": [],
        "diff": {
            "before": "".join(f"{name} cordoned={live[name].cordoned}\n" for name in cordons),
            "after": "".join(f"{name} cordoned={value}\n" for name, value in cordons.items()),
        },
    }


def waited(
    want: Want,
    nodes: Nodes,
    considered: set[str],
    params: dict[str, t.Any],
    found: list[dict[str, t.Any]],
    live: dict[str, Node],
) -> list[dict[str, t.Any]]:
    """Return the checks when all that waiting can bring is there, or nothing moves any more.

    :param found: what they are now, over `live`.
    """
    began = told = time.monotonic()
    patience = Patience(params["wait_seconds"], began)
    while late := awaited(found, considered, live):
        now = time.monotonic()
        if not patience.see(steps(found), now):
            break
        if now - told >= TELL_SECONDS and params["progress_file"]:
            told = now
            with open(params["progress_file"], "a", encoding="utf-8") as stream:
                stream.write(f"{now - began:.0f} s: {progress(late, len(considered))}\n")
        time.sleep(min(POLL_SECONDS, params["wait_seconds"]))
        live = nodes.read(want.label)
        found = checks(want, live, nodes.states())
    return found


def differences(
    label: str,
    live: dict[str, Node],
    changes: dict[str, str | None],
    places: dict[str, dict[str, str | None]],
) -> dict[str, str]:
    """Return what changes for a person to read."""
    before = [f"{name} {label}={live[name].label or ''}\n" for name in changes]
    after = [f"{name} {label}={value or ''}\n" for name, value in changes.items()]
    for name, change in places.items():
        before += [f"{name} {key}={live[name].topology.get(key, '')}\n" for key in change]
        after += [f"{name} {key}={value or ''}\n" for key, value in change.items()]
    return {"before": "".join(before), "after": "".join(after)}


def main() -> None:
    """Read the parameters, run, and report."""
    needs = [("kubernetes >= 31", client.KUBERNETES_ERROR), ("PyYAML", source.YAML_ERROR)]
    run_module(lambda module: run(module.params, check_mode=module.check_mode), ARGUMENT_SPEC, needs)


if __name__ == "__main__":
    main()
