# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Detects early signs of a failure from a port's counters, its link and its PCIe slot. No files, no sockets.

Counters are compared with those of the last audit of the same boot and the same registration of the interface. A
reboot, a reload of the driver or a smaller counter starts a new comparison.
"""

from __future__ import annotations

import typing as t

from .._check import Check, compared, deviation, ok, skipped, warning
from .counters import kind_of

if t.TYPE_CHECKING:
    Facts = t.Mapping[str, t.Any]

LIMITS = {"port_errors": 0, "port_discards": 1000, "port_flaps": 1, "port_order": -1}
"""By how much one counter may grow between two audits; negative: growth warns and does not fail."""

_CAUSES = {
    "port_errors": "packets were damaged or lost",
    "port_discards": "packets were dropped for lack of buffer space",
    "port_flaps": "the link went down",
    "port_order": "packets came out of order, were sent again or found no buffer",
}
_FIXES = {
    "port_errors": "Look at the cable and the optics (mlxlink, ethtool -m), then at the leaf's port.",
    "port_discards": "Look at PFC and ECN on leaf and host (role lossless_roce), and at what else uses the port.",
    "port_flaps": "Look at the cable, the optics and the leaf's log, unless the link was taken down on purpose.",
    "port_order": "Nothing with adaptive routing; without it look for loss on the leaves. verify_limits makes it fail.",
}
_SPEED_FIX = "Look at the cable, the optics, breakout and FEC of the leaf's port."


def health_checks(
    rails: t.Mapping[str, Facts], boot: str, since: Facts | None, limits: t.Mapping[str, int], speed: int = 0
) -> list[Check]:
    """Return the checks of all rails.

    :param boot: the ID of the host's present boot.
    :param rails: what `health.read_rail` found, by the rail's name.
    :param since: the facts `health` of the last audit; None when there was none.
    :param limits: LIMITS, or what the site sets instead of some of them.
    :param speed: the planned speed of every port in Mb/s; 0 when the site says none.
    """
    found: list[Check] = []
    for name, now in rails.items():
        before, why = _comparable(name, now, boot, since)
        allowed = {**LIMITS, **limits}
        found += [_growth(check, name, now, before, why, allowed[check]) for check in LIMITS]
        found += [_pcie(name, now), *([_speed(name, now, speed)] if speed or now.get("offered") else [])]
    return found


def _comparable(name: str, now: Facts, boot: str, since: Facts | None) -> tuple[Facts | None, str]:
    """Return what the last audit saw of a rail, or why it says nothing about today's counters."""
    if not since:
        return None, "This is the first audit: the next one compares with it."
    before = (since.get("rails") or {}).get(name)
    if not before:
        return None, "The last audit did not see this rail."
    if since.get("boot") != boot:
        return None, "The host was booted since the last audit: its counters were reset."
    if (before.get("interface"), before.get("ifindex")) != (now.get("interface"), now.get("ifindex")):
        return None, "The driver was reloaded since the last audit: its counters were reset."
    return before, ""


def _growth(check: str, rail: str, now: Facts, before: Facts | None, why: str, limit: int) -> Check:
    current = {key: value for key, value in (now.get("counters") or {}).items() if kind_of(key) == check}
    if not current:
        return skipped(check, "Neither the port nor `ethtool -S` shows such counters.", rail=rail)
    if before is None:
        return skipped(check, why, rail=rail)
    # A smaller counter was reset (by the firmware); a new one has no earlier value.
    old = before.get("counters") or {}
    grown = {key: value - old[key] for key, value in sorted(current.items()) if key in old and value > old[key]}
    planned = "none grows" if limit <= 0 else f"each grows by at most {limit}"
    shown = ", ".join(f"{key} +{growth}" for key, growth in grown.items())
    if not any(growth > limit for growth in grown.values()):
        return ok(check, planned, shown or "none grew", rail=rail)
    make = warning if limit < 0 else deviation
    cause = f"Since the last audit {_CAUSES[check]} on {now.get('interface')}."
    return make(check, planned, shown, cause, _FIXES[check], rail=rail)


def _offered(link: t.Mapping[str, float]) -> tuple[float, float]:
    """Return the lanes and GT/s that card and slot both offer."""
    width, speed = (
        min(limit for limit in (link.get(f"card_{what}") or link[what], link.get(f"slot_{what}")) if limit)
        for what in ("width", "speed")
    )
    return width, speed


def expected_gbits(rate: float, link: t.Mapping[str, float] | None, sharing: int = 1) -> float:
    """Return the Gb/s that a port can be expected to carry; 0 where it has no PCIe link, as soft-RoCE.

    :param rate: the port's own, and `link` what `health.pcie_of` found.
    :param sharing: the rails that use the slot at once.
    """
    if not rate or not link or not link.get("width") or not link.get("speed"):
        return 0.0
    width, speed = _offered(link)
    # Up to 5 GT/s a link spends a fifth on its code, above that two bits of 130.
    return round(min(rate, width * speed * (0.8 if speed <= 5 else 128 / 130) / sharing), 1)


def _pcie(rail: str, now: Facts) -> Check:
    link = now.get("pcie") or {}
    if not link.get("width") or not link.get("speed"):
        return skipped("pcie_link", "The interface shows no PCIe link (a virtual machine's, say).", rail=rail)
    width, speed = _offered(link)
    return compared(
        "pcie_link",
        f"x{width:g} {speed:g} GT/s",
        f"x{link['width']:g} {link['speed']:g} GT/s",
        f"The PCIe link of {now['interface']} ({now.get('pci')}) is slower than card and slot offer.",
        "Reseat the card, check riser and cable, and at bifurcation and link speed in the BIOS.",
        good=link["width"] >= width and link["speed"] >= speed,
        rail=rail,
        object=now.get("pci"),
    )


def _speed(rail: str, now: Facts, planned: int) -> Check:
    if not now.get("speed"):
        return skipped("port_speed", "The interface reports no speed: it is down, or virtual.", rail=rail)
    texts = f"{(planned or now['offered']) / 1000:g} Gb/s", f"{now['speed'] / 1000:g} Gb/s"
    if planned:
        return compared("port_speed", *texts, f"{now['interface']} runs at another speed.", _SPEED_FIX, rail=rail)
    if now["speed"] >= now["offered"]:
        return ok("port_speed", *texts, rail=rail)
    cause = f"{now['interface']} runs slower than both ends of its link offer."
    return warning("port_speed", *texts, cause, _SPEED_FIX, rail=rail)
