# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The probe with programs that stand in for perftest: real processes, real sockets on the loopback, recorded output."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._files import Sysfs
from ansible_collections.railops.rdma.plugins.module_utils._probe import run as probe
from ansible_collections.railops.rdma.tests.unit import machines

PROGRAM = (Path(__file__).parents[2] / "fixtures/programs/perftest").read_text(encoding="utf-8")


GID = "0000:0000:0000:0000:0000:ffff:c000:0202\n"


def plug(root, device, address, rate, lanes):
    """Give an RDMA device a rate, and a PCIe slot of so many lanes."""
    machines.put(root, f"sys/class/infiniband/{device}/ports/1/rate", rate)
    if lanes:
        function = root / f"sys/devices/pci0000:00/0000:00:01.0/{address}"
        for end in ("current", "max"):
            machines.put(function, f"{end}_link_width", str(lanes))
            machines.put(function, f"{end}_link_speed", "32.0 GT/s PCIe")
        (root / f"sys/class/infiniband/{device}/device").symlink_to(function)
        machines.put(root, "sys/bus/pci/devices/.keep", "")
        (root / f"sys/bus/pci/devices/{address}").symlink_to(function)


@pytest.fixture
def tools(tmp_path, monkeypatch):
    folder = tmp_path / "bin"
    for name in ("ib_read_lat", "ib_write_bw"):
        machines.program(folder / name, f"#!{sys.executable}\n{PROGRAM}")
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setattr(probe.Servers.__init__, "__defaults__", (str(tmp_path / "run"),))
    return folder


@pytest.fixture
def sysfs(tmp_path, monkeypatch):
    port = tmp_path / "root/sys/class/infiniband/mlx5_0/ports/1"
    for name, text in {
        "state": "4: ACTIVE\n",
        "link_layer": "Ethernet\n",
        "sm_lid": "0x0\n",
        "gids/0": "fe80:0000:0000:0000:0000:0000:0000:0001\n",
        "gids/2": GID,
        "gids/3": GID,
        "gid_attrs/types/0": "IB/RoCE v1\n",
        "gid_attrs/types/2": "IB/RoCE v1\n",
        "gid_attrs/types/3": "RoCE v2\n",
        "hw_counters/out_of_sequence": "0\n",
    }.items():
        machines.put(port, name, text)
    made = Sysfs(str(tmp_path / "root"))
    monkeypatch.setattr(probe, "Sysfs", lambda: made)
    return port


def free_port(port=0):
    with socket.create_server(("127.0.0.1", port)) as server:
        return server.getsockname()[1]


def task(port, kind="read_lat", **more):
    return {
        "test": kind,
        "rail": "rail1",
        "interface": "ens1np0",
        "address": "192.0.2.2",
        "peer": "node2",
        "peer_address": "192.0.2.34",
        "port": port,
        **more,
    }


@pytest.fixture
def run_module(run_module, tools, sysfs):
    yield lambda end, tests=(), **more: run_module(end=end, token="unit", tests=list(tests), **more)
    run_module(end="none", token="unit")


@pytest.fixture
def port(run_module):
    """Return a free port, on which a server can be started."""
    return free_port()


def test_both_ends(run_module):
    ports = [free_port(), free_port()]
    tests = [task(ports[0]), task(ports[1], "write_bw")]
    served = run_module("server", tests, lifetime=30)
    assert ([test["status"] for test in served["tests"]], served["checks"]) == (["ok", "ok"], [])
    result = run_module("client", tests)
    latency, bandwidth = result["tests"]
    assert result["changed"] is False
    assert (latency["latency_us"], latency["gid_index"], bandwidth["gbits"]) == (3.37, 3, 390.54)
    found = {check["id"]: check for check in result["checks"]}
    assert found["traffic_read_lat"]["observed"] == "3.37 us with node2"
    assert {check["status"] for check in found.values()} == {"ok"}
    assert "traffic_errors" in found


@pytest.mark.parametrize("token", ["..", ".", "a/../..", "", "x" * 65, "a\n"])
def test_token_must_be_a_word(tools, call, tmp_path, token):
    """All of these paths are the test's own: where the check is missing, what they name is deleted."""
    kept = tmp_path / "kept"
    kept.write_text("x")
    for name in (token, str(tmp_path)):
        result = call("rdma_probe", end="none", token=name)
        assert result["failed"] is True
        assert "names a folder" in result["msg"]
    assert kept.read_text() == "x"


def test_the_servers_end_on_request(run_module, port):
    run_module("server", [task(port)], lifetime=30)
    with pytest.raises(OSError, match="in use"):
        free_port(port)
    assert run_module("none")["ended"] == [port]
    assert free_port(port) == port
    assert run_module("none")["ended"] == []


def test_a_server_ends_by_itself(run_module, port):
    run_module("server", [task(port)], lifetime=1)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            assert free_port(port) == port
            return
        time.sleep(0.1)
    pytest.fail("its server runs on")


def test_a_second_server_call_replaces_the_first(run_module, port):
    run_module("server", [task(port)], lifetime=30)
    assert run_module("server", [task(port)], lifetime=30)["tests"][0]["status"] == "ok"


def test_a_number_given_to_another_process_stays_unchanged(run_module, tmp_path):
    folder = tmp_path / "run/unit"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text(json.dumps([{"port": 1, "pid": os.getpid(), "start": "1"}]))
    assert run_module("none")["ended"] == []


@pytest.mark.parametrize(
    ("mood", "seconds", "cause"),
    [pytest.param("lossy", 60, "4791", id="lossy"), pytest.param("hang", 1, "in its time", id="hangs")],
)
def test_a_client_that_fails_says_why(run_module, tools, port, mood, seconds, cause):
    run_module("server", [task(port)], lifetime=30)
    (tools / "mood").write_text(mood)
    result = run_module("client", [task(port)], timeout=seconds)
    check = result["checks"][0]
    assert (result["tests"][0]["status"], check["status"]) == ("deviation", "deviation")
    assert cause in check["cause"]
    assert check["fix"]


def test_a_server_that_cannot_start(run_module, tools):
    (tools / "mood").write_text("deaf")
    result = run_module("server", [task(free_port())], lifetime=30)
    assert result["checks"][0]["id"] == "traffic_read_lat_server"
    assert "not visible" in result["checks"][0]["cause"]


def test_a_port_that_is_taken(run_module):
    with socket.create_server(("127.0.0.1", 0)) as other:
        result = run_module("server", [task(other.getsockname()[1])], lifetime=30)
    assert "taken" in result["checks"][0]["cause"]


@pytest.mark.parametrize(
    ("rate", "lanes", "more", "status", "cause"),
    [
        pytest.param("400 Gb/sec (4X NDR)", 16, {}, "ok", "", id="as-expected"),
        pytest.param("700 Gb/sec", 32, {}, "warning", "below 80% of 700 Gb/s", id="slow"),
        pytest.param("800 Gb/sec (8X NDR)", 16, {}, "warning", "below 80% of 504.1 Gb/s", id="of-the-slot"),
        pytest.param(
            "1600 Gb/sec", 64, {}, "deviation", "half of what port and PCIe slot carry, 1600", id="far-too-slow"
        ),
        pytest.param("1600 Gb/sec", 64, {"min_gbits": 300}, "ok", "", id="a-number-replaces-it"),
        pytest.param("1600 Gb/sec", 64, {"min_gbits": 395}, "deviation", "395", id="below-the-number"),
        pytest.param("1600 Gb/sec", 64, {"min_line_rate_percent": 0}, "ok", "", id="nothing-expected"),
        pytest.param("1600 Gb/sec", 0, {}, "ok", "", id="soft-roce"),
        pytest.param("1600 Gb/sec", 64, {"peer_gbits": 400.0}, "ok", "", id="slower-server"),
        pytest.param("1600 Gb/sec", 64, {"peer_gbits": 800.0}, "deviation", "800 Gb/s", id="far-too-slow-for-both"),
        pytest.param("1600 Gb/sec", 64, {"peer_gbits": 0.0}, "ok", "", id="soft-roce-of-the-server"),
    ],
)
def test_equal_slowness_shows_by_port_and_slot(run_module, tmp_path, port, rate, lanes, more, status, cause):
    plug(tmp_path / "root", "mlx5_0", "0000:1a:00.0", rate, lanes)
    ends = {key: value for key, value in more.items() if key == "peer_gbits"}
    more = {key: value for key, value in more.items() if key != "peer_gbits"}
    (served,) = run_module("server", [task(port, "write_bw")], lifetime=30)["tests"]
    carried = {"400": 400.0, "700": 700.0, "800": 504.1, "1600": 1600.0}[rate.split()[0]]
    assert served["expected_gbits"] == (carried if lanes else 0.0)

    result = run_module("client", [task(port, "write_bw", **ends)], **{"min_line_rate_percent": 80, **more})

    check = result["checks"][0]
    assert check["status"] == status
    assert cause in check["cause"]


@pytest.mark.parametrize(
    ("second", "slots", "expected"),
    [
        pytest.param("0000:1a:00.1", (1, 1), 252.1, id="two-ports-of-a-card-at-once"),
        pytest.param("0000:1a:00.1", (1, 2), 400.0, id="one-after-the-other"),
        pytest.param("0000:1b:00.0", (1, 1), 400.0, id="two-cards"),
    ],
)
def test_rails_that_use_a_slot_at_once_share_what_it_carries(run_module, tmp_path, sysfs, second, slots, expected):
    root = tmp_path / "root"
    plug(root, "mlx5_0", "0000:1a:00.0", "400 Gb/sec (4X NDR)", 16)
    plug(root, "mlx5_1", second, "400 Gb/sec (4X NDR)", 16)
    other = root / "sys/class/infiniband/mlx5_1/ports/1"
    machines.put(other, "state", "4: ACTIVE\n")
    machines.put(other, "gids/3", GID.replace("0202", "0203"))
    machines.put(other, "gid_attrs/types/3", "RoCE v2\n")
    rails = [{"slot": slots[0]}, {"slot": slots[1], "rail": "rail2", "interface": "ens2np0", "address": "192.0.2.3"}]
    tests = [task(free_port(), "write_bw", **rail) for rail in rails]

    for end in ("server", "client"):
        found = run_module(end, tests, lifetime=30)["tests"]
        assert [test["expected_gbits"] for test in found] == [expected, expected], end


def test_an_address_without_gid(run_module):
    result = run_module("client", [task(1, address="192.0.2.3")])
    assert "no RoCE v2 GID" in result["checks"][0]["cause"]
    assert result["checks"][0]["rail"] == "rail1"


def test_check_mode_sends_nothing(run_module):
    assert run_module("client", [task(1)], _ansible_check_mode=True)["tests"] == []
    assert run_module("server", [task(1)], _ansible_check_mode=True)["tests"] == []


def test_perftest_is_missing(run_module, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert "perftest" in run_module("client", [task(1)])["checks"][0]["cause"]


def test_a_port_of_infiniband_without_subnet_manager(run_module, tmp_path, sysfs, port):
    (sysfs / "link_layer").write_text("InfiniBand\n")
    (sysfs / "state").write_text("2: INIT\n")
    (tmp_path / "root/sys/class/net/ib0/device/infiniband/mlx5_0").mkdir(parents=True)
    (tmp_path / "root/sys/class/net/ib0/dev_port").write_text("0\n")
    options = {"tests": [task(port, interface="ib0")], "network": "infiniband"}
    assert "subnet manager" in run_module("client", **options)["checks"][0]["fix"]
    (sysfs / "state").write_text("4: ACTIVE\n")
    run_module("server", lifetime=30, **options)
    (end,) = run_module("client", **options)["tests"]
    assert (end["status"], end["device"], end["gid_index"]) == ("ok", "mlx5_0", -1)
    assert " -d mlx5_0 -i 1 " in end["command"]
