# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Asks a driver for counters, versions and link modes, by `ethtool`; a host without it shows none."""

from __future__ import annotations

import re

from .._programs import run_program


def statistics(interface: str) -> dict[str, int]:
    """Return a driver's own counters by name; none where it has none or there is no such interface."""
    shown = run_program(["ethtool", "-S", interface]).out
    return {name: int(value) for name, value in re.findall(r"^\s+(\S.*?): (\d+)$", shown, re.MULTILINE)}


def offered(interface: str) -> int:
    """Return the fastest speed in Mb/s that both ends of a link advertise; 0 where one of them does not show it."""
    shown = run_program(["ethtool", interface]).out
    # The modes of an end are in several lines, such as `100000baseCR4/Full`.
    ends = (rf"^\s*{end} link modes:((?:\s+\d+base\S+)*)" for end in ("Advertised", "Link partner advertised"))
    own, peer = (set("".join(re.findall(end, shown, re.MULTILINE)).split()) for end in ends)
    return max((int(mode.partition("base")[0]) for mode in own & peer), default=0)


def driver(interface: str) -> dict[str, str]:
    """Return `driver`, its `version` and the card's `firmware-version`; nothing where the driver does not say."""
    return dict(re.findall(r"^(\S+): (\S.*)$", run_program(["ethtool", "-i", interface]).out, re.MULTILINE))
