# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: label nodes, and compare what they offer with the plan: the entry point of cluster_nodes."""

from __future__ import annotations

import contextlib
import time
import typing as t
from collections import Counter

from ansible.module_utils.basic import AnsibleModule

from .._check import DEVIATION, OK, Check
from .._fabric.facts import networks_of, read_facts
from .._fabric.labels import CIDR_POOL, NV_IPAM, OUT_TAINT, SRIOV, selector
from .._fabric.labels import labels as labels_of
from .._fabric.lock import read_host_plans, read_lock
from .._fabric.shapes import planned_rails
from . import nodes
from .api_errors import Forbidden
from .checks import prefix_checks
from .client import Cluster
from .model import Ref
from .node_identity import joined
from .nodes import PLUGIN, RESOURCES, Node, NodesRequest, by_rail
from .progress import WaitState, follow, reporter

UNCHANGED: dict[str, t.Any] = {
    "changed": False,
    "unlabeled": [],
    "unfinished": [],
    "checks": [],
    "prefixes": [],
}
NODE = ("v1", "Node")
# nv-ipam's controller gives prefixes in an instant where it runs.
PREFIX_SECONDS = 60.0


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Begin or end the emptying of nodes; or label, wait and compare; or say which hosts are nodes."""
    params = module.params
    want = None
    if params["plan_dir"] and not params["drain"]:
        want = nodes.request_of(read_lock(params["plan_dir"])["nodes"], read_facts(params["plan_dir"]))
    with Cluster(params) as cluster:
        if params["drain"]:
            done = drained(cluster, params, check_mode=module.check_mode)
        elif want:
            done = compared(cluster, params, want, check_mode=module.check_mode)
        else:
            there = list(cluster.each(*NODE))
            noted = (Node.of(node, "", nodes.note_of(params["purpose"])) for node in there)
            unfinished = sorted(node["metadata"]["name"] for node, one in zip(there, noted) if one.note)
            done = {"joined": joined(params["hosts"], there), "unfinished": unfinished}
    return {**UNCHANGED, **done}


def drained(cluster: Cluster, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Cordon nodes with a note, or make those with the note as they were."""
    queried = {name: cluster.one(*NODE, name) for name in sorted(set(params["nodes"]))}
    found = {name: node for name, node in queried.items() if node}
    if params["hosts"]:
        # All nodes: a problem names the one that would be right.
        there = joined(params["hosts"], cluster.each(*NODE))
        found = {name: node for name, node in found.items() if name in there}
    live = {name: Node.of(node, "", nodes.note_of(params["purpose"])) for name, node in found.items()}
    changes = nodes.drain_changes(live, params["drain"], params["purpose"])
    if not check_mode:
        for name, patch in changes.items():
            cluster.patch(Ref.to(*NODE, name), patch)
    noted = {name for name, node in live.items() if node.note}
    cordons = {name: bool(patch["spec"]["unschedulable"]) for name, patch in changes.items() if "spec" in patch}
    return {
        "changed": bool(changes),
        "unfinished": sorted(noted | set(changes) if params["drain"] == "begin" else noted - set(changes)),
        "diff": {
            "before": "".join(f"{name} cordoned={live[name].cordoned}\n" for name in cordons),
            "after": "".join(f"{name} cordoned={value}\n" for name, value in cordons.items()),
        },
    }


def compared(cluster: Cluster, params: dict[str, t.Any], want: NodesRequest, *, check_mode: bool) -> dict[str, t.Any]:
    """Label nodes, and compare them with the plan, when that is asked for after waiting."""
    absent = params["state"] == "absent"
    live = read(cluster, want)
    pending = nodes.label_changes(want, live, absent=absent)
    # With the label a node gains or loses functions. One that is down and has no rails in service cannot be emptied.
    emptied = {name for name, row in pending.items() if want.label in row and (live[name].up or name in want.nodes)}
    considered = set(params["nodes"] or live)
    changes = {name: change for name, change in pending.items() if params["label"] and name in considered}
    known = considered & want.known if params["label"] else ()
    wanted: t.Collection[str] = () if absent else want.tainted
    taints = {
        name: patch
        for name in sorted(known)
        if (node := live.get(name)) and (patch := node.taint_patch(OUT_TAINT, wanted=name in wanted))
    }
    if not check_mode:
        # First, as labels make another version of the node.
        for name, patch in taints.items():
            cluster.patch(Ref.to(*NODE, name), patch)
        for name, change in changes.items():
            cluster.patch(Ref.to(*NODE, name), {"metadata": {"labels": change}})
    rows = [
        (f"{name} {label}", live[name].labels.get(label, ""), value or "")
        for name, change in changes.items()
        for label, value in change.items()
    ]
    rows += [(f"{name} taint {OUT_TAINT['key']}", str(name not in wanted), str(name in wanted)) for name in taints]
    result = {
        "changed": bool(changes or taints),
        "unlabeled": sorted(emptied - changes.keys()),
        "unfinished": sorted(name for name, node in live.items() if node.note and name in want.known),
        "diff": {
            "before": "".join(f"{what}={before}\n" for what, before, _after in rows),
            "after": "".join(f"{what}={after}\n" for what, _before, after in rows),
        },
    }
    if absent:
        return result
    wait = 0 if check_mode else params["wait_seconds"]
    return {
        **result,
        "checks": explained(cluster, params, want, waited(cluster, params, want, live, wait)),
        "prefixes": prefixes(cluster, params["plan_dir"], wait),
    }


def read(cluster: Cluster, want: NodesRequest) -> dict[str, Node]:
    """Return what matters of each node."""
    return {node["metadata"]["name"]: Node.of(node, want.label, nodes.note_of("sriov")) for node in cluster.each(*NODE)}


def waited(
    cluster: Cluster, params: dict[str, t.Any], want: NodesRequest, live: dict[str, Node], seconds: int
) -> list[Check]:
    """Return the checks when all that waiting can bring is there, or nothing moves any more.

    :param live: the nodes as they are.
    :param seconds: for how long nothing may move; 0: they are compared as they are.
    """
    considered = params["nodes"] or want.nodes
    found: list[Check] = []

    def read_state() -> WaitState:
        nonlocal live
        live = read(cluster, want) if found else live
        states = {
            row["metadata"]["name"]: row.get("status") or {}
            for row in cluster.each(SRIOV, "SriovNetworkNodeState", namespace=params["namespace"])
        }
        found[:] = nodes.checks(want, live, states)
        late = nodes.awaited(found, considered, live)
        steps: dict[t.Hashable, int] = {(row["id"], row["node"]): int(row["status"] == OK) for row in found}
        return WaitState(not late, steps, lambda: nodes.progress(late, len(considered)))

    follow(read_state, seconds, reporter(params["progress_file"]))
    return found


def explained(cluster: Cluster, params: dict[str, t.Any], want: NodesRequest, found: list[Check]) -> list[Check]:
    """Return the checks, those of nodes that offer too little by rail and with the cause that the cluster knows.

    :param found: what `checks` returned.
    """
    short = {row["node"] for row in found if row["id"] == RESOURCES and row["status"] == DEVIATION}
    if not short:
        return found
    facts = read_facts(params["plan_dir"])
    rails = {}
    for piece in read_host_plans(params["plan_dir"]):
        if piece["node"] in short:
            names = {rail["name"]: rail["interface"] for rail in planned_rails(piece)}
            rows = networks_of(facts["networks"], [*names.values()])
            # A resource that several rails share is short on the node, not on one of them.
            shared = Counter(row["resource"] for row in rows)
            rails[piece["node"]] = {
                row["resource"]: (row["rail"] if shared[row["resource"]] == 1 else "", names[row["rail"]])
                for row in rows
            }
    pods = None
    if not facts["own_device"]:
        # They only show causes: labels need no right to read them.
        with contextlib.suppress(Forbidden):
            pods = cluster.listed("v1", "Pod", namespace=params["namespace"], selector=f"app={PLUGIN}")
    return by_rail(found, rails, pods)


def prefixes(cluster: Cluster, folder: str, seconds: float) -> list[Check]:
    """Return whether nv-ipam gave each node what the plan's pools say; nothing where a plan has no such pools.

    :param folder: the plan's.
    :param seconds: for how long it may take.
    """
    facts = read_facts(folder)
    managed, until = selector(labels_of(facts["fabric"])), time.monotonic() + min(seconds, PREFIX_SECONDS)
    while CIDR_POOL in facts["kinds"]:
        found = prefix_checks(cluster.each(NV_IPAM, CIDR_POOL, namespace=facts["namespace"], selector=managed))
        if all(row["status"] == OK for row in found) or time.monotonic() >= until:
            return found
        time.sleep(min(2.0, seconds))
    return []
