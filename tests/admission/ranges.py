# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Addresses, networks and ranges as Spiderpool reads them, held as integers.

They are read as Go's net package reads them: no leading zeros, no zones, an IPv6 address that maps an IPv4 one is IPv4.
"""

from __future__ import annotations

import typing as t
from socket import AF_INET, AF_INET6, inet_pton

from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import WIDTH, address_text, range_text

if t.TYPE_CHECKING:
    from collections.abc import Iterable

    from ansible_collections.railops.rdma.plugins.module_utils._intervals import Interval

_MAPPED = 0xFFFF << 32


class Cidr(t.NamedTuple):
    """A network as it was written: the address before the slash may have host bits set."""

    family: int
    address: int
    length: int

    @property
    def first(self) -> int:
        """The network address."""
        shift = WIDTH[self.family] - self.length
        return self.address >> shift << shift

    @property
    def last(self) -> int:
        """The last address."""
        return self.first | ((1 << (WIDTH[self.family] - self.length)) - 1)

    def masked(self) -> str:
        """Return the one spelling that Spiderpool accepts."""
        return f"{address_text(self.family, self.first)}/{self.length}"


class Parsed(t.NamedTuple):
    """One entry of a list of addresses; `first` may be above `last` when it was written so."""

    family: int
    first: int
    last: int


def parse_address(text: str) -> tuple[int, int] | None:
    """Return (family, integer) of an address, or None."""
    try:
        if ":" not in text:
            return 4, int.from_bytes(inet_pton(AF_INET, text), "big")
        value = int.from_bytes(inet_pton(AF_INET6, text), "big")
    except (OSError, ValueError):
        return None
    return (4, value ^ _MAPPED) if value >> 32 == 0xFFFF else (6, value)


def parse_range(text: str) -> Parsed | None:
    """Return one entry `a` or `a-b` of one family, or None."""
    low, dash, high = text.partition("-")
    first = parse_address(low)
    last = parse_address(high) if dash else first
    if first is None or last is None or first[0] != last[0]:
        return None
    return Parsed(first[0], first[1], last[1])


def parse_cidr(text: str) -> Cidr | None:
    """Return a network, host bits allowed, or None."""
    address, slash, length = text.partition("/")
    parsed = parse_address(address)
    if parsed is None or not slash or not length.isascii() or not length.isdigit() or (length[0] == "0" < length[1:]):
        return None
    if int(length) > WIDTH[parsed[0]] or (parsed[0] == 4 and ":" in address):
        return None
    return Cidr(parsed[0], parsed[1], int(length))


def ranges_text(ranges: Iterable[Interval], family: int) -> list[str]:
    """Return ranges as Spiderpool writes them: `a-b`, and `a` where a range is one address."""
    return [range_text(family, span) for span in ranges]
