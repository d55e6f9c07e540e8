# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import types

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.model import Ref
from ansible_collections.railops.rdma.plugins.module_utils._cluster.progress import WaitState, follow
from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._pods.scheduling import by_name
from ansible_collections.railops.rdma.plugins.module_utils._pods.wait import (
    KINDS,
    headline,
    rollout_state,
    sentence,
    with_every_node,
    with_pods,
)
from ansible_collections.railops.rdma.plugins.module_utils._pods.wait_run import Waiting

AGENT = Ref.to(KINDS["DaemonSet"], "DaemonSet", "agent", "spiderpool")
CONTROLLER = Ref.to(KINDS["Deployment"], "Deployment", "controller", "spiderpool")
COORDINATOR = Ref.to(KINDS["SpiderCoordinator"], "SpiderCoordinator", "default")


def daemon_set(want, updated, ready, generation=2, seen=None):
    status = {"desiredNumberScheduled": want, "updatedNumberScheduled": updated, "numberReady": ready}
    return {
        "metadata": {"name": "agent", "uid": "u", "generation": generation},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}},
        "status": {**status, "observedGeneration": generation if seen is None else seen},
    }


def deployment(want, total, updated, available, generation=1):
    status = {"replicas": total, "updatedReplicas": updated, "availableReplicas": available}
    return {
        "metadata": {"name": "controller", "generation": generation},
        "spec": {"replicas": want, "selector": {"matchLabels": {"app": "c"}}},
        "status": {**status, "observedGeneration": generation},
    }


def pod(name, node, ready=True, revision="new", **row):
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": str(ready)}]}
    state = {"state": {"running": {}}, **row}
    status["containerStatuses"] = [{"name": "c", "ready": ready, "restartCount": 0, **state}]
    created = "2026-01-01T00:00:00Z" if revision == "old" else "2026-01-02T00:00:00Z"
    meta = {"name": name, "namespace": "spiderpool", "creationTimestamp": created}
    meta["labels"] = {"controller-revision-hash": revision}
    return {"metadata": meta, "spec": {"nodeName": node}, "status": status}


def seen(part, obj, pods, lost):
    return with_pods(rollout_state(part, obj), obj, pods, lost)


@pytest.mark.parametrize(
    ("part", "obj", "done", "text"),
    [
        (AGENT, daemon_set(8, 8, 8), True, "has 8 of 8 pods ready"),
        (AGENT, daemon_set(8, 8, 7), False, "has 7 of 8 pods ready"),
        (AGENT, daemon_set(1000, 412, 998), False, "has 998 of 1,000 pods ready, 588 still old"),
        (AGENT, daemon_set(8, 8, 8, seen=1), False, "is not taken up yet"),
        (AGENT, daemon_set(0, 0, 0), True, "has 0 of 0 pods ready"),
        (AGENT, None, False, "does not exist"),
        (CONTROLLER, deployment(1, 1, 1, 1), True, "has 1 of 1 pods ready"),
        (CONTROLLER, deployment(1, 2, 1, 1), False, "has 1 of 1 pods ready, 1 still old"),
        (CONTROLLER, deployment(2, 2, 2, 1), False, "has 1 of 2 pods ready"),
        (CONTROLLER, deployment(0, 0, 0, 0), True, "has 0 of 0 pods ready"),
    ],
)
def test_a_daemon_set_and_a_deployment_by_their_numbers(part, obj, done, text):
    found = rollout_state(part, obj)
    assert (found.done, found.text) == (done, text)


@pytest.mark.parametrize(
    ("status", "done", "cause", "fix"),
    [
        ({"phase": "Synced"}, True, "", ""),
        (
            {"phase": "NotReady", "reason": "No kube-controller-manager pod found, unable to get clusterCIDR"},
            False,
            "there is no kubeadm-config either",
            "spiderpool_pod_cidrs",
        ),
        (
            {"phase": "NotReady", "reason": "the cilium multi-pool feature is unavailable"},
            False,
            "cilium multi-pool",
            "spiderpool_pod_cidr_type",
        ),
        ({}, False, "has not read it", "Coordinator-Informer"),
    ],
)
def test_the_coordinator_reports_its_reason_and_what_repairs_it(status, done, cause, fix):
    found = rollout_state(COORDINATOR, {"metadata": {"name": "default"}, "status": status})
    assert (found.done, bool(found.own)) == (done, not done)
    assert done or (cause in found.own.text and fix in found.own.fix)


class TestNodesThatAreDown:
    def test_they_are_named_and_not_waited_for(self):
        pods = [pod(f"p{n}", f"node{n}", ready=n != 8, revision="old" if n == 8 else "new") for n in range(1, 9)]
        found = seen(AGENT, daemon_set(8, 7, 7), pods, frozenset({"node8"}))
        assert (found.done, found.down) == (True, ("node8",))
        assert "node8 is down and not waited for" in found.text

    def test_a_pod_that_is_old_or_not_ready_elsewhere_still_counts(self):
        # Of these numbers alone one would think that only the node that is down is missing.
        pods = [pod(f"p{n}", f"node{n}", ready=n != 8) for n in range(1, 9)]
        pods[0] = pod("p1", "node1", revision="old")
        assert not seen(AGENT, daemon_set(8, 7, 7), pods, frozenset({"node8"})).done
        pods[0] = pod("p1", "node1", ready=False)
        found = seen(AGENT, daemon_set(8, 8, 6), pods, frozenset({"node8"}))
        assert not found.done
        assert [row["metadata"]["name"] for row in found.behind] == ["p1"]

    def test_before_its_controller_has_seen_the_template_no_pod_counts_as_new(self):
        pods = [pod("p1", "node1"), pod("p2", "node2", ready=False)]
        assert seen(AGENT, daemon_set(2, 2, 1), pods, frozenset({"node2"})).done
        assert not seen(AGENT, daemon_set(2, 2, 1, seen=1), pods, frozenset({"node2"})).done

    def test_a_rollout_that_they_use_up_is_reported(self):
        pods = [pod(f"p{n}", f"node{n}", ready=n < 7, revision="old") for n in range(1, 9)]
        found = seen(AGENT, daemon_set(8, 0, 6), pods, frozenset({"node7", "node8"}))
        text, fix = sentence(found, 300, None)
        assert "6 of 8 pods ready, 8 still old; node7, node8 are down and not waited for" in text
        assert "maxUnavailable" in fix

    def test_a_controller_that_was_placed_on_one_is_reported(self):
        pods = [pod("old", "node1", revision="old"), pod("c-x", "node8", ready=False)]
        found = seen(CONTROLLER, deployment(1, 2, 1, 1), pods, frozenset({"node8"}))
        assert found.own.text == "pod c-x was placed on node8, which is down"
        assert "delete pod c-x --force" in found.own.fix


class TestNodesThatMustHaveAPod:
    """What a DaemonSet says of itself is 0 of 0 where no node takes its pods."""

    NODES = ("node1", "node2", "node3")
    TAINT = types.MappingProxyType({"key": "gpu", "effect": "NoSchedule"})

    def state(self, pods, nodes, **template):
        obj = daemon_set(len(pods), len(pods), sum(pod["status"]["phase"] == "Running" for pod in pods))
        obj["spec"]["template"] = {"spec": template}
        return with_every_node(seen(AGENT, obj, pods, frozenset()), obj, pods, nodes, self.NODES)

    @staticmethod
    def node(number, ready="True", **spec):
        status = {"conditions": [{"type": "Ready", "status": ready}]}
        return {"metadata": {"name": f"node{number}", "labels": {"n": str(number)}}, "spec": spec, "status": status}

    def test_all_have_one(self):
        found = self.state([pod(f"p{n}", f"node{n}") for n in (1, 2, 3)], [self.node(n) for n in (1, 2, 3)])
        assert (found.done, found.text, found.own) == (True, "has 3 of 3 pods ready", None)

    def test_none_of_none_is_not_green_and_each_is_named(self):
        found = self.state([], [self.node(n, taints=[self.TAINT]) for n in (1, 2)])
        assert (found.done, found.final, found.text) == (False, True, "has 0 of 3 pods ready")
        assert found.own.text == (
            "node1, node2: it has the taint gpu:NoSchedule, which is not tolerated; node3: it is not in the cluster"
        )
        assert "rail_objects_test_tolerations" in found.own.fix

    def test_one_whose_pod_the_scheduler_cannot_place_is_named_with_its_reason(self):
        waits = pod("p3", "", ready=False)
        waits["spec"] = {"affinity": by_name(["node3"])}
        reported = "0/3 nodes are available: 1 Insufficient nvidia.com/gpu."
        waits["status"] = {
            "phase": "Pending",
            "conditions": [{"type": "PodScheduled", "status": "False", "message": reported}],
        }
        found = self.state([pod("p1", "node1"), pod("p2", "node2"), waits], [self.node(n) for n in (1, 2, 3)])
        assert (found.done, found.final, found.text) == (False, False, "has 2 of 3 pods ready")
        assert found.own.text == f"node3: {reported.rstrip('.')}"
        assert "too little" in found.own.fix

    def test_one_that_is_down_is_not_waited_for(self):
        nodes = [self.node(1), self.node(2), self.node(3, ready="Unknown")]
        found = self.state([pod("p1", "node1"), pod("p2", "node2")], nodes)
        assert (found.done, found.down) == (True, ("node3",))
        assert found.text == "has 2 of 3 pods ready; node3 is down and not waited for"

    def test_one_that_has_none_for_no_known_reason_is_waited_for(self):
        found = self.state([pod("p1", "node1"), pod("p2", "node2")], [self.node(n) for n in (1, 2, 3)])
        assert (found.done, found.final, found.own.text) == (False, False, "node3: no pod was made for it")

    def test_nodes_outside_the_selector_are_not_counted(self):
        nodes = [self.node(n) for n in (1, 2, 3)]
        assert self.state([pod("p1", "node1")], nodes, nodeSelector={"n": "1"}).text == "has 1 of 1 pods ready"
        found = self.state([], nodes, nodeSelector={"n": "9"})
        assert (found.done, found.text) == (False, "has 0 of 3 pods ready")
        assert "left out by the pods' node selector" in found.own.text


@pytest.mark.parametrize(
    ("reached", "ends"),
    [
        ([(0, {"ready": 3}), (5, {"ready": 2}), (9, {"ready": 3})], 10),
        ([(9, {"ready": 1}), (18, {"ready": 2}), (27, {"ready": 2, "other": 1})], 37),
    ],
)
def test_only_what_was_never_reached_is_a_step(reached, ends):
    now = [0.0]

    def read_state():
        return WaitState(False, next((steps for at, steps in reversed(reached) if at <= now[0]), {}), str)

    follow(read_state, 10, print, lambda: now[0], lambda _seconds: now.append(now.pop() + 1))
    assert now[0] == ends


class Fleet:
    """An API with one DaemonSet whose rollout goes on with the clock, two nodes at a time."""

    def __init__(self, nodes, seconds_each, stuck_at=None):
        self.nodes, self.seconds_each, self.stuck_at = nodes, seconds_each, stuck_at
        self.now, self.lists, self.lines = 0.0, 0, []

    def sleep(self, seconds):
        self.now += seconds

    def get(self, _part):
        done = min(self.nodes, 2 * int(self.now / self.seconds_each), self.stuck_at or self.nodes)
        return daemon_set(self.nodes, done, self.nodes - (2 if done < self.nodes else 0))

    def listed(self, _api_version, kind, **_options):
        self.lists += 1
        if kind != "Pod" or self.stuck_at is None:
            return []
        ended = {"terminated": {"exitCode": 3, "reason": "Error"}}
        waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
        return [pod("agent-x", "node7", ready=False, state=waiting, lastState=ended, restartCount=4)]

    def events(self, _pod):
        return []

    def log(self, _pod, _container, **_options):
        return "one\ntwo\ncannot open the device\n"


def waiting(fleet, timeout):
    return Waiting(fleet, {AGENT: ()}, timeout, fleet.lines.append, lambda: fleet.now, fleet.sleep)


def test_a_thousand_nodes_two_at_a_time_take_their_hours():
    fleet = Fleet(1000, 40)
    (found,) = waiting(fleet, 300).until_ready()
    assert found.done
    assert fleet.now == pytest.approx(20000, abs=60)
    assert len(fleet.lines) == pytest.approx(2000, rel=0.1)
    assert "998 of 1,000 pods ready" in fleet.lines[100]
    # Pods and nodes of a large fleet are not listed each second.
    assert fleet.lists < fleet.now / 4


def test_a_rollout_that_stops_is_given_up_in_one_sentence():
    fleet = Fleet(1000, 40, stuck_at=400)
    with pytest.raises(RdmaError) as caught:
        waiting(fleet, 300).until_ready()
    assert fleet.now == pytest.approx(200 * 40 + 300, abs=60)
    assert caught.value.problem == (
        "DaemonSet spiderpool/agent has 998 of 1,000 pods ready, 600 still old, and nothing has moved for 300 s: pod "
        "agent-x on node7: container c ended with exit code 3, 4 restarts; its log ends: one / two / cannot open the "
        "device."
    )
    assert "kubectl -n spiderpool logs agent-x -c c --previous" in caught.value.fix
    end = "(pod agent-x on node7: container c ended with exit code 3, 4 restarts; its log ends: one / two / cannot open"
    assert end in fleet.lines[0]


def test_a_crash_loop_is_no_progress():
    # What a container that starts again in its pod reaches it has reached before.
    row = pod("agent-x", "node7", ready=False, state={"running": {}}, lastState={"terminated": {}}, restartCount=9)
    steps = [seen(AGENT, daemon_set(2, 2, 1), [{**row}], frozenset()).steps for _restart in range(2)]
    assert steps[0] == steps[1]


def test_how_far_everything_is_is_one_line():
    states = [
        rollout_state(AGENT, daemon_set(8, 8, 7)),
        rollout_state(CONTROLLER, deployment(1, 1, 1, 1)),
        rollout_state(COORDINATOR, None),
    ]
    shown = "DaemonSet spiderpool/agent has 7 of 8 pods ready; SpiderCoordinator default does not exist"
    assert headline(states) == shown
    assert headline(states[1:2]) == "everything is ready"
