# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Allocates slots to nodes, and renumbers a node only where that is allowed."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ...module_utils._fabric.lock import LOCK
from ...module_utils._formatting import natural, shortened
from .._fabric.model import NO_SLOT, Fabric, Node, Retired
from .check import SHOWN, Checker, shown
from .input import Options
from .lock import Entry, Lock
from .moves import Moves

CHANGES = {
    "added": "New",
    "retired": "Retired",
    "released": "Released",
    "renamed": "Renamed",
    "moved": "Renumbered",
}
"""What happens to nodes, with the word for it; `moved` only where fabric_allow_renumber is set."""


class Allocation(t.NamedTuple):
    """The slots of nodes, and the changes since the lock file."""

    nodes: tuple[Node, ...]
    retired: tuple[Retired, ...]
    changes: dict[str, list[str]]
    """Names of nodes by CHANGES: renamed as `node1 to gpu-a01`, moved as sentences, from where to where."""
    warnings: tuple[str, ...]


def allocate(fabric: Fabric, candidates: t.Sequence[Node], lock: Lock | None, options: Options) -> Allocation:
    """Allocate every node's slot: the locked one, the pinned one, or the lowest free, first come in natural order.

    :raises InputError: a node that vanished, a slot taken twice, no slot left, or a node that would move.
    """
    return _Allocator(fabric, candidates, lock, options).allocate()


def _renamed(lock: Lock, names: t.Collection[str], options: Options, check: Checker) -> tuple[Lock, list[str]]:
    """Return the lock with the new names of fabric_rename, and who got one; what was renamed before is passed over.

    :param names: of the nodes of the inventory.
    """
    nodes, done = dict(lock.nodes), []
    for old, new in options.rename:
        place = f"fabric_rename.{old}"
        if old not in lock.nodes:
            if new not in lock.nodes:
                problem = f"Neither {old} nor {new} is in plan.json."
                check.add(place, problem, "Correct the name, or remove the line. [rename_unknown]")
            continue
        if old in names:
            fix = f"Call it {new} there (fabric_node_name). [rename_still_there]"
            check.add(place, f"{old} is still in the inventory.", fix)
        elif new in lock.nodes:
            fix = "Give another name, or retire that node first. [rename_has_slot]"
            check.add(place, f"{new} has a slot of its own in plan.json.", fix)
        elif new not in names:
            fix = f"Call {old} so there (fabric_node_name). [rename_not_there]"
            check.add(place, f"{new} is not in the inventory.", fix)
        else:
            nodes[new] = nodes.pop(old)
            done.append(f"{old} to {new}")
    return replace(lock, nodes=nodes), done


class _Allocator:
    """The steps of allocation; every step adds its problems, and all are raised together."""

    def __init__(self, fabric: Fabric, candidates: t.Sequence[Node], lock: Lock | None, options: Options) -> None:
        self.fabric = fabric
        self.options = options
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.order = sorted(self.candidates, key=natural)
        self.check = Checker()
        self.renamed: list[str] = []
        if lock:
            lock, self.renamed = _renamed(lock, self.candidates, options, self.check)
        self.lock = lock
        self.locked: t.Mapping[str, Entry] = lock.nodes if lock else {}
        self.zone_index = {zone.name: index for index, zone in enumerate(fabric.zones)}
        self.moves = Moves(fabric, lock) if lock else None
        self.holders: dict[tuple[int, int], str] = {}
        self.slots: dict[str, tuple[int, int]] = {}
        self.warnings: list[str] = []

    def allocate(self) -> Allocation:
        retired = self._retired()
        self._vanished(retired)
        self._keep(retired)
        self._pins(retired)
        self._fill(retired)
        self.check.raise_any()
        count, moved = self.moves.compare(self.slots) if self.moves else (0, [])
        if moved and not self.options.allow_renumber:
            self._refuse_moves(count, moved)
        nodes = [
            self.candidates[name]._replace(zone=self.slots[name][0], slot=self.slots[name][1])
            for name in self.order
            if name not in retired
        ]
        left = tuple(Retired(name, *self.slots[name]) for name in sorted(retired, key=natural) if name in self.slots)
        changes = {
            "added": [node.name for node in nodes if node.name not in self.locked],
            "retired": [one.name for one in left if not self.locked[one.name].retired],
            "released": sorted((name for name in self.options.release if name in self.locked), key=natural),
            "renamed": self.renamed,
            "moved": moved,
        }
        return Allocation(tuple(nodes), left, changes, tuple(self.warnings))

    def _refuse_moves(self, count: int, moved: list[str]) -> None:
        """Refuse a change of the fabric that moves nodes, with what changed and how far it may go."""
        changed = self.moves.changed if self.moves else {}
        which = ", ".join(f"{name} from {shown(old)} to {shown(new)}" for name, (old, new) in changed.items())
        lines = "".join(f"\n      {line}" for line in moved)
        limit = ""
        if len(changed) == 1 and next(iter(changed)).endswith("max_nodes"):
            ((name, (kept, moving)),) = changed.items()
            zone = self.zone_index[name.partition("zones.")[2].removesuffix(".max_nodes")]
            while abs(moving - kept) > 1:
                middle = (kept + moving) // 2
                kept, moving = (kept, middle) if self._would_renumber(zone, middle) else (middle, moving)
            limit = f"{name} {kept} moves no node (docs/concepts/slots.md). "
        problem = f"The change would renumber {count} node(s): {which}.{lines}."
        fix = f"{limit}Undo the change, or set fabric_allow_renumber=true and plan for the outage. [renumber_refused]"
        self.check.add(next(iter(changed), "fabric_*"), problem, fix)
        self.check.raise_any()

    def _retired(self) -> set[str]:
        """Return whose slots stay empty: retired now, or retired before and not back in the inventory."""
        wanted = set(self.options.retire)
        released = set(self.options.release)
        retired = wanted & set(self.locked)
        for name in sorted(wanted - retired, key=natural):
            # A node that is retired before it ever had a slot gets none.
            self.candidates.pop(name, None)
        self.order = [name for name in self.order if name in self.candidates]
        self.warnings += [
            f"fabric_retire names {name}, which has no slot: remove it from the list."
            for name in sorted(wanted - retired - released, key=natural)
        ]
        self.warnings += [
            f"{name} is retired but still in the inventory: remove it when it is torn down."
            for name in sorted(wanted & set(self.candidates), key=natural)
        ]
        retired |= {name for name, entry in self.locked.items() if entry.retired and name not in self.candidates}
        for name in sorted(released, key=natural):
            place = f"fabric_release[{self.options.release.index(name)}]"
            if name in self.candidates:
                problem = f"{name} is in the inventory."
                self.check.add(place, problem, "Remove it from the list, or from the group. [retired_node_present]")
            elif name in self.locked and name not in retired:
                self.check.add(
                    place, f"{name} is not retired.", "Name it in fabric_retire first. [release_not_retired]"
                )
            else:
                # In the run that releases it, too: a warning that came later would make another report.
                self.warnings.append(f"fabric_release names {name}, which holds no slot: remove it from the list.")
        return retired - released

    def _vanished(self, retired: set[str]) -> None:
        known = retired | set(self.candidates) | set(self.options.release) | set(dict(self.options.rename))
        if missing := sorted((name for name in self.locked if name not in known), key=natural):
            new = [name for name in self.order if name not in self.locked]
            pairs = zip(missing, new, strict=True) if len(missing) == len(new) <= SHOWN else [("old", "new")]
            names = ", ".join(f"{old}: {name}" for old, name in pairs)
            self.check.add(
                "fabric_group",
                f"{len(missing)} node(s) of the plan are no longer in the inventory: {shortened(missing, 50)}.",
                "Restore them, or list them in fabric_retire to keep their slots empty. If they have new names, set "
                f"fabric_rename: {{{names}}}. [nodes_missing]",
            )

    def _keep(self, retired: set[str]) -> None:
        """Everybody who has a slot keeps it; a zone that was only renamed is the same zone."""
        before = {entry.zone for entry in self.locked.values()}
        new = {index for name, index in self.zone_index.items() if name not in before}
        same = {
            self.locked[name].zone: one.zone
            for name, one in self.candidates.items()
            if name in self.locked and one.zone in new
        } | self.zone_index
        for name, entry in self.locked.items():
            zone = same.get(entry.zone, -1)
            if name in self.candidates:
                zone = self.candidates[name].zone
            elif name in retired:
                if zone < 0:
                    fix = f"Name {name} in fabric_release, or bring the zone back. [zone_missing]"
                    problem = f"Retired {name} has a slot in zone {entry.zone!r}, which is not in the inventory."
                    self.check.add("fabric_zones", problem, fix)
                    continue
            else:
                continue
            moved = zone != same.get(entry.zone)
            if moved and not self.options.allow_renumber:
                self.check.add(
                    "fabric_zones",
                    f"{name} would move from zone {entry.zone!r} to {self.fabric.zones[zone].name!r}: all its "
                    "addresses change.",
                    "Restore it, or set fabric_allow_renumber=true. [renumber_refused]",
                )
            elif not moved:
                self._take(name, zone, entry.slot, LOCK)

    def _take(self, name: str, zone: int, slot: int, place: str) -> None:
        other = self.holders.setdefault((zone, slot), name)
        limit = self.fabric.zones[zone].max_nodes
        self.slots[name] = (zone, slot)
        if other != name:
            where = f"slot {slot}" + (f" of zone {self.fabric.zones[zone].name!r}" if self.fabric.zoned else "")
            self.check.add(
                place, f"{name} and {other} both want {where}.", "Give each a slot of its own. [slot_duplicate]"
            )
        if slot >= limit:
            place = "fabric_max_nodes" if place == LOCK else place
            problem = f"{name} has slot {slot}, and the last slot is {limit - 1}."
            self.check.add(place, problem, f"Raise fabric_max_nodes to {slot + 1} or more. [slots_too_few]")

    def _pins(self, retired: set[str]) -> None:
        moved: list[tuple[str, int, int, str]] = []
        for name in self.order:
            one = self.candidates[name]
            if one.slot == NO_SLOT or (name in retired and name in self.slots):
                continue
            place = f"hosts.{one.host}.fabric_slot"
            if name in self.slots:
                zone, slot = self.slots[name]
                if slot == one.slot:
                    continue
                if not self.options.allow_renumber:
                    fix = f"Set it to {slot} or remove it; fabric_allow_renumber=true moves the node. [slot_differs]"
                    self.check.add(place, f"{one.slot} is not the slot that {name} has in plan.json: {slot}.", fix)
                    continue
                # All who move leave theirs first: two may want each other's slots.
                if self.holders.get((zone, slot)) == name:
                    del self.holders[zone, slot]
            moved.append((name, one.zone, one.slot, place))
        for row in moved:
            self._take(*row)

    def _free(self, zone: int) -> t.Iterator[tuple[int, int]]:
        """Yield the zone's free slots, the lowest first, each as (zone, slot)."""
        for slot in range(self.fabric.zones[zone].max_nodes):
            if (zone, slot) not in self.holders:
                yield zone, slot

    def _fill(self, retired: set[str]) -> None:
        free = [self._free(zone) for zone in range(len(self.fabric.zones))]
        missing = [0] * len(self.fabric.zones)
        for name in self.order:
            if name in self.slots:
                continue
            zone = self.candidates[name].zone
            found = next(free[zone], None)
            if found is None:
                missing[zone] += 1
            else:
                self.slots[name] = found
        for zone, count in enumerate(missing):
            if not count:
                continue
            have = self.fabric.zones[zone].max_nodes
            retired_here = sum(1 for name, (where, _slot) in self.slots.items() if where == zone and name in retired)
            place = f"fabric_zones[{zone}].max_nodes" if self.fabric.zoned else "fabric_max_nodes"
            need = have + count
            by_retired = f" ({retired_here} for retired nodes)" if retired_here else ""
            too_few = f"{have} slots are too few: {need} are needed{by_retired}."
            release = ", or release retired slots with fabric_release." if retired_here else "."
            if self._would_renumber(zone, need):
                self.check.add(
                    place,
                    too_few,
                    f"Raising it to {need} would change addresses that are in use: see When the slots run out in "
                    f"docs/concepts/slots.md{release} [slots_grow]",
                )
            else:
                self.check.add(place, too_few, f"Raise it to {need} or more{release} [slots_too_few]")

    def _would_renumber(self, zone: int, slots: int) -> bool:
        """Whether so many slots in the zone would move anybody, or make pods' addresses the nodes'."""
        if self.lock is None or self.options.allow_renumber:
            return False
        zones = list(self.fabric.zones)
        zones[zone] = replace(zones[zone], max_nodes=slots)
        return bool(Moves(replace(self.fabric, zones=tuple(zones)), self.lock).compare(self.slots)[1])
