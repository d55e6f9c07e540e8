# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A filter of the host itself that stops RoCE's port alone: pings come back, a program's packets do not."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import time

import packages
import pytest

from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, entered, run, want_of

RAILS = 2
DEBS = [
    "nftables",
    "libnftables1",
    "libnftnl11",
    "libjansson4",
    "libxtables12",
    "libmnl0",
    "libedit2",
    "libbsd0",
    "libmd0",
]
RULES = """
table inet own {{
  chain {chain} {{
    type filter hook {chain} priority 0; policy accept;
    {rule}
  }}
}}
"""


@pytest.fixture(autouse=True)
def nft(monkeypatch):
    """Put nft on PATH: the machine's own, or Debian's out of its package."""
    if shutil.which("nft", path=packages.PLACES):
        return
    try:
        home = packages.unpacked(*DEBS)
    except packages.NotOfferedError as exc:
        pytest.skip(str(exc))
    monkeypatch.setenv("PATH", f"{home}/usr/sbin:{os.environ['PATH']}")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{home}/usr/lib/{os.uname().machine}-linux-gnu")


@pytest.fixture
def fabric():
    with Fabric("filter", 2, RAILS) as made:
        made.converge([want_of(slot, RAILS) for slot in (0, 1)])
        yield made


def wrong(fabric):
    """Return what an audit of the first host by paths and pings has against its rails."""
    neighbour = {"host": "node2", "rails": fabric.wants[1]["rails"]}
    result = fabric.hosts[0].audit(fabric.wants[0], "paths", "pings", neighbours=[neighbour])
    return [item for item in result["checks"] if item["status"] == "deviation"]


def socket_in(space):
    """Return a socket of a namespace."""
    with entered(space):
        return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


def arrives(fabric, number, way=1, seconds=20.0):
    """Send packets to RoCE's port from a rail of a host to the other's; say whether one is taken within seconds."""
    source, target = (want["rails"][number]["addresses"][0]["address"] for want in fabric.wants[::way])

    there, here = (socket_in(host.name) for host in fabric.hosts[::-way])
    with there, here:
        there.bind((target, 4791))
        there.settimeout(0.5)
        here.bind((source, 0))
        end = time.monotonic() + seconds
        while time.monotonic() < end:  # the first ones are lost while a neighbour is still asked for
            with contextlib.suppress(PermissionError):  # dropped on its way out
                here.sendto(b"x", (target, 4791))
            with contextlib.suppress(TimeoutError):
                return there.recv(8) == b"x"
        return False


@pytest.mark.parametrize("chain", ["input", "output"])
def test_a_rule_that_drops_roces_port_on_one_rail_is_named_there(fabric, chain):
    host, word, way = fabric.hosts[0], *{"input": ("iifname", -1), "output": ("oifname", 1)}[chain]
    assert arrives(fabric, 1, way)
    rule = f'{word} "ens2np0" udp dport 4791 drop'
    run("ip", "netns", "exec", host.name, "nft", "-f", "-", stdin=RULES.format(chain=chain, rule=rule))
    assert (arrives(fabric, 0, way), arrives(fabric, 1, way, seconds=2)) == (True, False)
    found = wrong(fabric)
    assert {(item["id"], item["rail"], item["family"]) for item in found} == {
        ("route_path", "rail2", 4),
        ("route_path", "rail2", 6),
    }
    assert all(f"the rule `{rule}` of table inet own, chain {chain} (nft)" in item["cause"] for item in found)


def test_filters_that_leave_the_rails_alone_are_nobodys_fault(fabric):
    host = fabric.hosts[0]
    rules = 'iifname "eth0" udp dport 4791 drop\n    tcp dport 22 accept\n    ip saddr 198.51.100.0/24 drop'
    run("ip", "netns", "exec", host.name, "nft", "-f", "-", stdin=RULES.format(chain="input", rule=rules))
    assert wrong(fabric) == []
