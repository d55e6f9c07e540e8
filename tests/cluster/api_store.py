# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The objects of the API double: create, update, server-side apply, list, delete, and who owns which field.

Held to the table of a real kube-apiserver 1.36.2's answers by test_recorded.py.
"""

from __future__ import annotations

import base64
import json
import re
import threading
import time
import typing as t
import uuid

import api_fields as fields
from api_kinds import Kind, built_in, from_crd

Json = dict[str, t.Any]
Key = tuple[str, str]
# admit(operation, kind, old, new) -> the object as mutated; raises Refused.
Admit = t.Callable[[str, Kind, "Json | None", Json], Json]


class Refused(Exception):
    """An answer that is an error."""

    def __init__(self, code: int, reason: str, message: str, **details: t.Any) -> None:
        super().__init__(message)
        self.code = code
        why = {"reason": reason, "details": {key: value for key, value in details.items() if value}}
        body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        self.body: Json = {**body, **{key: value for key, value in why.items() if value}, "code": code}
        self.headers: dict[str, str] = {}


def cause(reason: str, field: str, message: str) -> Json:
    """Return the one cause of a refusal."""
    return {"causes": [{"reason": reason, "message": message, "field": field}]}


def conflict(kind: Kind, name: str, message: str, reason: str = "Conflict") -> Refused:
    """Return the refusal of a write about an object."""
    return Refused(409, reason, message, name=name, kind=kind.plural)


def now() -> str:
    """Return the time as the API writes it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def dig(value: t.Any, dotted: str) -> t.Any:
    """Return a field by its dotted name, or None."""
    for name in dotted.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def bare(obj: Json) -> Json:
    """Return an object without its kind and version."""
    return {key: value for key, value in obj.items() if key not in ("apiVersion", "kind")}


def counted(kind: Kind) -> bool:
    """Say whether the server counts the changes of a kind's spec."""
    return kind.custom or kind.group not in ("", "rbac.authorization.k8s.io", "coordination.k8s.io")


def selector_met(selector: str, value_of: t.Callable[[str], t.Any]) -> bool:
    """Say whether `a=b,c!=d` holds; no caller uses another form, so any other is refused."""
    for part in filter(None, selector.split(",")):
        pair = re.fullmatch(r"([^=!\s]+)(!=|==?)([^=!\s]*)", part)
        if pair is None:
            raise Refused(400, "BadRequest", f"the double knows no selector like {part!r}")
        if (value_of(pair[1]) == pair[3]) == (pair[2] == "!="):
            return False
    return True


class Store:
    """Objects by kind and name, with one resourceVersion for all and a journal for watches."""

    def __init__(self, admit: Admit | None = None) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.kinds: dict[tuple[str, str, str], Kind] = {}
        self.rows: dict[tuple[str, str], dict[Key, Json]] = {}
        self.journal: list[tuple[int, str, Kind, Json]] = []
        self.version = 1000
        self.writes = 0
        self.admit = admit
        self.after: list[t.Callable[[Kind, Json | None, Json | None], None]] = []
        for kind in built_in():
            self.register(kind)

    def register(self, kind: Kind) -> None:
        """Serve a kind from now on."""
        self.kinds[(kind.group, kind.version, kind.plural)] = kind
        self.rows.setdefault((kind.group, kind.plural), {})

    def kind_of(self, api_version: str, name: str) -> Kind:
        """Return the kind of that apiVersion and kind."""
        group, _slash, version = api_version.rpartition("/")
        for kind in self.kinds.values():
            if (kind.group, kind.version, kind.kind) == (group, version, name):
                return kind
        raise KeyError((api_version, name))

    def table(self, kind: Kind) -> dict[Key, Json]:
        """Return the objects of a kind."""
        return self.rows[(kind.group, kind.plural)]

    # Reading

    def get(self, kind: Kind, namespace: str, name: str) -> Json:
        """Return one object."""
        with self.lock:
            found = self.table(kind).get((namespace, name))
            if found is None:
                group = f".{kind.group}" if kind.group else ""
                why = f'{kind.plural}{group} "{name}" not found'
                raise Refused(404, "NotFound", why, name=name, group=kind.group, kind=kind.plural)
            return self.shown(kind, found)

    def shown(self, kind: Kind, obj: Json) -> Json:
        """Return an object as of the asked version."""
        return {**obj, "apiVersion": kind.api_version, "kind": kind.kind}

    def list(self, kind: Kind, namespace: str, query: dict[str, str]) -> Json:
        """Return a page of a list."""
        with self.lock:
            after: list[str] = json.loads(base64.b64decode(query["continue"])) if query.get("continue") else []
            limit = int(query.get("limit") or 0)
            items: list[Json] = []
            meta: Json = {"resourceVersion": str(self.version)}
            matching = [
                key
                for key in sorted(self.table(kind))
                if (not namespace or key[0] == namespace) and (not after or list(key) > after)
            ]
            for position, key in enumerate(matching):
                obj = self.table(kind)[key]
                if self.selected(obj, query):
                    # Of its own kinds the server leaves out what the list says already.
                    items.append(self.shown(kind, obj) if kind.custom else bare(obj))
                if limit and len(items) == limit and position + 1 < len(matching):
                    meta["continue"] = base64.b64encode(json.dumps(key).encode()).decode()
                    if not (query.get("labelSelector") or query.get("fieldSelector")):
                        meta["remainingItemCount"] = len(matching) - position - 1
                    break
            return {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta, "items": items}

    @staticmethod
    def selected(obj: Json, query: dict[str, str]) -> bool:
        """Say whether an object meets the selectors of a request."""
        return selector_met(query.get("labelSelector", ""), (obj["metadata"].get("labels") or {}).get) and selector_met(
            query.get("fieldSelector", ""), lambda name: dig(obj, name) or ""
        )

    # Writing

    def create(self, kind: Kind, namespace: str, body: Json, query: dict[str, str], manager: str) -> Json:
        """Make an object."""
        meta = body.setdefault("metadata", {})
        with self.lock:
            self.check_home(kind, namespace, meta["name"])
            if (namespace, meta["name"]) in self.table(kind):
                why = f'{kind.plural} "{meta["name"]}" already exists'
                raise conflict(kind, meta["name"], why, "AlreadyExists")
            new = self.cleaned(kind, body)
            new["metadata"].pop("managedFields", None)
            owned = set(fields.leaves(new, kind.schema, maps=True))
            mine = ("Update", manager, kind.api_version, "")
            self.set_managers(new, [self.kept_entry({"metadata": {}}, mine, owned)])
            return self.commit(kind, namespace, None, new, query)

    def update(
        self, kind: Kind, namespace: str, name: str, body: Json, query: dict[str, str], manager: str, sub: str = ""
    ) -> Json:
        """Replace an object, or its status."""
        with self.lock:
            old = self.get(kind, namespace, name)
            wanted = body["metadata"].get("resourceVersion")
            if wanted and wanted != old["metadata"]["resourceVersion"]:
                self.stale(kind, name)
            new = fields.clone(body)
            if sub == "status":
                # A kubelet writes its node's annotations by the status.
                meta = {"metadata": new["metadata"]} if kind.kind == "Node" else {}
                new = {**fields.clone(old), **meta, "status": new.get("status")}
            elif kind.status and kind.kind != "Node" and "status" in old:
                new["status"] = fields.clone(old["status"])
            elif kind.status and kind.custom:
                new.pop("status", None)
            new = self.cleaned(kind, new)
            new["metadata"]["managedFields"] = fields.clone(old["metadata"].get("managedFields", []))
            self.take_changed(kind, old, new, manager, sub)
            return self.commit(kind, namespace, old, new, query)

    def apply(
        self, kind: Kind, namespace: str, name: str, body: Json, query: dict[str, str], sub: str = ""
    ) -> tuple[int, Json]:
        """Server-side apply."""
        manager = query["fieldManager"]
        self.check_home(kind, namespace, name)
        for problem in fields.type_errors(body, kind.schema):
            place = f"{(body.get('metadata') or {}).get('namespace', '')}/{name}"
            why = f"{place}; {kind.group}/{kind.version}, Kind={kind.kind}"
            raise Refused(500, "", f"failed to create typed patch object ({why}): {problem}")
        body = fields.clone(body)
        body["metadata"].setdefault("name", name)
        with self.lock:
            old = self.table(kind).get((namespace, name))
            wanted = body["metadata"].pop("resourceVersion", None)
            if old is not None and wanted and wanted != old["metadata"]["resourceVersion"]:
                self.stale(kind, name)
            new = self.merged(kind, old, body, manager, force=query.get("force", "").lower() == "true", sub=sub)
            done = self.commit(kind, namespace, old, self.cleaned(kind, new), query)
            return (201 if old is None else 200), done

    def merged(self, kind: Kind, old: Json | None, body: Json, manager: str, *, force: bool, sub: str) -> Json:
        """Return the object that an apply makes, with its managers."""
        have = old or {"metadata": {}}
        applied = fields.leaves(body, kind.schema)
        managers = self.managers(have)
        mine = ("Apply", manager, kind.api_version, sub)
        new = fields.merge(fields.clone(have), body, kind.schema)
        before = fields.leaves(have, kind.schema)
        clashes = []
        for path, value in applied.items():
            if path in before and before[path] == value:
                continue
            for who, owned in managers.items():
                if who != mine and self.owns(owned, path):
                    clashes.append((who, path))
        if clashes and not force:
            self.conflict(clashes)
        for who, path in clashes:
            managers[who] = {item for item in managers[who] if item[: len(path)] != path and path[: len(item)] != item}
        dropped = managers.get(mine, set()) - set(applied)
        others = set().union(*(owned for who, owned in managers.items() if who != mine)) if managers else set()
        for path in sorted(dropped - others, key=len, reverse=True):
            if not any(item[: len(path)] == path for item in applied):
                fields.remove(new, path)
        managers[mine] = set(applied)
        self.set_managers(new, [self.kept_entry(have, who, owned) for who, owned in managers.items() if owned])
        return new

    @staticmethod
    def owns(owned: set[fields.Path], path: fields.Path) -> bool:
        """Say whether a set of owned fields has this field, one above or one below it."""
        return path in owned or any(path[: len(item)] == item or item[: len(path)] == path for item in owned)

    @staticmethod
    def conflict(clashes: list[tuple[tuple[str, str, str, str], fields.Path]]) -> t.NoReturn:
        """Answer that others own these fields."""
        causes = []
        for (operation, manager, api, _sub), path in clashes:
            using = f" using {api}" if operation == "Update" else ""
            why = f'conflict with "{manager}"{using}'
            causes.append({"reason": "FieldManagerConflict", "message": why, "field": fields.readable(path)})
        count = "1 conflict" if len(causes) == 1 else f"{len(causes)} conflicts"
        text = "; ".join(f"{cause['message']}: {cause['field']}" for cause in causes)
        raise Refused(409, "Conflict", f"Apply failed with {count}: {text}", causes=causes)

    @staticmethod
    def stale(kind: Kind, name: str) -> t.NoReturn:
        """Answer that the object is newer than the request."""
        why = f'Operation cannot be fulfilled on {kind.plural} "{name}": the object has been modified; '
        raise conflict(kind, name, f"{why}please apply your changes to the latest version and try again")

    def check_home(self, kind: Kind, namespace: str, name: str) -> None:
        """Refuse a new object in a namespace that ends or is not there."""
        if kind.namespaced and (namespace, name) not in self.table(kind):
            home = self.rows[("", "namespaces")].get(("", namespace))
            if home is None:
                raise Refused(404, "NotFound", f'namespaces "{namespace}" not found', name=namespace, kind="namespaces")
            if home["metadata"].get("deletionTimestamp"):
                message = f"namespace {namespace} is being terminated"
                why = f'{kind.plural} "{name}" is forbidden: unable to create new content in namespace {namespace} '
                why += "because it is being terminated"
                causes = cause("NamespaceTerminating", "metadata.namespace", message)
                raise Refused(403, "Forbidden", why, **causes, name=name, kind=kind.plural)

    def cleaned(self, kind: Kind, body: Json) -> Json:
        """Return the body as a CRD's schema leaves it: pruned and defaulted."""
        body = fields.clone(body)
        body["apiVersion"], body["kind"] = kind.api_version, kind.kind
        if kind.custom:
            body = fields.prune(body, kind.schema)
            fields.set_defaults(body, kind.schema)
        if kind.kind == "Secret":
            body.setdefault("type", "Opaque")
        return body

    # Who owns which field

    @staticmethod
    def managers(obj: Json) -> dict[tuple[str, str, str, str], set[fields.Path]]:
        """Return the owned fields by operation, manager, version and subresource."""
        return {
            (row["operation"], row["manager"], row["apiVersion"], row.get("subresource", "")): fields.from_fields(
                row["fieldsV1"]
            )
            for row in obj["metadata"].get("managedFields") or ()
        }

    def kept_entry(self, old: Json, who: tuple[str, str, str, str], owned: set[fields.Path]) -> Json:
        """Return the row as it is when it says the same, so that an apply without effect changes nothing."""
        tree = fields.to_fields(owned)
        for row in old["metadata"].get("managedFields") or ():
            same = (row["operation"], row["manager"], row["apiVersion"], row.get("subresource", "")) == who
            if same and row["fieldsV1"] == tree:
                return dict(row)
        operation, manager, api, sub = who
        row = {"manager": manager, "operation": operation, "apiVersion": api, "time": now()}
        return {**row, "fieldsType": "FieldsV1", "fieldsV1": tree, **({"subresource": sub} if sub else {})}

    @staticmethod
    def set_managers(obj: Json, rows: list[Json]) -> None:
        """Write managedFields in a stable order."""
        obj["metadata"]["managedFields"] = sorted(
            rows, key=lambda row: (row["operation"], row["manager"], row["apiVersion"])
        )

    def take_changed(self, kind: Kind, old: Json, new: Json, manager: str, sub: str) -> None:
        """Give the fields that an update changed to its manager."""
        before, after = (fields.leaves(obj, kind.schema, maps=True) for obj in (old, new))
        changed = {path for path, value in after.items() if path not in before or before[path] != value}
        gone = set(before) - set(after)
        if not changed and not gone:
            return
        managers = self.managers(new)
        mine = ("Update", manager, kind.api_version, sub)
        for who in managers:
            managers[who] -= gone
            if who != mine:
                managers[who] -= changed
        managers[mine] = managers.get(mine, set()) | changed
        self.set_managers(new, [self.kept_entry(old, who, owned) for who, owned in managers.items() if owned])

    # Storing

    def commit(self, kind: Kind, namespace: str, old: Json | None, new: Json, query: dict[str, str]) -> Json:
        """Ask admission, set what the server sets, and store unless it is a dry run."""
        name = new["metadata"]["name"]
        self.system_fields(kind, namespace, old, new)
        if self.admit is not None:
            new = self.admit("CREATE" if old is None else "UPDATE", kind, fields.clone(old), new)
        if old is not None:
            if self.same(old, new):
                return self.shown(kind, old)
            plain = {key: item for key, item in new.items() if key not in ("metadata", "status")}
            if counted(kind) and plain != {k: item for k, item in old.items() if k not in ("metadata", "status")}:
                new["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        if query.get("dryRun") == "All":
            return self.shown(kind, new)
        if new["metadata"].get("deletionTimestamp") and not new["metadata"].get("finalizers"):
            self.drop(kind, namespace, name, new)
            return new
        self.put(kind, namespace, name, new, "ADDED" if old is None else "MODIFIED")
        for hook in self.after:
            hook(kind, old, self.table(kind).get((namespace, name)))
        # What the caller sees is what was written; controllers act later.
        return self.shown(kind, new)

    @staticmethod
    def same(old: Json, new: Json) -> bool:
        """Say whether nothing but the server's own bookkeeping differs."""
        one, other = ({**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}} for obj in (old, new))
        return one == other

    @staticmethod
    def system_fields(kind: Kind, namespace: str, old: Json | None, new: Json) -> None:
        """Set what the server alone decides."""
        meta = new["metadata"]
        if kind.namespaced:
            meta["namespace"] = namespace
        if old is None:
            meta.update(uid=str(uuid.uuid4()), creationTimestamp=now(), **({"generation": 1} if counted(kind) else {}))
            for name in ("resourceVersion", "deletionTimestamp"):
                meta.pop(name, None)
            if kind.kind == "Namespace":
                new["spec"] = {"finalizers": ["kubernetes"]}
                new["status"] = {"phase": "Active"}
            elif kind.status and (kind.custom or kind.group in ("apps", "batch")):
                new.pop("status", None)
            return
        for name in ("uid", "creationTimestamp", "generation", "deletionTimestamp", "resourceVersion"):
            if name in old["metadata"]:
                meta[name] = old["metadata"][name]
            else:
                meta.pop(name, None)

    def put(self, kind: Kind, namespace: str, name: str, obj: Json, event: str) -> None:
        """Store, number and announce."""
        self.version += 1
        self.writes += kind.kind != "Lease"  # A run's lease comes and goes.
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.table(kind)[(namespace, name)] = obj
        if kind.kind == "CustomResourceDefinition":
            for made in from_crd(obj):
                self.register(made)
        self.announce(event, kind, obj)

    def announce(self, event: str, kind: Kind, obj: Json) -> None:
        """Tell the watches."""
        self.journal.append((self.version, event, kind, obj))
        if len(self.journal) > 20000:
            del self.journal[:10000]
        self.changed.notify_all()

    def delete(self, kind: Kind, namespace: str, name: str, options: Json, query: dict[str, str]) -> Json:
        """Delete, or mark as being deleted while finalizers stand."""
        with self.lock:
            obj = self.get(kind, namespace, name)
            wanted = options.get("preconditions") or {}
            for field in ("uid", "resourceVersion"):
                if wanted.get(field) and wanted[field] != obj["metadata"][field]:
                    why = f'Operation cannot be fulfilled on {kind.plural} "{name}": Precondition failed: {field} in '
                    why += f"precondition: {wanted[field]}, {field} in object meta: {obj['metadata'][field]}"
                    raise Refused(409, "Conflict", why)
            if self.admit is not None:
                self.admit("DELETE", kind, obj, obj)
            done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
            done["details"] = {"name": name, "group": kind.group, "kind": kind.plural, "uid": obj["metadata"]["uid"]}
            if query.get("dryRun") == "All" or options.get("dryRun") == ["All"]:
                return done
            held = obj["metadata"].get("finalizers") or (kind.kind == "Namespace" and obj["spec"].get("finalizers"))
            if not held:
                self.drop(kind, namespace, name, obj)
                return done
            if not obj["metadata"].get("deletionTimestamp"):
                going = fields.clone(obj)
                going["metadata"].update(deletionTimestamp=now(), deletionGracePeriodSeconds=0)
                self.put(kind, namespace, name, going, "MODIFIED")
                for hook in self.after:
                    hook(kind, obj, going)
                return going
            return obj

    def drop(self, kind: Kind, namespace: str, name: str, obj: Json) -> None:
        """Take an object out, and what belongs to it."""
        self.version += 1
        self.writes += kind.kind != "Lease"
        self.table(kind).pop((namespace, name), None)
        obj = fields.clone(obj)
        obj["metadata"]["resourceVersion"] = str(self.version)
        self.announce("DELETED", kind, obj)
        if kind.kind == "CustomResourceDefinition":
            for made in from_crd(obj):
                self.kinds.pop((made.group, made.version, made.plural), None)
                self.rows.pop((made.group, made.plural), None)
        for other in list(self.kinds.values()):
            for key, item in list(self.rows.get((other.group, other.plural), {}).items()):
                owners = item["metadata"].get("ownerReferences") or ()
                if any(owner.get("uid") == obj["metadata"]["uid"] for owner in owners):
                    self.drop(other, *key, item)
        for hook in self.after:
            hook(kind, obj, None)

    def patch_status(self, kind: Kind, namespace: str, name: str, status: Json) -> None:
        """Set the status as a controller does."""
        with self.lock:
            obj = fields.clone(self.table(kind)[(namespace, name)])
            if obj.get("status") != status:
                obj["status"] = status
                self.put(kind, namespace, name, obj, "MODIFIED")
