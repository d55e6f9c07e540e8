# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides whether a node takes pods of a kind, as the scheduler and the DaemonSet controller do, and why not. Pure.

Without resources: the scheduler itself reports these, in the pod that waits.
"""

from __future__ import annotations

import typing as t

from .._cluster.model import Json
from .._cluster.nodes import lost_nodes
from .._cluster.pod_state import nodes_named
from .._fabric.labels import GATE_TAINT

GATE: Json = {"key": GATE_TAINT["key"], "operator": "Exists", "effect": GATE_TAINT["effect"]}
"""The toleration of our own tests on a node that our gate keeps jobs off: they show when it is healthy again."""
_CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
# What the DaemonSet controller adds to each of its pods.
_DAEMON: tuple[Json, ...] = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": "NoSchedule"}
    for name in ("unschedulable", "disk-pressure", "memory-pressure", "pid-pressure")
)
ABSENT, DOWN, CORDONED = "is not in the cluster", "is down", "is cordoned"
EXCLUDED = "is left out by the pods' node selector"
_FIXES = {
    ABSENT: "Join the node to the cluster, or set fabric_node_name to the name that it has there.",
    DOWN: "Look at kubectl describe node: it shows since when its kubelet is silent.",
    CORDONED: "Uncordon it when its work is done: kubectl uncordon.",
    EXCLUDED: "Apply the test application again, and see rail_objects_test_node_selector.",
}
_TAINT_FIX = "Let the test pods tolerate it (rail_objects_test_tolerations, accept_tolerations), or remove the taint."


def with_gate(tolerations: t.Sequence[Json]) -> list[Json]:
    """Return tolerations with that of our gate."""
    return [*tolerations, *([] if GATE in tolerations else [GATE])]


def by_name(names: t.Iterable[str]) -> Json:
    """Return the affinity of pods that may run on these nodes: by the node's own name, whatever its labels say."""
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in sorted(names)]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def exclusion(node: t.Mapping[str, t.Any] | None, spec: t.Mapping[str, t.Any], *, daemon: bool = False) -> str:
    """Return why a node takes no new pod, as what it is or has; nothing where it takes one.

    :param node: as the API has it; None: there is none of that name.
    :param spec: of the pod.
    :param daemon: its pods are those of a DaemonSet.
    """
    if node is None:
        return ABSENT
    if not _selected(node, spec):
        return EXCLUDED
    if lost_nodes([t.cast("Json", node)]):
        return DOWN
    own = node.get("spec") or {}
    tolerations = [*(spec.get("tolerations") or ()), *(_DAEMON if daemon else ())]
    if own.get("unschedulable") and not _tolerated(_CORDON, tolerations):
        return CORDONED
    for taint in own.get("taints") or ():
        if taint.get("effect") in ("NoSchedule", "NoExecute") and not _tolerated(taint, tolerations):
            shown = "=".join(str(taint[key]) for key in ("key", "value") if taint.get(key))
            if taint["key"] == _CORDON["key"]:
                return CORDONED
            return f"has the taint {shown}:{taint['effect']}, which is not tolerated"
    return ""


def off_text(name: str, why: str) -> str:
    """Return what `kept_off` returned of a node as a sentence."""
    return f"{name} takes no new pods: it {why}"


def fix_of(why: str) -> str:
    """Return what to do about what `kept_off` returned."""
    return _FIXES.get(why, _TAINT_FIX if why else "")


def _tolerated(taint: t.Mapping[str, t.Any], tolerations: t.Iterable[t.Mapping[str, t.Any]]) -> bool:
    for row in tolerations:
        every = row.get("operator") == "Exists"
        key = row.get("key") == taint["key"] or (every and not row.get("key"))
        effect = not row.get("effect") or row["effect"] == taint.get("effect")
        if key and effect and (every or str(row.get("value") or "") == str(taint.get("value") or "")):
            return True
    return False


def _selected(node: t.Mapping[str, t.Any], spec: t.Mapping[str, t.Any]) -> bool:
    """Return whether the pods' own choice has the node: by labels, or by its name as `by_name` writes it."""
    labels, name = node["metadata"].get("labels") or {}, node["metadata"]["name"]
    named = nodes_named(spec)
    return (spec.get("nodeSelector") or {}).items() <= labels.items() and (not named or name in named)
