# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which interfaces a host's default routes leave by: what must not be touched."""

from __future__ import annotations

import json
import typing as t

if t.TYPE_CHECKING:
    from ._files import Run, Sysfs


def default_interfaces(sysfs: Sysfs, run: Run | None = None) -> list[str]:
    """Return the interfaces of the main table's default routes, of both families, sorted.

    :param run: runs an argument vector; without it only the first next hop of an IPv4 multipath route is found.
    """
    found = set()
    for line in (sysfs.text("/proc/net/route") or "").splitlines()[1:]:
        row = line.split()
        # Iface Destination Gateway Flags RefCnt Use Metric Mask, in hexadecimal.
        if len(row) > 7 and row[1] == row[7] == "00000000":
            found.add(row[0])
    for line in (sysfs.text("/proc/net/ipv6_route") or "").splitlines():
        row = line.split()
        # The kernel's own reject routes stand on lo.
        if len(row) > 9 and row[0] == "0" * 32 and row[1] == "00" and row[9] != "lo":
            found.add(row[9])
    return sorted(found | (_next_hops(run) if run else set()))


def _next_hops(run: Run) -> set[str]:
    """Return what /proc/net/route leaves out: it shows the first next hop of a route and no other."""
    code, output, _errors = run(["ip", "-4", "-j", "route", "show", "default"])
    try:
        routes = [] if code else json.loads(output or "[]")
    except ValueError:
        return set()
    hops = [hop for route in routes for hop in (route, *route.get("nexthops", ()))]
    return {hop["dev"] for hop in hops if "dev" in hop}
