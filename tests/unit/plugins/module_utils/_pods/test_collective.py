# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""MPI programs over pods: the objects, and a run on an API that is played."""

from __future__ import annotations

import json

import pytest
from kubernetes.client import models

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._pods import collective_run
from ansible_collections.railops.rdma.plugins.module_utils._pods.collective import belongings
from ansible_collections.railops.rdma.plugins.module_utils._pods.scheduling import GATE
from ansible_collections.railops.rdma.plugins.modules import collective_job
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import run as plan
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts


@pytest.fixture
def params(tmp_path):
    plan({**exclusive(), "plan_dir": str(tmp_path)}, hosts(3), check_mode=False)
    made = {"plan_dir": str(tmp_path / "fabric"), "fabric": "fabric", "nodes": ["node1", "node2"], "image": "x/nccl"}
    made |= {"words": ["mpirun", "--host", "{hosts}", "-np", "{count}"], "namespace": "jobs", "limits": {"g": 8}}
    made |= {"tolerations": [{"key": "gpu", "operator": "Exists"}], "image_pull_secrets": ["ours"]}
    return {**made, "seconds": 60}


@pytest.fixture
def job(params):
    return collective_job.job_of(params)


class SimulatedApi:
    """An API whose pods do what `phases` say, one state a look."""

    def __init__(self, phases):
        self.phases = phases
        self.made, self.deleted = [], []
        self.job = {}
        self.specs = {"node1": {}, "node2": {}}
        self.first_line = "railops: begin\n"

    def create(self, body):
        self.made.append(body)

    def delete(self, ref):
        self.deleted.append((ref.kind, ref.name))

    def one(self, *_which):
        return {"metadata": {"uid": "u-1"}, "status": self.job}

    def listed(self, _version, _kind, **_where):
        phase = self.phases.pop(0) if len(self.phases) > 1 else self.phases[0]
        index = "batch.kubernetes.io/job-completion-index"
        state = {"terminated": {"exitCode": 0}} if phase == "Succeeded" else {}
        status = {"phase": phase, "containerStatuses": [{"state": state}]}
        return [
            {"metadata": {"name": f"p-{number}", "annotations": {index: str(number)}}, "status": status}
            for number in (1, 0)
        ]

    def nodes(self):
        return {name: {"metadata": {"name": name}, "spec": spec} for name, spec in self.specs.items()}

    def log(self, pod, **_more):
        return f"{self.first_line}said by {pod['metadata']['name']}"

    def events(self, _pod):
        return []


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(collective_run, "POLL_SECONDS", 0.0)


def test_the_plan_gives_the_pods_what_they_need(job):
    pod = job["spec"]["template"]
    assert "k8s.v1.cni.cncf.io/networks" in pod["metadata"]["annotations"] or pod["metadata"]["annotations"]
    container, name = pod["spec"]["containers"][0], job["metadata"]["name"]
    assert container["resources"]["limits"]["g"] == "8"
    assert {row["name"] for row in container["env"]} >= {"NCCL_SOCKET_IFNAME"}
    assert container["command"][-5:-2] == ["mpirun", "--host", f"{name}-0.{name},{name}-1.{name}"]
    assert container["command"][-1] == "2"
    assert len(f"{name}-10000") <= 63
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert [term["matchFields"][0]["values"] for term in terms["nodeSelectorTerms"]] == [["node1"], ["node2"]]
    context = container["securityContext"]
    assert context["capabilities"]["drop"] == ["ALL"]
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["spec"]["automountServiceAccountToken"] is False
    # sshd does not start without its three: tried with Debian 12's.
    assert context["capabilities"]["add"] == ["IPC_LOCK", "SETGID", "SETUID", "SYS_CHROOT"]


def unknown(value, model):
    """Give the fields of an object that the API's model does not have."""
    if isinstance(value, list):
        for item in value:
            yield from unknown(item, model[len("list[") : -1])
    elif isinstance(value, dict) and hasattr(models, model):
        known = getattr(models, model)
        fields = {key: known.openapi_types[name] for name, key in known.attribute_map.items()}
        yield from value.keys() - fields.keys()
        for key in value.keys() & fields.keys():
            yield from unknown(value[key], fields[key])


def test_the_api_has_every_field(job):
    for body in (job, *belongings(job, "u-1", b"private", b"public")):
        assert [*unknown(body, f"V1{body['kind']}")] == []
    job["spec"]["template"]["spec"]["containers"][0]["memory"] = "1Gi"
    assert [*unknown(job, "V1Job")] == ["memory"]


def test_a_run_returns_what_the_first_pod_said_and_leaves_nothing(job):
    api = SimulatedApi(["Pending", "Running", "Succeeded"])
    found = collective_run.Collective(api, job).run()
    assert found == {"code": 0, "output": "railops: begin\nsaid by p-0"}
    assert [body["kind"] for body in api.made] == ["Job", "Secret", "Service"]
    assert {body["metadata"]["ownerReferences"][0]["uid"] for body in api.made[1:]} == {"u-1"}
    assert api.deleted == [("Job", job["metadata"]["name"])]
    assert "PRIVATE KEY" not in json.dumps(found)


def test_a_program_that_hangs_is_left_in_its_time(job, monkeypatch):
    api = SimulatedApi(["Running"])
    clock = iter(range(0, 10000, 10))
    monkeypatch.setattr(collective_run.time, "monotonic", lambda: next(clock))
    assert collective_run.Collective(api, job).run()["code"] is None
    assert api.deleted


def test_pods_that_do_not_start_are_said(job, monkeypatch):
    api = SimulatedApi(["Pending"])
    clock = iter(range(0, 100000, 50))
    monkeypatch.setattr(collective_run.time, "monotonic", lambda: next(clock))
    with pytest.raises(RdmaError, match=r"2 of 2 pods .* exist, and p-1 does not run"):
        collective_run.Collective(api, job).run()
    assert api.deleted


def test_a_job_that_kubernetes_gives_up_is_said_with_its_reason(job):
    """With its deadline the pods go too: only the Job says why."""
    api = SimulatedApi(["Pending"])
    message = "Job was active longer than specified deadline"
    failed = {"type": "Failed", "status": "True", "reason": "DeadlineExceeded", "message": message}
    api.job = {"conditions": [failed]}
    with pytest.raises(RdmaError, match=f"has ended the Job {job['metadata']['name']}: DeadlineExceeded: {message}"):
        collective_run.Collective(api, job).run()
    assert api.deleted


def test_half_a_log_is_no_measurement(job):
    api = SimulatedApi(["Running", "Succeeded"])
    api.first_line = "Avg bus bandwidth : 40\n"
    with pytest.raises(RdmaError, match="is not complete, so nothing was measured") as caught:
        collective_run.Collective(api, job).run()
    assert "containerLogMaxSize" in caught.value.fix


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"unschedulable": True}, "node2 takes no new pods: it is cordoned"),
        ({"taints": [{"key": "down", "effect": "NoSchedule"}]}, "it has the taint down:NoSchedule"),
        (None, "node2 takes no new pods: it is not in the cluster"),
    ],
)
def test_a_node_that_takes_no_pods_is_said_at_once(job, spec, why):
    api = SimulatedApi(["Pending"])
    api.specs = {"node1": {}, **({"node2": spec} if spec is not None else {})}
    with pytest.raises(RdmaError, match=why):
        collective_run.Collective(api, job).run()
    assert api.made == []


def test_tolerations_and_secrets_are_in_every_pod(job):
    spec = job["spec"]["template"]["spec"]
    assert spec["tolerations"] == [{"key": "gpu", "operator": "Exists"}, GATE]
    assert spec["imagePullSecrets"] == [{"name": "ours"}]


def test_a_missing_plan_is_refused(params):
    with pytest.raises(RdmaError):
        collective_job.job_of({**params, "plan_dir": "/nowhere"})


def test_check_mode_makes_nothing(params):
    options = {**params, "kubeconfig": "/nowhere", "context": None}
    assert [body["kind"] for body in collective_job.run(options, check_mode=True)["objects"]] == ["Job"]
