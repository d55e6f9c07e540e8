# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares the leaf and port that each rail's cable ends in with the planned ones. No files, no sockets."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass
from fnmatch import fnmatchcase

from .._check import Check, deviation, ok, skipped
from .lldp import named_by_mac, received_on

if t.TYPE_CHECKING:
    from .lldp import Neighbor


@dataclass(frozen=True)
class Cable:
    """One rail: what is planned, what was seen, and why nothing was.

    :param leaf: the leaf's name or a pattern of it, and `port` the same; empty where the plan has none.
    :param seen: the neighbor (`lldp.best`), None when there is none.
    :param unseen: why there is none, and `unseen_fix` what to do about it.
    """

    rail: str
    interface: str
    leaf: str = ""
    port: str = ""
    seen: Neighbor | None = None
    unseen: str = ""
    unseen_fix: str = ""

    @property
    def received(self) -> Neighbor:
        """The neighbor that fits the planned leaf and port best, else the most likely one; empty without one."""
        received = received_on(self.seen)
        on_leaf = [item for item in received if _is(item, self.leaf)]
        on_port = [item for item in on_leaf or received if _has_port(item, self.port)]
        return next(iter([*on_port, *on_leaf, *received]), {})

    @property
    def place(self) -> str:
        """Switch and port where the cable ends, for people."""
        return _place(self.received)


def _place(item: Neighbor) -> str:
    return " ".join(str(item[key]) for key in ("switch", "port") if item.get(key))


def named(pattern: str, *names: t.Any) -> bool:
    """Whether a name is the planned one or matches it as a pattern, in any letter case, with or without its domain."""
    texts = [str(name).lower() for name in names if name]
    wanted = pattern.lower()
    return any(text == wanted or fnmatchcase(text, wanted) for text in [*texts, *(x.split(".")[0] for x in texts)])


def _is(item: Neighbor, leaf: str) -> bool:
    return bool(leaf) and named(leaf, item.get("switch"), item.get("switch_id"))


def _has_port(item: Neighbor, port: str) -> bool:
    return bool(port) and named(port, *_port_names(item))


def on_leaf(cable: Cable, leaf: str) -> bool:
    """Whether one of the LLDP neighbors of a cable's port is this leaf."""
    return any(_is(item, leaf) for item in received_on(cable.seen))


def _port_names(seen: t.Mapping[str, t.Any]) -> list[str]:
    return [str(seen[key]) for key in ("port", "description") if seen.get(key)]


def cable_checks(cables: t.Sequence[Cable], leaves: t.Sequence[t.Mapping[str, str]], zone: str | None) -> list[Check]:
    """Return `cable_leaf` of each rail, and `cable_port` where the plan has its port.

    :param leaves: the leaves of all zones, each with `zone`, `rail`, `leaf`; to name the zone and rail of a wrong leaf.
    :param zone: the host's own zone; None where the plan has no cables.
    """
    found = []
    for cable in cables:
        leaf = _leaf_check(cable, cables, leaves, zone)
        found += [leaf, *([_port_check(cable, cables, leaf)] if cable.port else [])]
    return found


def _leaf_check(
    cable: Cable, cables: t.Sequence[Cable], leaves: t.Sequence[t.Mapping[str, str]], zone: str | None
) -> Check:
    if not cable.leaf:
        fix = "Name the leaves (docs/guides/discover.md)."
        return skipped("cable_leaf", "The plan names no leaf.", fix, rail=cable.rail)
    if on_leaf(cable, cable.leaf):
        return ok("cable_leaf", cable.leaf, cable.place, rail=cable.rail)
    if not cable.seen:
        return skipped("cable_leaf", f"Not seen: {cable.unseen}", cable.unseen_fix, cable.leaf, rail=cable.rail)
    switches = [item for item in received_on(cable.seen) if item["is_switch"] and not named_by_mac(item)]
    if not switches:
        why = f"Not seen: {cable.place} does not announce a switch (the NIC's own firmware?)."
        if cable.received["is_switch"]:
            why = f"Not seen: {cable.place} names its port by a MAC address, as hosts do and leaves do only at first."
        fix = "Check LLDP on the leaf and in the NIC's firmware."
        return skipped("cable_leaf", why, fix, cable.leaf, rail=cable.rail)
    if len(switches) > 1:
        places = ", ".join(map(_place, switches))
        cause = f"{cable.interface} receives LLDP of {len(switches)} switches, none of them {cable.leaf}: {places}."
        fix = f"Find out which of them the cable of {cable.interface} ends in, and which switch forwards LLDP."
        return deviation("cable_leaf", cable.leaf, places, cause, fix, rail=cable.rail)
    cause, fix = _leaf_cause(cable, cables, leaves, zone)
    return deviation("cable_leaf", cable.leaf, cable.place, cause, fix, rail=cable.rail)


def _leaf_cause(
    cable: Cable, cables: t.Sequence[Cable], leaves: t.Sequence[t.Mapping[str, str]], zone: str | None
) -> tuple[str, str]:
    move = f"Move the cable of {cable.interface} to {cable.leaf}{f' {cable.port}' if cable.port else ''}."
    others = [other for other in cables if other.rail != cable.rail and other.leaf and other.leaf != cable.leaf]
    for other in others:
        if on_leaf(cable, other.leaf) and on_leaf(other, cable.leaf):
            text = f"{cable.rail} and {other.rail} are swapped: {cable.interface} is on {cable.place}, "
            return f"{text}{other.interface} on {other.place}.", "Swap the two cables, at the node or at the leaves."
    where = f"{cable.interface} is on {cable.place}"
    for row in leaves:
        if row["zone"] != zone and on_leaf(cable, row["leaf"]):
            return f"{where}, the leaf of {row['rail']} in zone {row['zone']}: the node is planned in {zone}.", (
                f"{move} Or put the node into the group of zone {row['zone']}."
            )
    for other in others:
        if on_leaf(cable, other.leaf) and on_leaf(other, other.leaf):
            text = f"{where}, and so is {other.interface} of {other.rail}, whose leaf it is: one leaf for two rails."
            return text, move
    for row in leaves:
        if row["zone"] == zone and on_leaf(cable, row["leaf"]):
            return f"{where}, the leaf of {row['rail']}.", move
    return f"{where}, which the plan has for no rail.", f"{move} Or name it in the plan, if that is intended."


def _port_check(cable: Cable, cables: t.Sequence[Cable], leaf: Check) -> Check:
    if not cable.seen:
        return skipped("cable_port", f"Not seen: {cable.unseen}", cable.unseen_fix, cable.port, rail=cable.rail)
    if cable.leaf and leaf["status"] != "ok":
        return skipped("cable_port", "The leaf is not the planned one.", "", cable.port, rail=cable.rail)
    seen = _port_names(cable.received)
    if _has_port(cable.received, cable.port):
        return ok("cable_port", cable.port, seen[0], rail=cable.rail)
    if named_by_mac(cable.received):
        why = f"Not seen: {cable.place} names its port by a MAC address (SONiC does until its port names are known)."
        return skipped("cable_port", why, "Run audit again in two minutes.", cable.port, rail=cable.rail)
    cause = f"{cable.interface} is on {cable.place}."
    for other in cables:
        if (
            other is not cable
            and other.leaf == cable.leaf
            and _has_port(cable.received, other.port)
            and _has_port(other.received, cable.port)
        ):
            cause = f"{cable.rail} and {other.rail} are swapped at the leaf: {cable.place} and {other.place}."
    fix = f"Move the cable to port {cable.port}, or change the plan if that is intended."
    return deviation("cable_port", cable.port, seen[0] if seen else None, cause, fix, rail=cable.rail)
