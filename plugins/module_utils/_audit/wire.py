# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Query the wire itself for the holder of an address: past the neighbour table, and where no route leads.

For entries of that table that somebody set by hand, and for isolated rails that have no gateway.
"""

from __future__ import annotations

import typing as t

from .._files import Sysfs
from .._probe.duplicates import inet6, query
from .._probe.duplicates_plan import Question

WAIT = 1.0


def answers_at(wanted: t.Mapping[str, t.Sequence[str]]) -> dict[str, dict[str, str]]:
    """Return the hardware address of each of these addresses that somebody at its interface answers for, by interface.

    :param wanted: the addresses by interface.
    """
    locals_of = {name: found[0] for name, found in inet6(Sysfs()).items() if found[0]}
    questions = [
        Question(interface, interface, address)
        for interface, addresses in wanted.items()
        for address in addresses
        if ":" not in address or interface in locals_of
    ]
    answers, _failed = query(questions, locals_of, WAIT)
    return {
        interface: {item.address: item.mac for item in answers.get(interface, ()) if item.address in addresses}
        for interface, addresses in wanted.items()
    }
