# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stages on fleets that are played: their order, where they stop, what is run at once."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._accept.bisect import NODE, Run
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.collect import host_checks
from ansible_collections.railops.rdma.plugins.plugin_utils._accept.stages import STAGES, AcceptFleet, step_of, walk

RAILS = ("rail1", "rail2")
NO_LIMIT = dict.fromkeys(("max_latency_us", "min_gbits", "min_gbits_loaded", "min_gbytes", "min_relative_percent"), 0)


def options(**more):
    return {"stages": STAGES, "collectives": [], **NO_LIMIT, **more}


def fleet_of(zones=1, leaves=2, hosts=3, **more):
    places = {
        f"z{zone}l{leaf}n{host}": (f"zone{zone}", (f"leaf{zone}-{leaf}-1", f"leaf{zone}-{leaf}-2"))
        for zone in range(zones)
        for leaf in range(leaves)
        for host in range(hosts)
    }
    return AcceptFleet(places, RAILS, **more)


def speed(run, slow=()):
    """Return what a run measures: 100 Gb/s a rail, 10 with a slow (host, rail) in it."""
    if run.kind == "read_lat":
        return {"value": 3.0}
    bad = any((host, rail) in slow for host in run.hosts for rail in run.rails)
    return {"value": 10.0 if bad else 100.0}


def play(fleet, settings, slow=(), results=None, outcome=speed):
    """Run everything that is asked for; return the report, the steps and the results."""
    results, steps = {} if results is None else results, []
    while True:
        report, judged = walk(fleet, settings, results)
        if report.waiting is None:
            return report, steps, results, judged
        step = step_of(report.waiting, report.runs)
        hosts = [host for entry in step.entries for host in entry.hosts]
        assert len(hosts) == len(set(hosts)), "a host does two things at once"
        runs = [Run(step.kind, entry.hosts, unit) for entry in step.entries for unit in entry.units]
        made = {run.key: outcome(run, slow) for run in runs}
        assert not set(made) & set(results)
        results |= made
        steps.append(step)


def test_everything_passes():
    fleet = fleet_of(zones=2, gpus=frozenset({"z0l0n0", "z1l0n0"}))
    report, steps, _results, _judged = play(
        fleet, options(collectives=["netpipe"], min_gbits=90, min_relative_percent=80)
    )
    assert (report.failed, report.findings, report.skipped) == (None, [], {})
    assert list(dict.fromkeys(step.stage for step in steps)) == [stage for stage in STAGES if stage != "hosts"]
    groups = {step.stage: [len(entry.hosts) for entry in step.entries] for step in steps}
    assert groups["leaf"] == [3, 3, 3, 3]
    assert groups["zone"] == [6, 6]
    assert groups["fabric"] == groups["collective"] == [12]
    assert groups["gpu"] == [2]


def test_it_stops_at_the_stage_that_fails():
    slow = {("z0l1n1", "rail2")}
    report, steps, _results, judged = play(fleet_of(), options(min_relative_percent=80), slow)
    assert report.failed == "bandwidth"
    assert [(one.what, one.hosts, one.rails) for one in report.findings] == [(NODE, ("z0l1n1",), ("rail2",))]
    assert "10 Gb/s is less than 80% of what other pairs reach" in judged.why(report.findings[0].run).cause
    assert {step.stage for step in steps} == {"latency", "bandwidth"}
    assert set(report.done) == {"hosts", "latency", "bandwidth"}


@pytest.mark.parametrize(("limit", "failed"), [(0, "bandwidth"), (50, None)])
def test_pairs_that_are_all_equally_slow_do_not_pass_without_a_number_of_your_own(limit, failed):
    def outcome(run, slow):
        return {**speed(run), "expected": 400.0}

    settings = options(min_relative_percent=80, min_gbits_loaded=limit)
    report, _steps, _results, _judged = play(fleet_of(), settings, outcome=outcome)
    assert report.failed == failed


def test_a_group_is_narrowed_by_halves():
    slow = {("z0l1n1", "rail2"), ("z1l0n2", "rail1")}
    fleet = fleet_of(zones=2)
    report, _steps, results, _judged = play(fleet, options(stages=["fabric"], min_gbits_loaded=50), slow)
    assert report.failed == "fabric"
    assert {(one.what, one.hosts[0], one.rails[0]) for one in report.findings} == {(NODE, *one) for one in slow}
    assert len(results) < 24
    assert "not selected" in report.skipped["bandwidth"]


@pytest.mark.parametrize(
    ("word", "found"), [("NCCL_IB_HCA=={devices}", RAILS[1:]), ("/tmp/mpi-{rails}", RAILS[1:]), ("x", RAILS)]
)
def test_a_command_that_selects_no_rail_is_not_run_rail_by_rail(word, found):
    settings = options(stages=["collective"], collectives={"all_reduce": ["mpirun", word]}, min_gbytes=50)
    report, _steps, results, _judged = play(fleet_of(), settings, {("z0l1n1", "rail2")})
    assert [(one.what, one.hosts, one.rails) for one in report.findings] == [(NODE, ("z0l1n1",), found)]
    assert any(key.startswith("all_reduce rail1 ") for key in results) == (found != RAILS)


@pytest.mark.parametrize("cut", range(0, 12))
def test_a_run_that_was_cut_off_goes_on(cut):
    settings, fleet = options(min_relative_percent=80), fleet_of()
    slow = {("z0l1n1", "rail2")}
    complete = play(fleet, settings, slow)
    kept = dict(list(complete[2].items())[:cut])
    again = play(fleet, settings, slow, dict(kept))
    assert again[0].findings == complete[0].findings
    assert set(again[2]) == set(complete[2])


def test_one_host_only():
    report, steps, _results, _judged = play(AcceptFleet({"n1": ("", ())}, RAILS), options())
    assert steps == []
    assert report.skipped["latency"] == "it needs two hosts"
    assert report.failed is None


def test_pairs_of_a_host_are_made_one_after_the_other_and_its_rails_in_one_step():
    fleet = fleet_of(leaves=1, hosts=3)
    report, _judged = walk(fleet, options(), {})
    assert [entry.units for entry in step_of(report.waiting, report.runs).entries] == [(("rail1",), ("rail2",))]
    both = [Run("write_bw", ("a", "b"), ("rail1",)), Run("write_bw", ("a", "b"), RAILS)]
    assert step_of("x", both).entries[0].units == (("rail1",),)


def test_a_rail_out_of_service_takes_part_in_no_run():
    name = next(iter(fleet_of().places))
    fleet = fleet_of(out={name: RAILS[1:2]})
    report, _steps, _results, judged = play(fleet, options())
    runs = [run for made in report.done.values() for run in made if name in run.hosts]
    assert runs
    assert {run.rails for run in runs} == {(rail,) for rail in RAILS if rail != RAILS[1]}
    checks = {row["id"]: row for row in host_checks(fleet, report, judged)[name]}
    assert (checks["accept_node"]["status"], checks["accept_bandwidth"]["status"]) == ("skipped", "ok")
    other = [*fleet.places][-1]
    assert RAILS in {run.rails for made in report.done.values() for run in made if other in run.hosts}


def test_four_thousand_hosts():
    fleet = fleet_of(zones=4, leaves=32, hosts=32)
    report, steps, _results, _judged = play(fleet, options(min_relative_percent=80), {("z1l2n3", "rail1")})
    assert [one.hosts for one in report.findings] == [("z1l2n3",)]
    assert len(steps) < 12
