# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Four hosts with three rails as the modules' pure code sees them, with planted causes; and the verdict of that.

What packets do is decided here, by the state of both ends and of the leaf; every check is made by the modules' code.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, replace

from ansible_collections.railops.rdma.plugins.module_utils._check import skipped
from ansible_collections.railops.rdma.plugins.module_utils._cluster.checks import object_checks
from ansible_collections.railops.rdma.plugins.module_utils._cluster.nodes import Node, NodesRequest
from ansible_collections.railops.rdma.plugins.module_utils._cluster.nodes import checks as node_checks
from ansible_collections.railops.rdma.plugins.module_utils._persist.model import File
from ansible_collections.railops.rdma.plugins.module_utils._persist.run import _checks as file_checks
from ansible_collections.railops.rdma.plugins.module_utils._probe.health_plan import health_checks
from ansible_collections.railops.rdma.plugins.module_utils._rdma.checks import check_rails
from ansible_collections.railops.rdma.plugins.module_utils._route import path_checks, paths, ping
from ansible_collections.railops.rdma.plugins.module_utils._route.desired import desired_state
from ansible_collections.railops.rdma.plugins.module_utils._route.icmp import EchoOutcome
from ansible_collections.railops.rdma.plugins.module_utils._route.model import (
    DEFAULT,
    MAIN_TABLE,
    Link,
    Route,
    RouteHost,
    Rule,
    Snapshot,
)
from ansible_collections.railops.rdma.plugins.module_utils._route.plan import decide
from ansible_collections.railops.rdma.plugins.module_utils._route.route_options import neighbors_of, parse_options
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import same_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict import merge
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.explain import with_causes
from ansible_collections.railops.rdma.plugins.plugin_utils._verdict.preflight import HostPlace
from ansible_collections.railops.rdma.tests.unit import fabrics

RAILS = ["rail1", "rail2", "rail3"]
HOSTS = [f"node{number}" for number in range(1, 5)]
MTU = 4200
PLANNED = fabrics.plan(fabrics.exclusive(rails=fabrics.rails(3), max_nodes=4), fabrics.hosts(4), report=False)
PLACES = {host: HostPlace("", {rail: f"leaf{number}" for number, rail in enumerate(RAILS, 1)}) for host in HOSTS}


@dataclass
class Machine:
    """A host: its network as it is, and what else a cause can break."""

    name: str
    plan: dict[str, t.Any] = field(init=False)
    now: Snapshot = field(init=False)
    devices: dict[str, dict[str, t.Any]] = field(init=False)
    files: set[str] = field(default_factory=lambda: {*RAILS})
    counters: dict[str, int] = field(default_factory=dict)
    width: dict[str, int] = field(default_factory=dict)
    silent: bool = False
    error: str = ""
    lost: bool = False

    def __post_init__(self) -> None:
        self.plan = PLANNED.slice(self.name)
        links = {f"ens{number}np0": Link(f"ens{number}np0", MTU, up=True, max_mtu=9978) for number in (1, 2, 3)}
        empty = Snapshot(links, frozenset(), frozenset(), frozenset(), dict(self.plan["sysctls"]))
        self.want = parse_options(self.plan)
        self.now = desired_state(self.want, self._host(empty))
        self.devices = {rail: {"state": "ACTIVE", "phys": "LinkUp", "layer": "Ethernet"} for rail in RAILS}

    @staticmethod
    def _host(snapshot: Snapshot) -> RouteHost:
        names = {name: name for name in snapshot.links}
        return RouteHost(snapshot, names=names, addresses=snapshot.addresses)

    def change(self, **parts: t.Any) -> None:
        """Replace parts of the network."""
        self.now = replace(self.now, **parts)

    def link(self, rail: str, **values: t.Any) -> None:
        """Change the link of a rail."""
        name = self.interface(rail)
        self.change(links={**self.now.links, name: replace(self.now.links[name], **values)})

    @staticmethod
    def interface(rail: str) -> str:
        return f"ens{rail[-1]}np0"

    def address(self, rail: str) -> dict[str, t.Any]:
        return self.plan["rails"][int(rail[-1]) - 1]["addresses"][0]

    def rule(self, rail: str) -> bool:
        """Whether the rail's own table decides for what comes from its address."""
        mine = [rule for rule in self.now.rules if rule.source.partition("/")[0] == self.address(rail)["address"]]
        return bool(mine) and min(mine).table == 1000 + int(rail[-1])

    def sends(self, rail: str, size: int) -> bool:
        """Whether a packet of the rail's address leaves by the rail, and comes in there."""
        link = self.now.links.get(self.interface(rail))
        if not link or not link.up or not link.carrier or link.dormant or not link.arp or size > link.mtu:
            return False
        held = any(item.address == self.address(rail)["address"] for item in self.now.addresses)
        table = any(route.table == 1000 + int(rail[-1]) for route in self.now.routes)
        return held and self.rule(rail) and table

    def lookup(self, target: paths.PathTarget, flow: str) -> paths.LookupResult:
        """Answer as the kernel would: by the rail's table where its rule leads there, else by main."""
        own = [route for route in self.now.routes if route.table == target.table and bool(route.gateway)]
        if not target.gateway:
            own = [route for route in self.now.routes if route.table == target.table and not route.gateway]
        main = sorted((r for r in self.now.routes if r.table == MAIN_TABLE), key=lambda route: route.metric)
        foreign = [rule for rule in self.now.rules if rule.table == 77 and rule.source.startswith(f"{target.source}/")]
        away = Route(4, MAIN_TABLE, DEFAULT, 0, "eth0", "203.0.113.1", protocol=4)
        if foreign:
            found = Route(4, 77, DEFAULT, 0, "eth0", "203.0.113.1", protocol=4)
        elif own and self.rule(target.rail):
            found = own[0]
        else:
            bound = [route for route in main if route.interface == target.interface]
            found = next(iter(bound if flow == paths.BOUND else main), away)
        return paths.LookupResult(target, flow, found)

    def rdma(self) -> dict[str, t.Any]:
        """Return what the module rdma_info would read."""
        shown = []
        for rail, device in self.devices.items():
            link = self.now.links.get(self.interface(rail))
            if not link:
                continue
            up = link.up and link.carrier
            port = {
                "port": 1,
                "netdev": link.name,
                "netdev_mtu": link.mtu,
                "link_layer": device["layer"],
                "state": device["state"] if up else "DOWN",
                "phys_state": device["phys"] if up else "Polling",
                "active_mtu": 4096 if link.mtu >= MTU else 1024,
                "sm_lid": 0,
            }
            shown.append({"name": f"mlx5_{rail[-1]}", "vf": False, "pci": None, "num_vfs": 0, "ports": [port]})
        return {"devices": shown, "nics_without_rdma": []}


@dataclass
class Fleet:
    """The hosts, the leaves between them and the cluster."""

    machines: dict[str, Machine] = field(default_factory=lambda: {name: Machine(name) for name in HOSTS})
    dead: set[str] = field(default_factory=set)
    """Rails whose leaf drops everything."""
    small: set[str] = field(default_factory=set)
    """Rails whose leaf drops what is larger than 1,500 bytes."""
    cut: set[tuple[str, str, str]] = field(default_factory=set)
    """Host, host and rail between which a link of the fabric drops."""
    changes: list[dict[str, t.Any]] = field(default_factory=list)
    offered: dict[tuple[str, str], int] = field(default_factory=dict)
    joined: set[str] = field(default_factory=lambda: {*HOSTS})
    api: str | None = None
    planned: bool = True

    def reaches(self, one: str, other: str, rail: str, size: int) -> bool:
        """Whether an echo request comes there, and its reply back."""
        if (
            rail in self.dead
            or (rail in self.small and size > 1500)
            or {(one, other, rail), (other, one, rail)} & self.cut
        ):
            return False
        ends = (self.machines[one], self.machines[other])
        return all(end.sends(rail, size) and not end.lost for end in ends) and not ends[1].silent

    def checks(self, name: str) -> list[dict[str, t.Any]]:
        """Return all checks of a host."""
        machine = self.machines[name]
        host = machine._host(machine.now)
        decided = decide(machine.want, host, report=True)
        found = [*decided.checks]
        near = neighbors_of(
            [{**PLANNED.slice(other), "host": other} for other in (HOSTS[(HOSTS.index(name) + 1) % 4],)]
        )
        ways = [way for way in paths.targets_of(machine.want, host, near, {}) if way.interface in machine.now.links]
        lookups = tuple(machine.lookup(way, flow) for way in ways for flow in way.flows)
        there = [rail.name for rail in machine.want.rails if rail.device in machine.now.links]
        found += [
            check
            for check in path_checks.checks_of(machine.want, ways, paths.PathState(host, lookups))
            if check["rail"] in there
        ]
        names = {rail.name: rail.device for rail in machine.want.rails}
        targets = [
            target for target in ping.targets_of(machine.want, names, near, full_size=True) if target.rail in there
        ]
        found += ping.checks_of(targets, [self._outcome(machine, target) for target in targets], 0, lambda wanted: {})
        found += check_rails(machine.rdma(), machine.plan["rails"], "roce")
        files = tuple(File(f"/etc/netplan/90-railops-{rail}.yaml", "", 0o600, rail) for rail in RAILS)
        found += file_checks(files, {file.path: file for file in files if file.rail in machine.files})
        health = {rail: self._health(machine, rail, machine.counters.get(rail, 0)) for rail in there}
        before = {"boot": "b", "rails": {rail: self._health(machine, rail, 0) for rail in there}}
        found += health_checks(health, "b", before, {})
        if machine.silent:
            found += ping.own_echo([4], t.cast("t.Any", Silent()))
        return [*found, skipped("cable_leaf", "The plan names no leaf.")]

    def _outcome(self, machine: Machine, target: t.Any) -> EchoOutcome:
        held = any(item.address == target.source for item in machine.now.addresses)
        if not held:
            return EchoOutcome(error=f"cannot send from {target.source}: Cannot assign requested address")
        if target.peer:
            good = self.reaches(machine.name, target.peer, target.rail, target.size)
        else:
            leaf = target.rail not in self.dead and not (target.rail in self.small and target.size > 1500)
            good = leaf and machine.sends(target.rail, target.size)
        return EchoOutcome(good, 10, 10 if good else 0, 10 if good else 0, 0.0002)

    @staticmethod
    def _health(machine: Machine, rail: str, errors: int) -> dict[str, t.Any]:
        link = {"width": machine.width.get(rail, 16), "speed": 32.0, "card_width": 16, "card_speed": 32.0}
        return {
            "interface": machine.interface(rail),
            "pci": f"0000:0{rail[-1]}:00.0",
            "counters": {"symbol_error": errors, "link_downed": 0},
            "pcie": link,
        }

    def verdict(self) -> dict[str, t.Any]:
        """Return the verdict of an audit."""
        results = []
        for name, machine in self.machines.items():
            if not machine.lost:
                checks = [] if machine.error else self.checks(name)
                results.append(merge.host_result(name, name, "d", t.cast("t.Any", checks), machine.error or None))
        resources = {f"spidernet.io/fabric_{rail}": 4 for rail in RAILS}
        nodes = {
            name: Node(allocatable={key: self.offered.get((name, key[-5:]), 4) for key in resources})
            for name in self.joined
        }
        request = NodesRequest(tuple(HOSTS), resources=dict.fromkeys(HOSTS, resources))
        summary = {"unchanged": 12 - len(self.changes)}
        cluster = object_checks({"changes": self.changes, "kept": [], "conflicts": [], "summary": summary})
        made = merge.merge(
            "d",
            results,
            {name: name for name in HOSTS},
            rails=RAILS,
            cluster=merge.seen_section([] if self.api else cluster, self.api),
            plan=merge.seen_section([same_plan(not self.planned)]),
            nodes=[] if self.api else node_checks(request, nodes, {}),
        )
        return t.cast("t.Any", with_causes(made, PLACES, len(HOSTS)))


class Silent:
    """/proc/sys of a host that drops echo requests."""

    @staticmethod
    def text(path: str) -> str:
        return "6168"

    @staticmethod
    def number(path: str) -> int:
        return int(path.endswith("echo_ignore_all"))


def _without(machine: Machine, rail: str, *parts: str) -> None:
    address = machine.address(rail)["address"]
    now, name, table = machine.now, machine.interface(rail), 1000 + int(rail[-1])
    if "addresses" in parts:
        machine.change(addresses=frozenset(item for item in now.addresses if item.address != address))
    if "rules" in parts:
        machine.change(rules=frozenset(item for item in now.rules if item.source != f"{address}/32"))
    if "routes" in parts:
        machine.change(routes=frozenset(item for item in now.routes if item.interface != name))
    if "table" in parts:
        machine.change(routes=frozenset(item for item in now.routes if item.table != table))


def plant(fleet: Fleet, cause: str, host: str, rail: str) -> None:
    """Break one thing of the fleet.

    :param cause: the name of a row of tests/unit/data/causes.yml.
    """
    machine, name = fleet.machines[host], f"ens{rail[-1]}np0"
    after = HOSTS[(HOSTS.index(host) + 1) % 4]
    key = f"net/ipv4/conf/{name}/rp_filter"
    breaks: dict[str, t.Callable[[], t.Any]] = {
        "rule": lambda: _without(machine, rail, "rules"),
        "table": lambda: _without(machine, rail, "table"),
        "routes": lambda: _without(machine, rail, "routes"),
        "gateway": lambda: machine.change(
            routes=frozenset(
                replace(route, gateway="172.17.9.9") if route.gateway and route.interface == name else route
                for route in machine.now.routes
            )
        ),
        "stale": lambda: machine.change(
            rules=machine.now.rules | {Rule(4, 10007, 1007, source="172.17.9.9/32", protocol=143)}
        ),
        "flush": lambda: _without(machine, rail, "addresses", "routes"),
        "rail_flush": lambda: _without(machine, rail, "addresses", "rules", "routes"),
        "down": lambda: (machine.link(rail, up=False), _without(machine, rail, "routes")),
        "carrier": lambda: machine.link(rail, carrier=False),
        "dormant": lambda: machine.link(rail, dormant=True),
        "arp": lambda: machine.link(rail, arp=False),
        "missing": lambda: (
            _without(machine, rail, "addresses", "routes"),
            machine.change(links={key: link for key, link in machine.now.links.items() if key != name}),
        ),
        "mtu": lambda: machine.link(rail, mtu=1500),
        "foreign_rule": lambda: machine.change(
            rules=machine.now.rules | {Rule(4, 5000, 77, source=f"{machine.address(rail)['address']}/32", protocol=4)}
        ),
        "device": lambda: machine.devices.pop(rail),
        "port_state": lambda: machine.devices[rail].update(state="INIT"),
        "link_layer": lambda: machine.devices[rail].update(layer="InfiniBand"),
        "file": lambda: machine.files.discard(rail),
        "errors": lambda: machine.counters.update({rail: 900}),
        "pcie": lambda: machine.width.update({rail: 4}),
        "resources": lambda: fleet.offered.update({(host, rail): 0}),
        "sysctl": lambda: machine.change(sysctls={**machine.now.sysctls, key: "1"}),
        "silent": lambda: setattr(machine, "silent", True),
        "unreachable": lambda: setattr(machine, "lost", True),
        "error": lambda: setattr(machine, "error", "Python 3.9 or newer is missing."),
        "not_configured": lambda: [_without(machine, one, "addresses", "rules", "routes") for one in RAILS],
        "not_joined": lambda: fleet.joined.discard(host),
        "filter": lambda: fleet.cut.update((host, other, rail) for other in HOSTS if other != host),
        "leaf_dead": lambda: fleet.dead.add(rail),
        "leaf_small": lambda: fleet.small.add(rail),
        "leaf_carrier": lambda: [one.link(rail, carrier=False) for one in fleet.machines.values()],
        "pair": lambda: fleet.cut.add((host, after, rail)),
        "object_missing": lambda: fleet.changes.append(
            {"action": "create", "kind": "SpiderIPPool", "namespace": "", "name": f"fabric-{rail}-{host}", "fields": []}
        ),
        "object_changed": lambda: fleet.changes.append(
            {
                "action": "apply",
                "kind": "SpiderMultusConfig",
                "namespace": "",
                "name": f"fabric-{rail}",
                "fields": ["spec.mtu"],
            }
        ),
        "plan": lambda: setattr(fleet, "planned", False),
        "api": lambda: setattr(fleet, "api", "The API server does not answer."),
    }
    breaks[cause]()
