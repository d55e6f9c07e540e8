# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._pods import latency
from ansible_collections.railops.rdma.plugins.module_utils._pods.checks import Network, PodNode
from ansible_collections.railops.rdma.plugins.module_utils._pods.commands import CommandResult
from ansible_collections.railops.rdma.plugins.module_utils._probe.schedule import HostPair
from ansible_collections.railops.rdma.tests.unit.machines import program, put

PRINTED = Path(__file__).resolve().parents[3] / "fixtures/perftest"
PAIR = HostPair("node1", "node2", "rail1", "read_lat", 18515)
LIMIT = 8.0


def printed(name):
    return (PRINTED / f"{name}.txt").read_text(encoding="utf-8")


def network(rail, **more):
    given = {"kind": "macvlan", "subnets": ("172.17.0.0/27",), "gateways": ()}
    return Network(rail=rail, name=f"spiderpool/fabric-{rail}", **{"mtu": 4200, **given, **more})


def node(name, *rails):
    return PodNode(name, tuple(network(rail) for rail in rails))


@pytest.mark.parametrize(
    ("log", "code", "server", "latency_us", "cause"),
    [
        pytest.param("read_lat_client", 0, "", 2.31, None, id="measured"),
        pytest.param("read_lat_lost", 1, "", None, "does not answer", id="lost"),
        pytest.param("read_lat_no_server", 1, "", None, "cannot be reached over TCP", id="no-server"),
        pytest.param("read_lat_server", 0, "", None, "holds no result", id="cut-off"),
        pytest.param("read_lat_server", 124, "", None, "did not end in its time", id="time-is-up"),
        pytest.param("read_lat_server", 143, "", None, "did not end in its time", id="time-is-up-by-busybox"),
        pytest.param("read_lat_server", None, "", None, "did not end in its time", id="does-not-end"),
        pytest.param("", 1, "railops: no RDMA device has the address 172.17.0.35\n", None, "GID", id="server-first"),
        pytest.param("", 3, "", None, "exit code 3", id="silent"),
        pytest.param("railops: the image has no ib_read_lat\n", 3, "", None, "no ib_read_lat", id="no-perftest"),
        pytest.param(
            "sh: 8: ip: not found\nrailops: no RDMA device has the address of net1\n",
            4,
            "",
            None,
            "has no ip",
            id="no-ip",
        ),
        pytest.param("2 1000 x y z\n#bytes\n\x00\x1b[31m", 0, "", None, "holds no result", id="garbage"),
    ],
)
def test_what_is_printed_means(log, code, server, latency_us, cause):
    text = printed(log) if log and (PRINTED / f"{log}.txt").exists() else log
    outcome = latency.read(PAIR, CommandResult(text, code), CommandResult(server, 4), LIMIT)
    assert (outcome.latency_us, not outcome.cause) == (latency_us, cause is None)
    if cause:
        assert cause in outcome.cause
        assert outcome.fix


@pytest.mark.parametrize(
    ("client", "server", "cause"),
    [
        ("sh: 46: exec: timeout: not found", "", "has no timeout"),
        ("ethernet_read_keys: Couldn't read remote address", "Couldn't listen to port 18515", "another run tests"),
    ],
)
def test_what_says_nothing_of_the_rail_is_not_measured(client, server, cause):
    (check,) = latency.latency_checks([latency.read(PAIR, CommandResult(client, 1), CommandResult(server, 1), LIMIT)])
    assert (check["status"], check["node"], check["rail"]) == ("skipped", "node1", "rail1")
    assert cause in check["cause"]
    assert check["fix"]


def test_a_port_that_is_taken_and_not_reached_is_the_rails_fault():
    """A server of an earlier run that no client found waits until its time is over."""
    ends = CommandResult(printed("read_lat_no_server"), 1), CommandResult("Couldn't listen to port 18515", 1)
    (check,) = latency.latency_checks([latency.read(PAIR, *ends, LIMIT)])
    assert check["status"] == "deviation"
    assert "cannot be reached over TCP" in check["cause"]


def test_a_failure_with_a_node_that_went_down_is_not_measured():
    lost = latency.without_address(PAIR, "server")
    (check,) = latency.latency_checks([latency.without_lost_nodes(lost, {"node2"})])
    assert (check["status"], check["node"], check["cause"]) == ("skipped", "node1", "node2 is down")
    assert "kubectl describe node" in check["fix"]
    good = latency.LatencyOutcome(PAIR, 2.0)
    assert latency.without_lost_nodes(good, {"node2"}) is good
    assert latency.without_lost_nodes(lost, {"node3"}) is lost


def test_the_threshold_is_that_of_hosts():
    slow = printed("read_lat_client").replace("2.31", "9.5")
    outcome = latency.read(PAIR, CommandResult(slow, 0), CommandResult(), LIMIT)
    assert outcome.latency_us == 9.5
    assert "above the limit of 8 us" in outcome.cause
    (check,) = latency.latency_checks([outcome])
    assert (check["status"], check["rail"], check["node"]) == ("deviation", "rail1", "node1")
    assert check["observed"] == "9.5 us with a pod on node2"


def test_pairs_of_a_client_are_one_check_with_the_bad_ones_named():
    good = latency.LatencyOutcome(PAIR, 2.0)
    other = latency.LatencyOutcome(replace(PAIR, rail="rail2"), 2.1)
    lost = latency.without_address(replace(PAIR, server="node3"), "server")
    first, second = latency.latency_checks([good, lost, other])
    assert (first["status"], first["observed"]) == ("deviation", "nothing from node3")
    assert first["planned"] == "a pod on node2, node3 answers RDMA reads"
    assert (second["status"], second["observed"]) == ("ok", "2.1 us with a pod on node2")


def test_tests_are_over_the_rails_of_both_ends_each_by_its_own_port():
    nodes = {"a": node("a", "rail1", "rail2"), "b": node("b", "rail1", "rail2"), "c": node("c", "rail1")}
    nodes["d"] = node("d", "rail3")
    found = latency.tests(nodes, ["a", "b", "c", "d"], "ring", 3, 0)
    assert [(pair.rail, pair.client, pair.server) for pair in found] == [
        ("rail1", "a", "b"),
        ("rail2", "a", "b"),
        ("rail1", "b", "c"),
    ]
    assert latency.tests(nodes, ["a"], "full", 3, 0) == []
    every = latency.tests({name: node(name, "rail1", "rail2") for name in "abcde"}, "abcde", "full", 3, 0)
    assert len({(pair.server, pair.port) for pair in every}) == len(every) == 5 * 4 * 2


@pytest.mark.parametrize("mode", ["ring", "full"])
@pytest.mark.parametrize("most", [1, 2, 8])
def test_no_node_is_twice_in_a_round(mode, most):
    names = [f"node{number}" for number in range(1, 8)]
    todo = latency.tests({name: node(name, "rail1", "rail2") for name in names}, names, mode, 3, 0)
    found = list(latency.rounds(todo, most))
    for now in found:
        ends = [name for pairs in now for name in (pairs[0].client, pairs[0].server)]
        assert 0 < len(now) <= most
        assert len(set(ends)) == len(ends)
        assert all(len({(pair.client, pair.server) for pair in pairs}) == 1 for pairs in now)
    assert sorted(map(repr, todo)) == sorted(repr(pair) for now in found for pairs in now for pair in pairs)


@pytest.mark.parametrize(
    ("entry", "subnets", "wanted"),
    [
        ({"ips": ["fd00::5", "172.17.0.35"]}, ("172.17.0.32/27", "fd00::/64"), ("net1", "172.17.0.35")),
        ({"ips": ["fd00::5"]}, ("fd00::/64",), ("net1", "fd00::5")),
        ({"ips": ["$(reboot)"]}, ("172.17.0.32/27",), ("", "")),
        ({"interface": "net1; reboot", "ips": ["172.17.0.35"]}, ("172.17.0.32/27",), ("", "")),
        ({}, ("172.17.0.32/27",), ("", "")),
        ({}, (), ("net1", "10.0.0.9")),
        (None, (), ("", "")),
    ],
)
def test_rail_interface_in_a_pod(entry, subnets, wanted):
    """What Multus noted is data: each user who may change the pod may have written it."""
    made = network("rail1", subnets=subnets)
    rows = [] if entry is None else [{"name": made.name, "interface": "net1", **entry}]
    notes = {"k8s.v1.cni.cncf.io/network-status": json.dumps(rows)}
    pod = {"metadata": {"annotations": notes}, "status": {"podIP": "10.0.0.9"}}
    assert latency.place_of(PodNode("node1", (made,)), "rail1", pod) == wanted


class Machine:
    """A folder that represents a pod: its /sys and /proc, and the programs of its image."""

    def __init__(self, folder):
        self.folder = folder
        self.bin = folder / "bin"
        for name in ("cat", "grep", "sed", "sleep", "timeout"):
            self.program(name, f'exec /bin/{name} "$@"')

    def program(self, name, text):
        program(self.bin / name, text)

    def file(self, name, text):
        put(self.folder, name, f"{text}\n")

    def gid(self, device, index, gid, kind):
        port = f"sys/class/infiniband/{device}/ports/1"
        self.file(f"{port}/gids/{index}", gid)
        self.file(f"{port}/gid_attrs/types/{index}", kind)

    def run(self, server="", code=0):
        """Run one end, hold that it ends with this code, and return what it printed."""
        words = latency.command(PAIR, 500, 3, "net1", server)
        words[2] = words[2].replace("/sys/", f"{self.folder}/sys/").replace("/proc/", f"{self.folder}/proc/")
        done = subprocess.run(
            ["/bin/sh", *words[1:]],
            env={"PATH": str(self.bin)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.stderr == ""
        assert done.returncode == code, done.stdout
        return done.stdout

    def cause(self, code):
        """Return what is reported of a client that ends with this code."""
        return latency.read(PAIR, CommandResult(self.run("172.17.0.35", code), code), CommandResult(), LIMIT).cause


V4 = "0000:0000:0000:0000:0000:ffff:ac11:0005"
V6 = "fd00:0017:0001:0000:0000:0000:0000:0005"
ANSWERS = 'case "$*" in --help) echo "Usage: --bind_source_ip=<ip> --ipv6-addr"; exit 1;; esac\necho "argv: $*"'


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path)
    made.program("ip", 'echo "3: net1    inet 172.17.0.5/27 brd 172.17.0.31 scope global net1"')
    made.program("ib_read_lat", ANSWERS)
    made.gid("mlx5_0", 3, "0000:0000:0000:0000:0000:ffff:ac11:0006", "RoCE v2")
    made.gid("mlx5_1", 2, V4, "IB/RoCE v1")
    made.gid("mlx5_1", 3, V4, "RoCE v2")
    return made


def test_the_script_finds_device_and_gid_by_the_address(machine):
    server = "argv: -F -d mlx5_1 -p 18515 -n 500 -x 3 --bind_source_ip=172.17.0.5"
    assert f"{server} 172.17.0.35" in machine.run("172.17.0.35").splitlines()
    assert server in machine.run().splitlines()


def test_the_script_on_ipv6_only(machine):
    machine.program("ip", 'echo "3: net1    inet6 fd00:17:1::5/64 scope global"')
    machine.file("proc/net/if_inet6", "fd000017000100000000000000000005 03 40 00 80     net1")
    machine.gid("mlx5_1", 5, V6, "RoCE v2")
    assert "-x 5 --bind_source_ip=fd00:17:1::5 --ipv6-addr fd00:17:1::6" in machine.run("fd00:17:1::6")


def test_the_script_on_infiniband_needs_no_gid(machine):
    machine.program("ip", "exit 0")
    machine.file("sys/class/net/net1/device/infiniband/mlx5_9/ports/1/link_layer", "InfiniBand")
    assert "argv: -F -d mlx5_9 -p 18515 -n 500 10.0.0.9" in machine.run("10.0.0.9").splitlines()


def test_the_script_says_what_is_missing(machine):
    (machine.bin / "timeout").unlink()
    assert machine.cause(127) == "the image of the test application has no timeout"
    (machine.bin / "ib_read_lat").unlink()
    assert machine.cause(3) == "the image of the test application has no ib_read_lat"
    machine.program("ib_read_lat", ANSWERS)
    machine.program("ip", 'echo "3: net1    inet 172.17.0.9/27 scope global net1"')
    assert "no RDMA device in the pod" in machine.cause(4)
    (machine.bin / "ip").unlink()
    assert machine.cause(4) == "the image of the test application has no ip"


@pytest.mark.parametrize("server", ["", "172.17.0.35"])
def test_both_ends_end_by_themselves(machine, server):
    """Whatever becomes of the controller: no process is left in the pod."""
    machine.program("ib_read_lat", 'case "$*" in --help) exit 1;; esac\necho $$; exec /bin/sleep 60')
    pid = machine.run(server, 124)
    assert not Path(f"/proc/{int(pid)}").exists()
