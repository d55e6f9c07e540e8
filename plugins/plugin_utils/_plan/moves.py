# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Finds renumbered nodes: compares the addresses of the locked plan with those of the new one."""

from __future__ import annotations

import typing as t

from ...module_utils import _intervals as intervals
from ...module_utils._formatting import group_by
from .._fabric.model import Block, Fabric, range_text
from . import blocks as arithmetic
from .input import BASES
from .lock import USUAL, Entry, Lock, freeze

SHOWN = 10


class Moves:
    """Compare the addresses of the locked plan with those of the new one."""

    def __init__(self, fabric: Fabric, lock: Lock) -> None:
        self.new = fabric
        self.old = lock.fabric
        self.locked = lock.nodes
        self.same = freeze(lock.fabric) == freeze(fabric)
        before, after = _flat(lock.fabric), _flat(fabric)
        self.changed = {
            name: (before[name], value) for name, value in after.items() if before.get(name, value) != value
        }
        """The variables that decide addresses and were changed, each with its old and new value."""
        self.old_blocks = arithmetic.named_blocks(self.old)
        self.new_blocks = arithmetic.named_blocks(fabric)

    def moved(self, slots: t.Mapping[str, tuple[int, int]]) -> tuple[int, list[str]]:
        """Return how many nodes move, and sentences about the first of them.

        :param slots: index of the zone and slot of each node, by its name.
        """
        lines: list[str] = []
        count = 0
        for name, entry in self.locked.items():
            if name not in slots or entry.retired:
                continue
            zone, slot = slots[name]
            if self.same and entry == Entry(self.new.zones[zone].name, slot, entry.retired):
                continue
            changes = self._changes(entry, self.new.zones[zone].name, slot)
            count += bool(changes)
            if changes and len(lines) < SHOWN:
                lines.append(f"{name}: {'; '.join(changes[:2])}" + (" ..." if len(changes) > 2 else ""))
        return count, lines

    def compare(self, slots: t.Mapping[str, tuple[int, int]]) -> tuple[int, list[str]]:
        """Return how many nodes move, and sentences about the first of them and of pods' addresses."""
        count, lines = self.moved(slots)
        lines += [*self._takeovers(), *self._other_pods(), *self._other_numbers()]
        if count > SHOWN:
            lines.append(f"and {count - SHOWN} more nodes")
        return count, lines

    def _changes(self, entry: Entry, zone: str, slot: int) -> list[str]:
        found = []
        for (old_zone, rail, family), block in self.old_blocks.items():
            if old_zone != entry.zone:
                continue
            before, now = _where(block, entry.slot), _where(self.new_blocks.get((zone, rail, family)), slot)
            if before != now:
                found.append(f"{rail} from {before} to {now}")
        return found

    def _takeovers(self) -> list[str]:
        """Find node addresses that were pod addresses: a pod may hold them (shared and flat)."""
        lines: list[str] = []
        old = [block for block in self.old_blocks.values() if not block.per_node]
        pods = group_by((block.family, span) for block in old for span in block.pods())
        for (zone, rail, family), block in self.new_blocks.items():
            first = block.subnet_first(0)
            hosts = [] if block.per_node else [(first + low, first + high) for low, high in block.host_offsets]
            others = intervals.subtract(hosts, intervals.merge(pods.get(family, ())))
            if hit := intervals.subtract(hosts, others):
                where = rail + (f" of zone {zone}" if zone else "")
                lines.append(f"{where}: {range_text(family, hit[0])} are pod addresses and would become the nodes'")
        return lines[:SHOWN]

    def _other_numbers(self) -> list[str]:
        """Find changed tables, rule priorities and metrics, by base or rail: hosts' rules and routes are made again."""
        pairs = [(f"fabric_{key}", getattr(self.old, key), getattr(self.new, key)) for key in BASES]
        at = {rail.name: rail.index for rail in self.old.rails}
        pairs += [(f"number of {rail.name}", at.get(rail.name, rail.index), rail.index) for rail in self.new.rails]
        return [f"{name} from {old} to {new}" for name, old, new in pairs if old != new]

    def _other_pods(self) -> list[str]:
        """Report pod ranges that a change of the IPAM backend would move while pods may hold them."""
        if self.old.ipam == self.new.ipam:
            return []
        return [
            f"{key[1]}: pods' addresses in IPv{key[2]} subnets change with fabric_ipam, such as {block.subnet(0)}"
            for key, block in self.old_blocks.items()
            if (after := self.new_blocks.get(key)) is None
            or (after.pod_offsets, after.cuts) != (block.pod_offsets, block.cuts)
        ][:SHOWN]


def _flat(fabric: Fabric) -> dict[str, t.Any]:
    """Return what decides addresses by the names of the variables; of one family its value alone."""
    frozen = {**{key: getattr(fabric, key) for key in USUAL}, **freeze(fabric)}
    found = {}
    for zone in frozen.pop("zones"):
        place = f"fabric_zones.{zone['name']}." if zone["name"] else "fabric_"
        found.update({f"{place}{key}": zone[key] for key in ("supernets", "max_nodes")})
    for key, value in frozen.items():
        found[f"fabric_{key}"] = next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else value
    return found


def _where(block: Block | None, slot: int) -> str:
    """Write a node's place on a rail: address, length and gateway."""
    address, _subnet, gateway = block.texts(slot) if block is not None else ("", "", "")
    if block is None or not address:
        return "nothing"
    return f"{address}/{block.subnet_length}" + (f" by {gateway}" if gateway else "")
