# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: carry a plan out: read, check what can be known before the first write, then write in threads."""

from __future__ import annotations

import functools
import itertools
import threading
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

from .._errors import RdmaError
from .._fabric.labels import POOL
from .._fabric.labels import labels as labels_of
from .._fabric.labels import selector as selector_of
from .api_errors import FieldConflict, NotFound
from .client import THREADS, Cluster
from .compare import keep_pool
from .model import PRUNED_KINDS, ApplyStep, ClusterPlan, Conflict, Json, Ref, Retained, below
from .plan import ApplyOptions, ClusterPlanner
from .pod_state import condition
from .pools import attached
from .progress import Progress

# Kinds of these groups are read as whole lists; of others each object is asked for by name.
LISTED_GROUPS = {version.partition("/")[0] for version, _kind in PRUNED_KINDS}

WAIT_SECONDS = 120.0
"""For which deleted objects may take to be gone, and new CRDs to be served."""

POOLS_AT_ONCE = 8000
"""Pools times their writes at once: Spiderpool's webhook lists all pools at each, and the API waits ten seconds."""

NEIGHBOR_KEPT = "another pool that changes in this run has to stay; run again."

OBJECT_CODES = (400, 403, 404, 409, 422)
"""Codes of the API that concern one object."""


@dataclass
class ApplyOutcome:
    """The results beside the plan."""

    conflicts: list[Conflict] = field(default_factory=list)
    retained: list[Retained] = field(default_factory=list)
    refused: list[tuple[Ref, RdmaError]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    done: int = 0
    stopped: RdmaError | None = None


@dataclass
class ApplyRun:
    """One run over one cluster.

    :param report: takes one line of progress now and then.
    """

    _cluster: Cluster
    _wanted: dict[Ref, Json]
    _options: ApplyOptions
    _report: t.Callable[[str], None] = lambda line: None
    outcome: ApplyOutcome = field(default_factory=ApplyOutcome)
    _absent_namespaces: set[str] = field(default_factory=set)
    _missing: set[tuple[str, str]] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        # The pod of each address that Multus gave out: all pods are asked for, once and only if it matters.
        self._holders = functools.lru_cache(maxsize=None)(lambda: attached(self._cluster.each("v1", "Pod")))

    # Looking

    def plan(self) -> ClusterPlan:
        """Read what is there, a page at a time, and decide."""
        planner = ClusterPlanner(self._wanted, self._options, self._holders)
        groups: dict[tuple[str, str], list[Ref]] = {key: [] for key in self._options.prune}
        for ref, body in self._wanted.items():
            groups.setdefault((body["apiVersion"], body["kind"]), []).append(ref)

        def see(key: tuple[str, str]) -> None:
            for live in self._live(key, groups[key]):
                with self._lock:
                    planner.add_object(live)

        with ThreadPoolExecutor(THREADS) as pool:
            # What a list raised is raised here.
            list(pool.map(see, sorted(groups)))
        self._refuse_missing_kinds()
        return planner.finish()

    def _live(self, key: tuple[str, str], refs: list[Ref]) -> t.Iterable[Json]:
        """Yield the objects of a kind that may matter."""
        resource = self._cluster.resource(*key)
        if resource is None:
            if refs:
                self._missing.add(key)
        elif resource.group in LISTED_GROUPS:
            # Strays may be in any namespace. Without prune fewer permissions are enough.
            only = resource.namespaced and refs and not self._options.prune
            # Nothing of our own is wanted of this kind: only strays can matter.
            selector = "" if refs else selector_of(labels_of(self._options.fabric))
            for namespace in sorted({ref.namespace for ref in refs}) if only else [""]:
                yield from self._cluster.each(*key, namespace=namespace, selector=selector)
        else:
            yield from filter(None, map(self._cluster.get, refs))

    def _refuse_missing_kinds(self) -> None:
        """Refuse kinds that the API does not serve, but for those whose CRD is among the wanted objects."""
        planned_kinds = {
            (body["spec"]["group"], body["spec"]["names"]["kind"])
            for body in self._wanted.values()
            if body["kind"] == "CustomResourceDefinition"
        }
        missing = sorted(
            f"{kind} ({api})" for api, kind in self._missing if (api.rpartition("/")[0], kind) not in planned_kinds
        )
        if not missing or self._options.absent:
            return
        text = f"The API does not serve {', '.join(missing)}."
        if self._options.check_mode:
            self.outcome.warnings.append(f"{text} Their objects could not be tried: the CRDs come with the chart.")
            return
        raise RdmaError(
            text,
            "Nothing was changed. Apply the CRDs of the chart first (role railops.rdma.spiderpool); if they exist, "
            "they are of another version. [crds_missing]",
        )

    # Refusing before the first write: namespaces, one object of each shape as a trial

    def check(self, plan: ClusterPlan) -> None:
        """Refuse what cannot work, before the first write."""
        self._check_namespaces(plan.steps)
        if not self._options.check_mode:
            self._try_samples(plan)

    def _check_namespaces(self, steps: t.Sequence[ApplyStep]) -> None:
        made = [step for step in steps if step.action != "delete"]
        wanted = {step.ref.namespace for step in made if step.ref.namespace}
        # A namespace itself is only ever replaced because it is being deleted.
        wanted |= {step.ref.name for step in made if step.ref.kind == "Namespace" and step.action == "replace"}
        live = {name: self._cluster.one("v1", "Namespace", name) for name in sorted(wanted)}
        self._absent_namespaces = {name for name, space in live.items() if space is None}
        ending = [name for name, space in live.items() if below(space, "metadata.deletionTimestamp")]
        problems = [f"namespace {name} is being deleted" for name in ending]
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
            and not (plan.steps[0].phase < (1, 0) and step.ref.kind == POOL)
            and step.ref.namespace not in self._absent_namespaces
            and self._cluster.resource(step.ref.api_version, step.ref.kind) is not None
        )

    def _try_samples(self, plan: ClusterPlan) -> None:
        """Let the server try one object of each shape: a missing right, an older CRD, a dead webhook show here."""
        seen = set()
        refused: list[RdmaError] = []
        for step in plan.steps:
            spec = (step.body or {}).get("spec")
            shape = (step.ref.kind, step.ref.namespace, step.action, *sorted(spec if isinstance(spec, dict) else ()))
            removed = step.action in ("delete", "replace")
            if shape in seen or not (removed or self.can_try(plan, step)):
                continue
            seen.add(shape)
            try:
                if removed:
                    self._cluster.delete(step.ref, dry_run=True)
                else:
                    self._cluster.apply(step.body or {}, force=step.force, dry_run=True)
            except (FieldConflict, NotFound):
                continue
            except RdmaError as exc:
                refused.append(exc)
                if exc.facts.get("code") not in OBJECT_CODES:
                    break
        if refused:
            text = " ".join(exc.problem for exc in refused)
            raise RdmaError(text, f"Nothing was changed. {refused[0].fix} [cluster_check_failed]", **refused[0].facts)

    # Writing

    def execute(self, plan: ClusterPlan) -> None:
        """Do the steps, phase by phase; in check mode let the server try them."""
        total = len(plan.steps)
        progress = Progress(self._report, total)
        for (place, _rank), group in itertools.groupby(plan.steps, lambda step: step.phase[:2]):
            steps = list(group)
            kind = steps[0].ref.kind
            width = writes_at_once(kind, plan.unchanged + len(steps))
            if self._options.check_mode:
                steps = [step for step in steps if step.action == "delete" or self.can_try(plan, step)]
            self._write(steps, width, functools.partial(progress.step, f"{'remove' if place == 2 else 'apply'} {kind}"))
            if self.outcome.stopped:
                text = f"Stopped after {self.outcome.done:,} of {total:,} objects. {self.outcome.stopped.problem}"
                fix = self.outcome.stopped.fix
                raise RdmaError(text, fix, **{**self.outcome.stopped.facts, "done": self.outcome.done, "total": total})
            if not self._options.check_mode:
                self._wait_established([step.ref for step in steps if step.ref.kind == "CustomResourceDefinition"])

    def _write(self, steps: list[ApplyStep], width: int, report: t.Callable[[], None]) -> None:
        """Do the steps of a phase, `width` at once. A killed run leaves the pools of as many turns deleted."""
        do = functools.partial(self._one, report=report)
        with ThreadPoolExecutor(width) as pool:
            for _number, turns in itertools.groupby(steps, lambda step: step.turn // width):
                batch = list(turns)
                removed = [step for step in batch if step.action in ("delete", "replace")]
                list(pool.map(do, removed))
                if not self.outcome.stopped and not self._options.check_mode:
                    list(pool.map(do, self._creations(removed)))
                list(pool.map(do, [step for step in batch if step.action in ("create", "apply")]))

    def _one(self, step: ApplyStep, report: t.Callable[[], None]) -> None:
        """Do one step; what only concerns this object is noted, what concerns all stops the run."""
        if self.outcome.stopped:
            return
        found: Exception | None = None
        try:
            if step.action in ("delete", "replace"):
                self._delete(step)
            else:
                self._cluster.apply(step.body or {}, force=step.force, dry_run=self._options.check_mode)
        except (FieldConflict, RdmaError) as exc:
            found = exc
        with self._lock:
            if isinstance(found, FieldConflict):
                why = "is declared by another field manager"
                self.outcome.conflicts += [Conflict(step.ref, place, owner, why) for place, owner in found.clashes]
            elif isinstance(found, RdmaError) and found.facts.get("code") in OBJECT_CODES:
                self.outcome.refused.append((step.ref, found))
            elif isinstance(found, RdmaError):
                self.outcome.stopped = self.outcome.stopped or found
            else:
                self.outcome.done += step.action != "replace"
            report()

    def _creations(self, steps: list[ApplyStep]) -> list[ApplyStep]:
        """Return the steps that create deleted objects again: pools in their old place when a delete was refused."""
        self._wait_deleted([step.ref for step in steps])
        kept = {row.ref for row in self.outcome.retained} | {ref for ref, _exc in self.outcome.refused}
        gone = [replace(step, action="create") for step in steps if step.action == "replace" and step.ref not in kept]
        self.outcome.retained += [Retained("replace", step.ref, NEIGHBOR_KEPT) for step in gone if kept and step.before]
        return [replace(step, body={**(step.body or {}), **step.before}) for step in gone] if kept else gone

    def _delete(self, step: ApplyStep) -> None:
        """Delete the object that was read; read it again when it changed meanwhile: a pod may just have an address.

        A pool that would move after one that had to stay may need that one's place: it stays too.
        """
        if step.turn and step.before and (self.outcome.retained or self.outcome.refused):
            self.outcome.retained.append(Retained("replace", step.ref, NEIGHBOR_KEPT))
            return
        uid, version = step.uid, step.version
        for _try in range(10):
            try:
                self._cluster.delete(step.ref, uid=uid, version=version, dry_run=self._options.check_mode)
                return
            except NotFound:
                live = self._cluster.get(step.ref)
                if live is None or live["metadata"].get("uid") != uid or live["metadata"].get("deletionTimestamp"):
                    return
                if row := keep_pool(step.action, step.ref, live, step.body, self._holders, self._options.application):
                    self.outcome.retained.append(row)
                    return
                version = live["metadata"].get("resourceVersion", "")
        text = f"{step.ref} changes faster than it can be deleted."
        raise RdmaError(text, "Find its writer, then run again. [object_write_conflict]", code=409)

    def _late(self, refs: t.Iterable[Ref], ready: t.Callable[[Json | None], bool]) -> list[Ref]:
        """Wait until all objects are ready; return those that are not in time."""
        until = time.monotonic() + WAIT_SECONDS
        late = []
        for ref in refs:
            while not ready(self._cluster.get(ref)):
                if time.monotonic() > until:
                    late.append(ref)
                    break
                time.sleep(0.1)
        return late

    def _wait_deleted(self, refs: list[Ref]) -> None:
        """Wait until finalizers let go."""
        if late := self._late(refs, lambda live: not below(live, "metadata.deletionTimestamp")):
            self.outcome.warnings.append(
                f"{len(late)} object(s) are still being deleted: {', '.join(map(str, late[:5]))}. A finalizer holds "
                "them: check that the controller that owns it runs."
            )

    def _wait_established(self, refs: list[Ref]) -> None:
        """Wait until the API serves the kinds of new CRDs."""
        for ref in self._late(refs, lambda live: bool(condition(live or {}, "Established"))):
            self.outcome.warnings.append(
                f"{ref} is not established after {WAIT_SECONDS:.0f} s: its objects may be refused. See its conditions "
                "(kubectl describe), then run again."
            )


def writes_at_once(kind: str, objects: int) -> int:
    """Return how many writes of a kind may be under way at once, by the number of its objects."""
    return max(1, min(THREADS, POOLS_AT_ONCE // objects)) if kind == POOL else THREADS
