# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a lab looks like: names, addresses and gateways as plain data. Nothing here touches the machine."""

from __future__ import annotations

import csv
import ipaddress
import json
import re
import typing as t
from dataclasses import dataclass

from shell import LabError

if t.TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

KINDS = ("netns", "guests")
MANAGERS = ("networkd", "netplan", "networkmanager")
# Every lab has a fabric namespace of its own, so the same management network serves all of them.
MANAGEMENT = ipaddress.IPv4Network("10.99.0.0/16")
MANAGEMENT6 = ipaddress.IPv6Network("fd99::/64")
# What a switch port carries; hosts start with 1500 and are given theirs by the role.
FABRIC_MTU = 9216
FIRST_RAIL_SLOT = 0x11
MOST_RAILS = 14


@dataclass(frozen=True)
class Host:
    """One host of a lab; `number` counts from 1 and gives addresses and port names."""

    name: str
    number: int

    @property
    def address(self) -> str:
        """The management address."""
        return str(MANAGEMENT[256 + self.number])

    @property
    def address6(self) -> str:
        """The management address, IPv6."""
        return str(MANAGEMENT6[256 + self.number])

    def port(self, rail: int) -> str:
        """Return the fabric's end of a rail's cable; rail 0 is the management network."""
        return f"n{self.number}r{rail}" if rail else f"n{self.number}m"

    def mac(self, rail: int) -> str:
        """Return the MAC address of a rail (0: management), of the range for local use."""
        return f"02:52:44:{self.number >> 8:02x}:{self.number & 255:02x}:{rail:02x}"


@dataclass(frozen=True)
class Lab:
    """The declaration of a lab, as `up` received it."""

    name: str
    kind: str
    nodes: int
    interfaces: tuple[str, ...]
    manager: str = "networkd"
    memory: int = 1024
    cluster: bool = False
    names: tuple[str, ...] = ()
    """What the hosts are called; node1, node2, ... where nothing is said."""
    suite: str = "bookworm"

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,19}", self.name):
            raise LabError(
                f"{self.name!r} cannot be a lab's name.",
                "Use at most 20 lower-case letters, digits and dashes, a letter first.",
            )
        if self.cluster and self.kind != "guests":
            raise LabError("Namespaces cannot be nodes of a cluster.", "Ask for --kind guests --cluster.")
        if self.cluster and self.suite != "bookworm":
            raise LabError(f"The image of {self.suite} cannot be a node of a cluster.", "Leave out --suite.")
        if not 1 <= self.nodes <= 200:
            raise LabError(f"A lab of {self.nodes} nodes is not possible.", "Ask for 1 to 200.")
        if self.names and len(self.names) != self.nodes:
            raise LabError(f"{len(self.names)} names for {self.nodes} hosts.", "Give each host one (--names).")
        for name in self.names:
            if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?", name) or self.names.count(name) > 1:
                raise LabError(f"{name!r} cannot be a host's name, or is given twice.", "Use names as DNS has them.")
        if not 1 <= len(self.interfaces) <= MOST_RAILS:
            raise LabError(f"{len(self.interfaces)} rails are not possible.", f"Ask for 1 to {MOST_RAILS}.")
        for name in self.interfaces:
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,15}", name) or name in ("lo", "mgmt0"):
                raise LabError(f"{name!r} cannot be a rail's interface.", "Use at most 15 letters, digits, '_.-'.")
        if len(set(self.interfaces)) != len(self.interfaces):
            raise LabError("Two rails have one interface name.", "Give each rail its own.")

    @property
    def fabric(self) -> str:
        """The network namespace of switches, management network and controller."""
        return f"rlab-{self.name}"

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts, the first first."""
        names = self.names or tuple(f"node{number}" for number in range(1, self.nodes + 1))
        return tuple(Host(name, number) for number, name in enumerate(names, 1))

    @property
    def rails(self) -> range:
        """The numbers of the rails: from 1."""
        return range(1, len(self.interfaces) + 1)

    def namespace(self, host: Host) -> str:
        """Return the network namespace of a host of the kind netns."""
        return f"{self.fabric}.{host.name}"

    def host(self, name: str) -> Host:
        """Return a host by name."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise LabError(
            f"The lab {self.name!r} has no host {name!r}.", f"It has {self.hosts[0].name} to {self.hosts[-1].name}."
        )


def default_interfaces(rails: int) -> tuple[str, ...]:
    """Return the names of the examples: ens1np0, ens2np0, ..."""
    return tuple(f"ens{number}np0" for number in range(1, rails + 1))


@dataclass(frozen=True, order=True)
class Gateway:
    """An address of a leaf: on the leaf's bridge, or on one host's port when the subnet is that host's alone."""

    rail: int
    address: str
    host: str | None

    @property
    def family(self) -> int:
        """4 or 6."""
        return 6 if ":" in self.address else 4


def read_host_plans(folder: Path) -> dict[str, dict[str, t.Any]]:
    """Read the host plans of a plan folder, by host name."""
    host_plans = {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("hosts/*.json"))
    }
    if not host_plans:
        raise LabError(
            f"{folder} holds no plan (no hosts/*.json).",
            "Make one with the playbook railops.rdma.plan and give its folder, plan/<fabric_name>.",
        )
    return host_plans


def check_switch_table(folder: Path, gateways: Iterable[Gateway]) -> None:
    """Refuse a plan whose table for the switches (switch/gateways.csv) lacks an address that its hosts will use."""
    path = folder / "switch/gateways.csv"
    if not path.exists():
        return
    with path.open(encoding="utf-8", newline="") as stream:
        reported = {f"{row['gateway']}/{row['subnet'].rpartition('/')[2]}" for row in csv.DictReader(stream)}
    if lacking := sorted(gateway.address for gateway in gateways if gateway.address not in reported):
        raise LabError(f"{path} lacks {', '.join(lacking)}, which hosts of the plan use.", "Make the plan again.")


def gateways_of(lab: Lab, host_plans: dict[str, dict[str, t.Any]]) -> tuple[Gateway, ...]:
    """Return the addresses that the leaves need for the lab's hosts.

    A subnet that one host has for itself is a routed port, as in a routed (exclusive) fabric; one that several hosts
    share is an address of the leaf's bridge.
    """
    users: dict[tuple[int, str], set[str]] = {}
    wanted = {host.name for host in lab.hosts}
    for name, content in host_plans.items():
        for rail in content["rails"] if name in wanted else ():
            for address in rail["addresses"]:
                if address["gateway"] is None:
                    continue
                if rail["index"] not in lab.rails:
                    raise LabError(
                        f"The plan's {name} has a rail {rail['index']}; the lab has {len(lab.rails)} rails.",
                        f"Start the lab with --rails {rail['index']} or more.",
                    )
                length = address["subnet"].rpartition("/")[2]
                users.setdefault((rail["index"], f"{address['gateway']}/{length}"), set()).add(name)
    if not wanted & set(host_plans):
        raise LabError(
            f"The plan has no host plan for a host of the lab {lab.name!r}.",
            f"Plan for an inventory with {lab.hosts[0].name} to {lab.hosts[-1].name} (`lab.py inventory {lab.name}` "
            "prints one), or start the lab with --names.",
        )
    return tuple(
        sorted(
            Gateway(rail, address, next(iter(names)) if len(names) == 1 else None)
            for (rail, address), names in users.items()
        )
    )


def routed_ports(lab: Lab, gateways: Iterable[Gateway]) -> dict[tuple[int, str], bool]:
    """Say of each (rail, host) whether its port is routed (True) or a member of the leaf's bridge (False)."""
    gateways = tuple(gateways)
    bridged = {gateway.rail for gateway in gateways if gateway.host is None}
    own = {(gateway.rail, gateway.host) for gateway in gateways if gateway.host is not None}
    # A rail with both (one family shared, the other not) stays a bridge: the port cannot be in two places.
    return {
        (rail, host.name): rail not in bridged and (rail, host.name) in own for rail in lab.rails for host in lab.hosts
    }
