# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Narrowing to node and rail, on fleets with planted faults that are played: what is named, and how soon."""

from __future__ import annotations

import math
import random

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._accept.bisect import (
    BETWEEN,
    NODE,
    SHIFTS,
    TOGETHER,
    UNCLEAR,
    Bisection,
    Run,
    RunRequest,
    RunsMissing,
)

RAILS = ("rail1", "rail2", "rail3", "rail4")


class SimulatedFleet:
    """A fleet with faults: a run fails when they are in it."""

    def __init__(self, count, leaf=8, rails=RAILS):
        self.hosts = tuple(f"node{number}" for number in range(1, count + 1))
        self.leaves = {host: (f"leaf{place // leaf}",) for place, host in enumerate(self.hosts)}
        self.rails = rails
        # (host, rail): slow or broken, the same to a run.
        self.faults = set()
        # A whole node that is too slow only with all rails at once.
        self.weak = set()
        # (leaf, leaf, rail)
        self.paths = set()
        self.crowd = len(self.hosts) + 1
        self.results = {}
        self.rounds = 0

    def good(self, run):
        if any((host, rail) in self.faults for host in run.hosts for rail in run.rails):
            return False
        if len(run.rails) > 1 and self.weak & set(run.hosts):
            return False
        met = {leaf for host in run.hosts for leaf in self.leaves[host]}
        if any(one in met and other in met and rail in run.rails for one, other, rail in self.paths):
            return False
        return len(run.hosts) < self.crowd

    def find(self, *groups):
        """Ask until nothing is missing; every round makes all runs that were asked for."""
        while True:
            ask = RunRequest(lambda run: self.results.get(run.key))
            narrow = Bisection(ask, "write_bw", self.leaves)
            try:
                runs = [Run("write_bw", group, self.rails) for group in groups or [self.hosts]]
                failed = [run for run, fine in zip(runs, ask(runs), strict=True) if not fine]
                return narrow.groups(failed)
            except RunsMissing as need:
                self.rounds += 1
                for run in need.runs:
                    assert run.key not in self.results, "a run is made twice"
                    assert len(run.hosts) == len(set(run.hosts)) > 1
                    self.results[run.key] = self.good(run)

    def accused(self, found):
        return {(host, rail) for one in found if one.what == NODE for host in one.hosts for rail in one.rails}


def test_a_link_between_leaves_is_no_node():
    fleet = SimulatedFleet(16)
    fleet.paths = {("leaf0", "leaf1", "rail2")}
    found = fleet.find()
    assert [(one.what, one.rails) for one in found] == [(BETWEEN, ("rail2",))]
    assert {found[0].hosts[0], found[0].peers[0]} & set(fleet.hosts)


def test_what_fails_only_with_everybody():
    fleet = SimulatedFleet(16)
    fleet.crowd = 16
    found = fleet.find()
    assert {one.what for one in found} == {TOGETHER}
    assert {host for one in found for host in (*one.hosts, *one.peers)} == set(fleet.hosts)


@pytest.mark.parametrize("seed", range(200))
def test_random_faults_are_found_and_no_other_host_is_accused(seed):
    draw = random.Random(seed)
    fleet = SimulatedFleet(draw.randint(3, 70), leaf=draw.choice([2, 4, 8, 32]))
    faults = draw.randint(0, 5)
    fleet.faults = {(draw.choice(fleet.hosts), draw.choice(RAILS)) for _turn in range(faults)}
    fleet.weak = set(draw.sample(fleet.hosts, draw.choice([0, 0, 1])))
    leaves = sorted({leaf for (leaf,) in fleet.leaves.values()})
    if len(leaves) > 1 and draw.random() < 0.3:
        fleet.paths = {(*draw.sample(leaves, 2), draw.choice(RAILS))}
    found = fleet.find()
    weak = {(host, rail) for host in fleet.weak for rail in RAILS}
    accused = fleet.accused(found)
    assert accused <= fleet.faults | weak, f"accused without fault: {accused - fleet.faults - weak}"
    # Something is always said where something fails.
    assert bool(found) == bool(fleet.faults or weak or fleet.paths)
    reported = {(host, rail) for one in found for host in (*one.hosts, *one.peers) for rail in one.rails}
    if not fleet.paths:
        assert fleet.faults <= reported, f"not reported: {fleet.faults - reported}"
        # If no host of its leaf is healthy, the fault may be the path to the other leaves, and the result says so.
        bad = fleet.faults | weak
        alone = {
            (host, rail)
            for host, rail in bad
            if all((other, rail) in bad for other in fleet.hosts if fleet.leaves[other] == fleet.leaves[host])
        }
        unclear = {(host, rail) for one in found if one.what == UNCLEAR for host in one.hosts for rail in one.rails}
        assert accused | unclear >= fleet.faults - alone
    assert fleet.rounds <= 2 + 3 * math.log2(len(fleet.hosts)) + SHIFTS + 2
