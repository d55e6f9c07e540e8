# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _intervals as intervals


def test_neighbours_and_overlaps_join():
    assert intervals.merge([(5, 6), (1, 2), (3, 3), (9, 9), (5, 5)]) == ((1, 3), (5, 6), (9, 9))


@pytest.mark.parametrize(
    ("have", "holes", "left"),
    [
        ([(1, 9)], [(3, 4)], ((1, 2), (5, 9))),
        ([(1, 9)], [(0, 9)], ()),
        ([(1, 2), (5, 6)], [(2, 5)], ((1, 1), (6, 6))),
        ([(1, 2)], [], ((1, 2),)),
        ([(0, 10)], [(0, 0), (5, 6), (10, 12)], ((1, 4), (7, 9))),
    ],
)
def test_holes_are_taken_out(have, holes, left):
    assert intervals.subtract(have, holes) == left


def test_the_first_ones_are_taken():
    assert intervals.take([(0, 1), (5, 9)], 3) == (((0, 1), (5, 5)), ((6, 9),))
    assert intervals.take([(0, 1)], 0) == ((), ((0, 1),))
    assert intervals.take([(0, 1)], 9) == (((0, 1),), ())


def test_size_counts_both_ends():
    assert intervals.size([(1, 1), (5, 6)]) == 3


@pytest.mark.parametrize(
    ("ranges", "limit", "parts"),
    [
        pytest.param([(0, 9)], 4, (((0, 3),), ((4, 7),), ((8, 9),)), id="one-range"),
        pytest.param([(0, 1), (5, 9)], 4, (((0, 1), (5, 6)), ((7, 9),)), id="two-ranges"),
        pytest.param([], 4, (), id="none"),
        pytest.param([(0, 3)], 4, (((0, 3),),), id="exact"),
    ],
)
def test_parts_of_a_size(ranges, limit, parts):
    assert intervals.split(ranges, limit) == parts
