# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What stands on a port, from messages of rtnetlink: a MACsec link loses its MTU with the port, less its header."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import devices
from ansible_collections.railops.rdma.plugins.module_utils._route import netlink as nl
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Host, Link, Snapshot, standing_on
from ansible_collections.railops.rdma.plugins.module_utils._route.want import parse_want

WANT = parse_want({"rails": [{"interface": "ens1np0", "mtu": 4200}]})
PORT = Link("ens1np0", 9000, True, index=2)


def message(index, name, kind, below, mtu, data=b""):
    info = nl.attribute(nl.IFLA_INFO_KIND, kind.encode() + b"\0")
    info += nl.attribute(devices.IFLA_INFO_DATA, data) if data else b""
    parts = [(nl.IFLA_IFNAME, name.encode() + b"\0"), (nl.IFLA_MTU, nl.u32(mtu)), (nl.IFLA_LINK, nl.u32(below))]
    body = b"".join(nl.attribute(key, value) for key, value in [*parts, (nl.IFLA_LINKINFO, info)])
    return nl.LINK_HEAD.pack(0, 1, index, 1, 0) + body


@pytest.fixture
def host(monkeypatch):
    """Return a host with links of these messages on its port."""

    def made(*messages):
        class Played:
            def dump(self, _message):
                return messages

            def close(self):
                pass

        monkeypatch.setattr(devices, "Socket", Played)
        monkeypatch.setattr(devices, "other_namespaces", dict)
        above = devices.standing(WANT, {"ens1np0": PORT})
        return Host(Snapshot({"ens1np0": PORT, **above}, frozenset(), frozenset(), frozenset(), {}))

    return made


@pytest.mark.parametrize(("data", "head"), [(b"", 32), (nl.attribute(devices.IFLA_MACSEC_ICV_LEN, b"\x08"), 24)])
def test_macsec_and_what_stands_on_it_lose_their_mtu_with_the_port(host, data, head):
    found = host(
        message(5, "macsec0", "macsec", 2, 9000 - head, data),
        message(6, "vlan7", "vlan", 5, 9000 - head),
        message(7, "d0", "dummy", 2, 9000),
    )
    assert {link.name: link.head for link in standing_on(PORT, found, 4200)} == {"macsec0": head, "vlan7": head}


def test_what_fits_beside_macsec_s_header_stays(host):
    assert standing_on(PORT, host(message(5, "macsec0", "macsec", 2, 4168)), 4200) == []
    assert [link.mtu for link in standing_on(PORT, host(message(5, "macsec0", "macsec", 2, 4169)), 4200)] == [4169]
