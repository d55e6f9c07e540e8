# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._rdma.lldp import parse_lldp


def neighbour(name="leaf1", port="swp1", capability="Bridge"):
    body = {
        "id": {"type": "mac", "value": "00:00:5e:00:53:01"},
        "descr": "a switch",
        "capability": [{"type": capability, "enabled": True}, {"type": "Wlan", "enabled": False}],
    }
    return {
        "via": "LLDP",
        "rid": "1",
        "age": "0 day, 00:00:10",
        "chassis": {name: body} if name else body,
        "port": {"id": {"type": "ifname", "value": port}, "descr": f"to node ({port})"},
    }


LEAF1 = {"switch": "leaf1", "switch_id": "00:00:5e:00:53:01", "port": "swp1", "description": "to node (swp1)"}


@pytest.mark.parametrize(
    ("interface", "expected"),
    [
        pytest.param({"ens1np0": neighbour()}, {"ens1np0": LEAF1}, id="one-interface-stands-alone"),
        pytest.param(
            [{"ens2np0": neighbour("leaf2", "swp1")}, {"ens1np0": neighbour()}],
            {"ens1np0": LEAF1, "ens2np0": {**LEAF1, "switch": "leaf2"}},
            id="several-stand-in-a-list",
        ),
        pytest.param(
            [{"ens1np0": neighbour("nic", "p0", "Station")}, {"ens1np0": neighbour()}],
            {"ens1np0": LEAF1},
            id="a-nics-own-agent-speaks-too",
        ),
        pytest.param(
            {"ens1np0": neighbour(None)},
            {"ens1np0": {**LEAF1, "switch": "00:00:5e:00:53:01"}},
            id="a-switch-with-no-name",
        ),
        pytest.param(None, {}, id="no-neighbour"),
    ],
)
def test_parse(interface, expected):
    data = {"lldp": {"interface": interface} if interface else {}}
    assert parse_lldp(json.dumps(data)) == expected


@pytest.mark.parametrize("text", ["", "[]", "{}", "LLDP neighbors:"])
def test_something_else_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_lldp(text)
