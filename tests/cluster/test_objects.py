# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""cluster_objects against an API: growth, drift, conflicts, pools in use, faults, and runs that end halfway."""

from __future__ import annotations

import copy
import json
import re
import typing as t
import uuid
from pathlib import Path

import env
import pytest
import yaml
from admission import Webhooks
from api_controllers import allocate
from api_double import ApiDouble, Fault
from api_kinds import crd
from conftest import REAL, SPIDERPOOL, Live
from fabric_objects import config, fabric_of, pool
from kubernetes.config import incluster_config

from ansible_collections.railops.rdma.plugins.module_utils._cluster import client, run

Json = dict[str, t.Any]
Run = t.Callable[..., dict[str, t.Any]]

pytestmark = pytest.mark.usefixtures("installed")
Restricted = t.Callable[[str], str]
Subnets = t.Callable[[], dict[int, str]]


@pytest.fixture
def fabric(objects: Run, live: Live) -> t.Iterator[str]:
    name = f"rr-{uuid.uuid4().hex[:6]}"
    yield name
    if REAL:
        live.clear(name)
        objects(state="absent", prune=True, fabric=name)


@pytest.fixture
def one(objects: Run, fabric: str) -> Json:
    """Give the pool of node1 and rail1, applied."""
    made = pool(fabric, 1, 1)
    ok(objects([made]))
    return made


def named(row: Json, name: str) -> Json:
    """Return an object under another name."""
    return {**row, "metadata": {**row["metadata"], "name": name}}


def ok(result: Json) -> Json:
    assert not result.get("failed"), result["msg"]
    return result


def did(result: Json) -> dict[str, list[str]]:
    """Return the names by action."""
    found: dict[str, list[str]] = {}
    for row in result["changes"]:
        found.setdefault(row["action"], []).append(row["name"])
    return {action: sorted(names) for action, names in found.items()}


class TestConverging:
    def test_first_run_makes_all_and_the_second_changes_nothing(self, objects: Run, live: Live, fabric: str) -> None:
        wanted = fabric_of(fabric, (1, 2), 2)
        predicted = ok(objects(wanted, check=True, prune=True))
        assert live.versions(fabric) == {}
        first = ok(objects(wanted, prune=True))
        assert (predicted["diff"], predicted["summary"]) == (first["diff"], first["summary"])
        assert (first["changed"], first["summary"]["created"]) == (True, 7)
        before = live.versions(fabric)
        second = ok(objects(wanted, prune=True))
        assert (second["changed"], second["summary"]["unchanged"]) == (False, 7)
        assert live.versions(fabric) == before

    def test_a_node_retired(self, objects: Run, live: Live, fabric: str) -> None:
        ok(objects(fabric_of(fabric, (1, 2, 3), 2), prune=True))
        before = live.versions(fabric)
        shrunk = ok(objects(fabric_of(fabric, (1, 3), 2), prune=True))
        gone = [f"{fabric}-rail1-v4-node2", f"{fabric}-rail2-v4-node2"]
        assert did(shrunk) == {"delete": gone}
        left = {key: value for key, value in before.items() if key.split("/")[1] not in gone}
        assert live.versions(fabric) == left

    def test_one_value_changed(self, objects: Run, fabric: str) -> None:
        wanted = fabric_of(fabric, (1, 2), 1)
        ok(objects(wanted))
        wanted = copy.deepcopy(wanted)
        wanted[1]["spec"]["ips"] = [wanted[1]["spec"]["ips"][0].replace(".30", ".20")]
        changed = ok(objects(wanted))
        assert did(changed) == {"apply": [f"{fabric}-rail1-v4-node1"]}
        assert changed["changes"][0]["fields"] == ["spec.ips"]
        assert "spec.ips" in changed["diff"]["prepared"]

    def test_a_field_no_longer_wanted_goes(self, objects: Run, live: Live, one: Json) -> None:
        less = copy.deepcopy(one)
        del less["spec"]["multusName"]
        assert ok(objects([less]))["changes"][0]["fields"] == ["spec.multusName"]
        assert live.of("SpiderIPPool").get(name=one["metadata"]["name"]).spec.multusName is None
        assert not ok(objects([less]))["changed"]

    def test_a_stray_pool_in_the_way_goes_first(self, objects: Run, fabric: str, one: Json) -> None:
        other = f"{fabric}-rail1-v4-other"
        result = ok(objects([named(one, other)], prune=True))
        assert did(result) == {"create": [other], "delete": [one["metadata"]["name"]]}

    def test_absent_removes_only_this_fabric(self, objects: Run, live: Live, fabric: str) -> None:
        ok(objects(fabric_of(fabric, (1,), 1)))
        other = pool(f"{fabric}-b", 2, 9)
        ok(objects([other]))
        assert ok(objects(state="absent", prune=True, fabric=fabric))["summary"]["deleted"] == 3
        assert live.versions(fabric) == {}
        assert list(live.versions(f"{fabric}-b")) == [f"SpiderIPPool/{other['metadata']['name']}"]
        assert not ok(objects(state="absent", prune=True, fabric=fabric))["changed"]
        ok(objects(state="absent", prune=True, fabric=f"{fabric}-b"))


class TestDrift:
    def test_an_edited_pool_is_repaired_and_the_editor_named(self, objects: Run, live: Live, one: Json) -> None:
        live.patch("SpiderIPPool", one["metadata"]["name"], {"spec": {"nodeName": ["wrong"]}})
        assert ok(objects([one]))["changes"][0]["reverted"] == ["spec.nodeName (set by kubectl-edit)"]
        assert live.of("SpiderIPPool").get(name=one["metadata"]["name"]).spec.nodeName == ["node1"]
        assert not ok(objects([one]))["changed"]

    def test_an_existing_object_is_reported_and_left_and_the_rest_is_done(
        self, objects: Run, live: Live, fabric: str
    ) -> None:
        mine, foreign = pool(fabric, 1, 1), pool(fabric, 1, 2)
        spec = {**foreign["spec"], "nodeName": ["their-node"]}
        theirs = {**foreign, "metadata": {"name": foreign["metadata"]["name"]}, "spec": spec}
        live.of("SpiderIPPool").create(body=theirs, field_manager="their-tool")
        result = objects([mine, foreign], prune=True)
        assert result["failed"]
        assert result["conflicts"][0]["owner"] == "their-tool"
        assert live.of("SpiderIPPool").get(name=foreign["metadata"]["name"]).spec.nodeName == ["their-node"]
        assert live.of("SpiderIPPool").get(name=mine["metadata"]["name"]).spec.nodeName == ["node1"]
        taken = ok(objects([mine, foreign], prune=True, force=True))
        assert did(taken) == {"apply": [foreign["metadata"]["name"]]}
        assert not ok(objects([mine, foreign], prune=True))["changed"]

    def test_a_field_that_another_controller_declares_is_reported_by_field_and_owner(
        self, objects: Run, live: Live, one: Json
    ) -> None:
        resource = live.of("SpiderIPPool")
        name = one["metadata"]["name"]
        claim = {
            "apiVersion": SPIDERPOOL,
            "kind": "SpiderIPPool",
            "metadata": {"name": name},
            "spec": {"nodeName": ["x"]},
        }
        resource.server_side_apply(body=claim, name=name, field_manager="argocd", force_conflicts=True)
        result = objects([one])
        assert result["failed"]
        assert [(row["field"], row["owner"]) for row in result["conflicts"]] == [("spec.nodeName", "argocd")]
        assert "argocd" in result["msg"]
        assert resource.get(name=name).spec.nodeName == ["x"]


def take_over(live: Live, rows: list[Json], manager: str) -> None:
    """Apply objects as a GitOps controller does: by the server, under a name of its own."""
    for row in rows:
        meta = row["metadata"]
        where = {"namespace": meta["namespace"]} if "namespace" in meta else {}
        resource = live.of(row["kind"], row["apiVersion"])
        resource.server_side_apply(body=row, name=meta["name"], field_manager=manager, **where)


class TestGitOps:
    """Who owns which fields, by docs/guides/gitops.md."""

    def test_applied_by_others_and_then_by_us_changes_nothing(self, objects: Run, live: Live, fabric: str) -> None:
        wanted = fabric_of(fabric, (1, 2), 2)
        take_over(live, wanted, "argocd-controller")
        before = live.versions(fabric)
        assert len(before) == 7
        assert ok(objects(wanted, prune=True))["changed"] is False
        assert live.versions(fabric) == before


class TestPoolsInUse:
    def test_delete_narrow_and_replace_are_refused(self, objects: Run, live: Live, fabric: str) -> None:
        rows = [pool(fabric, 1, node) for node in (1, 2, 3, 4)]
        ok(objects(rows))
        for row in rows[:3]:
            live.allocate(row["metadata"]["name"], [row["spec"]["ips"][0].split("-")[0]])
        before = live.versions(fabric)
        narrow, moved = copy.deepcopy(rows[1]), named(pool(fabric, 1, 9), rows[2]["metadata"]["name"])
        narrow["spec"]["ips"] = [narrow["spec"]["ips"][0].replace("-172.17.0.62", "-172.17.0.50")]
        result = ok(objects([narrow, moved], prune=True))
        assert [(row["action"], row["name"][-5:]) for row in result["kept"]] == [
            ("delete", "node1"),
            ("narrow", "node2"),
            ("replace", "node3"),
        ]
        assert "1 address is in use (172.17.0.3 by default/app-172.17.0.3)" in result["kept"][0]["reason"]
        assert did(result) == {"delete": [rows[3]["metadata"]["name"]]}
        del before[f"SpiderIPPool/{rows[3]['metadata']['name']}"]
        assert live.versions(fabric) == before

    def test_a_pool_in_use_may_grow(self, objects: Run, live: Live, fabric: str) -> None:
        small = pool(fabric, 1, 1)
        small["spec"]["ips"] = ["172.17.0.3-172.17.0.20"]
        ok(objects([small]))
        live.allocate(small["metadata"]["name"], ["172.17.0.3"])
        assert did(ok(objects([pool(fabric, 1, 1)]))) == {"apply": [small["metadata"]["name"]]}

    def test_an_address_given_out_between_looking_and_deleting_is_seen(
        self, objects: Run, live: Live, fabric: str, one: Json, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        check = run.ApplyRun.check

        def allocate_meanwhile(self: t.Any, plan: t.Any) -> None:
            check(self, plan)
            live.allocate(one["metadata"]["name"], ["172.17.0.3"])

        monkeypatch.setattr(run.ApplyRun, "check", allocate_meanwhile)
        result = ok(objects(state="absent", prune=True, fabric=fabric))
        assert result["kept"][0]["name"] == one["metadata"]["name"]
        assert len(live.versions(fabric)) == 1


def placed(fabric: str, slots: dict[int, int]) -> list[Json]:
    """Return the pools of nodes whose slots are given."""
    return [{**pool(fabric, 1, node), "spec": pool(fabric, 1, slot)["spec"]} for node, slot in slots.items()]


class TestMovedSlots:
    """Pools that take each other's addresses; Spiderpool's webhook refuses two that overlap."""

    @pytest.fixture(autouse=True)
    def _one_at_a_time(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(run, "THREADS", 1)

    @pytest.fixture
    def subnets(self, live: Live, fabric: str) -> Subnets:
        def read() -> dict[int, str]:
            rows = live.managed("SpiderIPPool", fabric).items()
            return {int(name[-1]): row["spec"]["subnet"] for name, row in rows}

        return read

    def test_pools_move_up_and_a_new_node_gets_the_slot_left_in_one_run(
        self, objects: Run, fabric: str, subnets: Subnets
    ) -> None:
        after = placed(fabric, {1: 2, 2: 3, 3: 4, 4: 1})
        ok(objects(placed(fabric, {1: 1, 2: 2, 3: 3}), prune=True))
        ok(objects(after, prune=True))
        assert subnets() == {node: row["spec"]["subnet"] for node, row in enumerate(after, 1)}
        assert not ok(objects(after, prune=True))["changed"]

    def test_a_pool_in_use_keeps_those_that_need_its_place(
        self, objects: Run, live: Live, fabric: str, subnets: Subnets
    ) -> None:
        ok(objects(placed(fabric, {node: node for node in (1, 2, 3, 4, 5, 6)}), prune=True))
        live.allocate(f"{fabric}-rail1-v4-node3", ["172.17.0.67"])
        before = subnets()
        after = {1: 2, 2: 3, 3: 4, 4: 7, 5: 6, 6: 5}
        result = objects(placed(fabric, after), prune=True)
        assert did(result) == {"replace": [f"{fabric}-rail1-v4-node{node}" for node in (4, 5, 6)]}
        assert [row["name"][-5:] for row in result["kept"]] == ["node3"]
        assert [row["name"][-5:] for row in result["conflicts"]] == ["node1", "node2"]
        assert {node: subnets()[node] for node in (1, 2, 3)} == {node: before[node] for node in (1, 2, 3)}
        assert {node: subnets()[node] for node in (5, 6)} == {5: before[6], 6: before[5]}
        live.allocate(f"{fabric}-rail1-v4-node3", [])
        ok(objects(placed(fabric, after), prune=True))
        assert (subnets()[1], subnets()[2]) == (before[2], before[3])

    def test_an_address_given_out_meanwhile_leaves_no_node_without_pool(
        self, objects: Run, live: Live, fabric: str, subnets: Subnets, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ok(objects(placed(fabric, {1: 1, 2: 2, 3: 3}), prune=True))
        before = subnets()
        check = run.ApplyRun.check

        def allocate_meanwhile(self: t.Any, plan: t.Any) -> None:
            check(self, plan)
            live.allocate(f"{fabric}-rail1-v4-node2", ["172.17.0.35"])

        with monkeypatch.context() as patch:
            patch.setattr(run.ApplyRun, "check", allocate_meanwhile)
            result = ok(objects(placed(fabric, {1: 2, 2: 1, 3: 4}), prune=True))
        assert sorted(row["name"][-5:] for row in result["kept"]) == ["node1", "node2"]
        assert subnets() == {**before, 3: pool(fabric, 1, 4)["spec"]["subnet"]}
        live.allocate(f"{fabric}-rail1-v4-node2", [])
        ok(objects(placed(fabric, {1: 2, 2: 1, 3: 4}), prune=True))
        assert (subnets()[1], subnets()[2]) == (before[2], before[1])

    @pytest.mark.only_double("needs a scripted refusal")
    def test_a_refused_delete_leaves_no_node_without_pool(
        self, objects: Run, fabric: str, subnets: Subnets, double: ApiDouble
    ) -> None:
        ok(objects(placed(fabric, {1: 1, 2: 2}), prune=True))
        before = subnets()
        # The trial before the first write is the delete of node1.
        double.faults.append(Fault(method="DELETE", path="node2", code=403, reason="Forbidden"))
        result = objects(placed(fabric, {1: 2, 2: 1}), prune=True)
        assert result["failed"]
        assert subnets() == before
        double.faults.clear()
        ok(objects(placed(fabric, {1: 2, 2: 1}), prune=True))
        assert subnets() == {1: before[2], 2: before[1]}


REAL_WRITE = "^(?!.*dryRun)"


class Growing:
    """A fabric on a cluster of its own that changes in every way at once, and a pool that pods use."""

    def __init__(self, objects: Run, folder: Path) -> None:
        self.double = ApiDouble(nodes=["node1"], admit=Webhooks()).start()
        self.double.put("v1", "Namespace", "spiderpool")
        self._run = objects
        self._kubeconfig = str(self.double.kubeconfig(folder / "kubeconfig-growing"))
        ok(
            self._apply(
                [*(pool("rr-grow", 1, node) for node in range(1, 7)), config("rr-grow", 1), config("rr-grow", 3)]
            )
        )
        allocate(self.double.store, "rr-grow-rail1-v4-node6", ["172.17.0.163"])

    def _apply(self, wanted: list[Json]) -> Json:
        return self._run(wanted, kubeconfig=self._kubeconfig, prune=True, retry_seconds=0)

    def grow(self) -> Json:
        """Change, replace and add a pool, put one in a stray's place, remove a config; what is used stays."""
        rows = {node: pool("rr-grow", 1, node) for node in (1, 2, 3, 4, 5)}
        rows[1]["spec"]["ips"] = [rows[1]["spec"]["ips"][0].replace(".30", ".20")]
        rows[2]["spec"] = pool("rr-grow", 1, 9)["spec"]
        rows[3]["metadata"]["name"] = "rr-grow-rail1-v4-other"
        return self._apply([*rows.values(), pool("rr-grow", 1, 7), config("rr-grow", 1)])

    def state(self) -> Json:
        """Return what is there, without what differs from run to run."""
        kinds = ("SpiderIPPool", "SpiderMultusConfig")
        return {
            f"{kind}/{name}": {"spec": row["spec"], "labels": row["metadata"]["labels"]}
            for kind in kinds
            for name, row in sorted(self.double.objects(kind).items())
        }

    def writes(self) -> int:
        """Return how many writes the last change took, dry runs of deletes among them: their path does not show it."""
        writes = [path for method, path in self.double.requests if method in ("PATCH", "DELETE")]
        return len([path for path in writes if re.search(REAL_WRITE, path)]) - 8


@pytest.mark.usefixtures("scripted")
class TestFaults:
    @pytest.mark.parametrize(
        "fault",
        [
            pytest.param({"code": 429, "retry_after": 1, "reason": "TooManyRequests", "times": 3}, id="429"),
            pytest.param({"code": 500, "times": 3}, id="500"),
            pytest.param({"code": 503, "reason": "ServiceUnavailable", "times": 5}, id="503"),
            pytest.param({"code": 409, "reason": "Conflict", "times": 3}, id="409"),
            pytest.param({"drop": True, "times": 3}, id="dropped"),
            pytest.param({"drop_after": True, "times": 3}, id="answer-lost"),
        ],
    )
    def test_a_passing_fault_is_outlived(
        self, objects: Run, live: Live, fabric: str, double: ApiDouble, fault: Json
    ) -> None:
        double.faults.append(Fault(method="PATCH", skip=3, **fault))
        ok(objects(fabric_of(fabric, (1, 2), 2)))
        assert len(live.versions(fabric)) == 7
        assert not ok(objects(fabric_of(fabric, (1, 2), 2)))["changed"]

    @pytest.mark.parametrize("how", [{"drop": True}, {"drop_after": True}], ids=["not-done", "answer-lost"])
    def test_an_api_that_goes_away_at_any_write_costs_nothing_but_another_run(
        self, objects: Run, tmp_path: Path, how: Json, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run, "THREADS", 1)
        complete = Growing(objects, tmp_path)
        try:
            assert ok(complete.grow())["summary"] == {
                **{"created": 2, "applied": 1, "replaced": 1, "deleted": 2, "unchanged": 3, "kept": 1, "conflicts": 0}
            }
            wanted, writes = complete.state(), complete.writes()
        finally:
            complete.double.stop()
        assert writes == 7 + 3
        for number in range(writes):
            cut = Growing(objects, tmp_path)
            try:
                cut.double.faults.append(Fault(method="PATCH|DELETE", path=REAL_WRITE, skip=number, **how))
                stopped = cut.grow()
                assert stopped["failed"], number
                assert "does not answer" in stopped["msg"]
                cut.double.faults.clear()
                ok(cut.grow())
                assert cut.state() == wanted, number
                assert not ok(cut.grow())["changed"]
            finally:
                cut.double.stop()

    def test_a_token_that_expires_in_the_middle(self, objects: Run, live: Live, fabric: str, double: ApiDouble) -> None:
        double.faults.append(Fault(code=401, reason="Unauthorized", method="PATCH", path=REAL_WRITE, skip=3))
        result = objects(fabric_of(fabric, (1, 2), 2))
        assert "Stopped after" in result["msg"]
        assert "does not know this identity" in result["msg"]
        assert "token" in result["fix"]
        double.faults.clear()
        assert ok(objects(fabric_of(fabric, (1, 2), 2)))["summary"]["unchanged"] >= 3
        assert len(live.versions(fabric)) == 7

    def test_a_list_comes_in_pages(self, objects: Run, fabric: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "PAGE", 3)
        wanted = fabric_of(fabric, range(1, 9), 1)
        ok(objects(wanted))
        assert ok(objects(wanted, prune=True))["summary"]["unchanged"] == 10

    def test_missing_crds(self, objects: Run, fabric: str, double: ApiDouble, live: Live) -> None:
        for name in [name for name in double.objects("CustomResourceDefinition") if "spidermultus" in name]:
            live.of("CustomResourceDefinition", "apiextensions.k8s.io/v1").delete(name=name)
        before = double.writes()
        assert "does not serve SpiderMultusConfig" in objects(fabric_of(fabric, (1,), 1))["msg"]
        assert double.writes() == before
        assert ok(objects(fabric_of(fabric, (1,), 1), check=True))["summary"]["created"] == 3

    def test_a_crd_that_is_not_established(
        self, objects: Run, double: ApiDouble, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(run, "WAIT_SECONDS", 1)
        double.controllers.hold_crds = True
        result = ok(objects([crd("example.com", "lates", "Late")]))
        assert "lates.example.com is not established after 1 s" in str(result["warnings"])

    def test_older_crds(self, objects: Run, fabric: str, double: ApiDouble) -> None:
        kind = double.store.kind_of(SPIDERPOOL, "SpiderIPPool")
        if "properties" not in kind.schema["properties"].get("spec", {}):
            pytest.skip(env.NO_CRDS)
        del kind.schema["properties"]["spec"]["properties"]["multusName"]
        before = double.writes()
        result = objects(fabric_of(fabric, (1,), 1))
        assert "multusName" in result["msg"]
        assert "older than the plan" in result["fix"]
        assert double.writes() == before

    def test_webhook_down(self, objects: Run, fabric: str, double: ApiDouble) -> None:
        double.webhook_down = True
        before = double.writes()
        result = objects(fabric_of(fabric, (1,), 1), retry_seconds=1)
        assert "failed calling webhook" in result["msg"]
        assert "spiderpool-controller" in result["fix"]
        assert double.writes() == before

    def test_a_namespace_that_is_wanted_and_on_its_way_out(self, objects: Run, double: ApiDouble, live: Live) -> None:
        double.put("v1", "ConfigMap", "held", "spiderpool", metadata={"finalizers": ["railops.io/test"]})
        live.of("Namespace", "v1").delete(name="spiderpool")
        before = double.writes()
        wanted = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "spiderpool"}}
        for check in (True, False):
            assert "namespace spiderpool is being deleted" in objects([wanted], check=check)["msg"]
        assert double.writes() == before


def other(kubeconfig: Path, token: str = "", **cluster: t.Any) -> str:
    """Write a kubeconfig that differs in the token, or in fields of the cluster; None takes one out."""
    text = yaml.safe_load(kubeconfig.read_text())
    row = {**text["clusters"][0]["cluster"], **cluster}
    text["clusters"][0]["cluster"] = {key: value for key, value in row.items() if value is not None}
    if token:
        text["users"][0]["user"] = {"token": token}
    made = kubeconfig.with_name(f"kubeconfig-{uuid.uuid4().hex}")
    made.write_text(yaml.safe_dump(text))
    return str(made)


class TestBadSituations:
    """What no fault has to be scripted for: reported clearly, and before the first write."""

    def test_forbidden_to_write_one_kind_is_reported_before_the_first_write(
        self, objects: Run, live: Live, fabric: str, restricted: Restricted
    ) -> None:
        result = objects(fabric_of(fabric, (1,), 1), kubeconfig=restricted("spidermultusconfigs:write"))
        assert 'cannot patch resource "spidermultusconfigs" in API group "spiderpool.spidernet.io"' in result["msg"]
        assert "spiderippools" not in result["msg"]
        assert live.versions(fabric) == {}

    def test_forbidden_to_list(self, objects: Run, fabric: str, restricted: Restricted) -> None:
        assert "cannot list" in objects([pool(fabric, 1, 1)], kubeconfig=restricted("spiderippools"))["msg"]

    def test_a_namespace_that_ends_or_is_missing(self, objects: Run, live: Live, fabric: str, ending: str) -> None:
        for namespace, reported in ((ending, "is being deleted"), ("nowhere", "does not exist")):
            stray = config(fabric, 1)
            stray["metadata"]["namespace"] = namespace
            assert f"namespace {namespace} {reported}" in objects([pool(fabric, 1, 1), stray])["msg"]
            assert live.versions(fabric) == {}

    @pytest.mark.usefixtures("webhooks")
    def test_what_the_webhook_refuses_is_reported_in_its_words(self, objects: Run, live: Live, fabric: str) -> None:
        bad = pool(fabric, 1, 1)
        bad["spec"]["ips"] = ["192.0.2.1"]
        assert "denied the request" in objects([bad, pool(fabric, 1, 2)])["msg"]
        assert live.versions(fabric) == {}


class TestAccess:
    """The ways to name an API and an identity; what each of them reaches is the double."""

    @pytest.mark.filterwarnings("ignore:Unverified HTTPS request")
    def test_token_and_authority(self, objects: Run, double: ApiDouble, kubeconfig: Path, tmp_path: Path) -> None:
        (tmp_path / "ca.crt").write_text(double.authority)
        trusting = {"certificate-authority-data": None, "certificate-authority": str(tmp_path / "ca.crt")}
        one = pool("rr-access", 1, 1)
        assert ok(objects([one], kubeconfig=other(kubeconfig, **trusting)))["summary"]["created"] == 1
        known = objects([one], kubeconfig=other(kubeconfig, token="old", **trusting), retry_seconds=0)
        assert "does not know this identity" in known["msg"]
        unsigned = {"certificate-authority-data": None}
        untrusted = objects([one], kubeconfig=other(kubeconfig, **unsigned), retry_seconds=0)
        assert "is not trusted" in untrusted["msg"]
        assert "certificate-authority" in untrusted["fix"]
        unchecked = {**unsigned, "insecure-skip-tls-verify": True}
        assert not ok(objects([one], kubeconfig=other(kubeconfig, **unchecked)))["changed"]

    def test_a_context_of_a_kubeconfig(self, objects: Run, double: ApiDouble, kubeconfig: Path) -> None:
        text = yaml.safe_load(kubeconfig.read_text())
        text["contexts"].append({"name": "nowhere", "context": {"cluster": "none", "user": "double"}})
        text["clusters"].append({"name": "none", "cluster": {"server": "https://127.0.0.1:1"}})
        text["current-context"] = "nowhere"
        kubeconfig.write_text(yaml.safe_dump(text))
        assert ok(objects([pool("rr-access", 1, 1)], context="double"))["changed"]
        assert "Cannot load a kubeconfig" in objects([pool("rr-access", 1, 1)], context="missing")["msg"]

    def test_the_identity_of_a_pod(
        self, objects: Run, double: ApiDouble, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "token").write_text(double.token)
        (tmp_path / "ca.crt").write_text(double.authority)
        host, _colon, port = double.url.removeprefix("https://").partition(":")
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", host)
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", port)
        monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
        monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
        assert ok(objects([pool("rr-access", 1, 1)], kubeconfig=None))["changed"]


class TestInput:
    def test_what_is_no_object_or_given_twice_is_reported_at_once(self, objects: Run, double: ApiDouble) -> None:
        result = objects([{"kind": "x"}, pool("x", 1, 1), pool("x", 1, 1)])
        assert [row["place"] for row in result["problems"]] == ["definitions[0]", "definitions[2]"]
        assert "Nothing was changed" in result["fix"]
        assert not [method for method, _path in double.requests if method == "PATCH"]

    def test_prune_without_a_fabric(self, objects: Run, double: ApiDouble) -> None:
        one = pool("x", 1, 1)
        one["metadata"]["labels"] = {"a": "b"}
        assert "prune needs to know the fabric" in objects([one], prune=True)["msg"]

    def test_a_folder(self, objects: Run, tmp_path: Path, fabric: str, live: Live) -> None:
        rows = fabric_of(fabric, (1,), 1)
        (tmp_path / "pools.yaml").write_text(yaml.safe_dump_all(rows[1:]))
        (tmp_path / "list.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": rows[:1]}))
        (tmp_path / "values.yaml").write_text("rdma: {}\n")
        assert ok(objects(src=[str(tmp_path)]))["summary"]["created"] == 3
        assert ok(objects(src=[str(tmp_path)], kinds=["SpiderIPPool"]))["summary"]["unchanged"] == 1
        (tmp_path / "pools.yaml").unlink()
        removed = ok(objects(src=[str(tmp_path)], kinds=["SpiderIPPool"], prune=True, fabric=fabric))
        assert did(removed) == {"delete": [f"{fabric}-rail1-v4-node1"]}
