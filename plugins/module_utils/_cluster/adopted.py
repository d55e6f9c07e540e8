# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Requirements on adopted components, compared one by one. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._errors import Problem
from .._fabric.labels import RESOURCE_PREFIX
from .components import DEVICE_PLUGIN, KINDS, MULTUS, SPIDERPOOL, SRIOV_OPERATOR, FoundPart, containers
from .model import Json, below
from .nodes import resource
from .prerequisites import CONFIGURATIONS, PLUGINS


@dataclass(frozen=True)
class AdoptedPart:
    """The state of an adopted component. An unknown value is None."""

    found: t.Sequence[FoundPart] = ()
    config: Json = field(default_factory=dict)
    """Spiderpool's conf.yml."""
    plugin: t.Sequence[Json] | None = None
    """Entries of the device plugin's configuration."""

    def paths(self) -> set[str]:
        """Return the folders of a node that its pods mount; none where no workload is seen."""
        volumes = [volume for row in self.found for volume in below(row.body, "spec.template.spec.volumes") or ()]
        return {str(row["hostPath"].get("path", "")).rstrip("/") for row in volumes if "hostPath" in row}

    def env(self, name: str) -> str | None:
        """Return a variable of its containers."""
        rows = [row for one in self.found for box in containers(one.body) for row in box.get("env") or ()]
        return next((str(row.get("value")) for row in rows if row.get("name") == name and "value" in row), None)

    def namespaces(self) -> set[str]:
        """Return the namespaces of its workloads."""
        return {str(row.body["metadata"].get("namespace")) for row in self.found if "metadata" in row.body}


class Requirement(t.NamedTuple):
    """One requirement. A planned set has to be among what was found, another value has to be equal.

    `planned` None: the plan does not ask for it. `found` None: unknown, which is a difference; `...`: it passes.
    """

    what: str
    planned: t.Any
    found: t.Any
    fix: str

    def met(self) -> bool:
        """Return whether the component has it."""
        if self.planned is None or self.found is ...:
            return True
        if isinstance(self.planned, set):
            return self.found is not None and self.planned <= set(self.found)
        return bool(self.planned == self.found)


def _chart(what: str, value: str, planned: bool | None, found: bool | None) -> Requirement:
    """Return the requirement on a switch of Spiderpool's conf.yml, with the chart's value behind it."""
    return Requirement(what, planned, found, f"Set {value} to {str(planned).lower()} in the values of its release.")


def requirements(
    part: str, values: Json, folders: t.Mapping[str, str], namespace: str, seen: AdoptedPart
) -> t.Iterator[Requirement]:
    """Yield the requirements on a component.

    :param values: of Helm, as planned.
    :param folders: of a node's CNI plugins and configurations.
    :param namespace: of the plan's objects; empty without a plan.
    """
    config = seen.config
    if part == SPIDERPOOL:
        for family in ("IPv4", "IPv6"):
            value = f"ipam.enable{family}"
            yield _chart(family, value, below(values, value) or None, config.get(f"enable{family}"))
        yield _chart("SpiderSubnet", "ipam.spiderSubnet.enable", False, config.get("enableSpiderSubnet"))
        fix = "Set multus.enableMultusConfig to true in the values of its release."
        yield Requirement("SpiderMultusConfig", "true", seen.env("SPIDERPOOL_MULTUS_CONFIG_ENABLED"), fix)
        value = "spiderpoolController.podResourceInject.enabled"
        enabled = below(config, "podResourceInject.enabled") or False
        yield _chart("injection", value, below(values, value) or None, enabled)
        value = "spiderpoolController.podResourceInject.namespacesInclude"
        spaces = below(config, "podResourceInject.namespacesInclude") or ...
        fix = f"Add them to {value} in the values of its release."
        yield Requirement("namespaces of injection", set(below(values, value) or ()), spaces, fix)
        fix = "Set global.cniBinHostPath in the values of its release."
        yield Requirement("folder of CNI plugins", {folders[PLUGINS]}, seen.paths() or ..., fix)
    elif part == MULTUS:
        fix = "Let its DaemonSet mount the folder that the container runtime reads."
        yield Requirement("folder of CNI configurations", {folders[CONFIGURATIONS]}, seen.paths() or ..., fix)
    elif part == SRIOV_OPERATOR:
        fix = "The operator only reads the policies of its own namespace: set fabric_namespace to it, and plan again."
        yield Requirement("namespace", {namespace} - {""}, seen.namespaces() or ..., fix)
        prefix = below(values, "sriov.resourcePrefix") or RESOURCE_PREFIX
        fix = "Set fabric_resource_prefix to it, and plan again."
        yield Requirement("prefix of resources", prefix, seen.env("RESOURCE_PREFIX") or ..., fix)
    elif part == DEVICE_PLUGIN:
        entries = below(values, "rdma.rdmaSharedDevicePlugin.deviceConfig.configList") or ()
        have = None if seen.plugin is None else set(map(resource, seen.plugin))
        fix = "Add the plan's entries (cluster/values.yaml, configList) to its configuration, and restart it."
        yield Requirement("resources", set(map(resource, entries)), have, fix)


def differences(
    part: str, values: Json, folders: t.Mapping[str, str], namespace: str, seen: AdoptedPart
) -> t.Iterator[Problem]:
    """Yield the unmet requirements of an adopted component."""
    for row in requirements(part, values, folders, namespace, seen):
        if not row.met():
            text = "unknown" if row.found is None else shown(row.found)
            problem = f"{KINDS[part].title} is adopted, and does not fit the plan in its {row.what}: planned "
            problem += f"{shown(row.planned)}, found {text}."
            yield Problem(f"cluster_components.{part}", problem, f"{row.fix} [adopted]")


def shown(value: t.Any) -> str:
    """Return a required value for a person."""
    if isinstance(value, (list, set)):
        return ", ".join(sorted(map(str, value))) or "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
