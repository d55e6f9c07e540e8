# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The kind of a link, from messages as the kernel packs them; tests/kernel asks the real one."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._route.devices import kind_of
from ansible_collections.railops.rdma.plugins.module_utils._route.netlink import (
    IFLA_IFNAME,
    IFLA_INFO_KIND,
    IFLA_LINK,
    IFLA_LINKINFO,
    LINK_HEAD,
    attribute,
    u32,
)


def message(kind: bytes, index: int = 7, below: int | None = None) -> bytes:
    parts = [LINK_HEAD.pack(0, 1, index, 0, 0), attribute(IFLA_IFNAME, b"x\0")]
    parts += [attribute(IFLA_LINK, u32(below))] if below else []
    parts += [attribute(IFLA_LINKINFO, attribute(IFLA_INFO_KIND, kind))] if kind else []
    return b"".join(parts)


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
    assert kind_of(body) == kind
