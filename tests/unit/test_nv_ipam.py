# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The stand-in for nv-ipam, held by objects written by hand and by what the real one answered to some of them."""

from __future__ import annotations

import ipaddress

import pytest

from ansible_collections.railops.rdma.tests.unit.nv_ipam import (
    Allocation,
    gateway_of,
    handed_out,
    reconcile,
    refused,
    risks,
)

LABEL = {"rail": "yes"}
SELECTOR = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "rail", "operator": "Exists"}]}]}
TWO = [{"nodeName": "n1", "prefix": "10.0.0.0/27"}, {"nodeName": "n2", "prefix": "10.0.0.32/27"}]
NODES = {"n1": LABEL, "n2": LABEL, "stranger": {}}
SPEC = {
    "cidr": "10.0.0.0/24",
    "perNodeNetworkPrefix": 27,
    "gatewayIndex": 1,
    "perNodeExclusions": [{"startIndex": 2, "endIndex": 2}],
    "staticAllocations": TWO,
    "nodeSelector": SELECTOR,
}
V6 = {
    "cidr": "fd00::/60",
    "perNodeNetworkPrefix": 64,
    "staticAllocations": [{"nodeName": "n1", "prefix": "fd00::/64"}, {"nodeName": "n2", "prefix": "fd00:0:0:1::/64"}],
    "nodeSelector": SELECTOR,
}


def pool(base=None, name="rail1", **changes):
    spec = {key: value for key, value in {**(base or SPEC), **changes}.items() if value is not None}
    return {"metadata": {"name": name}, "spec": spec}


def exclusion(low, high=None):
    return {"startIP": low, "endIP": high or low}


def text(out):
    kind = type(out.prefix.network_address)
    return [f"{kind(low)}-{kind(high)}" for low, high in out.spans]


def of_node(made, node="n1"):
    entry = next(one for one in reconcile(made, NODES) if one.node == node)
    return text(handed_out(made, entry))


def test_a_good_pool_is_taken():
    for base in (SPEC, V6):
        assert refused(pool(base)) == []
        assert risks(pool(base), NODES) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "rail 1"},
        {"cidr": "10.0.0.1/24"},
        {"perNodeNetworkPrefix": 23},
        {"gatewayIndex": -1},
        {"gatewayIndex": 31},
        {"exclusions": [exclusion("10.0.1.1")]},
        {"exclusions": [exclusion("10.0.0.9", "10.0.0.8")]},
        {"perNodeExclusions": [{"startIndex": 1, "endIndex": 32}]},
        {"staticAllocations": [{"prefix": "10.0.0.1/27"}]},
        {"staticAllocations": [{"prefix": "10.0.1.0/27"}]},
        {"staticAllocations": [{"prefix": "10.0.0.0/28"}]},
        {"staticAllocations": [{**TWO[0], "gateway": "10.0.0.1"}]},
        {"staticAllocations": [TWO[0], {**TWO[1], "nodeName": "n1"}]},
        {"staticAllocations": [TWO[0], {"prefix": "10.0.0.0/27"}]},
        {"nodeSelector": {"nodeSelectorTerms": []}},
        {"defaultGateway": True},
    ],
    ids=str,
)
def test_an_invalid_pool_empties_the_status_of_all_nodes(changes):
    made = pool(**changes)
    (problem,) = refused(made)
    assert next(iter(changes)) in problem
    assert reconcile(made, NODES, [Allocation("n1", "10.0.0.0/27", "10.0.0.1")]) == []


@pytest.mark.parametrize(
    ("prefix", "index", "gateway"),
    [
        ("192.168.0.0/24", 0, ""),
        ("192.168.0.0/24", 254, "192.168.0.254"),
        ("192.168.0.0/24", 255, ""),
        ("192.168.1.2/31", 0, "192.168.1.2"),
        ("192.168.1.2/31", 2, ""),
        ("fd00::/120", 255, "fd00::ff"),
    ],
)
def test_a_gateway_is_where_the_projects_own_examples_have_it(prefix, index, gateway):
    assert gateway_of(ipaddress.ip_network(prefix), index) == gateway
