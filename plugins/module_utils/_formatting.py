# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Names for people: in their natural order, and the first of many; values by a common key."""

from __future__ import annotations

import re
import typing as t

Key = t.TypeVar("Key")
Value = t.TypeVar("Value")

_NUMBERS = re.compile(r"([0-9]+)")


def natural(name: str) -> tuple[list[str | int], str]:
    """Sort key that puts node2 before node10; the name itself parts node1 from node01, in whatever order they come."""
    parts: list[str | int] = [*_NUMBERS.split(name)]
    # Every second part is a number, so numbers are compared with numbers only.
    parts[1::2] = map(int, parts[1::2])
    return parts, name


def shortened(names: t.Sequence[str], limit: int = 8, join: str = ", ") -> str:
    """Return some names in one line, and how many more there are."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return join.join(names[:limit]) + more


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, thousands apart: 1 deviation, 2,000 deviations."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def group_by(pairs: t.Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in order."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found
