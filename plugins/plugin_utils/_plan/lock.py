# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""plan.json, the lock: what is frozen, who sits where, and the digests of the rest of the folder.

`schema`; `digest`, sha256 of the canonical JSON of all its other keys, empty while a run is writing; `files`, a sha256
for each part of the folder; `frozen`, what decides addresses; `nodes`, each with zone, slot, retired.
Canonical JSON: sorted keys, no blanks, as json.dumps(value, sort_keys=True, separators=(",", ":")).
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass

from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.lock import SCHEMA, lock_digest
from ...module_utils._fabric.model import Fabric, Prefix, Rail, Zone, range_text
from ...module_utils._fabric.options import DEFAULTS, NODE_PREFIX, RAIL_PREFIX
from . import blocks as arithmetic
from .check import LABEL, SUBDOMAIN, Checker, natural_key, shown
from .space import Foreign

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ...module_utils._fabric.model import Node, Retired

UNFINISHED = "unfinished"
RESTORE = "Restore it from version control (git log shows its history); never write it by hand."


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
        return tuple(net for net in [check.prefix("frozen", text) for text in texts] if net is not None)

    def lengths(key: str, usual: dict[int, int]) -> dict[int, int]:
        return {**usual, **{int(name[-1]): int(length) for name, length in frozen.get(key, {}).items()}}

    spans = [check.span("frozen", text) for text in frozen["reserved"]]
    return Fabric(
        name=DEFAULTS["name"],
        mode=frozen["mode"],
        zones=tuple(
            Zone(str(zone["name"]), "", nets(zone["supernets"]), int(zone["max_nodes"])) for zone in frozen["zones"]
        ),
        rails=tuple(
            Rail(index + 1, str(rail["name"]), "", nets(rail["subnets"])) for index, rail in enumerate(frozen["rails"])
        ),
        rail_prefix=lengths("rail_prefix", RAIL_PREFIX),
        node_prefix=lengths("node_prefix", NODE_PREFIX),
        first_block=int(frozen["first_block"]),
        gateway=frozen["gateway"],
        host_addresses=frozen.get("host_addresses", DEFAULTS["host_addresses"]),
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
    fabric = thaw(parse_lock(text, f"{place} ({label})").frozen, f"{place} ({label})")
    return Foreign(place, label, tuple(sorted({block.aggregate for block in arithmetic.build_blocks(fabric)})))


def lock_of(fabric: Fabric, nodes: Iterable[Node], retired: Iterable[Retired], files: Mapping[str, str]) -> str:
    """Write plan.json: one line per node, in natural order.

    :param files: a digest by part of the plan.
    """
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
