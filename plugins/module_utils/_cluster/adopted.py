# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements on adopted components: one table, REQUIREMENTS, compared row by row. Pure."""

from __future__ import annotations

import operator
import re
import typing as t
from dataclasses import dataclass, field

from .._errors import Problem
from .._fabric.labels import RESOURCE_PREFIX
from .components import DEVICE_PLUGIN, KINDS, MULTUS, NV_IPAM, SPIDERPOOL, SRIOV_OPERATOR, FoundPart, containers
from .model import Json, below
from .nodes import resource
from .prerequisites import CONFIGURATIONS, PROGRAMS, USUAL

_VERSION = re.compile(r"v?(\d+)\.(\d+)")


@dataclass(frozen=True)
class PlannedParts:
    """The plan's needs of adopted components."""

    values: Json = field(default_factory=dict)
    policies: t.Sequence[Json] = ()
    folders: t.Mapping[str, str] = field(default_factory=lambda: dict(USUAL.folders))


@dataclass(frozen=True)
class AdoptedPart:
    """The state of an adopted component. An unknown value is None."""

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
    """Whether a version is from the first to before the second; text without a version, as of operators, passes."""
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
    """Yield the unmet requirements of an adopted component, row by row."""
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
