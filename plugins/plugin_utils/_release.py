# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The workloads of a rendered Helm release, and the configuration that they read at their start. Pure.

Spiderpool's controller, agents and device plugin read their ConfigMaps once, and the chart restarts none of them. A
digest of what a part mounts, as an annotation of its pods, makes Kubernetes roll it when that changes, in one write.
"""

from __future__ import annotations

import hashlib
import json
import typing as t

from ..module_utils._fabric.labels import MANAGED

Json = dict[str, t.Any]

ANNOTATION = f"{MANAGED}/config-checksum"
COMPONENT = "app.kubernetes.io/component"
# Where the chart's values take annotations of a component's pods.
VALUES: t.Mapping[str, tuple[str, ...]] = {
    "spiderpool-controller": ("spiderpoolController",),
    "spiderpool-agent": ("spiderpoolAgent",),
    "spiderpool-rdma-shared-device-plugin": ("rdma", "rdmaSharedDevicePlugin"),
}
WORKLOADS = ("Deployment", "DaemonSet")


def workloads(objects: t.Iterable[Json]) -> list[Json]:
    """Return the Deployments and DaemonSets of a release: kind, name, namespace."""
    found = [
        {"kind": obj["kind"], "name": obj["metadata"]["name"], "namespace": obj["metadata"].get("namespace") or ""}
        for obj in objects
        if obj.get("kind") in WORKLOADS
    ]
    # A later part waits for an earlier one inside the cluster as well: the controller comes first.
    return sorted(found, key=lambda row: (row["kind"] != "Deployment", row["name"]))


def custom_kinds(objects: t.Iterable[Json]) -> list[str]:
    """Return the kinds of a release that Kubernetes does not define, as kind.group."""
    found = set()
    for obj in objects:
        group, slash, _version = str(obj.get("apiVersion")).partition("/")
        if slash and "." in group and not group.endswith(".k8s.io"):
            found.add(f"{obj.get('kind')}.{group}")
    return sorted(found)


def checksums(objects: t.Iterable[Json]) -> Json:
    """Return the Helm values that annotate the pods of each part with the digest of the ConfigMaps that it mounts."""
    rows = list(objects)
    maps = {row["metadata"]["name"]: row for row in rows if row.get("kind") == "ConfigMap"}
    values: Json = {}
    for row in rows:
        if row.get("kind") not in WORKLOADS:
            continue
        template = row["spec"]["template"]
        place = VALUES.get((template["metadata"].get("labels") or {}).get(COMPONENT, ""))
        read = {name: maps[name].get("data") for name in sorted(set(_mounted(template["spec"]))) if name in maps}
        if place is None or not read:
            continue
        below = values
        for key in place:
            below = below.setdefault(key, {})
        below["podAnnotations"] = {ANNOTATION: hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()}
    return values


def _mounted(spec: Json) -> t.Iterator[str]:
    """Yield the names of the ConfigMaps that a pod reads."""
    for volume in spec.get("volumes") or ():
        for source in (volume, *((volume.get("projected") or {}).get("sources") or ())):
            if "configMap" in source:
                yield str(source["configMap"].get("name"))
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        for row in container.get("env") or ():
            if found := (row.get("valueFrom") or {}).get("configMapKeyRef"):
                yield str(found.get("name"))
        for row in container.get("envFrom") or ():
            if "configMapRef" in row:
                yield str(row["configMapRef"].get("name"))
