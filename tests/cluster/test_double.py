# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hold the double to what a real kube-apiserver 1.36.2 answered; the same calls run against a real cluster."""

from __future__ import annotations

import json
import typing as t
import uuid
from pathlib import Path

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


def refused(call: Callable[[], object]) -> tuple[int, Json]:
    """Return code and Status of a call that must fail."""
    with pytest.raises(ApiException) as caught:
        call()
    return caught.value.status, json.loads(caught.value.body)


def test_row_01_and_02_apply_makes_and_then_changes_nothing(api: Api) -> None:
    name = api.name()
    first = api.apply(name, a="1")
    second = api.apply(name, a="1")
    assert first["metadata"]["managedFields"][0]["operation"] == "Apply"
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_row_03_another_manager_and_value_is_a_conflict(api: Api) -> None:
    name = api.name()
    api.apply(name, a="1")
    code, status = refused(lambda: api.apply(name, "two", a="2"))
    assert code == 409
    assert [cause["reason"] for cause in status["details"]["causes"]] == ["FieldManagerConflict"]
    assert status["details"]["causes"][0]["field"] == ".data.a"
    assert '"one"' in status["details"]["causes"][0]["message"]


def test_row_04_the_same_value_is_owned_together(api: Api) -> None:
    name = api.name()
    api.apply(name, a="1")
    both = api.apply(name, "two", a="1")
    owners = {row["manager"] for row in both["metadata"]["managedFields"] if "f:a" in row["fieldsV1"].get("f:data", {})}
    assert owners == {"one", "two"}


def test_row_05_a_field_dropped_by_its_only_owner_goes(api: Api) -> None:
    name = api.name()
    api.apply(name, a="1", b="2")
    assert api.apply(name, a="1")["data"] == {"a": "1"}


def test_row_05_a_field_that_another_owns_too_stays(api: Api) -> None:
    name = api.name()
    api.apply(name, a="1", b="2")
    api.apply(name, "two", b="2")
    assert api.apply(name, a="1")["data"] == {"a": "1", "b": "2"}


def test_row_06_force_takes_ownership(api: Api) -> None:
    name = api.name()
    api.apply(name, a="1")
    taken = api.apply(name, "two", force=True, a="2")
    owners = {
        row["manager"] for row in taken["metadata"]["managedFields"] if "f:a" in row["fieldsV1"].get("f:data", {})
    }
    assert taken["data"] == {"a": "2"}
    assert owners == {"two"}


def test_row_07_a_dry_run_is_answered_and_not_stored(api: Api) -> None:
    name = api.name()
    done = api.call("PATCH", api.path(name), api.body(name, a="1"), APPLY, fieldManager="one", dryRun="All")
    assert done["data"] == {"a": "1"}
    assert refused(lambda: api.call("GET", api.path(name)))[0] == 404


def test_row_08_an_unknown_field_is_a_500(api: Api) -> None:
    body = {**api.body("x"), "bogus": 1}
    for strict in ("Ignore", "Strict"):
        code, status = refused(
            lambda strict=strict: api.call(
                "PATCH", api.path("x"), body, APPLY, fieldManager="one", fieldValidation=strict
            )
        )
        assert code == 500
        assert "failed to create typed patch object" in status["message"]
        assert "field not declared in schema" in status["message"]


def test_row_09_no_field_manager_is_a_422(api: Api) -> None:
    assert refused(lambda: api.call("PATCH", api.path("x"), api.body("x"), APPLY))[0] == 422


def test_row_10_another_name_in_the_body_is_a_400(api: Api) -> None:
    assert refused(lambda: api.call("PATCH", api.path("x"), api.body("y"), APPLY, fieldManager="one"))[0] == 400


def test_row_11_a_stale_resource_version_is_a_409(api: Api) -> None:
    name = api.name()
    old = api.apply(name, a="1")["metadata"]["resourceVersion"]
    api.apply(name, a="2")
    body = api.body(name, a="3")
    body["metadata"]["resourceVersion"] = old
    assert refused(lambda: api.call("PUT", api.path(name), body))[0] == 409
    assert refused(lambda: api.call("PATCH", api.path(name), body, APPLY, fieldManager="one"))[0] == 409


def test_row_12_a_wrong_type_is_a_500(api: Api) -> None:
    body = {**api.body("x"), "data": ["no", "map"]}
    code, status = refused(lambda: api.call("PATCH", api.path("x"), body, APPLY, fieldManager="one"))
    assert code == 500
    assert "failed to create typed patch object" in status["message"]


def test_row_13_a_bad_name_is_a_422(api: Api) -> None:
    assert refused(lambda: api.apply("Bad_Name", a="1"))[0] == 422


def test_row_14_a_merge_patch_takes_ownership_as_update(api: Api) -> None:
    name = api.name()
    api.apply(name, a="1")
    done = api.call("PATCH", api.path(name), {"data": {"a": "2"}}, MERGE, fieldManager="two")
    rows = [row for row in done["metadata"]["managedFields"] if "f:a" in row["fieldsV1"].get("f:data", {})]
    assert [(row["manager"], row["operation"]) for row in rows] == [("two", "Update")]


def test_row_15_a_list_has_pages(api: Api) -> None:
    names = sorted(api.name() for _number in range(5))
    for name in names:
        api.apply(name, a="1")
    query = {"labelSelector": f"railops-test={api.run}", "limit": "2"}
    seen: list[str] = []
    pages = 0
    while True:
        page = api.call("GET", api.path(), **query)
        assert page["kind"] == "ConfigMapList"
        seen += [item["metadata"]["name"] for item in page["items"]]
        pages += 1
        if not page["metadata"].get("continue"):
            break
        query["continue"] = page["metadata"]["continue"]
    assert seen == names
    assert pages == 3


def test_row_16_deletecollection_by_label(api: Api) -> None:
    api.apply(api.name(), a="1")
    selector = f"railops-test={api.run}"
    api.call("DELETE", api.path(), labelSelector=selector)
    assert api.call("GET", api.path(), labelSelector=selector)["items"] == []


def test_row_17_delete_of_a_missing_object_is_a_404(api: Api) -> None:
    assert refused(lambda: api.call("DELETE", api.path(api.name())))[0] == 404


def test_defaults_of_a_crd_are_filled_in_and_unknown_fields_pruned(api: Api, double: t.Any) -> None:
    if "properties" not in double.store.kind_of(SPIDERPOOL, "SpiderIPPool").schema["properties"].get("spec", {}):
        pytest.skip("stub CRDs declare no fields")
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
    double.controllers.hold_namespaces = True
    double.put("v1", "Namespace", "going")
    api.call("DELETE", "/api/v1/namespaces/going")
    code, status = refused(lambda: api.call("POST", api.path(namespace="going"), api.body("x")))
    assert code == 403
    assert status["details"]["causes"][0]["reason"] == "NamespaceTerminating"
