# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Beside Spiderpool's real controller and webhooks: what is planned is stored as planned, and waits name what is wrong.

RAILOPS_REAL_FABRICS says how many random fabrics are stored (20), RAILOPS_REAL_SEED draws others than on each push;
RAILOPS_REAL_COMPLETE=1 stores all pools of the example inventories instead of some of each rail. At most 250 pools
exist at once: the webhook lists all of them at every create.
"""

from __future__ import annotations

import json
import os
import typing as t

import hypothesis
import pytest
import yaml
from conftest import SPIDERPOOL, Live, Run
from hypothesis import HealthCheck, Phase, assume, given, settings
from kubernetes.client.exceptions import ApiException
from simulated import Api

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.plugins.modules import cluster_wait
from ansible_collections.railops.rdma.tests.admission import samples
from ansible_collections.railops.rdma.tests.admission.admission import Admission, AdmissionError
from ansible_collections.railops.rdma.tests.unit.fabrics import plan
from ansible_collections.railops.rdma.tests.unit.random_fabrics import fabrics

if t.TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("spiderpool")

Json = dict[str, t.Any]
FABRICS = int(os.environ.get("RAILOPS_REAL_FABRICS", "20"))
COMPLETE = bool(os.environ.get("RAILOPS_REAL_COMPLETE"))
MOST = 250
INVENTORIES = (
    "demo",
    "exclusive",
    "guests",
    "infiniband",
    "infiniband-ipoib",
    "shared",
    "sriov-roce",
    "sriov-roce-shared",
    "two-zones-dual-stack",
)
PLURALS = {
    "SpiderIPPool": "spiderippools",
    "SpiderReservedIP": "spiderreservedips",
    "SpiderMultusConfig": "spidermultusconfigs",
}


def answer(api: Api, obj: Json) -> Json | str:
    """Return what the server would store, or its refusal."""
    space = obj["metadata"].get("namespace")
    where = f"namespaces/{space}/" if space else ""
    path = f"/apis/{obj['apiVersion']}/{where}{PLURALS[obj['kind']]}"
    try:
        return api.call("POST", path, obj, dryRun="All", fieldValidation="Strict")
    except ApiException as exc:
        return str(json.loads(exc.body)["message"])


def validated(obj: Json) -> Json | str:
    """Return the same of the collection's own rules."""
    try:
        return Admission().create(obj)
    except AdmissionError as exc:
        return exc.message


def matters(made: Json | str) -> Json | str:
    """Return what the webhooks decide of an object."""
    if isinstance(made, str):
        return "refused"
    meta = made["metadata"]
    return {"spec": made["spec"], "labels": meta.get("labels"), "finalizers": meta.get("finalizers")}


def test_the_validator_and_the_webhooks_make_the_same_of_every_sample(kubeconfig: Path) -> None:
    api = Api(kubeconfig)
    rows = (*samples.DOCUMENTED, *samples.REFUSED, *samples.NORMAL, *samples.FILLED)
    assert len(rows) > 30
    differing = []
    for row in rows:
        real, ours = answer(api, row), validated(row)
        if matters(real) != matters(ours):
            differing.append(f"{json.dumps(row)}\n  webhook:   {real}\n  validator: {ours}")
    assert not differing, "\n".join(differing)


def stored_twice(objects: Run, rows: list[Json], fabric: str) -> None:
    """Store objects, find them unchanged, and take them away."""
    try:
        first = objects(rows, prune=True)
        assert not first.get("failed"), first["msg"]
        assert first["summary"]["created"] == len(rows), first["summary"]
        again = objects(rows, prune=True)
        assert not again["changed"], json.dumps(again["changes"], indent=1)[:3000]
    finally:
        gone = objects(state="absent", prune=True, fabric=fabric)
        assert not gone.get("failed"), gone["msg"]


def some(rows: list[Json], each: int) -> list[Json]:
    """Return the objects of a plan with not more than `each` pools of a rail and family."""
    count: dict[str, int] = {}
    found = []
    for row in rows:
        if row["kind"] == "SpiderIPPool":
            rail = row["metadata"]["name"].partition("-v")[0] + str(row["spec"]["ipVersion"])
            count[rail] = count.get(rail, 0) + 1
            if count[rail] > each:
                continue
        found.append(row)
    return found


def pools(rows: list[Json]) -> int:
    return sum(row["kind"] == "SpiderIPPool" for row in rows)


@pytest.mark.parametrize("inventory", INVENTORIES)
def test_an_example_is_stored_as_it_is_planned(inventory: str, objects: Run, plans: t.Callable[[str], Path]) -> None:
    folder = plans(inventory) / "fabric/cluster"
    names = ("reservedips", "ippools", "multusconfigs", "sriovpolicies")
    rows = [
        row
        for name in names
        for row in yaml.safe_load_all((folder / f"{name}.yaml").read_text(encoding="utf-8"))
        if row
    ]
    if not COMPLETE:
        stored_twice(objects, some(rows, 2), "fabric")
        return
    # In parts, where all of them are too many.
    every = [row for row in rows if row["kind"] == "SpiderIPPool"]
    others = [row for row in rows if row["kind"] != "SpiderIPPool"]
    for start in range(0, max(len(every), 1), MOST):
        stored_twice(objects, [*others, *every[start : start + MOST]], "fabric")


def test_random_fabrics_are_stored_as_they_are_planned(objects: Run, seed: t.Callable[[str], int]) -> None:
    first = seed("RAILOPS_REAL_SEED")
    done: list[int] = []

    @hypothesis.seed(first)
    @settings(
        max_examples=FABRICS,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(fabrics())
    def store(declared: tuple[Json, list[Json]]) -> None:
        try:
            files = plan(*declared, report=False).files
        except InputError:
            assume(False)
        rows = [
            row
            for name in ("reservedips", "ippools", "multusconfigs", "sriovpolicies")
            for row in yaml.load_all(files[f"cluster/{name}.yaml"], yaml.CSafeLoader)
            if row
        ]
        rows = some(rows, 4)
        assume(pools(rows) <= MOST)
        stored_twice(objects, rows, "fabric")
        done.append(pools(rows))

    store()
    print(f"{len(done)} fabrics, {sum(done)} pools, seed {first}")


class TestWaiting:
    """cluster_wait beside a controller that really ends, and nodes that are down."""

    CONTROLLER: t.ClassVar[Json] = {"kind": "Deployment", "name": "spiderpool-controller", "namespace": "spiderpool"}
    AGENT: t.ClassVar[Json] = {"kind": "DaemonSet", "name": "spiderpool-agent", "namespace": "spiderpool"}
    COORDINATOR: t.ClassVar[Json] = {"kind": "SpiderCoordinator", "name": "default"}

    def test_a_controller_that_ends_is_named_with_the_end_of_its_log(
        self, module: t.Callable[..., Json], live: Live
    ) -> None:
        kind, name = "Deployment", self.CONTROLLER["name"]
        sound = live.of(kind, "apps/v1").get(name=name, namespace="spiderpool").to_dict()
        path = "/spec/template/spec/containers/0/args"
        args = sound["spec"]["template"]["spec"]["containers"][0]["args"]
        live.json_patch(kind, name, [{"op": "add", "path": f"{path}/-", "value": "--nonsense"}], "spiderpool")
        try:
            done = module(cluster_wait, parts=[self.CONTROLLER], timeout=8)
        finally:
            live.json_patch(kind, name, [{"op": "replace", "path": path, "value": args}], "spiderpool")
        assert done["failed"]
        reported = done["msg"]
        assert "1 still old, and nothing has moved for 8 s: pod spiderpool-controller-" in reported
        assert "container spiderpool-controller ended with exit code 1" in reported
        assert "unknown flag: --nonsense" in reported
        assert "kubectl -n spiderpool logs" in done["fix"]
        assert not module(cluster_wait, parts=[self.CONTROLLER], timeout=60).get("failed")

    def test_nodes_that_are_down_are_named_and_a_rollout_goes_on_without_them(
        self, module: t.Callable[..., Json], live: Live
    ) -> None:
        live.down("node8")
        try:
            template = {"metadata": {"annotations": {"railops.io/test": "another"}}}
            live.patch("DaemonSet", "spiderpool-agent", {"spec": {"template": template}}, namespace="spiderpool")
            done = module(cluster_wait, parts=[self.AGENT], timeout=60)
        finally:
            live.up("node8")
        assert not done.get("failed"), done["msg"]
        assert done["down"] == ["node8"]
        # It comes back, and by itself gets what the others have.
        done = module(cluster_wait, parts=[self.AGENT], timeout=60)
        assert done["down"] == []

    def test_a_coordinator_that_is_not_ready_reports_what_repairs_it(
        self, module: t.Callable[..., Json], live: Live
    ) -> None:
        maps = live.of("ConfigMap", "v1")
        found = maps.get(name="kubeadm-config", namespace="kube-system").to_dict()
        maps.delete(name="kubeadm-config", namespace="kube-system")
        try:
            # It looks again when it is changed.
            live.patch("SpiderCoordinator", "default", {"spec": {"podCIDRType": "none"}})
            live.until(lambda: live.phase() == "NotReady")
            done = module(cluster_wait, parts=[self.COORDINATOR], timeout=2)
        finally:
            body = {"metadata": {"name": "kubeadm-config"}, "data": found["data"]}
            maps.create(body=body, namespace="kube-system")
            live.patch("SpiderCoordinator", "default", {"spec": {"podCIDRType": "auto"}})
        assert "SpiderCoordinator default is NotReady" in done["msg"]
        assert "No kube-controller-manager pod found" in done["msg"]
        assert "spiderpool_pod_cidrs and spiderpool_service_cidrs" in done["fix"]
        assert not module(cluster_wait, parts=[self.COORDINATOR], timeout=60).get("failed")


def test_addresses_that_pods_hold_keep_a_pool(objects: Run, live: Live) -> None:
    """What the real controller does with a pool that is asked to go while it lends an address."""
    body: Json = {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderIPPool",
        "metadata": {
            "name": "lent",
            "labels": {"app.kubernetes.io/managed-by": "railops.rdma", "railops.io/fabric": "f"},
        },
        "spec": {"subnet": "192.0.2.0/29", "ips": ["192.0.2.2-192.0.2.6"]},
    }
    assert objects([body])["changed"]
    live.allocate("lent", ["192.0.2.2"])
    assert [row["name"] for row in objects(state="absent", prune=True, fabric="f")["kept"]] == ["lent"]
    live.allocate("lent", ())
    assert objects(state="absent", prune=True, fabric="f")["summary"]["deleted"] == 1
