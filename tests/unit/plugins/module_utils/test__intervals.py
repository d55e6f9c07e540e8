# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.module_utils import _intervals as intervals


def test_the_first_ones_are_taken():
    assert intervals.take([(0, 1), (5, 9)], 3) == (((0, 1), (5, 5)), ((6, 9),))
    assert intervals.take([(0, 1)], 0) == ((), ((0, 1),))
    assert intervals.take([(0, 1)], 9) == (((0, 1),), ())
