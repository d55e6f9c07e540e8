# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the API double does with fields: schema checks, pruning, defaults, and the merge of server-side apply.

All of it is pure: objects are dicts, a schema is the openAPIV3Schema of a CRD, a set of owned fields is a set of paths.
A path is a tuple of the steps of fieldsV1, `f:name`. A list has one owner: none of Spiderpool's lists merges by key.
"""

from __future__ import annotations

import typing as t

from ansible_collections.railops.rdma.tests.admission.schema import copied as clone

Path = tuple[str, ...]
FREE: dict[str, t.Any] = {"x-kubernetes-preserve-unknown-fields": True}
META = {
    "type": "object",
    "properties": {
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "ownerReferences": {"type": "array", "items": FREE},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        **{
            name: {"type": "string"}
            for name in ("name", "namespace", "generateName", "uid", "resourceVersion", "creationTimestamp", "selfLink")
        },
        "deletionTimestamp": {"type": "string"},
        "generation": {"type": "integer"},
        "deletionGracePeriodSeconds": {"type": "integer"},
        "managedFields": {"type": "array", "items": FREE},
    },
}
_NOT_OWNED = {
    *(("f:metadata", f"f:{name}") for name in META["properties"]),  # type: ignore[attr-defined]
    ("f:apiVersion",),
    ("f:kind",),
} - {("f:metadata", f"f:{name}") for name in ("labels", "annotations", "finalizers", "ownerReferences")}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def is_free(schema: dict[str, t.Any]) -> bool:
    """Say whether the schema lets any field through."""
    return bool(schema.get("x-kubernetes-preserve-unknown-fields")) or (
        schema.get("type") in (None, "object") and "properties" not in schema and "additionalProperties" not in schema
    )


def child(schema: dict[str, t.Any], name: str) -> dict[str, t.Any] | None:
    """Return the schema of a field, or None when it is not declared."""
    properties = schema.get("properties") or {}
    if name in properties:
        found: dict[str, t.Any] = properties[name]
        return found
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return more
    if more is True or is_free(schema):
        return FREE
    return None


def wrong_type(value: t.Any, schema: dict[str, t.Any], place: str) -> str:
    """Return what is wrong with the type of this one value, or nothing."""
    wanted = schema.get("type")
    allowed = _TYPES.get(wanted or "")
    if not allowed or value is None or schema.get("x-kubernetes-int-or-string"):
        return ""
    if isinstance(value, allowed) and (not isinstance(value, bool) or wanted == "boolean"):
        return ""
    if wanted in ("integer", "number"):
        got = {str: "string", bool: "bool", list: "[]interface {}", dict: "map[string]interface {}"}[type(value)]
        return f"{place}: expected numeric (int or float), got {got}"
    noun = {"object": "map", "array": "list"}.get(wanted or "", wanted)
    # Of the server's own kinds; of a CRD it is &value.valueUnstructured{...}.
    shown = f"[{' '.join(map(str, value))}]" if isinstance(value, list) else value
    return f"{place}: expected {noun}, got &{{{shown}}}"


def type_errors(value: t.Any, schema: dict[str, t.Any], place: str = "") -> t.Iterator[str]:
    """Report what server-side apply cannot type: undeclared fields and wrong types."""
    problem = wrong_type(value, schema, place)
    if problem:
        yield problem
        return
    if schema.get("x-kubernetes-int-or-string"):
        return
    if isinstance(value, dict):
        for name, item in value.items():
            below = child(schema, name)
            if below is None:
                yield f"{place}.{name}: field not declared in schema"
            else:
                yield from type_errors(item, below, f"{place}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from type_errors(item, schema.get("items", FREE), f"{place}[{index}]")


def prune(value: t.Any, schema: dict[str, t.Any]) -> t.Any:
    """Return the value without undeclared fields."""
    if isinstance(value, dict):
        below = {name: child(schema, name) for name in value}
        return {name: prune(item, found) for name, item in value.items() if (found := below[name]) is not None}
    return [prune(item, schema.get("items", FREE)) for item in value] if isinstance(value, list) else value


def set_defaults(value: t.Any, schema: dict[str, t.Any]) -> None:
    """Fill in the defaults of the schema, in place."""
    if isinstance(value, dict):
        for name, below in (schema.get("properties") or {}).items():
            if name not in value and "default" in below:
                value[name] = clone(below["default"])
        for name, item in value.items():
            below_item = child(schema, name)
            if below_item is not None:
                set_defaults(item, below_item)
    elif isinstance(value, list):
        for item in value:
            set_defaults(item, schema.get("items", FREE))


def leaves(value: t.Any, schema: dict[str, t.Any], path: Path = (), *, maps: bool = False) -> dict[Path, t.Any]:
    """Return every field that a manager of this value owns, with what it holds.

    :param maps: also that there is a map at all, as who creates or updates owns it, and who applies does not.
    """
    if isinstance(value, dict) and value and schema.get("x-kubernetes-map-type") != "atomic":
        found: dict[Path, t.Any] = {(*path, "."): None} if maps and path not in ((), ("f:metadata",)) else {}
        for name, item in value.items():
            step = (*path, f"f:{name}")
            if step not in _NOT_OWNED:
                found.update(leaves(item, child(schema, name) or FREE, step, maps=maps))
        return found
    return {} if path in _NOT_OWNED or path in ((), ("f:metadata",)) else {path: value}


def merge(live: t.Any, applied: t.Any, schema: dict[str, t.Any]) -> t.Any:
    """Return live with the applied value laid over it, as structured merge does."""
    if isinstance(applied, dict) and isinstance(live, dict) and schema.get("x-kubernetes-map-type") != "atomic":
        merged = dict(live)
        for name, item in applied.items():
            merged[name] = merge(live[name], item, child(schema, name) or FREE) if name in live else item
        return merged
    return applied


def remove(value: t.Any, path: Path) -> None:
    """Take one field out, in place, and what is empty without it; what is not there is not missed."""
    name, rest = path[0][2:], path[1:]
    if isinstance(value, dict) and name in value:
        if rest:
            remove(value[name], rest)
        if not rest or value[name] in ({}, []):
            del value[name]


def to_fields(paths: t.Iterable[Path]) -> dict[str, t.Any]:
    """Return a set of paths as fieldsV1."""
    tree: dict[str, t.Any] = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def from_fields(tree: dict[str, t.Any], path: Path = ()) -> set[Path]:
    """Return fieldsV1 as a set of paths."""
    found: set[Path] = set()
    for step, below in tree.items():
        found |= from_fields(below, (*path, step)) if below else {(*path, step)}
    return found


def readable(path: Path) -> str:
    """Return a path as messages of the API have it: `.spec.ips`."""
    return "".join(f".{step[2:]}" for step in path)
