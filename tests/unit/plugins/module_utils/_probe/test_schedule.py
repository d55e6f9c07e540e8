# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._probe.schedule import schedule, seconds

RAILS = [f"rail{number}" for number in range(1, 9)]


def hosts(count):
    return [f"node{number:05}" for number in range(1, count + 1)]


@settings(deadline=None)
@given(
    count=st.integers(0, 40),
    rails=st.integers(1, 8),
    mode=st.sampled_from(["auto", "ring", "full", "sample"]),
    seed=st.integers(0, 99),
    peers=st.integers(1, 50),
)
def test_clients_and_servers_agree(count, rails, mode, seed, peers):
    made = schedule(hosts(count), RAILS[:rails], ["read_lat", "write_bw"], mode=mode, seed=seed, peers=peers)
    clients = [pair for host in made.hosts for pair in made.pairs_of(host)]
    servers = [pair for host in made.hosts for pair in made.pairs_of(host, "server")]
    assert sorted(clients, key=repr) == sorted(servers, key=repr)
    assert all(pair.client != pair.server for pair in clients)
    ports = [(pair.server, pair.port) for pair in clients]
    assert len(set(ports)) == len(ports)
    for host in made.hosts:
        assert len(made.pairs_of(host)) == len(made.pairs_of(host, "server")) == made.pairs_per_host
    if count > 1:
        assert {(pair.client, pair.rail) for pair in clients} == {
            (host, rail) for host in made.hosts for rail in made.rails
        }


def test_a_sample_comes_from_its_seed():
    one = schedule(hosts(1000), RAILS, ["read_lat"], mode="sample", seed=7)
    assert one == schedule(reversed(hosts(1000)), RAILS, ["read_lat"], mode="sample", seed=7)
    assert one != schedule(hosts(1000), RAILS, ["read_lat"], mode="sample", seed=8)
    assert one.shifts[0] == 1
    assert len(one.shifts) == 3


@pytest.mark.parametrize(("count", "mode"), [(2, "full"), (4, "full"), (5, "ring"), (64, "ring"), (65, "sample")])
def test_auto(count, mode):
    assert schedule(hosts(count), RAILS, ["read_lat"]).mode == mode


def test_nothing_to_test():
    assert schedule(["one"], RAILS, ["read_lat"]).pairs_of("one") == []
    assert schedule(hosts(3), RAILS, ["read_lat"], mode="none").pairs_of("node00001") == []
    assert schedule(hosts(3), RAILS, ["read_lat"]).pairs_of("stranger") == []


def test_errors_name_the_fix():
    with pytest.raises(RdmaError, match="ring"):
        schedule(hosts(400), RAILS, ["read_lat", "write_bw"], mode="full", first_port=60000)


def test_servers_wait_for_all_waves():
    assert seconds(schedule(hosts(100), RAILS, ["read_lat", "write_bw"], mode="ring"), 20, 50) == 2 * 16 * 20
