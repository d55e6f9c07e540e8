# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Read the host network over rtnetlink and /proc/sys: only what the desired state concerns."""

from __future__ import annotations

import contextlib
import os
import socket
import typing as t
from dataclasses import replace

from .._check import deviation
from .._errors import RdmaError
from .._fabric.numbers import IFNAME_MAX
from .._files import Sysfs
from .._management_network import PROBE_ADDRESSES, ManagementNetwork
from . import decode as rt
from . import model
from . import netlink as nl
from .decode import FAMILIES, Decoder, decoded, kind_of, packed, pyroute2_problem
from .devices import FOLLOWERS, other_namespaces, socket_in, stacked_links
from .managed_state import read_noted, read_ports, read_retained
from .netlink import Socket
from .route_options import RouteOptions, named

R = t.TypeVar("R", bound="Reader")
INSTALL = (
    "An action plugin of this collection brings it: call the module by its full name, and check that the host can write"
    " below /var/lib/railops-rdma. Or install python3-pyroute2 there. [pyroute2_missing]"
)


class Reader(Decoder):
    """Reads a host's network."""

    def __init__(self) -> None:
        super().__init__(Sysfs())
        self._sockets: dict[int, Socket] = {}

    def __enter__(self: R) -> R:
        if problem := pyroute2_problem():
            check = deviation("network_library", "pyroute2", problem, problem, INSTALL)
            raise RdmaError(problem, INSTALL, checks=[check], library_missing=True)
        return self

    def __exit__(self, *_exc: object) -> None:
        for connection in self._sockets.values():
            connection.close()

    def read(self, want: RouteOptions, management_network: ManagementNetwork | None = None) -> model.RouteHost:
        """Return the part that the desired state concerns.

        :param management_network: what carries the host's own network.
        """
        protected, retained = management_network or ManagementNetwork(), read_retained()
        paths = (*PROBE_ADDRESSES.values(), *([protected.peer] if protected.peer else []))
        devices = [rail.device for rail in want.rails if rail.vlan]
        ports = read_ports()
        earlier = sorted({*(item.interface for item in retained.addresses), *(name for name, _mac in ports.values())})
        out = [text for rail in want.out for text in (rail.identifier, rail.device)]
        names, links = self._links([*(rail.identifier for rail in want.rails), *devices, *out, *earlier])
        pending_links = frozenset(devices) - names.keys()
        links.update(self._links(self._vlans())[1])
        want = named(want, names)
        planned = {item.address for rail in want.rails for item in rail.addresses}
        probes = [(item.subnet, item.gateway or _first(item.subnet)) for rail in want.rails for item in rail.addresses]
        probes += [(prefix, _first(prefix)) for prefix in want.prefixes]
        found = zip(probes, self._lookups([address for _prefix, address in probes]))
        own = {rail.table for rail in want.rails} | {rule.table for rule in retained.rules}
        sysctls = self._sysctls(want, pending_links)
        scope = model.Scope(own, want.claimed("table"), planned, paths)
        snapshot, addresses, tables = self._snapshot(links, scope, sysctls)
        above = stacked_links(want, {text: links[name] for text, name in names.items()}, self._stacked)
        host = model.RouteHost(
            snapshot=replace(snapshot, links={**links, **above}),
            scope=scope._replace(tables=tables),
            names=names,
            addresses=frozenset(addresses),
            management_network=protected,
            matches=tuple((prefix, route) for (prefix, _address), route in found if route),
            sysctls_all={
                key: self._read_sysctl(model.of_all(key)) or "" for key, _value in want.sysctls if model.of_all(key)
            },
            pending_links=pending_links,
            retained=retained,
            noted=read_noted(),
            ports=ports,
        )
        return model.without_rails(host, want.out)

    def again(self, host: model.RouteHost) -> model.Snapshot:
        """Return what was read once more, after or during a change."""
        old = host.snapshot
        above = [link for link in old.links.values() if link.depth]
        # An interface may have gone meanwhile, and the rest must be put right nevertheless.
        _names, links = self._links(sorted(host.pending_links.union(old.links) - {link.name for link in above}))
        sysctls = {key: self._read_sysctl(key) or "" for key in old.sysctls}
        snapshot, _addresses, _tables = self._snapshot(links, host.scope, sysctls)
        return replace(snapshot, links={**links, **self._stacked_again(above)})

    def _snapshot(
        self, links: dict[str, model.Link], scope: model.Scope, sysctls: dict[str, str]
    ) -> tuple[model.Snapshot, set[model.Address], set[int]]:
        """Return what these links and tables have, all addresses of the host, and the tables that were read."""
        addresses, rules = self._addresses(scope.planned), self._rules()
        tables = {*scope.tables, *(rule.table for rule in rules if rule.table in scope.claimed)} - {model.MAIN_TABLE}
        ways = {route for route in self._lookups(scope.paths) if route and route.protocol not in model.KERNEL_PROTOCOLS}
        routes = frozenset(self._routes(links, tables) | ways)
        managed = frozenset(item for item in addresses if item.interface in links or item.protocol == model.PROTOCOL)
        return model.Snapshot(links, managed, routes, frozenset(rules), sysctls), addresses, tables

    def _exchange(self, messages: list[bytes], netns: int = 0) -> list[tuple[int, list[bytes], str]]:
        connection = self._open(netns)
        try:
            return connection.exchange(messages)
        except OSError:
            # Late answers must not reach the next message.
            self._sockets.pop(netns).close()
            raise

    def _dump(self, kind: str, attrs: t.Mapping[str, t.Any], netns: int = 0, /, **fields: t.Any) -> list[bytes]:
        return self._exchange([packed(kind, nl.NLM_F_DUMP, attrs, **fields)], netns)[0][1]

    def _open(self, netns: int = 0) -> Socket:
        if netns not in self._sockets:
            self._sockets[netns] = socket_in(other_namespaces().get(netns, "")) if netns else Socket()
        return self._sockets[netns]

    def _stacked_again(self, above: list[model.Link]) -> dict[str, model.Link]:
        found = {}
        for link in above:
            message = packed("RTM_GETLINK", nl.NLM_F_ACK, {}, index=link.index)
            # A link that was removed meanwhile has no MTU to restore.
            with contextlib.suppress(OSError):
                for answer in self._exchange([message], link.netns)[0][1]:
                    now = self._link(answer)
                    found[link.name] = replace(link, mtu=now.mtu, up=now.up)
        return found

    def _links(self, requested: list[str]) -> tuple[dict[str, str], dict[str, model.Link]]:
        wanted = [(text, name) for text in requested for name in self._resolve(text)]
        by = [("IFLA_IFNAME" if len(name) <= IFNAME_MAX else "IFLA_ALT_IFNAME", name) for _text, name in wanted]
        messages = [packed("RTM_GETLINK", nl.NLM_F_ACK, {key: name}) for key, name in by]
        names: dict[str, str] = {}
        links: dict[str, model.Link] = {}
        for (text, _name), (_error, answers, _why) in zip(wanted, self._exchange(messages)):
            for answer in answers:
                link = self._link(answer)
                names[text], links[link.name] = link.name, link
                self._index[link.name], self._name[link.index] = link.index, link.name
        return names, links

    def _vlans(self) -> list[str]:
        """Return the VLANs' interfaces that this collection made."""
        kind = {"IFLA_LINKINFO": {"attrs": [("IFLA_INFO_KIND", "vlan")]}}
        return [link.name for link in map(self._link, self._dump("RTM_GETLINK", kind)) if link.managed]

    def _stacked(self) -> t.Iterator[tuple[tuple[int, int], tuple[int, int], model.Link]]:
        """Yield the links of FOLLOWERS that are stacked on others, in all network namespaces of this host.

        Each with its place and the place of its lower device, by namespace and number; its name contains its namespace.
        """
        home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        for netns, path in {0: "", **other_namespaces()}.items():
            with contextlib.suppress(OSError):  # a namespace that is removed, or may not be entered
                # What the other namespace calls this one.
                question = packed("RTM_GETNSID", nl.NLM_F_ACK, {"NETNSA_FD": home})
                answers = self._exchange([question], netns)[0][1] if netns else []
                host = decoded("NSID", answers[0]).get_attr("NETNSA_NSID") if answers else None
                for message in (decoded("LINK", answer) for answer in self._dump("RTM_GETLINK", {}, netns)):
                    below, made = message.get_attr("IFLA_LINK"), kind_of(message)
                    if below is None or made not in FOLLOWERS:
                        continue
                    elsewhere = message.get_attr("IFLA_LINK_NETNSID")
                    there = netns if elsewhere is None else 0 if elsewhere == host else -1
                    name = message.get_attr("IFLA_IFNAME") + (f" ({path})" if netns else "")
                    mtu, up = message.get_attr("IFLA_MTU"), bool(message["flags"] & rt.IFF_UP)
                    link = model.Link(name, mtu, up, index=message["index"], netns=netns, made=made)
                    yield (netns, link.index), (there, below), link
                if netns:
                    self._sockets.pop(netns).close()
        os.close(home)

    def _resolve(self, text: str) -> list[str]:
        """Return the interface of a PCI address, or the name itself."""
        if ":" not in text:
            return [text]
        return self._sysfs.pci_interfaces(text)[:1] or ([text] if len(text) < 128 else [])

    def _addresses(self, planned: t.Collection[str]) -> set[model.Address]:
        answers = self._dump("RTM_GETADDR", {})
        found = (self._address(answer, planned) for answer in answers if answer[0] in rt.NUMBERS)
        # What the kernel makes with the link and takes with it.
        return {item for item in found if not item.address.startswith("fe80:") or item.address in planned}

    def _lookups(self, addresses: t.Sequence[str]) -> list[model.Route | None]:
        """Query the route of the tables by which the host reaches each address."""
        messages = [
            packed(
                "RTM_GETROUTE",
                nl.NLM_F_ACK,
                {"RTA_DST": address},
                family=FAMILIES[6 if ":" in address else 4],
                dst_len=128 if ":" in address else 32,
                # IPv6 returns the real table anyway, and refuses the flag under strict checking.
                flags=rt.RTM_F_FIB_MATCH | (0 if ":" in address else rt.RTM_F_LOOKUP_TABLE),
            )
            for address in addresses
        ]
        return [self._route(answers[0]) if answers else None for _error, answers, _why in self._exchange(messages)]

    def _routes(self, rails: t.Iterable[str], tables: t.Iterable[int]) -> set[model.Route]:
        """Return the routes that matter.

        The kernel filters by table and interface, and by protocol: what a killed run left is found by that.
        """
        filters: list[tuple[int, str, int]] = [(0, "", model.PROTOCOL)]
        filters += [(model.MAIN_TABLE, name, 0) for name in sorted(rails)]
        filters += [(table, "", 0) for table in sorted(tables)]
        return {route for family in FAMILIES.values() for one in filters for route in self._dump_routes(family, *one)}

    def _dump_routes(
        self, family: int, table: int, interface: str, protocol: int, marks: t.Sequence[bytes] = (b"",)
    ) -> t.Iterator[model.Route]:
        """Yield the routes of the kernel's filters, of which only those that have one of the marks are decoded."""
        attrs = {"RTA_TABLE": table or None, "RTA_OIF": self._index_of(interface) if interface else None}
        for answer in self._dump("RTM_GETROUTE", attrs, family=family, proto=protocol):
            # Decoding is what takes the time, and struct rtmsg has the protocol as its sixth byte: the kernel's own
            # routes come and go with their addresses.
            if answer[5] in model.KERNEL_PROTOCOLS or not any(mark in answer for mark in marks):
                continue
            if _passes(route := self._route(answer), table, interface, protocol):
                yield route

    def _index_of(self, interface: str) -> int:
        return self._index.get(interface) or socket.if_nametoindex(interface)

    def _rules(self) -> set[model.Rule]:
        # Multicast routing has rules in families of its own.
        return {self._rule(answer) for answer in self._dump("RTM_GETRULE", {}) if answer[0] in rt.NUMBERS}

    def _sysctls(self, want: RouteOptions, pending_links: t.Collection[str]) -> dict[str, str]:
        """Return the values of the planned settings; one of an interface that is still to be made is empty."""
        keys = [key for key, _value in want.sysctls]
        found = {key: "" if key.split("/")[-2] in pending_links else self._read_sysctl(key) for key in keys}
        return {key: value for key, value in found.items() if value is not None}

    def _read_sysctl(self, key: str) -> str | None:
        text = self._sysfs.text(f"/proc/sys/{key}")
        return None if text is None else " ".join(text.split())


def _passes(route: model.Route, table: int, interface: str, protocol: int) -> bool:
    """Filter as the kernel was asked to: one without strict checking did not."""
    if route.other == "cache" or (table and route.table != table) or (protocol and route.protocol != protocol):
        return False
    return not interface or interface in {hop.interface for hop in route.next_hops}


def _first(prefix: str) -> str:
    return prefix.partition("/")[0]
