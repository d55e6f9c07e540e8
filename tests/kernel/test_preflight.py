# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a host answers before the first change, on a real kernel."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, run

ROLES = {"preflight": {"roles": ["rdma_host", "rail_network"], "persist": False}}


@pytest.fixture
def host():
    with Fabric("preflight", 1, 2) as fabric:
        yield fabric.hosts[0]


def conflicts(host, *interfaces, settings=None, sysctls=None, **more):
    """Return the conflicts of a host whose rails are these interfaces."""
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
    want = {"rails": rails, "rdma_prefixes": ["172.17.0.0/21"], "network": "roce", "sysctls": sysctls or {}}
    result = host.audit(want, "preflight", settings={**ROLES, **(settings or {})})
    return [check["cause"] for check in result["checks"]]


def test_a_full_run_is_reported_where_a_rollback_timer_would_wait(host, own_files):
    run("mount", "-t", "tmpfs", "-o", "size=128k", "tmpfs", str(own_files))
    try:
        (text,) = conflicts(host, "ens1np0", settings={"policy_route": {"confirm_timeout": 60}})
        assert text == f"{own_files}/run/timers has no room for what the rollback timer keeps."
        assert conflicts(host, "ens1np0") == []
    finally:
        run("umount", "--lazy", str(own_files))
    assert conflicts(host, "ens1np0", settings={"policy_route": {"confirm_timeout": 60}}) == []


def test_all_conflicts_are_reported_at_once(host):
    host.ip("link", "add", "docker0", "type", "bridge")
    host.ip("address", "add", "172.17.0.1/16", "dev", "docker0")
    host.ip("link", "add", "br0", "type", "bridge")
    host.ip("link", "set", "ens2np0", "master", "br0")
    assert conflicts(host, "ens1np0", "ens2np0", "ens9np0") == [
        "rail2: ens2np0 is a port of br0, where an address of its own has no effect.",
        "rail3: this host has no interface 'ens9np0'.",
        "172.17.0.0/21 overlaps 172.17.0.0/16, which docker0 has on this host.",
    ]
    assert conflicts(host, "ens1np0", settings={"policy_route": {"force": ["docker0"]}}) == []


def test_a_rail_that_has_its_addresses_already_is_not_in_its_own_way(host):
    host.ip("address", "add", "172.17.1.2/27", "dev", "ens1np0")
    host.ip("link", "add", "gone0", "type", "bridge")
    host.ip("address", "add", "172.17.2.2/27", "dev", "gone0")
    assert conflicts(host, "ens1np0", "ens2np0") == ["the planned address 172.17.2.2 is held by gone0."]
    # Our rule says that the address is ours, on a rail of an earlier plan.
    host.ip("rule", "add", "from", "172.17.2.2", "lookup", "1002", "priority", "10002")
    assert conflicts(host, "ens1np0", "gone0") == ["rail2: gone0 is a bridge, and a rail is a port of its own."]


def test_an_upper_device_keeps_its_mtu(host):
    host.ip("link", "set", "ens2np0", "mtu", "9000")
    host.ip("link", "add", "link", "ens2np0", "name", "storage0", "type", "macvlan")
    (cause,) = conflicts(host, "ens1np0", "ens2np0")
    assert cause.endswith("has an MTU of 9000, and 1500 would also lower interfaces stacked on it: storage0 with 9000.")
    assert conflicts(host, "ens1np0", "ens2np0", settings={"policy_route": {"adopt_ports": ["ens2np0"]}}) == []


def test_an_existing_route_where_no_node_is_yet_is_shown(host):
    host.ip("route", "add", "blackhole", "172.17.5.0/26", "proto", "bird")
    (text,) = conflicts(host, "ens1np0", "ens2np0")
    assert (
        text == "Other programs route parts of the fabric's networks elsewhere: blackhole 172.17.5.0/26 (made by bird)."
    )


SYSCTL = "net/ipv4/conf/{}/arp_ignore"


def test_settings_of_interfaces_that_are_not_there_yet_are_not_in_the_way(host, monkeypatch):
    """Those of an interface that gets another name are looked for under the one that it has."""
    monkeypatch.setattr(Sysfs, "pci_interfaces", lambda _self, pci: ["ens2np0"] if pci else [])
    sysctls = {SYSCTL.format(name): "1" for name in ("rail2", "ens1np0")}
    more = {"pci": "0000:19:00.0"}
    assert conflicts(host, "ens1np0", "rail2", sysctls=sysctls, **more) == []
    sysctls["net/ipv4/nosuch"] = "1"
    assert conflicts(host, "ens1np0", "rail2", sysctls=sysctls, **more) == [
        "/proc/sys/net/ipv4/nosuch does not exist on this host."
    ]
    assert conflicts(host, "ens1np0", "ens9np0", sysctls={SYSCTL.format("ens9np0"): "1"}) == [
        "rail2: this host has no interface 'ens9np0'."
    ]


def test_lost_router_advertisement_address_is_reported(host):
    sysctls = {f"net/ipv6/conf/ens{number}np0/accept_ra": "0" for number in (1, 2)}
    host.batch("link set ens1np0 up\naddress add 2001:db8:7::9/64 dev ens1np0 valid_lft 900 preferred_lft 900 nodad\n")
    host.ip("address", "add", "2001:db8:8::9/64", "dev", "ens1np0", "nodad")
    (text,) = conflicts(host, "ens1np0", "ens2np0", sysctls=sysctls)
    assert "ens1np0 has 2001:db8:7::9/64 dev ens1np0 by router advertisement, which ends with accept_ra=0" in text
    host.sysctl("net/ipv6/conf/ens1np0/accept_ra", "0")
    assert conflicts(host, "ens1np0", "ens2np0", sysctls=sysctls) == []


def test_a_persons_second_address_in_the_planned_subnet_is_no_renumbering(host):
    host.batch("link set ens1np0 up\naddress add 172.17.1.9/27 dev ens1np0\n")
    assert conflicts(host, "ens1np0", "ens2np0") == []


def test_a_second_default_route_is_found(host):
    """By a router's advertisement or BGP on a rail, beside the management network's."""
    host.batch("link set ens2np0 up\naddress add 2001:db8:7::9/64 dev ens2np0 nodad\n")
    host.ip(
        "-6", "route", "add", "default", "via", "2001:db8:7::1", "dev", "ens2np0", "metric", "20000", "proto", "bgp"
    )
    (text,) = conflicts(host, "ens1np0", "ens2np0")
    assert text == "rail2: ens2np0 carries the default route."
