# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route.icmp import EchoTarget
from ansible_collections.railops.rdma.plugins.module_utils._route.rail_isolation import CHECK, isolation_checks, sample


def pair(rail, other, family):
    address = f"2001:db8::{other}" if family == 6 else f"192.0.2.{other}"
    return EchoTarget(CHECK, rail, "ens1np0", "source", address, other=other)


RAILS = [f"rail{number}" for number in range(1, 9)]
PAIRS = [pair(rail, other, family) for rail in RAILS for other in RAILS if rail != other for family in (4, 6)]
AB, AC = pair("a", "b", 4), pair("a", "c", 4)
A, B, C = (pair(name, name, 4) for name in "abc")
ALL = [A, B, C]


def test_a_draw_is_bounded_and_the_same_with_the_same_seed():
    found = sample(PAIRS, 2, 0, "host1")
    assert len(found) == 8 * 2 * 2
    assert found == sample(PAIRS, 2, 0, "host1")
    assert all(
        {pair.family for pair in found if (pair.rail, pair.other) == two} == {4, 6}
        for two in {(pair.rail, pair.other) for pair in found}
    )
    assert sample(PAIRS, 0, 0, "host1") == []
    assert sample(PAIRS, 99, 0, "host1") == PAIRS


def test_a_fleet_tests_every_pair_and_another_seed_others():
    tested = {(pair.rail, pair.other) for host in range(64) for pair in sample(PAIRS, 2, 0, f"host{host}")}
    assert len(tested) == 8 * 7
    assert sample(PAIRS, 2, 0, "host1") != sample(PAIRS, 2, 1, "host1")


@pytest.mark.parametrize(
    ("answers", "alive", "meet", "declared", "status", "words"),
    [
        ({AB: True, AC: True}, ALL, True, True, "ok", ""),
        ({AB: True, AC: False}, ALL, True, True, "deviation", "a does not reach c of a neighbor"),
        ({AB: True, AC: False}, ALL, True, False, "warning", "a does not reach c of a neighbor"),
        ({AB: True, AC: False}, [A, B], True, True, "ok", ""),
        # On rail c another host answers, and not the one that this pair leads to.
        ({AB: True, AC: False}, [A, B, pair("c", "9", 4)], True, True, "ok", ""),
        ({AB: False, AC: False}, [B, C], True, True, "skipped", "no neighbor answers"),
        ({AB: False, AC: False}, ALL, False, True, "ok", ""),
        ({AB: True, AC: False}, ALL, False, False, "deviation", "a reaches b, and isolated"),
        # An answering host is reached, also if no other answers.
        ({AB: True}, [], False, True, "deviation", "a reaches b, and isolated"),
        ({AB: False}, [], False, True, "skipped", "no neighbor answers"),
    ],
)
def test_what_answers_say(answers, alive, meet, declared, status, words):
    (check,) = isolation_checks(answers, alive, meet, declared)
    assert (check["status"], check["rail"], check.get("family")) == (status, "a", 4)
    assert words in check["cause"]
    assert bool(check["fix"]) == (status in ("deviation", "warning"))
