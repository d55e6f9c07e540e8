# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what a switch announces by LLDP from lldpd's answer. No sockets.

`lldpcli -f json0 ... details` (lldpd 1.0) gives every value as a list, whatever their number, and what it does not know
itself, DCBX for one, as bytes. DCBX: IEEE 802.1Q annex D; numbers as in lldpd's lldp-const.h.
"""

from __future__ import annotations

import re
import typing as t

from .._validation import InvalidData, parsed, sanitize, validate

ARGV = ("lldpcli", "-f", "json0", "show", "neighbors", "details")
SWITCH_CAPABILITIES = frozenset({"Bridge", "Router"})
IEEE_8021 = "0080c2"
ETS, PFC, APPLICATION = 9, 11, 12
MAC = re.compile("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
MOST_OTHERS = 7
DSCP = 5  # the selector of an application entry
INSTALL = "Install lldpd on the host (apt install lldpd, or dnf install lldpd) and start its service."

Neighbor = dict[str, t.Any]


def parse_lldp(text: str) -> dict[str, Neighbor]:
    """Return the neighbor of each interface on which lldpd heard one, as `best` returns it.

    :raises ValueError: when the text is not lldpcli's JSON.
    """
    data = validate(sanitize(parsed(text)), {"lldp": [{}]}, "the answer")
    found: dict[str, list[Neighbor]] = {}
    for part in data["lldp"]:
        for row in validate(part.get("interface", []), [{"name": str}], "interface"):
            try:
                found.setdefault(row["name"], []).append(_of_lldpd(row))
            except (AttributeError, IndexError, KeyError, TypeError) as exc:
                raise InvalidData(f"a neighbor without {exc}") from None
    return {name: best(found[name]) for name in sorted(found)}


def best(received: t.Sequence[Neighbor]) -> Neighbor:
    """Return the neighbor of an interface that is most likely its leaf, the others in its `others`.

    A NIC's firmware, a bridge host or a DPU speaks on the port of a leaf, too. A switch comes first. One that names
    its port by a MAC address, as hosts do (and SONiC until its port names are known), comes after the other switches.
    """
    first, *others = sorted(received, key=lambda item: (not item["is_switch"], named_by_mac(item)))
    return {**first, "others": others[:MOST_OTHERS]} if others else first


def received_on(seen: Neighbor | None) -> list[Neighbor]:
    """Return all neighbors of an interface, the most likely leaf first."""
    return [seen, *(seen.get("others") or ())] if seen else []


def named_by_mac(item: Neighbor) -> bool:
    """Whether a neighbor names its port by a MAC address, as lldpd does on hosts."""
    return bool(MAC.fullmatch(str(item.get("port"))))


def _first(rows: t.Any) -> t.Any:
    return rows[0].get("value") if rows else None


def _of_lldpd(row: t.Mapping[str, t.Any]) -> Neighbor:
    """Return a neighbor.

    `switch` (its system name, else its chassis), `switch_id` (chassis), `port`, `description` (of the port),
    `is_switch` (whether it announces that it bridges or routes), `dcbx` (as `dcbx` returns it).
    """
    chassis, port = (row.get("chassis") or [{}])[0], (row.get("port") or [{}])[0]
    enabled = {item.get("type") for item in chassis.get("capability", []) if item.get("enabled")}
    unknown = [item for group in row.get("unknown-tlvs", []) for item in group.get("unknown-tlv", [])]
    chassis_id = _first(chassis.get("id"))
    return {
        "switch": _first(chassis.get("name")) or chassis_id,
        "switch_id": chassis_id,
        "port": _first(port.get("id")),
        "description": _first(port.get("descr")),
        "is_switch": bool(enabled & SWITCH_CAPABILITIES),
        "dcbx": dcbx(
            (int(item["subtype"]), bytes.fromhex(item.get("value", "").replace(",", "")))
            for item in unknown
            if item.get("oui", "").replace(",", "").lower() == IEEE_8021
        ),
    }


def dcbx(tlvs: t.Iterable[tuple[int, bytes]]) -> dict[str, t.Any] | None:
    """Return what a leaf announces of lossless traffic, out of its 802.1 TLVs (subtype, value); None without any.

    `pfc`: the paused priorities. `ets`: priority_tc (class of each priority), bandwidth (percent of each class).
    `dscp`: the priority of each DSCP.
    """
    found: dict[str, t.Any] = {}
    for kind, value in tlvs:
        if kind == PFC and len(value) >= 2:
            found["pfc"] = [priority for priority in range(8) if value[1] >> priority & 1]
        elif kind == ETS and len(value) >= 21:
            classes = [value[1 + number // 2] >> (0 if number % 2 else 4) & 15 for number in range(8)]
            if max(classes) < 8:  # IEEE 802.1Q reserves the others
                found["ets"] = {"priority_tc": classes, "bandwidth": list(value[5:13])}
        elif kind == APPLICATION:
            rows = [value[place : place + 3] for place in range(1, len(value) - 2, 3)]
            found["dscp"] = {str(int.from_bytes(row[1:], "big")): row[0] >> 5 for row in rows if row[0] & 7 == DSCP}
    return found or None
