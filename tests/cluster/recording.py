# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Send the requests of recorded.json to a real control plane, and report each different answer.

    recording.py            compare
    recording.py --write    compare, and keep the complete answers in recorded.json

The API is that of RAILOPS_TEST_KUBECONFIG, else a control plane of its own where its programs are (programs.py).
test_recorded.py holds the API double to the same file.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

import programs
import simulated
import tools
from api_kinds import crd
from api_store import dig
from kubernetes.client.exceptions import ApiException

Json = dict[str, t.Any]
Answer = tuple[int, Json]
FILE = HERE / "recorded.json"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
PLAIN, STRATEGIC = "application/json", "application/strategic-merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"
PODS = MAPS.replace("configmaps", "pods")
LABEL = "railops-recording"
# Of a CRD of the rows' own.
GROUP = "recording.railops.io"
CONFIGS = f"/apis/{simulated.SPIDERPOOL}/v2beta1/namespaces/default/spidermultusconfigs"
INJECT = "cni.spidernet.io/rdma-resource-inject"
THINGS = f"/apis/{GROUP}/v1/things"


class RowApi:
    """The requests of one row about ConfigMaps of its own, and their answers."""

    def __init__(self, api: simulated.Api, row: str) -> None:
        self._api = api
        self.row = row
        self.headers: dict[str, str] = {}
        self.answers: list[Answer] = []

    def request(self, method: str, path: str, body: t.Any = None, content: str = PLAIN, **query: str) -> Json:
        """Send a request, and record the answer."""
        code, made = self.quietly(method, path, body, content, **query)
        self.answers.append((code, made))
        return made

    def quietly(self, method: str, path: str, body: t.Any = None, content: str = PLAIN, **query: str) -> Answer:
        """Ask and return code and answer: what is no JSON as a text, several lines of JSON as a list."""
        try:
            done = self._api.raw(method, path, body, content, self.headers, **query)
            code, text = done.status, done.data
        except ApiException as exc:
            code, text = exc.status, exc.body
        try:
            rows = [json.loads(line) for line in text.splitlines()] if "watch" in query else json.loads(text)
        except ValueError:
            return int(code), {"text": text.decode() if isinstance(text, bytes) else text}
        return int(code), {"events": rows} if "watch" in query else rows

    def until(self, path: str, true: t.Callable[[Json], bool], seconds: float = 20) -> Json:
        """Ask again until an answer is as wanted, and return it.

        :raises TimeoutError: it did not come.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            code, body = self.quietly("GET", path)
            if code == 200 and true(body):
                return body
            time.sleep(0.1)
        raise TimeoutError(f"{self.row}: {path} did not become what was waited for")

    def body(self, name: str = "", **data: str) -> Json:
        """Return a ConfigMap of the row."""
        meta = {"name": name or self.row, "labels": {LABEL: self.row}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

    def apply(self, manager: str = "one", name: str = "", more: Json | None = None, **data: str) -> Json:
        """Apply it by the server."""
        name = name or self.row
        return self.request(
            "PATCH", f"{MAPS}/{name}", {**self.body(name, **data), **(more or {})}, APPLY, fieldManager=manager
        )

    def at(self) -> str:
        """Return the path of the row's object."""
        return f"{MAPS}/{self.row}"


def row_01_and_02(api: RowApi) -> None:
    """Apply a new object, and the same again."""
    api.apply(a="1")
    api.apply(a="1")


def row_03(api: RowApi) -> None:
    """Another manager wants another value."""
    api.apply(a="1")
    api.apply("two", a="2")


def row_04(api: RowApi) -> None:
    """Another manager wants the same value."""
    api.apply(a="1")
    api.apply("two", a="1")


def row_05(api: RowApi) -> None:
    """A field is dropped: by its only owner, then by one of two."""
    api.apply(a="1", b="2")
    api.apply(a="1")
    api.apply(a="1", b="2")
    api.apply("two", b="2")
    api.apply(a="1")


def row_06(api: RowApi) -> None:
    """Force takes a field."""
    api.apply(a="1")
    api.request("PATCH", api.at(), api.body(a="2"), APPLY, fieldManager="two", force="true")


def row_07(api: RowApi) -> None:
    """A dry run."""
    api.request("PATCH", api.at(), api.body(a="1"), APPLY, fieldManager="one", dryRun="All")
    api.request("GET", api.at())


def row_08(api: RowApi) -> None:
    """A field that no schema declares."""
    api.apply(more={"bogus": 1})


def row_11(api: RowApi) -> None:
    """A version that is not today's, by PUT and by apply."""
    old = api.apply(a="1")["metadata"]["resourceVersion"]
    api.apply(a="2")
    body = api.body(a="3")
    body["metadata"]["resourceVersion"] = old
    api.request("PUT", api.at(), body)
    api.request("PATCH", api.at(), body, APPLY, fieldManager="one")


def row_14(api: RowApi) -> None:
    """A merge patch of another manager."""
    api.apply(a="1")
    api.request("PATCH", api.at(), {"data": {"a": "2"}}, MERGE, fieldManager="two")


def row_15(api: RowApi) -> None:
    """A list in pages."""
    for number in (1, 2, 3):
        api.apply(name=f"{api.row}-{number}", a="1")
    query = {"labelSelector": f"{LABEL}={api.row}", "limit": "2"}
    more = api.request("GET", MAPS, **query)["metadata"]["continue"]
    api.request("GET", MAPS, **query, **{"continue": more})


def row_17(api: RowApi) -> None:
    """Delete what is not there."""
    api.request("DELETE", api.at())


def row_18(api: RowApi) -> None:
    """What a gate writes: conditions and a note by a strategic merge of a node's status, taints by a merge patch."""
    path = f"/api/v1/nodes/{api.row}"
    api.quietly("DELETE", path)
    api.quietly("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": api.row}})
    # The server itself begins with a taint.
    api.quietly("PATCH", path, {"spec": {"taints": None}}, MERGE)
    note = {"metadata": {"annotations": {"note": "1"}}}
    first, second = ({"type": name, "status": "True", "reason": "R", "message": "m"} for name in ("One", "Two"))
    for row in (first, second, {"type": "One", "$patch": "delete"}):
        api.request("PATCH", f"{path}/status", {**note, "status": {"conditions": [row]}}, STRATEGIC, fieldManager="one")
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    api.request("PATCH", path, {"spec": {"taints": [taint]}}, MERGE, fieldManager="one")
    api.request("PATCH", path, {"metadata": {"resourceVersion": "1"}, "spec": {"taints": None}}, MERGE)
    api.quietly("DELETE", path)


def row_19(api: RowApi) -> None:
    """Make what is there already."""
    api.request("POST", MAPS, api.body(a="1"), fieldManager="one")
    api.request("POST", MAPS, api.body(a="1"), fieldManager="one")


def row_20(api: RowApi) -> None:
    """Choose by labels and by a field."""
    for name in ("first", "second"):
        api.quietly("POST", MAPS, api.body(f"{api.row}-{name}", a="1"), fieldManager="one")
    for selector in (f"{LABEL}={api.row}", f"{LABEL}={api.row},none=there", f"{LABEL}=={api.row}"):
        found = api.quietly("GET", MAPS, labelSelector=selector)
        api.answers.append((found[0], {"names": [row["metadata"]["name"] for row in found[1]["items"]]}))
    api.request("GET", MAPS, fieldSelector=f"metadata.name={api.row}-second")


def row_22(api: RowApi) -> None:
    """A namespace, and what is made in it while it ends."""
    path = f"/api/v1/namespaces/{api.row}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": api.row}}
    api.request("POST", "/api/v1/namespaces", body, fieldManager="one")
    held = api.body("held", a="1")
    held["metadata"]["finalizers"] = ["railops.io/recording"]
    api.quietly("POST", f"{path}/configmaps", held)
    api.quietly("DELETE", path)
    api.request("POST", f"{path}/configmaps", api.body("late", a="1"))
    api.request("PATCH", f"{path}/configmaps/late", api.body("late", a="1"), APPLY, fieldManager="one")
    api.quietly("DELETE", f"{path}/configmaps/held")
    api.quietly("PATCH", f"{path}/configmaps/held", {"metadata": {"finalizers": None}}, MERGE)
    # Where no controller ends it.
    _code, ending = api.quietly("GET", path)
    api.quietly("PUT", f"{path}/finalize", {**ending, "spec": {"finalizers": []}})


def row_23(api: RowApi) -> None:
    """A user without any rights."""
    api.headers = {"Impersonate-User": "nobody"}
    api.apply(a="1")
    api.request("GET", MAPS)
    api.request("GET", f"{MAPS}/{api.row}")
    api.request("DELETE", f"{MAPS}/{api.row}")
    api.request("POST", MAPS, api.body(a="1"))
    api.request("PUT", f"{MAPS}/{api.row}", api.body(a="1"))
    api.request("DELETE", MAPS, labelSelector=f"{LABEL}={api.row}")
    api.request("GET", "/api/v1/nodes")
    api.request("PATCH", "/api/v1/nodes/none/status", {}, STRATEGIC)
    api.request("GET", "/apis/apps/v1/daemonsets")
    api.headers = {}


def row_28(api: RowApi) -> None:
    """Delete an object with a finalizer, and remove the finalizer."""
    body = api.body(a="1")
    body["metadata"]["finalizers"] = ["railops.io/recording"]
    api.request("POST", MAPS, body, fieldManager="one")
    api.request("DELETE", api.at())
    api.request("DELETE", api.at())
    api.request("PATCH", api.at(), {"metadata": {"finalizers": None}}, MERGE, fieldManager="two")
    api.request("GET", api.at())


def row_29(api: RowApi) -> None:
    """Watch what happens from a version on."""
    since = api.apply(a="1")["metadata"]["resourceVersion"]
    api.quietly("PATCH", api.at(), {"data": {"a": "2"}}, MERGE, fieldManager="two")
    api.quietly("DELETE", api.at())
    api.quietly("POST", MAPS, api.body(a="3"), fieldManager="one")
    chosen_ = {"fieldSelector": f"metadata.name={api.row}", "watch": "true", "timeoutSeconds": "2"}
    api.request("GET", MAPS, resourceVersion=since, **chosen_)


def row_31(api: RowApi) -> None:
    """A CRD: served once it is established; unknown fields go, defaults come, a status is another door."""
    with_schema(api)
    path = f"{THINGS}/{api.row}"
    made = thing(api, {"size": 3, "nonsense": True, "inner": {}})
    api.request("POST", THINGS, made, fieldManager="one")
    api.request("PATCH", f"{path}/status", {"status": {"phase": "Good", "nonsense": 1}, "spec": {"size": 9}}, MERGE)
    api.request("PATCH", path, {"status": {"phase": "Bad"}, "spec": {"size": 4}}, MERGE, fieldManager="two")
    api.request("PATCH", path, {"spec": {"size": 5}}, STRATEGIC, fieldManager="two")
    api.request("PATCH", path, thing(api, {"size": 4, "nonsense": 1}), APPLY, fieldManager="one", force="true")
    api.request("PATCH", path, thing(api, {"size": "four"}), APPLY, fieldManager="one", force="true")
    api.request("PATCH", path, thing(api, {"size": 4}), APPLY, fieldManager="three")
    api.request("PATCH", path, thing(api, {"size": 6}), APPLY, fieldManager="three")


def row_33(api: RowApi) -> None:
    """Evict a pod that no node has, and one that is not there."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.quietly("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    spec = {"containers": [{"name": "main", "image": "registry.example/x"}], "nodeSelector": {"no": "where"}}
    api.quietly("POST", PODS, {**api.body(), "kind": "Pod", "data": None, "spec": spec})
    api.until(f"{PODS}/{api.row}", bool)
    gone = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": api.row, "namespace": "default"}}
    api.request("POST", f"{PODS}/{api.row}/eviction", gone)
    api.request("POST", f"{PODS}/{api.row}/eviction", gone)


def row_36(api: RowApi) -> None:
    """In which order a pod that is asked to be injected gets its networks, and with which resources."""
    rails = ("rail10", "rail2", "rail1")
    for rail in rails:
        link = {"master": [rail], "rdmaResourceName": f"x.y/{rail}", "ippools": {"ipv4": ["none"]}}
        made = network(f"{api.row}-{rail}", {"cniType": "macvlan", "macvlan": link})
        made["metadata"]["annotations"] = {INJECT: api.row}
        api.quietly("POST", CONFIGS, made, fieldManager="one")
    spec = {"containers": [{"name": name, "image": "registry.example/x"} for name in ("main", "side")]}
    body = {**api.body(), "kind": "Pod", "data": None, "spec": {**spec, "nodeSelector": {"no": "where"}}}
    body["metadata"]["annotations"] = {INJECT: api.row}
    code, made = api.quietly("POST", PODS, body, fieldManager="one")
    boxes = [row.get("resources") or {} for row in made["spec"]["containers"]]
    api.answers.append((code, {"annotations": made["metadata"]["annotations"], "resources": boxes}))
    api.quietly("DELETE", f"{PODS}/{api.row}")
    for rail in rails:
        api.quietly("DELETE", f"{CONFIGS}/{api.row}-{rail}")


def network(name: str, spec: Json) -> Json:
    """Return a network of Spiderpool's."""
    meta: Json = {"name": name}
    version = f"{simulated.SPIDERPOOL}/v2beta1"
    return {"apiVersion": version, "kind": "SpiderMultusConfig", "metadata": meta, "spec": spec}


def with_schema(api: RowApi) -> None:
    """Bring the CRD of things, and wait until the API serves it."""
    inner = {"type": "object", "properties": {"deep": {"type": "boolean", "default": True}}}
    kind = {"type": "string", "default": "blue"}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "kind": kind, "inner": inner}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    body = crd(GROUP, "things", "Thing", schema=schema, subresources={"status": {}})
    api.quietly("POST", simulated.CRDS, body)
    api.until(THINGS, bool)
    api.quietly("DELETE", f"{THINGS}/{api.row}")


def thing(api: RowApi, spec: Json) -> Json:
    """Return a thing of the row."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": api.row}, "spec": spec}


KEPT = {
    "row-18": ("metadata.annotations", "status.conditions", "spec.taints", "reason"),
    "row-22": ("spec", "status", "message", "reason", "details"),
    "row-28": ("data", "metadata.deletionGracePeriodSeconds", "metadata.finalizers", "message"),
}
"""What is recorded of a row whose answers hold much beside that."""
INJECTED = "row-36"
"""The row that needs Spiderpool's webhooks beside the API."""
SPIDERPOOL = bool(os.environ.get("RAILOPS_TEST_SPIDERPOOL"))
ROWS: dict[str, t.Callable[[RowApi], None]] = {
    name.replace("_", "-"): row for name, row in sorted(globals().items()) if name.startswith("row_")
}


def plain(answers: list[Answer]) -> list[Json]:
    """Return answers without what is another thing each time: identities, times, numbers of versions, tokens."""
    versions: dict[str, str] = {}

    def clean(value: t.Any) -> t.Any:
        if isinstance(value, list):
            return [clean(one) for one in value]
        if isinstance(value, str):
            # Some refusals print addresses in memory.
            return re.sub(r"0x[0-9a-f]{6,}", "0x...", value)
        if not isinstance(value, dict):
            return value
        gone = ("uid", "creationTimestamp", "time")
        kept = {key: clean(one) for key, one in value.items() if key not in gone and one is not None}
        # A controller of nodes, where one is at work, adds taints and a note of its own when it likes.
        kept.pop("node.alpha.kubernetes.io/ttl", None)
        taints = [one for one in kept.pop("taints", ()) if not one["key"].startswith("node.kubernetes.io/")]
        kept.update({"taints": taints} if taints else {})
        if rows := kept.get("managedFields"):
            # Those of one second have no order.
            kept["managedFields"] = sorted(rows, key=lambda row: (row["operation"], row["manager"]))
        if kept.get("deletionTimestamp"):
            kept["deletionTimestamp"] = "..."
        if version := kept.get("resourceVersion"):
            kept["resourceVersion"] = versions.setdefault(version, f"version {len(versions) + 1}")
        return {**kept, "continue": "..."} if kept.get("continue") else kept

    return [{"code": code, "body": clean(body)} for code, body in answers]


def differences(recorded: list[Json], answers: list[Json]) -> t.Iterator[str]:
    """Print where answers differ from what was recorded of them, code and body."""
    if len(recorded) != len(answers):
        yield f"{len(recorded)} answers were recorded, {len(answers)} came"
    for number, (want, have) in enumerate(zip(recorded, answers, strict=False), 1):
        for name, value in want.items():
            if have[name] != value:
                yield f"answer {number}: {name} was {value!r} and is {have[name]!r}"


def chosen(body: Json, names: t.Iterable[str]) -> Json:
    """Return some fields of an answer, each where it was."""
    found: Json = {}
    for name in names:
        if (value := dig(body, name)) is not None:
            *above, last = name.split(".")
            place = found
            for part in above:
                place = place.setdefault(part, {})
            place[last] = value
    return found


def answers_of_all(kubeconfig: Path, webhooks: bool) -> dict[str, list[Json]]:
    """Return the answers of an API to every row.

    :param webhooks: whether Spiderpool's are there; without, the row that needs them is left out.
    """
    api = simulated.Api(kubeconfig)
    found = {}
    for name, row in ROWS.items():
        if name == INJECTED and not webhooks:
            continue
        row_api = RowApi(api, name)
        row_api.quietly("DELETE", MAPS, labelSelector=f"{LABEL}={name}")
        row(row_api)
        row_api.headers = {}
        row_api.quietly("DELETE", MAPS, labelSelector=f"{LABEL}={name}")
        found[name] = plain(row_api.answers)
        if name in KEPT:
            found[name] = [{"code": row["code"], "body": chosen(row["body"], KEPT[name])} for row in found[name]]
    return found


def main() -> None:
    """Ask, compare, keep."""
    given = os.environ.get("RAILOPS_TEST_KUBECONFIG")
    if not given:
        size = ["--bare"] if programs.lacking("controllers") else ["--nodes", "2"]
        os.execv(sys.executable, [sys.executable, str(HERE / "real_api.py"), *size, sys.executable, *sys.argv])
    old = json.loads(FILE.read_text(encoding="utf-8"))
    if SPIDERPOOL:
        tools.install_spiderpool(Path(given))
    answers = answers_of_all(Path(given), SPIDERPOOL)
    reported = [f"{row}: {line}" for row in answers for line in differences(old["rows"].get(row, []), answers[row])]
    reported += [f"{row}: skipped: it needs Spiderpool's webhooks" for row in ROWS if row not in answers]
    print("\n".join(reported) or f"every answer is as {old['program']} {old['version']} gave it on {old['date']}")
    if "--write" in sys.argv:
        version = simulated.Api(Path(given)).call("GET", "/version")["gitVersion"].removeprefix("v")
        made = {"program": "kube-apiserver", "version": version, "date": time.strftime("%Y-%m-%d")}
        made |= {"rows": {**old["rows"], **answers}}
        if SPIDERPOOL:
            made["spiderpool"] = programs.version(programs.CHART)
        FILE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    sys.exit(bool(reported))


if __name__ == "__main__":
    main()
