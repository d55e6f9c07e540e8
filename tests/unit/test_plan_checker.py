# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checker of plans sees what is wrong: a checker that never objects would make every property hold."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.tests.unit import plan_checker
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, rails, shared

POOLS, NODE1 = "cluster/ippools.yaml", "hosts/node1.json"


def check(made, changes, mode="exclusive", reserved=(), foreign=()):
    files = dict(made.files)
    for path, old, new in changes:
        assert old in files[path]
        files[path] = files[path].replace(old, new, 1)
    return plan_checker.check(files, mode=mode, reserved=list(reserved), foreign=list(foreign))


@pytest.fixture(scope="module")
def good():
    return plan(exclusive(rails=rails(2)), hosts(2))


def test_a_good_plan_passes(good):
    assert check(good, []) == []
    assert check(plan(shared(rails=rails(2)), hosts(2)), [], mode="shared") == []


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        pytest.param([(NODE1, '"172.17.0.2"', '"172.17.0.3"')], "handed out", id="node-in-the-pool"),
        pytest.param([(NODE1, '"172.17.0.2"', '"172.17.0.34"')], "is not in 172.17.0.0/27", id="node-outside"),
        pytest.param([(NODE1, '"172.17.0.2"', '"172.17.0.31"')], "broadcast", id="node-on-broadcast"),
        pytest.param([(NODE1, '"172.17.0.0/27"', '"172.17.0.0/26"')], "overlap", id="subnets-overlap"),
        pytest.param([(NODE1, '"172.17.0.1"', '"172.17.1.77"')], "gateway 172.17.1.77 is not in", id="gateway-outside"),
        pytest.param([(POOLS, "172.17.0.3-172.17.0.30", "172.17.0.2-172.17.0.30")], "handed out", id="pool-takes-node"),
        pytest.param([(POOLS, "172.17.0.3-172.17.0.30", "172.17.0.3-172.17.0.31")], "touches", id="pool-broadcast"),
        pytest.param([(POOLS, "172.17.0.3-172.17.0.30", "172.17.0.3-172.17.0.40")], "leaves", id="pool-leaves"),
        pytest.param([(POOLS, "subnet: 172.17.0.0/27", "subnet: 172.17.0.0/26")], "no node's subnet", id="pool-subnet"),
        pytest.param([(POOLS, "gateway: 172.17.0.1", "gateway: 172.17.0.9")], "is nobody's", id="pool-gateway"),
        pytest.param(
            [("switch/prefixes.csv", "172.17.0.0/24", "172.17.8.0/24")], "is not in 172.17.8.0/24", id="aggregate"
        ),
        pytest.param(
            [("switch/prefixes.csv", "172.17.0.0/24", "172.17.0.0/23")], "is in 172.17.0.0/23", id="aggregate-too-wide"
        ),
        pytest.param([(NODE1, '["172.17.0.0/23"]', '["172.17.0.0/24"]')], "is in no RDMA prefix", id="rdma-prefixes"),
    ],
)
def test_a_wrong_plan_is_noticed(good, changes, text):
    wrong = check(good, changes)

    assert any(text in one for one in wrong), wrong


def test_reserved_and_foreign_addresses_are_noticed(good):
    assert "reserved" in check(good, [], reserved=["172.17.0.20"])[0]
    assert "foreign" in check(good, [], foreign=["172.17.1.0/24"])[0]


def test_two_rails_in_one_subnet_are_noticed_unless_flat():
    made = plan(shared(rails=rails(2)), hosts(1))
    same = [(NODE1, "172.17.2.2", "172.17.1.3"), (NODE1, '"subnet": "172.17.2.0/24"', '"subnet": "172.17.1.0/24"')]

    assert any("is shared by" in one for one in check(made, same, mode="shared"))
