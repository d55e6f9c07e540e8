# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what to do to the objects of a cluster: compare what is wanted with what is there, object by object.

Pure: objects come in one at a time (`ClusterPlanner.add_object`), so a list is never held as a whole; out comes a
`ClusterPlan`. Ownership follows the server's own record (managedFields), so that the plan predicts the server's
answers.

Source of the pool rules: Spiderpool's webhook (`subnet` and `ipVersion` never change; two pools share addresses only
by mistake) and one rule more: a pool with allocated addresses is never deleted, narrowed or replaced. A CIDRPool, which
has no admission check, gives no node another prefix or gateway under pods.
"""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from .._fabric.labels import CIDR_POOL, LABEL_FABRIC, LABEL_MANAGER, POOL
from .._intervals import Intervals, subtract
from .compare import addresses, applied, is_managed, keep_pool, labels_of, object_differences, owners, writers
from .model import FIELD_MANAGER, ApplyStep, ClusterPlan, Conflict, Difference, Json, Ref, Retained


@dataclass(frozen=True)
class ApplyOptions:
    """The options of a run."""

    fabric: str = ""
    """Whose strays are removed."""
    prune: t.Collection[tuple[str, str]] = ()
    """API and kind of the strays that are removed."""
    absent: bool = False
    """What is wanted is to go."""
    force: bool = False
    check_mode: bool = False
    application: str = ""
    """Namespace and name of a DaemonSet whose pods go with the pools."""


@dataclass
class ClusterPlanner:
    """Takes the live objects one by one and ends with a plan.

    `wanted` by reference; `holders` gives the pod of each address that Multus gave out.
    """

    wanted: dict[Ref, Json]
    options: ApplyOptions
    holders: t.Callable[[], t.Mapping[str, str]] = dict
    _steps: list[ApplyStep] = field(default_factory=list)
    _retained: list[Retained] = field(default_factory=list)
    _conflicts: list[Conflict] = field(default_factory=list)
    _seen: set[Ref] = field(default_factory=set)
    _unchanged: int = 0
    _stay: dict[Ref, tuple[tuple[int, int], Intervals]] = field(default_factory=dict)
    _go: dict[Ref, tuple[tuple[int, int], Intervals]] = field(default_factory=dict)

    def add_object(self, live: Json) -> None:
        """Record one existing object."""
        ref = Ref.of(live)
        if ref in self._seen:
            return
        if (desired := self.wanted.get(ref)) is not None:
            self._seen.add(ref)
            if self.options.absent:
                self._remove(ref, live, labels_of(desired).get(LABEL_FABRIC) or self.options.fabric)
            else:
                self._compare(ref, desired, live)
        elif (
            self.options.prune
            and is_managed(live, self.options.fabric)
            # What a controller made of an object goes with that.
            and not live["metadata"].get("ownerReferences")
        ):
            self._seen.add(ref)
            self._remove(ref, live, self.options.fabric)

    def _remove(self, ref: Ref, live: Json, fabric: str) -> None:
        meta = live["metadata"]
        if meta.get("deletionTimestamp"):
            self._unchanged += 1
            return
        labeled = LABEL_MANAGER in labels_of(self.wanted.get(ref, live))
        if labeled and not is_managed(live, fabric) and not self.options.force:
            self._conflicts.append(self._existing(ref, live))
            return
        if self._keeps("delete", ref, live, None):
            return
        self._steps.append(ApplyStep("delete", ref, uid=meta.get("uid", ""), version=meta.get("resourceVersion", "")))
        if ref.kind == POOL:
            self._go[ref] = self._place(live)

    def _keeps(self, action: str, ref: Ref, live: Json, desired: Json | None) -> bool:
        """Return whether an object has to stay unchanged, and record why."""
        if retained := keep_pool(action, ref, live, desired, self.holders, self.options.application):
            self._retained.append(retained)
            if ref.kind == POOL:
                self._stay[ref] = self._place(live)
        return bool(retained)

    @staticmethod
    def _place(pool: Json) -> tuple[tuple[int, int], Intervals]:
        subnet = ipaddress.ip_network(pool["spec"]["subnet"], strict=False)
        return (int(subnet.network_address), int(subnet.broadcast_address)), addresses(pool)

    @staticmethod
    def _existing(ref: Ref, live: Json) -> Conflict:
        labels = labels_of(live)
        owner = labels.get(LABEL_MANAGER) or ", ".join(writers(live["metadata"])) or "an unknown owner"
        if labels.get(LABEL_MANAGER) == FIELD_MANAGER:
            owner = f"fabric {labels.get(LABEL_FABRIC, '')!r}"
        return Conflict(ref, "", owner, "exists and is not of this fabric")

    def _compare(self, ref: Ref, desired: Json, live: Json) -> None:
        meta = live["metadata"]
        if meta.get("deletionTimestamp"):
            if not self._keeps("replace", ref, live, desired):
                before = {"spec": live["spec"]} if ref.kind == POOL else {}
                self._steps.append(ApplyStep("replace", ref, desired, uid=meta.get("uid", ""), before=before))
            return
        found = object_differences(desired, live)
        if not found:
            self._unchanged += 1
            return
        labeled = LABEL_MANAGER in labels_of(desired)
        owned = labeled and self._owned(desired, live)
        if labeled and not owned and not self.options.force:
            self._conflicts.append(self._existing(ref, live))
            return
        reverted, clashes = self._ownership(ref, live, found, owned=owned)
        if clashes:
            self._conflicts += clashes
            return
        if action := self._pool_action(ref, desired, live, found):
            uid, version, old = meta.get("uid", ""), meta.get("resourceVersion", ""), {"spec": live.get("spec")}
            force = bool(reverted) or self.options.force
            self._steps.append(ApplyStep(action, ref, desired, found, reverted, force, uid, version, old))

    @staticmethod
    def _owned(desired: Json, live: Json) -> bool:
        fabric = labels_of(desired).get(LABEL_FABRIC, "")
        # Someone may have taken the labels off; the server still knows who made it.
        known = labels_of(live).get(LABEL_FABRIC) in (None, fabric) and bool(applied(live["metadata"]))
        return is_managed(live, fabric) or known

    def _ownership(
        self, ref: Ref, live: Json, found: tuple[Difference, ...], *, owned: bool
    ) -> tuple[tuple[str, ...], list[Conflict]]:
        """Separate edits of our fields, which are repaired, from fields that another controller declares."""
        reverted = []
        clashes = []
        for difference in found:
            if difference.after is None:
                continue
            for manager, operation in owners(live, difference.field):
                if self.options.force or (owned and operation == "Update"):
                    reverted.append(f"{difference.field} (set by {manager})")
                else:
                    clashes.append(Conflict(ref, difference.field, manager, "is declared by another field manager"))
        return tuple(reverted), clashes

    def _pool_action(self, ref: Ref, desired: Json, live: Json, found: tuple[Difference, ...]) -> str:
        """Return apply or replace, or nothing when the pool must stay as it is."""
        replaced = ref.kind == POOL and bool({row.field for row in found} & {"spec.subnet", "spec.ipVersion"})
        would = "replace" if replaced or ref.kind == CIDR_POOL else ""
        if ref.kind == POOL and not replaced and subtract(addresses(live), addresses(desired)):
            would = "narrow"
        if would and self._keeps(would, ref, live, desired):
            return ""
        return "replace" if replaced else "apply"

    def finish(self) -> ClusterPlan:
        """Return the plan. Pools that move come first, with the strays in their way."""
        news = []
        if self.options.absent:
            self._unchanged += len(set(self.wanted) - self._seen)
        else:
            news = [ApplyStep("create", ref, body) for ref, body in self.wanted.items() if ref not in self._seen]
        steps = [*news, *self._steps]
        needs, blocked = self._conflicting(steps)
        self._conflicts += blocked.values()
        turns = _turns({ref: of for ref, of in needs.items() if ref not in blocked})
        steps = [replace(step, turn=turns.get(step.ref, 0)) for step in steps if step.ref not in blocked]
        return ClusterPlan(
            steps=tuple(sorted(steps, key=lambda step: (step.phase, step.ref))),
            retained=tuple(sorted(self._retained, key=lambda row: row.ref)),
            conflicts=tuple(sorted(self._conflicts, key=lambda row: (row.ref, row.field))),
            unchanged=self._unchanged,
        )

    def _conflicting(self, steps: list[ApplyStep]) -> tuple[dict[Ref, list[Ref]], dict[Ref, Conflict]]:
        """Return the pools whose addresses each moved or new pool takes over, and new pools that a kept pool blocks.

        A blocked replacement keeps its old pool, which may block the next one.
        """
        news = [step for step in steps if step.ref.kind == POOL and step.action in ("create", "replace")]
        moved = {step.ref: self._place(step.before) for step in news if step.action == "replace"}
        if not self._go and not self._stay and not moved:
            return {}, {}
        needs: dict[Ref, list[Ref]] = {ref: [] for ref in moved}
        blocked: dict[Ref, Conflict] = {}
        places = sorted((self._place(step.body or {}), step.ref) for step in news)
        firsts = [place[0][0] for place, _ref in places]
        lasts = [place[0][1] for place, _ref in places]
        queue = [*self._go.items(), *moved.items(), *self._stay.items()]
        for old, (subnet, held) in queue:
            for (other, given), ref in places[bisect_left(lasts, subnet[0]) : bisect_right(firsts, subnet[1])]:
                if ref == old or (other == subnet and subtract(given, held) == given):
                    continue
                if old in self._go or old in moved:
                    needs.setdefault(ref, []).append(old)
                elif ref not in blocked:
                    blocked[ref] = Conflict(ref, "spec.ips", str(old), "overlaps a pool that has to stay")
                    queue += [(ref, moved.pop(ref))] if ref in moved else []
        return needs, blocked


def _turns(needs: dict[Ref, list[Ref]]) -> dict[Ref, int]:
    """Return the batch of each moved pool. An unplanned pool joins the first pool that needs its addresses.

    A pool moves after those whose addresses it takes over, so that pools that all shift by one move one by one. Pools
    that take over each other's addresses share a batch: all pools where all nodes trade places in one circle.
    """
    sorter = TopologicalSorter(needs)
    order: list[Ref] = []
    # Pools outside of cycles come in order anyway.
    with contextlib.suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        sorter.done(*ready)
        order += ready
    turns: dict[Ref, int] = {}
    for turn, ref in enumerate([*(ref for ref in order if ref in needs), *needs], 1):
        together = [ref]
        while together:
            if (pool := together.pop()) not in turns:
                turns[pool] = turn
                together += needs.get(pool, ())
    return turns
