# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._pods import jobs
from ansible_collections.railops.rdma.plugins.module_utils._pods.checks import Network, PodNode
from ansible_collections.railops.rdma.plugins.module_utils._pods.place import GATE
from ansible_collections.railops.rdma.tests.unit.machines import program, put

PRINTED = Path(__file__).resolve().parents[3] / "fixtures/perftest"
PAIR = jobs.PodPair(("rail1",), "node1", "node2")
LIMITS = jobs.Limits(timeout=30, iterations=500, max_latency_us=8)


def printed(name):
    return (PRINTED / f"{name}.txt").read_text(encoding="utf-8")


def ended(text, code):
    """Return a log in which the script has said how the test began and ended; what was killed says less."""
    if code not in (0, 1):
        return text
    return f"net1: railops: device mlx5_0 gid 3 address 172.17.0.3\n{text}\nnet1: railops: exit {code}\n"


def network(rail, **more):
    given = {"kind": "macvlan", "resource": f"spidernet.io/{rail}", "subnets": ("172.17.0.0/27",), "gateways": ()}
    return Network(rail=rail, name=f"spiderpool/fabric-{rail}", **{"mtu": 4200, **given, **more})


def node(name, *rails):
    return PodNode(name, tuple(network(rail) for rail in rails))


def daemon_set(**spec):
    container = {"name": "rdma", "image": "registry.example/tools@sha256:1", "securityContext": {"privileged": True}}
    template = {"metadata": {"annotations": {"v1.multus-cni.io/default-network": "kube-system/calico"}}}
    template["spec"] = {"containers": [container], **spec}
    return {"metadata": {"name": "fabric-test", "namespace": "ml"}, "spec": {"template": template}}


@pytest.mark.parametrize(
    ("log", "code", "server", "latency", "cause"),
    [
        pytest.param("read_lat_client", 0, "", 2.31, None, id="measured"),
        pytest.param("read_lat_lost", 1, "", None, "does not answer", id="lost"),
        pytest.param("read_lat_no_server", 1, "", None, "cannot be reached over TCP", id="no-server"),
        pytest.param("read_lat_server", 0, "", None, "holds no result", id="cut-off"),
        pytest.param("read_lat_server", None, "", None, "did not end in its time", id="time-is-up"),
        pytest.param("", 1, "railops: no RDMA device has the address 172.17.0.35\n", None, "GID", id="server-first"),
        pytest.param("", 3, "", None, "exit code 3", id="silent"),
        pytest.param("railops: the image has no ib_read_lat\n", 3, "", None, "no ib_read_lat", id="no-perftest"),
        pytest.param("2 1000 x y z\n#bytes\n\x00\x1b[31m", 0, "", None, "holds no result", id="garbage"),
    ],
)
def test_what_a_log_means(log, code, server, latency, cause):
    text = ended(printed(log) if (PRINTED / f"{log}.txt").exists() and log else log, code)
    (outcome,) = jobs.read_logs(PAIR, text, code, LIMITS, server)
    assert (outcome.latency_us, outcome.failure is None) == (latency, cause is None)
    if cause:
        assert cause in outcome.failure.cause
        assert outcome.failure.fix


def test_a_result_counts_only_when_the_program_ended_well():
    (outcome,) = jobs.read_logs(PAIR, ended(printed("read_lat_client"), 1), 1, LIMITS)
    assert (outcome.latency_us, bool(outcome.failure)) == (None, True)


@pytest.mark.parametrize("log", ["", "net1: railops: device mlx5_0 gid 3 address 172.17.0.3\n"])
@pytest.mark.parametrize("code", [0, 1])
def test_a_log_that_was_rotated_away_is_not_measured_and_no_failure(log, code):
    """A script that came to its end has said how each test ended: where that is missing, the log is not whole."""
    pair = jobs.PodPair(("rail1", "rail2"), "node1", "node2")
    whole = f"{log}" + "".join(f"net2: {line}\n" for line in printed("read_lat_client").splitlines())
    outcomes = jobs.read_logs(pair, f"{whole}net2: railops: exit 0\n", code, LIMITS)
    first, second = jobs.latency_checks(outcomes)
    assert (first["rail"], first["status"], second["rail"], second["status"]) == ("rail1", "skipped", "rail2", "ok")
    assert "is not whole" in first["cause"]
    assert "containerLogMaxSize" in first["fix"]


def test_a_failure_with_a_node_that_stopped_taking_pods_is_not_measured():
    lost = jobs.failed(PAIR, "its pod is not there", "Look.")[0]
    (check,) = jobs.latency_checks([jobs.excused(lost, {"node2": "is cordoned"})])
    assert (check["status"], check["node"], check["cause"]) == (
        "skipped",
        "node1",
        "node2 takes no new pods: it is cordoned",
    )
    assert "uncordon" in check["fix"]
    good = jobs.LatencyOutcome("rail1", PAIR, 2.0)
    assert jobs.excused(good, {"node2": "is cordoned"}) is good
    assert jobs.excused(lost, {"node3": "is cordoned"}) is lost


def test_the_threshold_is_that_of_hosts():
    slow = printed("read_lat_client").replace("2.31", "9.5")
    (outcome,) = jobs.read_logs(PAIR, slow, 0, LIMITS)
    assert outcome.latency_us == 9.5
    assert "above the limit of 8 us" in outcome.failure.cause
    (check,) = jobs.latency_checks([outcome])
    assert (check["status"], check["rail"], check["node"]) == ("deviation", "rail1", "node1")
    assert check["observed"] == "9.5 us with a pod on node2"


def test_pairs_of_a_client_are_one_check_with_the_bad_ones_named():
    good, other = jobs.LatencyOutcome("rail1", PAIR, 2.0), jobs.LatencyOutcome("rail2", PAIR, 2.1)
    lost = jobs.failed(jobs.PodPair(("rail1",), "node1", "node3"), "its pod is not there", "Look at the quota.")
    first, second = jobs.latency_checks([good, *lost, other])
    assert (first["status"], first["observed"]) == ("deviation", "nothing from node3")
    assert first["planned"] == "a pod on node2, node3 answers RDMA reads"
    assert (second["status"], second["observed"]) == ("ok", "2.1 us with a pod on node2")


def test_the_client_job():
    model = jobs.model_of(daemon_set(tolerations=[{"operator": "Exists"}], imagePullSecrets=[{"name": "s"}]), "fabric")
    pair = jobs.PodPair(("rail1", "rail3"), "node1", "node2")
    ends = [node(name, "rail1", "rail2", "rail3") for name in ("node1", "node2")]
    made = jobs.job(model, "run1", pair, ends[0], LIMITS, ["172.17.0.35", "172.17.2.35"])
    assert (made["metadata"]["namespace"], made["metadata"]["labels"]["railops.io/fabric"]) == ("ml", "fabric")
    assert made["spec"]["activeDeadlineSeconds"] == 4 * 30 + jobs.MARGIN
    pod = made["spec"]["template"]
    notes = pod["metadata"]["annotations"]
    assert notes["k8s.v1.cni.cncf.io/networks"] == "spiderpool/fabric-rail1,spiderpool/fabric-rail3"
    assert notes["v1.multus-cni.io/default-network"] == "kube-system/calico"
    assert pod["spec"]["tolerations"] == [{"operator": "Exists"}, GATE]
    assert pod["spec"]["imagePullSecrets"] == [{"name": "s"}]
    assert pod["spec"]["automountServiceAccountToken"] is False
    container = pod["spec"]["containers"][0]
    assert container["command"][-5:] == ["500", "30", "18515", "172.17.0.35", "172.17.2.35"]
    assert container["resources"] == {"limits": {"spidernet.io/rail1": "1", "spidernet.io/rail3": "1"}}
    assert container["securityContext"] == {"privileged": True}
    server = jobs.job(model, "run1", pair, ends[1], LIMITS)
    assert server["metadata"]["name"] != made["metadata"]["name"]
    assert server["spec"]["template"]["spec"]["containers"][0]["command"][-3:] == ["18515", "-", "-"]


def test_rails_that_share_a_resource_ask_for_one_each():
    rails = ("rail1", "rail2")
    ends = PodNode("node2", tuple(network(rail, resource="spidernet.io/all") for rail in rails))
    made = jobs.job(jobs.model_of(daemon_set(), "f"), "r", jobs.PodPair(rails, "node1", "node2"), ends, LIMITS)
    container = made["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"spidernet.io/all": "2"}}


def test_without_a_resource_nothing_is_asked_for():
    server = PodNode("node2", (network("rail1", resource=""),))
    made = jobs.job(jobs.model_of(daemon_set(), "f"), "r", PAIR, server, LIMITS)
    assert "resources" not in made["spec"]["template"]["spec"]["containers"][0]


@pytest.mark.parametrize("fabric", ["f", "a" * 63, "a-" * 20])
def test_names_are_dns_labels(fabric):
    name = jobs.job_name(fabric, "0123456789ab", PAIR, "client")
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)
    # Kubernetes adds six characters to a pod's name.
    assert len(name) <= 63 - 6


def test_a_pair_has_the_rails_of_both_ends():
    nodes = {"a": node("a", "rail1", "rail2"), "b": node("b", "rail1", "rail2"), "c": node("c", "rail1")}
    nodes["d"] = node("d", "rail3")
    found = jobs.pairs(nodes, ["a", "b", "c", "d"], "ring", 3, 0)
    assert [(pair.rails, pair.client, pair.server) for pair in found] == [
        (("rail1", "rail2"), "a", "b"),
        (("rail1",), "b", "c"),
    ]
    assert [pair.rails for pair in found[0].singles()] == [("rail1",), ("rail2",)]
    assert jobs.pairs(nodes, ["a"], "full", 3, 0) == []


def test_nodes_are_drawn_the_same_way_each_time():
    names = [f"node{number}" for number in range(100)]
    drawn = jobs.draw(names, 8, 7)
    assert len(drawn) == 8
    assert drawn == jobs.draw(list(reversed(names)), 8, 7)
    assert jobs.draw(names, 0, 7) == sorted(names)
    assert len(jobs.draw(names, 1, 7)) == 2


@pytest.mark.parametrize(
    ("ips", "subnets", "wanted"),
    [
        (["fd00::5", "172.17.0.35"], ("172.17.0.32/27", "fd00::/64"), "172.17.0.35"),
        (["fd00::5"], ("fd00::/64",), "fd00::5"),
        ([], ("172.17.0.32/27",), ""),
        ([], (), "10.0.0.9"),
    ],
)
def test_where_a_client_finds_its_server(ips, subnets, wanted):
    made = network("rail1", subnets=subnets)
    assert jobs.server_address({made.name: {"ips": ips}}, made, {"status": {"podIP": "10.0.0.9"}}) == wanted


class Machine:
    """A folder that stands for a pod: its /sys and /proc, and the programs of its image."""

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

    def run(self, *servers, code=0):
        """Run the script, hold that it ends with this code, and return what it printed."""
        script = jobs.SCRIPT.replace("/sys/", f"{self.folder}/sys/").replace("/proc/", f"{self.folder}/proc/")
        words = ["/bin/sh", "-c", script, "railops", "500", "3", "18515", *servers]
        done = subprocess.run(
            words, env={"PATH": str(self.bin)}, capture_output=True, text=True, timeout=300, check=False
        )
        output = done.stdout + done.stderr
        assert done.returncode == code, output
        return output

    def cause(self, code):
        """Return what is told of a client that ends with this code."""
        (outcome,) = jobs.read_logs(PAIR, self.run("172.17.0.35", code=code), code, LIMITS)
        return outcome.failure.cause


V4 = "0000:0000:0000:0000:0000:ffff:ac11:0005"
V6 = "fd00:0017:0001:0000:0000:0000:0000:0005"
ANSWERS = 'case "$*" in --help) echo "--bind_source_ip=<ip> --ipv6-addr"; exit 1;; esac\necho "argv: $*"'


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
    server = "net1: argv: -F -d mlx5_1 -p 18515 -n 500 -x 3 --bind_source_ip=172.17.0.5"
    assert f"{server} 172.17.0.35" in machine.run("172.17.0.35").splitlines()
    assert server in machine.run("-").splitlines()


def test_the_script_on_ipv6_only(machine):
    machine.program("ip", 'echo "3: net1    inet6 fd00:17:1::5/64 scope global"')
    machine.file("proc/net/if_inet6", "fd000017000100000000000000000005 03 40 00 80     net1")
    machine.gid("mlx5_1", 5, V6, "RoCE v2")
    assert "-x 5 --bind_source_ip=fd00:17:1::5 --ipv6-addr fd00:17:1::6" in machine.run("fd00:17:1::6")


def test_the_script_on_infiniband_needs_no_gid(machine):
    machine.program("ip", "exit 0")
    machine.file("sys/class/net/net1/device/infiniband/mlx5_9/ports/1/link_layer", "InfiniBand")
    assert "net1: argv: -F -d mlx5_9 -p 18515 -n 500 10.0.0.9" in machine.run("10.0.0.9").splitlines()


def test_the_script_says_what_is_missing(machine):
    (machine.bin / "ib_read_lat").unlink()
    assert machine.cause(3) == "the image of the test application has no ib_read_lat"
    machine.program("ib_read_lat", ANSWERS)
    machine.program("ip", 'echo "3: net1    inet 172.17.0.9/27 scope global net1"')
    assert "no RDMA device in the pod" in machine.cause(1)


def test_the_script_waits_for_its_server_and_no_longer(machine, tmp_path):
    count = tmp_path / "count"
    refuse = 'echo "Couldn\'t connect to 172.17.0.35:18515" >&2; exit 1'
    machine.program(
        "ib_read_lat",
        f'case "$*" in --help) exit 1;; esac\necho x >>{count}\n'
        f'[ "$(cat {count})" = "x\nx\nx" ] || {{ {refuse}; }}\necho done',
    )
    machine.program("sleep", "exit 0")
    assert machine.run("172.17.0.35").splitlines()[-2:] == ["net1: done", "net1: railops: exit 0"]
    machine.program("ib_read_lat", f'case "$*" in --help) exit 1;; esac\n{refuse}')
    assert "cannot be reached" in machine.cause(1)
    # A test that was lost on the way is not tried again: the server has ended.
    machine.program(
        "ib_read_lat", f'case "$*" in --help) exit 1;; esac\necho y >>{count}; echo "Failed status 12"; exit 1'
    )
    count.write_text("", encoding="utf-8")
    machine.run("172.17.0.35", code=1)
    assert count.read_text(encoding="utf-8") == "y\n"


def test_the_script_over_two_rails_of_which_one_says_nothing(machine):
    """Each rail has its own interface, address, device, port and time."""
    machine.program(
        "ip", 'case $* in *net2*) echo "4: net2 inet 172.17.2.5/27 scope";; *) echo "3: net1 inet 172.17.0.5/27";; esac'
    )
    machine.gid("mlx5_3", 3, "0000:0000:0000:0000:0000:ffff:ac11:0205", "RoCE v2")
    lost = 'case "$*" in *172.17.0.35) exec /bin/sleep 60;; esac'
    machine.program("ib_read_lat", f"{lost}\n{ANSWERS}\ncat {PRINTED}/read_lat_client.txt")
    said = machine.run("172.17.0.35", "172.17.2.35", code=1)
    assert "net2: argv: -F -d mlx5_3 -p 18516 -n 500 -x 3 --bind_source_ip=172.17.2.5 172.17.2.35" in said.splitlines()
    first, second = jobs.read_logs(jobs.PodPair(("rail1", "rail2"), "node1", "node2"), said, 1, LIMITS)
    assert (first.rail, first.failure.cause) == ("rail1", "the test did not end in its time")
    assert (second.rail, second.latency_us, second.failure) == ("rail2", 2.31, None)
