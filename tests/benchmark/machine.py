# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The machine of a round: what it is, and waiting until no other work runs on it."""

from __future__ import annotations

import os
import platform
import time
import typing as t
from importlib import metadata
from pathlib import Path

LIMIT = 600  # seconds of waiting in a whole round
WINDOW = 5  # seconds of one look
QUIET = 0.1  # of all cores
PACKAGES = ("ansible-core", "pyroute2", "kubernetes", "PyYAML", "netaddr")


def ticks() -> tuple[int, int]:
    """Return how long all cores were busy since boot, and how long in all."""
    user, nice, system, idle, waiting, *more = map(int, Path("/proc/stat").read_text().partition("\n")[0].split()[1:8])
    busy = user + nice + system + sum(more)
    return busy, busy + idle + waiting


class Quiet:
    """Waits before each row until no other work runs, at most so long in a complete round."""

    def __init__(
        self, read: t.Callable[[], tuple[int, int]] = ticks, sleep: t.Callable[[float], None] = time.sleep
    ) -> None:
        self._read, self._sleep = read, sleep
        self.waited = 0
        # The most that was seen when a row began.
        self.busy = 0.0
        self.load = 0.0

    def share(self) -> float:
        """Return the share of all cores that is in use while it looks."""
        busy, total = self._read()
        self._sleep(WINDOW)
        later, all_of_it = self._read()
        return (later - busy) / max(1, all_of_it - total)

    def why_not(self, wait: bool = True) -> str:
        """Wait; return why the next row cannot be measured, nothing if it can."""
        while (share := self.share()) > QUIET and wait:
            if self.waited >= LIMIT:
                return (
                    f"others used {share * 100:.0f} % of the processor, and {LIMIT // 60} minutes of waiting were over"
                )
            self.waited += WINDOW
        self.busy, self.load = max(self.busy, share), max(self.load, os.getloadavg()[0])
        return ""


def machine() -> dict[str, str]:
    """Say what the machine is, and the versions of what is measured."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = f"{platform.system()} {platform.release()}, {platform.machine()}"
    versions = [f"Python {platform.python_version()}", *(f"{name} {metadata.version(name)}" for name in PACKAGES)]
    return {"machine": f"{os.cpu_count()} cores, {memory:.0f} GiB, {system}", "versions": ", ".join(versions)}
