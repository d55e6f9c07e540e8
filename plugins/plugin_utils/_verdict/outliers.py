# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compares a host with the fleet: a card that differs from its peers, and duplicate MAC addresses. Pure.

Peers are ports of the same card model (PCI vendor, device and the card maker's numbers; else the same driver). The
value of most peers counts as the intended one.
"""

from __future__ import annotations

import re
import typing as t
from collections import Counter
from itertools import islice

from ...module_utils._check import DEVIATION, Check, deviation, warning

Place = tuple[str, str]
"""Host and rail."""

MAC = re.compile(r"(?:[0-9a-f]{2}:){5}[0-9a-f]{2}")
ASPECTS = {
    "fleet_firmware": "Bring the card to the fleet's firmware (mlxup, flint), in a maintenance window.",
    "fleet_driver": "Bring the host to the fleet's driver: role rdma_driver.",
    "fleet_mac": "Give one of them its own again (`ethtool -P` has the card's); look for MACAddress in its files.",
    "fleet_speed": "Look at the cable, the optics, breakout and FEC of the leaf's port.",
}


# Places that are named of those that share something, and addresses of a check whose holders are.
NAMED = 5
# What peers are compared by.
COMPARED = ("pci_id", "driver", "version", "firmware", "speed")


def compared(facts: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Return the facts that the fleet comparison needs: reading all facts of a large fleet takes minutes."""
    rails = (facts.get("health") or {}).get("rails") or {}
    ports = {rail: {key: seen[key] for key in COMPARED if seen.get(key)} for rail, seen in rails.items()}
    made = {"health": {"rails": ports} if ports else None, "macs": facts.get("macs")}
    return {key: value for key, value in made.items() if value}


class FleetPorts:
    """Takes hosts one at a time, keeps a few words of each port, and names the hosts that differ."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], dict[t.Any, list[Place]]] = {}
        self._macs: dict[str, Place] = {}
        self._shared: dict[str, dict[Place, None]] = {}

    def add(self, host: str, facts: t.Mapping[str, t.Any]) -> None:
        """Add an audit's facts `health` and `macs` of a host; ignore other and missing facts."""
        for rail, mac in (facts.get("macs") or {}).items():
            first = self._macs.setdefault(str(mac).lower(), (host, rail))
            # Rails of one host may be VLANs of one port.
            if first[0] != host:
                self._shared.setdefault(str(mac).lower(), {first: None})[host, rail] = None
        for rail, seen in ((facts.get("health") or {}).get("rails") or {}).items():
            model = seen.get("pci_id") or seen.get("driver")
            if not model:
                continue
            place = (host, rail)
            software = " ".join(str(seen[key]) for key in ("driver", "version") if seen.get(key))
            # A rail may have ports of another speed on purpose; firmware is of the card.
            for aspect, peers, value in (
                ("fleet_firmware", model, seen.get("firmware")),
                ("fleet_driver", model, software),
                ("fleet_speed", f"{model} on {rail}", seen.get("speed")),
            ):
                if value:
                    self._values.setdefault((aspect, peers), {}).setdefault(value, []).append(place)

    def outliers(self) -> t.Iterator[tuple[str, Check]]:
        """Yield the hosts that differ from their peers, each with its check."""
        for mac, places in sorted(self._shared.items()):
            ordered = sorted(places)
            for place in ordered:
                named = [one for one in ordered[: NAMED + 1] if one != place]
                cause = f"{_named(named, len(ordered) - 1)} has the same MAC address. A leaf forwards to only one."
                # Each host's own word: which of them is wrong is not decided by it.
                ends = list(dict.fromkeys(host for host, _rail in named if host != place[0]))
                made = _of_others(deviation, "fleet_mac", place[1], "a MAC address of its own", mac, cause)
                yield place[0], {**made, "peers": ends}
        for (aspect, peers), values in sorted(self._values.items()):
            counts = Counter({value: len(places) for value, places in values.items()})
            # Among equals the newest or fastest, so that the answer does not depend on the hosts' order.
            usual = max(counts, key=lambda value: (counts[value], value))
            total = sum(counts.values())
            for value in sorted(set(counts) - {usual}):
                for host, rail in values[value]:
                    yield host, _check(aspect, rail, usual, value, f"{counts[usual]} of {total} ports of {peers}")

    def holder(self, mac: str, of: str) -> str:
        """Return the holder of a MAC address, for messages; empty when it is none of the fleet."""
        first = self._macs.get(mac.lower())
        places = self._shared.get(mac.lower(), {first: None}) if first else {}
        return _named(list(islice(places, NAMED)), len(places), of)


def _named(places: t.Sequence[Place], total: int, of: str = "") -> str:
    found = [f"{rail} of {'this host' if host == of else host}" for host, rail in places[:NAMED]]
    return " and ".join(found + [f"{total - len(found):,} more"] * (total > len(found)))


def _of_others(make: t.Callable[..., Check], aspect: str, rail: str, usual: str, value: str, cause: str) -> Check:
    """Return a check of a host that is made of other hosts' word."""
    return make(aspect, usual, value, cause, ASPECTS[aspect], rail=rail, unconfirmed=True)


def _check(aspect: str, rail: str, usual: t.Any, value: t.Any, most: str) -> Check:
    speed = aspect == "fleet_speed"
    planned, observed = (f"{one / 1000:g} Gb/s" if speed else one for one in (usual, value))
    make = deviation if speed and value < usual else warning
    return _of_others(make, aspect, rail, planned, observed, f"{most} have {planned}; this one has {observed}.")


def with_holder(check: Check, fleet: FleetPorts, host: str) -> Check:
    """Return a check of a duplicate address whose cause names the holder, where the fleet knows it."""
    if check["id"] != "address_duplicate" or check["status"] != DEVIATION:
        return check
    macs = islice(MAC.finditer(str(check["observed"]).lower()), NAMED)
    known = [holder for mac in macs if (holder := fleet.holder(mac[0], host))]
    cause, holders = str(check["cause"] or ""), f"It is {' and '.join(known)}."
    return {**check, "cause": f"{cause} {holders}".lstrip()} if known and holders not in cause else check
