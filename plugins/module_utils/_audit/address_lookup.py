# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Query the wire itself for the holder of an address, where no route leads: isolated rails without a gateway."""

from __future__ import annotations

import typing as t

from .._files import Sysfs
from .._probe.duplicates import inet6, query
from .._probe.duplicates_plan import AddressQuery

WAIT = 1.0


def answers_at(wanted: t.Collection[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Resolve addresses to MAC addresses by ARP or NDP; addresses without an answer are absent.

    :param wanted: (interface, address) pairs.
    """
    locals_of = {name: found[0] for name, found in inet6(Sysfs()).items() if found[0]}
    questions = [
        AddressQuery(name, name, address) for name, address in wanted if ":" not in address or name in locals_of
    ]
    answers, _failed = query(questions, locals_of, WAIT)
    found = {(name, item.address): item.mac for name, items in answers.items() for item in items}
    return {key: mac for key, mac in found.items() if key in wanted}
