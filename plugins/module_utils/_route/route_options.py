# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turn a host plan into the options of its network, or report each problem in it."""

from __future__ import annotations

import ipaddress
import re
import typing as t
from dataclasses import dataclass, replace

from .._errors import InputError, Problem
from .._fabric.numbers import BASES, IFNAME_MAX, IPOIB_DATAGRAM_MTU, MAX_RAILS, claimed, taken_by, vlan_interface

IPOIB_GROUP = (
    "Give the partition's IPoIB group that MTU in the subnet manager (OpenSM: mtu=5 is 4096, 4092 for IP), or declare"
    " what the group has as fabric_mtu. [ipoib_group]"
)
NO_INTERFACE = "Look with `ip -br link`; declare the name or PCI address in fabric_interfaces. [interface_not_found]"
SYSCTL = re.compile(r"^net/(ipv4|ipv6|core)/[A-Za-z0-9_@:.\-/]+$")
INTERFACE = re.compile(r"^[^\s/]{1,127}$")


@dataclass(frozen=True)
class AddressOptions:
    """A rail's address: `address` inside `subnet`; `gateway` is the switch's address, or empty."""

    family: int
    address: str
    length: int
    subnet: str
    gateway: str


@dataclass(frozen=True)
class RailOptions:
    """A rail of the host. `mtu` in bytes, or None to leave it as it is; `vlan` is the ID of its VLAN, 0 untagged."""

    name: str
    index: int
    interface: str
    pci: str
    mtu: int | None
    table: int
    priority: int
    metric: int
    addresses: tuple[AddressOptions, ...]
    vlan: int = 0

    @property
    def identifier(self) -> str:
        """The identifier of the rail's port: its name, an alternative name, or a PCI address."""
        return self.interface or self.pci

    @property
    def ipoib_mode(self) -> str:
        """The mode of IP over InfiniBand that carries the rail's MTU."""
        return "connected" if (self.mtu or 0) > IPOIB_DATAGRAM_MTU else "datagram"

    @property
    def device(self) -> str:
        """The interface of the rail's addresses: the port, or that of its VLAN, which has the declared name."""
        return vlan_interface(self.interface, self.vlan) if self.vlan else self.identifier


@dataclass(frozen=True)
class RouteOptions:
    """The options of a host's network."""

    rails: tuple[RailOptions, ...]
    prefixes: tuple[str, ...]
    policy: str = "prefixes"
    network: str = "roce"
    present: bool = True
    force: frozenset[str] = frozenset()
    adopt_ports: frozenset[str] = frozenset()
    sysctls: tuple[tuple[str, str], ...] = ()
    lost: frozenset[str] = frozenset()
    """The names of rails whose interface is gone: they stay as they are."""
    out: tuple[RailOptions, ...] = ()
    """The rails that are out of service: they stay as they are, and nothing of them is read."""

    def claimed(self, key: str) -> range:
        """Return the numbers that are this fabric's: tables, rule priorities or metrics, by their key in BASES."""
        if not self.rails:
            return range(0)
        return claimed(getattr(self.rails[0], key) - self.rails[0].index, max(rail.index for rail in self.rails))

    def prefixes_of(self, family: int) -> tuple[str, ...]:
        """Return the RDMA prefixes of one family, 4 or 6."""
        return tuple(prefix for prefix in self.prefixes if (":" in prefix) == (family == 6))


Wire = t.Callable[[t.Collection[tuple[str, str]]], t.Mapping[tuple[str, str], str]]
"""Resolves (interface, address) pairs to MAC addresses by ARP or NDP; pairs without an answer are absent."""


class Neighbor(t.NamedTuple):
    """An address of another host's rail; `zone` is empty where it is this host's."""

    host: str
    zone: str
    rail: str
    family: int
    address: str


def neighbors_of(hosts: t.Iterable[t.Mapping[str, t.Any]]) -> list[Neighbor]:
    """Return the addresses of other hosts.

    :param hosts: `host`, `zone` where it is another one than this host's, and `rails`.
    """
    return [
        Neighbor(host.get("host") or "", host.get("zone") or "", rail.get("name") or "", 6 if ":" in text else 4, text)
        for host in hosts
        for rail in host.get("rails") or []
        for text in (item["address"].partition("/")[0] for item in rail.get("addresses") or [])
    ]


def parse_options(params: t.Mapping[str, t.Any]) -> RouteOptions:
    """Return the options of the module's parameters (or a host plan); raise InputError with all problems."""
    problems: list[Problem] = []
    networks = set(_networks(params.get("rdma_prefixes") or [], problems))
    sysctls = {str(key): str(value) for key, value in (params.get("sysctls") or {}).items()}
    present = (params.get("state") or "present") == "present"
    out = params.get("out_of_service") or [] if present else []
    want = RouteOptions(
        rails=tuple(_rail(raw, number, problems) for number, raw in enumerate(params.get("rails") or [])),
        out=tuple(_rail(raw, number, problems) for number, raw in enumerate(out)),
        prefixes=tuple(map(str, sorted(networks, key=ipaddress.get_mixed_type_key))),
        policy=params.get("policy") or "prefixes",
        network=params.get("network") or "roce",
        present=present,
        force=frozenset(params.get("force") or ()),
        adopt_ports=frozenset(params.get("adopt_ports") or ()),
        sysctls=tuple(sorted(sysctls.items())),
    )
    for number, rail in enumerate(want.rails):
        problems += [*_number_problems(want, rail, f"rails[{number}]"), *_rail_problems(rail, f"rails[{number}]")]
    problems += [*_sysctl_problems(sysctls), *_distinct_problems(want), *_exclusion_conflicts(want)]
    if problems:
        raise InputError(problems)
    return want


def task_options(params: t.Mapping[str, t.Any]) -> RouteOptions:
    """Return the options of a task; without a rail it would remove all rails of the host.

    :raises InputError: for all that is wrong.
    """
    if params["state"] == "present" and not params.get("rails"):
        fix = (
            "List all rails of the host in one call, or set plan_dir. To remove all, set state: absent. [rails_missing]"
        )
        raise InputError([Problem("rails", "There is none, and state is present.", fix)])
    return parse_options(params)


def named(want: RouteOptions, names: t.Mapping[str, str]) -> RouteOptions:
    """Return the want with its sysctls under the links' own names: /proc/sys knows no alternative names.

    :param names: the name of the link that each rail asks for by a name or an alternative name.
    """

    def own(key: str) -> str:
        parts = key.split("/")
        # net/ipv4/conf/INTERFACE/setting
        if len(parts) == 5:
            parts[3] = names.get(parts[3], parts[3])
        return "/".join(parts)

    return replace(want, sysctls=tuple(sorted((own(key), value) for key, value in want.sysctls)))


def without(want: RouteOptions, lost: t.Collection[RailOptions]) -> RouteOptions:
    """Return the want that leaves these rails as they are: /proc/sys has nothing of an interface that is gone."""
    missing = {name for rail in lost for name in (rail.interface, rail.device)}
    sysctls = tuple((key, value) for key, value in want.sysctls if missing.isdisjoint(key.split("/")))
    return replace(want, sysctls=sysctls, lost=frozenset(rail.name for rail in lost))


def _networks(values: t.Iterable[str], problems: list[Problem]) -> t.Iterator[t.Any]:
    for number, value in enumerate(values):
        try:
            yield ipaddress.ip_network(value)
        except ValueError as exc:
            fix = "Write a network in CIDR notation. [network_format]"
            problems.append(Problem(f"rdma_prefixes[{number}]", f"{exc}.", fix))


def _rail(raw: t.Mapping[str, t.Any], number: int, problems: list[Problem]) -> RailOptions:
    index = raw.get("index") or number + 1
    place, items = f"rails[{number}].addresses", enumerate(raw.get("addresses") or [])
    return RailOptions(
        name=raw.get("name") or f"rail{index}",
        index=index,
        interface=raw.get("interface") or "",
        pci=raw.get("pci") or "",
        mtu=raw.get("mtu"),
        table=raw.get("table") or BASES["table"] + index,
        priority=raw.get("rule_priority") or BASES["priority"] + index,
        metric=raw.get("metric") or BASES["metric"] + index,
        addresses=tuple(own for at, row in items for own in _address(row, f"{place}[{at}]", problems)),
        vlan=raw.get("vlan") or 0,
    )


def _address(raw: t.Mapping[str, t.Any], place: str, problems: list[Problem]) -> t.Iterator[AddressOptions]:
    try:
        address = ipaddress.ip_address(raw["address"])
        subnet = ipaddress.ip_network(raw["subnet"])
        gateway = ipaddress.ip_address(raw["gateway"]) if raw.get("gateway") else None
    except ValueError as exc:
        fix = "Write an address and the network (CIDR) that it is in. [address_format]"
        problems.append(Problem(place, f"{exc}.", fix))
        return
    for key, value in (("address", address), ("gateway", gateway)):
        if value is not None and value not in subnet:
            text = f"{value} is outside of the subnet {subnet}."
            problems.append(Problem(f"{place}.{key}", text, "Set one inside of it. [gateway_outside]"))
    yield AddressOptions(address.version, str(address), subnet.prefixlen, str(subnet), str(gateway) if gateway else "")


def _number_problems(want: RouteOptions, rail: RailOptions, place: str) -> t.Iterator[Problem]:
    if rail.index > MAX_RAILS:
        fix = f"A host has at most {MAX_RAILS} rails. [too_many_rails]"
        yield Problem(f"{place}.index", f"{rail.index} is too large.", fix)
        return
    for key in BASES:
        numbers, value = want.claimed(key), getattr(rail, key)
        reason = taken_by(key, numbers, want.policy)
        if value not in numbers:
            reason = f"{value} is outside of {numbers[0]} to {numbers[-1]}, the numbers of these rails"
        if reason:
            fix = f"Leave it out: rail {rail.index} has {BASES[key] + rail.index} then. [number_reserved]"
            yield Problem(f"{place}.{'rule_' * (key == 'priority')}{key}", f"{reason}.", fix)


def _rail_problems(rail: RailOptions, place: str) -> t.Iterator[Problem]:
    if not rail.identifier:
        yield Problem(place, "names neither interface nor pci.", "Set interface or pci. [rail_interface_missing]")
    if rail.interface and not INTERFACE.match(rail.interface):
        yield Problem(
            f"{place}.interface", f"{rail.interface!r} is no interface name.", "Correct the name. [interface_name]"
        )
    if not 0 <= rail.vlan <= 4094:
        yield Problem(f"{place}.vlan", f"{rail.vlan} is no VLAN.", "Give 1 to 4094, or 0 for untagged. [vlan_range]")
    elif rail.vlan and not 0 < len(rail.interface) <= IFNAME_MAX - len(f".{rail.vlan}"):
        text = f"the name {rail.device!r} is longer than {IFNAME_MAX} characters."
        fix = "Give the rail's interface a shorter name (rdma_host_naming: name). [vlan_name]"
        yield Problem(f"{place}.vlan", text if rail.interface else "needs the interface's name.", fix)


def _sysctl_problems(keys: t.Iterable[str]) -> t.Iterator[Problem]:
    for key in keys:
        if not SYSCTL.match(key) or ".." in key:
            fix = "Write it like net/ipv4/conf/ens1np0/arp_ignore. [sysctl_format]"
            yield Problem(f"sysctls[{key!r}]", "is not a network setting in slash notation.", fix)


def _distinct_problems(want: RouteOptions) -> t.Iterator[Problem]:
    seen: dict[tuple[str, t.Any], str] = {}
    for number, rail in enumerate(want.rails):
        own = [("name", rail.name), ("table", rail.table), ("rule_priority", rail.priority)]
        own += [("interface", rail.interface)] if rail.interface else []
        own += [("address", item.address) for item in rail.addresses]
        for key, value in own:
            place = f"rails[{number}].{key}"
            if (first := seen.setdefault((key, value), place)) != place:
                yield Problem(place, f"{value} is that of {first} already.", "Give each rail its own. [value_in_use]")


def _exclusion_conflicts(want: RouteOptions) -> t.Iterator[Problem]:
    """Refuse the style default_route where its exclusion rule would send RDMA traffic away.

    With two prefixes of a family every destination matches the other's `not`, and leaves by main's default route.
    """
    if want.policy != "default_route" or want.network == "infiniband":
        return
    for family in sorted({item.family for rail in want.rails for item in rail.addresses}):
        if (count := len(want.prefixes_of(family))) != 1:
            yield Problem(
                "policy",
                f"default_route needs exactly one IPv{family} RDMA prefix, and there are {count}: the exclusion"
                " rule `not to PREFIX lookup main` of each would catch the traffic of the others.",
                "Use the policy prefixes (the default), or one supernet per family. [default_route_one]",
            )


def management_network_problem(place: str, rail: RailOptions, interface: str, carried: str) -> Problem:
    """Return the refusal of a rail whose interface carries the host's own network.

    :param carried: what of the host's own network.
    """
    fix = (
        f"Name the rail's own interface; remove a second default route (`ip route show table all dev {interface}`, then"
        " -6), and the router or daemon that sends it; or list a true rail in rail_network_force. [port_in_use]"
    )
    return Problem(f"{place}.interface", f"{rail.name}: {interface} carries {carried}.", fix)
