# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links, from messages of rtnetlink as the kernel packs them; tests/kernel asks the real one.

Upper devices of a port: a MACsec link loses its MTU with the port, less its header.
"""

from __future__ import annotations

import pytest

rt = pytest.importorskip("ansible_collections.railops.rdma.plugins.module_utils._route.decode")

from ansible_collections.railops.rdma.plugins.module_utils._route import read
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Link, RouteHost, Snapshot, stacked_on
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import parse_want

WANT = parse_want({"rails": [{"interface": "ens1np0", "mtu": 4200}]})
PORT = Link("ens1np0", 9000, True, index=2)


def message(kind, below=0, index=7, name="x", mtu=1500):
    info = {"IFLA_LINKINFO": {"attrs": [("IFLA_INFO_KIND", kind)]}} if kind else {}
    attrs = {"IFLA_IFNAME": name, "IFLA_MTU": mtu, "IFLA_LINK": below or None, **info}
    return rt.packed("RTM_NEWLINK", 0, attrs, index=index, flags=1)[16:]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(message(""), "", id="a plain port"),
        pytest.param(message("bond"), "bond", id="bond"),
        pytest.param(message("vlan", below=3), "vlan", id="vlan"),
        pytest.param(message("ipoib"), "", id="an InfiniBand port"),
        pytest.param(message("ipoib", below=3), "ipoib", id="an InfiniBand partition"),
    ],
)
def test_the_kind_comes_from_the_message(body, kind):
    assert rt.kind_of(rt.decoded("LINK", body)) == kind


@pytest.fixture
def host(monkeypatch):
    """Return a host with links of these messages on its port."""

    def made(*messages):
        monkeypatch.setattr(read, "other_namespaces", dict)
        monkeypatch.setattr(read.Reader, "_dump", lambda *_question: messages)
        above = read.stacked_links(WANT, {"ens1np0": PORT}, read.Reader()._stacked)
        return RouteHost(Snapshot({"ens1np0": PORT, **above}, frozenset(), frozenset(), frozenset(), {}))

    return made


def test_macsec_and_upper_devices_lose_their_mtu_with_the_port(host):
    found = host(
        message("macsec", 2, 5, "macsec0", 8968),
        message("vlan", 5, 6, "vlan7", 8968),
        message("dummy", 2, 7, "d0", 9000),
    )
    assert {link.name: link.head for link in stacked_on(PORT, found, 4200)} == {"macsec0": 32, "vlan7": 32}


def test_what_fits_beside_macsec_s_header_stays(host):
    assert stacked_on(PORT, host(message("macsec", 2, 5, "macsec0", 4168)), 4200) == []
    assert [link.mtu for link in stacked_on(PORT, host(message("macsec", 2, 5, "macsec0", 4169)), 4200)] == [4169]
