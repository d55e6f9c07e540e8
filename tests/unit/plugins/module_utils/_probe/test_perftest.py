# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._probe.perftest import (
    argv,
    explain,
    parse,
    threshold_failure,
)
from ansible_collections.railops.rdma.plugins.module_utils._probe.sysfs import Port

ROCE = Port("mlx5_0", 1, "ACTIVE", gid_index=3)
LATENCY = (Path(__file__).resolve().parents[3] / "fixtures/perftest/read_lat_client.txt").read_text(encoding="utf-8")
PREAMBLE = LATENCY.partition(" #bytes")[0]
BANDWIDTH_GBITS = (
    PREAMBLE
    + """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 5008.116000 != 3295.212000. CPU Frequency is not max.
 65536      5000             390.64             390.54\t\t     0.744912
---------------------------------------------------------------------------------------
"""
)
BANDWIDTH_CPU = (
    PREAMBLE
    + """\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]    CPU_Util[%]
 65536      279928           0.00               48.91              0.093293        1.73
"""
)


@pytest.mark.parametrize(
    ("test", "output", "wanted"),
    [
        pytest.param("read_lat", LATENCY, {"latency_us": 2.31, "latency_max_us": 9.87}, id="latency-iterations"),
        pytest.param("write_bw", BANDWIDTH_GBITS, {"gbits": 390.54}, id="gbits-with-warning-between"),
        pytest.param("write_bw", BANDWIDTH_GBITS.replace("390.54", "nan"), None, id="no-number"),
        pytest.param("write_bw", BANDWIDTH_CPU, {"gbits": 48.91}, id="cpu-column"),
        pytest.param("read_lat", PREAMBLE, None, id="no-table"),
        pytest.param("write_bw", BANDWIDTH_GBITS.split(" 65536", maxsplit=1)[0], None, id="heading-without-row"),
        pytest.param("write_bw", LATENCY, None, id="the-other-test"),
        pytest.param("read_lat", "", None, id="nothing"),
    ],
)
def test_results_are_read(test, output, wanted):
    assert parse(test, output) == wanted


@pytest.mark.parametrize(
    ("output", "code", "cause"),
    [
        pytest.param(
            "Couldn't connect to 192.0.2.2:18515\nUnable to init the socket connection", 1, "TCP", id="connect"
        ),
        pytest.param(
            " Failed to modify QP 17 to RTR\n Unable to Connect the HCA's through the link", 1, "path", id="rtr"
        ),
        pytest.param("Failed to bind socket: Address already in use", 1, "taken", id="port"),
        pytest.param("Couldn't allocate MR\n Couldn't create IB resources", 1, "used up", id="memory"),
        pytest.param("something new\n---\n", 3, "exit code 3", id="unknown"),
    ],
)
def test_failures_are_explained(output, code, cause):
    why = explain(output, code)
    assert cause in why.cause
    assert why.fix


@pytest.mark.parametrize(
    ("known", "own", "end"),
    [
        ("  --source_ip  Source IP", "192.0.2.2", "-n 1 --source_ip=192.0.2.2"),
        ("  --bind_source_ip  Source IP --ipv6-addr", "2001:db8::2", "-n 1 --bind_source_ip=2001:db8::2 --ipv6-addr"),
        ("  --source_ip --use_cuda_dmabuf", "192.0.2.2", "-n 1 --source_ip=192.0.2.2"),
        ("", "2001:db8::2", "-n 1"),
    ],
)
def test_options_that_changed_their_names(known, own, end):
    assert " ".join(argv("read_lat", ROCE, own, 1, known, iterations=1)).endswith(end)


def test_memory_of_gpus():
    assert "--use_cuda=3" in argv("read_lat", ROCE, "192.0.2.2", 1, "", gpu=3)
    assert "--use_cuda_dmabuf" not in argv("read_lat", ROCE, "192.0.2.2", 1, "--use_cuda", gpu=3)
    assert "--use_cuda_dmabuf" in argv("read_lat", ROCE, "192.0.2.2", 1, "--use_cuda --use_cuda_dmabuf", gpu=3)


def test_command_lines():
    have = "--source_ip"
    server = argv("read_lat", ROCE, "192.0.2.2", 18515, have, iterations=100)
    assert " ".join(server) == "ib_read_lat -F -d mlx5_0 -i 1 -p 18515 -x 3 -n 100 --source_ip=192.0.2.2"
    client = argv("write_bw", ROCE, "192.0.2.2", 18516, have, server="192.0.2.34")
    assert client[-1] == "192.0.2.34"
    assert "--report_gbits" in client
    assert not {"-D", "-u"} & {*server, *client}
    under_load = argv("write_bw", ROCE, "192.0.2.2", 18516, have, server="192.0.2.34", iterations=100, seconds=6)
    assert " ".join(under_load[:-1]).endswith("-x 3 -D 6 -u 18 --report_gbits --source_ip=192.0.2.2")
    assert "-x" not in argv("read_lat", Port("mlx5_0", 1, ""), "192.0.2.2", 1, "")


def test_a_latency_has_no_limit_unless_one_is_set():
    assert threshold_failure("read_lat", {"latency_us": 5.0, "latency_max_us": 9.0}, {"max_latency_us": 0}) is None
    assert threshold_failure("read_lat", {"latency_us": 5.0, "latency_max_us": 9.0}, {"max_latency_us": 4}) is not None
