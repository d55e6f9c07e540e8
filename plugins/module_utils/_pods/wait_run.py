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
from dataclasses import dataclass, replace

from ansible.module_utils.basic import AnsibleModule

from .._cluster.client import Cluster
from .._cluster.model import Json, Ref
from .._cluster.nodes import lost_nodes
from .._cluster.pod_state import PodTrouble, last_lines, trouble, wanted_node
from .._cluster.progress import WaitState, follow, reporter
from .._errors import RdmaError
from .wait import KINDS, RolloutState, headline, rollout_state, selector, sentence, with_every_node, with_pods

LOG_LINES = 20


@dataclass
class Waiting:
    """Waits for some parts.

    :param parts: the nodes that must each have a pod of it, by part.
    :param timeout: seconds for which nothing may move.
    :param report: takes one line of progress now and then.
    """

    _cluster: Cluster
    _parts: t.Mapping[Ref, t.Sequence[str]]
    _timeout: float
    _report: t.Callable[[str], None]
    _clock: t.Callable[[], float] = time.monotonic
    _sleep: t.Callable[[float], None] = time.sleep
    _states: tuple[RolloutState, ...] = ()

    def until_ready(self) -> tuple[RolloutState, ...]:
        """Wait until all parts are ready.

        :raises RdmaError: waiting cannot help, or nothing moves any more.
        """
        follow(self._state, self._timeout, self._report, self._clock, self._sleep)
        if late := [each for each in self._states if not each.done]:
            final = next((each for each in late if each.final), None)
            first = final or self._first(late)
            raise RdmaError(*sentence(first, 0 if final else self._timeout, self._cause(first)))
        return self._states

    def _state(self) -> WaitState:
        self._states = tuple(self._part_state(part, names) for part, names in self._parts.items())
        over = all(each.done for each in self._states) or any(each.final for each in self._states)
        return WaitState(over, {key: value for each in self._states for key, value in each.steps.items()}, self._text)

    def _part_state(self, part: Ref, names: t.Sequence[str]) -> RolloutState:
        """Read the state of a part, and where it is not ready, also its pods and their nodes."""
        obj = self._cluster.get(part)
        found = rollout_state(part, obj)
        if (found.done and not names) or obj is None or part.kind == "SpiderCoordinator":
            return found
        wanted = selector(obj)
        pods = self._cluster.listed("v1", "Pod", namespace=part.namespace, selector=wanted) if wanted else []
        nodes = self._cluster.listed("v1", "Node")
        found = with_pods(found, obj, pods, lost_nodes(nodes))
        return with_every_node(found, obj, pods, nodes, names) if names else found

    @staticmethod
    def _first(late: t.Sequence[RolloutState]) -> RolloutState:
        """Return the first part that is not ready and has a cause."""
        return next((each for each in late if each.own or each.behind), late[0])

    def _text(self) -> str:
        """Return how far everything is, and what keeps the first part that has a cause."""
        cause = self._cause(self._first([each for each in self._states if not each.done]))
        return headline(self._states) + (f" ({cause.text})" if cause else "")

    def _cause(self, each: RolloutState) -> PodTrouble | None:
        """Return what keeps a part: its own trouble, or its first pod that is behind, with the end of its log."""
        if each.own or not each.behind:
            return each.own
        pod = each.behind[0]
        why = trouble(pod, self._cluster.events(pod))
        place = f" on {node}" if (node := wanted_node(pod)) else ""
        text = f"pod {pod['metadata']['name']}{place}: {why.text}"
        if log := self._log_end(pod, why):
            text += f"; its log ends: {log}"
        if rest := len(each.behind) - 1:
            text += f" ({rest} more pod{'s are' if rest > 1 else ' is'} not ready)"
        return replace(why, text=text)

    def _log_end(self, pod: Json, why: PodTrouble) -> str:
        """Return the last lines of the log of the container that keeps a pod."""
        log = ""
        if why.container:
            with contextlib.suppress(RdmaError):
                # A container that was started again meanwhile says in its own log why it will end again.
                log = self._cluster.log(pod, why.container, tail=LOG_LINES, previous=why.previous) or self._cluster.log(
                    pod, why.container, tail=LOG_LINES
                )
        return last_lines(log)


def run(module: AnsibleModule) -> dict[str, t.Any]:
    """Wait.

    :raises RdmaError: when nothing moves any more.
    """
    params = module.params
    parts = {
        Ref.to(KINDS[row["kind"]], row["kind"], row["name"], row["namespace"]): row["nodes"] for row in params["parts"]
    }
    states: tuple[RolloutState, ...] = ()
    if not module.check_mode:
        with Cluster(params) as cluster:
            states = Waiting(cluster, parts, params["timeout"], reporter(params["progress_file"])).until_ready()
    return {"changed": False, "down": sorted({node for each in states for node in each.down})}
