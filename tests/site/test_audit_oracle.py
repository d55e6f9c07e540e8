# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The playbook audit beside a oracle that sends packets, over random breaks of six hosts and their ports.

Never green where the oracle sees loss, the right host and rail named, never red where nothing is broken but for what
is `listed` in tests/kernel/breaks.py. RAILOPS_AUDIT_CASES breaks, RAILOPS_AUDIT_SEED draws others.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import time

import pytest
import state as lab_state
from topology import MANAGEMENT

from ansible_collections.railops.rdma.plugins.module_utils._route import managed_state
from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.breaks import KINDS, LISTED, Break, Breaks
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import call_module, inside
from ansible_collections.railops.rdma.tests.kernel.oracle import End, Flow, Oracle, flows_of
from ansible_collections.railops.rdma.tests.site.conftest import Fleet, commit, started

NODES, RAILS = 6, 3
# A push plays three of them, from the seed that its commit chooses: together these play all kinds.
PUSHED, LONG, SEEDS = 3, 300, range(11)
HOST_PLAN = ("rails", "rdma_prefixes", "policy", "network", "sysctls")


def configured(files: str, plan: dict) -> dict:
    """Run policy_route in this process, with a folder in place of the machine's own files."""
    managed_state.ROOT = files
    return call_module(policy_route, plan)


class World:
    """A fleet as planned, its namespaces and its oracle."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        lab = lab_state.load(fleet.name)
        self.core = lab.fabric
        self.spaces = {host.name: lab.namespace(host) for host in lab.hosts}
        folder = fleet.folder / "plan/fabric/hosts"
        self.plans = {name: json.loads((folder / f"{name}.json").read_text(encoding="utf-8")) for name in self.spaces}
        ports = {host.name: host.port for host in lab.hosts}
        self.ends = [
            End(name, rail["name"], rail["interface"], item["address"], ports[name](rail["index"]))
            for name, plan in self.plans.items()
            for rail in plan["rails"]
            for item in rail["addresses"]
        ]
        self.oracle = Oracle(self.spaces, self.core)

    def lost(self) -> dict[Flow, str]:
        """Return what is lost of what all rails send."""
        ways = []
        for end in self.ends:
            others = [other for other in self.ends if other.host != end.host]
            ways += flows_of(end, others, (end.rail,))
        return self.oracle.lost(ways)

    def breaks(self, seed: int) -> Breaks:
        """Return what draws from a seed."""
        aside = ("mgmt0", str(MANAGEMENT[1]))
        return Breaks(seed, self.spaces, self.core, self.plans, "n{}r{}", aside)

    def forget(self) -> None:
        """Let all hosts resolve their neighbors again, as they do after half a minute."""
        for space in (self.core, *self.spaces.values()):
            for family in ("-4", "-6"):
                for words in (["neigh", "flush", "all"], ["route", "flush", "cache"]):
                    subprocess.run(["ip", "-n", space, family, *words], capture_output=True, check=False)

    def repair(self, what: Break) -> None:
        """Undo, let the role's module repair the rest, and wait until every packet arrives again."""
        what.undo()
        own = self.plans[what.host]
        files = str(self.fleet.folder / "files" / what.host)
        result = inside(self.spaces[what.host], configured, files, {key: own[key] for key in HOST_PLAN})
        assert not result.get("failed"), (str(what), result)
        self.forget()
        deadline = time.monotonic() + 120
        while lost := self.lost():
            assert time.monotonic() < deadline, (str(what), list(lost.items())[:4])
            time.sleep(0.5)


@pytest.fixture(scope="module")
def world(request, tmp_path_factory):
    """Six hosts as planned, on bridges or on routed ports."""
    with started("oracle", tmp_path_factory.mktemp("oracle"), NODES, RAILS) as fleet:
        supernets = ["172.17.0.0/16", "fd00:17::/48"]
        fleet.plan(fabric_mode=request.param, fabric_supernets=supernets, site_serial=[NODES])
        fleet.play("hosts")
        yield World(fleet)


def named(verdict: dict) -> set[tuple[str, str | None]]:
    """Return the places of deviations: the end at fault, where it is known, and both holders of a MAC address."""
    return {
        (host if check["id"] == "fleet_mac" else check.get("attributed_to", host), check["rail"])
        for host, entry in verdict["hosts"].items()
        for check in entry["checks"]
        if check["status"] == "deviation"
    }


PUSH = pytest.mark.parametrize("world", ["shared"], indirect=True)


@PUSH
def test_an_audit_of_a_complete_fleet_is_green_and_no_packet_is_lost(world):
    assert world.lost() == {}
    world.fleet.play("audit")


def judged(world: World, what: Break) -> str:
    """Let it happen, and hold the audit to the oracle; return what came."""
    with what.losing():
        what.do()
        world.forget()
        time.sleep(0.3)
        before = world.lost()
        run = world.fleet.play("audit", code=None)
        after = world.lost()
    verdict = world.fleet.verdict()
    world.repair(what)
    return reported(what, before, after, run.code, verdict)


def reported(what: Break, before: dict[Flow, str], after: dict[Flow, str], code: int, verdict: dict) -> str:
    lost = [(way.source[:2], way.target[:2], way.how, n) for way, n in (before or after).items()]
    story = f"{what}\nlost {lost[:4]} of {len(lost)}"
    places = named(verdict)
    story += f"\nnamed {sorted(map(str, places))} {[card['sentence'] for card in verdict['causes']]}"
    assert code in (0, 2), story
    if before and after:
        assert code == 2, f"green, and packets are lost: {story}"
        right = {
            place for place in places if place[0] == what.host and (what.rail is None or place[1] in (None, what.rail))
        }
        assert right, f"another host is blamed: {story}"
        return "broken"
    if what.free and not what.listed and not before and not after:
        assert code == 0, f"red, and nothing is lost: {story}\n{causes(verdict)}"
    return "listed" if what.listed and code == 2 else "red by plan" if code else "whole"


def causes(verdict: dict) -> list[str]:
    return [
        f"{host} {check['rail']} {check['id']}: {check['cause']}"
        for host, entry in verdict["hosts"].items()
        for check in entry["checks"]
        if check["status"] == "deviation"
    ]


@PUSH
def test_three_breaks_are_red_where_packets_are_lost_and_nowhere_else(world):
    seed = SEEDS[int(commit() or "0", 16) % len(SEEDS)]
    hold(world, int(os.environ.get("RAILOPS_AUDIT_CASES") or PUSHED), int(os.environ.get("RAILOPS_AUDIT_SEED") or seed))


@pytest.mark.long
@pytest.mark.parametrize("world", ["shared", "exclusive"], indirect=True)
def test_hundreds_of_breaks_are_red_where_packets_are_lost_and_nowhere_else(world, seed):
    hold(world, int(os.environ.get("RAILOPS_AUDIT_CASES") or LONG // 2), seed("RAILOPS_AUDIT_SEED"))


def hold(world: World, cases: int, first: int) -> None:
    """Let so many things happen, every kind in its turn, and hold each audit to the oracle."""
    draw = world.breaks(first)
    wrong: list[str] = []
    seen: dict[str, int] = {}
    for case in range(cases):
        what = draw.draw_one(ORDER[(case + first * PUSHED) % len(ORDER)])
        try:
            end = judged(world, what)
        except AssertionError as exc:
            end, _more = "wrong", wrong.append(f"seed {first}, case {case}: {exc}")
        seen[end] = seen.get(end, 0) + 1
        print(f"{case}: {what}: {end}", flush=True)
    print(seen)
    assert wrong == [], "\n\n".join(wrong)


# Kinds that are neighbors in the file are not in a run.
ORDER = [KINDS[number * 7 % len(KINDS)] for number in range(len(KINDS))]


@pytest.mark.long
@pytest.mark.parametrize("world", ["shared"], indirect=True)
@pytest.mark.parametrize("reason", LISTED)
def test_listed_breaks_are_red_without_loss(world, reason):
    """Else it need not be listed any more."""
    draw = world.breaks(1)
    drawn = (what for what in iter(lambda: draw.draw_one(LISTED[reason]), None) if what.listed == reason)
    # Whose answer a table keeps is chance: three of them, and one is enough.
    assert any(judged(world, what) == "listed" for what in itertools.islice(drawn, 3))
