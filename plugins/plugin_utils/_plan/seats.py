# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The lock (plan.json) and the slots: who sits where, and that nobody is renumbered unless that is asked for.

plan.json: `schema`; `digest`, sha256 of the canonical JSON of all its other keys, empty while a run is writing;
`files`, a sha256 for each part of the folder; `frozen`, what decides addresses; `nodes`, each with zone, slot, retired.
Canonical JSON: sorted keys, no blanks, as json.dumps(value, sort_keys=True, separators=(",", ":")).
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, replace

from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.lock import canonical, lock_digest
from ...module_utils._fabric.model import (
    SCHEMA,
    Fabric,
    Node,
    Prefix,
    Rail,
    Retired,
    Zone,
    address_text,
    merge_ranges,
    range_text,
)
from . import blocks as arithmetic
from .check import LABEL, SUBDOMAIN, Checker, natural_key, shown
from .space import Foreign

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ...module_utils._fabric.model import Block, Range
    from .input import Options
    from .nodes import Candidate

UNFINISHED = "unfinished"
RESTORE = "Restore it from version control (git log shows its history); never write it by hand."
SHOWN = 10


@dataclass(frozen=True)
class Seat:
    """A node's entry in the lock."""

    zone: str
    slot: int
    retired: bool


@dataclass(frozen=True)
class Lock:
    """What plan.json says."""

    frozen: Mapping[str, t.Any]
    seats: Mapping[str, Seat]
    files: Mapping[str, str]
    digest: str
    unfinished: bool
    """A run was killed while it was writing: the seats are those of before that run."""


@dataclass(frozen=True)
class Seating:
    """Who sits where now, and what changed since the lock."""

    nodes: tuple[Node, ...]
    retired: tuple[Retired, ...]
    added: tuple[str, ...]
    retired_now: tuple[str, ...]
    released: tuple[str, ...]
    moved: tuple[str, ...]
    """Sentences: who moves from where to where (allowed by fabric_allow_renumber)."""
    warnings: tuple[str, ...]


def freeze(fabric: Fabric) -> dict[str, t.Any]:
    """Return what decides addresses, canonical, and nothing that the mode does not use."""
    families = {f"ipv{family}": family for family in fabric.families}
    frozen: dict[str, t.Any] = {
        "mode": fabric.mode,
        "zones": [
            {"name": zone.name, "supernets": [str(net) for net in zone.supernets], "max_nodes": zone.max_nodes}
            for zone in fabric.zones
        ],
        "rails": [{"name": rail.name, "subnets": [str(net) for net in rail.subnets]} for rail in fabric.rails],
        "first_block": fabric.first_block,
        "gateway": fabric.gateway,
        "node_pods": fabric.node_pods,
        "reserved": [range_text(family, (first, last)) for family, first, last in fabric.reserved],
    }
    if fabric.mode == "exclusive":
        frozen["node_prefix"] = {key: fabric.node_prefix[family] for key, family in families.items()}
    else:
        frozen["host_addresses"] = fabric.host_addresses
    if fabric.mode == "shared":
        frozen["rail_prefix"] = {key: fabric.rail_prefix[family] for key, family in families.items()}
    return frozen


def thaw(frozen: Mapping[str, t.Any], place: str) -> Fabric:
    """Make a fabric of frozen parameters; what they do not say is default. Raises InputError when they are broken."""
    check = Checker()
    try:
        fabric = _thaw(check, frozen)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        raise InputError([Problem(f"{place}: frozen", f"It cannot be read ({exc!r}).", RESTORE)]) from None
    check.raise_any()
    return fabric


def _thaw(check: Checker, frozen: Mapping[str, t.Any]) -> Fabric:
    def nets(texts: Iterable[str]) -> tuple[Prefix, ...]:
        found = [check.prefix("frozen", text) for text in texts]
        return tuple(net for net in found if net is not None)

    def lengths(key: str, usual: dict[int, int]) -> dict[int, int]:
        return {**usual, **{int(name[-1]): int(length) for name, length in frozen.get(key, {}).items()}}

    spans = [check.span("frozen", text) for text in frozen["reserved"]]
    return Fabric(
        name="fabric",
        mode=frozen["mode"],
        zones=tuple(
            Zone(str(zone["name"]), "", nets(zone["supernets"]), int(zone["max_nodes"])) for zone in frozen["zones"]
        ),
        rails=tuple(
            Rail(index + 1, str(rail["name"]), "", nets(rail["subnets"])) for index, rail in enumerate(frozen["rails"])
        ),
        rail_prefix=lengths("rail_prefix", {4: 24, 6: 64}),
        node_prefix=lengths("node_prefix", {4: 27, 6: 64}),
        first_block=int(frozen["first_block"]),
        gateway=frozen["gateway"],
        host_addresses=frozen.get("host_addresses", "start"),
        node_pods=frozen["node_pods"],
        reserved=tuple(span for span in spans if span),
    )


def parse_lock(text: str, place: str, *, accept: bool = False) -> Lock:
    """Read plan.json.

    :param place: how problems name the file.
    :param accept: take a lock whose digest does not match (fabric_accept_lock), after a merge that was looked at.
    :raises InputError: truncated, another schema, tampered with, or two nodes on one slot.
    """
    try:
        data = json.loads(text)
    except ValueError as exc:
        raise InputError([Problem(place, f"It is not valid JSON ({exc}).", RESTORE)]) from None
    if not isinstance(data, dict):
        raise InputError([Problem(place, "It is not a JSON object.", RESTORE)])
    if data.get("schema") != SCHEMA:
        fix = "Use the version of the collection that wrote it, or one that can read it."
        problem = f"It has schema {shown(data.get('schema'))}, and this collection reads schema {SCHEMA}."
        raise InputError([Problem(f"{place}: schema", problem, fix)])
    seats = _parse_seats(data.get("nodes"), place)
    frozen = data.get("frozen")
    if not isinstance(frozen, dict):
        raise InputError([Problem(f"{place}: frozen", f"{shown(frozen)} is not an object.", RESTORE)])
    if data.get("digest") == "" and isinstance(frozen.get(UNFINISHED), dict):
        return Lock(frozen[UNFINISHED], seats, {}, "", True)
    if data.get("digest") != lock_digest(data) and not accept:
        problem = f"Its digest is {shown(data.get('digest'))}, its content makes {lock_digest(data)!r}: it was changed"
        fix = RESTORE + " After a merge that you have checked (every node on its slot), run once with "
        raise InputError(
            [Problem(f"{place}: digest", problem + " by hand or merged.", fix + "fabric_accept_lock=true.")]
        )
    files = data.get("files")
    return Lock(frozen, seats, files if isinstance(files, dict) else {}, str(data.get("digest")), False)


def _parse_seats(nodes: object, place: str) -> dict[str, Seat]:
    if not isinstance(nodes, dict):
        raise InputError([Problem(f"{place}: nodes", f"{shown(nodes)} is not an object.", RESTORE)])
    seats: dict[str, Seat] = {}
    taken: dict[tuple[str, int], str] = {}
    check = Checker()
    for name, entry in nodes.items():
        where = f"{place}: nodes.{name}"
        if not _is_seat(entry):
            check.add_counted("nodes", where, f"{shown(entry)} is not {{zone, slot, retired}}.", RESTORE)
            continue
        zone = entry["zone"]
        if not SUBDOMAIN.fullmatch(name) or not isinstance(zone, str) or (zone and not LABEL.fullmatch(zone)):
            check.add_counted("nodes", where, "Its name or its zone is not a DNS-1123 name.", RESTORE)
            continue
        other = taken.setdefault((zone, entry["slot"]), name)
        if other != name:
            check.add(
                where,
                f"{name} and {other} both have slot {entry['slot']}" + (f" of zone {zone}." if zone else "."),
                "A merge brought two nodes to one slot: take the younger one out of plan.json's nodes and run again "
                "with fabric_accept_lock=true; it gets a free slot.",
            )
        seats[name] = Seat(zone, entry["slot"], entry["retired"])
    check.raise_any()
    return seats


def _is_seat(entry: object) -> bool:
    """Whether an entry of the lock is {zone, slot, retired}; a boolean is no slot."""
    if not isinstance(entry, dict) or set(entry) != {"zone", "slot", "retired"}:
        return False
    slot = entry["slot"]
    if isinstance(slot, bool) or not isinstance(slot, int):
        return False
    return slot >= 0 and isinstance(entry["retired"], bool)


def foreign_of(place: str, label: str, text: str) -> Foreign:
    """Return the networks of another cluster's plan.json."""
    lock = parse_lock(text, f"{place} ({label})")
    fabric = thaw(lock.frozen, f"{place} ({label})")
    return Foreign(place, label, tuple(sorted({block.aggregate for block in arithmetic.build_blocks(fabric)})))


def seat_nodes(fabric: Fabric, candidates: Sequence[Candidate], lock: Lock | None, options: Options) -> Seating:
    """Give every node its slot: the locked one, the pinned one, or the lowest free, first come in natural order.

    :raises InputError: a node that vanished, a slot taken twice, no slot left, or somebody who would move.
    """
    return _Usher(fabric, candidates, lock, options).seat()


class _Usher:
    """The steps of seating; every step adds its problems, and all are raised together."""

    def __init__(self, fabric: Fabric, candidates: Sequence[Candidate], lock: Lock | None, options: Options) -> None:
        self.fabric = fabric
        self.options = options
        self.candidates = {candidate.name: candidate for candidate in candidates}
        self.order = sorted(self.candidates, key=natural_key)
        self.lock = lock
        self.seats: Mapping[str, Seat] = lock.seats if lock else {}
        self.check = Checker()
        self.zone_index = {zone.name: index for index, zone in enumerate(fabric.zones)}
        self.moves = Moves(fabric, lock, self.check, options) if lock else None
        self.taken: dict[tuple[int, int], str] = {}
        self.slots: dict[str, tuple[int, int]] = {}
        self.warnings: list[str] = []

    def seat(self) -> Seating:
        retired = self._retired()
        self._vanished(retired)
        self._keep(retired)
        self._pins(retired)
        self._fill(retired)
        self.check.raise_any()
        moved = self.moves.compare(self.slots) if self.moves else ()
        self.check.raise_any()
        nodes = []
        for name in self.order:
            if name not in retired:
                zone, slot = self.slots[name]
                one = self.candidates[name]
                nodes.append(Node(name, one.host, zone, slot, one.interfaces, one.pcis, one.cables))
        gone = tuple(
            Retired(name, *self.slots[name]) for name in sorted(retired, key=natural_key) if name in self.slots
        )
        return Seating(
            nodes=tuple(nodes),
            retired=gone,
            added=tuple(node.name for node in nodes if node.name not in self.seats),
            retired_now=tuple(
                one.name for one in gone if one.name not in self.seats or not self.seats[one.name].retired
            ),
            released=tuple(sorted((name for name in self.options.release if name in self.seats), key=natural_key)),
            moved=moved,
            warnings=tuple(self.warnings),
        )

    def _retired(self) -> set[str]:
        """Return whose slots stay empty: retired now, or retired before and not back in the inventory."""
        wanted = set(self.options.retire)
        released = set(self.options.release)
        retired = wanted & set(self.seats)
        for name in sorted(wanted - retired, key=natural_key):
            # A node that is retired before it ever had a slot gets none.
            self.candidates.pop(name, None)
        self.order = [name for name in self.order if name in self.candidates]
        for name in sorted(wanted - retired - released, key=natural_key):
            self.warnings.append(f"fabric_retire names {name}, which has no slot: take it out of the list.")
        for name in sorted(wanted & set(self.candidates), key=natural_key):
            self.warnings.append(f"{name} is retired but still in the inventory: take it out when it is torn down.")
        retired |= {name for name, seat in self.seats.items() if seat.retired and name not in self.candidates}
        for name in sorted(released, key=natural_key):
            place = f"fabric_release[{self.options.release.index(name)}]"
            if name in self.candidates:
                self.check.add(place, f"{name} is in the inventory.", "Take it out of the list, or out of the group.")
            elif name in self.seats and name not in retired:
                self.check.add(place, f"{name} is not retired.", "Name it in fabric_retire first.")
            elif name not in self.seats:
                self.warnings.append(f"fabric_release names {name}, which has no slot: take it out of the list.")
        return retired - released

    def _vanished(self, retired: set[str]) -> None:
        known = retired | set(self.candidates) | set(self.options.release)
        gone = sorted((name for name in self.seats if name not in known), key=natural_key)
        if gone:
            listed = ", ".join(gone[:50]) + (f" and {len(gone) - 50} more" if len(gone) > 50 else "")
            self.check.add(
                "fabric_group",
                f"{len(gone)} node(s) of the plan are no longer in the inventory: {listed}.",
                "Put them back, or name them in fabric_retire to keep their slots empty.",
            )

    def _keep(self, retired: set[str]) -> None:
        """Everybody who has a seat keeps it; a zone that was only renamed is the same zone."""
        for name, seat in self.seats.items():
            if name in self.candidates:
                zone = self.candidates[name].zone
            elif name in retired:
                zone = self.zone_index.get(seat.zone, -1)
                if zone < 0 and self.moves:
                    zone = self.moves.same_zone(seat)
                if zone < 0:
                    fix = f"Name {name} in fabric_release, or bring the zone back."
                    self.check.add(
                        "fabric_zones", f"Retired {name} has a slot in zone {seat.zone!r}, which is gone.", fix
                    )
                    continue
            else:
                continue
            moved = self.fabric.zones[zone].name != seat.zone and not self._same_place(zone, seat)
            if moved and not self.options.allow_renumber:
                self.check.add_counted(
                    "fabric_zones",
                    "fabric_zones",
                    f"{name} would move from zone {seat.zone!r} to {self.fabric.zones[zone].name!r}: all its "
                    "addresses change.",
                    "Put it back, or set fabric_allow_renumber=true.",
                )
            elif not moved:
                self._sit(name, zone, seat.slot, "plan.json")

    def _same_place(self, zone: int, seat: Seat) -> bool:
        return self.moves is not None and self.moves.same_zone(seat) == zone

    def _sit(self, name: str, zone: int, slot: int, place: str) -> None:
        other = self.taken.setdefault((zone, slot), name)
        limit = self.fabric.zones[zone].max_nodes
        self.slots[name] = (zone, slot)
        if other != name:
            where = f"slot {slot}" + (f" of zone {self.fabric.zones[zone].name!r}" if self.fabric.zoned else "")
            self.check.add(place, f"{name} and {other} both want {where}.", "Give each a slot of its own.")
        if slot >= limit:
            place = "fabric_max_nodes" if place == "plan.json" else place
            self.check.add_counted(
                place,
                place,
                f"{name} has slot {slot}, and there are {limit} (0 to {limit - 1}).",
                "Raise fabric_max_nodes, or release retired slots and renumber on purpose.",
            )

    def _pins(self, retired: set[str]) -> None:
        for name in self.order:
            one = self.candidates[name]
            if one.pin is None or (name in retired and name in self.slots):
                continue
            place = f"hosts.{one.host}.fabric_slot"
            if name in self.slots:
                zone, slot = self.slots[name]
                if slot == one.pin:
                    continue
                if not self.options.allow_renumber:
                    self.check.add(
                        place,
                        f"{one.pin} is not the slot that {name} has in plan.json: {slot}.",
                        f"Set it to {slot} or take it out; fabric_allow_renumber=true moves the node.",
                    )
                    continue
                del self.taken[zone, slot]
            self._sit(name, one.zone, one.pin, place)

    def _free(self, zone: int) -> Iterator[tuple[int, int]]:
        """Yield the zone's free slots, the lowest first, each as (zone, slot)."""
        for slot in range(self.fabric.zones[zone].max_nodes):
            if (zone, slot) not in self.taken:
                yield zone, slot

    def _fill(self, retired: set[str]) -> None:
        free = [self._free(zone) for zone in range(len(self.fabric.zones))]
        missing = [0] * len(self.fabric.zones)
        for name in self.order:
            if name in self.slots:
                continue
            zone = self.candidates[name].zone
            seat = next(free[zone], None)
            if seat is None:
                missing[zone] += 1
            else:
                self.slots[name] = seat
        for zone, count in enumerate(missing):
            if not count:
                continue
            have = self.fabric.zones[zone].max_nodes
            held = sum(1 for name, (where, _slot) in self.slots.items() if where == zone and name in retired)
            place = f"fabric_zones[{zone}].max_nodes" if self.fabric.zoned else "fabric_max_nodes"
            need = have + count
            by_retired = f" ({held} for retired nodes)" if held else ""
            too_few = f"{have} slots are too few: {need} are needed{by_retired}."
            release = ", or release retired slots with fabric_release." if held else "."
            if self._would_renumber(zone, need):
                self.check.add(
                    place,
                    too_few,
                    f"Raising it to {need} would change addresses that are in use: When the slots run out, in "
                    f"docs/growth.md, says what to do instead{release}",
                )
            else:
                self.check.add(place, too_few, f"Raise it to {need} or more{release}")

    def _would_renumber(self, zone: int, slots: int) -> bool:
        """Whether so many slots in the zone would move anybody, or make pods' addresses the nodes'."""
        if self.lock is None or self.options.allow_renumber:
            return False
        zones = list(self.fabric.zones)
        zones[zone] = replace(zones[zone], max_nodes=slots)
        check = Checker()
        return bool(Moves(replace(self.fabric, zones=tuple(zones)), self.lock, check, self.options).compare(self.slots))


class Moves:
    """Compare the addresses of the locked plan with those of the new one."""

    def __init__(self, fabric: Fabric, lock: Lock, check: Checker, options: Options) -> None:
        self.new = fabric
        self.old = thaw(lock.frozen, "plan.json")
        self.seats = lock.seats
        self.check = check
        self.allowed = options.allow_renumber
        self.same = canonical(lock.frozen) == canonical(freeze(fabric))
        self.old_blocks = _table(self.old, arithmetic.build_blocks(self.old))
        self.new_blocks = _table(fabric, arithmetic.build_blocks(fabric))
        self._zones: dict[str, int] = {}

    def same_zone(self, seat: Seat) -> int:
        """Return the index of the zone that has the old zone's addresses under a new name, or -1."""
        if seat.zone not in self._zones:
            self._zones[seat.zone] = -1
            old = {key[1:]: block for key, block in self.old_blocks.items() if key[0] == seat.zone}
            for index, zone in enumerate(self.new.zones):
                new = {key[1:]: block for key, block in self.new_blocks.items() if key[0] == zone.name}
                if old and all(key in new and _same_shape(old[key], new[key]) for key in old):
                    self._zones[seat.zone] = index
        return self._zones[seat.zone]

    def compare(self, slots: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
        """Return who moves, as sentences; a problem unless fabric_allow_renumber is set."""
        lines: list[str] = []
        count = 0
        for name, seat in self.seats.items():
            if name not in slots or seat.retired:
                continue
            zone, slot = slots[name]
            if self.same and seat == Seat(self.new.zones[zone].name, slot, seat.retired):
                continue
            changes = self._changes(seat, self.new.zones[zone].name, slot)
            count += bool(changes)
            if changes and len(lines) < SHOWN:
                lines.append(f"{name}: {'; '.join(changes[:2])}" + (" ..." if len(changes) > 2 else ""))
        lines += self._takeovers()
        if count > SHOWN:
            lines.append(f"and {count - SHOWN} more nodes")
        if lines and not self.allowed:
            self.check.add(
                "fabric_*",
                f"What changed would renumber {count} node(s). {' | '.join(lines)}.",
                "Undo the change of fabric_* (git diff of the inventory shows it), or set fabric_allow_renumber=true "
                "and plan for the outage.",
            )
        return tuple(lines)

    def _changes(self, seat: Seat, zone: str, slot: int) -> list[str]:
        found = []
        for (old_zone, rail, family), block in self.old_blocks.items():
            if old_zone != seat.zone:
                continue
            after = self.new_blocks.get((zone, rail, family))
            if after is not None and slot == seat.slot and _same_shape(block, after):
                continue
            before, now = _where(block, seat.slot), _where(after, slot)
            if before != now:
                found.append(f"{rail} from {before} to {now}")
        return found

    def _takeovers(self) -> list[str]:
        """Find node addresses that were pod addresses: a pod may hold them (shared and flat)."""
        if self.same:
            return []
        lines: list[str] = []
        pods: dict[int, list[Range]] = {4: [], 6: []}
        for block in self.old_blocks.values():
            if not block.per_node:
                pods[block.family].extend(block.pods())
        merged = {family: merge_ranges(ranges) for family, ranges in pods.items()}
        for (zone, rail, family), block in self.new_blocks.items():
            if block.per_node:
                continue
            first = block.subnet_first(0)
            hosts = [(first + low, first + high) for low, high in block.host_offsets]
            for low, high in hosts:
                hit = [(max(low, a), min(high, b)) for a, b in merged[family] if a <= high and low <= b]
                if hit and len(lines) < SHOWN:
                    where = rail + (f" of zone {zone}" if zone else "")
                    lines.append(f"{where}: {range_text(family, hit[0])} are pod addresses and would become the nodes'")
        return lines


def _table(fabric: Fabric, blocks: Iterable[Block]) -> dict[tuple[str, str, int], Block]:
    """Name blocks by zone and rail name, for an index may have moved."""
    return {(fabric.zones[block.zone].name, fabric.rails[block.rail].name, block.family): block for block in blocks}


def _same_shape(old: Block, new: Block) -> bool:
    """Whether every slot of the old block has the same subnet, gateway and node address in the new one."""
    if old.aggregate.network != new.aggregate.network or old.subnet_length != new.subnet_length:
        return False
    return (
        old.per_node == new.per_node
        and old.gateway_offset == new.gateway_offset
        and _starts_with(new.host_offsets, old.host_offsets)
        and {slot: cut.host for slot, cut in old.cuts.items()} == {slot: cut.host for slot, cut in new.cuts.items()}
    )


def _starts_with(longer: Sequence[Range], shorter: Sequence[Range]) -> bool:
    return list(shorter) == arithmetic.take(list(longer), arithmetic.total(shorter))[0]


def _where(block: Block | None, slot: int) -> str:
    """Write a node's place on a rail: address, length and gateway."""
    host = block.host(slot) if block is not None else None
    if block is None or host is None:
        return "nothing"
    gateway = block.gateway(slot)
    by = f" by {address_text(block.family, gateway)}" if gateway is not None else ""
    return f"{address_text(block.family, host)}/{block.subnet_length}{by}"


def lock_of(fabric: Fabric, nodes: Iterable[Node], retired: Iterable[Retired], files: Mapping[str, str]) -> str:
    """Write plan.json: one line per node, in natural order."""
    seats = {node.name: {"zone": fabric.zones[node.zone].name, "slot": node.slot, "retired": False} for node in nodes}
    for one in retired:
        seats[one.name] = {"zone": fabric.zones[one.zone].name, "slot": one.slot, "retired": True}
    return write_lock(freeze(fabric), seats, files)


def write_lock(frozen: Mapping[str, t.Any], seats: Mapping[str, Mapping[str, t.Any]], files: Mapping[str, str]) -> str:
    """Write plan.json of its parts, with its digest."""
    body = {"schema": SCHEMA, "files": dict(files), "frozen": frozen, "nodes": seats}
    return _lock_text(body, lock_digest(body))


def unfinished_lock(lock: Lock) -> str:
    """Write the plan.json that stands while a run is writing: every reader refuses it, the next run continues it."""
    seats = {name: {"zone": seat.zone, "slot": seat.slot, "retired": seat.retired} for name, seat in lock.seats.items()}
    return _lock_text({"schema": SCHEMA, "files": {}, "frozen": {UNFINISHED: lock.frozen}, "nodes": seats}, "")


def _lock_text(body: Mapping[str, t.Any], digest: str) -> str:
    def indented(value: object) -> str:
        return json.dumps(value, indent=2, sort_keys=True).replace("\n", "\n  ")

    names = sorted(body["nodes"], key=natural_key)
    nodes = ",\n".join(
        f'    "{name}": {{"retired": {"true" if seat["retired"] else "false"}, "slot": {seat["slot"]}, '
        f'"zone": "{seat["zone"]}"}}'
        for name, seat in ((name, body["nodes"][name]) for name in names)
    )
    return (
        f'{{\n  "schema": {body["schema"]},\n  "digest": "{digest}",\n'
        f'  "files": {indented(body["files"])},\n  "frozen": {indented(body["frozen"])},\n'
        '  "nodes": {' + (f"\n{nodes}\n  " if nodes else "") + "}\n}\n"
    )
