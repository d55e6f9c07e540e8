# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Links, from messages of rtnetlink as the kernel packs them; tests/kernel asks the real one."""

from __future__ import annotations

import pytest

rt = pytest.importorskip("ansible_collections.railops.rdma.plugins.module_utils._route.decode")


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
