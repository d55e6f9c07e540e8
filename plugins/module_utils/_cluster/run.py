# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: carry a plan out: read, check what can be known before the first write, then write in threads."""

from __future__ import annotations

import functools
import threading
import time
import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._errors import RdmaError
from .._fabric.labels import labels as labels_of
from .._fabric.labels import selector as selector_of
from .api_errors import FieldConflict, NotFound
from .client import THREADS, Cluster
from .compare import keep_pool
from .model import PRUNED_KINDS, ApplyStep, ClusterPlan, Conflict, Json, Ref, below
from .plan import ApplyOptions, ClusterPlanner
from .pod_state import condition
from .pools import attached
from .preflight import Preflight
from .progress import Progress

# Kinds of these groups are read as whole lists; of others each object is asked for by name.
LISTED_GROUPS = {version.partition("/")[0] for version, _kind in PRUNED_KINDS}

WAIT_SECONDS = 120.0
"""For which deleted objects may take to be gone, and new CRDs to be served."""


class ApplyRun(Preflight):
    """One run over one cluster.

    :param report: takes one line of progress now and then.
    """

    def __init__(
        self,
        cluster: Cluster,
        wanted: dict[Ref, Json],
        options: ApplyOptions,
        report: t.Callable[[str], None] = lambda line: None,
    ) -> None:
        super().__init__(cluster, wanted, options)
        self._report = report
        self._missing: set[tuple[str, str]] = set()
        self._lock = threading.Lock()
        # The pod of each address that Multus gave out: all pods are asked for, once and only if it matters.
        self._holders = functools.lru_cache(maxsize=None)(lambda: attached(cluster.each("v1", "Pod")))

    # Looking

    def plan(self) -> ClusterPlan:
        """Read what is there, a page at a time, and decide."""
        planner = ClusterPlanner(self._wanted, self._options, self._holders)
        groups: dict[tuple[str, str], list[Ref]] = {key: [] for key in PRUNED_KINDS if self._options.prune}
        for ref, body in self._wanted.items():
            groups.setdefault((body["apiVersion"], body["kind"]), []).append(ref)

        def see(key: tuple[str, str]) -> None:
            for page in self._live(key, groups[key]):
                with self._lock:
                    for live in page:
                        planner.see(live)

        with ThreadPoolExecutor(THREADS) as pool:
            # What a list raised is raised here.
            list(pool.map(see, sorted(groups)))
        self._refuse_missing_kinds()
        return planner.finish()

    def _live(self, key: tuple[str, str], refs: list[Ref]) -> t.Iterable[list[Json]]:
        """Yield the objects of a kind that may matter, some at a time."""
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
                yield from self._cluster.pages(resource, namespace=namespace, selector=selector)
        else:
            yield [found for ref in refs if (found := self._cluster.get(ref))]

    def _refuse_missing_kinds(self) -> None:
        """Refuse kinds that the API does not serve, but for those whose CRD is among the wanted objects."""
        coming = {
            (body["spec"]["group"], body["spec"]["names"]["kind"])
            for body in self._wanted.values()
            if body["kind"] == "CustomResourceDefinition"
        }
        missing = sorted(
            f"{kind} ({api})" for api, kind in self._missing if (api.rpartition("/")[0], kind) not in coming
        )
        if not missing or self._options.absent:
            return
        text = f"The API does not serve {', '.join(missing)}."
        if self._options.check_mode:
            self.outcome.warnings.append(f"{text} Their objects could not be tried: the CRDs come with the chart.")
            return
        raise RdmaError(
            text,
            "Nothing was changed. Apply the CRDs of the chart first (role railops.rdma.spiderpool); if they are there, "
            "they are of another version. [crds_missing]",
            missing_kinds=missing,
        )

    # Writing

    def execute(self, plan: ClusterPlan) -> None:
        """Do the steps, phase by phase; in check mode let the server try them."""
        total = sum(1 for _step in plan.all_steps())
        progress = Progress(self._report, total)
        for name, steps in plan.phases():
            if self._options.check_mode:
                steps = [step for step in steps if step.action == "delete" or self.can_try(plan, step)]
            do = functools.partial(self._one, report=functools.partial(progress.step, name))
            with ThreadPoolExecutor(max(1, min(THREADS, len(steps)))) as pool:
                list(pool.map(do, steps))
            if self.outcome.stopped:
                text = f"Stopped after {self.outcome.done:,} of {total:,} objects. {self.outcome.stopped.problem}"
                fix = self.outcome.stopped.fix
                raise RdmaError(text, fix, **{**self.outcome.stopped.facts, "done": self.outcome.done, "total": total})
            if not self._options.check_mode:
                self._wait_deleted([step.ref for step in steps if step.action == "delete"])
                self._wait_established([step.ref for step in steps if step.ref.kind == "CustomResourceDefinition"])

    def _one(self, step: ApplyStep, report: t.Callable[[], None]) -> None:
        """Do one step; what only concerns this object is noted, what concerns all stops the run."""
        if self.outcome.stopped:
            return
        found: Exception | None = None
        try:
            self._do(step)
        except (FieldConflict, RdmaError) as exc:
            found = exc
        with self._lock:
            if isinstance(found, FieldConflict):
                why = "is declared by another field manager"
                self.outcome.conflicts += [Conflict(step.ref, place, owner, why) for place, owner in found.clashes]
            elif isinstance(found, RdmaError) and found.facts.get("code") in (400, 403, 404, 409, 422):
                self.outcome.refused.append((step.ref, found))
            elif isinstance(found, RdmaError):
                self.outcome.stopped = self.outcome.stopped or found
            else:
                self.outcome.done += 1
            report()

    def _do(self, step: ApplyStep) -> None:
        check = self._options.check_mode
        if step.action == "delete":
            self._delete(step, dry_run=check)
            return
        if step.action == "replace":
            if not self._delete(step, dry_run=check):
                return
            self._wait_deleted([step.ref])
        self._cluster.apply(step.body or {}, force=step.force, dry_run=check)

    def _delete(self, step: ApplyStep, *, dry_run: bool) -> bool:
        """Delete the object that was read; read it again when it changed meanwhile: a pod may just have an address."""
        uid, version = step.uid, step.version
        for _try in range(10):
            try:
                self._cluster.delete(step.ref, uid=uid, version=version, dry_run=dry_run)
                return True
            except NotFound:
                live = self._cluster.get(step.ref)
                if live is None or live["metadata"].get("uid") != uid or live["metadata"].get("deletionTimestamp"):
                    return True
                if kept := keep_pool(step.action, step.ref, live, step.body, self._holders, self._options.application):
                    self.outcome.kept.append(kept)
                    return False
                version = live["metadata"].get("resourceVersion", "")
        text = f"{step.ref} changes faster than it can be deleted."
        raise RdmaError(text, "See who writes it, then run again. [object_write_conflict]", code=409)

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
                "them: see that the controller that owns it runs."
            )

    def _wait_established(self, refs: list[Ref]) -> None:
        """Wait until the API serves the kinds of new CRDs."""
        for ref in self._late(refs, lambda live: bool(condition(live or {}, "Established"))):
            self.outcome.warnings.append(
                f"{ref} is not established after {WAIT_SECONDS:.0f} s: its objects may be refused. See its conditions "
                "(kubectl describe), then run again."
            )
