# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Determines the progress of a pod, and why it makes none. Pure.

The cause is the pod's last state: what its containers say comes before what its events say, and of the events counts
the newest that nothing later has overtaken. Warnings that every pod of some clusters has are none.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .._validation import line, parsed, sanitize
from .model import Json

# A warning is over when one of these has followed. The pod's own condition shows whether a node takes it.
_PROGRESS = frozenset({"Pulling", "Pulled", "Created", "Started"})
_HARMLESS = frozenset(
    {"MissingClusterDNS", "DNSConfigForming", "CheckLimitsForResolvConf", "Preempting", "FailedScheduling"}
)
_STARTING = ("ContainerCreating", "PodInitializing", "")
_IMAGE = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull")
_IMAGE_FIX = "Check the node's access to the registry, and the image (spiderpool_registry, rail_objects_test_image)."


@dataclass(frozen=True)
class PodTrouble:
    """Why a pod is not ready.

    `container` is the one whose log may have more, `previous` is set where the log is that of its last start.
    """

    text: str
    fix: str
    container: str = ""
    previous: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", line(self.text) or "")


def name_of(pod: t.Mapping[str, t.Any]) -> str:
    """Return namespace/name."""
    return f"{pod['metadata'].get('namespace', '')}/{pod['metadata']['name']}"


def nodes_named(spec: t.Mapping[str, t.Any]) -> list[str]:
    """Return the nodes that a pod's affinity names, as `by_name` and the DaemonSet controller write it."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    rows = [row for term in required.get("nodeSelectorTerms") or () for row in term.get("matchFields") or ()]
    return [str(value) for row in rows for value in row.get("values") or ()]


def wanted_node(pod: t.Mapping[str, t.Any]) -> str:
    """Return the node of a pod: where it runs, else where alone it may."""
    spec = pod.get("spec") or {}
    if spec.get("nodeName"):
        return str(spec["nodeName"])
    named = nodes_named(spec)
    return named[0] if len(named) == 1 else ""


def newest(pods: t.Iterable[Json]) -> dict[str, Json]:
    """Return the pod of each node: not one that is going, and the newest where a new one comes in its place."""
    found: dict[str, Json] = {}
    for pod in sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp") or "")):
        if (name := wanted_node(pod)) and not pod["metadata"].get("deletionTimestamp"):
            found[name] = pod
    return found


def ready(pod: t.Mapping[str, t.Any]) -> bool:
    """Return whether commands can be run in a pod."""
    return bool((pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp"))


def finished(pod: t.Mapping[str, t.Any]) -> bool:
    """Return whether a pod has ended."""
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def exit_code(pod: t.Mapping[str, t.Any]) -> int | None:
    """Return the exit code of a pod's container, None while it has none."""
    for row in (pod.get("status") or {}).get("containerStatuses") or ():
        ended = (row.get("state") or {}).get("terminated") or {}
        if "exitCode" in ended:
            return int(ended["exitCode"])
    return None


def condition(body: t.Mapping[str, t.Any], *types: str, status: str = "True") -> Json:
    """Return the first condition of one of these types that has a status; empty when there is none."""
    rows = (body.get("status") or {}).get("conditions") or ()
    return next((row for row in rows if row.get("type") in types and row.get("status") == status), {})


def containers(pod: t.Mapping[str, t.Any]) -> list[Json]:
    """Return the states of a pod's containers, those that run before the others first."""
    status = pod.get("status") or {}
    return [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]


def is_ready(pod: t.Mapping[str, t.Any]) -> bool:
    """Return whether a pod is ready to serve, by its own condition."""
    return bool(condition(pod, "Ready")) and ready(pod)


def unscheduled(pod: t.Mapping[str, t.Any]) -> str:
    """Return why the scheduler has found no node for a pod; nothing where it has, or is pending."""
    row = condition(pod, "PodScheduled", status="False")
    return (line(row.get("message") or row.get("reason")) or "no reason given").rstrip(".") if row else ""


def job_failure(job: t.Mapping[str, t.Any]) -> str:
    """Return reason and message of a Job that Kubernetes has given up; nothing while it has not."""
    row = condition(job, "Failed", "FailureTarget")
    return _reason(row) or "Failed" if row else ""


def _reason(row: t.Mapping[str, t.Any]) -> str:
    return ": ".join(reported.rstrip(".") for key in ("reason", "message") if (reported := line(row.get(key))))


def started_containers(pod: t.Mapping[str, t.Any]) -> int:
    """Return how many containers of a pod have been started, and its being scheduled as one more: it only grows."""
    count = sum(
        1 for row in containers(pod) if {"running", "terminated"} & set(row.get("state") or {}) or row.get("lastState")
    )
    return count + bool((pod.get("spec") or {}).get("nodeName"))


def event_time(event: t.Mapping[str, t.Any]) -> str:
    """Return when an event was seen last, as text that sorts."""
    found = (event.get("series") or {}).get("lastObservedTime") or event.get("lastTimestamp") or event.get("eventTime")
    # Some of them have microseconds, which would sort before the Z of a whole second.
    return str(found or (event.get("metadata") or {}).get("creationTimestamp") or "").partition(".")[0].rstrip("Z")


def last_warning(events: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """Return the newest warning that nothing has overtaken: reason and message; nothing when there is none.

    :param events: of one object, in any order.
    """
    for event in sorted(events, key=event_time, reverse=True):
        reason = str(event.get("reason") or "")
        if reason in _PROGRESS:
            break
        if event.get("type") == "Warning" and reason not in _HARMLESS:
            return (line(f"{reason}: {event.get('message') or ''}") or "").strip(": ")
    return ""


def trouble(pod: t.Mapping[str, t.Any], events: t.Sequence[t.Mapping[str, t.Any]] = ()) -> PodTrouble:
    """Return why a pod is not ready, and what to do."""
    status = pod.get("status") or {}
    namespace, _slash, name = name_of(pod).partition("/")
    inspect = f"Look at kubectl -n {namespace} describe pod {name}."
    warning = last_warning(events).rstrip(".")
    if pod["metadata"].get("deletionTimestamp"):
        return PodTrouble(f"the pod is being deleted since {pod['metadata']['deletionTimestamp']}", inspect)
    if why := unscheduled(pod):
        return _unscheduled(why)
    if (found := _container_trouble(pod, inspect, f"kubectl -n {namespace} logs {name}", warning)) is not None:
        return found
    if warning:
        fix = f"{inspect} See also docs/guides/test-application.md, Failures."
        return PodTrouble(f"the pod does not start: {warning}", fix)
    phase = str(status.get("phase") or "Unknown")
    if why := _reason(status):
        return PodTrouble(f"the pod is {phase}: {why}", inspect)
    if phase == "Pending" and events:
        newest = max(events, key=event_time)
        return PodTrouble(f"the pod is being started ({str(newest.get('message') or '').strip().rstrip('.')})", inspect)
    return PodTrouble(f"the pod is {phase}", inspect)


def _unscheduled(why: str) -> PodTrouble:
    fix = "Look at the node's taints and at kubectl get nodes (cordoned, not ready)."
    if "free ports" in why:
        fix = "A pod of the same kind holds the port on every node that may take it: delete that pod, or add a node."
    elif "Insufficient" in why:
        fix = (
            "The node offers too little of that resource, or pods hold all of it: compare the check "
            "node_resources, fabric_hca_max and fabric_vfs."
        )
    return PodTrouble(f"no node takes the pod: {why}", fix)


def _container_trouble(pod: t.Mapping[str, t.Any], inspect: str, logs: str, warning: str) -> PodTrouble | None:
    """Return what the first container says that does not get on; None while all of them are only being started."""
    first = (pod.get("status") or {}).get("initContainerStatuses") or ()
    for row in containers(pod):
        name, state = str(row.get("name")), row.get("state") or {}
        what = f"init container {name}" if row in first else f"container {name}"
        ended = state.get("terminated") or (row.get("lastState") or {}).get("terminated") or {}
        waiting = state.get("waiting") or {}
        reason, message = str(waiting.get("reason") or ""), str(waiting.get("message") or "").rstrip(".")
        if reason not in (*_STARTING, "CrashLoopBackOff"):
            fix = _IMAGE_FIX if reason in _IMAGE else inspect
            return PodTrouble(f"{what} does not start: {reason}{': ' + message if message else ''}", fix)
        if ended and ended.get("exitCode") and not row.get("ready"):
            code, count = int(ended["exitCode"]), int(row.get("restartCount") or 0)
            why = str(ended.get("reason") or "")
            text = f"{what} ended with exit code {code}"
            text += f" ({why})" if why not in ("", "Error") else ""
            text += f", {count} restart{'s' if count > 1 else ''}" if count else ""
            text += f": {str(ended['message']).strip()}" if ended.get("message") else ""
            fix = f"Read its complete log: {logs} -c {name}{'' if state.get('terminated') else ' --previous'}."
            if why == "OOMKilled":
                fix = "It needs more memory than its limit: raise the limit in spiderpool_values."
            return PodTrouble(text, fix, name, not state.get("terminated"))
        if reason == "CrashLoopBackOff":
            text = f"{what} ends again and again (CrashLoopBackOff{': ' + message if message else ''})"
            return PodTrouble(text, f"Read its log: {logs} -c {name} --previous.", name, True)
        if "running" in state and (row in first or not row.get("ready")):
            text = f"{what} runs and is not ready" if row not in first else f"{what} is still running"
            text += f": {warning}" if warning.startswith("Unhealthy") else ""
            return PodTrouble(text, f"Read its log: {logs} -c {name}.", name)
    return None


def last_lines(log: str, most: int = 3, width: int = 300) -> str:
    """Return the end of a log in one line: what a person reads first; of structured lines level and message."""
    lines = [line(_plain(row)) or "" for row in log.splitlines() if row.strip()]
    return " / ".join(row if len(row) <= width else f"{row[:width]}..." for row in lines[-most:])


def _plain(text: str) -> str:
    try:
        row = sanitize(parsed(text))
        return f"{row['level']} {row['msg']}".strip()
    except (ValueError, KeyError, TypeError):
        return text
