# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links, from messages of rtnetlink as the kernel packs them; tests/kernel asks the real one.

Of what stands on a port: a MACsec link loses its MTU with the port, less its header.
"""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route import devices
from ansible_collections.railops.rdma.plugins.module_utils._route import netlink as nl
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Link, RouteHost, Snapshot, standing_on
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_want

WANT = parse_want({"rails": [{"interface": "ens1np0", "mtu": 4200}]})
PORT = Link("ens1np0", 9000, True, index=2)


def message(kind, below=0, index=7, name="x", mtu=1500, data=b""):
    info = nl.attribute(nl.IFLA_INFO_KIND, kind)
    info += nl.attribute(devices.IFLA_INFO_DATA, data) if data else b""
    parts = [(nl.IFLA_IFNAME, name.encode() + b"\0"), (nl.IFLA_MTU, nl.u32(mtu))]
    parts += [(nl.IFLA_LINK, nl.u32(below))] if below else []
    parts += [(nl.IFLA_LINKINFO, info)] if kind else []
    return nl.LINK_HEAD.pack(0, 1, index, 1, 0) + b"".join(nl.attribute(key, value) for key, value in parts)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(message(b""), "", id="a plain port"),
        pytest.param(message(b"bond\0"), "bond", id="bond"),
        pytest.param(message(b"vlan", below=3), "vlan", id="without its zero"),
        pytest.param(message(b"ipoib\0"), "", id="an InfiniBand port"),
        pytest.param(message(b"ipoib\0", below=3), "ipoib", id="an InfiniBand partition"),
    ],
)
def test_the_kind_comes_from_the_message(body, kind):
    assert devices.kind_of(body) == kind


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
        return RouteHost(Snapshot({"ens1np0": PORT, **above}, frozenset(), frozenset(), frozenset(), {}))

    return made


@pytest.mark.parametrize(("data", "head"), [(b"", 32), (nl.attribute(devices.IFLA_MACSEC_ICV_LEN, b"\x08"), 24)])
def test_macsec_and_what_stands_on_it_lose_their_mtu_with_the_port(host, data, head):
    found = host(
        message(b"macsec\0", 2, 5, "macsec0", 9000 - head, data),
        message(b"vlan\0", 5, 6, "vlan7", 9000 - head),
        message(b"dummy\0", 2, 7, "d0", 9000),
    )
    assert {link.name: link.head for link in standing_on(PORT, found, 4200)} == {"macsec0": head, "vlan7": head}


def test_what_fits_beside_macsec_s_header_stays(host):
    assert standing_on(PORT, host(message(b"macsec\0", 2, 5, "macsec0", 4168)), 4200) == []
    assert [link.mtu for link in standing_on(PORT, host(message(b"macsec\0", 2, 5, "macsec0", 4169)), 4200)] == [4169]
