# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import heapq
import threading

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cluster.rate_limit import RateLimit

WEBHOOK_SECONDS = 10  # what an API server gives a webhook


class Clock:
    """A time that only the test moves."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def writes(count, cost, most=8, cores=2):
    """Write to a server whose cores share the work; return each answer's time in seconds and the limits on the way.

    :param cost: seconds of one core that the write number N takes.
    """
    clock = Clock()
    pace = RateLimit(most, clock)
    trial = pace.enter()
    clock.now += cost(0)
    pace.leave(trial)
    # Each entry: (when it has had all of its work, were it always served alike; when it began).
    work, served, started, took, limits = [], 0.0, 0, [], []
    while len(took) < count:
        while started < count and len(work) < pace.limit:
            heapq.heappush(work, (served + cost(started), started, pace.enter()))
            started += 1
        share = min(1.0, cores / len(work))
        ready, _number, began = heapq.heappop(work)
        clock.now += (ready - served) / share
        served = ready
        pace.leave(began)
        took.append(clock.now - began)
        limits.append(pace.limit)
    return took, limits


@pytest.mark.parametrize("most", [1, 3, 8])
def test_a_quick_server_gets_as_many_at_once_as_it_may(most):
    took, limits = writes(500, lambda number: 0.002, most)
    assert set(limits) == {most}
    assert max(took) < 0.1


@pytest.mark.parametrize("pools", [0, 500, 4000, 10000])
def test_a_webhook_that_lists_all_pools_always_has_time_to_answer(pools):
    # Half a millisecond for each pool that is there: facts of Spiderpool's webhook on two cores.
    took, limits = writes(3000, lambda number: (pools + number) * 0.0005)
    assert max(took) < WEBHOOK_SECONDS
    assert min(limits) >= 1


def test_it_recovers():
    _took, limits = writes(2000, lambda number: 3.0 if number < 50 else 0.002)
    assert min(limits) == 1
    assert limits[-1] == 8


def test_what_began_before_a_change_does_not_count():
    clock = Clock()
    pace = RateLimit(8, clock)
    pace.leave(pace.enter())
    turns = [pace.enter() for _number in range(8)]
    clock.now = 5.0
    for began in turns:
        pace.leave(began)
    # Eight slow answers to one wave are one reason to halve it, not eight.
    assert pace.limit == 4


def test_no_more_than_the_limit_are_under_way():
    pace = RateLimit(2)
    first = pace.enter()
    pace.enter()
    third = threading.Thread(target=pace.enter, daemon=True)
    third.start()
    third.join(0.1)
    assert third.is_alive()
    pace.leave(first)
    third.join(5)
    assert not third.is_alive()
