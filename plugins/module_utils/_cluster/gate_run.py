# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: label nodes and keep jobs off broken ones by the verdict: the entry point of kubernetes_gate."""

from __future__ import annotations

import os
import random
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

from ansible.module_utils.basic import AnsibleModule

from .._errors import RdmaError
from .._fabric.lock import read_lock
from .._fabric.shapes import Verdict
from .._validation import FILE, parsed
from . import gate
from .api_errors import NotFound, VersionConflict
from .client import THREADS, Cluster
from .model import Ref
from .nodes import Node

CONFLICT_SECONDS = 60.0
"""Seconds for which a node that others change meanwhile is read and written again."""


def read_verdict(path: str, digest: str) -> tuple[Verdict, float]:
    """Return the verdict and when it was made; no hosts and 0 where there is none of this plan.

    :raises RdmaError: the file is no verdict.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            data = parsed(stream.read(), FILE)
        if data.get("plan_digest") == digest and data.get("time"):
            return t.cast("Verdict", data), float(data["time"])
    except FileNotFoundError:
        pass
    except (OSError, ValueError, AttributeError, TypeError) as exc:
        text = f"The verdict {path!r} cannot be read: {exc}."
        raise RdmaError(text, "Run the playbook railops.rdma.audit. [gate_verdict_unreadable]") from exc
    return t.cast("Verdict", {"hosts": {}}), 0.0


def update_node(cluster: Cluster, name: str, live: Node, target: gate.GateTarget | None, now: float) -> None:
    """Bring a node to what was decided; who else changes it meanwhile is not overwritten.

    :param name: the node's.
    :param live: the node as it was read.
    :param now: seconds since 1970.
    :raises RdmaError: it changes faster than it can be read.
    """
    until, node = time.monotonic() + CONFLICT_SECONDS, Ref.to("v1", "Node", name)
    out = target is not None and target.memory.out
    while True:
        try:
            # The note is there as long as the taint is: by it alone the next run finds a node.
            for part in ("status", "") if out else ("", "status"):
                patch = gate.status_patch(live, target, now) if part else gate.gate_taint(live, target)
                if patch is not None:
                    content = "strategic-merge-patch" if part else "merge-patch"
                    live = gate.gated(cluster.patch(node, patch, content=content, part=part))
        except VersionConflict:
            if time.monotonic() > until:
                raise
            time.sleep(random.uniform(0, 0.3))
            found = cluster.get(node)
            if found is None:
                return
            live = gate.gated(found)
        except NotFound:
            return
        else:
            return


def policy_of(params: dict[str, t.Any], total: int) -> gate.GatePolicy:
    """Return what is asked for.

    :raises RdmaError: a number is out of its range.
    """
    least = {"failure_threshold": 1, "success_threshold": 1, "min_available": 0, "max_age": 1}
    for name, smallest in least.items():
        if params[name] < smallest:
            raise RdmaError(f"{name} is {params[name]}.", f"Set it to {smallest} or more. [gate_number]")
    try:
        most = gate.max_unavailable_of(params["max_unavailable"], total)
    except ValueError:
        text = f"max_unavailable is {params['max_unavailable']!r}."
        fix = "Set it to a number of nodes, or to a percentage such as 10%. [gate_max_unavailable]"
        raise RdmaError(text, fix) from None
    return gate.GatePolicy(max_unavailable=most, taint=params["taint"], **{name: params[name] for name in least})


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Read, decide, write."""
    params = module.params
    now = time.time()
    fabric = os.path.basename(os.path.normpath(params["plan_dir"]))
    targets: dict[str, gate.GateTarget] = {}
    lock = None if params["state"] == "absent" else read_lock(params["plan_dir"])
    planned = {name: row["zone"] for name, row in lock["nodes"].items() if not row["retired"]} if lock else {}
    with Cluster(params) as cluster:
        live = {node["metadata"]["name"]: gate.gated(node) for node in cluster.each("v1", "Node")}
        gated_by = {name: memory.fabric for name, one in live.items() if (memory := gate.GateMemory.of(one.note))}
        fleet = {name: one for name, one in live.items() if name in planned and gated_by.get(name, fabric) == fabric}
        policy = policy_of(params, len(fleet))
        if lock:
            verdict, when = read_verdict(params["verdict"], lock["digest"])
            targets = gate.decide(fabric, fleet, planned, gate.judgments(verdict, params["ignore"]), when, now, policy)
        # Who has left the fabric carries no word of it any longer.
        left = {name for name, owner in gated_by.items() if owner == fabric and name not in targets}
        wanted: dict[str, gate.GateTarget | None] = {**targets, **dict.fromkeys(left)}
        changes = {
            name: target
            for name, target in wanted.items()
            if gate.status_patch(live[name], target, now) is not None or gate.gate_taint(live[name], target) is not None
        }
        if not module.check_mode:
            with ThreadPoolExecutor(THREADS) as pool:
                list(pool.map(lambda row: update_node(cluster, row[0], live[row[0]], row[1], now), changes.items()))
    out = sorted(name for name, target in targets.items() if target.memory.out)
    broken = sorted(name for name, target in targets.items() if target.memory.broken)
    return {
        "changed": bool(changes),
        "nodes": {
            status: sorted(name for name, target in targets.items() if target.status == status)
            for status in (gate.TRUE, gate.FALSE, gate.UNKNOWN)
        },
        "out": out,
        "capped": [name for name in broken if name not in out] if params["taint"] else [],
        "missing": sorted(set(planned) - set(live)),
        "diff": {
            "before": "".join(f"{name}: {gate.described(live[name])}\n" for name in sorted(changes)),
            "after": "".join(
                f"{name}: {target or gate.described(Node())}\n" for name, target in sorted(changes.items())
            ),
        },
    }
