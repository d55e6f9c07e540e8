# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the input may look like when it is right; what is wrong stands in the corpus."""

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.host_plans import sysctls
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import read_input
from ansible_collections.railops.rdma.tests.unit.fabrics import exclusive, hosts, plan, rails


def fabric_of(raw):
    return read_input(raw, [])[0]


def test_defaults_follow_from_the_network():
    roce, ib = fabric_of(exclusive()), fabric_of(exclusive(network="infiniband"))

    assert (roce.attachment, roce.mtu, roce.policy, roce.hca_max) == ("macvlan", 4200, "prefixes", 100)
    assert (ib.attachment, ib.mtu) == ("ib-sriov", 2044)
    assert roce.resources[0] == "spidernet.io/fabric_rail1"


def test_numbers_may_come_as_text_as_extra_variables_do():
    fabric = fabric_of(exclusive(max_nodes="8", mtu="9000", subnet_offset="1", node_prefix="28", gateway="-2"))

    assert (fabric.zones[0].max_nodes, fabric.mtu, fabric.subnet_offset, fabric.gateway[4]) == (8, 9000, 1, -2)
    assert fabric.node_prefix == {4: 28, 6: 64}


def test_a_rail_may_have_a_vlan_of_its_own():
    fabric = fabric_of(exclusive(vlan=7, rails=[{"interface": "a"}, {"interface": "b", "vlan": 9}]))

    assert [rail.parent for rail in fabric.rails] == ["a.7", "b.9"]


def test_reserved_ranges_are_merged_and_sorted():
    reserved = ["172.17.0.9", "172.17.0.5-172.17.0.8", "172.17.9.0/30", "fd00::1", "172.17.0.1"]
    fabric = fabric_of(exclusive(reserved=reserved))

    base = (172 << 24) + (17 << 16)
    assert fabric.reserved[:3] == ((4, base + 1, base + 1), (4, base + 5, base + 9), (4, base + 2304, base + 2307))
    assert [one[0] for one in fabric.reserved] == [4, 4, 4, 6]


def test_networks_may_be_written_with_blanks_and_in_any_ipv6_form():
    fabric = fabric_of(exclusive(supernets=[" FD00:0:0::/48 ", "172.17.0.0/16"]))

    assert [str(net) for net in fabric.zones[0].supernets] == ["172.17.0.0/16", "fd00::/48"]


def test_an_existing_network_beside_the_rails_is_fine_though_the_supernet_holds_it():
    assert fabric_of(exclusive(existing_networks=["172.17.8.0/21", "10.0.0.0/8"])).existing


def test_sysctls_are_in_slash_notation_for_interfaces_with_dots():
    fabric = fabric_of(exclusive(supernets=["fd00::/48"], rails=[{"interface": "eth0.100"}]))

    assert sysctls(fabric, ["eth0.100"]) == {
        "net/ipv6/conf/eth0.100/accept_ra": "0",
        "net/ipv6/conf/eth0.100/disable_ipv6": "0",
        "net/ipv6/conf/eth0.100/ignore_routes_with_linkdown": "1",
        "net/ipv6/conf/eth0.100/keep_addr_on_down": "1",
    }


def test_a_large_ipoib_mtu_is_warned_about():
    made = plan(exclusive(network="infiniband", mtu=65520))

    assert "connected mode" in made.plan.warnings[0]


def test_ten_thousand_reserved_addresses_are_quick():
    """Each cuts one subnet; the search for them must not be quadratic."""
    reserved = [f"10.{number // 8 // 256}.{number // 8 % 256}.{number % 8 * 32 + 20}" for number in range(10_000)]
    raw = exclusive(supernets=["10.0.0.0/8"], max_nodes=10_000, rails=rails(1), reserved=reserved)

    made = plan(raw, hosts(3), report=False)

    assert len(made.plan.blocks[0].cuts) == 10_000
