# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A run that outlives its rollback timer writes nothing more, and a confirmation says what the host has."""

from __future__ import annotations

import time

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import run as route_run
from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import (
    Fabric,
    call_module,
    inside,
    options,
    wait_for,
)


@pytest.fixture
def host():
    with Fabric("timer", 1, 2) as made:
        yield made.hosts[0]


def hung(want, word):
    """Change a host by a module that hangs before one kind of message for longer than its timer waits."""

    class Slow(route_run.Kernel):
        def transact(self, messages):
            done = super().transact(messages)
            if str(messages[0][0]).startswith(word):
                time.sleep(2)
            return done

    route_run.Kernel = Slow
    return call_module(policy_route, {**want, "confirm_timeout": 1})


@pytest.mark.parametrize("word", ["ip link set", "ip address add", "ip route add", "ip rule add"])
def test_a_run_that_hangs_past_its_timer_leaves_what_was_before(host, word):
    before = host.dump()
    result = inside(host.name, lambda: hung(options(0, 2), word))
    assert result.get("failed"), result
    assert "took longer than the rollback timer waits" in result["msg"]
    assert result["rolled_back"] is True
    assert host.dump() == before
    time.sleep(1)
    assert host.dump() == before
    assert host.apply(options(0, 2))["changed"]


def test_a_late_confirmation_says_what_the_host_has(host):
    before = host.dump()
    token = host.apply({**options(0, 2), "confirm_timeout": 1})["token"]
    wait_for(host.dump, before)
    late = host.module(policy_route, {"confirm": token})
    assert (late["failed"], late["rolled_back"]) == (True, True)
    assert "too late" in late["msg"]
    assert "has reverted the change" in late["msg"]
    # Another tool sets one of it again.
    host.ip("address", "add", "172.17.0.2/27", "dev", "ens1np0")
    late = host.module(policy_route, {"confirm": token})
    assert late["rolled_back"] is False
    assert "is not as it was before: `ip address delete 172.17.0.2/27 dev ens1np0` would lead there" in late["msg"]
