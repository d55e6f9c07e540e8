# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pings between pods: what is run, and what iputils, busybox and the runtime print."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._pods import latency, ping
from ansible_collections.railops.rdma.plugins.module_utils._pods.commands import CommandResult
from ansible_collections.railops.rdma.plugins.module_utils._probe.schedule import HostPair

PAIR = HostPair("node1", "node2", "rail1", "read_lat", 18515)
IPUTILS = """PING 172.17.0.35 (172.17.0.35) from 172.17.0.3 net1: 4172(4200) bytes of data.

--- 172.17.0.35 ping statistics ---
3 packets transmitted, {} received, {}% packet loss, time 2031ms
"""
TIMES = "rtt min/avg/max/mdev = 0.041/0.052/0.070/0.012 ms\n"
BUSYBOX = """3 packets transmitted, 3 packets received, 0% packet loss
round-trip min/avg/max = 0.041/0.052/0.070 ms
"""
NO_PING = 'exec failed: exec: "ping": executable file not found in $PATH'


@pytest.mark.parametrize(
    ("ended", "latency_us", "cause", "skipped"),
    [
        pytest.param(CommandResult(IPUTILS.format(3, 0) + TIMES, 0), 52, "", False, id="iputils"),
        pytest.param(CommandResult(BUSYBOX, 0), 52, "", False, id="busybox"),
        pytest.param(CommandResult(IPUTILS.format(1, 66.6667) + TIMES, 0), None, "66.6667% of 3", False, id="loss"),
        pytest.param(CommandResult(IPUTILS.format(0, 100), 1, "exit code 1"), None, "100% of 3", False, id="no-answer"),
        pytest.param(CommandResult(IPUTILS.format(3, "..") + TIMES, 0), None, "0.052", True, id="no-number"),
        pytest.param(CommandResult("", None, NO_PING), None, NO_PING, True, id="no-ping"),
        pytest.param(
            CommandResult("ping: socket: Operation not permitted\n", 2), None, "not permitted", True, id="no-rights"
        ),
    ],
)
def test_what_a_ping_prints_means(ended, latency_us, cause, skipped):
    outcome = ping.read(PAIR, ended)
    assert (outcome.latency_us, outcome.skipped) == (latency_us, skipped)
    assert cause in outcome.cause
    assert bool(outcome.fix) == bool(cause)


@pytest.mark.parametrize(
    ("mtu", "source", "address", "size"),
    [
        (4200, "172.17.0.3", "172.17.0.35", ["-s", "4172"]),
        (4200, "fd00::3", "fd00::35", ["-s", "4152"]),
        (0, "172.17.0.3", "172.17.0.35", []),
    ],
)
def test_packets_have_the_rails_mtu_and_address(mtu, source, address, size):
    words = ping.command(mtu, "net1", source, address, 9)
    assert words == ["ping", "-q", "-c", "3", "-w", "9", *size, "-I", "net1", "-I", source, address]


def test_a_check_names_the_pings():
    (check,) = latency.latency_checks([ping.read(PAIR, CommandResult(BUSYBOX, 0))], ping.CHECK)
    assert (check["id"], check["status"]) == ("pod_ping", "ok")
    assert check["planned"] == "a pod on node2 answers pings"
