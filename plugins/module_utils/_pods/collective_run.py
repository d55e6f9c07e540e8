# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: run an MPI program over pods, return its output, and remove its objects in any case."""

from __future__ import annotations

import contextlib
import time
import typing as t

from .._cluster.client import Cluster
from .._cluster.model import Json, Ref
from .._cluster.pod_state import exit_code, finished, job_failure, last_lines, nodes_named, trouble
from .._cluster.tls import make_ssh_key
from .._errors import RdmaError, with_id
from .._fabric.labels import selector
from . import collective
from .scheduling import exclusion, fix_of, off_text

POLL_SECONDS = 2.0
# NCCL writes a line for each channel of each rank.
LOG_BYTES = 32 * 2**20


class Collective:
    """One run of a Job that `indexed_job` made."""

    def __init__(self, cluster: Cluster, job: Json) -> None:
        self._cluster = cluster
        self._made = job
        self._name, self._namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        self._count = job["spec"]["completions"]

    def run(self) -> dict[str, t.Any]:
        """Return `code` (None: it did not end in its time) and `output` of the program.

        :raises RdmaError: when it cannot be made, or its pods do not start.
        """
        self._refuse_nodes(self._made["spec"]["template"]["spec"])
        try:
            self._cluster.create(self._made)
            uid = str(self._job()["metadata"].get("uid") or "")
            for belonging in collective.belongings(self._made, uid, *make_ssh_key()):
                self._cluster.create(belonging)
            return self._result()
        finally:
            # The error that counts is the one on its way up; Kubernetes removes the Job when its time is over.
            with contextlib.suppress(RdmaError):
                self._cluster.delete(Ref.of(self._made))

    def _refuse_nodes(self, spec: Json) -> None:
        """Refuse nodes that take no pods: it takes one on each."""
        live = self._cluster.nodes()
        # The Job's affinity lists all its nodes, so only the taints of each node matter.
        placed = {"tolerations": spec["tolerations"]}
        found = {name: why for name in nodes_named(spec) if live and (why := exclusion(live.get(name), placed))}
        if found:
            text = "; ".join(off_text(name, why) for name, why in found.items())
            fix = f"{fix_of(next(iter(found.values())))} [node_unschedulable]"
            raise RdmaError(f"The program needs a pod on each node, and {text}.", fix)

    def _job(self) -> Json:
        return self._cluster.one("batch/v1", "Job", self._name, self._namespace) or {"metadata": {}}

    def _result(self) -> dict[str, t.Any]:
        until = time.monotonic() + collective.START_SECONDS
        started = False
        which = {"namespace": self._namespace, "selector": selector(self._made["metadata"]["labels"])}
        seconds = self._made["spec"]["activeDeadlineSeconds"] - collective.START_SECONDS
        while True:
            pods = self._cluster.listed("v1", "Pod", **which)
            first = next((pod for pod in pods if _index(pod) == "0"), None)
            if first is not None and finished(first):
                return {"code": exit_code(first), "output": self._full_log(first)}
            if failure := job_failure(self._job()):
                raise self._given_up(failure, pods)
            running = [pod for pod in pods if (pod.get("status") or {}).get("phase") == "Running"]
            if not started and len(running) == self._count:
                started, until = True, time.monotonic() + seconds
            if time.monotonic() >= until:
                if started and first is not None:
                    return {"code": None, "output": self._cluster.log(first, limit=LOG_BYTES)}
                raise self._not_started(pods)
            time.sleep(POLL_SECONDS)

    def _full_log(self, pod: Json) -> str:
        """Return the launcher's log. Fail if its beginning is lost: a partial log is not a measurement."""
        log = self._cluster.log(pod, limit=LOG_BYTES)
        if collective.BEGIN in log:
            return log
        name = pod["metadata"]["name"]
        text = f"The log of pod {name} is not complete, so nothing was measured: the kubelet rotated it."
        fix = "Log less (NCCL_DEBUG_SUBSYS), or raise the kubelet's containerLogMaxSize. [pod_log_truncated]"
        raise RdmaError(text, fix)

    def _given_up(self, failure: str, pods: list[Json]) -> RdmaError:
        """Return why Kubernetes ended the Job, and the log of the pod that failed first."""
        text = f"Kubernetes has ended the Job {self._name}: {failure}"
        for pod in pods:
            if finished(pod) and exit_code(pod):
                log = last_lines(self._cluster.log(pod))
                text += f"; pod {pod['metadata']['name']} ended with exit code {exit_code(pod)}: {log}"
                break
        fix = "Fix what the pod reports; if its time was up, set seconds (accept_collective_timeout). [job_failed]"
        return RdmaError(f"{text.rstrip('.')}.", fix)

    def _not_started(self, pods: list[Json]) -> RdmaError:
        late = next((pod for pod in pods if (pod.get("status") or {}).get("phase") != "Running"), None)
        where = f"{len(pods)} of {self._count} pods of the Job {self._name} exist"
        if late is None:
            fix = (
                "Check quotas, Pod Security and webhooks of the namespace, and kubectl describe job. [job_not_started]"
            )
            return RdmaError(f"{where} after {collective.START_SECONDS} s.", fix)
        found = trouble(late, self._cluster.events(late))
        fix = with_id(found.fix, "job_not_started")
        return RdmaError(f"{where}, and {late['metadata']['name']} does not run: {found.text}.", fix)


def _index(pod: Json) -> str:
    return str((pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index", ""))
