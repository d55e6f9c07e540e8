# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decide what to do to the objects of a cluster: compare what is wanted with what is there, object by object.

Pure: objects come in one at a time (`Planner.see`), so a list is never held as a whole; out comes a `Plan`. Ownership
follows the server's own record (managedFields), so that what the plan foretells is what the server will answer.

Source of the pool rules: Spiderpool's webhook (`subnet` and `ipVersion` never change; two pools share addresses only
by mistake) and one rule more: a pool with allocated addresses is never deleted, narrowed or replaced.
"""

from __future__ import annotations

import ipaddress
import json
import typing as t
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field

from .._fabric.names import LABEL_FABRIC, LABEL_MANAGER, MANAGER, SPIDERPOOL, SRIOV
from .._intervals import merge, subtract
from .pools import allocated, users

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .._intervals import Intervals

Json = dict[str, t.Any]
FIELD_MANAGER = MANAGER
POOL = "SpiderIPPool"

# The order in which kinds are made; they are removed the other way round. Pools before the configs that name them.
RANKS = {
    "Namespace": 0,
    "CustomResourceDefinition": 1,
    "ServiceAccount": 10,
    "Secret": 10,
    "ConfigMap": 10,
    "Role": 11,
    "ClusterRole": 11,
    "RoleBinding": 12,
    "ClusterRoleBinding": 12,
    "SpiderReservedIP": 20,
    POOL: 21,
    "SpiderCoordinator": 22,
    "SpiderMultusConfig": 23,
    "SriovNetworkPoolConfig": 30,
    "SriovNetworkNodePolicy": 31,
}
LAST_RANK = 40
POOLS = (SPIDERPOOL, POOL)
# What carries our labels and is looked for when strays are removed.
PRUNED_KINDS = (
    (SPIDERPOOL, "SpiderReservedIP"),
    POOLS,
    (SPIDERPOOL, "SpiderMultusConfig"),
    (SRIOV, "SriovNetworkNodePolicy"),
)
# Measured on Spiderpool's webhook, eight threads: it lists all pools at every create, about 0.5 ms for each pool.
_SECONDS_PER_POOL = 0.0005
_SECONDS_PER_WRITE = 0.002
_SHOWN = 20


@dataclass(frozen=True, order=True)
class Ref:
    """One object: its group, kind, namespace and name. The version is not part of what it is."""

    group: str
    kind: str
    namespace: str
    name: str

    @classmethod
    def of(cls, obj: Json) -> Ref:
        """Return the reference of an object."""
        meta = obj["metadata"]
        return cls(
            obj["apiVersion"].rpartition("/")[0], obj["kind"], str(meta.get("namespace") or ""), str(meta["name"])
        )

    @property
    def rank(self) -> int:
        """Return its place in the order of creation."""
        return RANKS.get(self.kind, LAST_RANK)

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Difference:
    """One field that is not as wanted. `before` or `after` is None where the field is missing."""

    field: str
    before: t.Any
    after: t.Any


@dataclass(frozen=True)
class Step:
    """One thing to do. `force` takes fields back that others edited on an object of ours: `mended` says whose."""

    action: str  # create, apply, replace, delete
    ref: Ref
    body: Json | None = None
    differences: tuple[Difference, ...] = ()
    mended: tuple[str, ...] = ()
    force: bool = False
    uid: str = ""
    version: str = ""


@dataclass(frozen=True)
class Kept:
    """What stays although the plan says otherwise, and why."""

    action: str  # delete, narrow, replace
    ref: Ref
    reason: str


@dataclass(frozen=True)
class Conflict:
    """What is not ours to change: the field (empty: the whole object), its owner, and the reason."""

    ref: Ref
    field: str
    owner: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What a run does, keeps and leaves to others."""

    steps: tuple[Step, ...] = ()
    early: tuple[Step, ...] = ()
    kept: tuple[Kept, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unchanged: int = 0
    pools: int = 0

    @property
    def changed(self) -> bool:
        """Say whether there is anything to do."""
        return bool(self.steps or self.early)

    def all_steps(self) -> Iterator[Step]:
        """Give every step, in the order of doing."""
        for _name, steps in self.phases():
            yield from steps

    def phases(self) -> list[tuple[str, list[Step]]]:
        """Return what may be done at once, in order: strays in the way, what is made, then what is removed."""
        made: dict[int, list[Step]] = {}
        gone: dict[int, list[Step]] = {}
        for step in self.steps:
            (gone if step.action == "delete" else made).setdefault(step.ref.rank, []).append(step)
        phases = [("remove what is in the way", list(self.early))] if self.early else []
        phases += [(f"apply {made[rank][0].ref.kind}", made[rank]) for rank in sorted(made)]
        phases += [(f"remove {gone[rank][0].ref.kind}", gone[rank]) for rank in sorted(gone, reverse=True)]
        return phases

    def counts(self) -> dict[str, int]:
        """Return the summary."""
        count = Counter(step.action for step in self.all_steps())
        return {
            "created": count["create"],
            "applied": count["apply"],
            "replaced": count["replace"],
            "deleted": count["delete"],
            "unchanged": self.unchanged,
            "kept": len(self.kept),
            "conflicts": len(self.conflicts),
        }

    def expected_seconds(self) -> float:
        """Return how long the writes take, from what was measured: each pool created costs all the pools there are."""
        news = sum(1 for step in self.all_steps() if step.ref.kind == POOL and step.action in ("create", "replace"))
        others = sum(1 for _step in self.all_steps()) - news
        return round(
            others * _SECONDS_PER_WRITE
            + news * _SECONDS_PER_WRITE
            + _SECONDS_PER_POOL * (news * self.pools + news * news / 2),
            1,
        )


# Comparing


def differences(wanted: t.Any, live: t.Any, place: str = "") -> Iterator[Difference]:
    """Tell the fields of `wanted` that `live` does not have so. What the server added is not a difference."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        for name, value in wanted.items():
            below = f"{place}.{name}" if place else name
            if name in live:
                yield from differences(value, live[name], below)
            # A server may keep no empty list: there is nothing to mend then.
            elif value is not None and value != []:
                yield Difference(below, None, value)
    elif isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        if any(True for one, two in zip(wanted, live) for _difference in differences(one, two)):
            yield Difference(place, live, wanted)
    elif wanted != live:
        yield Difference(place, live, wanted)


def object_differences(wanted: Json, live: Json) -> tuple[Difference, ...]:
    """Tell how an object differs, fields included that we set before and no longer want."""
    found: list[Difference] = []
    for name, value in wanted.items():
        if name == "metadata":
            for part in ("labels", "annotations"):
                mine = value.get(part) or {}
                found += differences(mine, live["metadata"].get(part) or {}, f"metadata.{part}")
        elif name not in ("apiVersion", "kind", "status"):
            found += differences({name: value}, live)
    for row in live["metadata"].get("managedFields") or ():
        if row.get("manager") == FIELD_MANAGER and row.get("operation") == "Apply":
            found += dropped(row.get("fieldsV1") or {}, wanted, live)
    return tuple(found)


def dropped(owned: Json, wanted: t.Any, live: t.Any, place: str = "") -> Iterator[Difference]:
    """Tell the fields that we own on the server and want no more. Lists are compared as a whole elsewhere."""
    if not isinstance(wanted, dict) or not isinstance(live, dict):
        return
    for step, below in owned.items():
        if not step.startswith("f:") or step[2:] not in live:
            continue
        name = step[2:]
        path = f"{place}.{name}" if place else name
        if name not in wanted:
            if not below:
                yield Difference(path, live[name], None)
            else:
                yield from dropped(below, {}, live[name], path)
        elif below:
            yield from dropped(below, wanted[name], live[name], path)


def owners(live: Json, dotted: str) -> list[tuple[str, str]]:
    """Return (manager, operation) of everyone but us who owns a field, one above or one below it."""
    steps = _steps(dotted)
    found = []
    for row in live["metadata"].get("managedFields") or ():
        if row.get("subresource") or row.get("manager") == FIELD_MANAGER:
            continue
        node = row.get("fieldsV1") or {}
        for step in steps:
            if step not in node:
                break
            node = node[step]
            if not node:
                found.append((str(row.get("manager")), str(row.get("operation"))))
                break
        else:
            found.append((str(row.get("manager")), str(row.get("operation"))))
    return found


def _steps(dotted: str) -> list[str]:
    # Keys of labels and annotations hold dots of their own.
    for part in ("metadata.labels.", "metadata.annotations."):
        if dotted.startswith(part):
            return ["f:metadata", f"f:{part.split('.')[1]}", f"f:{dotted[len(part) :]}"]
    return [f"f:{name}" for name in dotted.split(".")]


def is_ours(labels: dict[str, str], fabric: str) -> bool:
    """Say whether labels say that an object is this collection's, and of this fabric."""
    return labels.get(LABEL_MANAGER) == FIELD_MANAGER and labels.get(LABEL_FABRIC, "") == fabric


# Pools


def ranges(items: Iterable[str]) -> Intervals:
    """Return address ranges as sorted pairs of integers; the ends in any order, joined where they meet."""
    pairs = []
    for item in items:
        first, _dash, last = item.partition("-")
        one = int(ipaddress.ip_address(first.strip()))
        two = int(ipaddress.ip_address(last.strip())) if last else one
        pairs.append((min(one, two), max(one, two)))
    return merge(pairs)


def addresses(pool: Json) -> Intervals:
    """Return the addresses that a pool may give out."""
    spec = pool.get("spec") or {}
    return subtract(ranges(spec.get("ips") or ()), ranges(spec.get("excludeIPs") or ()))


def keep_pool(action: str, ref: Ref, live: Json) -> Kept | None:
    """Return why a pool must stay as it is, or None when no address of it is in use."""
    count = allocated(live)
    if ref.kind != POOL or not count:
        return None
    noun = "address is" if count == 1 else "addresses are"
    return Kept(action, ref, f"{count} {noun} in use{users(live)}; move those pods away and run again.")


@dataclass
class Planner:
    """Takes the live objects one by one and ends with a plan.

    `wanted` by reference; `fabric` is whose strays are removed when `prune`; `absent` removes what is wanted gone.
    """

    wanted: dict[Ref, Json]
    fabric: str = ""
    prune: bool = False
    absent: bool = False
    force: bool = False
    _steps: list[Step] = field(default_factory=list)
    _kept: list[Kept] = field(default_factory=list)
    _conflicts: list[Conflict] = field(default_factory=list)
    _seen: set[Ref] = field(default_factory=set)
    _unchanged: int = 0
    _pools: int = 0
    _stay: dict[Ref, tuple[tuple[int, int], Intervals]] = field(default_factory=dict)
    _go: dict[Ref, tuple[tuple[int, int], Intervals]] = field(default_factory=dict)

    def see(self, live: Json) -> None:
        """Take in one object that is there."""
        ref = Ref.of(live)
        if ref in self._seen:
            return
        self._pools += ref.kind == POOL
        wanted = self.wanted.get(ref)
        if wanted is not None:
            self._seen.add(ref)
            if self.absent:
                self._remove(ref, live, self._label_of(wanted) or self.fabric)
            else:
                self._compare(ref, wanted, live)
        elif self.prune and is_ours(live["metadata"].get("labels") or {}, self.fabric):
            self._seen.add(ref)
            self._remove(ref, live, self.fabric)

    @staticmethod
    def _label_of(obj: Json) -> str:
        return str((obj["metadata"].get("labels") or {}).get(LABEL_FABRIC, ""))

    def _remove(self, ref: Ref, live: Json, fabric: str) -> None:
        meta = live["metadata"]
        if meta.get("deletionTimestamp"):
            self._unchanged += 1
            return
        labels = meta.get("labels") or {}
        labelled = LABEL_MANAGER in (self.wanted.get(ref, live)["metadata"].get("labels") or {})
        if labelled and not is_ours(labels, fabric) and not self.force:
            self._conflicts.append(self._foreign(ref, live))
            return
        kept = keep_pool("delete", ref, live)
        if kept:
            self._kept.append(kept)
            self._stay[ref] = self._place(live)
            return
        self._steps.append(Step("delete", ref, uid=meta.get("uid", ""), version=meta.get("resourceVersion", "")))
        if ref.kind == POOL:
            self._go[ref] = self._place(live)

    @staticmethod
    def _place(pool: Json) -> tuple[tuple[int, int], Intervals]:
        subnet = ipaddress.ip_network(pool["spec"]["subnet"], strict=False)
        return (int(subnet.network_address), int(subnet.broadcast_address)), addresses(pool)

    @staticmethod
    def _foreign(ref: Ref, live: Json) -> Conflict:
        labels = live["metadata"].get("labels") or {}
        # Who only writes the status does not own the object: any controller does that.
        rows = [row for row in live["metadata"].get("managedFields") or () if not row.get("subresource")]
        names = sorted({str(row.get("manager")) for row in rows if set(row.get("fieldsV1") or ()) - {"f:status"}})
        owner = labels.get(LABEL_MANAGER) or ", ".join(names) or "somebody"
        if labels.get(LABEL_MANAGER) == FIELD_MANAGER:
            owner = f"fabric {labels.get(LABEL_FABRIC, '')!r}"
        return Conflict(ref, "", owner, "exists and is not of this fabric")

    def _compare(self, ref: Ref, wanted: Json, live: Json) -> None:
        meta = live["metadata"]
        if meta.get("deletionTimestamp"):
            kept = keep_pool("replace", ref, live)
            if kept:
                self._kept.append(kept)
            else:
                self._steps.append(Step("replace", ref, wanted, uid=meta.get("uid", "")))
            return
        found = object_differences(wanted, live)
        if not found:
            self._unchanged += 1
            return
        labels = wanted["metadata"].get("labels") or {}
        labelled = LABEL_MANAGER in labels
        held = labelled and self._held(labels, meta)
        if labelled and not held and not self.force:
            self._conflicts.append(self._foreign(ref, live))
            return
        mended, clashes = self._ownership(ref, live, found, held=held)
        if clashes:
            self._conflicts += clashes
            return
        action = self._pool_action(ref, wanted, live, found)
        if action:
            step = Step(action, ref, wanted, found, mended, bool(mended) or self.force)
            version = meta.get("resourceVersion", "") if action == "replace" else ""
            self._steps.append(Step(**{**step.__dict__, "uid": meta.get("uid", ""), "version": version}))

    @staticmethod
    def _held(labels: dict[str, str], meta: Json) -> bool:
        if is_ours(meta.get("labels") or {}, labels.get(LABEL_FABRIC, "")):
            return True
        # Someone may have taken the labels off; the server still knows who made it.
        other = (meta.get("labels") or {}).get(LABEL_FABRIC)
        return other in (None, labels.get(LABEL_FABRIC, "")) and any(
            row.get("manager") == FIELD_MANAGER and row.get("operation") == "Apply"
            for row in meta.get("managedFields") or ()
        )

    def _ownership(
        self, ref: Ref, live: Json, found: tuple[Difference, ...], *, held: bool
    ) -> tuple[tuple[str, ...], list[Conflict]]:
        """Tell edits of ours that get mended from fields that another controller declares."""
        mended = []
        clashes = []
        for difference in found:
            if difference.after is None:
                continue
            for manager, operation in owners(live, difference.field):
                if self.force or (held and operation == "Update"):
                    mended.append(f"{difference.field} (set by {manager})")
                else:
                    clashes.append(Conflict(ref, difference.field, manager, "is declared by another field manager"))
        return tuple(mended), clashes

    def _pool_action(self, ref: Ref, wanted: Json, live: Json, found: tuple[Difference, ...]) -> str:
        """Return apply or replace, or nothing when the pool must stay as it is."""
        if ref.kind != POOL:
            return "apply"
        names = {difference.field for difference in found}
        if names & {"spec.subnet", "spec.ipVersion"}:
            kept = keep_pool("replace", ref, live)
            action = "replace"
        else:
            narrower = bool(subtract(addresses(live), addresses(wanted)))
            kept = keep_pool("narrow", ref, live) if narrower else None
            action = "apply"
        if kept:
            self._kept.append(kept)
            return ""
        return action

    def finish(self) -> Plan:
        """Return the plan, with what is missing and with strays that are in the way put first."""
        news = []
        if self.absent:
            self._unchanged += len(set(self.wanted) - self._seen)
        else:
            news = [Step("create", ref, body) for ref, body in self.wanted.items() if ref not in self._seen]
        early, blocked = self._in_the_way([step for step in [*news, *self._steps] if step.action != "delete"])
        self._conflicts += blocked.values()
        steps = [step for step in [*news, *self._steps] if step.ref not in early and step.ref not in blocked]
        return Plan(
            steps=tuple(sorted(steps, key=lambda step: (step.ref.rank, step.ref))),
            early=tuple(step for step in self._steps if step.ref in early),
            kept=tuple(sorted(self._kept, key=lambda row: row.ref)),
            conflicts=tuple(sorted(self._conflicts, key=lambda row: (row.ref, row.field))),
            unchanged=self._unchanged,
            pools=self._pools,
        )

    def _in_the_way(self, made: list[Step]) -> tuple[set[Ref], dict[Ref, Conflict]]:
        """Return strays whose addresses a new pool needs, and new pools that a kept stray blocks."""
        early: set[Ref] = set()
        blocked: dict[Ref, Conflict] = {}
        if not self._go and not self._stay:
            return early, blocked
        news = [step for step in made if step.ref.kind == POOL and step.action in ("create", "replace") and step.body]
        places = sorted((self._place(step.body or {}), step.ref) for step in news)
        firsts = [place[0][0] for place, _ref in places]
        lasts = [place[0][1] for place, _ref in places]
        for stray, (subnet, held) in [*self._go.items(), *self._stay.items()]:
            for (other, given), ref in places[bisect_left(lasts, subnet[0]) : bisect_right(firsts, subnet[1])]:
                if other == subnet and subtract(given, held) == given:
                    continue
                if stray in self._go:
                    early.add(stray)
                else:
                    blocked[ref] = Conflict(
                        ref, "spec.ips", str(stray), "overlaps a pool that still has addresses in use"
                    )
        return early, blocked


# Telling


def as_text(value: t.Any, most: int = 160) -> str:
    """Return a value on one line, cut where it is long."""
    text = json.dumps(value, separators=(", ", ": "), ensure_ascii=False) if value is not None else "(none)"
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def summary(plan: Plan) -> str:
    """Return one line that says it all."""
    counts = plan.counts()
    names = (("created", "to create"), ("applied", "to change"), ("replaced", "to replace"), ("deleted", "to delete"))
    parts = [f"{counts[key]:,} {text}" for key, text in names]
    parts += [
        f"{counts[key]:,} {text}"
        for key, text in (("kept", "kept"), ("conflicts", "in conflict"), ("unchanged", "unchanged"))
    ]
    return ", ".join(parts)


def describe(plan: Plan, most: int = _SHOWN) -> str:
    """Return a diff that a person can read at any size: the summary, what needs eyes, then samples of the rest."""
    lines = [summary(plan)]
    for kept in plan.kept[:most]:
        lines.append(f"! {kept.ref}: kept, would {kept.action}: {kept.reason}")
    lines += _more(len(plan.kept), most, "!")
    for clash in plan.conflicts[:most]:
        where = f" {clash.field}" if clash.field else ""
        lines.append(f"! {clash.ref}{where}: {clash.reason} ({clash.owner})")
    lines += _more(len(plan.conflicts), most, "!")
    for action, mark in (("delete", "-"), ("replace", "-+"), ("apply", "~"), ("create", "+")):
        steps = [step for step in plan.all_steps() if step.action == action]
        for step in steps[:most]:
            lines.append(f"{mark} {step.ref}")
            lines += [
                f"    {row.field}: {as_text(row.before)} -> {as_text(row.after)}" for row in step.differences[:10]
            ]
            lines += [f"    taken back: {text}" for text in step.mended[:10]]
        lines += _more(len(steps), most, mark, Counter(step.ref.kind for step in steps[most:]))
    return "\n".join(lines) + "\n"


def _more(count: int, most: int, mark: str, kinds: Counter[str] | None = None) -> list[str]:
    if count <= most:
        return []
    by_kind = ", ".join(f"{number:,} {kind}" for kind, number in sorted((kinds or {}).items()))
    return [f"{mark} ... and {count - most:,} more" + (f": {by_kind}" if by_kind else "")]
