# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Parts of a cluster that others may have installed: what is there, whose it is, and whether it serves the plan. Pure.

A part is `managed` (this collection installs it) or adopted: used as it is. What an adopted part must be stands in one
table, REQUIREMENTS, and is compared row by row.
"""

from __future__ import annotations

import operator
import re
import typing as t
from dataclasses import dataclass, field

from .._errors import Problem
from .._fabric.labels import CONFIG, RESOURCE_PREFIX
from .compare import writers
from .ground import CONFIGURATIONS, PROGRAMS, USUAL
from .model import FIELD_MANAGER, Json, below
from .nodes import resource

SPIDERPOOL, NV_IPAM, MULTUS = "spiderpool", "nv_ipam", "multus"
SRIOV_OPERATOR, DEVICE_PLUGIN = "sriov_operator", "rdma_device_plugin"
NETWORK_OPERATOR = "network_operator"
MANAGED, ADOPT = "managed", "adopt"
# How sure a finding is: a CRD that somebody left, objects of a user, a part that runs.
SERVED, USED, RUNS = 1, 2, 3
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


class Kind(t.NamedTuple):
    """A part as it is told and known."""

    title: str
    sign: str
    """A workload's name, its component label, or the last part of an image's name. The first kind that fits counts."""
    operated: str = ""
    """Where NVIDIA's network-operator has it in its policies."""


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
    """The Helm release of this collection, and whether its note says that it is ours."""

    name: str = "spiderpool"
    namespace: str = "spiderpool"
    ours: bool = False
    there: bool = False
    chart: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Owner:
    """Who an object belongs to. `marked`: the release, operator or object that its marks name, empty without one."""

    name: str
    marked: str = ""


@dataclass(frozen=True)
class FoundPart:
    """One thing that is there of a part."""

    part: str
    place: str
    owner: str = "an unknown owner"
    version: str = ""
    ours: bool = False
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
    names = [name for name in writers(meta) if name != FIELD_MANAGER]
    return Owner(", ".join(names) or "an unknown owner")


def version_of(obj: Json) -> str:
    """Return the version that labels or images of an object say; empty when none does."""
    labels = obj["metadata"].get("labels") or {}
    chart = str(labels.get("helm.sh/chart", ""))
    tags = [image.rpartition(":")[2] for image in images(obj) if ":" in image.rpartition("/")[2] and "@" not in image]
    told = (labels.get("app.kubernetes.io/version"), chart.rpartition("-")[2], *tags)
    return next((str(text) for text in told if text), "")


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
    """Give the parts among the Deployments and DaemonSets of a cluster."""
    for obj in objects:
        if not (part := part_of(obj)):
            continue
        meta = obj["metadata"]
        owner = owner_of(meta)
        ours = release.ours and owner.marked == str(release)
        place = f"{obj['kind']} {meta.get('namespace')}/{meta['name']}"
        found = FoundPart(part, place, owner.name, version_of(obj), ours, RUNS, obj)
        yield found
        # Spiderpool's agent brings Multus along.
        if part == SPIDERPOOL and any("multus" in str(row.get("name")) for row in containers(obj)):
            yield FoundPart(MULTUS, place, owner.name, "", ours, RUNS, obj)


def policies_found(policies: t.Iterable[Json]) -> t.Iterator[FoundPart]:
    """Give the parts that NVIDIA's network-operator brings, by its NicClusterPolicy and NicNodePolicies."""
    for obj in policies:
        for part, kind in KINDS.items():
            if found := kind.operated and below(obj, kind.operated):
                place = f"{obj['kind']} {obj['metadata']['name']}"
                version = str(found.get("version", ""))
                yield FoundPart(part, place, KINDS[NETWORK_OPERATOR].title, version, False, RUNS, found)


def networks_found(networks: t.Iterable[Json]) -> t.Iterator[FoundPart]:
    """Give Multus where a user has NetworkAttachmentDefinitions that Spiderpool did not make."""
    for obj in networks:
        if not made_by_spiderpool(obj):
            meta = obj["metadata"]
            place = f"NetworkAttachmentDefinition {meta.get('namespace')}/{meta['name']}"
            yield FoundPart(MULTUS, place, owner_of(meta).name, "", False, USED)
            return


def made_by_spiderpool(network: Json) -> bool:
    """Say whether a NetworkAttachmentDefinition follows a SpiderMultusConfig."""
    return any(row.get("kind") == CONFIG for row in network["metadata"].get("ownerReferences") or ())


def taken_networks(networks: t.Iterable[Json], planned: t.Collection[str]) -> t.Iterator[Problem]:
    """Give a user's NetworkAttachmentDefinitions that Spiderpool would overwrite for a config of the plan.

    :param planned: the plan's configs, as namespace/name.
    """
    for obj in networks:
        name = f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
        if name in planned and not made_by_spiderpool(obj):
            yield Problem(
                f"NetworkAttachmentDefinition {name}",
                f"It belongs to {owner_of(obj['metadata']).name}, and Spiderpool would overwrite it for the plan's "
                f"{CONFIG} of that name.",
                "Give the fabric another fabric_name or fabric_namespace and plan again, or delete it. [foreign_name]",
            )


def needed(values: Json) -> list[str]:
    """Return the parts that the chart would install with these values."""
    asked = {
        MULTUS: below(values, "multus.multusCNI.install") is not False,
        SRIOV_OPERATOR: below(values, "sriov.install"),
        DEVICE_PLUGIN: below(values, "rdma.rdmaSharedDevicePlugin.install"),
    }
    return [SPIDERPOOL, *(part for part, wanted in asked.items() if wanted)]


def states(
    needs: t.Sequence[str], settings: t.Mapping[str, str], found: t.Sequence[FoundPart], release: Release
) -> tuple[dict[str, str], list[Problem], list[str]]:
    """Return whether each part is managed or adopted, what cannot be so, and which parts wait for a setting.

    :param needs: the parts that the plan needs.
    :param settings: managed or adopt by part, as far as the user says it.
    """
    made: dict[str, str] = {}
    problems: list[Problem] = []
    asked: list[str] = []
    same = f"the Helm release {release}"
    # What comes with a release that is to be taken over comes along with it.
    taken = settings.get(SPIDERPOOL) == MANAGED
    # The chart's parts come with it, or not at all.
    unset = ADOPT if settings.get(SPIDERPOOL) == ADOPT else ""
    for part in needs:
        rows = sorted((row for row in found if row.part == part), key=lambda row: -row.sure)
        theirs = [] if any(row.ours or (taken and row.owner == same) for row in rows) else rows
        there = theirs[0] if theirs else None
        title, setting, place = KINDS[part].title, settings.get(part) or unset, f"cluster_components.{part}"
        made[part] = setting or MANAGED
        wrong = None
        if setting == ADOPT:
            if not rows:
                text = f"The plan needs {title}, which is to be adopted, and there is none in the cluster."
                wrong = Problem(place, text, "Install it, or leave this setting out. [adopt_missing]")
        elif part == NV_IPAM or unset:
            text = f"This collection does not install {title} here."
            wrong = Problem(place, text, f"Set it to {ADOPT}, or leave it out. [component_unknown]")
        elif there and setting == MANAGED and there.sure == RUNS:
            text = f"{title} is there already ({there}): a second one would work against it."
            wrong = Problem(place, text, f"Set it to {ADOPT}, or take that one away first. [component_second]")
        elif there and not setting and there.sure > SERVED:
            asked.append(part)
            other = "" if there.sure == RUNS else f"; {MANAGED} where no Multus runs"
            if part == SPIDERPOOL and there.owner == same:
                other = f"; {MANAGED}, with spiderpool_take_over: true, takes this release over"
            text = f"{title} is there already ({there}), and no note says that this collection made it."
            wrong = Problem(place, text, f"Set it to {ADOPT} to use it as it is{other}. [component_foreign]")
        if wrong:
            problems.append(wrong)
    return made, problems, asked


def value_changes(now: t.Any, then: t.Any, place: str = "") -> t.Iterator[str]:
    """Give the paths of the Helm values that would change, also back to the chart's own. Values may be secrets."""
    if isinstance(now, dict) and isinstance(then, dict):
        for name in sorted({*now, *then}):
            yield from value_changes(now.get(name), then.get(name), f"{place}.{name}" if place else name)
    elif now != then:
        yield place


# What an adopted part must be


@dataclass(frozen=True)
class PlannedParts:
    """What the plan needs of parts of others."""

    values: Json = field(default_factory=dict)
    policies: t.Sequence[Json] = ()
    folders: t.Mapping[str, str] = field(default_factory=lambda: dict(USUAL.folders))


@dataclass(frozen=True)
class AdoptedPart:
    """What an adopted part says of itself. What it does not tell is None."""

    found: t.Sequence[FoundPart] = ()
    config: Json = field(default_factory=dict)
    """Spiderpool's conf.yml."""
    plugin: t.Sequence[Json] | None = None
    """Entries of the device plugin's configuration."""
    lacking: t.Sequence[str] = ()
    """Fields of the plan's objects that the part's CRDs do not know."""

    @property
    def version(self) -> str:
        """Return its version, if one of its workloads says it."""
        return next((row.version for row in self.found if row.version), "")

    def paths(self) -> set[str]:
        """Return the folders of a node that its pods mount; none where no workload is seen."""
        volumes = [volume for row in self.found for volume in below(row.body, "spec.template.spec.volumes") or ()]
        return {str(row["hostPath"].get("path", "")).rstrip("/") for row in volumes if "hostPath" in row}

    def env(self, name: str) -> str | None:
        """Return a variable of its containers."""
        rows = [row for one in self.found for box in containers(one.body) for row in box.get("env") or ()]
        return next((str(row.get("value")) for row in rows if row.get("name") == name and "value" in row), None)

    def namespaces(self) -> set[str]:
        """Return where its workloads are."""
        return {str(row.body["metadata"].get("namespace")) for row in self.found if "metadata" in row.body}


def _resources(entries: t.Iterable[Json]) -> list[str]:
    return sorted({resource(row) for row in entries})


def _among(planned: t.Any, seen: t.Any) -> bool:
    return bool(set(planned) <= set(seen))


def _between(planned: tuple[tuple[int, int], tuple[int, int]], seen: t.Any) -> bool:
    """Say whether a version is from the first to before the second; a text that is none, as operators have, passes."""
    told = _VERSION.match(str(seen))
    return told is None or planned[0] <= (int(told[1]), int(told[2])) < planned[1]


@dataclass(frozen=True)
class Requirement:
    """One thing that an adopted part must be. `planned` None: the plan does not ask; `seen` `...`: it does not tell."""

    part: str
    what: str
    planned: t.Callable[[PlannedParts], t.Any]
    seen: t.Callable[[AdoptedPart], t.Any]
    fix: str
    good: t.Callable[[t.Any, t.Any], bool] = operator.eq


def _version(part: str, first: tuple[int, int], before: tuple[int, int]) -> Requirement:
    fix = f"Bring it to {first[0]}.{first[1]} or newer, below {before[0]}.{before[1]}."
    return Requirement(part, "version", lambda plan: (first, before), lambda seen: seen.version or ..., fix, _between)


def _chart(what: str, value: str, key: str, fixed: bool | None = None, unset: bool | None = None) -> Requirement:
    """Return the row of a switch of Spiderpool's conf.yml: as the plan has it, or as it must be for any plan.

    :param what: its name for people.
    :param value: the chart's value behind it.
    :param key: where conf.yml has it.
    :param fixed: what it must be for any plan.
    :param unset: what it is where conf.yml does not say it; None: that is not known.
    """
    return Requirement(
        SPIDERPOOL,
        what,
        lambda plan: fixed if fixed is not None else (below(plan.values, value) or None),
        lambda seen: unset if below(seen.config, key) is None else below(seen.config, key),
        f"Set {value} to {str(fixed is not False).lower()} in the values of its release.",
    )


REQUIREMENTS = (
    _version(SPIDERPOOL, (1, 1), (2, 0)),
    _chart("IPv4", "ipam.enableIPv4", "enableIPv4"),
    _chart("IPv6", "ipam.enableIPv6", "enableIPv6"),
    _chart("SpiderSubnet", "ipam.spiderSubnet.enable", "enableSpiderSubnet", False),
    Requirement(
        SPIDERPOOL,
        "SpiderMultusConfig",
        lambda plan: "true",
        lambda seen: seen.env("SPIDERPOOL_MULTUS_CONFIG_ENABLED"),
        "Set multus.enableMultusConfig to true in the values of its release.",
    ),
    _chart("injection", "spiderpoolController.podResourceInject.enabled", "podResourceInject.enabled", unset=False),
    Requirement(
        SPIDERPOOL,
        "namespaces of injection",
        lambda plan: below(plan.values, "spiderpoolController.podResourceInject.namespacesInclude") or None,
        lambda seen: below(seen.config, "podResourceInject.namespacesInclude") or ...,
        "Add them to spiderpoolController.podResourceInject.namespacesInclude in the values of its release.",
        _among,
    ),
    Requirement(
        SPIDERPOOL,
        "folder of CNI programs",
        lambda plan: [plan.folders[PROGRAMS]],
        lambda seen: seen.paths() or ...,
        "Set global.cniBinHostPath in the values of its release.",
        _among,
    ),
    _version(MULTUS, (3, 7), (5, 0)),
    Requirement(
        MULTUS,
        "folder of CNI configurations",
        lambda plan: [plan.folders[CONFIGURATIONS]],
        lambda seen: seen.paths() or ...,
        "Let its DaemonSet mount the folder that the container runtime reads.",
        _among,
    ),
    _version(SRIOV_OPERATOR, (1, 2), (2, 0)),
    Requirement(
        SRIOV_OPERATOR,
        "namespace",
        lambda plan: {row["metadata"].get("namespace", "") for row in plan.policies},
        lambda seen: seen.namespaces() or ...,
        "The operator reads the policies of its own namespace alone: set fabric_namespace to it, and plan again.",
        _among,
    ),
    Requirement(
        SRIOV_OPERATOR,
        "prefix of resources",
        lambda plan: below(plan.values, "sriov.resourcePrefix") or RESOURCE_PREFIX,
        lambda seen: seen.env("RESOURCE_PREFIX") or ...,
        "Set fabric_resource_prefix to it, and plan again.",
    ),
    Requirement(
        SRIOV_OPERATOR,
        "fields of its policies",
        lambda plan: [],
        lambda seen: list(seen.lacking),
        "Its CRDs are older than the plan: update the operator with its CRDs.",
    ),
    _version(DEVICE_PLUGIN, (1, 3), (2, 0)),
    Requirement(
        DEVICE_PLUGIN,
        "resources",
        lambda plan: _resources(below(plan.values, "rdma.rdmaSharedDevicePlugin.deviceConfig.configList") or ()),
        lambda seen: None if seen.plugin is None else _resources(seen.plugin),
        "Add the plan's entries (cluster/values.yaml, configList) to its configuration, and restart it.",
        _among,
    ),
    _version(NV_IPAM, (0, 2), (1, 0)),
)


def differences(part: str, planned: PlannedParts, seen: AdoptedPart) -> t.Iterator[Problem]:
    """Give what of an adopted part does not serve the plan, row by row."""
    for row in REQUIREMENTS:
        if row.part != part:
            continue
        want, have = row.planned(planned), row.seen(seen)
        if want is None or have is ... or (have is not None and row.good(want, have)):
            continue
        text = "unknown" if have is None else shown(have)
        yield Problem(
            f"cluster_components.{part}",
            f"{KINDS[part].title} is adopted, and does not serve the plan by its {row.what}: planned {shown(want)}, "
            f"found {text}.",
            f"{row.fix} [adopted]",
        )


def shown(value: t.Any) -> str:
    """Return a value of the table for a person."""
    if isinstance(value, tuple):
        return " to before ".join(".".join(str(number) for number in version) for version in value)
    if isinstance(value, (list, set)):
        return ", ".join(sorted(str(item) for item in value)) or "none"
    if isinstance(value, bool) or value is None:
        return "unset" if value is None else str(value).lower()
    return str(value)
