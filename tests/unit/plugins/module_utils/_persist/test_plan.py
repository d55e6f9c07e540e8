# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import configparser
import re

import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._persist import networkd
from ansible_collections.railops.rdma.plugins.module_utils._persist import plan as persist
from ansible_collections.railops.rdma.plugins.module_utils._persist.host import PersistHost
from ansible_collections.railops.rdma.plugins.module_utils._persist.machine import interfaces_of
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_options
from ansible_collections.railops.rdma.tests.unit.machines import put
from ansible_collections.railops.rdma.tests.unit.plugins.module_utils._route.test_plan import RAIL1

RAIL2 = {"interface": "ens2np0.7", "addresses": [{"address": "192.0.2.34", "subnet": "192.0.2.32/27"}]}
PARAMS = {
    "rails": [RAIL1, RAIL2],
    "rdma_prefixes": ["192.0.2.0/24", "2001:db8::/32"],
    "sysctls": {"net/ipv4/conf/ens2np0.7/arp_ignore": "1"},
}


def files(manager, **more):
    want = parse_options({**PARAMS, **more})
    return {file.path: file for file in persist.files_of(want, {r.name: r.interface for r in want.rails}, manager)}


TOOL, PLANS, RUNS = "usr/sbin/netplan", "etc/netplan/50-cloud-init.yaml", "run/systemd/netif/links/1"
STARTS = "etc/systemd/system/multi-user.target.wants/NetworkManager.service"
IFUPDOWN = "etc/network/interfaces"


def host(root, *paths):
    """Lay out what shows who manages a host."""
    for path in paths:
        put(root, path, "iface eth0 inet dhcp\n" if path == IFUPDOWN else "")
        (root / path).chmod(0o755)
    return PersistHost(str(root))


@pytest.mark.parametrize(
    ("paths", "manager"),
    [
        pytest.param((TOOL, PLANS, RUNS), "netplan", id="ubuntu"),
        pytest.param((TOOL, PLANS, "run/NetworkManager/x"), "netplan", id="ubuntu-desktop"),
        pytest.param(("run/NetworkManager/x",), "networkmanager", id="rhel"),
        pytest.param((STARTS,), "networkmanager", id="an-image-of-rhel"),
        pytest.param((RUNS, IFUPDOWN), "networkd", id="both"),
        pytest.param((TOOL, RUNS), "networkd", id="netplan-unused"),
        pytest.param((TOOL,), "netplan", id="netplan-fresh"),
    ],
)
def test_network_manager_detection(tmp_path, paths, manager):
    assert persist.manager_of(host(tmp_path, *paths)) == manager


@pytest.mark.parametrize(
    ("paths", "says"), [pytest.param((IFUPDOWN, TOOL), "ifupdown", id="ifupdown"), pytest.param((), "Nothing", id="no")]
)
def test_unsupported_manager_is_refused_with_the_fix(tmp_path, paths, says):
    with pytest.raises(RdmaError, match=says) as caught:
        persist.manager_of(host(tmp_path, *paths))
    assert caught.value.fix


IPOIB = {"interface": "ibs1f0", "addresses": [{"address": "192.0.2.2", "subnet": "192.0.2.0/24"}]}


@pytest.mark.parametrize(("mtu", "mode"), [(2044, "datagram"), (4092, "datagram"), (65520, "connected")])
def test_an_infiniband_profile_has_the_mode_that_carries_its_mtu(mtu, mode):
    made = files("networkmanager", rails=[{**IPOIB, "mtu": mtu}], network="infiniband", sysctls={})
    profile = configparser.ConfigParser(comment_prefixes="#")
    profile.read_string(made["/etc/NetworkManager/system-connections/railops-ibs1f0.nmconnection"].text)
    assert dict(profile["infiniband"]) == {"mtu": str(mtu), "transport-mode": mode}
    assert profile["connection"]["type"] == "infiniband"
    assert "ethernet" not in profile
    # Addresses only: InfiniBand's verbs need no routes.
    assert not [key for key in profile["ipv4"] if key.startswith("rout") and key != "route-metric"]


@pytest.mark.parametrize(("mtu", "mode"), [(4092, "datagram"), (65520, "connected")])
def test_networkd_and_netplan_keep_the_mode_that_carries_the_mtu(mtu, mode):
    more = {"rails": [{**IPOIB, "mtu": mtu}], "network": "infiniband", "sysctls": {}}
    text = files("networkd", **more)["/etc/systemd/network/0-railops-ibs1f0.network"].text
    assert ("IPoIB", {"Mode": mode}) in sections(text)
    port = yaml.safe_load(files("netplan", **more)["/etc/netplan/zz-railops-ibs1f0.yaml"].text)["network"]["ethernets"]
    # The kernel's default needs no word, and older netplan has none.
    assert port["ibs1f0"].get("infiniband-mode", "datagram") == mode
    # What sets it where networkd does not read its own section.
    for manager in persist.MANAGERS:
        rules = files(manager, **more).get("/etc/udev/rules.d/90-railops-ipoib.rules")
        assert (rules is not None) is (mode == "connected" and manager != "networkmanager")
        assert not rules or "/sbin/ip link set dev ibs1f0 type ipoib mode connected" in rules.text
        assert not rules or persist.owned(rules.path)


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("auto lo\niface lo inet loopback\nallow-hotplug eth0\niface eth0 inet dhcp\n", ("eth0",)),
        ("auto lo\niface lo inet loopback\n", ()),
        # A manual stanza that says no more configures nothing.
        ("auto ens1np0\niface ens1np0 inet manual\n", ()),
        ("iface ens1np0 inet manual\n# a comment\n\nauto eth0\niface eth0 inet dhcp\n", ("eth0",)),
        ("iface ens1np0 inet manual\n    mtu 9000\n", ("ens1np0",)),
        ("iface ens1np0 inet6 manual", ()),
        ("iface ens1np0 inet manual\niface br0 inet dhcp\n  bridge_ports ens1np0\n", ("br0", "ens1np0")),
    ],
)
def test_ifupdown_is_known_by_what_it_configures(text, there):
    assert interfaces_of(text) == there


def sections(text):
    found = []
    for line in text.splitlines():
        if line.startswith("["):
            found.append((line.strip("[]"), {}))
        elif "=" in line:
            key, _equals, value = line.partition("=")
            found[-1][1][key] = value
    return found


@pytest.mark.parametrize("manager", persist.MANAGERS)
def test_besides_there_are_sysctls_without_dad_and_the_protocols_name(manager):
    found = files(manager)
    lines = found["/etc/sysctl.d/90-railops-rails.conf"].text.splitlines()
    # NetworkManager leaves routes out when the detection is off and ends between its two looks.
    assert ("net/ipv6/conf/ens1np0/accept_dad = 0" in lines) is (manager != "networkmanager")
    assert "net/ipv4/conf/ens2np0.7/arp_ignore = 1" in lines
    assert not any("ens2np0.7/accept_dad" in line for line in lines)
    assert "143\trailops\n" in found["/etc/iproute2/rt_protos.d/railops.conf"].text
    kept = found.get(networkd.KEEP_FOREIGN.path)
    assert (kept is not None) is (manager != "networkmanager")
    assert not kept or {"ManageForeignRoutingPolicyRules=no", "ManageForeignRoutes=no"} <= {*kept.text.splitlines()}
    assert all(persist.owned(path) for path in found)


TAGGED = [{**RAIL1, "vlan": 101}]


@pytest.mark.parametrize("manager", persist.MANAGERS)
def test_no_dhcp_nothing_empty_no_renderer_and_nothing_else_that_runs_at_boot(manager):
    for path, file in files(manager, policy="default_route").items():
        assert not re.search(r"(via|from|to|Gateway|From|To|Destination)[:=]\s*$", file.text, re.MULTILINE)
        assert not re.search(r"dhcp[46]: true|DHCP=yes|method=auto|renderer", file.text)
        assert not path.endswith((".service", ".sh"))
        assert "dispatcher" not in path


def test_an_mtu_only_gives_a_file_without_addresses():
    text = files("netplan", rails=[{"interface": "ens1np0", "mtu": 4200}])["/etc/netplan/zz-railops-ens1np0.yaml"].text
    assert ("mtu: 4200" in text, "addresses" in text) == (True, False)


def test_the_boot_waits_for_no_rail_without_a_cable():
    found = files("networkd", rails=TAGGED).items()
    made = [dict(sections(file.text)) for path, file in found if path.endswith(".network")]
    assert len(made) == 2
    for reported in made:
        assert reported["Link"]["RequiredForOnline"] == "no"
        assert reported["Network"]["ConfigureWithoutCarrier"] == reported["Network"]["IgnoreCarrierLoss"] == "yes"
    plan = yaml.safe_load(files("netplan", rails=TAGGED)["/etc/netplan/zz-railops-ens1np0.yaml"].text)["network"]
    for entry in (plan["ethernets"]["ens1np0"], *plan["vlans"].values()):
        assert entry["optional"] is entry["ignore-carrier"] is True
