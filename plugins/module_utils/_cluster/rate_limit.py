# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Find out how many writes an API can bear at once, from how long it takes to answer.

An API server waits ten seconds for a webhook (the default of admissionregistration.k8s.io/v1), and Spiderpool's lists
all pools at every write: over some thousand pools, eight writes at once would all be given up, tried again, and given
up again.
"""

from __future__ import annotations

import threading
import time
import typing as t

# An answer that takes longer than the second is one of too many; within the first there is room for more again.
# Twice as many pools take the webhook twice as long: far below ten seconds there is time to notice.
QUICK_SECONDS = 0.5
SLOW_SECONDS = 2.0


class RateLimit:
    """Lets as many through at once as are answered in time. Used by several threads.

    :param most: how many at most, and to begin with.
    """

    def __init__(self, most: int, clock: t.Callable[[], float] = time.monotonic) -> None:
        self.limit = self._most = max(1, most)
        self._clock = clock
        self._free = threading.Condition()
        self._under_way = 0
        self._changed = clock()
        self._known = False

    def enter(self) -> float:
        """Wait for a turn and return when it began."""
        with self._free:
            while self._under_way >= self.limit:
                self._free.wait()
            self._under_way += 1
            return self._clock()

    def leave(self, began: float) -> None:
        """End a turn, whatever came of it."""
        with self._free:
            self._under_way -= 1
            self._learn(began, self._clock() - began)
            self._free.notify(max(0, self.limit - self._under_way))

    def _learn(self, began: float, seconds: float) -> None:
        limit = self.limit
        if not self._known:
            # The first is the trial of one object before all others: what it takes alone, many take together.
            self._known = True
            limit = min(limit, int(2 * SLOW_SECONDS / max(seconds, 0.001)))
        elif began >= self._changed:  # else it was under way with more or fewer others than there are now
            limit = limit // 2 if seconds > SLOW_SECONDS else limit + (seconds < QUICK_SECONDS)
        limit = min(self._most, max(1, limit))
        if limit != self.limit:
            self.limit, self._changed = limit, self._clock()
