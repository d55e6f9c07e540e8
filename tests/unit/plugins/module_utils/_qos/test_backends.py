# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._qos import backends

OS_CONTROLLED = """\
DCBX mode: OS controlled
Priority trust state: dscp
dscp2prio mapping:
\tprio:0 dscp:07,06,05,04,03,02,01,00,
\tprio:3 dscp:31,30,29,28,27,26,25,24,
\tprio:5 dscp:47,46,45,44,43,42,41,40,
\tprio:5 dscp:33,
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   1   0   0
\tbuffer      0   0   0   1   0   1   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
\t priority:  1
"""
FIRMWARE_CONTROLLED = """\
****** WARNING: lldpad service is running and may overwrite your settings ******

DCBX mode: Firmware controlled
Priority trust state: pcp
default priority:
Receive buffer size (bytes): 130944,0,0,0,0,0,0,0,total_size=262016
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   0   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor
"""


def test_the_vendors_text_in_host_mode():
    policy = backends.parse_mlnx_qos(OS_CONTROLLED)
    assert (policy["dcbx"], policy["trust"], policy["pfc"]) == ("host", "dscp", [3, 5])
    assert {dscp: policy["dscp_map"][dscp] for dscp in (0, 26, 33, 40, 47)} == {0: 0, 26: 3, 33: 5, 40: 5, 47: 5}


def test_the_vendors_text_in_firmware_mode_and_with_buffers():
    policy = backends.parse_mlnx_qos(FIRMWARE_CONTROLLED)
    assert policy == {"dcbx": "firmware", "trust": "pcp", "pfc": [], "dscp_map": {}}


def test_another_text_is_no_answer():
    assert backends.parse_mlnx_qos("Interface name is required")["pfc"] is None


def test_a_real_kernel_says_that_loopback_has_none():
    with pytest.raises(backends.QosError, match="Operation not supported"):
        backends.read_dcb("lo")
    with pytest.raises(backends.QosError, match="No such device"):
        backends.read_dcb("rr-none")
    assert backends.read_ets("lo") is None
