# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How 971e458, the last version before `format`, reads plan.json: its functions, word for word, and nothing of later.

`parse_lock` is the planner's (of fabric_foreign_plans too), `read_lock` that of modules that read the plan.
"""

from __future__ import annotations

import hashlib
import json
import os
import typing as t
from collections.abc import Mapping
from dataclasses import dataclass

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError, Problem, RdmaError
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.check import LABEL, SUBDOMAIN, Checker, shown

PlanFile = dict
LOCK = "plan.json"
SCHEMA = 1
AGAIN = "Run the playbook railops.rdma.plan again; it finishes or mends the plan."
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


def canonical(value: object) -> str:
    """Write JSON in the one form that digests are made of."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def sha256(text: str) -> str:
    """Return the digest as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def lock_digest(lock: Mapping[str, t.Any]) -> str:
    """Return the digest that plan.json's other keys must have."""
    return sha256(canonical({key: value for key, value in lock.items() if key != "digest"}))


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


def read_lock(folder: str) -> PlanFile:
    """Read plan.json as far as readers need it.

    :raises RdmaError: no plan, an unfinished one, one of another schema, or one that was changed.
    """
    place = os.path.join(folder, LOCK)
    try:
        with open(place, "rb") as stream:
            data = json.loads(stream.read())
    except FileNotFoundError:
        raise RdmaError(f"There is no plan: {place!r} does not exist.", AGAIN) from None
    except OSError as exc:
        raise RdmaError(
            f"The plan {place!r} cannot be read: {exc.strerror or exc}.", "Mend that and run again."
        ) from None
    except ValueError as exc:
        raise RdmaError(f"The plan {place!r} is not valid JSON: {exc}.", "Restore it from version control.") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        fix = "Use the version of the collection that wrote it, or one that can read it."
        raise RdmaError(f"The plan {place!r} does not have schema {SCHEMA}, which this collection reads.", fix)
    if data.get("digest") == "":
        raise RdmaError(f"The plan in {folder!r} is unfinished: a run was killed while it wrote.", AGAIN)
    if data.get("digest") != lock_digest(data):
        raise RdmaError(
            f"The plan {place!r} was changed by hand or merged: its digest is not that of its content.",
            "Restore it from version control. After a merge that you have checked, plan once with "
            "fabric_accept_lock=true.",
        )
    return t.cast("PlanFile", data)
