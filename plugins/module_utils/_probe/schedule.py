# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts test with which, on which rail and port, and when: pure arithmetic on an ordered list of hosts.

Every schedule is a set of shifts: in the round of shift s, host i is the client of host (i + s) mod n. So each host is
client once and server once a round, every NIC sends one test and receives one, and a host's whole part follows from its
own place: no host needs the schedule of the others.
"""

from __future__ import annotations

import random
import typing as t
from dataclasses import dataclass

from .._errors import RdmaError
from .perftest import FIRST_PORT

MODES = ("auto", "ring", "full", "sample", "none")
LAST_PORT = 65535
FULL_UP_TO, RING_UP_TO = 4, 64
"""Hosts up to which the schedule `auto` is full, and a ring."""


@dataclass(frozen=True)
class HostPair:
    """One test between two hosts on one rail. `port` is the server's TCP port: no two pairs of a server share one."""

    client: str
    server: str
    rail: str
    test: str
    port: int


@dataclass(frozen=True)
class Schedule:
    """The rounds of one verification."""

    hosts: tuple[str, ...]
    rails: tuple[str, ...]
    tests: tuple[str, ...]
    shifts: tuple[int, ...]
    first_port: int
    mode: str

    @property
    def pairs_per_host(self) -> int:
        """How many tests a host runs as client, and as many as server."""
        return len(self.shifts) * len(self.rails) * len(self.tests)

    def _pair(self, number: int, client: int, server: int, rail: int, test: int) -> HostPair:
        port = self.first_port + (number * len(self.rails) + rail) * len(self.tests) + test
        return HostPair(self.hosts[client], self.hosts[server], self.rails[rail], self.tests[test], port)

    def _place(self, host: str) -> int | None:
        return self.hosts.index(host) if host in self.hosts else None

    def as_client(self, host: str) -> list[HostPair]:
        """Return the tests that this host starts, in order."""
        place = self._place(host)
        if place is None:
            return []
        return [
            self._pair(number, place, (place + shift) % len(self.hosts), rail, test)
            for number, shift in enumerate(self.shifts)
            for rail in range(len(self.rails))
            for test in range(len(self.tests))
        ]

    def as_server(self, host: str) -> list[HostPair]:
        """Return the tests that this host waits for."""
        place = self._place(host)
        if place is None:
            return []
        return [
            self._pair(number, (place - shift) % len(self.hosts), place, rail, test)
            for number, shift in enumerate(self.shifts)
            for rail in range(len(self.rails))
            for test in range(len(self.tests))
        ]


def _shifts(mode: str, count: int, peers: int, seed: int) -> tuple[int, ...]:
    if count < 2 or mode == "none":
        return ()
    everyone = range(1, count)
    if mode == "full":
        return tuple(everyone)
    if mode == "ring":
        return (1,)
    # Drawn without the ring's own shift, which every sample has: a broken neighbour is always found.
    wanted = max(0, min(peers, count - 1) - 1)
    return (1, *sorted(random.Random(seed).sample(range(2, count), wanted)))


def schedule(
    hosts: t.Sequence[str],
    rails: t.Sequence[str],
    tests: t.Sequence[str],
    *,
    mode: str = "auto",
    first_port: int = FIRST_PORT,
    peers: int = 3,
    seed: int = 0,
) -> Schedule:
    """Return the schedule of one verification.

    :param tests: what each pair does, one after the other.
    :param hosts: the hosts that take part; their order does not matter, names are sorted.
    :param mode: `ring` (each host with the next), `full` (each with each, both directions), `sample` (the ring and
        `peers` - 1 more shifts drawn with `seed`), `none`; `auto` takes full up to `FULL_UP_TO` hosts, the ring up to
        `RING_UP_TO`, and samples above.
    :param first_port: the first TCP port of the servers.
    :raises RdmaError: for an unknown mode, or when the ports do not suffice.
    """
    if mode not in MODES:
        raise RdmaError(f"The schedule {mode!r} does not exist.", f"Choose one of {', '.join(MODES)}.")
    order = tuple(sorted(set(hosts)))
    if mode == "auto":
        mode = "full" if len(order) <= FULL_UP_TO else "ring" if len(order) <= RING_UP_TO else "sample"
    made = Schedule(order, tuple(rails), tuple(tests), _shifts(mode, len(order), peers, seed), first_port, mode)
    if first_port < 1 or first_port + made.pairs_per_host - 1 > LAST_PORT:
        raise RdmaError(
            f"The tests need {made.pairs_per_host} TCP ports from {first_port}: the last port is {LAST_PORT}.",
            "Choose a lower first port, or the schedule ring.",
        )
    return made


def seconds(made: Schedule, timeout: int, forks: int) -> int:
    """Return how long servers must wait at least: the clients run in waves of `forks` hosts.

    :param timeout: seconds that one test may take.
    """
    waves = -(-len(made.hosts) // max(1, forks))
    return waves * made.pairs_per_host * timeout
