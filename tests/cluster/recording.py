# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask a real control plane what recorded.json says that one answered, and say what differs.

    recording.py            ask and compare
    recording.py --write    ask, compare, and keep the whole answers in recorded.json

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

import played
import programs
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
CONFIGS = f"/apis/{played.SPIDERPOOL}/v2beta1/namespaces/default/spidermultusconfigs"
INJECT = "cni.spidernet.io/rdma-resource-inject"
THINGS = f"/apis/{GROUP}/v1/things"


class Asked:
    """The requests of one row about ConfigMaps of its own, and what came of them."""

    def __init__(self, api: played.Api, row: str) -> None:
        self._api = api
        self.row = row
        self.headers: dict[str, str] = {}
        self.answers: list[Answer] = []

    def ask(self, method: str, path: str, body: t.Any = None, content: str = PLAIN, **query: str) -> Json:
        """Ask, and note the answer."""
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
        return self.ask(
            "PATCH", f"{MAPS}/{name}", {**self.body(name, **data), **(more or {})}, APPLY, fieldManager=manager
        )

    def at(self) -> str:
        """Return the path of the row's object."""
        return f"{MAPS}/{self.row}"


def row_01_and_02(asked: Asked) -> None:
    """Apply a new object, and the same again."""
    asked.apply(a="1")
    asked.apply(a="1")


def row_03(asked: Asked) -> None:
    """Another manager wants another value."""
    asked.apply(a="1")
    asked.apply("two", a="2")


def row_04(asked: Asked) -> None:
    """Another manager wants the same value."""
    asked.apply(a="1")
    asked.apply("two", a="1")


def row_05(asked: Asked) -> None:
    """A field is dropped: by its only owner, then by one of two."""
    asked.apply(a="1", b="2")
    asked.apply(a="1")
    asked.apply(a="1", b="2")
    asked.apply("two", b="2")
    asked.apply(a="1")


def row_06(asked: Asked) -> None:
    """Force takes a field."""
    asked.apply(a="1")
    asked.ask("PATCH", asked.at(), asked.body(a="2"), APPLY, fieldManager="two", force="true")


def row_07(asked: Asked) -> None:
    """A dry run."""
    asked.ask("PATCH", asked.at(), asked.body(a="1"), APPLY, fieldManager="one", dryRun="All")
    asked.ask("GET", asked.at())


def row_08(asked: Asked) -> None:
    """A field that no schema declares."""
    asked.apply(more={"bogus": 1})


def row_11(asked: Asked) -> None:
    """A version that is not today's, by PUT and by apply."""
    old = asked.apply(a="1")["metadata"]["resourceVersion"]
    asked.apply(a="2")
    body = asked.body(a="3")
    body["metadata"]["resourceVersion"] = old
    asked.ask("PUT", asked.at(), body)
    asked.ask("PATCH", asked.at(), body, APPLY, fieldManager="one")


def row_14(asked: Asked) -> None:
    """A merge patch of another manager."""
    asked.apply(a="1")
    asked.ask("PATCH", asked.at(), {"data": {"a": "2"}}, MERGE, fieldManager="two")


def row_15(asked: Asked) -> None:
    """A list in pages."""
    for number in (1, 2, 3):
        asked.apply(name=f"{asked.row}-{number}", a="1")
    query = {"labelSelector": f"{LABEL}={asked.row}", "limit": "2"}
    more = asked.ask("GET", MAPS, **query)["metadata"]["continue"]
    asked.ask("GET", MAPS, **query, **{"continue": more})


def row_17(asked: Asked) -> None:
    """Delete what is not there."""
    asked.ask("DELETE", asked.at())


def row_18(asked: Asked) -> None:
    """What a gate writes: conditions and a note by a strategic merge of a node's status, taints by a merge patch."""
    path = f"/api/v1/nodes/{asked.row}"
    asked.quietly("DELETE", path)
    asked.quietly("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": asked.row}})
    # The server itself begins with a taint.
    asked.quietly("PATCH", path, {"spec": {"taints": None}}, MERGE)
    note = {"metadata": {"annotations": {"note": "1"}}}
    first, second = ({"type": name, "status": "True", "reason": "R", "message": "m"} for name in ("One", "Two"))
    for row in (first, second, {"type": "One", "$patch": "delete"}):
        asked.ask("PATCH", f"{path}/status", {**note, "status": {"conditions": [row]}}, STRATEGIC, fieldManager="one")
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    asked.ask("PATCH", path, {"spec": {"taints": [taint]}}, MERGE, fieldManager="one")
    asked.ask("PATCH", path, {"metadata": {"resourceVersion": "1"}, "spec": {"taints": None}}, MERGE)
    asked.quietly("DELETE", path)


def row_19(asked: Asked) -> None:
    """Make what is there already."""
    asked.ask("POST", MAPS, asked.body(a="1"), fieldManager="one")
    asked.ask("POST", MAPS, asked.body(a="1"), fieldManager="one")


def row_20(asked: Asked) -> None:
    """Choose by labels and by a field."""
    for name in ("first", "second"):
        asked.quietly("POST", MAPS, asked.body(f"{asked.row}-{name}", a="1"), fieldManager="one")
    for selector in (f"{LABEL}={asked.row}", f"{LABEL}={asked.row},none=there", f"{LABEL}=={asked.row}"):
        found = asked.quietly("GET", MAPS, labelSelector=selector)
        asked.answers.append((found[0], {"names": [row["metadata"]["name"] for row in found[1]["items"]]}))
    asked.ask("GET", MAPS, fieldSelector=f"metadata.name={asked.row}-second")


def row_22(asked: Asked) -> None:
    """A namespace, and what is made in it while it ends."""
    path = f"/api/v1/namespaces/{asked.row}"
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": asked.row}}
    asked.ask("POST", "/api/v1/namespaces", body, fieldManager="one")
    held = asked.body("held", a="1")
    held["metadata"]["finalizers"] = ["railops.io/recording"]
    asked.quietly("POST", f"{path}/configmaps", held)
    asked.quietly("DELETE", path)
    asked.ask("POST", f"{path}/configmaps", asked.body("late", a="1"))
    asked.ask("PATCH", f"{path}/configmaps/late", asked.body("late", a="1"), APPLY, fieldManager="one")
    asked.quietly("DELETE", f"{path}/configmaps/held")
    asked.quietly("PATCH", f"{path}/configmaps/held", {"metadata": {"finalizers": None}}, MERGE)
    # Where no controller ends it.
    _code, ending = asked.quietly("GET", path)
    asked.quietly("PUT", f"{path}/finalize", {**ending, "spec": {"finalizers": []}})


def row_23(asked: Asked) -> None:
    """A user without any rights."""
    asked.headers = {"Impersonate-User": "nobody"}
    asked.apply(a="1")
    asked.ask("GET", MAPS)
    asked.ask("GET", f"{MAPS}/{asked.row}")
    asked.ask("DELETE", f"{MAPS}/{asked.row}")
    asked.ask("POST", MAPS, asked.body(a="1"))
    asked.ask("PUT", f"{MAPS}/{asked.row}", asked.body(a="1"))
    asked.ask("DELETE", MAPS, labelSelector=f"{LABEL}={asked.row}")
    asked.ask("GET", "/api/v1/nodes")
    asked.ask("PATCH", "/api/v1/nodes/none/status", {}, STRATEGIC)
    asked.ask("GET", "/apis/apps/v1/daemonsets")
    asked.headers = {}


def row_28(asked: Asked) -> None:
    """Delete an object with a finalizer, and remove the finalizer."""
    body = asked.body(a="1")
    body["metadata"]["finalizers"] = ["railops.io/recording"]
    asked.ask("POST", MAPS, body, fieldManager="one")
    asked.ask("DELETE", asked.at())
    asked.ask("DELETE", asked.at())
    asked.ask("PATCH", asked.at(), {"metadata": {"finalizers": None}}, MERGE, fieldManager="two")
    asked.ask("GET", asked.at())


def row_29(asked: Asked) -> None:
    """Watch what happens from a version on."""
    since = asked.apply(a="1")["metadata"]["resourceVersion"]
    asked.quietly("PATCH", asked.at(), {"data": {"a": "2"}}, MERGE, fieldManager="two")
    asked.quietly("DELETE", asked.at())
    asked.quietly("POST", MAPS, asked.body(a="3"), fieldManager="one")
    chosen_ = {"fieldSelector": f"metadata.name={asked.row}", "watch": "true", "timeoutSeconds": "2"}
    asked.ask("GET", MAPS, resourceVersion=since, **chosen_)


def row_31(asked: Asked) -> None:
    """A CRD: served once it is established; unknown fields go, defaults come, a status is another door."""
    with_schema(asked)
    path = f"{THINGS}/{asked.row}"
    made = thing(asked, {"size": 3, "nonsense": True, "inner": {}})
    asked.ask("POST", THINGS, made, fieldManager="one")
    asked.ask("PATCH", f"{path}/status", {"status": {"phase": "Good", "nonsense": 1}, "spec": {"size": 9}}, MERGE)
    asked.ask("PATCH", path, {"status": {"phase": "Bad"}, "spec": {"size": 4}}, MERGE, fieldManager="two")
    asked.ask("PATCH", path, {"spec": {"size": 5}}, STRATEGIC, fieldManager="two")
    asked.ask("PATCH", path, thing(asked, {"size": 4, "nonsense": 1}), APPLY, fieldManager="one", force="true")
    asked.ask("PATCH", path, thing(asked, {"size": "four"}), APPLY, fieldManager="one", force="true")
    asked.ask("PATCH", path, thing(asked, {"size": 4}), APPLY, fieldManager="three")
    asked.ask("PATCH", path, thing(asked, {"size": 6}), APPLY, fieldManager="three")


def row_33(asked: Asked) -> None:
    """Evict a pod that no node has, and one that is not there."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    asked.quietly("POST", accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
    spec = {"containers": [{"name": "main", "image": "registry.example/x"}], "nodeSelector": {"no": "where"}}
    asked.quietly("POST", PODS, {**asked.body(), "kind": "Pod", "data": None, "spec": spec})
    asked.until(f"{PODS}/{asked.row}", bool)
    gone = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": asked.row, "namespace": "default"}}
    asked.ask("POST", f"{PODS}/{asked.row}/eviction", gone)
    asked.ask("POST", f"{PODS}/{asked.row}/eviction", gone)


def row_36(asked: Asked) -> None:
    """In which order a pod that is asked to be injected gets its networks, and with which resources."""
    rails = ("rail10", "rail2", "rail1")
    for rail in rails:
        link = {"master": [rail], "rdmaResourceName": f"x.y/{rail}", "ippools": {"ipv4": ["none"]}}
        made = network(f"{asked.row}-{rail}", {"cniType": "macvlan", "macvlan": link})
        made["metadata"]["annotations"] = {INJECT: asked.row}
        asked.quietly("POST", CONFIGS, made, fieldManager="one")
    spec = {"containers": [{"name": name, "image": "registry.example/x"} for name in ("main", "side")]}
    body = {**asked.body(), "kind": "Pod", "data": None, "spec": {**spec, "nodeSelector": {"no": "where"}}}
    body["metadata"]["annotations"] = {INJECT: asked.row}
    code, made = asked.quietly("POST", PODS, body, fieldManager="one")
    boxes = [row.get("resources") or {} for row in made["spec"]["containers"]]
    asked.answers.append((code, {"annotations": made["metadata"]["annotations"], "resources": boxes}))
    asked.quietly("DELETE", f"{PODS}/{asked.row}")
    for rail in rails:
        asked.quietly("DELETE", f"{CONFIGS}/{asked.row}-{rail}")


def network(name: str, spec: Json) -> Json:
    """Return a network of Spiderpool's."""
    meta: Json = {"name": name}
    return {"apiVersion": f"{played.SPIDERPOOL}/v2beta1", "kind": "SpiderMultusConfig", "metadata": meta, "spec": spec}


def with_schema(asked: Asked) -> None:
    """Bring the CRD of things, and wait until the API serves it."""
    inner = {"type": "object", "properties": {"deep": {"type": "boolean", "default": True}}}
    kind = {"type": "string", "default": "blue"}
    spec = {"type": "object", "properties": {"size": {"type": "integer"}, "kind": kind, "inner": inner}}
    status = {"type": "object", "properties": {"phase": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec, "status": status}}
    body = crd(GROUP, "things", "Thing", schema=schema, subresources={"status": {}})
    asked.quietly("POST", played.CRDS, body)
    asked.until(THINGS, bool)
    asked.quietly("DELETE", f"{THINGS}/{asked.row}")


def thing(asked: Asked, spec: Json) -> Json:
    """Return a thing of the row."""
    return {"apiVersion": f"{GROUP}/v1", "kind": "Thing", "metadata": {"name": asked.row}, "spec": spec}


KEPT = {
    "row-18": ("metadata.annotations", "status.conditions", "spec.taints", "reason"),
    "row-22": ("spec", "status", "message", "reason", "details"),
    "row-28": ("data", "metadata.deletionGracePeriodSeconds", "metadata.finalizers", "message"),
}
"""What is recorded of a row whose answers hold much beside that."""
INJECTED = "row-36"
"""The row that needs Spiderpool's webhooks beside the API."""
SPIDERPOOL = bool(os.environ.get("RAILOPS_TEST_SPIDERPOOL"))
ROWS: dict[str, t.Callable[[Asked], None]] = {
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


def ask_all(kubeconfig: Path, webhooks: bool) -> dict[str, list[Json]]:
    """Return the answers of an API to every row.

    :param webhooks: whether Spiderpool's are there; without, the row that needs them is left out.
    """
    api = played.Api(kubeconfig)
    found = {}
    for name, row in ROWS.items():
        if name == INJECTED and not webhooks:
            continue
        asked = Asked(api, name)
        asked.quietly("DELETE", MAPS, labelSelector=f"{LABEL}={name}")
        row(asked)
        asked.headers = {}
        asked.quietly("DELETE", MAPS, labelSelector=f"{LABEL}={name}")
        found[name] = plain(asked.answers)
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
    answers = ask_all(Path(given), SPIDERPOOL)
    reported = [f"{row}: {line}" for row in answers for line in differences(old["rows"].get(row, []), answers[row])]
    reported += [f"{row}: skipped: it needs Spiderpool's webhooks" for row in ROWS if row not in answers]
    print("\n".join(reported) or f"every answer is as {old['program']} {old['version']} gave it on {old['date']}")
    if "--write" in sys.argv:
        version = played.Api(Path(given)).call("GET", "/version")["gitVersion"].removeprefix("v")
        made = {"program": "kube-apiserver", "version": version, "date": time.strftime("%Y-%m-%d")}
        made |= {"rows": {**old["rows"], **answers}}
        if SPIDERPOOL:
            made["spiderpool"] = programs.version(programs.CHART)
        FILE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    sys.exit(bool(reported))


if __name__ == "__main__":
    main()
