# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""More messages in a phase than answers fit into a socket's buffer: 248 to 270 acknowledgements."""

from __future__ import annotations

import dataclasses

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import netlink
from ansible_collections.railops.rdma.plugins.module_utils._route import run as route_run
from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, call_module, inside, options

RAILS, PREFIXES = 3, 80


@pytest.fixture
def host():
    with Fabric("many", 1, RAILS) as fabric:
        yield fabric.hosts[0]


@pytest.fixture
def want():
    """Each prefix, none of which touches another, has a route in main and one in the table of each rail."""
    plan = options(0, RAILS, six=False)
    more = [f"10.{number}.0.0/16" for number in range(0, 2 * PREFIXES, 2)]
    return {**plan, "rdma_prefixes": [*plan["rdma_prefixes"], *more]}


def planned_routes(host):
    return [line for line in host.dump()["routes"] if "proto 143" in line or "proto railops" in line]


def change_with(host, kernel, want):
    """Change a host by a module with another class for the kernel."""

    def child():
        route_run.Kernel = kernel
        return {**call_module(policy_route, want), "expected": getattr(kernel, "refused", "")}

    return inside(host.name, child)


def test_a_change_and_its_teardown_with_many_routes(host, want):
    before = host.dump()
    assert host.apply(want)["changed"]
    assert len(planned_routes(host)) == 2 * RAILS * (PREFIXES + 1) + RAILS
    assert not host.apply(want)["changed"]
    assert host.apply({**want, "state": "absent"})["changed"]
    after = host.dump()
    for part in ("addresses", "rules", "routes"):
        assert after[part] == before[part], part


def test_a_refusal_late_in_a_phase_of_many_routes_is_rolled_back_completely(host, want):
    class Refused(route_run.Kernel):
        def transact(self, messages):
            if len(messages) > 400 and messages[0][0].verb == "add":
                op, _data = messages[-5]
                wrong = dataclasses.replace(op.what, gateway="203.0.113.1")
                messages[-5] = op, self.encode(dataclasses.replace(op, what=wrong))
                Refused.refused = str(op)
            return super().transact(messages)

    before = host.dump()
    result = change_with(host, Refused, want)
    assert result["failed"]
    assert "invalid gateway" in result["msg"]
    assert result["operation"] == result["expected"] != ""
    assert (result["rolled_back"], result.get("left")) == (True, None)
    assert host.dump() == before
    assert host.apply(want)["changed"]


def test_a_phase_whose_answers_are_lost_is_rolled_back_completely(host, want):
    """The socket of the lost answers is not used again."""

    class Congested(route_run.Kernel):
        def transact(self, messages):
            netlink.BATCH = 10_000 if len(messages) > 400 else 32
            return super().transact(messages)

    before = host.dump()
    result = change_with(host, Congested, want)
    assert result["failed"]
    assert "No buffer space available" in result["msg"]
    assert (result["rolled_back"], result.get("left")) == (True, None)
    assert host.dump() == before
