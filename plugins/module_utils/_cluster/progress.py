# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""On the controller: report how far a run is and how long it will take, and wait as long as something moves."""

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
            left = (self._total - self._done) / rate / 60
            self._report(f"{phase}: {self._done:,} of {self._total:,}, {rate:.0f}/s, about {left:.1f} min left")


class WaitState(t.NamedTuple):
    """One reading of the awaited state.

    `over`: waiting is no longer needed, or cannot help; `steps`: how far everything is; `text`: what is late.
    """

    over: bool
    steps: t.Mapping[t.Hashable, int]
    text: t.Callable[[], str]


def follow(
    read_state: t.Callable[[], WaitState],
    seconds: float,
    report: t.Callable[[str], None],
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
) -> None:
    """Look until it is over, or nothing has moved for so many seconds.

    Only what was never reached before is a step forward: a container that starts again and again is none.
    """
    began = reported = clock()
    until = began + seconds
    best: dict[t.Hashable, int] = {}
    while True:
        start, seen, now = clock(), read_state(), clock()
        if any(value > best.get(key, 0) for key, value in seen.steps.items()):
            best.update({key: max(value, best.get(key, 0)) for key, value in seen.steps.items()})
            until = now + seconds
        if seen.over or now >= until:
            return
        if now - reported >= _PROGRESS_SECONDS:
            reported = now
            report(f"{now - began:.0f} s: {seen.text()}")
        # Reading a large fleet takes many requests: the API is idle for at least as long as a reading took.
        sleep(min(max(1.0, now - start, (now - began) / 10), _PROGRESS_SECONDS))
