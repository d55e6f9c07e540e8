# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Computes a host's part of tests between hosts, as rdma_probe's options, from the plan's host plans."""

from __future__ import annotations

import typing as t

from ...module_utils._fabric.shapes import HostPlanRail
from ...module_utils._probe.schedule import HostPair, schedule
from .._host_plan import read_host_plan
from .stages import StepGroup

Test = dict[str, t.Any]
"""One end of a test: a row of the option `tests` of the module rdma_probe."""


def address_of(rail: HostPlanRail) -> str | None:
    """Return the address that a rail's tests use: the first, which is IPv4 where there is one."""
    addresses = sorted(rail["addresses"], key=lambda entry: entry["family"])
    return addresses[0]["address"].partition("/")[0] if addresses else None


def tests_of(plan_dir: str, rails: dict[str, HostPlanRail], pairs: t.Iterable[HostPair], end: str) -> list[Test]:
    """Return a host's end of these pairs.

    :param rails: the host's rails by name.
    :param end: `client` or `server`.
    """
    peers: dict[str, dict[str, HostPlanRail]] = {}
    tests: list[Test] = []
    for pair in pairs:
        peer = pair.server if end == "client" else pair.client
        if peer not in peers:
            peers[peer] = {rail["name"]: rail for rail in read_host_plan(plan_dir, peer)["rails"]}
        if pair.rail not in rails or pair.rail not in peers[peer]:
            continue  # out of service
        rail = rails[pair.rail]
        tests.append(
            {
                "test": pair.test,
                "rail": pair.rail,
                "interface": rail["interface"],
                "address": address_of(rail),
                "port": pair.port,
                "peer": peer,
                "peer_address": address_of(peers[peer][pair.rail]) or "",
            }
        )
    return tests


def ring_of(plan_dir: str, host: str, entry: StepGroup, end: str, first_port: int) -> list[Test]:
    """Return a host's end of a group's tests: each host sends to the next one, and the last to the first.

    Tests of one unit have one slot. `test` is write_bw; callers put another.

    :param end: `client` or `server`.
    :param first_port: of the servers, TCP.
    """
    slots = {rail: number for number, unit in enumerate(entry.units) for rail in unit}
    own = {rail["name"]: rail for rail in read_host_plan(plan_dir, host)["rails"]}
    made = schedule(entry.hosts, list(slots), ["write_bw"], mode="ring", first_port=first_port)
    pairs = made.pairs_of(host, end)
    return [{**test, "slot": slots[test["rail"]]} for test in tests_of(plan_dir, own, pairs, end)]
