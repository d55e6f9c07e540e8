# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._cabling.lldp import parse_frame, parse_lldp

# What lldpd 1.0.16 answered about frames with these TLVs.
RECORDED = (Path(__file__).parents[3] / "data/lldpcli-1.0.16-json0.json").read_text(encoding="utf-8")
DCBX = {
    "ets": {
        "willing": False,
        "classes": 7,
        "priority_tc": [0, 0, 0, 3, 0, 0, 6, 0],
        "bandwidth": [50, 0, 0, 50, 0, 0, 0, 0],
        "algorithm": ["ets", "strict", "strict", "ets", "strict", "strict", "strict", "strict"],
    },
    "pfc": {"willing": False, "capability": 8, "enabled": [3]},
    "app": [{"priority": 3, "selector": "dscp", "value": 26}, {"priority": 6, "selector": "dscp", "value": 48}],
}
LEAF1 = {
    "switch": "leaf1",
    "switch_id": "00:00:5e:00:53:01",
    "port": "swp1",
    "description": "rail1 node1",
    "is_switch": True,
    "vlan": 101,
    "max_frame": 9216,
    "dcbx": DCBX,
}


def tlv(kind, value):
    return (kind << 9 | len(value)).to_bytes(2, "big") + value


def frame(*more, ttl=120, chassis=b"\x04\x00\x00\x5e\x00\x53\x01", port=b"\x05swp1"):
    parts = [tlv(1, chassis), tlv(2, port), tlv(3, ttl.to_bytes(2, "big")), *more, tlv(0, b"")]
    return bytes.fromhex("0180c200000e00005e00530188cc") + b"".join(parts) + bytes(20)


def recorded(**changes):
    data = json.loads(RECORDED)
    data["lldp"][0]["interface"][0].update(changes)
    return data


def test_what_lldpd_answered_is_read_completely():
    assert parse_lldp(RECORDED) == {"ens1np0": LEAF1}


def test_a_frame_is_read_as_lldpd_reads_it():
    sent = frame(
        tlv(4, b"rail1 node1"),
        tlv(5, b"leaf1"),
        tlv(7, b"\0\x14\0\x14"),
        tlv(127, bytes.fromhex("0080c2010065")),
        tlv(127, bytes.fromhex("00120f042400")),
        tlv(127, bytes.fromhex("0080c209 07000300603200003200000000 0200000200000000")),
        tlv(127, bytes.fromhex("0080c20b0808")),
        tlv(127, bytes.fromhex("0080c20c0065001ac50030")),
    )
    assert parse_frame(sent) == LEAF1


def test_a_neighbor_without_name_is_its_chassis():
    found = parse_frame(frame(chassis=b"\x05\x01\xc0\x00\x02\xfa", port=b"\x03\x00\x00\x5e\x00\x53\x02"))
    assert (found["switch"], found["port"], found["is_switch"]) == ("192.0.2.250", "00:00:5e:00:53:02", False)
    named = recorded(chassis=[{"id": [{"type": "mac", "value": "00:00:5e:00:53:01"}]}])
    assert parse_lldp(json.dumps(named))["ens1np0"]["switch"] == "00:00:5e:00:53:01"


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param(frame(ttl=0), id="it-leaves"),
        pytest.param(frame()[:20], id="cut-off"),
        pytest.param(frame()[:12] + b"\x08\x00" + frame()[14:], id="another-protocol"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_what_is_no_neighbor(broken):
    assert parse_frame(broken) is None


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
