# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The planned labels and resources of a cluster's nodes. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._check import Check, compared, deviation
from .._fabric.facts import Facts
from .._fabric.labels import DECLARED, LEAF_LABEL, OBJECT_PREFIX, OUT_LABEL, ZONE_LABEL
from .._formatting import shortened
from .model import Json, below
from .pod_state import condition, is_ready, newest, trouble

RESOURCES, SRIOV_STATE = "node_resources", "node_sriov"
SYNCED = "Succeeded"
# What a node is emptied for. A note of each kind on the node says how it was before, so that a run that was cut off can
# be ended, and so that one kind does not end another's.
PURPOSES = ("sriov", "reboot", "upgrade")
CORDONED = "cordoned"
SCHEDULABLE = "schedulable"
CONDITION = "RailsReady"
"""The condition that the gate writes."""
PLUGIN = "spiderpool-rdma-shared-device-plugin"
"""The label `app` of the shared device plugin's pods."""
_MOST_NAMES = 5


@dataclass(frozen=True)
class NodesRequest:
    """The wanted state of nodes. `labels`: by node; `resources`: smallest amount by node and resource name."""

    nodes: tuple[str, ...] = ()
    label: str = ""
    """The label by which policies choose nodes; `labels` has those of zone and leaves beside it."""
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    resources: dict[str, dict[str, int]] = field(default_factory=dict)
    sriov: frozenset[str] = frozenset()
    tainted: frozenset[str] = frozenset()
    """The nodes with a rail out of service that no new pod shall come to."""
    known: frozenset[str] = frozenset()
    """Every node that the plan ever had: only their labels of zone and leaves are changed."""


@dataclass(frozen=True)
class Node:
    """The state of a node: our labels, its resources, whether it takes pods and is up, our note, and its condition."""

    labels: dict[str, str] = field(default_factory=dict)
    allocatable: Json = field(default_factory=dict)
    cordoned: bool = False
    note: str = ""
    up: bool = True
    taints: tuple[Json, ...] = ()
    version: str = ""
    condition: Json = field(default_factory=dict)

    @classmethod
    def of(cls, live: Json, label: str, note: str) -> Node:
        """Return what matters of a node object.

        :param label: the plan's label of nodes; empty for none.
        :param note: the annotation that has our note.
        """
        meta, spec, managed = live["metadata"], live.get("spec") or {}, (label, ZONE_LABEL, OUT_LABEL)
        rows = (meta.get("labels") or {}).items()
        return cls(
            {name: value for name, value in rows if name in managed or name.startswith(LEAF_LABEL)},
            (live.get("status") or {}).get("allocatable") or {},
            bool(spec.get("unschedulable")),
            (meta.get("annotations") or {}).get(note, ""),
            not lost_nodes([live]),
            tuple(spec.get("taints") or ()),
            meta.get("resourceVersion", ""),
            next((row for row in below(live, "status.conditions") or () if row["type"] == CONDITION), {}),
        )

    def taint_patch(self, managed: Json, *, wanted: bool) -> Json | None:
        """Return the merge patch that sets or removes the managed taint and keeps all other taints; None: no change.

        :param managed: our taint.
        """
        existing = [taint for taint in self.taints if taint.get("key") != managed["key"]]
        if [taint for taint in self.taints if taint not in existing] == ([managed] if wanted else []):
            return None
        # Taints are one list: a patch of a version that was not read would remove another client's taint.
        left = [*existing, managed] if wanted else existing
        return {"metadata": {"resourceVersion": self.version}, "spec": {"taints": left or None}}


def request_of(seats: t.Mapping[str, t.Any], facts: Facts) -> NodesRequest:
    """Return what a plan says of nodes.

    :param seats: the plan's nodes, retired ones too.
    :param facts: the plan's.
    """
    out = {row["node"]: row for row in facts.get("out_of_service", ())}
    excluded = {name for name, row in out.items() if row["all_rails"]}
    nodes = tuple(sorted(name for name, row in seats.items() if not row.get("retired") and name not in excluded))
    label = facts["node_label"]
    labels = {node: group["labels"] for group in facts["node_labels"] for node in group["nodes"]}
    profiles = {node: labels.get(node, {}).get(label, DECLARED) for node in nodes}
    resources = {node: row for node, profile in profiles.items() if (row := facts["resources"].get(profile))}
    for node in resources.keys() & out.keys():
        networks = facts["networks"].get(profiles[node]) or facts["networks"][DECLARED]
        offered = {row["resource"] for row in networks if row["rail"] not in out[node]["rails"]}
        resources[node] = {name: amount for name, amount in resources[node].items() if name in offered}
    sriov = frozenset(nodes if facts["own_device"] else ())
    tainted = frozenset(name for name, row in out.items() if row["taint"])
    return NodesRequest(nodes, label, labels, resources, sriov, tainted, frozenset(seats))


def resource(entry: Json) -> str:
    """Return the resource of an entry of the device plugin's configuration."""
    return f"{entry.get('resourcePrefix') or 'rdma'}/{entry.get('resourceName')}"


def label_changes(
    want: NodesRequest, nodes: dict[str, Node], *, absent: bool = False
) -> dict[str, dict[str, str | None]]:
    """Return the labels to set (or None: to take off) by node that is there; nodes with nothing to do are left out."""
    found = {}
    for name in sorted(nodes):
        wanted = {} if absent else want.labels.get(name, {})
        rows = nodes[name].labels.items()
        have = {label: value for label, value in rows if label == want.label or name in want.known}
        names = sorted({*have, *wanted})
        if changes := {label: wanted.get(label) for label in names if have.get(label) != wanted.get(label)}:
            found[name] = changes
    return found


def note_of(purpose: str) -> str:
    """Return the annotation of nodes that are emptied for one of PURPOSES."""
    return f"{OBJECT_PREFIX}/{purpose}-drain"


def drain_changes(chosen: dict[str, Node], drain: str, purpose: str = "sriov") -> dict[str, Json]:
    """Return the patch by node that begins or ends its emptying; cordon and note go together, so that none is lost."""
    patches: dict[str, Json] = {}
    note = note_of(purpose)
    for name, node in chosen.items():
        if drain == "begin" and not node.note:
            before = CORDONED if node.cordoned else SCHEDULABLE
            patches[name] = {"metadata": {"annotations": {note: before}}, "spec": {"unschedulable": True}}
        elif drain == "end" and node.note:
            patches[name] = {"metadata": {"annotations": {note: None}}}
            # A node that was cordoned before stays cordoned.
            if node.note == SCHEDULABLE:
                patches[name]["spec"] = {"unschedulable": None}
    return patches


def checks(want: NodesRequest, nodes: dict[str, Node], states: dict[str, Json]) -> list[Check]:
    """Compare nodes and SR-IOV node states with the plan.

    :param states: status of the SriovNetworkNodeState by node.
    """
    rows: list[Check] = []
    for node in want.nodes:
        if node not in nodes:
            fix = "Join the node to the cluster, or set fabric_node_name to the name that it has there."
            cause = "The cluster has no node of that name."
            rows.append(deviation("node_in_cluster", node, None, cause, fix, node=node))
            continue
        wanted = want.resources.get(node, {})
        have = {name: _amount(nodes[node].allocatable.get(name)) for name in wanted}
        short = sorted(name for name, amount in wanted.items() if have[name] < amount)
        state = states.get(node, {})
        if node in want.sriov:
            synced = state.get("syncStatus", "missing")
            cause = str(state.get("lastSyncError") or "The operator has not finished this node.")
            fix = f"See `kubectl -n <namespace> get sriovnetworknodestates {node} -o yaml` and the config daemon's log."
            rows.append(compared(SRIOV_STATE, SYNCED, synced, cause, fix, node=node))
        if wanted:
            cause = f"Too little of {', '.join(short)}: the interface is missing, down or without an RDMA device,"
            cause += " or the plugin's state is old."
            fix = "See the log of the device plugin's pod there, and whether the interface has the planned name."
            if not nodes[node].up:
                cause = f"The node is down, and offers too little of {', '.join(short)}."
                fix = "Bring it back (kubectl describe node shows since when its kubelet is silent), or retire it."
            rows.append(compared(RESOURCES, wanted, have, cause, fix, good=not short, node=node))
    return rows


def _amount(text: object) -> int:
    """Return an amount. Kubernetes writes 2000 as 2k."""
    digits = str(text)
    try:
        return int(digits[:-1]) * 1000 if digits.endswith("k") else int(digits)
    except ValueError:
        return 0


def by_rail(
    rows: t.Iterable[Check], rails: t.Mapping[str, t.Mapping[str, tuple[str, str]]], pods: t.Iterable[Json] | None
) -> list[Check]:
    """Return the checks with one for each rail whose resource is short, and the state of the device plugin's pod there.

    :param rows: what `checks` returned.
    :param rails: by node and resource, the rail's name (empty: several share it) and its interface there.
    :param pods: of the shared device plugin; None where they offer no rails, or were not read.
    """
    found: list[Check] = []
    there = newest(pods or ())
    for row in rows:
        if row["id"] != RESOURCES or row["status"] != "deviation":
            found.append(row)
            continue
        node = str(row["node"])
        for name, amount in row["planned"].items():
            if (have := row["observed"][name]) < amount:
                rail, interface = rails.get(node, {}).get(name, (None, ""))
                why = (
                    _plugin_cause(there.get(node), interface or name)
                    if pods is not None
                    else (row["cause"], row["fix"])
                )
                found.append(deviation(RESOURCES, {name: amount}, {name: have}, *why, rail=rail or None, node=node))
    return found


def _plugin_cause(pod: Json | None, interface: str) -> tuple[str, str]:
    """Return cause and fix by the device plugin's pod on a node."""
    pods = f"kubectl get pods -A -o wide -l app={PLUGIN}"
    if pod is None:
        return "no pod of the device plugin runs on this node", f"Look at the node's taints and at {pods}."
    if not is_ready(pod):
        cause = f"the device plugin's pod on this node does not work: {trouble(pod).text}"
        return cause, f"Read its log ({pods}): in RDMA namespace mode exclusive it ends at once, rdma_host sets shared."
    name = f"{pod['metadata'].get('namespace')} {pod['metadata']['name']}"
    return (
        f"the device plugin offers too little of {interface}: it found no RDMA device there when it started, or its "
        "configuration differs from the plan",
        f"See the host's checks rdma_device and rdma_device_files. Run the playbook railops.rdma.cluster, then kubectl "
        f"delete pod -n {name}.",
    )


def awaited(rows: list[Check], considered: t.Collection[str], nodes: dict[str, Node]) -> list[Check]:
    """Return the deviations that may go away by waiting: those of nodes that are there and up.

    :param considered: the nodes that matter.
    """
    return [
        row
        for row in rows
        if row["status"] == "deviation" and row["node"] in considered and row["node"] in nodes and nodes[row["node"]].up
    ]


def progress(late: list[Check], total: int) -> str:
    """Return how far the nodes are, in one line.

    :param late: what `awaited` returned.
    :param total: how many nodes matter.
    """
    names = {row["node"] for row in late}
    return f"{total - len(names):,} of {total:,} nodes are as planned; {listed(names)}: {late[0]['cause']}"


def listed(names: t.Iterable[str]) -> str:
    """Return some names for a person."""
    return shortened(sorted(names), _MOST_NAMES)


def lost_nodes(nodes: t.Iterable[Json]) -> frozenset[str]:
    """Return the names of nodes whose kubelet does not say that they are ready."""
    return frozenset(
        node["metadata"]["name"]
        for node in nodes
        if condition(node, "Ready", status="False") or condition(node, "Ready", status="Unknown")
    )
