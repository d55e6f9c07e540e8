# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What carries a host's own network and must never lose it: the one place that decides it, for all who change a host.

That is where default routes leave (every next hop, both families, every table that rules choose for the host's own
packets), where Ansible's connection comes in and its answers leave, and all lower devices of these. It queries `ip`,
since modules that change no routes have no pyroute2.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import os
import typing as t
from dataclasses import dataclass, field

from ._errors import RdmaError
from ._files import Sysfs
from ._programs import run_program

# Reserved (RFC 1112 section 4) and unallocated global unicast: what covers them is a default route, or half of one.
PROBE_ADDRESSES = {4: "240.0.0.1", 6: "3fff:ffff::1"}
# 0.0.0.0/1 with 128.0.0.0/1, and 2000::/3, replace a default route; 240.0.0.0/8 is an ordinary network.
LONGEST_DEFAULT = 3
MAX_DEPTH = 32
SECONDS = 60
Json = dict[str, t.Any]


@dataclass(frozen=True)
class ManagementNetwork:
    """The interfaces of the default routes and of Ansible's connection, with all their lower devices.

    :param peer: the other end of Ansible's connection; empty without one.
    :param lower: the direct lower devices of each interface: parent, members, ports, a VF's physical function.
    :param seen: for each family the output of `ip`: links, addresses, rules.
    """

    default: frozenset[str] = frozenset()
    connection: frozenset[str] = frozenset()
    peer: str = ""
    lower: t.Mapping[str, frozenset[str]] = field(default_factory=dict)
    seen: t.Sequence[t.Sequence[list[Json]]] = ()

    @property
    def links(self) -> dict[str, Json]:
        """The host's links by name, as `ip -json` prints them."""
        return {link["ifname"]: link for link in self.seen[0][0]} if self.seen else {}

    @property
    def assigned(self) -> list[tuple[str, Json]]:
        """The host's addresses as `ip -json` prints them, each with its interface; those of links alone left out."""
        return [(name, item) for name, item in _assigned(self.seen) if item.get("scope") != "link"]

    def why(self, interface: str) -> str:
        """Return what an interface carries, in words; empty when it may be touched."""
        if interface in self.default:
            return "the default route"
        return "Ansible's own connection" if interface in self.connection else ""

    def under(self, interfaces: t.Iterable[str]) -> frozenset[str]:
        """Return these interfaces and all that they stand on."""
        found: set[str] = set()
        ahead = set(interfaces)
        while ahead:
            found |= ahead
            ahead = {name for upper in ahead for name in self.lower.get(upper, ())} - found
        return frozenset(found)


def questions(ends: tuple[str, str] | None) -> t.Iterator[tuple[list[str], str]]:
    """Yield how `ip` is asked for each family, and what it reads.

    :param ends: of the connection.
    """
    for family in (4, 6):
        lines = ["link show", "address show", "rule show", f"route show table all match {PROBE_ADDRESSES[family]}"]
        if ends and (":" in ends[1]) == (family == 6) and not ends[1].startswith("fe80:"):
            lines.append(f"route get fibmatch {ends[1]}")
        yield ["ip", f"-{family}", "-json", "-force", "-batch", "-"], "\n".join(lines) + "\n"


def read_management_network(sysfs: Sysfs) -> ManagementNetwork:
    """Query the kernel by iproute2, once per process: an audit needs the answer in several groups.

    :raises RdmaError: when there is no `ip`, or it does not answer: then nothing may be touched.
    """
    return query(sysfs.root)


@functools.lru_cache(maxsize=1)
def query(root: str) -> ManagementNetwork:
    """Query the kernel. For `read_management_network`, which describes it."""
    sysfs = Sysfs(root)
    ends = connection_ends(sysfs)
    seen: list[list[list[Json]]] = []
    for argv, text in questions(ends):
        code, output, errors = run_program(argv, text, SECONDS)
        if code == 127:
            raise RdmaError(
                "This host has no program `ip`: what carries its own network is not known.",
                "Install iproute2. [iproute2_missing]",
            )
        answers = lists(output)
        if len(answers) < 4 and seen and "not supported" in errors:
            continue
        if len(answers) < 4:
            raise RdmaError(
                f"`ip` does not show what carries this host's own network: {errors.strip() or output.strip()[:200]}",
                "Install iproute2 4.20 or later and check `ip -j rule show`. [management_network_unknown]",
            )
        seen.append([*answers, []][:5])
    names = (link["ifname"] for link in seen[0][0])
    return decide(seen, ends, {name: sysfs.own_interfaces(f"/sys/class/net/{name}/device/physfn") for name in names})


def decide(
    seen: list[list[list[Json]]], ends: tuple[str, str] | None, physical: t.Mapping[str, t.Iterable[str]]
) -> ManagementNetwork:
    """Return what must not be touched.

    :param seen: for each family, as `ip -json` prints them: links, addresses, rules, the routes that cover an address
        beyond, and the route to the other end of the connection (or nothing).
    :param ends: the connection's address of this host, and its other end.
    :param physical: the interfaces of an interface's physical function, where it is a virtual one.
    """
    links = seen[0][0]
    lower = {link["ifname"]: set(physical.get(link["ifname"], ())) for link in links}
    masters = {link["ifname"]: link["master"] for link in links if "master" in link}
    for link in links:
        if "link" in link:
            lower[link["ifname"]].add(link["link"])
        if link.get("master") in lower:
            lower[link["master"]].add(link["ifname"])
    assigned = [(item["local"], name) for name, item in _assigned(seen)]
    used = {name for address, name in assigned if ends and address == ends[0]}
    default: set[str] = set()
    for _links, _addresses, rules, routes, way in seen:
        used |= _hops(way)
        while True:
            own = {address for address, name in assigned if name in default or (ends and address == ends[0])}
            tables = {str(rule["table"]) for rule in rules if "table" in rule and _for_us(rule, own)}
            more = _hops(item for item in routes if item.get("table", "main") in tables and _leads_beyond(item))
            if more <= default:
                break
            default |= more
    found = ManagementNetwork(lower={name: frozenset(names) for name, names in lower.items()})

    def stack(names: set[str]) -> frozenset[str]:
        below = set(found.under(names))
        above = set(below)
        while above:
            above = {masters[name] for name in above if name in masters} - below
            below |= above
        return frozenset(below)

    return ManagementNetwork(
        stack(default), stack(used), ends[1] if ends else "", found.lower, [row[:3] for row in seen]
    )


def _assigned(seen: t.Sequence[t.Sequence[list[Json]]]) -> t.Iterator[tuple[str, Json]]:
    for _links, addresses, *_more in seen:
        for link in addresses:
            own = (item for item in link.get("addr_info", ()) if "local" in item and link["ifname"] != "lo")
            yield from ((link["ifname"], item) for item in own)


def connection_ends(sysfs: Sysfs) -> tuple[str, str] | None:
    """Return the two ends of the SSH connection that this process serves: this host's address and the other's.

    become takes the variable out of the environment, so the ancestors are asked as well.
    """
    value, process = os.environ.get("SSH_CONNECTION", ""), os.getpid()
    for _generation in range(MAX_DEPTH):
        if value or process < 1:
            break
        pairs = (sysfs.data(f"/proc/{process}/environ") or b"").split(b"\0")
        found = next((pair for pair in pairs if pair.startswith(b"SSH_CONNECTION=")), b"")
        value = found.partition(b"=")[2].decode("ascii", "replace")
        # The command's name is in parentheses and may contain any character.
        fields = (sysfs.text(f"/proc/{process}/stat") or "").rpartition(")")[2].split()
        process = int(fields[1]) if len(fields) > 1 else 0
    words = value.split()
    return (words[2].partition("%")[0], words[0].partition("%")[0]) if len(words) == 4 else None


def lists(text: str) -> list[list[Json]]:
    """Return the JSON lists that follow each other in a text, up to what is none."""
    found, decoder = [], json.JSONDecoder()
    text = text.strip()
    try:
        while text:
            value, end = decoder.raw_decode(text)
            found.append(value)
            text = text[end:].lstrip()
    except ValueError:
        pass
    return found


def _hops(routes: t.Iterable[Json]) -> set[str]:
    hops = [hop for route in routes for hop in (route, *route.get("nexthops", ()))]
    return {hop["dev"] for hop in hops if hop.get("dev", "lo") != "lo"}


def _leads_beyond(route: Json) -> bool:
    length = route["dst"].partition("/")[2]
    short = route["dst"] == "default" or (length and int(length) <= LONGEST_DEFAULT)
    return bool(short) and route.get("type", "unicast") == "unicast"


def _for_us(rule: Json, own: set[str]) -> bool:
    """Whether a rule chooses for packets of the host itself: not for forwarded ones, nor for one destination.

    One for a source counts when the host's own network uses that source: a rail's table is the rail's.
    """
    if rule.get("iif", "lo") != "lo" or ("dst" in rule and "not" not in rule):
        return False
    if rule.get("src", "all") == "all" or "not" in rule:
        return True
    source = ipaddress.ip_network(f"{rule['src']}/{rule['srclen']}" if "srclen" in rule else rule["src"], strict=False)
    return any(ipaddress.ip_address(address) in source for address in own)
