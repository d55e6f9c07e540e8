# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask a real control plane what recorded.json says that one answered, and say what differs.

    recording.py            ask and compare
    recording.py --write    ask, compare, and keep the whole answers in recorded.json

The API is that of RAILOPS_TEST_KUBECONFIG, else a control plane of its own where its programs are (programs.py).
test_recorded.py holds the API double to the same file, and rules.yml says which rule of the double rests on which row.
"""

from __future__ import annotations

import json
import os
import sys
import time
import typing as t
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tools")]

import played
from api_store import dig
from kubernetes.client.exceptions import ApiException

Json = dict[str, t.Any]
Answer = tuple[int, Json]
FILE = HERE / "recorded.json"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
PLAIN, STRATEGIC = "application/json", "application/strategic-merge-patch+json"
MAPS = "/api/v1/namespaces/default/configmaps"
LABEL = "railops-recording"


class Asked:
    """The requests of one row about ConfigMaps of its own, and what came of them."""

    def __init__(self, api: played.Api, row: str) -> None:
        self._api = api
        self.row = row
        self.answers: list[Answer] = []

    def ask(self, method: str, path: str, body: t.Any = None, content: str = PLAIN, **query: str) -> Json:
        """Ask, and note the answer."""
        code, made = self.quietly(method, path, body, content, **query)
        self.answers.append((code, made))
        return made

    def quietly(self, method: str, path: str, body: t.Any = None, content: str = PLAIN, **query: str) -> Answer:
        """Ask and return code and answer."""
        try:
            done = self._api.raw(method, path, body, content, **query)
        except ApiException as exc:
            return int(exc.status), t.cast("Json", json.loads(exc.body))
        return int(done.status), t.cast("Json", json.loads(done.data))

    def body(self, name: str = "", **data: str) -> Json:
        """Return a ConfigMap of the row."""
        meta = {"name": name or self.row, "labels": {LABEL: self.row}}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

    def apply(self, manager: str = "one", name: str = "", more: Json | None = None, **data: str) -> Json:
        """Apply it by the server."""
        query = {key: value for key, value in {"fieldManager": manager}.items() if value}
        name = name or self.row
        return self.ask("PATCH", f"{MAPS}/{name}", {**self.body(name, **data), **(more or {})}, APPLY, **query)

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


def row_09(asked: Asked) -> None:
    """An apply without a manager."""
    asked.apply("")


def row_10(asked: Asked) -> None:
    """Another name in the body."""
    asked.ask("PATCH", asked.at(), asked.body("another"), APPLY, fieldManager="one")


def row_11(asked: Asked) -> None:
    """A version that is not today's, by PUT and by apply."""
    old = asked.apply(a="1")["metadata"]["resourceVersion"]
    asked.apply(a="2")
    body = asked.body(a="3")
    body["metadata"]["resourceVersion"] = old
    asked.ask("PUT", asked.at(), body)
    asked.ask("PATCH", asked.at(), body, APPLY, fieldManager="one")


def row_12(asked: Asked) -> None:
    """A list where a map belongs."""
    asked.apply(more={"data": ["no", "map"]})


def row_13(asked: Asked) -> None:
    """A name that is none."""
    asked.apply(name="Bad_Name")


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


def row_16(asked: Asked) -> None:
    """Delete all with a label."""
    asked.apply(a="1")
    asked.ask("DELETE", MAPS, labelSelector=f"{LABEL}={asked.row}")
    asked.ask("GET", asked.at())


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


KEPT = {"row-18": ("metadata.annotations", "status.conditions", "spec.taints", "reason")}
"""What is recorded of a row whose answers hold much beside that."""
ROWS: dict[str, t.Callable[[Asked], None]] = {
    name.replace("_", "-"): row for name, row in sorted(globals().items()) if name.startswith("row_")
}


def plain(answers: list[Answer]) -> list[Json]:
    """Return answers without what is another thing each time: identities, times, numbers of versions, tokens."""
    versions: dict[str, str] = {}

    def clean(value: t.Any) -> t.Any:
        if isinstance(value, list):
            return [clean(one) for one in value]
        if not isinstance(value, dict):
            return value
        gone = ("uid", "creationTimestamp", "time")
        kept = {key: clean(one) for key, one in value.items() if key not in gone and one is not None}
        # A controller of nodes, where one is at work, adds taints of its own when it likes.
        taints = [one for one in kept.pop("taints", ()) if not one["key"].startswith("node.kubernetes.io/")]
        kept.update({"taints": taints} if taints else {})
        if rows := kept.get("managedFields"):
            # Those of one second have no order.
            kept["managedFields"] = sorted(rows, key=lambda row: (row["operation"], row["manager"]))
        if version := kept.get("resourceVersion"):
            kept["resourceVersion"] = versions.setdefault(version, f"version {len(versions) + 1}")
        return {**kept, "continue": "..."} if kept.get("continue") else kept

    return [{"code": code, "body": clean(body)} for code, body in answers]


def differences(recorded: list[Json], answers: list[Json]) -> t.Iterator[str]:
    """Tell where answers differ from what was recorded: `body` is the whole of it, else a field by its dotted name."""
    if len(recorded) != len(answers):
        yield f"{len(recorded)} answers were recorded, {len(answers)} came"
    for number, (want, have) in enumerate(zip(recorded, answers, strict=False), 1):
        for name, value in want.items():
            found = have[name] if name in ("code", "body") else dig(have["body"], name.removesuffix("~"))
            same = value in str(found) if name.endswith("~") else found == value
            if not same:
                yield f"answer {number}: {name} was {value!r} and is {found!r}"


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


def ask_all(kubeconfig: Path) -> dict[str, list[Json]]:
    """Return the answers of an API to every row."""
    api = played.Api(kubeconfig)
    found = {}
    for name, row in ROWS.items():
        asked = Asked(api, name)
        asked.quietly("DELETE", MAPS, labelSelector=f"{LABEL}={name}")
        row(asked)
        asked.quietly("DELETE", MAPS, labelSelector=f"{LABEL}={name}")
        found[name] = plain(asked.answers)
        if name in KEPT:
            found[name] = [{"code": row["code"], "body": chosen(row["body"], KEPT[name])} for row in found[name]]
    return found


def main() -> None:
    """Ask, compare, keep."""
    given = os.environ.get("RAILOPS_TEST_KUBECONFIG")
    if not given:
        beside = [sys.executable, str(HERE / "real_api.py"), "--bare", sys.executable, *sys.argv]
        os.execv(sys.executable, beside)
    old = json.loads(FILE.read_text(encoding="utf-8"))
    answers = ask_all(Path(given))
    told = [f"{row}: {line}" for row in ROWS for line in differences(old["rows"].get(row, []), answers[row])]
    print("\n".join(told) or f"every answer is as {old['program']} {old['version']} gave it on {old['date']}")
    if "--write" in sys.argv:
        version = played.Api(Path(given)).call("GET", "/version")["gitVersion"].removeprefix("v")
        made = {"program": "kube-apiserver", "version": version, "date": time.strftime("%Y-%m-%d"), "rows": answers}
        FILE.write_text(json.dumps(made, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return
    sys.exit(bool(told))


if __name__ == "__main__":
    main()
