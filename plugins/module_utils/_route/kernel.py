# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The only place that talks to rtnetlink and /proc/sys for the host network.

pyroute2's message classes decode what the kernel says; they are the same from 0.7.2 to 0.9, unlike its sockets
(asynchronous since 0.9), of which `netlink` has its own.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import traceback
import typing as t

from .._errors import RdmaError
from .._fabric.names import MANAGER
from .._fabric.numbers import TABLES
from .._files import Sysfs
from .._untouchable import Untouchable
from .model import (
    DEFAULT,
    KERNEL_PROTOCOLS,
    MAIN_TABLE,
    PROTOCOL,
    Address,
    Link,
    Op,
    Phase,
    Route,
    Rule,
    Snapshot,
)
from .netlink import NLM_F_ACK, NLM_F_DUMP, Answer, Socket, attribute, headed, packed, request, u32
from .plan import STRICTER_WINS, Host
from .rules import attributes
from .want import Want, named

PYROUTE2_NEEDED = "pyroute2 >= 0.7.2"
PYROUTE2_ERROR: str | None = None
try:
    import pyroute2
    from pyroute2.netlink.rtnl.fibmsg import fibmsg
    from pyroute2.netlink.rtnl.ifaddrmsg import ifaddrmsg
    from pyroute2.netlink.rtnl.ifinfmsg import ifinfmsg
    from pyroute2.netlink.rtnl.rtmsg import rtmsg
except ImportError:
    PYROUTE2_ERROR = traceback.format_exc()

if t.TYPE_CHECKING:
    from types import TracebackType

# include/uapi/linux/netlink.h
NLM_F_REPLACE, NLM_F_EXCL, NLM_F_CREATE = 0x100, 0x200, 0x400
# Fixed parts of the messages: struct ifinfomsg, ifaddrmsg, rtmsg, fib_rule_hdr.
LINK_HEAD, ADDRESS_HEAD, ROUTE_HEAD, RULE_HEAD = (struct.Struct(text) for text in ("=BxHiII", "=BBBBI", "=8BI", "=8BI"))
# include/uapi/linux/if_link.h, if_addr.h, rtnetlink.h, fib_rules.h: the attributes that are sent.
IFLA_IFNAME, IFLA_MTU, IFLA_LINK, IFLA_LINKINFO, IFLA_IFALIAS, IFLA_ALT_IFNAME = 3, 4, 5, 18, 20, 53
IFLA_INFO_KIND, IFLA_INFO_DATA, IFLA_VLAN_ID = 1, 2, 1
IFA_ADDRESS, IFA_LOCAL, IFA_PROTO = 1, 2, 11
RTA_DST, RTA_OIF, RTA_GATEWAY, RTA_PRIORITY, RTA_PREFSRC, RTA_TABLE = 1, 4, 5, 6, 7, 15
FRA_DST, FRA_SRC, FRA_PRIORITY, FRA_TABLE, FRA_PROTOCOL = 1, 2, 6, 15, 21
# include/uapi/linux/rtnetlink.h
RTM_NEWLINK, RTM_DELLINK, RTM_GETLINK, RTM_SETLINK = 16, 17, 18, 19
RTM_NEWADDR, RTM_DELADDR, RTM_GETADDR = 20, 21, 22
RTM_NEWROUTE, RTM_DELROUTE, RTM_GETROUTE = 24, 25, 26
RTM_NEWRULE, RTM_DELRULE, RTM_GETRULE = 32, 33, 34
RTM_F_CLONED, RTM_F_FIB_MATCH = 0x200, 0x2000
RTN_UNICAST = 1
RTNH_F_ONLINK = 0x4
ROUTE_TYPES = {2: "local", 6: "blackhole", 7: "unreachable", 8: "prohibit", 9: "throw"}
IFF_UP, IFF_LOWER_UP = 0x1, 0x10000
IFA_F_NODAD, IFA_F_DADFAILED, IFA_F_TENTATIVE = 0x02, 0x08, 0x40
FR_ACT_TO_TBL, FIB_RULE_INVERT = 1, 0x2
ARPHRD_INFINIBAND = 32
FAMILIES = {4: socket.AF_INET, 6: socket.AF_INET6}
NUMBERS = {value: key for key, value in FAMILIES.items()}
IFNAMSIZ = 16
# Reserved (RFC 1112 section 4) and discard-only (RFC 6666): whoever reaches them does so by the default route.
BEYOND = {4: "240.0.0.1", 6: "100::1"}
# Already so: an error of these kinds says that the message's aim is reached.
HARMLESS = {
    "add": {errno.EEXIST},
    "replace": set(),
    "set": set(),
    "delete": {errno.ESRCH, errno.ENOENT, errno.EADDRNOTAVAIL, errno.ENODEV},
}
NOT_PERMITTED = {errno.EPERM, errno.EACCES}


def pyroute2_problem() -> str:
    """Return what is wrong with the installed pyroute2, or an empty string.

    Probed by what it can do: distributions patch and renumber.
    """
    known = [name for entry in fibmsg.nla_map for name in entry if isinstance(name, str)]
    mtu = [name for entry in ifinfmsg.nla_map for name in entry if isinstance(name, str)]
    if "FRA_PROTOCOL" in known and "IFLA_MAX_MTU" in mtu:
        return ""
    version = getattr(pyroute2, "__version__", "of unknown version")
    return f"pyroute2 {version} in {os.path.dirname(pyroute2.__file__)} is too old: {PYROUTE2_NEEDED} is needed."


class KernelRefused(RdmaError):
    """The kernel refused a message."""


def _decode(cls: t.Any, answer: Answer) -> t.Any:
    message = cls(headed(answer.kind, 0, answer.body))
    message.decode()
    return message


class Kernel:
    """Reads a host's network and writes it."""

    def __init__(self, proc: str = "/proc/sys", sysfs: Sysfs | None = None) -> None:
        self._proc = proc
        self._sysfs = sysfs or Sysfs()
        self._socket: Socket | None = None
        self._index: dict[str, int] = {}
        self._name: dict[int, str] = {}
        self._known: dict[bytes, Route] = {}

    def __enter__(self) -> Kernel:
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._socket:
            self._socket.close()

    # --- reading ------------------------------------------------------------------------------------------------------

    def read(self, want: Want, untouchable: Untouchable | None = None) -> Host:
        """Return what the wanted state has to do with.

        :param untouchable: what carries the host's own network.
        """
        kept = untouchable or Untouchable()
        devices = [rail.device for rail in want.rails if rail.vlan]
        names, links = self._links([*(rail.asked for rail in want.rails), *devices])
        coming = frozenset(devices) - names.keys()
        links.update(self._links(self._vlans())[1])
        want = named(want, names)
        planned = frozenset(item.address for rail in want.rails for item in rail.addresses)
        addresses = self._addresses(planned)
        paths = [*BEYOND.values(), *([kept.peer] if kept.peer else [])]
        probes = [(item.subnet, item.gateway or _first(item.subnet)) for rail in want.rails for item in rail.addresses]
        probes += [(prefix, _first(prefix)) for prefix in want.prefixes]
        found = self._lookups([*paths, *(address for _prefix, address in probes)])
        ways = [route for route in found[: len(paths)] if route]
        matches = [(prefix, route) for (prefix, _address), route in zip(probes, found[len(paths) :]) if route]
        rules = self._rules()
        tables = {rail.table for rail in want.rails} | {rule.table for rule in rules if rule.table in TABLES}
        rails = {link.name for link in links.values()}
        routes = self._routes(rails, tables)
        snapshot = Snapshot(
            links=links,
            addresses=frozenset(item for item in addresses if item.interface in rails or item.protocol == PROTOCOL),
            routes=frozenset(routes | _managed(ways)),
            rules=frozenset(rules),
            sysctls=self._sysctls(want, coming),
        )
        return Host(
            snapshot=snapshot,
            tables=frozenset(tables),
            planned=planned,
            names=names,
            addresses=frozenset(addresses),
            paths=tuple(paths),
            untouchable=kept,
            matches=tuple(matches),
            sysctls_all=self._sysctls_all(want),
            coming=coming,
        )

    def again(self, host: Host) -> Snapshot:
        """Return what was read once more, after or during a change."""
        old = host.snapshot
        _names, links = self._links(sorted(host.coming.union(old.links)))
        rules = self._rules()
        tables = host.tables | {rule.table for rule in rules if rule.table in TABLES}
        # An interface may have gone meanwhile, and the rest must be put right nevertheless.
        rails = set(links)
        routes = self._routes(rails, tables)
        routes |= _managed(route for route in self._lookups(host.paths) if route)
        found = (item for item in self._addresses(host.planned) if item.interface in rails or item.protocol == PROTOCOL)
        sysctls = {key: self._read_sysctl(key) or "" for key in old.sysctls}
        return Snapshot(links, frozenset(found), frozenset(routes), frozenset(rules), sysctls)

    def _ask(self, messages: list[bytes]) -> list[tuple[int, list[Answer], str]]:
        return self._open().ask(messages)

    def _dump(self, message: bytes) -> list[Answer]:
        return self._open().dump(message)

    def _open(self) -> Socket:
        if self._socket is None:
            self._socket = Socket()
        return self._socket

    def _links(self, asked: list[str]) -> tuple[dict[str, str], dict[str, Link]]:
        wanted = [(text, name) for text in asked for name in self._resolve(text)]
        messages = []
        for _text, name in wanted:
            by = IFLA_IFNAME if len(name) < IFNAMSIZ else IFLA_ALT_IFNAME
            head = LINK_HEAD.pack(0, 0, 0, 0, 0)
            messages.append(request(RTM_GETLINK, NLM_F_ACK, head, (by, name.encode() + b"\0")))
        names: dict[str, str] = {}
        links: dict[str, Link] = {}
        if not messages:
            return names, links
        for (text, _name), (_error, answers, _why) in zip(wanted, self._ask(messages)):
            for answer in answers:
                link = self._link(_decode(ifinfmsg, answer))
                names[text], links[link.name] = link.name, link
                self._index[link.name], self._name[link.index] = link.index, link.name
        return names, links

    def _vlans(self) -> list[str]:
        """Return the VLANs' interfaces that this collection made."""
        kind = (IFLA_LINKINFO, attribute(IFLA_INFO_KIND, b"vlan"))
        answers = self._dump(request(RTM_GETLINK, NLM_F_DUMP, LINK_HEAD.pack(0, 0, 0, 0, 0), kind))
        # A kernel that knows no VLANs yet does not filter, and decoding is what takes the time.
        ours = [answer for answer in answers if MANAGER.encode() in answer.body]
        return [link.name for answer in ours for link in [self._link(_decode(ifinfmsg, answer))] if link.ours]

    def _resolve(self, text: str) -> list[str]:
        """Return the interface of a PCI address, or the name itself."""
        if ":" not in text:
            return [text]
        return self._sysfs.pci_interfaces(text)[:1] or ([text] if len(text) < 128 else [])

    def _link(self, message: t.Any) -> Link:
        name = message.get_attr("IFLA_IFNAME")
        infiniband = message["ifi_type"] == ARPHRD_INFINIBAND
        mode = ""
        if infiniband:
            mode = self._sysfs.text(f"/sys/class/net/{name}/mode") or "datagram"
        master, parent = message.get_attr("IFLA_MASTER"), message.get_attr("IFLA_LINK")
        elsewhere = message.get_attr("IFLA_LINK_NETNSID") is not None
        info = message.get_attr("IFLA_LINKINFO")
        data = info.get_attr("IFLA_INFO_DATA") if info and info.get_attr("IFLA_INFO_KIND") == "vlan" else None
        vlan = data.get_attr("IFLA_VLAN_ID") if data else 0
        return Link(
            name=name,
            mtu=message.get_attr("IFLA_MTU"),
            up=bool(message["flags"] & IFF_UP),
            index=message["index"],
            kind="infiniband" if infiniband else "ethernet",
            carrier=bool(message["flags"] & IFF_LOWER_UP),
            min_mtu=message.get_attr("IFLA_MIN_MTU") or 0,
            max_mtu=message.get_attr("IFLA_MAX_MTU") or 0,
            mode=mode,
            master=self._name_of(master) if master else "",
            parent=self._name_of(parent) if parent and not elsewhere else "",
            vlan=vlan,
            ours=bool(vlan) and message.get_attr("IFLA_IFALIAS") == MANAGER,
        )

    def _addresses(self, planned: t.Collection[str]) -> set[Address]:
        found = set()
        for answer in self._dump(request(RTM_GETADDR, NLM_F_DUMP, ADDRESS_HEAD.pack(0, 0, 0, 0, 0))):
            index = struct.unpack_from("=I", answer.body, 4)[0]
            message = _decode(ifaddrmsg, answer)
            if message["family"] not in NUMBERS:
                continue
            family = NUMBERS[message["family"]]
            flags = message.get_attr("IFA_FLAGS") or message["flags"]
            local = message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS")
            # What the kernel makes with the link and takes with it.
            if local.startswith("fe80:") and local not in planned:
                continue
            # Of others' addresses the state may change while this runs; it is none of ours.
            held = family == 6 and flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) and local in planned
            found.add(
                Address(
                    interface=self._name_of(index),
                    family=family,
                    address=local,
                    length=message["prefixlen"],
                    usable=not held,
                    protocol=attributes(answer.body, 8).get(IFA_PROTO, b"\0")[0],
                    raw=answer.body.hex(),
                )
            )
        return found

    def _name_of(self, index: int) -> str:
        if index not in self._name:
            try:
                self._name[index] = socket.if_indextoname(index)
            except OSError:
                self._name[index] = f"if{index}"
        return self._name[index]

    def _lookups(self, addresses: t.Sequence[str]) -> list[Route | None]:
        """Ask by which route of the tables the host reaches each address."""
        messages = []
        for address in addresses:
            six = ":" in address
            family, length = FAMILIES[6 if six else 4], 128 if six else 32
            head = ROUTE_HEAD.pack(family, length, 0, 0, 0, 0, 0, 0, RTM_F_FIB_MATCH)
            messages.append(request(RTM_GETROUTE, NLM_F_ACK, head, (RTA_DST, packed(address))))
        if not messages:
            return []
        return [self._route(answers[0]) if answers else None for _error, answers, _why in self._ask(messages)]

    def _routes(self, rails: set[str], tables: t.Iterable[int]) -> set[Route]:
        """Return the routes that matter.

        The kernel filters by table and interface, and by protocol: what a killed run left is found by that.
        """
        found: set[Route] = set()
        for family in (4, 6):
            filters: list[tuple[int, str, int]] = [(0, "", PROTOCOL)]
            filters += [(MAIN_TABLE, name, 0) for name in sorted(rails)]
            filters += [(table, "", 0) for table in sorted(tables)]
            for table, name, protocol in filters:
                for answer in self._dump_routes(family, table, name, protocol):
                    # struct rtmsg: the second byte is the length of the destination, the sixth the protocol.
                    if answer.body[5] in KERNEL_PROTOCOLS and answer.body[1]:
                        continue
                    route = self._route(answer)
                    if not _passes(route, table, name, protocol):
                        continue
                    found |= _managed([route])
        return found

    def _dump_routes(self, family: int, table: int, interface: str, protocol: int) -> list[Answer]:
        attributes = [(RTA_TABLE, u32(table))] if table else []
        attributes += [(RTA_OIF, u32(self._index_of(interface)))] if interface else []
        head = ROUTE_HEAD.pack(FAMILIES[family], 0, 0, 0, 0, protocol, 0, 0, 0)
        return self._dump(request(RTM_GETROUTE, NLM_F_DUMP, head, *attributes))

    def _index_of(self, interface: str) -> int:
        return self._index.get(interface) or socket.if_nametoindex(interface)

    def _route(self, answer: Answer) -> Route:
        # Decoding is what takes the time here, and the same route comes by several questions.
        known = self._known.get(answer.body)
        if known is None:
            known = self._known[answer.body] = self._decode_route(answer)
        return known

    def _decode_route(self, answer: Answer) -> Route:
        message = _decode(rtmsg, answer)
        family = NUMBERS.get(message["family"], 4)
        other = "" if message["type"] == RTN_UNICAST else ROUTE_TYPES.get(message["type"], f"type {message['type']}")
        hops = message.get_attr("RTA_MULTIPATH")
        index = message.get_attr("RTA_OIF")
        if hops:
            other = "multipath"
            index = hops[0]["oif"]
        if message["flags"] & RTM_F_CLONED:
            other = "cache"
        if message["tos"]:
            other = f"{other} tos {message['tos']}".strip()
        dst = message.get_attr("RTA_DST")
        return Route(
            family=family,
            table=message.get_attr("RTA_TABLE") or message["table"],
            dst=f"{dst}/{message['dst_len']}" if dst else DEFAULT,
            metric=message.get_attr("RTA_PRIORITY") or 0,
            interface=self._name_of(index) if index else "",
            gateway=message.get_attr("RTA_GATEWAY") or "",
            source=message.get_attr("RTA_PREFSRC") or "",
            scope=message["scope"] if family == 4 else 0,
            other=other,
            protocol=message["proto"],
            raw=answer.body.hex(),
            hops=tuple(self._name_of(hop["oif"]) for hop in hops or ()),
        )

    def _rules(self) -> set[Rule]:
        found = set()
        for answer in self._dump(request(RTM_GETRULE, NLM_F_DUMP, bytes(RULE_HEAD.size))):
            # Multicast routing has rules in families of its own.
            if answer.body[0] not in NUMBERS:
                continue
            message = _decode(fibmsg, answer)
            source, dest = message.get_attr("FRA_SRC"), message.get_attr("FRA_DST")
            found.add(
                Rule(
                    family=NUMBERS[message["family"]],
                    priority=message.get_attr("FRA_PRIORITY") or 0,
                    table=message.get_attr("FRA_TABLE") or message["table"],
                    source=f"{source}/{message['src_len']}" if source else "",
                    dest=f"{dest}/{message['dst_len']}" if dest else "",
                    invert=bool(message["flags"] & FIB_RULE_INVERT),
                    other=_selectors(message),
                    protocol=message.get_attr("FRA_PROTOCOL") or 0,
                    raw=answer.body.hex(),
                )
            )
        return found

    def _sysctls(self, want: Want, coming: t.Collection[str]) -> dict[str, str]:
        """Return the values of the planned settings; one of an interface that is still to be made is empty."""
        found = {}
        for key, _value in want.sysctls:
            value = "" if key.split("/")[-2] in coming else self._read_sysctl(key)
            if value is not None:
                found[key] = value
        return found

    def _sysctls_all(self, want: Want) -> dict[str, str]:
        found: dict[str, str] = {}
        for key, _value in want.sysctls:
            base, _slash, name = key.rpartition("/")
            if name in STRICTER_WINS:
                wider = f"{base.rpartition('/')[0]}/all/{name}"
                if wider not in found:
                    found[wider] = self._read_sysctl(wider) or ""
                found[key] = found[wider]
        return found

    def _read_sysctl(self, key: str) -> str | None:
        try:
            with open(f"{self._proc}/{key}", encoding="ascii") as stream:
                return " ".join(stream.read().split())
        except OSError:
            return None

    # --- writing ------------------------------------------------------------------------------------------------------

    def apply(self, phases: t.Iterable[Phase]) -> bool:
        """Write the phases, one after the other; raise KernelRefused at the first refusal, after its phase.

        Return whether every message did something; some may have found their aim reached already.
        """
        plain = True
        for phase in phases:
            messages = []
            for op in phase:
                if isinstance(op.what, tuple):
                    self._write_sysctl(op)
                else:
                    try:
                        messages.append((op, self.encode(op)))
                    except OSError as exc:  # its interface has gone
                        raise self.refusal(op, exc.errno or errno.ENODEV, "") from exc
            if messages:
                plain = self.transact(messages) and plain
        return plain

    def transact(self, messages: list[tuple[Op, bytes]]) -> bool:
        """Send one phase of messages and look at every answer; return whether none was an error."""
        results = self._ask([data for _op, data in messages])
        for (op, _data), (error, _answers, why) in zip(messages, results):
            if error and error not in HARMLESS[op.verb]:
                raise self.refusal(op, error, why)
        return not any(error for error, _answers, _why in results)

    def refusal(self, op: Op, error: int, why: str) -> KernelRefused:
        """Return the error for a refused message."""
        said = f"{os.strerror(error)}{': ' + why if why else ''}"
        if error in NOT_PERMITTED and not why:
            fix = "Run the task with become: true, and inside a container with CAP_NET_ADMIN."
        else:
            fix = f"Try `{op}` by hand on the host to see what is in its way."
        return KernelRefused(f"The kernel refused `{op}`: {said}.", fix, errno=error, operation=str(op))

    def _write_sysctl(self, op: Op) -> None:
        key, value = t.cast("tuple[str, str]", op.what)
        try:
            with open(f"{self._proc}/{key}", "w", encoding="ascii") as stream:
                stream.write(f"{value}\n")
        except OSError as exc:
            raise self.refusal(op, exc.errno or errno.EIO, "") from exc

    def encode(self, op: Op) -> bytes:
        """Return the message of one operation."""
        what = op.what
        if isinstance(what, Link):
            return self._encode_link(op.verb, what)
        if isinstance(what, Address):
            return self._encode_address(op.verb, what)
        if isinstance(what, Route):
            return self._encode_route(op.verb, what)
        return self._encode_rule(op.verb, t.cast("Rule", what))

    def _encode_link(self, verb: str, link: Link) -> bytes:
        name = (IFLA_IFNAME, link.name.encode() + b"\0")
        if verb == "delete":
            return request(RTM_DELLINK, NLM_F_ACK, LINK_HEAD.pack(0, 0, self._index_of(link.name), 0, 0))
        if verb == "add":
            # One that was there before gets its number again: what is put back on it names that.
            self._index.pop(link.name, None)
            data = attribute(IFLA_VLAN_ID, struct.pack("=H", link.vlan))
            info = attribute(IFLA_INFO_KIND, b"vlan") + attribute(IFLA_INFO_DATA, data)
            parts = (name, (IFLA_LINK, u32(self._index_of(link.parent))), (IFLA_LINKINFO, info))
            head = LINK_HEAD.pack(0, 0, link.index, 0, 0)
            return request(RTM_NEWLINK, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, head, *parts)
        head = LINK_HEAD.pack(0, 0, link.index or self._index_of(link.name), IFF_UP if link.up else 0, IFF_UP)
        # The kernel takes no alias along with a new link.
        alias = ((IFLA_IFALIAS, MANAGER.encode()),) if link.ours else ()
        return request(RTM_SETLINK, NLM_F_ACK, head, (IFLA_MTU, u32(link.mtu)), *alias)

    def _encode_address(self, verb: str, item: Address) -> bytes:
        create = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
        if verb == "add" and item.raw:
            return headed(RTM_NEWADDR, create, bytes.fromhex(item.raw))
        flags = IFA_F_NODAD if verb == "add" and item.family == 6 else 0
        head = ADDRESS_HEAD.pack(FAMILIES[item.family], item.length, flags, 0, self._index_of(item.interface))
        own = packed(item.address)
        if verb == "delete":
            return request(RTM_DELADDR, NLM_F_ACK, head, (IFA_LOCAL, own), (IFA_ADDRESS, own))
        # Kernels before 5.18 ignore the protocol.
        mark = (IFA_PROTO, bytes([item.protocol]))
        return request(RTM_NEWADDR, create, head, (IFA_LOCAL, own), (IFA_ADDRESS, own), mark)

    def _encode_route(self, verb: str, route: Route) -> bytes:
        kind, flags = RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE | (NLM_F_REPLACE if verb == "replace" else NLM_F_EXCL)
        if verb == "delete":
            kind, flags = RTM_DELROUTE, NLM_F_ACK
        elif route.raw:
            body = bytearray.fromhex(route.raw)
            # The kernel refuses its own marks (dead, linkdown, offload) when it gets them back.
            struct.pack_into("=I", body, 8, struct.unpack_from("=I", body, 8)[0] & RTNH_F_ONLINK)
            return headed(kind, flags, bytes(body))
        attributes = [(RTA_TABLE, u32(route.table))]
        length = 0
        if route.dst != DEFAULT:
            address, _slash, text = route.dst.partition("/")
            length = int(text)
            attributes.append((RTA_DST, packed(address)))
        attributes += [(RTA_PRIORITY, u32(route.metric))] if route.metric else []
        attributes += [(RTA_GATEWAY, packed(route.gateway))] if route.gateway else []
        attributes += [(RTA_OIF, u32(self._index_of(route.interface)))] if route.interface else []
        attributes += [(RTA_PREFSRC, packed(route.source))] if route.source else []
        family = FAMILIES[route.family]
        head = ROUTE_HEAD.pack(family, length, 0, 0, 0, route.protocol, route.scope, RTN_UNICAST, 0)
        return request(kind, flags, head, *attributes)

    def _encode_rule(self, verb: str, rule: Rule) -> bytes:
        kind, flags = RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL
        if verb == "delete":
            kind, flags = RTM_DELRULE, NLM_F_ACK
        if rule.raw:
            return headed(kind, flags, bytes.fromhex(rule.raw))
        lengths = {}
        attributes = [(FRA_PRIORITY, u32(rule.priority)), (FRA_TABLE, u32(rule.table))]
        for number, prefix in ((FRA_SRC, rule.source), (FRA_DST, rule.dest)):
            if prefix:
                address, _slash, text = prefix.partition("/")
                lengths[number] = int(text)
                attributes.append((number, packed(address)))
        attributes.append((FRA_PROTOCOL, bytes([rule.protocol])))
        sizes = (lengths.get(FRA_DST, 0), lengths.get(FRA_SRC, 0))
        invert = FIB_RULE_INVERT if rule.invert else 0
        head = RULE_HEAD.pack(FAMILIES[rule.family], *sizes, 0, 0, 0, 0, FR_ACT_TO_TBL, invert)
        return request(kind, flags, head, *attributes)


def _managed(routes: t.Iterable[Route]) -> set[Route]:
    """Return the routes that somebody made: the kernel's own come and go with their addresses."""
    return {route for route in routes if route.protocol not in KERNEL_PROTOCOLS}


def _passes(route: Route, table: int, interface: str, protocol: int) -> bool:
    """Filter as the kernel was asked to: one without strict checking did not."""
    if route.other == "cache" or (table and route.table != table) or (protocol and route.protocol != protocol):
        return False
    return not interface or interface in route.interfaces


def _first(prefix: str) -> str:
    return prefix.partition("/")[0]


# What a rule of ours never has; the rest of a rule's attributes say nothing about what it selects.
PLAIN_RULE = {"FRA_PRIORITY", "FRA_TABLE", "FRA_PROTOCOL", "FRA_SRC", "FRA_DST", "FRA_UNSPEC", "FRA_PAD"}


def _selectors(message: t.Any) -> str:
    parts = [] if message["action"] == FR_ACT_TO_TBL else [f"action {message['action']}"]
    if message["tos"]:
        parts.append(f"tos {message['tos']}")
    for name, value in message["attrs"]:
        if name in PLAIN_RULE or (name == "FRA_SUPPRESS_PREFIXLEN" and value == 0xFFFFFFFF):
            continue
        parts.append(f"{name[4:].lower() if name.startswith('FRA_') else name} {value}")
    return " ".join(parts)
