# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fleets of 1 to 20 hosts, broken in random ways of preflight's list: healthy hosts converge, the others are named."""

from __future__ import annotations

import json
import random
import subprocess
import types
import typing as t

import pytest

from ansible_collections.railops.rdma.tests.site.conftest import Fleet, started

SEED = "RAILOPS_BROKEN"


class Way(t.NamedTuple):
    """How a host breaks and is repaired, in shell, the ID of the error, and variables of the host meanwhile."""

    begin: str
    end: str
    error: str
    variables: t.Mapping[str, t.Any] = types.MappingProxyType({})


OTHER = "/etc/systemd/network/05-other.network"
RULE = "ip rule {} fwmark 7 lookup 77 pref 10002"
ROUTE = "ip route {} 192.0.2.0/24 dev mgmt0 table 1002"
WAYS = {
    "rule": Way(RULE.format("add"), RULE.format("del"), "rule_existing"),
    "route": Way(ROUTE.format("add"), ROUTE.format("del"), "route_existing"),
    "docker": Way(
        "ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0",
        "ip link del docker0",
        "prefix_overlaps",
    ),
    "address": Way("ip address add ADDRESS dev lo", "ip address del ADDRESS dev lo", "address_on_other_interface"),
    "bridge": Way("ip link add br9 type bridge; ip link set ens1np0 master br9", "ip link del br9", "rail_is_a_port"),
    "full": Way(
        "mkdir -p /run/railops-rdma; mount -t tmpfs -o size=64k full /run/railops-rdma",
        "umount /run/railops-rdma",
        "rollback_no_space",
    ),
    "file": Way(
        f"printf '[Match]\\nName=ens1np0\\n[Network]\\nAddress=192.0.2.9/24\\n' >{OTHER}",
        f"rm {OTHER}",
        "persist_precedence",
    ),
    "python": Way("", "", "host_result_unreadable", {"ansible_python_interpreter": "/nonexistent"}),
    "silent": Way(
        "",
        "",
        "hosts_unreachable",
        {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9},
    ),
    "dead": Way(
        "ip link set ens2np0 down; ip link set ens2np0 name dead0",
        "ip link set dead0 name ens2np0; ip link set ens2np0 up",
        "interface_lost",
    ),
}
"""The last one is a rail's, which is not counted: the host's other rail is configured."""


class Broken:
    """A fleet with the hosts that are broken now."""

    def __init__(self, fleet: Fleet, nodes: int) -> None:
        self.fleet = fleet
        self.hosts = [f"node{number}" for number in range(1, nodes + 1)]
        self.now: dict[str, str] = {}
        fleet.words = {
            "fabric_rails": [{"name": f"rail{rail}", "interface": f"ens{rail}np0"} for rail in (1, 2)],
            "fabric_max_nodes": 32,
            "site_serial": [1, "100%"],
            "rail_network_confirm_timeout": 5,
        }

    def plan(self) -> None:
        self.fleet.play("plan")
        self.fleet.lab("gateways", self.fleet.name, "--plan", str(self.fleet.folder / "plan/fabric"))

    def shell(self, host: str, text: str) -> None:
        """Run a script on a host."""
        if text:
            self.fleet.lab("exec", self.fleet.name, "--host", host, "--", "sh", "-ec", text)

    def turn(self, host: str, text: str) -> None:
        """Run a way's script on a host."""
        plan = json.loads((self.fleet.folder / f"plan/fabric/hosts/{host}.json").read_text(encoding="utf-8"))
        self.shell(host, text.replace("ADDRESS", plan["rails"][0]["addresses"][0]["address"].replace("/27", "/32")))

    def begin(self, ways: dict[str, str]) -> None:
        """Break hosts."""
        self.now = ways
        for host, way in ways.items():
            self.turn(host, WAYS[way].begin)

    def end(self) -> None:
        """Repair them."""
        for host, way in self.now.items():
            self.turn(host, WAYS[way].end)
        self.now = {}

    def play(self, *words: str, code: int | None = 0, book: str = "hosts") -> t.Any:
        """Run a playbook."""
        made = self.fleet.folder / "now.yml"
        hosts = {host: dict(WAYS[way].variables) for host, way in self.now.items()}
        made.write_text(json.dumps({"all": {"hosts": hosts}}), encoding="utf-8")
        return self.fleet.play(book, "-i", str(made), *words, code=code)

    def state(self, host: str) -> list[str]:
        """Return addresses, MTUs, rules and routes of a host."""
        parts = ("-o address", "-o link", "rule", "route show table all")
        argv = ["ip", "-4", "-n", f"rlab-{self.fleet.name}.{host}"]
        return sorted(
            line.split(" qdisc ")[0]
            for part in parts
            for line in subprocess.check_output([*argv, *part.split()], text=True).splitlines()
        )

    def drift(self) -> None:
        """Take a rule from each host."""
        for host in self.hosts:
            subprocess.run(["ip", "-n", f"rlab-{self.fleet.name}.{host}", "rule", "del", "pref", "10001"], check=False)

    def rails(self, host: str) -> list[bool]:
        """Return whether each rail of a host has its rule."""
        return [any(line.startswith(f"1000{rail}:") for line in self.state(host)) for rail in (1, 2)]

    def converges(self, allowed: int, *words: str, hosts: t.Sequence[str] = ()) -> None:
        """Run `hosts`: broken hosts are left out and named, all others converge; with too many nothing is touched."""
        hosts = hosts or self.hosts
        before = {host: self.state(host) for host in self.hosts}
        run = self.play(*words, code=None)
        out = {host for host in hosts if self.now.get(host, "dead") != "dead"}
        due = 4 if "silent" in {self.now.get(host) for host in hosts} else 2 if {*self.now} & {*hosts} else 0
        assert run.code == due, run.output
        text = " ".join(run.output.split())
        for host in {*hosts} & {*self.now}:
            assert f"[{WAYS[self.now[host]].error}]" in text, (host, run.output)
        stops = len(out) > allowed
        assert (f"{len(out)} of {len(hosts)} host" in text) is stops, run.output
        assert ("Nothing was changed. The run stops here:" in text) is stops, run.output
        touched = set() if stops else {*hosts} - out
        assert {task["host"] for task in run.tasks if task["changed"]} <= touched
        for host in self.hosts:
            if host not in touched:
                assert self.state(host) == before[host], host
            else:
                assert self.rails(host)[: 1 if host in self.now else 2] == [True, True][: 1 if host in self.now else 2]
        if not stops:
            entries = self.fleet.verdict()["hosts"] if out else {}
            for host in out:
                assert entries[host]["status"] == ("unreachable" if self.now[host] == "silent" else "error"), host
                assert WAYS[self.now[host]].error in entries[host]["error"]
            again = self.play(*words, code=due)
            assert again.changed() == []


@pytest.fixture
def drawn(seed):
    """Give the draws of a test."""
    return random.Random(seed(SEED))


def ways(drawn: random.Random, hosts: t.Sequence[str], broken: int, dead: int) -> dict[str, str]:
    """Draw broken hosts, and hosts with a dead card."""
    chosen = drawn.sample(hosts, broken + dead)
    order = drawn.sample([*WAYS][:-1], len(WAYS) - 1)
    return {host: order[at % len(order)] if at < broken else "dead" for at, host in enumerate(chosen)}


@pytest.mark.parametrize("nodes", [pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long), 3])
def test_one_broken_host_before_the_first_run(tmp_path, drawn, nodes):
    with started(f"few{nodes}", tmp_path, nodes, 2) as made:
        fleet = Broken(made, nodes)
        fleet.plan()
        fleet.begin(ways(drawn, fleet.hosts, 1, 0))
        fleet.converges(int(nodes == 3))
        fleet.end()
        fleet.converges(0)


@pytest.fixture(scope="module")
def twenty(tmp_path_factory):
    """Twenty hosts before their first run."""
    with started("twenty", tmp_path_factory.mktemp("twenty"), 20, 2) as made:
        fleet = Broken(made, 20)
        fleet.plan()
        yield fleet


@pytest.mark.long
@pytest.mark.parametrize(
    ("broken", "dead", "most", "allowed"),
    [
        (3, 0, "3", 3),
        (0, 0, "5%", 1),
        (1, 1, "5%", 1),
        (3, 1, "5%", 1),
        (3, 1, "15%", 3),
        (19, 0, "5%", 1),
        (19, 0, "100%", 20),
    ],
)
def test_broken_hosts_of_twenty(twenty, drawn, broken, dead, most, allowed):
    twenty.drift()
    twenty.begin(ways(drawn, twenty.hosts, broken, dead))
    try:
        twenty.converges(allowed, "-e", json.dumps({"site_max_excluded": most}))
    finally:
        twenty.end()


@pytest.mark.long
@pytest.mark.parametrize("kind", ["broken", "dead", "healthy"])
def test_a_limit_to_one_of_twenty(twenty, drawn, kind):
    twenty.drift()
    twenty.begin(ways(drawn, twenty.hosts, 2, 1))
    broken, _other, dead = twenty.now
    healthy = next(host for host in twenty.hosts if host not in twenty.now)
    host = {"broken": broken, "dead": dead, "healthy": healthy}[kind]
    try:
        twenty.converges(0, "--limit", host, hosts=[host])
    finally:
        twenty.end()


@pytest.mark.long
def test_repaired_all_twenty_converge(twenty):
    twenty.converges(0)
    twenty.play(book="audit")
