# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Wait until all pods of a lab's cluster run, and run since the last start of their node.

What the API says of a pod right after its node's reboot is from before it.
"""

from __future__ import annotations

import json
import typing as t
from datetime import datetime

import cluster
from hosts import on
from shell import LabError, run, wait_for

if t.TYPE_CHECKING:
    from topology import Lab

Pod = dict[str, t.Any]


def waiting(pods: list[Pod], booted: t.Mapping[str, float]) -> dict[str, str]:
    """Return the pods that do not run, with what they wait for.

    :param booted: when each node was started, in seconds of the epoch.
    """
    found = {}
    for pod in pods:
        status, name = pod["status"], f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
        if status.get("phase") == "Succeeded":
            continue
        states = {row["type"]: row["status"] for row in status.get("conditions", ())}
        rows = [row.get("state", {}) for row in status.get("containerStatuses", ())]
        reasons = [row["waiting"].get("reason", "") for row in rows if "waiting" in row]
        starts = [row["running"]["startedAt"] for row in rows if "running" in row]
        since = booted.get(pod["spec"].get("nodeName", ""), 0.0)
        if states.get("Ready") != "True":
            found[name] = ", ".join(filter(None, reasons)) or status.get("phase", "unknown")
        elif any(datetime.fromisoformat(start).timestamp() < since for start in starts):
            found[name] = "not checked since its node started"
    return found


def wait_for_pods(lab: Lab, *, seconds: float) -> None:
    """Wait until every pod runs; a pod that does not is named with its reason."""
    message: dict[str, str] = {}

    def running() -> bool:
        booted = {
            host.name: float(on(lab, host, ["awk", "/btime/ {print $2}", "/proc/stat"]).stdout) for host in lab.hosts
        }
        pods = json.loads(run(cluster.kubectl(lab, "get", "pods", "--all-namespaces", "-o", "json")).stdout)["items"]
        message.clear()
        message.update(waiting(pods, booted))
        return not message

    try:
        wait_for("Every pod", running, seconds=seconds, step=3, fix="")
    except LabError as exc:
        names = "; ".join(f"{name}: {why}" for name, why in list(message.items())[:8])
        fix = f"lab.py exec {lab.name} -- kubectl describe pod NAME"
        raise LabError(f"{exc.problem} {names or 'None was seen.'}", fix) from exc
