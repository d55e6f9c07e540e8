# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what a switch says of itself by LLDP: out of lldpd's answer, and out of a frame. No sockets.

`lldpcli -f json0 ... details` (lldpd 1.0) gives every value as a list, whatever their number, and what it does not know
itself, DCBX for one, as bytes. Frames and DCBX: IEEE 802.1AB and 802.1Q annex D; numbers as in lldpd's lldp-const.h.
"""

from __future__ import annotations

import re
import socket
import struct
import typing as t

from .._validation import InvalidData, parsed, sanitize, validate

ARGV = ("lldpcli", "-f", "json0", "show", "neighbors", "details")
SWITCH_CAPABILITIES = frozenset({"Bridge", "Router"})
# Bits of the capabilities that are enabled (802.1AB table 8-4).
BRIDGE, ROUTER = 1 << 2, 1 << 4
ETHERTYPE = 0x88CC
IEEE_8021, IEEE_8023 = "0080c2", "00120f"
PORT_VLAN, ETS, PFC, APPLICATION, MAX_FRAME = 1, 9, 11, 12, 4
MAC = re.compile("[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}")
MOST_OTHERS = 7
TRANSMISSION = {0: "strict", 1: "credit", 2: "ets", 255: "vendor"}
SELECTORS = {1: "ethertype", 2: "tcp", 3: "udp", 4: "port", 5: "dscp"}

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


def best(heard: t.Sequence[Neighbor]) -> Neighbor:
    """Return the neighbor of an interface that is most likely its leaf, the others in its `others`.

    A NIC's firmware, a bridge host or a DPU speaks on the port of a leaf, too. A switch comes first. One that names
    its port by a MAC address, as hosts do (and SONiC until its port names are known), comes after the other switches.
    """
    first, *others = sorted(heard, key=lambda item: (not item["is_switch"], named_by_mac(item)))
    return {**first, "others": others[:MOST_OTHERS]} if others else first


def heard_on(seen: Neighbor | None) -> list[Neighbor]:
    """Return all neighbors of an interface, the most likely leaf first."""
    return [seen, *(seen.get("others") or ())] if seen else []


def named_by_mac(item: Neighbor) -> bool:
    """Whether a neighbor names its port by a MAC address, as lldpd does on hosts."""
    return bool(MAC.fullmatch(str(item.get("port"))))


def neighbor(**said: t.Any) -> Neighbor:
    """Return a neighbor; what it did not say is None.

    `switch` (its system name, else its chassis), `switch_id` (chassis), `port`, `description` (of the port),
    `is_switch` (whether it bridges or routes, by its own word), `vlan` (of untagged frames), `max_frame` (bytes),
    `dcbx` (as `dcbx` gives it).
    """
    found = {key: said.get(key) for key in ("switch", "switch_id", "port", "description", "vlan", "max_frame", "dcbx")}
    return {**found, "switch": said.get("switch") or said.get("switch_id"), "is_switch": bool(said.get("is_switch"))}


def _first(rows: t.Any, key: str = "value") -> t.Any:
    return rows[0].get(key) if rows else None


def _number(text: t.Any) -> int | None:
    return int(text) if re.fullmatch(r"[0-9]{1,9}", str(text)) else None


def _of_lldpd(row: t.Mapping[str, t.Any]) -> Neighbor:
    chassis, port = (row.get("chassis") or [{}])[0], (row.get("port") or [{}])[0]
    enabled = {item.get("type") for item in chassis.get("capability", []) if item.get("enabled")}
    unknown = [item for group in row.get("unknown-tlvs", []) for item in group.get("unknown-tlv", [])]
    return neighbor(
        switch=_first(chassis.get("name")),
        switch_id=_first(chassis.get("id")),
        port=_first(port.get("id")),
        description=_first(port.get("descr")),
        is_switch=enabled & SWITCH_CAPABILITIES,
        vlan=next((_number(item.get("vlan-id")) for item in row.get("vlan", []) if item.get("pvid")), None),
        max_frame=_number(_first(port.get("mfs"))),
        dcbx=dcbx(
            (int(item["subtype"]), bytes.fromhex(item.get("value", "").replace(",", "")))
            for item in unknown
            if item.get("oui", "").replace(",", "").lower() == IEEE_8021
        ),
    )


def parse_frame(frame: bytes) -> Neighbor | None:
    """Return who sent a frame; None for one that is not LLDP, is cut off, or says that its sender leaves (TTL 0)."""
    if len(frame) < 14 or int.from_bytes(frame[12:14], "big") != ETHERTYPE:
        return None
    said: dict[str, t.Any] = {}
    own: list[tuple[int, bytes]] = []
    place, ended = 14, False
    while place + 2 <= len(frame) and not ended:
        (head,) = struct.unpack_from(">H", frame, place)
        kind, length = head >> 9, head & 0x1FF
        value = frame[place + 2 : place + 2 + length]
        if len(value) < length:
            return None
        place += 2 + length
        ended = kind == 0
        if kind == 127 and value[:3].hex() == IEEE_8021 and length > 3:
            own.append((value[3], value[4:]))
        else:
            said.update(_field(kind, value))
    if not said.get("ttl") or "switch_id" not in said:
        return None
    pvid = next((int.from_bytes(value[:2], "big") for kind, value in own if kind == PORT_VLAN), None)
    return neighbor(**said, vlan=pvid or None, dcbx=dcbx(own))


def _field(kind: int, value: bytes) -> dict[str, t.Any]:
    """Return what one TLV adds to a neighbor."""
    if kind in (1, 2) and len(value) > 1:
        return {"switch_id" if kind == 1 else "port": _identity(kind, value[0], value[1:])}
    if kind == 3 and len(value) >= 2:
        return {"ttl": int.from_bytes(value[:2], "big")}
    if kind in (4, 5):
        return {"description" if kind == 4 else "switch": _text(value)}
    if kind == 7 and len(value) >= 4:
        return {"is_switch": int.from_bytes(value[2:4], "big") & (BRIDGE | ROUTER)}
    if kind == 127 and value[:3].hex() == IEEE_8023 and value[3:4] == bytes([MAX_FRAME]):
        return {"max_frame": int.from_bytes(value[4:6], "big")}
    return {}


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace").rstrip("\0")


def _identity(kind: int, subtype: int, value: bytes) -> str:
    """Return the text of a chassis (kind 1) or port (kind 2): a MAC address, an IP address or a name."""
    if subtype == (4 if kind == 1 else 3):
        return value.hex(":")
    families = {1: (socket.AF_INET, 5), 2: (socket.AF_INET6, 17)}
    if subtype == (5 if kind == 1 else 4) and value[0] in families and len(value) == families[value[0]][1]:
        return socket.inet_ntop(families[value[0]][0], value[1:])
    return _text(value)


def dcbx(own: t.Iterable[tuple[int, bytes]]) -> dict[str, t.Any] | None:
    """Return what a leaf says of lossless traffic, out of its 802.1 TLVs (subtype, value); None when it says nothing.

    `pfc`: willing, capability (how many priorities it can pause), enabled (which). `ets`: willing, classes, priority_tc
    (class of each priority), bandwidth (percent of each class), algorithm. `app`: priority, selector, value (a DSCP for
    the selector `dscp`).
    """
    found: dict[str, t.Any] = {}
    for kind, value in own:
        if kind == PFC and len(value) >= 2:
            enabled = [priority for priority in range(8) if value[1] >> priority & 1]
            found["pfc"] = {"willing": bool(value[0] >> 7), "capability": value[0] & 15, "enabled": enabled}
        elif kind == ETS and len(value) >= 21:
            classes = [value[1 + number // 2] >> (0 if number % 2 else 4) & 15 for number in range(8)]
            found["ets"] = {
                "willing": bool(value[0] >> 7),
                "classes": value[0] & 7 or 8,
                "priority_tc": classes,
                "bandwidth": list(value[5:13]),
                "algorithm": [TRANSMISSION.get(number, str(number)) for number in value[13:21]],
            }
        elif kind == APPLICATION:
            found["app"] = [
                {
                    "priority": value[place] >> 5,
                    "selector": SELECTORS.get(value[place] & 7, str(value[place] & 7)),
                    "value": int.from_bytes(value[place + 1 : place + 3], "big"),
                }
                for place in range(1, len(value) - 2, 3)
            ]
    return found or None
