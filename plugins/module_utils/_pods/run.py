# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: looks into the pods of the test application and measures the latency between them.

What the answers mean is decided in checks, inside, latency and place. Nothing is made in the cluster.
"""

from __future__ import annotations

import contextlib
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .._check import Check
from .._cluster.model import Json
from .._cluster.nodes import lost_nodes
from .._cluster.pod_state import last_warning, newest, ready
from .._fabric.labels import labels as labels_of
from .._fabric.labels import selector
from .._probe.schedule import HostPair
from . import latency, ping, pod_checks
from .checks import PodNode, check, network_checks, skipped_check
from .commands import CommandCluster, CommandFailed, CommandResult
from .scheduling import DOWN, exclusion, fix_of, off_text
from .wait import selector as pods_of

THREADS = 8
# Seconds between a client's attempts, for its server's report, and that a command may outlive its time in the pod.
POLL_SECONDS, REPORT_SECONDS, MARGIN = 1.0, 5.0, 30
_START = "Start it with the role rail_objects, tasks_from test_application (docs/guides/test-application.md)."
_FORBIDDEN = (
    "this identity may not run commands in pods (create and get on pods/exec)",
    "Give this identity that permission (docs/concepts/verification.md), or set verify_pods to status to leave it out.",
)


@dataclass
class Pods:
    """The test application of a fabric in a cluster.

    :param nodes: the plan's nodes by name.
    """

    _cluster: CommandCluster
    _nodes: t.Mapping[str, PodNode]
    _params: t.Mapping[str, t.Any]
    _forbidden: bool = False

    def checks(self, *, check_mode: bool = False) -> list[Check]:
        """Return all checks."""
        where, wanted = self._params["namespace"], selector(labels_of(self._params["fabric"]))
        sets = self._cluster.listed("apps/v1", "DaemonSet", namespace=where, selector=wanted)
        if not sets:
            why = f"the test application does not run in the namespace {where}"
            return [skipped_check("pod_application", None, why, _START)]
        return [row for daemon_set in sets for row in self._application(daemon_set, check_mode=check_mode)]

    def _application(self, daemon_set: Json, *, check_mode: bool) -> list[Check]:
        meta = daemon_set["metadata"]
        pods = newest(self._cluster.listed("v1", "Pod", namespace=meta["namespace"], selector=pods_of(daemon_set)))
        live = self._cluster.nodes()
        found: list[Check] = []
        alive: dict[str, Json] = {}
        for name in self._nodes:
            pod = pods.get(name)
            spec = pod["spec"] if pod else daemon_set["spec"]["template"].get("spec") or {}
            why = exclusion(live.get(name), spec, daemon=pod is None) if live else ""
            if why == DOWN:
                found.append(_down(name))
            elif pod is not None and (ready(pod) or not why):
                events = [] if ready(pod) else self._cluster.events(pod)
                found += network_checks(self._nodes[name], pod, events)
                if ready(pod):
                    alive[name] = pod
            else:
                found.append(self._without_pod(daemon_set, name, why))
        if self._params["depth"] != "status":
            found += self._inside(alive)
        if self._params["depth"] in ("ping", "latency"):
            found += self._latency(alive, check_mode)
        return found

    def _without_pod(self, daemon_set: Json, name: str, why: str) -> Check:
        if why:
            return skipped_check("pod_running", name, off_text(name, why), fix_of(why))
        meta = daemon_set["metadata"]
        cause = f"the DaemonSet {meta['namespace']}/{meta['name']} has made none for this node"
        if warning := last_warning(self._cluster.events(daemon_set)).rstrip("."):
            cause += f": {warning}"
        fix = "Look at quotas, Pod Security and webhooks of its namespace, and apply the test application again."
        return check("pod_running", name, None, "a pod", "no pod", cause, fix)

    # Commands inside of the pods

    def _inside(self, alive: t.Mapping[str, Json]) -> list[Check]:
        with ThreadPoolExecutor(THREADS) as pool:
            return [row for rows in pool.map(lambda item: self._pod_checks(*item), alive.items()) for row in rows]

    def _pod_checks(self, name: str, pod: Json) -> list[Check]:
        node = self._nodes[name]
        outputs: dict[str, str] = {}
        missing: dict[tuple[str, str], None] = {}
        for key, argv in pod_checks.commands(node).items():
            try:
                outputs[key] = self._cluster.run(pod, argv).good()
            except CommandFailed as exc:
                if exc.forbidden:
                    self._forbidden = True
                    return [skipped_check("pod_exec", name, *_FORBIDDEN)]
                missing[pod_checks.CHECKS[key.rstrip("46")], f"{argv[0]} in the pod: {exc}"] = None
        fix = "Give the test application an image with iproute2, or set verify_pods to status."
        unseen = [skipped_check(check_id, name, cause, fix) for check_id, cause in missing]
        return pod_checks.inside_checks(node, pod, outputs) + unseen

    # Latency between them

    def _latency(self, alive: t.Mapping[str, Json], check_mode: bool) -> list[Check]:
        params = self._params
        chosen = latency.sample_nodes(alive, params["nodes"], params["seed"])
        cause = f"{len(chosen)} of {len(alive)} nodes were selected (verify_pod_nodes)"
        found = [skipped_check(self._measure, name, cause) for name in alive if name not in chosen]
        todo = latency.tests(self._nodes, chosen, params["schedule"], params["peers"], params["seed"])
        why = fix = ""
        if check_mode:
            why = "check mode starts no tests"
        elif not todo:
            why = "a test between pods needs pods on two nodes"
        elif self._forbidden:
            why, fix = _FORBIDDEN
        if why:
            return [*found, *(skipped_check(self._measure, name, why, fix) for name in chosen)]
        outcomes = []
        with ThreadPoolExecutor(params["parallel"]) as pool:
            for now in latency.rounds(todo, params["parallel"]):
                for came in pool.map(lambda pairs: [self._test(pair, alive) for pair in pairs], now):
                    outcomes += came
        if any(outcome.cause for outcome in outcomes):
            # A node that went down meanwhile is its own fault alone.
            down = lost_nodes(self._cluster.nodes().values()) & set(chosen)
            found += map(_down, sorted(down))
            outcomes = [latency.without_lost_nodes(outcome, down) for outcome in outcomes]
        return [*found, *latency.latency_checks(outcomes, self._measure)]

    @property
    def _measure(self) -> str:
        return ping.CHECK if self._params["depth"] == "ping" else latency.CHECK

    def _test(self, pair: HostPair, alive: t.Mapping[str, Json]) -> latency.LatencyOutcome:
        """Run a test between two pods: a ping, or both ends of a latency test."""
        own, source = latency.place_of(self._nodes[pair.client], pair.rail, alive[pair.client])
        other, address = latency.place_of(self._nodes[pair.server], pair.rail, alive[pair.server])
        network = next(row for row in self._nodes[pair.client].networks if row.rail == pair.rail)
        pings = self._measure == ping.CHECK
        if pings and not network.subnets:
            return latency.LatencyOutcome(pair, None, "pods have no address on this rail", skipped=True)
        if not own or not other:
            return latency.without_address(pair, "server" if own else "client")
        params, node = self._params, pair.client
        try:
            if pings:
                words = ping.command(network.mtu, own, source, address, params["timeout"])
                return ping.read(pair, self._cluster.run(alive[node], words, params["timeout"] + MARGIN))
            limits = params["iterations"], params["timeout"]
            # Whose pod a command cannot be run in: that is no fault of the other end.
            node = pair.server
            with contextlib.closing(self._cluster.start(alive[node], latency.command(pair, *limits, other))) as server:
                node = pair.client
                while True:
                    over = server.over()
                    words = latency.command(pair, *limits, own, address)
                    client = self._cluster.run(alive[node], words, params["timeout"] + MARGIN)
                    # Until it has found the server's end, or that has ended.
                    if over or not latency.server_missing(client):
                        break
                    time.sleep(POLL_SECONDS)
                node = pair.server
                reported = server.ended(REPORT_SECONDS) if client.code else CommandResult()
        except CommandFailed as exc:
            return latency.failed_command(pair, node, str(exc))
        return latency.read(pair, client, reported, params["max_latency_us"])


def _down(name: str) -> Check:
    cause = "the node is down: its kubelet is silent"
    return check("pod_running", name, None, "a pod", "none that is known", cause, fix_of(DOWN))
