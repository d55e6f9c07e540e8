# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the manifests to apply: given ones, files and folders, the plan's cluster folder among them."""

from __future__ import annotations

import json
import os
import typing as t

from ansible.module_utils.common.yaml import yaml_load_all

from .._errors import InputError, Problem, RdmaError
from .._fabric.labels import LABEL_FABRIC
from .._fabric.lock import KUSTOMIZATION, LOCK, verified
from .model import Json, Ref
from .requirements import yaml

UNREADABLE = "Correct the file, or run the plan again. [manifest_unreadable]"
# What is in a plan's folder beside objects: values for Helm and a list of the files.
NOT_OBJECTS = ("values.yaml", "values.yml", "deviceplugin.json", KUSTOMIZATION)


def check_plan(folder: str) -> None:
    """Refuse a plan's cluster folder that is not what plan.json was written with.

    A folder that is no plan's passes: it is the user's own.

    :raises RdmaError: when the plan is unfinished, or its files were changed.
    """
    parent, name = os.path.split(os.path.abspath(os.path.expanduser(folder)))
    if name == "cluster" and os.path.exists(os.path.join(parent, LOCK)):
        verified(parent, "cluster")


def files(source: str) -> list[str]:
    """Return the manifest files of a file or folder.

    :raises RdmaError: when there is none.
    """
    path = os.path.expanduser(source)
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        names = sorted(name for name in os.listdir(path) if name.endswith((".yaml", ".yml", ".json")))
        return [os.path.join(path, name) for name in names if name not in NOT_OBJECTS]
    fix = "Run the playbook railops.rdma.plan first, or name another file or folder. [manifests_missing]"
    raise RdmaError(f"There are no manifests: {source!r} does not exist.", fix)


def documents(path: str) -> t.Iterable[t.Any]:
    """Yield the documents of a file; lists are unrolled."""
    try:
        with open(path, "rb") as stream:
            for document in yaml_load_all(stream):
                kind = document.get("kind") if isinstance(document, dict) else ""
                if str(kind).endswith("List") and "items" in document:
                    yield from document["items"] or ()
                elif document is not None:
                    yield document
    except (OSError, TypeError, ValueError, RecursionError, yaml.YAMLError) as exc:
        raise RdmaError(f"{path!r} cannot be read: {exc}.", UNREADABLE) from exc


def read(definitions: t.Iterable[t.Any], sources: t.Iterable[str]) -> dict[Ref, Json]:
    """Return the declared objects by reference.

    :raises InputError: for documents that are no objects and for objects given twice.
    """
    found: dict[Ref, Json] = {}
    problems: list[Problem] = []

    def take(place: str, document: t.Any) -> None:
        try:
            # As the server will have it: dates, which YAML knows, become text.
            document = json.loads(json.dumps(document, default=str))
        except (TypeError, ValueError, RecursionError) as exc:
            problems.append(Problem(place, f"It cannot be read: {exc}.", UNREADABLE))
            return
        meta = document.get("metadata") if isinstance(document, dict) else None
        named = isinstance(meta, dict) and (meta.get("name"), document.get("kind"), document.get("apiVersion"))
        if not named or not all(isinstance(name, str) and name for name in named):
            text = "is not a Kubernetes object: apiVersion, kind or metadata.name is missing."
            problems.append(Problem(place, text, "Set complete objects. [object_incomplete]"))
            return
        ref = Ref.of(document)
        if ref in found:
            problems.append(Problem(place, f"{ref} is given twice.", "Give each object once. [object_duplicate]"))
        found[ref] = document

    for index, document in enumerate(definitions):
        take(f"definitions[{index}]", document)
    for source in sources:
        check_plan(source)
        for path in files(source):
            for index, document in enumerate(documents(path)):
                take(f"{path}[{index}]", document)
    if problems:
        raise InputError(problems)
    return found


def fabric_of(objects: t.Iterable[Json]) -> str:
    """Return the one fabric that the objects' labels name, or nothing."""
    names = {(obj["metadata"].get("labels") or {}).get(LABEL_FABRIC) for obj in objects}
    names.discard(None)
    return str(names.pop()) if len(names) == 1 else ""
