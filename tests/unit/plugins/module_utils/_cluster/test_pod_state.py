# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.pod_state import (
    is_ready,
    last_lines,
    last_warning,
    started_containers,
    trouble,
)


def event(reason, message, at, kind="Warning"):
    return {"type": kind, "reason": reason, "message": message, "lastTimestamp": f"2026-11-21T10:00:{at:02d}Z"}


def pod(phase="Pending", **status):
    return {"metadata": {"name": "p", "namespace": "ml"}, "spec": {}, "status": {"phase": phase, **status}}


def container(name="c", **row):
    return {"name": name, "ready": False, "restartCount": 0, **row}


SANDBOX = event("FailedCreatePodSandBox", "spidercoordinator: default no ready.", 5)
STARTED = [event("Pulled", "image is there", 7, "Normal"), event("Started", "Started container c", 8, "Normal")]


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        pytest.param([], "", id="none"),
        pytest.param([event("MissingClusterDNS", "no cluster DNS", 9)], "", id="harmless"),
        pytest.param([SANDBOX, event("MissingClusterDNS", "x", 9)], "FailedCreatePodSandBox: spider", id="of-two"),
        pytest.param([SANDBOX, *STARTED], "", id="overtaken"),
        pytest.param(
            [event("AddedInterface", "Add net1", 6, "Normal"), SANDBOX],
            "FailedCreatePodSandBox",
            id="between-two-tries",
        ),
        pytest.param([*STARTED, event("Unhealthy", "probe failed", 9)], "Unhealthy: probe failed", id="later-stage"),
        pytest.param([event("FailedMount", "old", 1), event("FailedMount", "new", 2)], "FailedMount: new", id="newest"),
        pytest.param(
            [event("FailedMount", "no disk", 1), event("SuccessfulAttachVolume", "other", 2, "Normal")],
            "FailedMount: no disk",
            id="of-the-same-stage",
        ),
    ],
)
def test_of_the_warnings_counts_the_newest_that_nothing_has_overtaken(events, wanted):
    assert last_warning(events).startswith(wanted)
    assert bool(last_warning(events)) == bool(wanted)


def test_an_event_of_the_new_kind_has_its_time_elsewhere():
    new = {"type": "Warning", "reason": "FailedMount", "message": "b", "eventTime": "2026-11-21T10:00:09.123456Z"}
    assert last_warning([new, event("FailedMount", "a", 8)]) == "FailedMount: b"


CRASHED = {"terminated": {"exitCode": 2, "reason": "Error"}}
OUT_OF_MEMORY = {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}
BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
NO_IMAGE = {"waiting": {"reason": "ErrImagePull", "message": "x"}}
RUNS = {"running": {}}


def starting(state):
    """A pod whose first container has this state, so that the others wait."""
    waits = container(state={"waiting": {"reason": "PodInitializing"}})
    return pod(initContainerStatuses=[container("copy", state=state)], containerStatuses=[waits])


@pytest.mark.parametrize(
    ("made", "text", "fix", "previous"),
    [
        pytest.param(
            pod("Running", containerStatuses=[container(state=BACK_OFF, lastState=CRASHED, restartCount=5)]),
            "container c ended with exit code 2, 5 restarts",
            "logs p -c c --previous",
            True,
            id="crash-loop",
        ),
        pytest.param(
            pod("Failed", containerStatuses=[container(state=CRASHED)]),
            "container c ended with exit code 2",
            "logs p -c c.",
            False,
            id="ended",
        ),
        pytest.param(
            pod("Running", containerStatuses=[container(state=BACK_OFF, lastState=OUT_OF_MEMORY)]),
            "exit code 137 (OOMKilled)",
            "more memory",
            True,
            id="out-of-memory",
        ),
        pytest.param(
            starting(NO_IMAGE),
            "init container copy does not start: ErrImagePull: x",
            "spiderpool_registry",
            False,
            id="init-image",
        ),
        pytest.param(starting(RUNS), "init container copy is still running", "logs p -c copy", False, id="init-runs"),
        pytest.param(
            pod("Running", containerStatuses=[container(state=RUNS)]),
            "container c runs and is not ready: Unhealthy: Readiness probe failed",
            "logs p -c c",
            False,
            id="unready",
        ),
        pytest.param(
            pod(conditions=[{"type": "PodScheduled", "status": "False", "message": "didn't have free ports for it."}]),
            "no node takes the pod: didn't have free ports",
            "holds the port",
            False,
            id="ports",
        ),
        pytest.param(
            {**pod(), "metadata": {"name": "p", "namespace": "ml", "deletionTimestamp": "2026-11-21T09:00:00Z"}},
            "is being deleted since 2026-11-21T09:00:00Z",
            "describe pod p",
            False,
            id="going",
        ),
    ],
)
def test_the_last_state_of_a_pod_is_the_cause(made, text, fix, previous):
    events = [SANDBOX, *STARTED, event("Unhealthy", "Readiness probe failed: 500.", 20)]
    found = trouble(made, events)
    assert text in found.text
    assert fix in found.fix
    assert found.previous == previous


def test_a_sandbox_that_fails_is_named_until_the_pod_has_left_it_behind():
    waits = pod(containerStatuses=[container(state={"waiting": {"reason": "ContainerCreating"}})])
    dns = event("MissingClusterDNS", "kubelet has no cluster DNS", 1)
    assert "spidercoordinator: default no ready" in trouble(waits, [dns, SANDBOX]).text
    assert "test-application.md, Failures" in trouble(waits, [dns, SANDBOX]).fix
    assert trouble(waits, [dns, SANDBOX, event("Pulling", "Pulling image x", 9, "Normal")]).text == (
        "the pod is being started (Pulling image x)"
    )


def test_a_pod_gets_further_and_never_back():
    fresh = pod()
    placed = {**pod(), "spec": {"nodeName": "node1"}}
    started = {**placed, "status": {"phase": "Running", "containerStatuses": [container(state=RUNS)]}}
    crashed = {**placed, "status": {"containerStatuses": [container(state=BACK_OFF, lastState=CRASHED)]}}
    assert [started_containers(made) for made in (fresh, placed, started, crashed)] == [0, 1, 2, 2]


def test_ready_is_what_the_condition_says():
    rows = [{"type": "Ready", "status": "True"}]
    assert is_ready(pod("Running", conditions=rows))
    assert not is_ready(pod("Running"))


def test_the_end_of_a_log_is_one_line():
    fatal = json.dumps({"level": "FATAL", "ts": "x", "msg": "no certificate"})
    assert last_lines(f"one\n\ntwo\n{fatal}\n", most=2) == "two / FATAL no certificate"
    assert last_lines("") == ""
    assert last_lines("x" * 400).endswith("x...")
