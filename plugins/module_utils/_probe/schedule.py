# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which hosts test with which, on which rail and port, and when: pure arithmetic on an ordered list of hosts.

Every schedule is a set of shifts: in the round of shift s, host i is the client of host (i + s) mod n. So each host is
client once and server once a round, every NIC sends one test and receives one, and a host's part follows from its
own place: no host needs the schedule of the others.
"""

from __future__ import annotations

import itertools
import random
import typing as t
from dataclasses import dataclass

from .._errors import RdmaError
from .._fabric.numbers import TEST_PORT

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

    def pairs_of(self, host: str, end: str = "client") -> list[HostPair]:
        """Return the tests that a host starts, in order, or as `server` those that it waits for."""
        if host not in self.hosts:
            return []
        place, count = self.hosts.index(host), len(self.hosts)
        found = []
        for number, shift in enumerate(self.shifts):
            client = place if end == "client" else (place - shift) % count
            ends = self.hosts[client], self.hosts[(client + shift) % count]
            port = self.first_port + number * len(self.rails) * len(self.tests)
            steps = itertools.product(self.rails, self.tests)
            found += [HostPair(*ends, rail, test, port) for port, (rail, test) in enumerate(steps, port)]
        return found


def _shifts(mode: str, count: int, peers: int, seed: int) -> tuple[int, ...]:
    if count < 2 or mode == "none":
        return ()
    if mode == "full":
        return tuple(range(1, count))
    if mode == "ring":
        return (1,)
    # Drawn without the ring's own shift, which every sample has: a broken neighbor is always found.
    wanted = max(0, min(peers, count - 1) - 1)
    return (1, *sorted(random.Random(seed).sample(range(2, count), wanted)))


def schedule(
    hosts: t.Sequence[str],
    rails: t.Sequence[str],
    tests: t.Sequence[str],
    *,
    mode: str = "auto",
    first_port: int = TEST_PORT,
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
    :raises RdmaError: when the ports do not suffice.
    """
    order = tuple(sorted(set(hosts)))
    if mode == "auto":
        mode = "full" if len(order) <= FULL_UP_TO else "ring" if len(order) <= RING_UP_TO else "sample"
    made = Schedule(order, tuple(rails), tuple(tests), _shifts(mode, len(order), peers, seed), first_port, mode)
    if first_port < 1 or first_port + made.pairs_per_host - 1 > LAST_PORT:
        raise RdmaError(
            f"The tests need {made.pairs_per_host} TCP ports from {first_port}: the last port is {LAST_PORT}.",
            "Choose a lower first port, or the schedule ring. [ports_too_few]",
        )
    return made


def seconds(made: Schedule, timeout: int, forks: int) -> int:
    """Return how long servers must wait at least: the clients run in waves of `forks` hosts.

    :param timeout: seconds that one test may take.
    """
    return -(-len(made.hosts) // max(1, forks)) * made.pairs_per_host * timeout
