# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kinds of links there are, asked of a real kernel."""

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.module_utils._route.devices import kind_of
from ansible_collections.railops.rdma.plugins.module_utils._route.netlink import Socket, link_by_name
from ansible_collections.railops.rdma.plugins.modules import policy_route
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside


def test_the_kernel_says_what_kind_a_link_is_whatever_its_name():
    with Fabric("kinds", 1, 1) as fabric:
        host = fabric.hosts[0]
        host.ip("link", "add", "roce0", "type", "bridge")
        host.ip("link", "property", "add", "dev", "roce0", "altname", "an-alternative-name")
        host.ip("link", "add", "bond0", "link", "ens1np0", "type", "macvlan")
        names = ["roce0", "an-alternative-name", "bond0", "ens1np0", "lo"]

        def kinds():
            answers = [Socket().ask([link_by_name(name)])[0][1][0] for name in names]
            return [kind_of(answer) for answer in answers]

        assert inside(host.name, kinds) == ["bridge", "bridge", "macvlan", "veth", ""]


def test_a_rail_on_a_bridge_is_refused_before_the_live_network_changes():
    with Fabric("bridged", 1, 1) as fabric:
        host = fabric.hosts[0]
        host.ip("link", "add", "roce0", "type", "bridge")
        before = host.dump()
        address = {"address": "172.17.0.2", "subnet": "172.17.0.0/27", "gateway": "172.17.0.1"}
        params = {"rails": [{"interface": "roce0", "addresses": [address]}], "rdma_prefixes": ["172.17.0.0/16"]}
        result = host.module(policy_route, params)
        assert "rail1: roce0 is a bridge, and a rail is a port of its own." in result["msg"]
        assert host.dump() == before
