# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""policy_route and rails in VLANs, on a kernel that has VLANs: a QEMU guest.

    lab.py up --name try --kind guests --nodes 1
    RAILOPS_LAB=try pytest tests/guests/test_vlan_rails.py

Uses a dummy interface of the lab's first host, and takes it away again.
"""

from __future__ import annotations

import functools
import json
import time

import pytest
from guest import LAB, marks, module, shell

HOST = "node1"
PORT = "vtest"
guest = functools.partial(shell, HOST)

pytestmark = marks(LAB)


def route(vlan, *, check_mode=False, **more):
    """Run policy_route on the guest with one rail in a VLAN, and return its result."""
    device = f"{PORT}.{vlan}" if vlan else PORT
    address = {"address": "198.51.100.2", "subnet": "198.51.100.0/27", "gateway": "198.51.100.1"}
    rail = {"name": "rail1", "interface": PORT, "vlan": vlan, "mtu": 1400, "addresses": [address]}
    arguments = {
        "rails": [rail],
        "rdma_prefixes": ["198.51.100.0/24"],
        "sysctls": {f"net/ipv4/conf/{device}/arp_ignore": "1", f"net/ipv4/conf/{device}/rp_filter": "2"},
        **more,
    }
    result = module(HOST, "policy_route", check_mode, **arguments)
    assert "confirm_timeout" not in more or result.get("token"), result
    return result


def link(name):
    """Return a link of the guest as `ip` shows it, with its addresses; None when there is none."""
    text = guest(f"ip -json -details address show dev {name} 2>/dev/null", check=False)
    return json.loads(text)[0] if text else None


def addresses(name):
    return [item["local"] for item in link(name)["addr_info"] if item["family"] == "inet"]


@pytest.fixture
def port():
    guest(f"modprobe dummy; modprobe 8021q; ip link add {PORT} type dummy")
    yield
    guest(f"ip link delete {PORT}; rm -rf /run/railops-rdma", check=False)


def test_a_rail_moves_into_a_vlan_to_another_and_back(port):
    assert route(0)["changed"] is True
    assert addresses(PORT) == ["198.51.100.2"]

    foretold = route(101, check_mode=True)
    assert link(f"{PORT}.101") is None
    moved = route(101)
    assert (moved["before"], moved["after"]) == (foretold["before"], foretold["after"])
    made = link(f"{PORT}.101")
    assert (made["linkinfo"]["info_kind"], made["linkinfo"]["info_data"]["id"]) == ("vlan", 101)
    assert (made["link"], made["ifalias"], made["mtu"]) == (PORT, "railops.rdma", 1400)
    # Only the message that makes the link says that.
    assert made["group"] == "143"
    assert (addresses(PORT), addresses(f"{PORT}.101")) == ([], ["198.51.100.2"])
    assert guest(f"cat /proc/sys/net/ipv4/conf/{PORT}.101/arp_ignore") == "1"
    tables = guest("ip route show table 1001; ip route show 198.51.100.0/24")
    assert f"198.51.100.0/24 via 198.51.100.1 dev {PORT}.101" in tables
    assert "from 198.51.100.2 lookup 1001" in guest("ip rule")
    assert route(101)["changed"] is False

    assert route(102)["changed"] is True
    assert link(f"{PORT}.101") is None
    assert addresses(f"{PORT}.102") == ["198.51.100.2"]

    assert route(0)["changed"] is True
    assert link(f"{PORT}.102") is None
    assert addresses(PORT) == ["198.51.100.2"]


def test_the_timer_takes_a_vlan_back(port):
    route(0)
    route(101, confirm_timeout=15)
    end = time.monotonic() + 120
    while link(f"{PORT}.101") is not None and time.monotonic() < end:
        time.sleep(2)
    assert link(f"{PORT}.101") is None
    assert addresses(PORT) == ["198.51.100.2"]

    route(101)
    route(0, confirm_timeout=15)
    while link(f"{PORT}.101") is None and time.monotonic() < end + 120:
        time.sleep(2)
    assert addresses(f"{PORT}.101") == ["198.51.100.2"]
    assert f"dev {PORT}.101" in guest("ip route show table 1001")


def test_others_vlans_are_kept_and_their_names_are_not_taken(port):
    guest(f"ip link add link {PORT} name {PORT}.101 type vlan id 99; ip link add link {PORT} name own.7 type vlan id 7")
    guest("ip link set own.7 mtu 1400")
    assert f"{PORT}.101 is VLAN 99 of {PORT}" in route(101)["msg"]
    guest(f"ip link delete {PORT}.101; ip link add link {PORT} name {PORT}.101 type vlan id 101")
    # As the plugin ifacer makes it: used, and left when the rail goes.
    assert route(101)["changed"] is True
    assert addresses(f"{PORT}.101") == ["198.51.100.2"]
    assert route(101, state="absent")["changed"] is True
    assert addresses(f"{PORT}.101") == []
    assert link("own.7") is not None


def test_what_a_killed_run_left_half_made_is_recognized_as_managed(port):
    """A kill after the link is made and before it is up and has its alias: the next run goes on, or takes it away."""
    half_made = f"ip link add link {PORT} name {PORT}.101 group 143 type vlan id 101"
    guest(half_made)
    assert route(101)["changed"] is True
    assert (link(f"{PORT}.101")["ifalias"], addresses(f"{PORT}.101")) == ("railops.rdma", ["198.51.100.2"])
    assert route(101)["changed"] is False
    assert route(101, state="absent")["changed"] is True
    assert link(f"{PORT}.101") is None
    for more in ({}, {"state": "absent"}):
        guest(half_made)
        assert route(0, **more)["changed"] is True
        assert link(f"{PORT}.101") is None
