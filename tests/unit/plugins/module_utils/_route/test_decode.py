# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Messages by pyroute2's classes and what is made of them; tests/kernel asks the real kernel."""

from __future__ import annotations

import pytest

pytest.importorskip("pyroute2")

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._route import decode as rt
from ansible_collections.railops.rdma.plugins.module_utils._route.model import Hop
from ansible_collections.railops.rdma.plugins.module_utils._route.netlink import attributes

HEADER, FIXED = 16, 12


def decoder():
    made = rt.Decoder(Sysfs())
    made._name.update({3: "ens1np0", 4: "ens2np0"})
    return made


def route_of(attrs, **fields):
    fields = {"family": 2, "type": 1, "proto": 4, **fields}
    return decoder()._route(rt.packed("RTM_NEWROUTE", 0, attrs, **fields)[HEADER:])


def test_attributes_that_pyroute2_lacks_are_sent():
    sent = rt.packed("RTM_GETROUTE", 0, {"RTA_DST": "192.0.2.1", "RTA_SPORT": 50000, "RTA_OIF": None}, family=2)
    assert attributes(sent, HEADER + FIXED) == {1: bytes([192, 0, 2, 1]), 28: (50000).to_bytes(2, "big")}


def test_zero_is_a_value_and_is_sent():
    sent = rt.packed("RTM_GETROUTE", 0, {"RTA_MARK": 0, "RTA_UID": 0, "RTA_GATEWAY": ""}, family=2)
    assert attributes(sent, HEADER + FIXED) == {16: bytes(4), 25: bytes(4)}


def test_a_route_into_another_packet_is_not_managed():
    plain = {"RTA_DST": "192.0.2.0", "RTA_OIF": 3, "RTA_GATEWAY": "192.0.2.1", "RTA_TABLE": 1001}
    assert route_of(plain, dst_len=27).other == ""
    assert route_of({**plain, "RTA_ENCAP_TYPE": 2}, dst_len=27).other == "encap"


def test_a_multipath_route_has_all_its_hops():
    hops = [{"oif": 3, "attrs": [("RTA_GATEWAY", "192.0.2.1")]}, {"oif": 4, "attrs": [("RTA_GATEWAY", "192.0.2.33")]}]
    found = route_of({"RTA_MULTIPATH": hops})
    assert found.other == "multipath"
    assert found.next_hops == (Hop("ens1np0", "192.0.2.1"), Hop("ens2np0", "192.0.2.33"))
