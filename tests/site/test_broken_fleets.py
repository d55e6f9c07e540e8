# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fleets of 1 to 20 hosts, broken in random ways of preflight's list: healthy hosts converge, the others are named."""

from __future__ import annotations

import json
import random
import subprocess
import time
import types
import typing as t

import pytest
import state as lab_state

from ansible_collections.railops.rdma.tests.site.conftest import Fleet, Run, started


class Breakage(t.NamedTuple):
    """How a host breaks and is repaired, in shell, the ID of the error, and variables of the host meanwhile."""

    begin: str
    end: str
    error: str
    variables: t.Mapping[str, t.Any] = types.MappingProxyType({})


OTHER = "/etc/systemd/network/05-other.network"
RULE = "ip rule {} fwmark 7 lookup 77 pref 10002"
ROUTE = "ip route {} 192.0.2.0/24 dev mgmt0 table 1002"
BRIDGE = "ip link add docker0 type bridge; ip address add 172.17.0.1/16 dev docker0"
PORT = "ip link add br9 type bridge; ip link set ens1np0 master br9"
FULL = "mkdir -p /run/railops-rdma; mount -t tmpfs -o size=64k full /run/railops-rdma"
FILE = f"printf '[Match]\\nName=ens1np0\\n[Network]\\nAddress=192.0.2.9/24\\n' >{OTHER}"
ADDRESS = "ip address {} ADDRESS/32 dev lo"
BREAKAGES = {
    "rule": Breakage(RULE.format("add"), RULE.format("del"), "rule_existing"),
    "route": Breakage(ROUTE.format("add"), ROUTE.format("del"), "route_existing"),
    "docker": Breakage(BRIDGE, "ip link del docker0", "prefix_overlaps"),
    "address": Breakage(ADDRESS.format("add"), ADDRESS.format("del"), "address_on_other_interface"),
    "bridge": Breakage(PORT, "ip link del br9", "rail_is_a_port"),
    "full": Breakage(FULL, "umount /run/railops-rdma", "rollback_no_space"),
    "file": Breakage(FILE, f"rm {OTHER}", "persist_existing"),
    "python": Breakage("", "", "host_result_unreadable", {"ansible_python_interpreter": "/nonexistent"}),
    "silent": Breakage(
        "", "", "hosts_unreachable", {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 9}
    ),
}
DEAD = Breakage(
    "ip link set ens2np0 down; ip link set ens2np0 name dead0",
    "ip link set dead0 name ens2np0; ip link set ens2np0 up",
    "interface_lost",
)
"""Leaves out one rail, and the host does not count as broken."""


class Broken:
    """A fleet, and the hosts that are broken now."""

    def __init__(self, fleet: Fleet, nodes: int) -> None:
        self.fleet = fleet
        self.hosts = [f"node{number}" for number in range(1, nodes + 1)]
        self.now: dict[str, Breakage] = {}
        # The demo's inventory has three hosts of its own.
        self.given: dict[str, t.Any] = {host: {} for host in self.hosts}
        fleet.words |= {"fabric_group": "few", "fabric_max_nodes": 32, "site_serial": [1, "100%"]}

    def plan(self) -> None:
        self.play(book="plan")
        self.fleet.lab("gateways", self.fleet.name, "--plan", str(self.fleet.folder / "plan/fabric"))

    def shell(self, host: str, text: str) -> None:
        if text:
            plan = json.loads((self.fleet.folder / f"plan/fabric/hosts/{host}.json").read_text(encoding="utf-8"))
            text = text.replace("ADDRESS", plan["rails"][0]["addresses"][0]["address"].partition("/")[0])
            self.fleet.lab("exec", self.fleet.name, "--host", host, "--", "sh", "-ec", text)

    def begin(self, ways: dict[str, Breakage]) -> None:
        """Break hosts."""
        self.now = ways
        for host, way in ways.items():
            self.shell(host, way.begin)

    def end(self) -> None:
        """Repair them."""
        for host, way in self.now.items():
            self.shell(host, way.end)
        self.now = {}

    def play(self, *words: str, code: int | None = 0, book: str = "hosts") -> Run:
        hosts = {
            host: {**self.given[host], **(self.now[host].variables if host in self.now else {})} for host in self.hosts
        }
        made = self.fleet.folder / "now.yml"
        made.write_text(json.dumps({"all": {"children": {"few": {"hosts": hosts}}}}), encoding="utf-8")
        return self.fleet.play(book, "-i", str(made), *words, code=code)

    def ip(self, host: str, *words: str) -> list[str]:
        argv = ["ip", "-4", "-n", f"rlab-{self.fleet.name}.{host}", *words]
        return subprocess.run(argv, stdout=subprocess.PIPE, text=True, check=False).stdout.splitlines()

    def state(self, host: str) -> list[str]:
        """Return addresses, MTUs, rules and routes of a host."""
        parts = ("-o address", "-o link", "rule", "route show table all")
        return sorted(line.split(" qdisc ")[0] for part in parts for line in self.ip(host, *part.split()))

    def states(self) -> dict[str, list[str]]:
        return {host: self.state(host) for host in self.hosts}

    def drift(self) -> None:
        """Take a rule from each host."""
        for host in self.hosts:
            self.ip(host, "rule", "del", "pref", "10001")

    def lacking(self, host: str) -> set[int]:
        """Return the rails of a host that have no rule."""
        rules = " ".join(self.ip(host, "rule"))
        return {rail for rail in (1, 2) if f"lookup 100{rail}" not in rules}

    def converges(self, allowed: int, *words: str, hosts: t.Sequence[str] = ()) -> None:
        """Run `hosts`: broken hosts are left out and named, all others converge; with too many nothing is touched."""
        hosts = hosts or self.hosts
        now = {host: way for host, way in self.now.items() if host in hosts}
        out = {host for host, way in now.items() if way is not DEAD}
        silent = {host for host, way in now.items() if way is BREAKAGES["silent"]}
        before = self.states()
        due = 4 if silent else 2 if now else 0
        run = self.play(*words, code=due)
        text = " ".join(run.output.split())
        stops = len(out) > allowed
        errors = {way.error for host, way in now.items() if host in out or not stops}
        assert {error for error in errors if f"[{error}]" not in text} == set()
        assert (f"{len(out)} of {len(hosts)} host" in text) is stops, run.output
        assert ("Nothing was changed. The run stops here:" in text) is stops, run.output
        touched = set() if stops else {*hosts} - out
        assert {task["host"] for task in run.tasks if task["changed"]} <= touched
        less = {*now, *self.fleet.words.get("fabric_out_of_service", ())}
        for host in self.hosts:
            if host in touched:
                assert self.lacking(host) <= ({2} if host in less else set()), host
            else:
                assert self.state(host) == before[host], host
        if not stops:
            entries = self.fleet.verdict()["hosts"]
            assert {host for host in silent if entries[host]["status"] == "unreachable"} == silent
            for host in out - silent:
                assert entries[host]["status"] == "error"
                assert f"[{now[host].error}]" in entries[host]["error"]
            assert self.play(*words, code=due).changed() == []


@pytest.fixture
def drawn(seed):
    """Give the draws of a test."""
    return random.Random(seed("RAILOPS_BROKEN"))


def ways(drawn: random.Random, hosts: t.Sequence[str], broken: int, dead: int = 0) -> dict[str, Breakage]:
    """Draw broken hosts, and after them hosts with a dead card."""
    order = drawn.sample([*BREAKAGES.values()], len(BREAKAGES)) * 3
    return dict(zip(drawn.sample(hosts, broken + dead), order[:broken] + [DEAD] * dead, strict=True))


@pytest.mark.long
@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_one_broken_host_before_the_first_run_and_a_dead_card_after_it(tmp_path, drawn, nodes):
    with started(f"few{nodes}", tmp_path, nodes, 2) as made:
        fleet = Broken(made, nodes)
        fleet.plan()
        fleet.begin(ways(drawn, fleet.hosts, 1))
        fleet.converges(int(nodes == 3))
        fleet.end()
        fleet.converges(0)
        fleet.begin({"node1": DEAD})
        fleet.drift()
        fleet.converges(0)
        fleet.play(book="audit", code=2)
        assert made.deviations() == [("node1", "rail2", "network_link")]


@pytest.fixture(scope="module")
def twenty(tmp_path_factory):
    """Twenty hosts before their first run."""
    with started("twenty", tmp_path_factory.mktemp("twenty"), 20, 2) as made:
        fleet = Broken(made, 20)
        fleet.plan()
        yield fleet


# Broken hosts, hosts with a dead card, site_max_excluded, how many that allows, and the host of a limit.
CASES = {
    "three before the first run": (3, 0, "3", 3, None),
    "none": (0, 0, "5%", 1, None),
    "one": (1, 1, "5%", 1, None),
    "three": (3, 1, "5%", 1, None),
    "nineteen": (19, 0, "5%", 1, None),
    "nineteen are allowed": (19, 0, "100%", 20, None),
    "limit to a broken host": (2, 1, "5%", 0, 0),
    "limit to a host with a dead card": (2, 1, "5%", 0, 2),
    "limit to a healthy host": (2, 1, "5%", 0, -1),
    "all repaired": (0, 0, "5%", 1, None),
}


@pytest.mark.long
@pytest.mark.parametrize("case", CASES)
def test_twenty_hosts(twenty, drawn, case):
    """In this order."""
    broken, dead, most, allowed, limit = CASES[case]
    twenty.drift()
    twenty.begin(ways(drawn, twenty.hosts, broken, dead))
    words, hosts = ["-e", json.dumps({"site_max_excluded": most})], twenty.hosts
    if limit is not None:
        hosts = [[*twenty.now, *(host for host in hosts if host not in twenty.now)][limit]]
        words += ["--limit", *hosts]
    try:
        twenty.converges(allowed, *words, hosts=hosts)
    finally:
        twenty.end()


@pytest.mark.long
def test_wrong_names_and_dead_cards_before_and_after_the_first_run(tmp_path):
    """Two interface profiles of three hosts each."""
    with started("profiles", tmp_path, 6, 2) as made:
        fleet = Broken(made, 6)

        def refused(words: str) -> None:
            before = fleet.states()
            run = fleet.play(code=2)
            assert "Nothing was changed. The run stops here:" in run.output
            assert words in " ".join(run.output.split())
            assert run.changed() == []
            assert fleet.states() == before

        def named(interface: str) -> None:
            for host in fleet.hosts[3:]:
                fleet.given[host] = {"fabric_interfaces": {"rail2": interface}}
            fleet.plan()

        named("ens9np0")
        refused("Declaration: node[4-6]: rail2: this host has no interface 'ens9np0'")
        named("ens2np0")
        fleet.shell("node2", DEAD.begin)
        refused("add to group_vars/all and plan: fabric_out_of_service: {node2: {rails: [rail2]}}")
        made.words["fabric_out_of_service"] = {"node2": {"rails": ["rail2"], "reason": "RMA 4711"}}
        fleet.plan()
        fleet.converges(0)
        fleet.shell("node2", DEAD.end)
        del made.words["fabric_out_of_service"]
        fleet.plan()
        fleet.converges(0)
        named("ens9np0")
        refused("Declaration: node[4-6]: rail2: this host has no interface 'ens9np0'")
        named("ens2np0")
        fleet.begin({"node5": DEAD})
        fleet.drift()
        fleet.converges(0)


ROUNDS = 8
DRIFT = (
    "set +e; ip address flush dev ens1np0 scope global; ip rule del pref 10001; ip route flush table 1002; "
    "ip link set ens2np0 mtu 1500"
)


@pytest.mark.long
def test_a_kill_leaves_old_or_new_and_the_next_run_converges(tmp_path, drawn):
    """Of Ansible, or of the modules on three hosts, at random moments of runs that leave a host out."""
    with started("kills", tmp_path, 4, 2) as made:
        fleet = Broken(made, 4)
        made.words["rail_network_confirm_timeout"] = 15
        fleet.plan()
        began = time.monotonic()
        fleet.play()
        took, new, seen = time.monotonic() - began, fleet.states(), set()
        fleet.begin({"node4": BREAKAGES["rule"]})
        pythons = {host: lab_state.folder(made.name) / host / "python" for host in fleet.hosts[:3]}
        texts = {host: python.read_text(encoding="utf-8") for host, python in pythons.items()}
        for number in range(ROUNDS):
            for host in fleet.hosts:
                fleet.shell(host, DRIFT)
            old = fleet.states()
            if number % 2:
                for host in fleet.hosts[:3]:
                    limit = f"exec timeout --signal=KILL {drawn.uniform(0.2, 4):.2f} "
                    pythons[host].write_text(texts[host].replace("exec ", limit, 1), encoding="utf-8")
                fleet.play("-e", "site_max_excluded=100%", code=None)
                for host, text in texts.items():
                    pythons[host].write_text(text, encoding="utf-8")
            else:
                argv = ["timeout", "--signal=KILL", f"{drawn.uniform(0.3, 1) * took:.2f}", *made.command("hosts")]
                words = ["-i", str(made.folder / "now.yml")]
                subprocess.run([*argv, *words], cwd=made.folder, env=made.environ(), capture_output=True, check=False)
            deadline = time.monotonic() + 60
            while left := [host for host, rows in fleet.states().items() if rows not in (old[host], new[host])]:
                assert time.monotonic() < deadline, (number, left, fleet.state(left[0]), old[left[0]], new[left[0]])
                time.sleep(0.5)
            seen |= {fleet.state(host) == new[host] for host in fleet.hosts[:3]}
            assert fleet.state("node4") == old["node4"]
            fleet.play(code=2)
            assert [host for host in fleet.hosts[:3] if fleet.state(host) != new[host]] == [], number
        assert seen == {False, True}
        fleet.end()
        fleet.converges(0)
        assert fleet.states() == new
