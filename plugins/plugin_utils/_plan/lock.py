# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""plan.json, the lock file: frozen values, each node's slot, the digests of the rest of the folder.

`format`; `digest`, sha256 of the canonical JSON of all its other keys, empty while a run is writing; `files`, a sha256
for each part of the folder; `frozen`, what decides addresses; `nodes`, each with zone, slot, retired.
Canonical JSON: sorted keys, no blanks, as json.dumps(value, sort_keys=True, separators=(",", ":")).

Frozen values decide addresses for the complete life of a fabric. A reader that does not know a frozen key or value
therefore rejects the lock file (docs/concepts/slots.md).
"""

from __future__ import annotations

import contextlib
import re
import typing as t
from dataclasses import dataclass

from ...module_utils._errors import InputError, Problem
from ...module_utils._fabric.lock import FORMAT, MISMATCH, NEWER, RESTORE, REVERT, lock_digest, parsed_lock
from ...module_utils._fabric.shapes import PlanNode
from ...module_utils._formatting import natural
from ...module_utils._validation import LABEL, InvalidData, validate
from .._fabric.model import Fabric, Node, Retired, range_text
from .._fabric.options import DEFAULTS
from .._json_lines import json_lines
from .check import SUBDOMAIN, Checker
from .input import BASES, fabric_of

UNFINISHED = "unfinished"
_NODE = {"zone": re.compile(f"({LABEL.pattern})?"), "slot": int, "retired": bool}
_SHAPE = {"nodes": {SUBDOMAIN: _NODE}, "frozen": {}}
FROZEN = ("mode", "zones", "rails", "subnet_offset", "gateway", "pods_per_node", "reserved")
BY_MODE = {
    "exclusive": (*FROZEN, "node_prefix"),
    "shared": (*FROZEN, "rail_prefix", "host_addresses"),
    "flat": (*FROZEN, "host_addresses"),
}
"""The frozen keys of each mode: all that decides its addresses, and nothing that it does not use."""
USUAL = ("ipam", "reserved_per_subnet", *BASES)
"""Frozen keys that are missing where they have their default."""


class Entry(t.NamedTuple):
    """A node's entry in the lock."""

    zone: str
    slot: int
    retired: bool


@dataclass(frozen=True)
class Lock:
    """The content of plan.json."""

    fabric: Fabric
    """The frozen values; all others are defaults."""
    nodes: t.Mapping[str, Entry]
    """After a run that was killed while writing, the nodes from before that run."""


def freeze(fabric: Fabric) -> dict[str, t.Any]:
    """Return what decides addresses, canonical."""

    def by_family(values: t.Mapping[int, t.Any]) -> dict[str, t.Any]:
        return {f"ipv{family}": values[family] for family in fabric.families}

    frozen = {
        "mode": fabric.mode,
        "zones": [
            {"name": zone.name, "supernets": [str(net) for net in zone.supernets], "max_nodes": zone.max_nodes}
            for zone in fabric.zones
        ],
        "rails": [{"name": rail.name, "subnets": [str(net) for net in rail.subnets]} for rail in fabric.rails],
        "subnet_offset": fabric.subnet_offset,
        "gateway": by_family(fabric.gateway),
        "pods_per_node": fabric.pods_per_node,
        "reserved": [range_text(family, (first, last)) for family, first, last in fabric.reserved],
        "node_prefix": by_family(fabric.node_prefix),
        "rail_prefix": by_family(fabric.rail_prefix),
        "host_addresses": fabric.host_addresses,
    }
    named = {key: value for key in USUAL if (value := getattr(fabric, key)) != DEFAULTS[key]}
    if not fabric.attached.pods:
        # It says all of pods' addresses; other attachments decide none.
        del frozen["pods_per_node"]
        named["attachment"] = fabric.attachment
    return {**{key: frozen[key] for key in BY_MODE[fabric.mode] if key in frozen}, **named}


def thaw(frozen: t.Mapping[str, t.Any], place: str) -> Fabric:
    """Make a fabric of frozen parameters; what they do not say is default.

    :raises InputError: a key or a value that this version does not know, and so would not freeze.
    """
    fabric, made = None, dict[str, t.Any]()
    with contextlib.suppress(AttributeError, IndexError, KeyError, TypeError):
        fabric = _thaw(frozen)
        made = freeze(fabric)
    unknown = [key for key in sorted({*made, *frozen}) if key not in made or made[key] != frozen.get(key, UNFINISHED)]
    if fabric is None or unknown:
        where = f".{unknown[0]}" if made else ""
        raise InputError([Problem(f"{place}: frozen{where}", "It is not known to this version.", NEWER)])
    return fabric


def _thaw(frozen: t.Mapping[str, t.Any]) -> Fabric:
    """Read what freeze() wrote as options; a value that is not valid becomes another one."""
    zones = frozen["zones"]
    unnamed = len(zones) == 1 and not zones[0]["name"]
    return fabric_of(Checker(), {**frozen, **zones[0], "zones": None, "name": None} if unnamed else frozen)


def parse_lock(text: str, place: str, *, accept: bool = False) -> Lock:
    """Read plan.json.

    :param place: the file's name in problems.
    :param accept: accept a lock file whose digest does not match (fabric_accept_lock), after a reviewed merge.
    :raises InputError: truncated, of another format, tampered with, or two nodes on one slot.
    """
    data = parsed_lock(text, place)
    try:
        validate(data, _SHAPE, "the file")
    except InvalidData as exc:
        raise InputError([Problem(place, f"It is damaged: {exc}.", RESTORE)]) from None
    nodes, frozen = _parse_nodes(data["nodes"], place), data["frozen"]
    if data.get("digest") == "" and isinstance(frozen.get(UNFINISHED), dict):
        return Lock(thaw(frozen[UNFINISHED], place), nodes)
    if data.get("digest") != lock_digest(data) and not accept:
        raise InputError([Problem(f"{place}: digest", MISMATCH, REVERT)])
    return Lock(thaw(frozen, place), nodes)


def _parse_nodes(nodes: t.Mapping[str, PlanNode], place: str) -> dict[str, Entry]:
    entries: dict[str, Entry] = {}
    holders: dict[tuple[str, int], str] = {}
    check = Checker()
    for name, entry in nodes.items():
        zone = entry["zone"]
        other = holders.setdefault((zone, entry["slot"]), name)
        if other != name:
            check.add(
                f"{place}: nodes.{name}",
                f"{name} and {other} both have slot {entry['slot']}" + (f" of zone {zone}." if zone else "."),
                "A merge brought two nodes to one slot: remove the newer one from plan.json's nodes and run again "
                "with fabric_accept_lock=true; it gets a free slot. [slot_merged]",
            )
        entries[name] = Entry(zone, entry["slot"], entry["retired"])
    check.raise_any()
    return entries


def entries_of(fabric: Fabric, nodes: t.Iterable[Node], retired: t.Iterable[Retired]) -> dict[str, Entry]:
    """Return the nodes' entries in the lock, by name."""
    entries = {node.name: Entry(fabric.zones[node.zone].name, node.slot, False) for node in nodes}
    return {**entries, **{one.name: Entry(fabric.zones[one.zone].name, one.slot, True) for one in retired}}


def write_lock(
    frozen: t.Mapping[str, t.Any], entries: t.Mapping[str, Entry], files: t.Mapping[str, str]
) -> tuple[str, str]:
    """Return the text of plan.json, one line per node in natural order, and its digest.

    :param files: a digest by part of the plan.
    """
    content = _content(frozen, entries, files)
    content["digest"] = lock_digest(content)
    return json_lines(content, 2) + "\n", content["digest"]


def unfinished_lock(lock: Lock) -> str:
    """Render the plan.json that is in place while a run writes: every reader rejects it, the next run continues it."""
    return json_lines(_content({UNFINISHED: freeze(lock.fabric)}, lock.nodes, {}), 2) + "\n"


def _content(
    frozen: t.Mapping[str, t.Any], entries: t.Mapping[str, Entry], files: t.Mapping[str, str]
) -> dict[str, t.Any]:
    nodes = {name: entries[name]._asdict() for name in sorted(entries, key=natural)}
    return {"format": FORMAT, "digest": "", "files": dict(files), "frozen": dict(frozen), "nodes": nodes}
