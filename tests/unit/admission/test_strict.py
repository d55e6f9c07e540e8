# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.tests.admission.admission import check
from ansible_collections.railops.rdma.tests.admission.mutate import INJECT_NETWORK, INJECT_RDMA
from ansible_collections.railops.rdma.tests.admission.samples import multus, pool, reserved
from ansible_collections.railops.rdma.tests.admission.strict import strict


def config(name="rail1", pools=("rail1-*",), annotations=None, v6=()):
    ippools = {"ipv4": list(pools), "ipv6": list(v6), "matchMasterSubnet": False}
    return multus("macvlan", {"ippools": ippools}, annotations or {INJECT_RDMA: "rails"}, name)


RAIL2 = {"subnet": "172.17.1.0/27", "ips": ["172.17.1.3"], "gateway": "172.17.1.1"}
BAD = [
    pytest.param([pool(nodeName=["node9"])], "no node 'node9'", id="unknown node"),
    pytest.param([pool(nodeName=[])], "opens the pool to every node", id="no node named"),
    pytest.param([pool(multusName=["spiderpool/nobody"])], "no config", id="unknown config"),
    pytest.param([config(pools=["other"])], "No pool fits 'other'", id="unknown pool"),
    pytest.param([config(pools=["rail[12]-*", "none-*"]), pool()], "No pool fits 'none-*'", id="wildcard for nothing"),
    pytest.param([config(pools=["rail1-node1"] * 2), pool()], "named twice", id="pool twice"),
    pytest.param([config(v6=["rail1-*"]), pool()], "is no IPv6 pool", id="family"),
    pytest.param(
        [pool(), config(), config("rail2", ["rail*"])], "shares a pool with rail1", id="two rails on one pool"
    ),
    pytest.param([pool(), config("rail.1")], "cannot be injected", id="dots in the name"),
    pytest.param(
        [pool(), config(annotations={INJECT_RDMA: "a", INJECT_NETWORK: "b"})], "counts", id="both annotations"
    ),
]


@pytest.mark.parametrize(("objects", "message"), BAD)
def test_what_no_webhook_refuses_is_found(objects, message):
    assert check(objects) == []
    problems = strict(objects, nodes=["node1"])
    assert [problem for problem in problems if message in problem], problems


def test_a_good_set_has_nothing():
    good = [pool(nodeName=["node1"]), config(), pool("rail2-node1", **RAIL2), config("rail2", ["rail2-*"])]
    assert strict([*good, reserved("10.0.0.1")], nodes=["node1"]) == []
