# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Counters of a real kernel between two audits: nothing happened, the link went down, the driver came again."""

from __future__ import annotations

import array
import fcntl
import socket
import struct

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._probe import nic
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, inside, run

SIOCETHTOOL = 0x8946
RAILS = [{"name": "rail1", "interface": "ens1np0"}, {"name": "rail2", "interface": "ens2np0"}]


@pytest.fixture
def fabric():
    with Fabric("health", 1, 2) as made:
        for rail in RAILS:
            made.hosts[0].ip("link", "set", rail["interface"], "up")
        yield made


def settings_of(name, speed, own, peer):
    """Make an interface whose driver keeps the link settings that it is given, as `tun` does."""
    run("ip", "tuntap", "add", name, "mode", "tap")
    masks = b"".join(sum(1 << bit for bit in modes).to_bytes(16, "little") for modes in (own, own, peer))
    # struct ethtool_link_settings: ETHTOOL_SLINKSETTINGS, the speed, and masks of 4 words.
    data = array.array("B", struct.pack("=II7xb32x", 0x4D, speed, 4) + masks)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", name.encode(), data.buffer_info()[0]))
    return nic.offered(name)


@pytest.mark.parametrize(
    ("own", "peer", "offered"),
    [
        # linux/ethtool.h: 100000baseCR4, 200000baseKR4, 400000baseKR8, Autoneg.
        ((38, 62, 69), (38, 62), 200000),
        ((38, 62, 69), (38, 62, 69), 400000),
        ((6, 38), (6, 62), 0),
        ((38,), (), 0),
    ],
)
def test_what_both_ends_of_a_link_offer(fabric, own, peer, offered):
    assert inside(fabric.hosts[0].name, lambda: settings_of("roce0", 100000, own, peer)) == offered
    assert inside(fabric.hosts[0].name, lambda: nic.offered("ens1np0")) == 0


def test_what_a_driver_says(fabric):
    counters, driver = inside(fabric.hosts[0].name, lambda: (nic.statistics("ens1np0"), nic.driver("ens1np0")))
    assert "peer_ifindex" in counters
    assert driver["driver"] == "veth"
