# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Reads what lldpd knows of the switches: the JSON of `lldpcli -f json show neighbors` (lldpd 0.9 and later)."""

from __future__ import annotations

import json
import typing as t

ARGV = ("lldpcli", "-f", "json", "show", "neighbors")
SWITCH_CAPABILITIES = frozenset({"Bridge", "Router"})


def parse_lldp(text: str) -> dict[str, dict[str, t.Any]]:
    """Return the neighbour of each interface: `{"switch", "switch_id", "port", "description"}`.

    Where several speak on one interface (a NIC's own firmware does) the first that calls itself a switch counts.

    :raises ValueError: when the text is not lldpcli's JSON.
    """
    data = json.loads(text)
    if not isinstance(data, dict) or not isinstance(data.get("lldp"), dict):
        raise ValueError("no key 'lldp'")
    found: dict[str, list[dict[str, t.Any]]] = {}
    for row in _as_list(data["lldp"].get("interface")):
        for name, entry in row.items():
            found.setdefault(name, []).extend(_neighbour(item) for item in _as_list(entry))
    result = {}
    for name in sorted(found):
        best = next((item for item in found[name] if item.pop("is_switch")), found[name][0])
        best.pop("is_switch", None)
        result[name] = best
    return result


def _as_list(value: t.Any) -> list[t.Any]:
    # One element stands alone, several stand in a list.
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _neighbour(entry: dict[str, t.Any]) -> dict[str, t.Any]:
    chassis = entry.get("chassis") or {}
    # {"NAME": {"id": ...}}, or {"id": ...} when the neighbour sends no name.
    if "id" in chassis and "value" in (chassis["id"] if isinstance(chassis["id"], dict) else {}):
        name, body = None, chassis
    else:
        name, body = next(iter(chassis.items()), (None, {}))
    port = entry.get("port") or {}
    enabled = {item.get("type") for item in _as_list(body.get("capability")) if item.get("enabled")}
    identity = (body.get("id") or {}).get("value")
    return {
        "switch": name or identity,
        "switch_id": identity,
        "port": (port.get("id") or {}).get("value"),
        "description": port.get("descr"),
        "is_switch": bool(enabled & SWITCH_CAPABILITIES),
    }
