# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Rails in pods by the planned networks of nv-ipam, with Debian's real CNI plugins; `static` is in nv-ipam's place.

Namespaces are hosts, leaves and pods. The plugins run as a runtime runs them: ADD in order, each with the result of the
one before, DEL the other way round. Nothing is installed: the package is unpacked into the cache.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import socket
import struct
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import packages
import pytest
import yaml

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import DECLARED, POD_STATUS
from ansible_collections.railops.rdma.plugins.module_utils._pods.checks import node_of
from ansible_collections.railops.rdma.plugins.module_utils._pods.pod_checks import COMMANDS, inside_checks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.configs import pod_networks
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.host_plans import host_plans
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.nv_ipam import files
from ansible_collections.railops.rdma.tests.kernel.netns_fabric import Fabric, entered, inside, run, wait_for
from ansible_collections.railops.rdma.tests.unit.fabric_samples import plan_of, rails

RAILS = 2
PACKETS = 40
ARP = {"arp_ignore": "1", "arp_announce": "2", "rp_filter": "0"}
STATE = ("/var/lib/cni", "/run/cni")
IP_PKTINFO = 8


@pytest.fixture(scope="module")
def programs():
    """The folder of the plugins."""
    try:
        return packages.unpacked("containernetworking-plugins") / "usr/lib/cni"
    except packages.NotOfferedError as exc:
        pytest.skip(f"{exc}; where apt has it: apt-get install containernetworking-plugins")


def planned(**more):
    raw = {"mode": "exclusive", "supernets": ["172.17.0.0/16", "fd00:17::/48"], "rails": rails(RAILS), "max_nodes": 8}
    return plan_of({**raw, "ipam": "nv-ipam", "namespace": "network-operator", **more}, ["node1", "node2"])


class PluginError(Exception):
    """A plugin failed: which, and what it says."""


class LinkGoneError(PluginError):
    """sbr before 1.3.0 says of an interface that is gone: not found."""


class Pod:
    """A namespace with an eth0 that leads everywhere, and the rails that the chains have brought."""

    def __init__(self, lab: Lab, host: int, number: int) -> None:
        self.lab, self.host, self.number = lab, lab.hosts[host], number
        self.name = f"{lab.name}-p{number}"
        self.slot = host
        run("ip", "netns", "add", self.name)
        far = f"pod{number}"
        lines = ["link set lo up", f"link add eth0 type veth peer name {far} netns {lab.core}"]
        # What the kernel gives an interface a moment later would be a difference.
        lines += ["link set eth0 addrgenmode none", "link set eth0 up"]
        lines += [f"address add 198.51.100.{100 + number}/24 dev eth0", "route add default via 198.51.100.254"]
        lines += [f"address add 2001:db8::{100 + number}/64 dev eth0 nodad", "route add default via 2001:db8::fe"]
        run("ip", "-n", lab.core, "address", "replace", "2001:db8::fe/64", "dev", "mgmt", "nodad")
        self.ip("-batch", "-", stdin="\n".join(lines) + "\n")
        run("ip", "-n", lab.core, "link", "set", far, "master", "mgmt", "up")

    def ip(self, *argv: str, stdin: str | None = None) -> str:
        return run("ip", "-n", self.name, *argv, stdin=stdin)

    def addresses(self, rail: int) -> dict[int, str]:
        """Return the address that the plan has for this pod on a rail (from 1), by family."""
        return {family: item["address"].partition("/")[0] for family, item in self._ipam(rail).items()}

    def _ipam(self, rail: int) -> dict[int, dict[str, str]]:
        found = {}
        for block in self.lab.plan.blocks:
            if block.rail == rail - 1:
                kind = ipaddress.IPv4Address if block.family == 4 else ipaddress.IPv6Address
                first = block.pods(self.slot)[0][0]
                found[block.family] = {"address": f"{kind(first + self.number)}/{block.subnet_length}"}
                if (gateway := block.gateway(self.slot)) is not None:
                    found[block.family]["gateway"] = str(kind(gateway))
        return found

    def chain(self, rail: int) -> list[dict]:
        """Return what a runtime gives the rail's plugins, with `static` in nv-ipam's place.

        In a virtual function's place is a port of the host that `host-device` moves, and no RDMA device.
        """
        config = json.loads(self.lab.networks[rail - 1]["spec"]["config"])
        plugins = config.pop("plugins")
        plugins[0]["ipam"] = {"type": "static", "addresses": list(self._ipam(rail).values())}
        if plugins[0]["type"] == "sriov":
            plugins[0] |= {"type": "host-device", "device": f"vf{rail}"}
            plugins = [plugin for plugin in plugins if plugin["type"] != "rdma"]
        return [{**config, **plugin} for plugin in plugins]

    def call(self, command: str, plugin: dict, rail: int, netns: str | None = None) -> dict:
        """Run one plugin on the pod's host; return its result."""
        environ = {
            "PATH": os.environ["PATH"],
            "CNI_COMMAND": command,
            "CNI_CONTAINERID": self.name,
            "CNI_NETNS": f"/run/netns/{self.name}" if netns is None else netns,
            "CNI_IFNAME": f"net{rail}",
            "CNI_PATH": str(self.lab.programs),
        }
        argv = ["ip", "netns", "exec", self.host.name, str(self.lab.programs / plugin["type"])]
        given = json.dumps(plugin)
        done = subprocess.run(argv, env=environ, input=given, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            text = json.loads(done.stdout)["msg"]
            kind = LinkGoneError if text == f"Failed to get link net{rail}: Link not found" else PluginError
            raise kind(f"{plugin['type']}: {text}")
        return json.loads(done.stdout or "{}")

    def add(self, rail: int, *, only: int | None = None) -> dict:
        """Put a rail into the pod; `only` so many of its plugins, as a runtime that is killed then."""
        result: dict = {}
        for plugin in self.chain(rail)[:only]:
            result = self.call("ADD", {**plugin, **({"prevResult": result} if result else {})}, rail)
        return result

    def delete(self, rail: int, *, netns: str | None = None) -> None:
        """Take a rail out of the pod: a runtime ends at the first plugin that fails."""
        for plugin in reversed(self.chain(rail)):
            self.call("DEL", plugin, rail, netns)

    def socket(self, address: str) -> socket.socket:
        """Return a UDP socket of this pod that is bound to an address."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with entered(self.name):
            sock = socket.socket(family, socket.SOCK_DGRAM)
        sock.settimeout(10)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
        sock.bind((address, 0))
        return sock

    def sent(self) -> dict[str, int]:
        return {item["ifname"]: item["stats64"]["tx"]["packets"] for item in json.loads(self.ip("-j", "-s", "link"))}

    def index(self, interface: str) -> int:
        return json.loads(self.ip("-j", "link", "show", interface))[0]["ifindex"]

    def state(self) -> tuple[list[str], ...]:
        """Return links, addresses, rules and all routes."""
        rules = [*self.ip("rule").splitlines(), *self.ip("-6", "rule").splitlines()]
        routes = [line for f in "46" for line in self.ip(f"-{f}", "route", "show", "table", "all").splitlines()]
        links = [item["ifname"] for item in json.loads(self.ip("-j", "link"))]
        return links, self.ip("-o", "address").splitlines(), rules, sorted(routes)


class Lab(Fabric):
    """Two hosts of the plan, its leaves, and pods."""

    def __init__(self, name: str, plan, programs: Path) -> None:
        super().__init__(name, 2, RAILS)
        self.plan, self.programs = plan, programs
        self.networks = list(yaml.safe_load_all(files(plan)["networks.yaml"]))
        self.pods: list[Pod] = []

    def __enter__(self) -> Lab:
        super().__enter__()
        lines = []
        for rail in range(1, RAILS + 1):
            for slot, host in enumerate(self.hosts):
                host.ip("link", "set", f"ens{rail}np0", "mtu", str(self.plan.fabric.mtu), "up")
                for block in self.plan.blocks:
                    if block.rail == rail - 1 and (gateway := block.gateway(slot)) is not None:
                        kind = ipaddress.IPv4Address if block.family == 4 else ipaddress.IPv6Address
                        more = " nodad" if block.family == 6 else ""
                        lines.append(f"address add {kind(gateway)}/{block.subnet_length} dev leaf{rail}{more}")
        run("ip", "-n", self.core, "-batch", "-", stdin="\n".join(lines) + "\n")
        return self

    def pod(self, host: int, number: int) -> Pod:
        pod = Pod(self, host, number)
        self.pods.append(pod)
        return pod

    def close(self) -> None:
        for pod in self.pods:
            run("ip", "netns", "del", pod.name, check=False)
        super().close()


def functions(lab: Lab) -> None:
    """Give each host ports of its own that pods can get, in virtual functions' place."""
    for host in lab.hosts:
        for rail in range(1, RAILS + 1):
            far = f"vf{host.number}-{rail}"
            host.ip("link", "add", f"vf{rail}", "mtu", "1500", "type", "veth", "peer", far, "netns", lab.core)
            run("ip", "-n", lab.core, "link", "set", far, "mtu", "9000", "master", f"leaf{rail}", "up")


def leftovers(lab: Lab) -> list[str]:
    """Return the files that CNI plugins keep of this lab's pods."""
    return [str(path) for folder in STATE for path in Path(folder).rglob(f"*{lab.name}*")]


def without(kind: str) -> str:
    """Say why a kind of interface cannot be made here, or nothing."""
    name = f"rr-net-{os.getpid()}-kind"
    run("ip", "netns", "add", name)
    try:
        run("ip", "-n", name, "link", "add", "parent", "type", "veth", "peer", "far")
        run("ip", "-n", name, "link", "add", "link", "parent", "name", "child", "type", kind)
    except AssertionError as exc:
        return f"this kernel cannot make {kind}: {exc}"
    finally:
        run("ip", "netns", "del", name)
    return ""


@pytest.fixture
def lab(request, programs):
    attachment = getattr(request, "param", "macvlan")
    if why := without(attachment):
        pytest.skip(why)
    with Lab("pods", planned(attachment=attachment), programs) as made:
        yield made


def route(pod: Pod, target: str, source: str) -> dict:
    return json.loads(pod.ip("-j", "route", "get", target, "from", source))[0]


def passes(one: Pod, source: tuple[int, str], other: Pod, target: tuple[int, str]) -> None:
    """Send datagrams and answers: both ways each leaves by the sender's own rail and comes in by the receiver's."""
    (rail, source_address), (far, target_address) = source, target
    assert route(one, target_address, source_address)["dev"] == f"net{rail}"
    assert route(other, source_address, target_address)["dev"] == f"net{far}"
    before = one.sent(), other.sent()
    with contextlib.ExitStack() as stack:
        here, there = (
            stack.enter_context(pod.socket(address))
            for pod, address in ((one, source_address), (other, target_address))
        )
        ways = ((there, other.index(f"net{far}")), (here, one.index(f"net{rail}")))
        for number in range(PACKETS):
            here.sendto(b"%d" % number, there.getsockname()[:2])
            for receiver, came_by in ways:
                data, extra, _flags, sender = receiver.recvmsg(100, 100)
                assert data == b"%d" % number
                # struct in_pktinfo begins with the interface, in6_pktinfo ends with it.
                place = 16 if ":" in target_address else 0
                assert struct.unpack_from("=i", extra[0][2], place)[0] == came_by
                if receiver is there:
                    there.sendto(data, sender[:2])
    for pod, was, by in ((one, before[0], rail), (other, before[1], far)):
        more = {name: count - was[name] for name, count in pod.sent().items()}
        assert more[f"net{by}"] >= PACKETS, more
        assert all(count < PACKETS for name, count in more.items() if name != f"net{by}"), more


def pairs(one: Pod, other: Pod):
    for rail in range(1, RAILS + 1):
        for far in range(1, RAILS + 1):
            for family, source in one.addresses(rail).items():
                yield (rail, source), (far, other.addresses(far)[family])


def assert_complete(*pods: Pod) -> None:
    """Put all rails into pods, the pods at once."""

    def all_rails(pod: Pod) -> None:
        for rail in range(1, RAILS + 1):
            pod.add(rail)
        # The plugins wait for it only where there is a gateway.
        wait_for(lambda: "tentative" in pod.ip("address"), False)

    with ThreadPoolExecutor() as pool:
        list(pool.map(all_rails, pods))


def rules(pod: Pod) -> list[tuple[str, str]]:
    """Return source and table of all rules but the kernel's own."""
    found = [row for f in "46" for row in json.loads(pod.ip("-j", f"-{f}", "rule"))]
    return [(row["src"], row["table"]) for row in found if row["src"] != "all"]


def routes(pod: Pod, family: int, table: str) -> set[tuple[str, str | None, str]]:
    """Return destination, gateway and interface of a table's routes."""
    found = json.loads(pod.ip("-j", f"-{family}", "route", "show", "table", table) or "[]")
    return {(row["dst"], row.get("gateway"), row["dev"]) for row in found}


@pytest.mark.parametrize("lab", ["macvlan", "ipvlan"], indirect=True)
def test_each_address_leaves_by_its_rail_and_del_leaves_nothing(lab):
    pods = [lab.pod(0, 1), lab.pod(1, 2), lab.pod(0, 3)]
    before = [pod.state() for pod in pods]
    assert_complete(*pods)
    for one, other in ((pods[0], pods[1]), (pods[0], pods[2])):
        for source, target in pairs(one, other):
            passes(one, source, other, target)
    for pod, state in zip(pods, before, strict=True):
        for rail in range(RAILS, 0, -1):
            pod.delete(rail)
        assert pod.state() == state
    assert leftovers(lab) == []


def test_a_pod_has_a_table_for_each_address_and_nothing_of_the_rails_in_main(lab):
    pod = lab.pod(0, 1)
    main = {family: routes(pod, family, "main") for family in (4, 6)}
    assert_complete(pod)
    addresses = [address for rail in range(1, RAILS + 1) for address in pod.addresses(rail).values()]
    assert sorted(rules(pod)) == sorted((address, str(100 + n)) for n, address in enumerate(addresses))
    assert {family: routes(pod, family, "main") for family in (4, 6)} == main
    assert routes(pod, 4, "100") == {("default", "172.17.0.1", "net1"), ("172.17.0.0/27", None, "net1")}
    six = {("default", "fd00:17::1", "net1"), ("fd00:17::/64", None, "net1"), ("fe80::/64", None, "net1")}
    assert routes(pod, 6, "101") == six
    # Copies that no rule leads to.
    assert routes(pod, 6, "100") == six - {("default", "fd00:17::1", "net1")}
    # Neighbors are found by multicast, whose route is in no table that is moved.
    local = json.loads(pod.ip("-j", "-6", "route", "show", "table", "local", "type", "multicast"))
    assert {row["dev"] for row in local} == {"eth0", "net1", "net2"}
    for target in ("172.17.1.9", "fd00:17:0:8::9"):
        assert json.loads(pod.ip("-j", "route", "get", target))[0]["dev"] == "eth0"
    wanted = {"ipv4/conf/all/rp_filter": "0"}
    for name in ("net1", "net2"):
        wanted |= {f"ipv4/conf/{name}/{key}": value for key, value in ARP.items()} | {
            f"ipv6/conf/{name}/accept_ra": "0"
        }
    assert inside(pod.name, lambda: {key: Path("/proc/sys/net", key).read_text().strip() for key in wanted}) == wanted


def test_verify_finds_these_pods_as_planned(lab):
    pod, plan = lab.pod(1, 1), lab.plan
    assert_complete(pod)
    networks = {DECLARED: pod_networks(plan)[DECLARED]}
    node = node_of(host_plans(plan)["node2.json"], networks)
    assert all(len(network.gateways) == 2 for network in node.networks)
    status = [
        {"name": row["name"], "interface": f"net{rail}", "ips": list(pod.addresses(rail).values())}
        for rail, row in enumerate(networks[DECLARED], 1)
    ]
    # Without those that ask for RDMA devices.
    looks = ("rules4", "rules6", "routes4", "routes6", "links")
    printed = {name: run("ip", "netns", "exec", pod.name, *COMMANDS[name]) for name in looks}
    found = inside_checks(node, {"metadata": {"annotations": {POD_STATUS: json.dumps(status)}}}, printed)
    assert {check["status"] for check in found} == {"ok"}, found
    assert {check["id"] for check in found} == {"pod_interface", "pod_rule", "pod_table", "pod_main_table"}


@pytest.mark.parametrize("supernet", ["172.17.0.0/16", "fd00:17::/48"])
def test_one_family_only(programs, supernet):
    with Lab("pods", planned(supernets=[supernet]), programs) as lab:
        one, other = lab.pod(0, 1), lab.pod(1, 2)
        before = one.state()
        assert_complete(one, other)
        for source, target in pairs(one, other):
            passes(one, source, other, target)
        one.delete(1)
        one.delete(2)
        assert one.state() == before


def test_without_a_gateway_a_rail_reaches_its_own_subnet_and_the_rest_falls_through_to_main(programs):
    with Lab("pods", planned(gateway="none"), programs) as lab:
        one, other = lab.pod(0, 1), lab.pod(0, 2)
        assert_complete(one, other)
        for source, target in pairs(one, other):
            if source[0] == target[0]:
                passes(one, source, other, target)
            else:
                assert route(one, target[1], source[1])["dev"] == "eth0"
