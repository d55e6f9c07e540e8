# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The CRDs of a chart and of the cluster: their owners, and whether existing ones serve the chart's versions. Pure."""

from __future__ import annotations

import typing as t

from .._errors import Problem
from .._fabric.labels import NETWORK, SRIOV
from .._fabric.labels import SPIDERPOOL as SPIDERPOOL_API
from .._formatting import shortened
from .compare import applied
from .components import MULTUS, SPIDERPOOL, SRIOV_OPERATOR, Release, owner_of, version_of
from .model import Json

API = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
PART_OF = {
    SPIDERPOOL_API.partition("/")[0]: SPIDERPOOL,
    NETWORK[0].partition("/")[0]: MULTUS,
    SRIOV.partition("/")[0]: SRIOV_OPERATOR,
}
_MOST = 5


def sort(
    charts: t.Iterable[Json], live: dict[str, Json], managed: t.Collection[str], release: Release
) -> tuple[list[str], list[str], list[Problem]]:
    """Return which CRDs of a chart are to be applied, a sentence for each owner whose CRDs stay, and the problems.

    Those of the parts that this collection manages are applied. What belongs to another stays as it is when it serves
    what the chart's own would, and is refused otherwise.

    :param charts: the chart's CRDs.
    :param live: the cluster's CRDs by name.
    :param managed: the parts.
    """
    apply: list[str] = []
    problems: list[Problem] = []
    others: dict[str, list[str]] = {}
    for crd in charts:
        name = crd["metadata"]["name"]
        part = PART_OF.get(crd["spec"]["group"], SPIDERPOOL)
        have = live.get(name)
        # Spiderpool makes NetworkAttachmentDefinitions, whichever chart installs Multus.
        if part not in managed and (part != MULTUS or have is not None):
            continue
        owner = owner_of((have or crd)["metadata"])
        own = have is None or (
            owner.marked in ("", str(release))
            and (applied(have["metadata"]) or (part == SPIDERPOOL and release.managed))
        )
        if own:
            apply.append(name)
            continue
        lacking = list(lacks(crd, have or {}))
        source = f"{owner.name} ({version_of(have or crd) or 'version unknown'})"
        if not lacking:
            others.setdefault(source, []).append(name)
            continue
        problems.append(
            Problem(
                f"CRD {name}",
                f"It belongs to {source}, and lacks {shortened(lacking, _MOST)}.",
                f"Update it at its source, or delete it if nothing uses it; or use that part as it is: "
                f"cluster_components: {{{part}: adopt}}. [crd_existing]",
            )
        )
    left = [f"CRDs of {owner} serve, and stay: {', '.join(names)}" for owner, names in others.items()]
    return apply, left, problems


def lacks(desired: Json, have: Json) -> t.Iterator[str]:
    """Yield the versions and fields that a CRD lacks and another one has."""
    if desired["spec"]["scope"] != have["spec"]["scope"]:
        yield f"the scope {desired['spec']['scope']}"
    served = {row["name"]: row for row in have["spec"]["versions"] if row.get("served", True)}
    for row in desired["spec"]["versions"]:
        if row["name"] in served:
            yield from _missing(schema_of(row), schema_of(served[row["name"]]), "")
        elif row.get("served", True):
            yield f"version {row['name']}"


def schema_of(version: Json) -> Json:
    """Return the schema of one version of a CRD; a version without one takes any field."""
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    return schema if schema is not None else {"x-kubernetes-preserve-unknown-fields": True}


def _missing(desired: Json, have: Json, place: str) -> t.Iterator[str]:
    """Yield the fields that a schema lacks."""
    if have.get("x-kubernetes-preserve-unknown-fields"):
        return
    known = have.get("properties") or {}
    for name, below in (desired.get("properties") or {}).items():
        # Every object has these, whether or not a schema says so.
        if not place and name in ("apiVersion", "kind", "metadata"):
            continue
        path = f"{place}.{name}" if place else name
        if name in known:
            yield from _missing(below, known[name], path)
        elif "additionalProperties" not in have:
            yield path
    if "items" in desired:
        yield from _missing(desired["items"], have.get("items") or {}, f"{place}[]")
