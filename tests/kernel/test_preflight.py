# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host answers before the first change, on a real kernel and without pyroute2: a new host has none yet."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import decode
from ansible_collections.railops.rdma.plugins.modules import rail_audit
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric

ROLES = {"preflight": {"roles": ["rdma_host", "rail_network"], "persist": False}}


@pytest.fixture(autouse=True)
def no_library(monkeypatch):
    def gone(*_args):
        raise AssertionError("pyroute2 was asked")

    monkeypatch.setattr(decode, "PYROUTE2_ERROR", "ModuleNotFoundError: pyroute2")
    monkeypatch.setattr(decode, "decoded", gone)


@pytest.fixture
def host():
    with Fabric("preflight", 1, 2) as fabric:
        yield fabric.hosts[0]


def ask(host, *interfaces, settings=None, **more):
    """Return what is in the way on a host whose rails are these interfaces."""
    rails = [
        {
            "name": f"rail{number}",
            "interface": name,
            "mtu": 1500,
            "addresses": [{"address": f"172.17.{number}.2", "subnet": f"172.17.{number}.0/27", "gateway": None}],
            **more,
        }
        for number, name in enumerate(interfaces, 1)
    ]
    params = {"rails": rails, "rdma_prefixes": ["172.17.0.0/21"], "network": "roce", "checks": ["preflight"]}
    result = host.module(rail_audit, {**params, "settings": {**ROLES, **(settings or {})}}, diff=False)
    assert result["errors"] == []
    return [check["cause"] for check in result["checks"]]


def test_a_plain_host_has_nothing_in_the_way(host):
    assert ask(host, "ens1np0", "ens2np0") == []


@pytest.mark.parametrize("kind", ["bridge", "macvlan"])
def test_what_is_no_port_is_told_by_the_kernels_word_and_not_by_its_name(host, kind):
    below = ["link", "ens2np0"] if kind == "macvlan" else []
    host.ip("link", "add", *below, "name", "roce0", "type", kind)
    assert ask(host, "ens1np0", "roce0") == [f"rail2: roce0 is a {kind}, and a rail is a port of its own."]


def test_a_port_that_is_only_called_a_bond_is_one(host):
    host.ip("link", "set", "ens1np0", "down", "name", "bond0")
    assert ask(host, "bond0") == []


def test_all_that_a_run_would_stop_at_is_told_at_once(host):
    host.ip("link", "add", "docker0", "type", "bridge")
    host.ip("address", "add", "172.17.0.1/16", "dev", "docker0")
    host.ip("link", "add", "br0", "type", "bridge")
    host.ip("link", "set", "ens2np0", "master", "br0")
    assert ask(host, "ens1np0", "ens2np0", "ens9np0") == [
        "rail2: ens2np0 is a port of br0, where an address of its own has no effect.",
        "rail3: this host has no interface 'ens9np0'.",
        "172.17.0.0/21 overlaps 172.17.0.0/16, which docker0 has on this host.",
    ]
    assert ask(host, "ens1np0", settings={"policy_route": {"force": ["docker0"]}}) == []


def test_a_rail_that_has_its_addresses_already_is_not_in_its_own_way(host):
    host.ip("address", "add", "172.17.1.2/27", "dev", "ens1np0")
    host.ip("link", "add", "gone0", "type", "bridge")
    host.ip("address", "add", "172.17.2.2/27", "dev", "gone0")
    assert ask(host, "ens1np0", "ens2np0") == ["the planned address 172.17.2.2 is held by gone0."]
    # Our rule says that the address is ours, on a rail of an earlier plan.
    host.ip("rule", "add", "from", "172.17.2.2", "lookup", "1002", "priority", "10002")
    assert ask(host, "ens1np0", "gone0") == ["rail2: gone0 is a bridge, and a rail is a port of its own."]


def test_what_stands_on_a_port_keeps_its_mtu(host):
    host.ip("link", "set", "ens2np0", "mtu", "9000")
    host.ip("link", "add", "link", "ens2np0", "name", "storage0", "type", "macvlan")
    (cause,) = ask(host, "ens1np0", "ens2np0")
    assert cause.endswith("has an MTU of 9000, and 1500 would also lower what stands on it: storage0 with 9000.")
    assert ask(host, "ens1np0", "ens2np0", settings={"policy_route": {"take_over": ["ens2np0"]}}) == []
