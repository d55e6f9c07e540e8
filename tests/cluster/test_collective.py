# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of an MPI program over pods, held to a real API: dry runs refuse unknown fields, and what owns what."""

from __future__ import annotations

import os
import time
import typing as t

import env
import pytest
import yaml
from kubernetes import config as kube_config
from kubernetes import dynamic
from kubernetes.dynamic.exceptions import NotFoundError

from ansible_collections.railops.rdma.plugins.module_utils._pods.collective import belongings, indexed_job
from ansible_collections.railops.rdma.plugins.module_utils._pods.collective_run import make_key

REAL = os.environ.get("RAILOPS_TEST_KUBECONFIG")
pytestmark = pytest.mark.skipif(not REAL, reason="needs a real API: make test CHECK=api")
CRD = env.SHARED / "crds-workload/kubeflow.org_mpijobs.yaml"
TEMPLATE = {
    "metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": "spiderpool/fabric-rail1"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example/your-image",
                "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}},
                "resources": {"limits": {"spidernet.io/rail1": "1"}},
            }
        ]
    },
}


PARAMS = {
    "fabric": "fabric",
    "namespace": "default",
    "nodes": ["node1", "node2"],
    "image": "registry.example/nccl",
    "words": ["mpirun", "--host", "{hosts}", "-np", "{count}", "all_reduce_perf"],
    "limits": {"nvidia.com/gpu": "8"},
    "seconds": 300,
    "tolerations": [],
    "image_pull_secrets": [],
}


@pytest.fixture
def job() -> dict[str, t.Any]:
    return indexed_job(PARAMS, TEMPLATE, {"NCCL_IB_HCA": "=mlx5_0:1"})


@pytest.fixture(scope="module")
def api() -> t.Iterator[t.Any]:
    made = kube_config.new_client_from_config(REAL)
    with made:
        yield dynamic.DynamicClient(made)


def applied(api: t.Any, body: dict[str, t.Any], **more: t.Any) -> dict[str, t.Any]:
    """Send an object as the collection does: the server refuses fields that its schema does not have."""
    resource = api.resources.get(api_version=body["apiVersion"], kind=body["kind"])
    done = api.create(resource, body=body, namespace="default", query_params=[("fieldValidation", "Strict")], **more)
    return t.cast("dict[str, t.Any]", done.to_dict())


def there(api: t.Any, kind: str, name: str) -> bool:
    resource = api.resources.get(api_version="v1", kind=kind)
    try:
        return bool(api.get(resource, name=name, namespace="default"))
    except NotFoundError:
        return False


def test_the_job_is_taken(api, job):
    made = applied(api, job, dry_run="All")
    assert made["spec"]["completionMode"] == "Indexed"
    assert made["spec"]["template"]["spec"]["subdomain"] == job["metadata"]["name"]


@pytest.mark.usefixtures("controllers")
def test_what_belongs_to_it_is_taken_and_owned(api, job):
    # Nobody shall start its pods.
    job["spec"] = {**job["spec"], "suspend": True}
    uid = applied(api, job)["metadata"]["uid"]
    resource = api.resources.get(api_version="batch/v1", kind="Job")
    try:
        for body in belongings(job, uid, *make_key()):
            assert applied(api, body)["metadata"]["ownerReferences"][0]["uid"] == uid
    finally:
        api.delete(
            resource, name=job["metadata"]["name"], namespace="default", body={"propagationPolicy": "Background"}
        )
        # They go with it.
        until = time.monotonic() + 300
        while left := [kind for kind in ("Secret", "Service") if there(api, kind, job["metadata"]["name"])]:
            assert time.monotonic() < until, left
            time.sleep(0.5)


@pytest.mark.skipif(not CRD.exists(), reason=env.NO_CRDS)
def test_the_mpijob_of_the_docs_is_taken(live):
    text = (env.CHECKOUT / "docs/accept.md").read_text(encoding="utf-8")
    (shown,) = [block for block in text.split("```yaml\n")[1:] if "kind: MPIJob" in block]
    body = yaml.safe_load(shown.partition("```")[0])
    with live.kind(CRD):
        made = applied(live.client, body, dry_run="All")
        assert made["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] == 2
        body["spec"]["slots"] = 1
        with pytest.raises(dynamic.exceptions.BadRequestError, match="unknown field"):
            applied(live.client, body, dry_run="All")
