# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which interfaces carry the host's default routes, every next hop of them."""

from __future__ import annotations

import json

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._untouchable import default_interfaces

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eno1\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0
eno1\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0
"""
ROUTES6 = (
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 fe800000000000000000000000000001 "
    "00000064 00000001 00000000 00000003 eno2\n"
    "00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 "
    "ffffffff 00000001 00000000 00200200 lo\n"
)


@pytest.fixture
def sysfs(tmp_path):
    (tmp_path / "proc/net").mkdir(parents=True)
    (tmp_path / "proc/net/route").write_text(ROUTES, encoding="utf-8")
    (tmp_path / "proc/net/ipv6_route").write_text(ROUTES6, encoding="utf-8")
    return Sysfs(str(tmp_path))


def test_default_routes_of_both_families(sysfs):
    assert default_interfaces(sysfs) == ["eno1", "eno2"]


def test_the_other_next_hops_of_a_multipath_route_count_too(sysfs):
    hops = [{"gateway": "192.0.2.1", "dev": "eno1"}, {"gateway": "198.51.100.1", "dev": "ens1np0"}]
    asked = []

    def run(argv):
        asked.append(argv)
        return 0, json.dumps([{"dst": "default", "nexthops": hops}, {"dst": "default", "dev": "eno3"}]), ""

    assert default_interfaces(sysfs, run) == ["eno1", "eno2", "eno3", "ens1np0"]
    assert asked == [["ip", "-4", "-j", "route", "show", "default"]]


@pytest.mark.parametrize("answer", [(1, "", "broken"), (0, "", ""), (0, "not json", "")])
def test_an_ip_that_does_not_answer_leaves_what_the_kernel_shows(sysfs, answer):
    assert default_interfaces(sysfs, lambda _argv: answer) == ["eno1", "eno2"]
