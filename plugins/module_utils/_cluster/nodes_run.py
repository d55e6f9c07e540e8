# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Label the nodes of a fabric, and compare what they offer with the plan: the door of cluster_nodes."""

from __future__ import annotations

import json
import os
import time
import typing as t
from dataclasses import replace

from .._errors import InputError, RdmaError
from .._fabric.labels import SRIOV
from .._fabric.lock import AGAIN, read_host_plans, read_lock
from . import access, source
from .access import ACCESS, Access
from .client import Cluster
from .machines import HOSTS, Machine, joined
from .model import Ref
from .nodes import (
    PURPOSES,
    Node,
    NodesRequest,
    awaited,
    checks,
    drain_changes,
    label_changes,
    offered_by_all,
    progress,
    request_of,
    steps,
    topology_changes,
)
from .progress import Patience, reporter

if t.TYPE_CHECKING:
    from ansible.module_utils.basic import AnsibleModule

    from .._check import CheckData

SPEC: dict[str, t.Any] = {
    "plan_dir": {"type": "path"},
    "namespace": {"type": "str", "default": "spiderpool"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "nodes": {"type": "list", "elements": "str", "default": []},
    "label": {"type": "bool", "default": True},
    "drain": {"type": "str", "choices": ["begin", "end"]},
    "purpose": {"type": "str", "choices": list(PURPOSES), "default": "sriov"},
    "hosts": HOSTS,
    "wait_seconds": {"type": "int", "default": 0},
    "progress_file": {"type": "path"},
    **ACCESS,
}
NEEDS = [*access.NEEDS, ("PyYAML", source.YAML_ERROR)]
UNCHANGED: dict[str, t.Any] = {
    "changed": False,
    "labelled": {},
    "topology": {},
    "unlabelled": [],
    "unfinished": [],
    "checks": [],
}
POLL_SECONDS = 5.0
REPORT_SECONDS = 10.0


def read_request(folder: str) -> NodesRequest:
    """Return what the plan says about nodes.

    :raises RdmaError: when there is no whole plan.
    """
    seats = read_lock(folder)["nodes"]
    cluster = os.path.join(folder, "cluster")
    source.check_plan(cluster)
    nodes = {name for name, row in seats.items() if not row.get("retired")}
    interfaces = {row["node"]: {rail["interface"] for rail in row["rails"]} for row in read_host_plans(folder)}
    groups = (read_labels(folder, "workload") or {"groups": []})["groups"]
    topology: dict[str, dict[str, str]] = {node: group["labels"] for group in groups for node in group["nodes"]}
    values = source.planned_values(cluster)
    policies = list(source.documents(os.path.join(cluster, "sriovpolicies.yaml")))
    want = request_of(nodes, interfaces, values, policies, read_labels(folder, "cluster"))
    return replace(want, topology=topology, known=frozenset(seats))


def read_labels(folder: str, part: str) -> dict[str, t.Any] | None:
    """Return the labels that a part of the plan has for nodes; None where it has none.

    :raises RdmaError: they cannot be read.
    """
    try:
        with open(os.path.join(folder, part, "nodelabels.json"), encoding="utf-8") as stream:
            return t.cast("dict[str, t.Any]", json.load(stream))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as exc:
        raise RdmaError(f"The plan in {folder!r} cannot be read: {exc}.", AGAIN) from exc


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

    def some(self, names: t.Iterable[str]) -> dict[str, dict[str, t.Any]]:
        """Return these nodes; those that the cluster does not have are left out."""
        found = {name: self._cluster.get(self._resource, Ref("", "Node", "", name)) for name in names}
        return {name: node for name, node in found.items() if node}

    def machines(self) -> dict[str, Machine]:
        """Return what tells each node's machine from others."""
        pages = self._cluster.pages(self._resource)
        return {node["metadata"]["name"]: Machine.of(node) for page in pages for node in page}

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


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Label, wait and compare; or begin or end the emptying of nodes."""
    params, check_mode = module.params, module.check_mode
    if params["drain"]:
        return run_drain(params, check_mode=check_mode)
    if not params["plan_dir"]:
        if not params["hosts"]:
            raise RdmaError("plan_dir is missing.", "Give the plan's folder, drain with nodes, or hosts.")
        with Cluster(Access.of(params)) as cluster:
            return {**UNCHANGED, "joined": joined(params["hosts"], Nodes(cluster, params["namespace"]).machines())}
    want = read_request(params["plan_dir"])
    absent = params["state"] == "absent"
    with Cluster(Access.of(params)) as cluster:
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
    return {
        "changed": bool(changes or places),
        "labelled": changes,
        "topology": places,
        "unlabelled": sorted(name for name, value in whole.items() if value is not None and name not in changes),
        "unfinished": sorted(name for name, node in live.items() if node.note),
        "checks": found,
        "offered_by_all": [] if absent else offered_by_all(want, live),
        "diff": differences(want.label, live, changes, places),
    }


def run_drain(params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Cordon nodes with a note, or make those with the note as they were. Only these are read of the cluster."""
    with Cluster(Access.of(params)) as cluster:
        nodes = Nodes(cluster, params["namespace"])
        found = nodes.some(sorted(set(params["nodes"])))
        if params["hosts"]:
            try:
                there = joined(params["hosts"], {name: Machine.of(node) for name, node in found.items()})
            except InputError:
                # All nodes are asked where it is wrong, for the name that would be right.
                there = joined(params["hosts"], nodes.machines())
            found = {name: node for name, node in found.items() if name in there}
        live = {name: Node.of(node, "", params["purpose"]) for name, node in found.items()}
        changes = drain_changes(live, params["drain"], params["purpose"])
        if not check_mode:
            for name, patch in changes.items():
                nodes.patch(name, patch)
    noted = {name for name, node in live.items() if node.note}
    cordons = {name: bool(patch["spec"]["unschedulable"]) for name, patch in changes.items() if "spec" in patch}
    return {
        **UNCHANGED,
        "changed": bool(changes),
        "unfinished": sorted(noted | set(changes) if params["drain"] == "begin" else noted - set(changes)),
        "diff": {
            "before": "".join(f"{name} cordoned={live[name].cordoned}\n" for name in cordons),
            "after": "".join(f"{name} cordoned={value}\n" for name, value in cordons.items()),
        },
    }


def waited(
    want: NodesRequest,
    nodes: Nodes,
    considered: set[str],
    params: dict[str, t.Any],
    found: list[CheckData],
    live: dict[str, Node],
) -> list[CheckData]:
    """Return the checks when all that waiting can bring is there, or nothing moves any more.

    :param considered: the nodes that matter.
    :param found: what they are now, over `live`.
    """
    began = reported = time.monotonic()
    report = reporter(params["progress_file"])
    patience = Patience(params["wait_seconds"], began)
    while late := awaited(found, considered, live):
        now = time.monotonic()
        if not patience.see(steps(found), now):
            break
        if now - reported >= REPORT_SECONDS:
            reported = now
            report(f"{now - began:.0f} s: {progress(late, len(considered))}")
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
    """Return what changes for a person to read.

    :param label: the fabric's label of nodes.
    :param changes: its new value by node, None where it goes.
    :param places: labels of zone and leaves by node, likewise.
    """
    before = [f"{name} {label}={live[name].label or ''}\n" for name in changes]
    after = [f"{name} {label}={value or ''}\n" for name, value in changes.items()]
    for name, change in places.items():
        before += [f"{name} {key}={live[name].topology.get(key, '')}\n" for key in change]
        after += [f"{name} {key}={value or ''}\n" for key, value in change.items()]
    return {"before": "".join(before), "after": "".join(after)}
