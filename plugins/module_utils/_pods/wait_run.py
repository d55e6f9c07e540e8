# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: read parts of a cluster until they are ready or stuck: the entry point of cluster_wait.

`wait` says what it sees.
"""

from __future__ import annotations

import contextlib
import time
import typing as t
from dataclasses import dataclass, field, replace

from ansible.module_utils.basic import AnsibleModule

from .._cluster.model import Json
from .._cluster.nodes import lost_nodes
from .._cluster.pod_state import PodTrouble, last_lines, trouble
from .._cluster.progress import WaitBudget, reporter
from .._errors import RdmaError
from .client import PodCluster
from .wait import KINDS, RolloutPart, RolloutState, headline, look, selector, sentence, with_every_node

POLL_SECONDS = 1.0
# Interval of reading pods and nodes, which are many, and of printing the progress.
DETAIL_SECONDS = 10.0
LOG_LINES = 20


@dataclass
class WaitOutcome:
    """The result of waiting."""

    looks: tuple[RolloutState, ...] = ()
    seconds: float = 0.0
    problem: RdmaError | None = None
    down: set[str] = field(default_factory=set)


@dataclass
class Waiting:
    """Waits for some parts.

    :param timeout: seconds for which nothing may move.
    :param report: takes one line of progress now and then.
    """

    _cluster: PodCluster
    _parts: t.Sequence[RolloutPart]
    _timeout: float
    _report: t.Callable[[str], None]
    _clock: t.Callable[[], float] = time.monotonic
    _sleep: t.Callable[[float], None] = time.sleep
    _detailed: dict[RolloutPart, RolloutState] = field(default_factory=dict)

    def until_ready(self) -> WaitOutcome:
        """Wait until all parts are ready."""
        began = self._clock()
        patience = WaitBudget(self._timeout, began)
        outcome = WaitOutcome()
        detail = began
        while True:
            now = self._clock()
            deep = now >= detail
            if deep:
                detail = now + DETAIL_SECONDS
            outcome.looks = tuple(self._look(part, deep=deep) for part in self._parts)
            outcome.seconds = now - began
            for each in outcome.looks:
                outcome.down.update(each.down)
            if all(each.done for each in outcome.looks):
                return outcome
            moving = patience.see({key: value for each in outcome.looks for key, value in each.steps.items()}, now)
            final = any(each.final for each in outcome.looks)
            if final or not moving:
                outcome.problem = self._problem(outcome.looks, 0 if final else self._timeout)
                return outcome
            if deep and outcome.seconds >= DETAIL_SECONDS:
                self._report(f"{now - began:.0f} s: {headline(outcome.looks)}{self._why(outcome)}")
            self._sleep(POLL_SECONDS)

    def _look(self, part: RolloutPart, *, deep: bool) -> RolloutState:
        """Look at a part, and where it is not ready, now and then at its pods and their nodes as well."""
        obj = self._cluster.one(KINDS[part.kind], part.kind, part.name, part.namespace)
        found = look(part, obj)
        if (found.done and not part.nodes) or obj is None or part.kind == "SpiderCoordinator":
            return found
        if not deep and not found.done:
            # Of nodes that are down only the pods show it: between two looks at them the last one holds.
            before = self._detailed.get(part, found)
            return replace(before, done=False, text=found.text, steps=found.steps, final=False)
        wanted = selector(obj)
        pods = self._cluster.listed("v1", "Pod", namespace=part.namespace, selector=wanted) if wanted else []
        nodes = self._cluster.listed("v1", "Node")
        found = look(part, obj, pods, lost_nodes(nodes))
        self._detailed[part] = with_every_node(found, obj, pods, nodes) if part.nodes else found
        return self._detailed[part]

    def _why(self, outcome: WaitOutcome) -> str:
        """Return what keeps the first part that has a cause."""
        for each in outcome.looks:
            if each.own is not None:
                return f" ({each.own.text})"
            if each.behind:
                pod = each.behind[0]
                why = trouble(pod, self._cluster.events(pod))
                log = self._log_end(pod, why, 1) if why.previous or why.exit_code else ""
                return f" ({pod['metadata']['name']}: {why.text}{f'; its log ends: {log}' if log else ''})"
        return ""

    def _log_end(self, pod: Json, why: PodTrouble, most: int = 3) -> str:
        """Return the last lines of the log of the container that keeps a pod."""
        log = ""
        if why.container:
            with contextlib.suppress(RdmaError):
                # A container that was started again meanwhile says in its own log why it will end again.
                log = self._cluster.log(pod, why.container, tail=LOG_LINES, previous=why.previous) or self._cluster.log(
                    pod, why.container, tail=LOG_LINES
                )
        return last_lines(log, most)

    def _problem(self, looks: t.Sequence[RolloutState], seconds: float) -> RdmaError:
        """Return what keeps the first part that is not ready.

        :param seconds: for which nothing has moved; 0 where that is not why.
        """
        late = [each for each in looks if not each.done]
        each = next((one for one in late if one.final), None) or self._worst(late)
        if not each.behind or each.own is not None:
            return RdmaError(*sentence(each, seconds))
        pod = each.behind[0]
        why = trouble(pod, self._cluster.events(pod))
        return RdmaError(*sentence(each, seconds, why, self._log_end(pod, why)))

    def _worst(self, late: t.Sequence[RolloutState]) -> RolloutState:
        """Look once more at the parts that are not ready, and return the first that has a cause."""
        again = [self._look(each.part, deep=True) for each in late]
        return next((each for each in again if each.own or each.behind), again[0])


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Wait.

    :raises RdmaError: when nothing moves any more.
    """
    params = module.params
    parts = [RolloutPart(row["kind"], row["name"], row["namespace"], tuple(row["nodes"])) for row in params["parts"]]
    result: dict[str, t.Any] = {"changed": False, "parts": [], "down": [], "seconds": 0.0}
    if module.check_mode:
        return result
    with PodCluster(params) as cluster:
        waiting = Waiting(cluster, parts, params["timeout"], reporter(params["progress_file"]))
        outcome = waiting.until_ready()
        if outcome.problem is not None:
            raise outcome.problem
    where = [{key: getattr(each.part, key) for key in ("kind", "name", "namespace")} for each in outcome.looks]
    result["parts"] = [{**row, "ready": each.done, "text": each.text} for row, each in zip(where, outcome.looks)]
    result["down"] = sorted(outcome.down)
    result["seconds"] = round(outcome.seconds, 1)
    return result
