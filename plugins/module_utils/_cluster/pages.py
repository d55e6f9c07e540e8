# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read several lists of a cluster side by side, a page at a time."""

from __future__ import annotations

import contextlib
import queue
import threading
import typing as t
from concurrent.futures import ThreadPoolExecutor

if t.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

T = t.TypeVar("T")


class SideBySide(t.Generic[T]):
    """Gives what several sources give, each read by a thread of its own from now on, a little ahead of who takes it.

    Iterating raises what the first source that fails raises. `ahead` is how many items wait at most.
    """

    def __init__(self, sources: Sequence[Callable[[], Iterable[T]]], *, most: int = 8, ahead: int = 0) -> None:
        self._ready: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(maxsize=ahead or len(sources))
        self._over = threading.Event()
        self._pool = ThreadPoolExecutor(max(1, min(most, len(sources))))
        self._left = len([self._pool.submit(self._follow, source) for source in sources])

    def _put(self, item: T | None, failure: BaseException | None = None) -> None:
        while not self._over.is_set():
            with contextlib.suppress(queue.Full):
                self._ready.put((item, failure), timeout=0.1)
                return

    def _follow(self, source: Callable[[], Iterable[T]]) -> None:
        try:
            for item in source():
                self._put(item)
                if self._over.is_set():
                    return
            self._put(None)
        except Exception as exc:  # told by the thread that takes the items
            self._put(None, exc)

    def __iter__(self) -> Iterator[T]:
        while self._left:
            item, failure = self._ready.get()
            if failure is not None:
                raise failure
            if item is None:
                self._left -= 1
            else:
                yield item

    def __enter__(self) -> SideBySide[T]:
        return self

    def __exit__(self, *dummy: object) -> None:
        self._over.set()
        self._pool.shutdown()
