# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The seeds' own numbers, and the corners of the arithmetic."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils import _intervals as intervals
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import address_text, range_text
from ansible_collections.railops.rdma.plugins.plugin_utils._plan import lock as locks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.blocks import build_blocks
from ansible_collections.railops.rdma.tests.unit.fabric_samples import block_of
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, shared


def pods(made, rail, slot=0, family=4, zone=0):
    return [range_text(family, span) for span in block_of(made.plan, zone, rail - 1, family).pods(slot)]


# --- golden: the seeds ------------------------------------------------------------------------------------------------


def test_exclusive_guide_gives_the_guides_blocks():
    made = plan(exclusive(), hosts(8))

    assert made.address("node1", 1) == {
        "family": 4,
        "address": "172.17.0.2",
        "subnet": "172.17.0.0/27",
        "gateway": "172.17.0.1",
    }
    assert made.address("node8", 1)["subnet"] == "172.17.0.224/27"
    assert made.address("node1", 2)["subnet"] == "172.17.1.0/27"
    assert made.address("node8", 8)["subnet"] == "172.17.7.224/27"
    assert pods(made, 1) == ["172.17.0.3-172.17.0.30"]
    assert intervals.size(block_of(made.plan, 0, 0, 4).pods(0)) == 28
    aggregates = [str(block.aggregate) for block in made.plan.blocks]
    assert aggregates == [f"172.17.{number}.0/24" for number in range(8)]
    assert made.slice("node1")["rdma_prefixes"] == ["172.17.0.0/21"]
    first, last = made.plan.blocks[0].aggregate.network, made.plan.blocks[-1].aggregate.last
    assert (address_text(4, first), address_text(4, last)) == ("172.17.0.0", "172.17.7.255")


def test_shared_guide_gives_rail_n_the_third_byte_n():
    made = plan(shared(), hosts(8))

    assert [str(block.aggregate) for block in made.plan.blocks] == [f"172.17.{number}.0/24" for number in range(1, 9)]
    assert made.address("node1", 3)["address"] == "172.17.3.2"
    assert pods(made, 3) == ["172.17.3.55-172.17.3.254"]


# --- corners ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gateway", "switch", "node", "first_pod"),
    [
        pytest.param("first", "172.17.0.1", "172.17.0.2", "172.17.0.3", id="first"),
        pytest.param("last", "172.17.0.30", "172.17.0.1", "172.17.0.2", id="last"),
        pytest.param("none", None, "172.17.0.1", "172.17.0.2", id="none"),
        pytest.param(10, "172.17.0.10", "172.17.0.1", "172.17.0.2", id="offset"),
        pytest.param("-3", "172.17.0.29", "172.17.0.1", "172.17.0.2", id="from-the-end-as-text"),
    ],
)
def test_gateway(gateway, switch, node, first_pod):
    made = plan(exclusive(gateway=gateway), hosts(1))

    assert made.address("node1", 1)["gateway"] == switch
    assert any("over IPv4 a rail does not reach" in text for text in made.plan.warnings) == (switch is None)
    assert made.address("node1", 1)["address"] == node
    assert pods(made, 1)[0].startswith(first_pod + "-")


def test_reserved_addresses_move_the_node_and_split_the_pods():
    made = plan(exclusive(reserved=["172.17.0.2-172.17.0.3", "172.17.0.10"]), hosts(2))

    assert made.address("node1", 1)["address"] == "172.17.0.4"
    assert pods(made, 1) == ["172.17.0.5-172.17.0.9", "172.17.0.11-172.17.0.30"]
    assert made.address("node2", 1)["address"] == "172.17.0.34"
    assert any("27 of 28" in text or "25 of 28" in text for text in made.plan.warnings)


def test_lid_only_has_rails_and_no_addresses():
    made = plan(exclusive(network="infiniband", supernets=[]), hosts(2))

    data = made.slice("node1")
    assert [rail["addresses"] for rail in data["rails"]] == [[]] * 8
    assert (data["rdma_prefixes"], data["sysctls"], data["rdma_mode"]) == ([], {}, "exclusive")


@pytest.mark.parametrize(
    ("more", "family", "count"),
    [
        pytest.param({"supernets": ["fd00::/48"]}, 6, 28, id="ipv6-only"),
        pytest.param({"supernets": ["fd00::/48"], "pods_per_node": 100}, 6, 100, id="ipv6-asked"),
        pytest.param({"supernets": ["172.17.0.0/16", "fd00::/48"], "node_prefix": 28}, 6, 12, id="as-many-as-ipv4"),
    ],
)
def test_node_pods(more, family, count):
    made = plan(exclusive(**more))

    assert intervals.size(block_of(made.plan, 0, 0, family).pods(0)) == count


def test_default_route_leads_to_the_supernet_for_the_exclusion_rule_needs_one_prefix():
    assert plan(shared(policy="default_route")).slice("node1")["rdma_prefixes"] == ["172.17.0.0/16"]
    assert plan(shared()).slice("node1")["rdma_prefixes"] == [
        "172.17.1.0/24",
        "172.17.2.0/23",
        "172.17.4.0/22",
        "172.17.8.0/24",
    ]


@pytest.mark.parametrize(
    ("count", "duration"), [(124, ""), (125, "about 4 minutes."), (500, "about 60 minutes."), (1000, "about 4 hours.")]
)
def test_from_a_thousand_pools_on_a_warning_says_how_long_a_first_apply_takes(count, duration):
    made = plan(exclusive(supernets=["10.0.0.0/8"], max_nodes=1000), hosts(count))
    found = [text for text in made.plan.warnings if "pools" in text]
    assert len(found) == bool(duration)
    if duration:
        assert f"The plan has {count * 8} pools: " in found[0]
        assert f"{duration} Before it is applied, fabric_mode shared or fabric_ipam nv-ipam" in found[0]


@pytest.mark.parametrize(
    ("raw", "host", "pods"),
    [
        (exclusive(), "172.17.0.4", ["172.17.0.5-172.17.0.28"]),
        (exclusive(gateway="last", supernets=["172.17.0.0/16"]), "172.17.0.4", ["172.17.0.5-172.17.0.28"]),
        (
            exclusive(reserved=["172.17.0.4", "172.17.0.9"]),
            "172.17.0.5",
            ["172.17.0.6-172.17.0.8", "172.17.0.10-172.17.0.28"],
        ),
        (shared(max_nodes=8, subnet_offset=0), "172.17.0.4", ["172.17.0.12-172.17.0.252"]),
    ],
)
def test_both_ends_of_each_subnet_are_kept_free(raw, host, pods):
    made = plan({**raw, "reserved_per_subnet": {"first": 3, "last": 2}}, hosts(2), report=False)

    assert made.address("node1", 1)["address"] == host
    assert [range_text(4, span) for span in made.plan.blocks[0].pods(0)] == pods
    assert json.loads(made.lock)["frozen"]["reserved_per_subnet"] == {"first": 3, "last": 2}
    lock = locks.parse_lock(made.lock, "plan.json")
    assert build_blocks(lock.fabric) == made.plan.blocks
    assert plan({**raw, "reserved_per_subnet": {"first": 0}}, hosts(2)).lock == plan(raw, hosts(2)).lock
