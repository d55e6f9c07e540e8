# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The rollout state of parts of a cluster: Deployments, DaemonSets, Spiderpool's coordinator. Pure.

A rollout has no time of its own: on a thousand nodes, two at a time, it takes hours. What counts is that it moves
(`follow`). Nodes that are down are named and not waited for.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace

from .._cluster import pod_state
from .._cluster.model import Json, Ref, below
from .._cluster.nodes import listed
from .._errors import with_id
from .._fabric.labels import SPIDERPOOL
from .._fabric.labels import selector as selector_of
from .scheduling import DOWN, EXCLUDED, exclusion, fix_of

# The kinds that can be waited for, with their API.
KINDS: t.Mapping[str, str] = {
    "Deployment": "apps/v1",
    "DaemonSet": "apps/v1",
    "SpiderCoordinator": SPIDERPOOL,
}
SYNCED = "Synced"


@dataclass(frozen=True)
class RolloutState:
    """The rollout state of a part.

    `steps` are numbers that grow while it moves, each under a key of its own; `behind` are the pods that keep it;
    `down` the nodes that it is not waited for on; `own` what is wrong with the part itself; `final` says that waiting
    cannot help.
    """

    part: Ref
    done: bool
    text: str
    steps: t.Mapping[t.Hashable, int]
    behind: tuple[Json, ...] = ()
    down: tuple[str, ...] = ()
    own: pod_state.PodTrouble | None = None
    final: bool = False


def selector(obj: Json) -> str:
    """Return the label selector of a part's pods; nothing when it has none."""
    return selector_of(((obj.get("spec") or {}).get("selector") or {}).get("matchLabels") or {})


def rollout_state(part: Ref, obj: Json | None) -> RolloutState:
    """Return the rollout state of a part by its own numbers.

    :param obj: the part's object in the API, None when it does not exist.
    """
    if obj is None:
        return RolloutState(part, False, "does not exist", {})
    if part.kind == "SpiderCoordinator":
        return _coordinator(part, obj)
    meta, status = obj["metadata"], obj.get("status") or {}
    generation = int(meta.get("generation") or 0)
    # Before the controller has seen the change its numbers are those of the rollout before.
    if int(status.get("observedGeneration") or 0) < generation:
        return RolloutState(part, False, "is not taken up yet", {})
    if part.kind == "Deployment":
        want = int((obj.get("spec") or {}).get("replicas", 1))
        new, ready = int(status.get("updatedReplicas") or 0), int(status.get("availableReplicas") or 0)
        old = int(status.get("replicas") or 0) - new
    else:
        want = int(status.get("desiredNumberScheduled") or 0)
        new, ready = int(status.get("updatedNumberScheduled") or 0), int(status.get("numberReady") or 0)
        old = want - new
    text = f"has {min(ready, want):,} of {want:,} pods ready"
    text += f", {old:,} still old" if old > 0 else ""
    steps: dict[t.Hashable, int] = {(part, generation, name): n for name, n in (("new", new), ("ready", ready))}
    return RolloutState(part, new >= want and ready >= want and old <= 0, text, {**steps, (part, generation): 1})


def with_pods(found: RolloutState, obj: Json, pods: t.Sequence[Json], lost: frozenset[str]) -> RolloutState:
    """Refine the state by pods and by nodes that are down.

    :param found: how far the part is by its numbers.
    :param lost: the nodes that are down.
    """
    if found.done or not pods:
        return found
    started = sum(pod_state.started_containers(pod) for pod in pods)
    steps = {**found.steps, (found.part, obj["metadata"].get("generation"), "started"): started}
    down = {node for node in map(pod_state.wanted_node, pods) if node in lost}
    late = tuple(sorted((pod for pod in pods if not pod_state.is_ready(pod)), key=_worst))
    if found.part.kind == "Deployment" or not down:
        return replace(found, steps=steps, behind=late, own=_misplaced(late, lost))
    # The newest pod is of the present template, once the controller has made one.
    any_new = bool((obj.get("status") or {}).get("updatedNumberScheduled")) and bool(found.steps)
    living = [pod for pod in pods if pod_state.wanted_node(pod) not in lost]
    late = tuple(pod for pod in late if pod in living)
    label = "metadata.labels.controller-revision-hash"
    present = below(max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"])), label)
    old = [pod for pod in living if not any_new or below(pod, label) != present]
    want = int((obj.get("status") or {}).get("desiredNumberScheduled") or 0)
    done = any_new and not old and not late and len(living) + len(down) >= want
    text = found.text + _down_text(down)
    return replace(found, steps=steps, done=done, text=text, behind=late, down=tuple(sorted(down)))


def with_every_node(
    found: RolloutState, obj: Json, pods: t.Sequence[Json], nodes: t.Iterable[Json], names: t.Sequence[str]
) -> RolloutState:
    """Refine the state by named nodes: a node without a pod delays a DaemonSet that is ready by its own numbers.

    :param found: how far it is by these.
    :param obj: the DaemonSet.
    :param pods: its pods.
    :param nodes: all nodes.
    :param names: the nodes that must each have a pod.
    """
    part = found.part
    live = {node["metadata"]["name"]: node for node in nodes}
    spec = obj["spec"]["template"].get("spec") or {}
    off = {name: exclusion(live.get(name), spec, daemon=True) for name in names}
    # Nodes that the user's selector excludes do not count, unless it excludes all nodes.
    wanted = [name for name, why in off.items() if why != EXCLUDED] or list(off)
    down = {name for name in wanted if off[name] == DOWN}
    have = pod_state.newest(pods)
    ready = sum(pod_state.is_ready(have[name]) for name in wanted if name in have)
    text = f"has {ready:,} of {len(wanted):,} pods ready{_down_text(down)}"
    missing: dict[str, list[str]] = {}
    fix, final = "", found.done
    for name in wanted:
        pod = have.get(name)
        if pod is None and name not in down:
            final, fix = final and bool(off[name]), fix or fix_of(off[name])
            missing.setdefault(f"it {off[name]}" if off[name] else "no pod was made for it", []).append(name)
        elif pod is not None and (why := pod_state.unscheduled(pod)):
            final, fix = False, fix or pod_state.trouble(pod).fix
            missing.setdefault(why, []).append(name)
    found = replace(found, text=text, down=tuple(sorted(down)))
    if not missing:
        return found
    text = "; ".join(f"{listed(names)}: {why}" for why, names in missing.items())
    own = pod_state.PodTrouble(text, fix or f"Look at kubectl -n {part.namespace} describe daemonset {part.name}.")
    return replace(found, done=False, own=own, final=final)


def _misplaced(late: t.Sequence[Json], lost: frozenset[str]) -> pod_state.PodTrouble | None:
    """Say when a pod was placed on a node that is down: the chart's controller tolerates every taint, also that one."""
    pod = next((pod for pod in late if pod_state.wanted_node(pod) in lost), None)
    if pod is None:
        return None
    namespace, _slash, name = pod_state.name_of(pod).partition("/")
    node = pod_state.wanted_node(pod)
    fix = f"Bring {node} back, or delete the pod: kubectl -n {namespace} delete pod {name} --force."
    return pod_state.PodTrouble(f"pod {name} was placed on {node}, which is down", fix)


def _down_text(down: t.Collection[str]) -> str:
    return f"; {listed(down)} {'is' if len(down) == 1 else 'are'} down and not waited for" if down else ""


def _worst(pod: Json) -> tuple[int, str]:
    broken = any(row.get("lastState") or "waiting" in (row.get("state") or {}) for row in pod_state.containers(pod))
    return (0 if broken else 1, str(pod["metadata"]["name"]))


def _coordinator(part: Ref, obj: Json) -> RolloutState:
    """Read the phase: while it is not Synced, no pod with a rail can start."""
    status = obj.get("status") or {}
    phase, reason = str(status.get("phase") or ""), str(status.get("reason") or "").rstrip(".")
    if phase == SYNCED:
        return RolloutState(part, True, SYNCED, {})
    text = f"is {phase or 'without a phase'}"
    if not phase:
        own = pod_state.PodTrouble(
            "the controller has not read it: it cannot find which network the cluster has",
            "Look for Coordinator-Informer in the log: kubectl -n spiderpool logs deployment/spiderpool-controller.",
        )
    elif "kube-controller-manager" in reason or "clusterCIDR" in reason:
        fix = "Set spiderpool_pod_cidrs and spiderpool_service_cidrs to the cluster's networks of pods and services."
        own = pod_state.PodTrouble(f"{reason} (there is no kubeadm-config either, as on managed clusters)", fix)
    else:
        own = pod_state.PodTrouble(
            reason or "it gives no reason",
            "Set spiderpool_pod_cidr_type to where the pods' networks are found (calico, cilium, cluster), or to none.",
        )
    return RolloutState(part, False, text, {(part, "phase"): int(bool(phase))}, own=own)


def headline(states: t.Sequence[RolloutState]) -> str:
    """Return how far everything is, in one line."""
    return "; ".join(f"{each.part} {each.text}" for each in states if not each.done) or "everything is ready"


def sentence(each: RolloutState, seconds: float, cause: pod_state.PodTrouble | None) -> tuple[str, str]:
    """Return what is wrong with a part that did not get ready, and what to do.

    :param seconds: for which nothing has moved; 0 where that is not what ended the wait.
    :param cause: what keeps it, if that is known.
    """
    text = f"{each.part} {each.text}"
    text += f", and nothing has moved for {seconds:.0f} s" if seconds else ""
    fix = "Look at kubectl get events -A and at the log of the controllers of the cluster."
    if each.down:
        fix = "Bring these nodes back, remove them from the cluster, or raise "
        fix += "updateStrategy.rollingUpdate.maxUnavailable in spiderpool_values."
    if cause is not None:
        text, fix = f"{text}: {cause.text}", cause.fix
    return f"{text.rstrip('.')}.", with_id(fix, "part_not_ready")
