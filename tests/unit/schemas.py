# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether an API server with a CRD would take an object: its schema, fields that it does not know, and CEL rules."""

from __future__ import annotations

import re
import typing as t

import yaml

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Json = dict[str, t.Any]
RULE = re.compile(r"self\.(\w+) >= self\.(\w+)")
"""The only CEL rule of the CRDs that tests use; another one has to be added here, and is no silent pass."""
BITS = {"int32": 31, "int64": 63}


def _beyond(value: object, schema: Json, place: str) -> Iterator[str]:
    """Give what JSON Schema does not say: unknown fields, the sizes of integers, CEL."""
    if isinstance(value, dict) and "properties" in schema:
        for key, item in value.items():
            if key in schema["properties"]:
                yield from _beyond(item, schema["properties"][key], f"{place}.{key}")
            elif place != ".metadata" and not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{place}.{key}: unknown field"
        for row in schema.get("x-kubernetes-validations", ()):
            rule = RULE.fullmatch(row["rule"])
            if rule is None:
                yield f"{place}: the rule {row['rule']!r} is not known here"
            elif not value[rule.group(1)] >= value[rule.group(2)]:
                yield f"{place}: {row['message']}"
    elif isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _beyond(item, schema["items"], f"{place}[{index}]")
    elif isinstance(value, int) and schema.get("format") in BITS and value.bit_length() > BITS[schema["format"]]:
        yield f"{place}: {value} is no {schema['format']}"


def server(*paths: Path) -> Callable[[Json], list[str]]:
    """Return what says why a server with these CRDs would not take an object, or would drop fields of it."""
    import jsonschema

    known = {}
    for path in paths:
        for crd in filter(None, yaml.safe_load_all(path.read_text(encoding="utf-8"))):
            spec = crd["spec"]
            for version in spec["versions"]:
                schema = version["schema"]["openAPIV3Schema"]
                key = f"{spec['group']}/{version['name']}", spec["names"]["kind"]
                known[key] = schema, jsonschema.Draft202012Validator(schema), spec["scope"] == "Namespaced"

    def wrong(obj: Json) -> list[str]:
        schema, validator, namespaced = known[obj["apiVersion"], obj["kind"]]
        found = [f"{one.json_path}: {one.message}" for one in validator.iter_errors(obj)]
        if ("namespace" in obj["metadata"]) != namespaced:
            found.append(f"metadata.namespace: {'missing' if namespaced else 'none is taken'}")
        return found or list(_beyond(obj, schema, ""))

    return wrong
