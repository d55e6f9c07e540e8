# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What kinds of links may be rails, asked of a real kernel."""

from __future__ import annotations

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric


def test_a_rail_that_is_no_port_is_refused_by_the_kernels_word_whatever_its_name():
    with Fabric("kinds", 1, 1) as fabric:
        host = fabric.hosts[0]
        host.ip("link", "add", "roce0", "type", "bridge")
        host.ip("link", "property", "add", "dev", "roce0", "altname", "an-alternative-name")
        host.ip("link", "add", "bond0", "link", "ens1np0", "type", "macvlan")
        address = {"address": "172.17.0.2", "subnet": "172.17.0.0/27", "gateway": "172.17.0.1"}

        def want(name):
            return {"rails": [{"interface": name, "addresses": [address]}], "rdma_prefixes": ["172.17.0.0/16"]}

        bridge, macvlan = "roce0 is a bridge", "bond0 is a macvlan"
        for name, cause in (("roce0", bridge), ("an-alternative-name", bridge), ("bond0", macvlan)):
            assert f"rail1: {cause}, and a rail is a port of its own." in host.refused(want(name))
        # A card's port has no kind in the kernel either, as lo has none.
        for name in ("lo", "ens1np0"):
            assert host.apply(want(name), check=True)["changed"]
