# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cabling.lldp import dcbx, parse_lldp

# What lldpd 1.0.16 answered about frames with these TLVs.
RECORDED = (Path(__file__).parents[3] / "data/lldpcli-1.0.16-json0.json").read_text(encoding="utf-8")
LEAF1 = {
    "switch": "leaf1",
    "switch_id": "00:00:5e:00:53:01",
    "port": "swp1",
    "description": "rail1 node1",
    "is_switch": True,
    "dcbx": {
        "ets": {"priority_tc": [0, 0, 0, 3, 0, 0, 6, 0], "bandwidth": [50, 0, 0, 50, 0, 0, 0, 0]},
        "pfc": [3],
        "dscp": {"26": 3, "48": 6},
    },
}


def recorded(**changes):
    data = json.loads(RECORDED)
    data["lldp"][0]["interface"][0].update(changes)
    return data


def test_what_lldpd_answered_is_read_completely():
    assert parse_lldp(RECORDED) == {"ens1np0": LEAF1}


@pytest.mark.parametrize("number", [8, 15])
def test_a_reserved_traffic_class_is_no_class(number):
    """Eight classes have a bandwidth: 802.1Q reserves the other numbers of its four bits."""
    ets = bytes([7, number << 4, *[0] * 3, 100, *[0] * 7, 2, *[0] * 7])
    assert dcbx([(9, ets), (11, bytes([8, 8]))]) == {"pfc": [3]}


def test_a_neighbor_without_name_is_its_chassis():
    named = recorded(chassis=[{"id": [{"type": "mac", "value": "00:00:5e:00:53:01"}]}])
    assert parse_lldp(json.dumps(named))["ens1np0"]["switch"] == "00:00:5e:00:53:01"


def test_a_nics_own_agent_speaks_too():
    data = recorded()
    nic = {**data["lldp"][0]["interface"][0], "chassis": [{"name": [{"value": "nic"}], "capability": []}]}
    data["lldp"][0]["interface"].insert(0, nic)
    assert parse_lldp(json.dumps(data))["ens1np0"]["switch"] == "leaf1"


def test_no_neighbor():
    # What lldpd 1.0.16 answers then.
    assert parse_lldp('{"lldp": [{}]}') == {}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lldp": {}}', "LLDP neighbors:"])
def test_something_else_is_refused(text):
    with pytest.raises(ValueError, match=r".+"):
        parse_lldp(text)
