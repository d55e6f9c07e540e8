# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: say how far it is, how long it will take, and when nothing moves any more."""

from __future__ import annotations

import time
import typing as t

_PROGRESS_SECONDS = 10.0
# Objects from which on a run is announced.
_MANY_OBJECTS = 200


def reporter(path: str | None) -> t.Callable[[str], None]:
    """Return what takes a line of progress: it is appended to a file, for who follows it, or dropped."""

    def report(line: str) -> None:
        if path:
            with open(path, "a", encoding="utf-8") as stream:
                stream.write(f"{line}\n")

    return report


class Progress:
    """Reports progress and the estimated remaining time at intervals."""

    def __init__(self, report: t.Callable[[str], None], total: int) -> None:
        self._report = report
        self._total = total
        self._done = 0
        self._start = self._last = time.monotonic()
        if total >= _MANY_OBJECTS:
            report(f"{total:,} objects to write")

    def step(self, phase: str) -> None:
        """Count one object."""
        self._done += 1
        now = time.monotonic()
        if now - self._last >= _PROGRESS_SECONDS:
            self._last = now
            rate = self._done / (now - self._start)
            left = span((self._total - self._done) / rate)
            self._report(f"{phase}: {self._done:,} of {self._total:,}, {rate:.0f}/s, about {left} left")


class WaitBudget:
    """How long nothing may move.

    :param seconds: that may pass without a step forward.
    """

    def __init__(self, seconds: float, now: float) -> None:
        self._seconds = seconds
        self._until = now + seconds
        self._best: dict[t.Hashable, int] = {}

    def see(self, steps: t.Mapping[t.Hashable, int], now: float) -> bool:
        """Take in how far everything is; say whether there is time left.

        Only what was never reached before is a step forward: a container that starts again and again is none.
        """
        for key, value in steps.items():
            if value > self._best.get(key, 0):
                self._best[key] = value
                self._until = now + self._seconds
        return now < self._until


def span(seconds: float) -> str:
    """Return a time as a person says it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
