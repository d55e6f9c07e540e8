# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Looks into the pods of the test application and runs the Jobs of the latency test.

What the answers mean is decided in checks, inside, jobs and place. All that was made here is deleted here.
"""

from __future__ import annotations

import contextlib
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .._cluster.answers import Gone
from .._cluster.pod_state import job_failure, last_warning, newest, ready, trouble
from .._errors import RdmaError
from .._fabric.labels import labels as labels_of
from .._fabric.labels import selector
from . import checks as looks
from . import inside, jobs
from .client import CommandFailed
from .place import DOWN, fix_of, kept_off, off_text

if t.TYPE_CHECKING:
    from .._check import CheckData
    from .client import PodCluster

    Json = dict[str, t.Any]

THREADS = 8
POLL_SECONDS = 1.0
_START = "Start it with the role rail_objects, tasks_from test_application (docs/test-application.md)."
_PERMISSION = "Give this identity that permission (docs/verify.md), or set verify_pods to {less} to leave it out."


@dataclass(frozen=True)
class ProbeOptions:
    """The options of a run."""

    fabric: str
    namespace: str = "default"
    depth: str = "latency"
    image: str = ""
    schedule: str = "ring"
    peers: int = 3
    seed: int = 0
    nodes: int = 8
    parallel: int = 8
    limits: jobs.Limits = field(default_factory=jobs.Limits)


class Pods:
    """The test application of a fabric in a cluster.

    :param nodes: the plan's nodes by name.
    """

    def __init__(
        self, cluster: PodCluster, nodes: t.Mapping[str, looks.PodNode], options: ProbeOptions, run: str
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._options = options
        self._run = run

    def checks(self, *, check_mode: bool = False) -> list[CheckData]:
        """Return all checks."""
        where, wanted = self._options.namespace, selector(labels_of(self._options.fabric))
        sets = self._cluster.listed("apps/v1", "DaemonSet", namespace=where, selector=wanted)
        if not sets:
            why = f"the test application does not run in the namespace {where}"
            return [looks.left_out("pod_application", None, why, _START)]
        return [row for daemon_set in sets for row in self._application(daemon_set, check_mode=check_mode)]

    def _application(self, daemon_set: Json, *, check_mode: bool) -> list[CheckData]:
        meta = daemon_set["metadata"]
        labels = (daemon_set["spec"].get("selector") or {}).get("matchLabels") or {}
        pods = newest(self._cluster.listed("v1", "Pod", namespace=meta["namespace"], selector=selector(labels)))
        live = self._cluster.nodes()
        found: list[CheckData] = []
        alive: dict[str, Json] = {}
        for name in self._nodes:
            pod = pods.get(name)
            spec = pod["spec"] if pod else daemon_set["spec"]["template"].get("spec") or {}
            why = kept_off(live.get(name), spec, daemon=pod is None) if live else ""
            if why == DOWN:
                cause = "the node is down: its kubelet is silent"
                found.append(looks.check("pod_running", name, None, "a pod", "none that is known", cause, fix_of(why)))
            elif pod is not None and (ready(pod) or not why):
                events = [] if ready(pod) else self._cluster.events(pod)
                found += looks.network_checks(self._nodes[name], pod, events)
                if ready(pod):
                    alive[name] = pod
            else:
                found.append(self._without_pod(daemon_set, name, why))
        if self._options.depth != "status":
            found += self._inside(alive)
        if self._options.depth == "latency":
            found += self._latency(
                jobs.model_of(daemon_set, self._options.fabric, self._options.image), alive, live, check_mode
            )
        return found

    def _without_pod(self, daemon_set: Json, name: str, why: str) -> CheckData:
        if why:
            return looks.left_out("pod_running", name, off_text(name, why), fix_of(why))
        meta = daemon_set["metadata"]
        cause = f"the DaemonSet {meta['namespace']}/{meta['name']} has made none for this node"
        if warning := last_warning(self._cluster.events(daemon_set)).rstrip("."):
            cause += f": {warning}"
        fix = "Look at quotas, Pod Security and webhooks of its namespace, and apply the test application again."
        return looks.check("pod_running", name, None, "a pod", "no pod", cause, fix)

    # Commands inside of the pods

    def _inside(self, alive: t.Mapping[str, Json]) -> list[CheckData]:
        with ThreadPoolExecutor(THREADS) as pool:
            return [row for rows in pool.map(lambda item: self._look(*item), alive.items()) for row in rows]

    def _look(self, name: str, pod: Json) -> list[CheckData]:
        node = self._nodes[name]
        outputs: dict[str, str] = {}
        missing: dict[str, None] = {}
        for key, argv in inside.commands(node).items():
            try:
                outputs[key] = self._cluster.run(pod, argv)
            except CommandFailed as exc:
                if exc.forbidden:
                    cause = "this identity may not run commands in pods (create and get on pods/exec)"
                    return [looks.left_out("pod_inside", name, cause, _PERMISSION.format(less="status"))]
                missing[f"{argv[0]} in the pod: {exc}"] = None
        fix = "Give the test application an image with iproute2, or set verify_pods to status."
        unseen = [looks.left_out("pod_inside", name, cause, fix) for cause in missing]
        return inside.inside_checks(node, pod, outputs) + unseen

    # Jobs

    def _latency(
        self, model: jobs.JobModel, alive: t.Mapping[str, Json], live: t.Mapping[str, Json], check_mode: bool
    ) -> list[CheckData]:
        off = self._off(model, alive, live)
        found = [looks.left_out(jobs.CHECK, name, off_text(name, why), fix_of(why)) for name, why in off.items()]
        fit = [name for name in alive if name not in off]
        chosen = jobs.draw(fit, self._options.nodes, self._options.seed)
        cause = f"{len(chosen)} of {len(fit)} nodes were drawn (verify_pod_nodes)"
        found += [looks.left_out(jobs.CHECK, name, cause) for name in fit if name not in chosen]
        options = self._options
        todo = jobs.pairs(self._nodes, chosen, options.schedule, options.peers, options.seed) if len(chosen) > 1 else []
        why = fix = ""
        if check_mode:
            why = "check mode starts no Jobs"
        elif not todo:
            why = "a latency test needs pods on two nodes"
        elif not self._may(model.namespace):
            why = f"this identity may not create and delete Jobs in namespace {model.namespace}"
            fix = _PERMISSION.format(less="look")
        if why:
            return [*found, *(looks.left_out(jobs.CHECK, name, why, fix) for name in chosen)]
        outcomes = self._tested(model, todo)
        # A node that stopped taking pods meanwhile is no fault of its neighbour.
        if any(outcome.failure for outcome in outcomes):
            late = self._off(model, chosen, self._cluster.nodes())
            outcomes = [jobs.excused(outcome, late) for outcome in outcomes]
        return [*found, *jobs.latency_checks(outcomes)]

    @staticmethod
    def _off(model: jobs.JobModel, names: t.Iterable[str], live: t.Mapping[str, Json]) -> dict[str, str]:
        """Return why nodes take no pods of Jobs, by name; those that take them are left out."""
        spec = {"tolerations": model.tolerations}
        reasons = {name: kept_off(live.get(name), spec) for name in names} if live else {}
        return {name: why for name, why in reasons.items() if why}

    def _tested(self, model: jobs.JobModel, todo: t.Sequence[jobs.PodPair]) -> list[jobs.LatencyOutcome]:
        """Return what came of all pairs: those whose pods do not start with all rails, rail by rail."""
        outcomes: list[jobs.LatencyOutcome] = []
        apart: list[jobs.PodPair] = []
        step = self._options.parallel
        for start in range(0, len(todo), step):
            wave = _Wave(self._cluster, self._nodes, model, self._options.limits, self._run)
            for pair, came in wave.test(todo[start : start + step]).items():
                outcomes += came
                apart += [] if came else pair.singles()
        # Rail by rail, so that pairs side by side are of different nodes.
        apart.sort(key=lambda pair: pair.rails)
        return outcomes + (self._tested(model, apart) if apart else [])

    def _may(self, namespace: str) -> bool:
        resource = self._cluster.resource("batch/v1", "Job")
        return all(self._cluster.may(resource, verb, namespace) for verb in ("create", "delete"))


class _Wave:
    """Pairs that are tested side by side."""

    def __init__(
        self,
        cluster: PodCluster,
        nodes: t.Mapping[str, looks.PodNode],
        model: jobs.JobModel,
        limits: jobs.Limits,
        run: str,
    ) -> None:
        self._cluster = cluster
        self._nodes = nodes
        self._model = model
        self._limits = limits
        self._run = run
        self._made: list[Json] = []
        self._pods: dict[str, Json] = {}
        self._jobs: dict[str, Json] = {}

    def test(self, todo: t.Sequence[jobs.PodPair]) -> dict[jobs.PodPair, list[jobs.LatencyOutcome]]:
        """Return what came of each pair, nothing where pods with several rails do not start.

        The Jobs are gone afterwards, whatever happened.
        """
        try:
            return self._test(todo)
        finally:
            for body in self._made:
                # Kubernetes removes it when its time is over; the error that counts is the one on its way up.
                with contextlib.suppress(RdmaError):
                    self._cluster.remove(body)

    def _test(self, todo: t.Sequence[jobs.PodPair]) -> dict[jobs.PodPair, list[jobs.LatencyOutcome]]:
        done: dict[jobs.PodPair, list[jobs.LatencyOutcome]] = {}
        for pair in todo:
            self._start(pair, done)
        self._wait(
            lambda: all(pair in done or self._server_up(pair) or self._given_up(pair, "server") for pair in todo)
        )
        for pair in todo:
            if pair in done:
                continue
            if addresses := self._server_up(pair):
                self._start(pair, done, addresses)
            else:
                done[pair] = self._not_started(pair, "server")
        self._wait(lambda: all(pair in done or self._begun(pair) or self._given_up(pair, "client") for pair in todo))
        for pair in todo:
            # What did not begin, such as a pod on a rail without its leaf, has no end to wait for.
            if pair not in done and not self._begun(pair):
                done[pair] = self._not_started(pair, "client")
        # A client measures one rail after the other.
        self._wait(lambda: all(pair in done or self._ended(pair) for pair in todo), max(len(one.rails) for one in todo))
        for pair in todo:
            if pair not in done:
                done[pair] = self._result(pair)
        return {pair: done[pair] for pair in todo}

    def _start(
        self, pair: jobs.PodPair, done: dict[jobs.PodPair, list[jobs.LatencyOutcome]], addresses: t.Sequence[str] = ()
    ) -> None:
        node = self._nodes[pair.client if addresses else pair.server]
        body = jobs.job(self._model, self._run, pair, node, self._limits, addresses)
        # Noted first: an answer that is lost leaves a Job behind.
        self._made.append(body)
        try:
            self._cluster.create(body)
        except (RdmaError, Gone) as exc:
            problem = str(getattr(exc, "problem", exc)).rstrip(".")
            fix = getattr(exc, "fix", "") or "See that the namespace of the test application is there."
            done[pair] = jobs.failed(pair, f"its Job cannot be made: {problem}", fix)

    def _wait(self, over: t.Callable[[], bool], times: int = 1) -> None:
        """Read pods and Jobs again and again until it is over, or the time is, so many times over."""
        until = time.monotonic() + times * self._limits.timeout
        while True:
            self._read()
            if over() or time.monotonic() >= until:
                return
            time.sleep(POLL_SECONDS)

    def _read(self) -> None:
        where = {"namespace": self._model.namespace, "selector": jobs.selector(self._model.fabric, self._run)}
        self._jobs = {job["metadata"]["name"]: job for job in self._cluster.listed("batch/v1", "Job", **where)}
        self._pods = {}
        for pod in self._cluster.listed("v1", "Pod", **where):
            for owner in pod["metadata"].get("ownerReferences") or ():
                if owner.get("kind") == "Job":
                    self._pods[owner["name"]] = pod

    def _pod(self, pair: jobs.PodPair, end: str) -> Json | None:
        return self._pods.get(jobs.job_name(self._model.fabric, self._run, pair, end))

    def _given_up(self, pair: jobs.PodPair, end: str) -> str:
        """Return why a Job has no end of its own to wait for: Kubernetes gave it up, or somebody has deleted it."""
        job = self._jobs.get(jobs.job_name(self._model.fabric, self._run, pair, end))
        if job is None or job["metadata"].get("deletionTimestamp"):
            return "somebody has deleted its Job"
        failure = job_failure(job)
        return f"Kubernetes has ended its Job: {failure}" if failure else ""

    def _server_up(self, pair: jobs.PodPair) -> list[str]:
        """Return the addresses of a server that runs, rail by rail; nothing while one is missing."""
        pod = self._pod(pair, "server")
        if pod is None or not ready(pod):
            return []
        attached = looks.attachments(pod)
        networks = jobs.networks_over(self._nodes[pair.server], pair.rails)
        found = [jobs.server_address(attached, network, pod) for network in networks]
        return found if all(found) else []

    def _begun(self, pair: jobs.PodPair) -> bool:
        pod = self._pod(pair, "client")
        return pod is not None and (ready(pod) or jobs.finished(pod))

    def _ended(self, pair: jobs.PodPair) -> bool:
        pod = self._pod(pair, "client")
        return jobs.finished(pod) if pod is not None else bool(self._given_up(pair, "client"))

    def _not_started(self, pair: jobs.PodPair, end: str) -> list[jobs.LatencyOutcome]:
        """Return why a pod with one rail did not get as far as its test; of several, nothing."""
        node = pair.client if end == "client" else pair.server
        where = f"the {end}'s pod on {node}"
        pod = self._pod(pair, end)
        gone = self._given_up(pair, end) if pod is None else ""
        if gone:
            fix = "Look at kubectl get events of its namespace; a longer verify_pod_timeout gives Jobs more time."
            return jobs.failed(pair, f"{where} is gone: {gone}", fix)
        if len(pair.rails) > 1:
            return []
        if pod is None:
            name = jobs.job_name(self._model.fabric, self._run, pair, end)
            problem = last_warning(
                self._cluster.events({"metadata": {"name": name, "namespace": self._model.namespace}})
            )
            why = problem.rstrip(".") or f"its Job made none in {self._limits.timeout} s"
            fix = "Look at quotas, Pod Security and webhooks of the namespace of the test application."
            return jobs.failed(pair, f"{where} is not there: {why}", fix)
        if jobs.finished(pod):
            return jobs.read_logs(pair, self._cluster.log(pod), jobs.exit_code(pod), self._limits)
        if ready(pod):
            fix = "Look at the log of the Spiderpool agent on the node, and at kubectl get spiderippools."
            return jobs.failed(pair, f"{where} has no address on {pair.rails[0]}", fix)
        found = trouble(pod, self._cluster.events(pod))
        return jobs.failed(pair, f"{where}: {found.text}", found.fix)

    def _result(self, pair: jobs.PodPair) -> list[jobs.LatencyOutcome]:
        """Read what a client measured, or why it did not."""
        pod = self._pod(pair, "client")
        if pod is None or not (jobs.finished(pod) or ready(pod)):
            return self._not_started(pair, "client")
        try:
            log = self._cluster.log(pod)
            server = self._pod(pair, "server")
            other = self._cluster.log(server) if server is not None and jobs.exit_code(pod) != 0 else ""
        except RdmaError as exc:
            problem = exc.problem.rstrip(".")
            return jobs.failed(pair, f"the log of the client's pod cannot be read: {problem}", exc.fix)
        return jobs.read_logs(pair, log, jobs.exit_code(pod), self._limits, other)
