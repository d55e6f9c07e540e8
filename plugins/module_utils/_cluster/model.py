# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The data model of a run on cluster objects: references, steps, retained objects, and the plan. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .._fabric.backends import BACKENDS
from .._fabric.labels import POLICY, SRIOV
from .._fabric.numbers import MANAGER

Json = dict[str, t.Any]

FIELD_MANAGER = MANAGER

# What carries our labels and is looked for when strays are removed.
PRUNED_KINDS = (*(row for backend in BACKENDS.values() for row in backend.objects.values()), (SRIOV, POLICY))
# The order in which kinds are made; they are removed the other way round. Pools before the configs that name them.
RANKS = {
    "Namespace": 0,
    "CustomResourceDefinition": 1,
    **{kind: rank for rank, (_api, kind) in enumerate(PRUNED_KINDS, 2)},
}


def below(obj: t.Any, dotted: str) -> t.Any:
    """Return what an object has at a dotted path; None where it has nothing."""
    for name in dotted.split("."):
        obj = obj.get(name) if isinstance(obj, dict) else None
    return obj


@dataclass(frozen=True, order=True)
class Ref:
    """One object: its group, kind, namespace and name. The version is not part of what it is."""

    group: str
    kind: str
    namespace: str
    name: str
    api_version: str = field(default="", compare=False)
    """By which it is read and written: group and version."""

    @classmethod
    def to(cls, api_version: str, kind: str, name: str, namespace: str = "") -> Ref:
        """Return a reference by what the API's paths have.

        :param api_version: group and version.
        :param kind: of the object.
        :param name: of the object, and `namespace` its namespace; empty for none.
        """
        return cls(api_version.rpartition("/")[0], kind, namespace, name, api_version)

    @classmethod
    def of(cls, obj: Json) -> Ref:
        """Return the reference of an object."""
        meta = obj["metadata"]
        return cls.to(obj["apiVersion"], obj["kind"], str(meta["name"]), str(meta.get("namespace") or ""))

    @property
    def rank(self) -> int:
        """Return its place in the order of creation."""
        return RANKS.get(self.kind, len(RANKS))

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"


@dataclass(frozen=True)
class Difference:
    """One field that is not as wanted. `before` or `after` is None where the field is missing."""

    field: str
    before: t.Any
    after: t.Any


@dataclass(frozen=True)
class ApplyStep:
    """One step. `force` restores edited fields of our object; `reverted` lists them with their field managers."""

    action: str  # create, apply, replace, delete
    ref: Ref
    body: Json | None = None
    differences: tuple[Difference, ...] = ()
    reverted: tuple[str, ...] = ()
    force: bool = False
    uid: str = ""
    version: str = ""
    before: Json = field(default_factory=dict)
    """The spec of a changed object as it is, below `spec`."""
    turn: int = 0
    """The place of a pool that moves, and of a stray in its way, among these; pools of one turn move together."""

    @property
    def phase(self) -> tuple[int, int, int]:
        """Return its place: replacements, changes, removals. Those of one place may run at once."""
        if self.turn or self.action == "replace":
            return (0, self.ref.rank, self.turn)
        return (2, -self.ref.rank, 0) if self.action == "delete" else (1, self.ref.rank, 0)


@dataclass(frozen=True)
class Retained:
    """An object that stays against the plan, and why; `users`: the pods that hold its addresses, in parentheses."""

    action: str  # delete, narrow, replace
    ref: Ref
    reason: str
    users: str = ""


@dataclass(frozen=True)
class Conflict:
    """An unmanaged field that stays (empty: the complete object), its owner, and the reason."""

    ref: Ref
    field: str
    owner: str
    reason: str


@dataclass(frozen=True)
class ClusterPlan:
    """The steps of a run in their order, retained objects and conflicts."""

    steps: tuple[ApplyStep, ...] = ()
    retained: tuple[Retained, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    unchanged: int = 0
