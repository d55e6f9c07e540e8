# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Pings between pods, where no RDMA is to be measured: the command, and what it prints means. Pure."""

from __future__ import annotations

import re
import typing as t

from .latency import LatencyOutcome

if t.TYPE_CHECKING:
    from .._probe.schedule import HostPair
    from .commands import CommandResult

CHECK = "pod_ping"
COUNT = 3
HEADERS = {4: 28, 6: 48}
"""Bytes of IP and ICMP headers, by family."""
_LOSS, _TIMES = re.compile(r"(\d{1,9}(?:\.\d+)?)% packet loss"), re.compile(r"= [\d.]+/(\d{1,9}(?:\.\d+)?)/")
_IMAGE = "Give the test application an image with ping (rail_objects_test_image), or set verify_pods to look."
_PATH = "Look at pod_interface and pod_table of both pods, and compare the MTU of pods, nodes and leaves."


def command(mtu: int, interface: str, source: str, address: str, seconds: int) -> list[str]:
    """Return the ping of an address by an interface; iputils and busybox know the options.

    Without its source, the kernel skips the rail's table and takes an address of another subnet for on-link.


    :param mtu: of the rail, as large as which packets are; 0: not known.
    :param seconds: that it may take.
    """
    size = ["-s", str(mtu - HEADERS[6 if ":" in address else 4])] if mtu else []
    return ["ping", "-q", "-c", str(COUNT), "-w", str(seconds), *size, "-I", interface, "-I", source, address]


def read(pair: HostPair, client: CommandResult) -> LatencyOutcome:
    """Return what a ping printed: the typical time, or why there is none."""
    loss, times = _LOSS.search(client.output), _TIMES.search(client.output)
    if not loss:
        reported = client.problem or client.output.strip().rpartition("\n")[2] or f"exit code {client.code}"
        return LatencyOutcome(pair, None, f"the pod cannot ping: {reported}", _IMAGE, skipped=True)
    if float(loss[1]) or not times:
        return LatencyOutcome(pair, None, f"{loss[1]}% of {COUNT} echo requests got no answer", _PATH)
    return LatencyOutcome(pair, round(float(times[1]) * 1000, 1))
