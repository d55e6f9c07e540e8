# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Intervals of integers, both ends included: what ranges of addresses, of pools and of slots are made of. Pure."""

from __future__ import annotations

import typing as t

Interval = tuple[int, int]
"""First and last, both included."""
Intervals = tuple[Interval, ...]


def merge(intervals: t.Iterable[Interval]) -> Intervals:
    """Sort and join to maximal intervals; neighbors join too."""
    joined: list[Interval] = []
    for first, last in sorted(intervals):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(joined[-1][1], last))
        else:
            joined.append((first, last))
    return tuple(joined)


def subtract(intervals: t.Iterable[Interval], holes: t.Sequence[Interval]) -> Intervals:
    """Take the holes (sorted, disjoint) out of the intervals."""
    left: list[Interval] = []
    for first, last in intervals:
        at = first
        for low, high in holes:
            if high < at or low > last:
                continue
            if low > at:
                left.append((at, low - 1))
            at = high + 1
        if at <= last:
            left.append((at, last))
    return tuple(left)


def take(intervals: t.Sequence[Interval], count: int) -> tuple[Intervals, Intervals]:
    """Part the intervals after their first `count` integers."""
    head: list[Interval] = []
    for index, (first, last) in enumerate(intervals):
        if count <= 0:
            return tuple(head), tuple(intervals[index:])
        if last - first + 1 > count:
            return (*head, (first, first + count - 1)), ((first + count, last), *intervals[index + 1 :])
        head.append((first, last))
        count -= last - first + 1
    return tuple(head), ()


def split(intervals: t.Iterable[Interval], limit: int) -> tuple[Intervals, ...]:
    """Cut the intervals, in order, into parts of at most `limit` integers."""
    rest = tuple(intervals)
    parts = []
    while rest:
        part, rest = take(rest, limit)
        parts.append(part)
    return tuple(parts)


def size(intervals: t.Iterable[Interval]) -> int:
    """Count the integers."""
    return sum(last - first + 1 for first, last in intervals)
