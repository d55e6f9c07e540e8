# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold the double to what a real kube-apiserver 1.36.2 answered; the same calls run against a real cluster."""

from __future__ import annotations

import json
import typing as t
import uuid
from pathlib import Path

import env
import played
import pytest
from kubernetes.client.exceptions import ApiException

if t.TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, t.Any]
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"

pytestmark = pytest.mark.usefixtures("installed")


class Api:
    """ConfigMaps and pools of one test, cleared away after it."""

    def __init__(self, kubeconfig: Path) -> None:
        self._api = played.Api(kubeconfig)
        self.run = uuid.uuid4().hex[:8]
        self.labels = {"railops-test": self.run}

    def call(self, method: str, path: str, body: t.Any = None, content: str = "application/json", **query: str) -> Json:
        return t.cast("Json", json.loads(self._api.raw(method, path, body, content, **query).data))

    def path(self, name: str = "", namespace: str = "default") -> str:
        return f"/api/v1/namespaces/{namespace}/configmaps" + (f"/{name}" if name else "")

    def body(self, name: str, **data: str) -> Json:
        meta = {"name": name, "labels": dict(self.labels)}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

    def apply(self, name: str, manager: str = "one", force: bool = False, **data: str) -> Json:
        query = {"fieldManager": manager, "force": str(force).lower()}
        return self.call("PATCH", self.path(name), self.body(name, **data), APPLY, **query)

    def name(self) -> str:
        return f"rr-cluster-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def api(kubeconfig: Path) -> t.Iterator[Api]:
    made = Api(kubeconfig)
    yield made
    made.call("DELETE", made.path(), labelSelector=f"railops-test={made.run}")


@pytest.fixture
def name(api: Api) -> str:
    """Give the name of an object that is not there yet."""
    return api.name()


def owners(made: Json) -> set[tuple[str, str]]:
    """Return by manager and operation who owns data.a."""
    rows = made["metadata"]["managedFields"]
    return {(row["manager"], row["operation"]) for row in rows if "f:a" in row["fieldsV1"].get("f:data", {})}


def refused(call: Callable[[], object]) -> tuple[int, Json]:
    """Return code and Status of a call that must fail."""
    with pytest.raises(ApiException) as caught:
        call()
    return caught.value.status, json.loads(caught.value.body)


def test_row_01_and_02_apply_makes_and_then_changes_nothing(api: Api, name: str) -> None:
    first = api.apply(name, a="1")
    second = api.apply(name, a="1")
    assert first["metadata"]["managedFields"][0]["operation"] == "Apply"
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_row_03_another_manager_and_value_is_a_conflict(api: Api, name: str) -> None:
    api.apply(name, a="1")
    code, status = refused(lambda: api.apply(name, "two", a="2"))
    (cause,) = status["details"]["causes"]
    assert (code, cause["reason"], cause["field"]) == (409, "FieldManagerConflict", ".data.a")
    assert '"one"' in cause["message"]


def test_row_04_the_same_value_is_owned_together(api: Api, name: str) -> None:
    api.apply(name, a="1")
    assert owners(api.apply(name, "two", a="1")) == {("one", "Apply"), ("two", "Apply")}


def test_row_05_a_field_dropped_by_its_only_owner_goes(api: Api, name: str) -> None:
    api.apply(name, a="1", b="2")
    assert api.apply(name, a="1")["data"] == {"a": "1"}


def test_row_05_a_field_that_another_owns_too_stays(api: Api, name: str) -> None:
    api.apply(name, a="1", b="2")
    api.apply(name, "two", b="2")
    assert api.apply(name, a="1")["data"] == {"a": "1", "b": "2"}


def test_row_06_force_takes_ownership(api: Api, name: str) -> None:
    api.apply(name, a="1")
    taken = api.apply(name, "two", force=True, a="2")
    assert (taken["data"], owners(taken)) == ({"a": "2"}, {("two", "Apply")})


def test_row_07_a_dry_run_is_answered_and_not_stored(api: Api, name: str) -> None:
    done = api.call("PATCH", api.path(name), api.body(name, a="1"), APPLY, fieldManager="one", dryRun="All")
    assert done["data"] == {"a": "1"}
    assert refused(lambda: api.call("GET", api.path(name)))[0] == 404


@pytest.mark.parametrize(
    ("wrong", "query", "told"),
    [
        pytest.param({"bogus": 1}, {"fieldValidation": "Ignore"}, "not declared in schema", id="row-08-unknown-field"),
        pytest.param({"bogus": 1}, {"fieldValidation": "Strict"}, "not declared in schema", id="row-08-and-strict"),
        pytest.param({"data": ["no", "map"]}, {}, "", id="row-12-wrong-type"),
    ],
)
def test_what_cannot_be_typed_is_a_500(api: Api, wrong: Json, query: dict[str, str], told: str) -> None:
    body = {**api.body("x"), **wrong}
    code, status = refused(lambda: api.call("PATCH", api.path("x"), body, APPLY, fieldManager="one", **query))
    assert (code, "failed to create typed patch object" in status["message"]) == (500, True)
    assert told in status["message"]


def test_row_09_no_field_manager_is_a_422(api: Api) -> None:
    assert refused(lambda: api.call("PATCH", api.path("x"), api.body("x"), APPLY))[0] == 422


def test_row_10_another_name_in_the_body_is_a_400(api: Api) -> None:
    assert refused(lambda: api.call("PATCH", api.path("x"), api.body("y"), APPLY, fieldManager="one"))[0] == 400


def test_row_11_a_stale_resource_version_is_a_409(api: Api, name: str) -> None:
    old = api.apply(name, a="1")["metadata"]["resourceVersion"]
    api.apply(name, a="2")
    body = api.body(name, a="3")
    body["metadata"]["resourceVersion"] = old
    assert refused(lambda: api.call("PUT", api.path(name), body))[0] == 409
    assert refused(lambda: api.call("PATCH", api.path(name), body, APPLY, fieldManager="one"))[0] == 409


def test_row_13_a_bad_name_is_a_422(api: Api) -> None:
    assert refused(lambda: api.apply("Bad_Name", a="1"))[0] == 422


def test_row_14_a_merge_patch_takes_ownership_as_update(api: Api, name: str) -> None:
    api.apply(name, a="1")
    done = api.call("PATCH", api.path(name), {"data": {"a": "2"}}, MERGE, fieldManager="two")
    assert owners(done) == {("two", "Update")}


def test_row_15_a_list_has_pages(api: Api) -> None:
    names = sorted(api.name() for _number in range(5))
    for name in names:
        api.apply(name, a="1")
    query = {"labelSelector": f"railops-test={api.run}", "limit": "2"}
    pages = [api.call("GET", api.path(), **query)]
    while more := pages[-1]["metadata"].get("continue"):
        pages.append(api.call("GET", api.path(), **query, **{"continue": more}))
    assert [page["kind"] for page in pages] == ["ConfigMapList"] * 3
    assert [item["metadata"]["name"] for page in pages for item in page["items"]] == names


def test_row_16_deletecollection_by_label(api: Api) -> None:
    api.apply(api.name(), a="1")
    selector = f"railops-test={api.run}"
    api.call("DELETE", api.path(), labelSelector=selector)
    assert api.call("GET", api.path(), labelSelector=selector)["items"] == []


def test_row_17_delete_of_a_missing_object_is_a_404(api: Api) -> None:
    assert refused(lambda: api.call("DELETE", api.path(api.name())))[0] == 404


def test_defaults_of_a_crd_are_filled_in_and_unknown_fields_pruned(api: Api, double: t.Any) -> None:
    if "properties" not in double.store.kind_of(SPIDERPOOL, "SpiderIPPool").schema["properties"].get("spec", {}):
        pytest.skip(env.NO_CRDS)
    path = f"/apis/{SPIDERPOOL}/spiderippools"
    body = {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderIPPool",
        "metadata": {"name": "a"},
        "spec": {"subnet": "192.0.2.0/27", "nonsense": True},
    }
    made = api.call("POST", path, body)
    assert made["spec"]["disable"] is False
    assert "nonsense" not in made["spec"]


def test_a_creation_in_a_terminating_namespace_is_forbidden(api: Api, double: t.Any) -> None:
    double.put("v1", "Namespace", "going")
    double.put("v1", "ConfigMap", "held", "going", metadata={"finalizers": ["railops.io/test"]})
    api.call("DELETE", "/api/v1/namespaces/going")
    code, status = refused(lambda: api.call("POST", api.path(namespace="going"), api.body("x")))
    assert (code, status["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")


@pytest.mark.parametrize(
    ("method", "path", "what"),
    [
        pytest.param(
            "GET", "/apis/apps/v1/namespaces/default/deployments/x/scale", "GET of deployments/scale", id="scale"
        ),
        pytest.param("POST", "/api/v1/namespaces/default/pods/x/binding", "POST of pods/binding", id="binding"),
        pytest.param("PUT", "/api/v1/nodes/x/finalize", "PUT of nodes/finalize", id="another kind's"),
        pytest.param("GET", "/api/v1/namespaces/default/pods/x/log", "GET of pods/log", id="pods that are not played"),
        pytest.param("GET", "/api/v1/persistentvolumes", "persistentvolumes of the core/v1", id="a kind"),
        pytest.param("GET", "/apis/networking.k8s.io/v1/ingresses", "ingresses of networking.k8s.io/v1", id="a group"),
    ],
)
def test_what_the_double_has_no_rule_for_is_refused_by_name(
    api: Api, double: t.Any, method: str, path: str, what: str
) -> None:
    """A real server may answer it: a test that asks for it stands on nothing."""
    code, status = refused(lambda: api.call(method, path, {} if method != "GET" else None))
    assert (code, status["message"]) == (501, f"the API double has no rule for {what}")
    assert double.store.writes == double.writes()
