# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses, networks and ranges as Spiderpool reads them, held as integers.

They are read as Go's net package reads them: no leading zeros, no zones, an IPv6 address that maps an IPv4 one is IPv4.
"""

from __future__ import annotations

import typing as t
from socket import AF_INET, AF_INET6, inet_ntop, inet_pton

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Interval = tuple[int, int]
Ranges = tuple[Interval, ...]
_MAPPED = 0xFFFF << 32
BITS = {4: 32, 6: 128}


class Cidr(t.NamedTuple):
    """A network as it was written: the address before the slash may have host bits set."""

    family: int
    address: int
    length: int

    @property
    def first(self) -> int:
        """The network address."""
        shift = BITS[self.family] - self.length
        return self.address >> shift << shift

    @property
    def last(self) -> int:
        """The last address."""
        return self.first | ((1 << (BITS[self.family] - self.length)) - 1)

    def masked(self) -> str:
        """Return the one spelling that Spiderpool accepts."""
        return f"{address_text(self.first, self.family)}/{self.length}"


class Parsed(t.NamedTuple):
    """One entry of a list of addresses; `first` may be above `last` when it was written so."""

    family: int
    first: int
    last: int


def parse_address(text: t.Any) -> tuple[int, int] | None:
    """Return (family, integer) of an address, or None."""
    if not isinstance(text, str):
        return None
    try:
        if ":" not in text:
            return 4, int.from_bytes(inet_pton(AF_INET, text), "big")
        value = int.from_bytes(inet_pton(AF_INET6, text), "big")
    except (OSError, ValueError):
        return None
    if value >> 32 == 0xFFFF:
        return 4, value ^ _MAPPED
    return 6, value


def parse_range(text: t.Any) -> Parsed | None:
    """Return one entry `a` or `a-b` of one family, or None."""
    if not isinstance(text, str):
        return None
    low, dash, high = text.partition("-")
    first = parse_address(low)
    last = parse_address(high) if dash else first
    if first is None or last is None or first[0] != last[0]:
        return None
    return Parsed(first[0], first[1], last[1])


def parse_cidr(text: t.Any) -> Cidr | None:
    """Return a network, host bits allowed, or None."""
    if not isinstance(text, str):
        return None
    address, slash, length = text.partition("/")
    parsed = parse_address(address)
    if parsed is None or not slash or not length.isascii() or not length.isdigit() or (length[0] == "0" < length[1:]):
        return None
    if int(length) > BITS[parsed[0]] or (parsed[0] == 4 and ":" in address):
        return None
    return Cidr(parsed[0], parsed[1], int(length))


def address_text(value: int, family: int) -> str:
    """Return the canonical text of an address."""
    if family == 4:
        return f"{value >> 24}.{value >> 16 & 255}.{value >> 8 & 255}.{value & 255}"
    return inet_ntop(AF_INET6, value.to_bytes(16, "big"))


def ranges_text(ranges: Iterable[Interval], family: int) -> list[str]:
    """Return ranges as Spiderpool writes them: `a-b`, and `a` where a range is one address."""
    return [
        address_text(first, family) if first == last else f"{address_text(first, family)}-{address_text(last, family)}"
        for first, last in ranges
    ]


def is_canonical(text: str) -> bool:
    """Whether a network is written as Spiderpool wants it."""
    cidr = parse_cidr(text)
    return cidr is not None and cidr.masked() == text


def merge(intervals: Iterable[Interval]) -> Ranges:
    """Return intervals sorted and joined to maximal ones; neighbours join too."""
    joined: list[Interval] = []
    for first, last in sorted(intervals):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def subtract(wanted: Sequence[Interval], taken: Sequence[Interval]) -> Ranges:
    """Return the parts of merged intervals that lie in none of the other merged intervals."""
    left: list[Interval] = []
    for first, last in wanted:
        at = first
        for low, high in taken:
            if high < at or low > last:
                continue
            if low > at:
                left.append((at, low - 1))
            at = high + 1
        if at <= last:
            left.append((at, last))
    return tuple(left)


def size(ranges: Iterable[Interval]) -> int:
    """Return the number of addresses."""
    return sum(last - first + 1 for first, last in ranges)
