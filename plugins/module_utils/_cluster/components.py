# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of a cluster that may exist already: their state and their owner. Pure.

A part is `managed` (this collection installs it) or adopted: used as it is; what it must be then is in `adopted`.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._errors import Problem
from .._fabric.labels import CONFIG
from .compare import writers
from .model import FIELD_MANAGER, Json, below

SPIDERPOOL, NV_IPAM, MULTUS = "spiderpool", "nv_ipam", "multus"
SRIOV_OPERATOR, DEVICE_PLUGIN = "sriov_operator", "rdma_device_plugin"
NETWORK_OPERATOR = "network_operator"
MANAGED, ADOPT = "managed", "adopt"
# Certainty of a finding: a leftover CRD, a user's objects, a running component.
SERVED, USED, RUNS = 1, 2, 3


class Kind(t.NamedTuple):
    """A component: its title and how to recognize it."""

    title: str
    sign: str
    """A workload's name, its component label, or the last part of an image's name. The first kind that fits counts."""
    operated: str = ""
    """Its place in the policies of NVIDIA's network-operator."""


KINDS = {
    SPIDERPOOL: Kind("Spiderpool", r"spiderpool-(agent|controller)"),
    NV_IPAM: Kind("nv-ipam", r"nv-ipam-(node|controller)|nvidia-k8s-ipam", "spec.nvIpam"),
    SRIOV_OPERATOR: Kind("the SR-IOV operator", r"(.*-)?sriov(-network)?-operator"),
    DEVICE_PLUGIN: Kind(
        "the shared device plugin", r"(.*-)?rdma-shared-(dp|dev|device)(-.*)?", "spec.rdmaSharedDevicePlugin"
    ),
    MULTUS: Kind("Multus", r"(.*-)?multus(-(cni|ds|daemon)(-.*)?)?", "spec.secondaryNetwork.multus"),
    NETWORK_OPERATOR: Kind("NVIDIA's network-operator", r"(.*-)?network-operator"),
}


@dataclass(frozen=True)
class Release:
    """The Helm release of this collection, and whether its note marks it as managed."""

    name: str = "spiderpool"
    namespace: str = "spiderpool"
    managed: bool = False
    there: bool = False
    chart: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Owner:
    """The owner of an object. `marked`: the release, operator or object in its marks, empty without one."""

    name: str
    marked: str = ""


@dataclass(frozen=True)
class FoundPart:
    """One thing that is there of a part."""

    part: str
    place: str
    owner: str = "an unknown owner"
    version: str = ""
    managed: bool = False
    sure: int = RUNS
    body: Json = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.version or 'version unknown'}, {self.place} of {self.owner}"


def owner_of(meta: Json) -> Owner:
    """Return who an object belongs to: Helm, OLM, another object, or who wrote it last."""
    notes, labels = meta.get("annotations") or {}, meta.get("labels") or {}
    if name := notes.get("meta.helm.sh/release-name"):
        release = f"{notes.get('meta.helm.sh/release-namespace', '')}/{name}"
        return Owner(f"the Helm release {release}", release)
    olm = labels.get("olm.owner") or next((name for name in labels if name.startswith("operators.coreos.com/")), "")
    if olm or labels.get("olm.managed"):
        return Owner(f"OLM ({olm or 'olm.managed'})", "olm")
    for row in meta.get("ownerReferences") or ():
        return Owner(f"{row.get('kind')} {row.get('name')}", f"{row.get('kind')}/{row.get('name')}")
    return Owner(", ".join(name for name in writers(meta) if name != FIELD_MANAGER) or "an unknown owner")


def version_of(obj: Json) -> str:
    """Return the version that labels or images of an object say; empty when none does."""
    labels = obj["metadata"].get("labels") or {}
    chart = str(labels.get("helm.sh/chart", ""))
    tags = [image.rpartition(":")[2] for image in images(obj) if ":" in image.rpartition("/")[2] and "@" not in image]
    versions = (labels.get("app.kubernetes.io/version"), chart.rpartition("-")[2], *tags)
    return next((str(text) for text in versions if text), "")


def containers(obj: Json) -> list[Json]:
    """Return the containers of a workload's pods."""
    pod = below(obj, "spec.template.spec") or {}
    return [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]


def images(obj: Json) -> list[str]:
    """Return the images of a workload."""
    return [str(row.get("image") or "") for row in containers(obj)]


def part_of(obj: Json) -> str:
    """Return which part a workload is, by the signs of KINDS; empty for none."""
    meta = obj["metadata"]
    words = [meta["name"], (meta.get("labels") or {}).get("app.kubernetes.io/component", "")]
    words += [re.split("[:@]", image.rpartition("/")[2])[0] for image in images(obj)]
    return next((part for part, kind in KINDS.items() if any(re.fullmatch(kind.sign, word) for word in words)), "")


def workloads_found(objects: t.Iterable[Json], release: Release) -> t.Iterator[FoundPart]:
    """Yield the parts among the Deployments and DaemonSets of a cluster."""
    for obj in objects:
        if not (part := part_of(obj)):
            continue
        meta = obj["metadata"]
        owner = owner_of(meta)
        managed = release.managed and owner.marked == str(release)
        place = f"{obj['kind']} {meta.get('namespace')}/{meta['name']}"
        yield FoundPart(part, place, owner.name, version_of(obj), managed, RUNS, obj)
        # Spiderpool's agent brings Multus along.
        if part == SPIDERPOOL and any("multus" in str(row.get("name")) for row in containers(obj)):
            yield FoundPart(MULTUS, place, owner.name, "", managed, RUNS, obj)


def policies_found(policies: t.Iterable[Json]) -> t.Iterator[FoundPart]:
    """Yield the parts that NVIDIA's network-operator brings, by its NicClusterPolicy and NicNodePolicies."""
    for obj in policies:
        for part, kind in KINDS.items():
            if found := kind.operated and below(obj, kind.operated):
                place = f"{obj['kind']} {obj['metadata']['name']}"
                version = str(found.get("version", ""))
                yield FoundPart(part, place, KINDS[NETWORK_OPERATOR].title, version, False, RUNS, found)


def networks_found(networks: t.Iterable[Json]) -> t.Iterator[FoundPart]:
    """Yield Multus where a user has NetworkAttachmentDefinitions that Spiderpool did not make."""
    for obj in networks:
        if not made_by_spiderpool(obj):
            meta = obj["metadata"]
            place = f"NetworkAttachmentDefinition {meta.get('namespace')}/{meta['name']}"
            yield FoundPart(MULTUS, place, owner_of(meta).name, "", False, USED)
            return


def made_by_spiderpool(network: Json) -> bool:
    """Return whether a NetworkAttachmentDefinition follows a SpiderMultusConfig."""
    return any(row.get("kind") == CONFIG for row in network["metadata"].get("ownerReferences") or ())


def taken_networks(networks: t.Iterable[Json], planned: t.Collection[str]) -> t.Iterator[Problem]:
    """Yield a user's NetworkAttachmentDefinitions that Spiderpool would overwrite for a config of the plan.

    :param planned: the plan's configs, as namespace/name.
    """
    for obj in networks:
        name = f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        if name in planned and not made_by_spiderpool(obj):
            yield Problem(
                f"NetworkAttachmentDefinition {name}",
                f"It belongs to {owner_of(obj['metadata']).name}, and Spiderpool would overwrite it for the plan's "
                f"{CONFIG} of that name.",
                "Set another fabric_name or fabric_namespace and plan again, or delete it. [object_name_conflict]",
            )


def needed(values: Json) -> list[str]:
    """Return the parts that the chart would install with these values."""
    installs = {
        MULTUS: below(values, "multus.multusCNI.install") is not False,
        SRIOV_OPERATOR: below(values, "sriov.install"),
        DEVICE_PLUGIN: below(values, "rdma.rdmaSharedDevicePlugin.install"),
    }
    return [SPIDERPOOL, *(part for part, wanted in installs.items() if wanted)]


def states(
    needs: t.Sequence[str], settings: t.Mapping[str, str], found: t.Sequence[FoundPart], release: Release
) -> tuple[dict[str, str], list[Problem], list[str]]:
    """Return whether each part is managed or adopted, what cannot be so, and which parts wait for a setting.

    :param needs: the parts that the plan needs.
    :param settings: managed or adopt by part, as far as the user says it.
    """
    made: dict[str, str] = {}
    problems: list[Problem] = []
    undecided: list[str] = []
    same = f"the Helm release {release}"
    # The parts of a release that is taken over are taken over with it.
    takeover = settings.get(SPIDERPOOL) == MANAGED
    # The chart's parts come with it, or not at all.
    unset = ADOPT if settings.get(SPIDERPOOL) == ADOPT else ""
    for part in needs:
        rows = sorted((row for row in found if row.part == part), key=lambda row: -row.sure)
        existing = [] if any(row.managed or (takeover and row.owner == same) for row in rows) else rows
        there = existing[0] if existing else None
        title, setting, place = KINDS[part].title, settings.get(part) or unset, f"cluster_components.{part}"
        made[part] = setting or MANAGED
        wrong = None
        if setting == ADOPT:
            if not rows:
                text = f"The plan needs {title}, which is to be adopted, and there is none in the cluster."
                wrong = Problem(place, text, "Install it, or leave this setting out. [adopt_missing]")
        elif unset:
            text = f"This collection does not install {title} here."
            wrong = Problem(place, text, f"Set it to {ADOPT}, or leave it out. [component_unknown]")
        elif there and setting == MANAGED and there.sure == RUNS:
            text = f"{title} exists already ({there}): a second one would conflict with it."
            wrong = Problem(place, text, f"Set it to {ADOPT}, or remove that one first. [component_duplicate]")
        elif there and not setting and there.sure > SERVED:
            undecided.append(part)
            other = "" if there.sure == RUNS else f"; {MANAGED} where no Multus runs"
            if part == SPIDERPOOL and there.owner == same:
                other = f"; {MANAGED}, with spiderpool_take_ownership: true, takes this release over"
            text = f"{title} exists already ({there}), and no note shows that this collection made it."
            wrong = Problem(place, text, f"Set it to {ADOPT} to use it as it is{other}. [component_existing]")
        if wrong:
            problems.append(wrong)
    return made, problems, undecided


def value_changes(now: t.Any, then: t.Any, place: str = "") -> t.Iterator[str]:
    """Yield the paths of the Helm values that would change, also back to the chart's own. Values may be secrets."""
    if isinstance(now, dict) and isinstance(then, dict):
        for name in sorted({*now, *then}):
            yield from value_changes(now.get(name), then.get(name), f"{place}.{name}" if place else name)
    elif now != then:
        yield place
