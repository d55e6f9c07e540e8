# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: refuse before the first write: permissions, namespaces, one object of each shape as a trial."""

from __future__ import annotations

from dataclasses import dataclass, field

from .._errors import RdmaError
from .._fabric.labels import POOL
from .api_errors import FieldConflict
from .client import Cluster
from .model import ApplyStep, ClusterPlan, Conflict, Json, Ref, Retained
from .plan import ApplyOptions


@dataclass
class ApplyOutcome:
    """The results beside the plan."""

    conflicts: list[Conflict] = field(default_factory=list)
    kept: list[Retained] = field(default_factory=list)
    refused: list[tuple[Ref, RdmaError]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    done: int = 0
    stopped: RdmaError | None = None


class Preflight:
    """A run before its first write."""

    def __init__(self, cluster: Cluster, wanted: dict[Ref, Json], options: ApplyOptions) -> None:
        self._cluster = cluster
        self._wanted = wanted
        self._options = options
        self.outcome = ApplyOutcome()
        self._absent_namespaces: set[str] = set()

    def check(self, plan: ClusterPlan) -> None:
        """Refuse what cannot work, before the first write."""
        steps = list(plan.all_steps())
        if not steps:
            return
        self._check_permissions(steps)
        self._check_namespaces(steps)
        if not self._options.check_mode:
            self._try_samples(plan)

    def _check_permissions(self, steps: list[ApplyStep]) -> None:
        verbs = {
            "create": ("create", "patch"),
            "apply": ("patch",),
            "replace": ("create", "patch", "delete"),
            "delete": ("delete",),
        }
        refs = [(step.ref, verb) for step in steps for verb in verbs[step.action]]
        denied = []
        for api_version, kind, namespace, verb in sorted({(r.api_version, r.kind, r.namespace, v) for r, v in refs}):
            resource = self._cluster.resource(api_version, kind)
            if resource is not None and not self._cluster.may(resource, verb, namespace):
                group, where = resource.group, f" in namespace {namespace}" if namespace else ""
                denied.append(f"{verb} {resource.name}.{group}{where}" if group else f"{verb} {resource.name}{where}")
        if denied:
            raise RdmaError(
                f"This identity may not: {'; '.join(denied)}.",
                "Nothing was changed. Grant them (docs/reference/permissions.md) and run again. [permission_denied]",
                denied=denied,
            )

    def _check_namespaces(self, steps: list[ApplyStep]) -> None:
        made = [step for step in steps if step.action != "delete"]
        wanted = {step.ref.namespace for step in made if step.ref.namespace}
        # A namespace itself is only ever replaced because it is being deleted.
        wanted |= {step.ref.name for step in made if step.ref.kind == "Namespace" and step.action == "replace"}
        phases = {name: self._cluster.namespace_phase(name) for name in sorted(wanted)}
        self._absent_namespaces = {name for name, phase in phases.items() if phase == "Missing"}
        problems = [f"namespace {name} is being deleted" for name, phase in phases.items() if phase == "Terminating"]
        if not self._options.check_mode:
            absent = self._absent_namespaces - {ref.name for ref in self._wanted if ref.kind == "Namespace"}
            problems += [f"namespace {name} does not exist" for name in sorted(absent)]
        elif self._absent_namespaces:
            names = ", ".join(sorted(self._absent_namespaces))
            self.outcome.warnings.append(f"Objects in {names} could not be tried: the namespace comes with the chart.")
        if problems:
            raise RdmaError(
                f"Objects cannot be made: {'; '.join(problems)}.",
                "Nothing was changed. Wait until a namespace that is being deleted is gone (see its finalizers if it "
                "hangs); make a missing one with the role railops.rdma.spiderpool; then run again. [objects_missing]",
            )

    def can_try(self, plan: ClusterPlan, step: ApplyStep) -> bool:
        """Return whether a dry run of this step is accurate before the others have run."""
        return (
            step.action in ("create", "apply")
            and not (plan.early and step.ref.kind == POOL)
            and step.ref.namespace not in self._absent_namespaces
            and self._cluster.resource(step.ref.api_version, step.ref.kind) is not None
        )

    def _try_samples(self, plan: ClusterPlan) -> None:
        """Let the server try one object of each shape: an older CRD, a dead webhook and a bad rule show here."""
        seen = set()
        for step in plan.all_steps():
            spec = (step.body or {}).get("spec")
            shape = (step.ref.kind, step.action, *sorted(spec if isinstance(spec, dict) else ()))
            if shape in seen or not self.can_try(plan, step):
                continue
            seen.add(shape)
            try:
                self._cluster.apply(step.body or {}, force=step.force, dry_run=True)
            except FieldConflict:
                continue
            except RdmaError as exc:
                raise RdmaError(
                    exc.problem, f"Nothing was changed. {exc.fix} [cluster_check_failed]", **exc.facts
                ) from exc
