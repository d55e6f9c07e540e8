# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the plan would take an address from this host: the sign of a plan that was lost and created again. Pure.

It compares all addresses inside the fabric's networks, and those that this collection owns: by the kernel, and by its
files, for an interface that is down and for a fabric of other networks.
"""

from __future__ import annotations

import typing as t

from .._check import UNPLANNED_ADDRESSES, deviation
from .._route.desired import inside

if t.TYPE_CHECKING:
    from .._route.route_options import RouteOptions
    from .groups import Checks, Facts

    Rows = set[tuple[str, str]]

CHECK = "address_renumbered"
FIX = (
    "If plan.json was lost, restore it (git log -- plan) and run again. After a renumbering on purpose run with "
    "-e fabric_allow_renumber=true; see docs/concepts/slots.md."
)


def checks_of(want: RouteOptions, names: t.Mapping[str, str], live: Rows, managed: Rows) -> tuple[Checks, Facts]:
    """Return a deviation for each address that its rail would lose for another, and all unplanned ones as a fact.

    :param names: the present name of each rail's interface.
    :param live: the interface and address of all that the host has, and `managed` what of it, or of the next boot, this
        collection owns.
    """
    planned = {
        (names.get(rail.device, rail.device), item.family): (rail.name, item.address)
        for rail in want.rails
        for item in rail.addresses
    }
    addresses = {address for _rail, address in planned.values()}
    here = managed | {row for row in live if any(inside(row[1], prefix) for prefix in want.prefixes)}
    unplanned = {row for row in here if row[1] not in addresses}
    checks = []
    for interface, address in sorted(unplanned & managed):
        family = 6 if ":" in address else 4
        # Another address, also in the planned subnet, may be intended.
        if (interface, family) in planned:
            rail, now = planned[interface, family]
            cause = f"{interface} has {address}, and this plan gives it {now}: it would be renumbered"
            checks.append(deviation(CHECK, now, address, cause, FIX, rail=rail, family=family))
    return checks, {UNPLANNED_ADDRESSES: sorted({address for _interface, address in unplanned})}
