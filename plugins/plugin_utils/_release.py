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

from ..module_utils._cluster.model import Json, below
from ..module_utils._fabric.labels import OBJECT_PREFIX

ANNOTATION = f"{OBJECT_PREFIX}/config-checksum"
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
    found = {(obj["kind"], obj["apiVersion"].partition("/")[0]) for obj in objects}
    return sorted(f"{kind}.{group}" for kind, group in found if "." in group and not group.endswith(".k8s.io"))


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
        mounted = [below(volume, "configMap.name") for volume in template["spec"].get("volumes") or ()]
        read = {name: maps[name].get("data") for name in mounted if name in maps}
        if place is None or not read:
            continue
        part = values
        for key in place:
            part = part.setdefault(key, {})
        part["podAnnotations"] = {ANNOTATION: hashlib.sha256(json.dumps(read, sort_keys=True).encode()).hexdigest()}
    return values
