# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host with a life of its own beside the rails: nothing of it is in the way, and all of it is there afterwards."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.modules import policy_route, rail_audit
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, want_of

LIVES = {
    "next hop groups of BGP": """
        nexthop add id 7 via 198.51.100.254 dev eth0 proto bgp
        nexthop add id 70 group 7 proto bgp
        route add 203.0.113.0/24 nhid 70 proto bgp metric 20
    """,
    "rules of Cilium": """
        rule add fwmark 0x200/0xf00 lookup 2004 priority 9
        route add local default dev lo table 2004
        rule add from all lookup local priority 100
    """,
    "rules of a VPN, a VRF and of forwarded packets": """
        rule add iif tun0 lookup 51 priority 500
        rule add l3mdev priority 1000
        rule add iif eth0 lookup 300 priority 501
        route add default via 198.51.100.254 dev eth0 table 300
    """,
    "a deprecated address": "address add 2001:db8:5::5/64 dev eth0 preferred_lft 0",
    "a second address with a neighbour that is set": """
        address add 198.51.100.77/24 dev eth0
        neighbour add 198.51.100.78 lladdr 02:00:00:00:00:78 dev eth0 nud permanent
    """,
    "VXLAN": """
        link add vxlan42 type vxlan id 42 dev eth0 dstport 4789
        address add 10.42.0.1/16 dev vxlan42
        link set vxlan42 up
    """,
    "wider and deeper routes": """
        route add 172.16.0.0/12 via 198.51.100.254
        route add 172.17.200.0/24 via 198.51.100.254 advmss 1400
        route add 203.0.113.128/25 via 198.51.100.254 metric 150
    """,
    "a rail's port in promiscuous mode, with another name": """
        link set ens1np0 promisc on
        link property add dev ens1np0 altname storage0
    """,
}


def seen(host) -> list[str]:
    """Return all of a host that somebody could miss, by iproute2, without what the kernel makes and takes by itself."""
    rows = [line for family in ("-4", "-6") for line in host.ip("-d", family, "rule").splitlines()]
    for family in ("-4", "-6"):
        rows += host.ip("-d", family, "route", "show", "table", "all").splitlines()
    rows += [line.partition(" brd")[0] for line in host.ip("-br", "address").splitlines()]
    rows += [*host.ip("nexthop").splitlines(), *host.ip("neighbour", "show", "nud", "permanent").splitlines()]
    rows += [
        line.partition(" mtu")[0] for line in host.ip("link").splitlines() if "PROMISC" in line or "altname" in line
    ]
    volatile = ("proto kernel", "fe80::", "ff00::", "33:33:", "01:00:5e")
    return sorted(" ".join(row.split()) for row in rows if not any(word in row for word in volatile))


@pytest.mark.parametrize("life", LIVES)
def test_what_is_not_ours_is_not_in_the_way_and_stays(life):
    with Fabric("life", 1, 2) as fabric:
        host, want = fabric.hosts[0], want_of(0, 2)
        for rail in ("ens1np0", "ens2np0"):
            host.ip("link", "set", rail, "up")
        host.batch("\n".join(line.strip() for line in LIVES[life].strip().splitlines()) + "\n")
        before = seen(host)
        settings = {"preflight": {"roles": ["rail_network"], "persist": False}}
        asked = host.module(rail_audit, {**want, "checks": ["preflight"], "settings": settings}, diff=False)
        assert (asked["checks"], asked["errors"]) == ([], [])
        assert host.apply(want)["changed"]
        again = host.module(policy_route, want, check=True)
        assert (again["changed"], [check for check in again["checks"] if check["status"] != "ok"]) == (False, [])
        kept = set(seen(host))
        assert [row for row in before if row not in kept and "ens" not in row] == []
        assert host.module(policy_route, {**want, "state": "absent"})["changed"]
        assert seen(host) == before
