# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The chain of CNI plugins of a rail. What it does in pods: tests/kernel/test_pod_routes.py."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._fabric.backends import BACKENDS
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import Fabric, Prefix, Rail, Zone
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.chain import network_config

FOUR, SIX = Prefix(4, 0xAC110000, 16), Prefix(6, 0xFD000017 << 96, 48)
IPV4 = {
    "net.ipv4.conf.IFNAME.arp_announce": "2",
    "net.ipv4.conf.IFNAME.arp_ignore": "1",
    "net.ipv4.conf.IFNAME.rp_filter": "0",
    "net.ipv4.conf.all.rp_filter": "0",
}
IPV6 = {"net.ipv6.conf.IFNAME.accept_ra": "0"}


def config_of(attachment="macvlan", vlan=0, supernets=(FOUR, SIX), pools=("fabric-rail1-v4", "fabric-rail1-v6")):
    rail = Rail(1, "rail1", "ens1np0", vlan=vlan)
    zone = Zone("", "gpu_nodes", tuple(supernets), 8)
    fabric = Fabric("fabric", "exclusive", (zone,), (rail,), attachment=attachment, mtu=4200)
    return json.loads(network_config(fabric, rail, "fabric-rail1", "ens9np0", pools))


@pytest.mark.parametrize(("kind", "mode"), [("macvlan", "bridge"), ("ipvlan", "l2")])
@pytest.mark.parametrize(("vlan", "master"), [(0, "ens9np0"), (30, "ens9np0.30")])
def test_a_parent_is_the_hosts_interface_or_that_of_its_vlan(kind, mode, vlan, master):
    ipam = {"type": "nv-ipam", "poolName": "fabric-rail1-v4,fabric-rail1-v6", "poolType": "cidrpool"}
    assert config_of(kind, vlan) == {
        "cniVersion": "0.3.1",
        "name": "fabric-rail1",
        "plugins": [
            {"type": kind, "master": master, "mode": mode, "mtu": 4200, "ipam": ipam},
            {"type": "tuning", "sysctl": {**IPV4, **IPV6}},
            {"type": "sbr"},
        ],
    }


def test_a_virtual_function_has_no_parent_and_takes_its_rdma_device_along():
    main, rdma, tuning, sbr = config_of("sriov", 30)["plugins"]
    assert (main["type"], main["vlan"], rdma, sbr) == ("sriov", 30, {"type": "rdma"}, {"type": "sbr"})
    assert not {"master", "deviceID", "mtu"} & set(main)
    assert tuning == {"type": "tuning", "sysctl": {**IPV4, **IPV6}, "mtu": 4200}


@pytest.mark.parametrize(("supernets", "sysctls"), [((FOUR,), IPV4), ((SIX,), IPV6)])
def test_one_family_has_one_pool_and_its_own_settings(supernets, sysctls):
    main, tuning, _sbr = config_of(supernets=supernets, pools=("fabric-rail1-v4",))["plugins"]
    assert main["ipam"]["poolName"] == "fabric-rail1-v4"
    assert tuning["sysctl"] == sysctls


def test_every_attachment_that_nv_ipam_knows_has_its_plugins():
    kinds = [config_of(name)["plugins"][0]["type"] for name in BACKENDS["nv-ipam"].attachments]
    assert kinds == ["macvlan", "ipvlan", "sriov"]
