# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the kernel where packets would go (RTM_GETROUTE), and for the neighbours that somebody set by hand.

Changes nothing and sends nothing.
"""

from __future__ import annotations

import socket
import typing as t

from . import decode as rt
from . import netlink as nl
from . import paths
from .devices import takers
from .model import link_of
from .read import Reader
from .want import neighbours_of
from .wanted import inside

if t.TYPE_CHECKING:
    from .model import Host, Route, Rule
    from .want import Want, Wire

# include/uapi/linux/neighbour.h: NOARP is as good as permanent, and nobody asks for it either.
SET_BY_HAND = 0x80 | 0x40
# Stands for a destination until one is known.
NOBODY = {4: b"\xf0rdm", 6: b"\xf0rdma-rail-ops\xf0."}
EVERYBODY = "ff:ff:ff:ff:ff:ff"
# Answers wait in the socket's buffer (212,992 bytes by default) until the last question of a batch is asked.
BATCH = 32


class Asker(Reader):
    """Asks over one socket."""

    def __init__(self) -> None:
        super().__init__()
        self._packed: dict[tuple[paths.Flow, int, int], bytes] = {}

    def set_by_hand(self, interface: str) -> t.Iterator[tuple[str, str]]:
        """Yield the neighbours of an interface whose hardware address somebody set: address and that."""
        index = self._index_of(interface)
        answers = self._dump(rt.packed("RTM_GETNEIGH", nl.NLM_F_DUMP, {"NDA_IFINDEX": index}))
        for entry in (rt.decoded("NEIGH", answer) for answer in answers):
            address, mac = entry.get_attr("NDA_DST"), entry.get_attr("NDA_LLADDR")
            own = entry["state"] & SET_BY_HAND and entry["ifindex"] == index and address and mac
            # The kernel's own entries are those of broadcasts.
            if own and mac != EVERYBODY:
                yield address, mac

    def local(self, want: Want) -> tuple[Route, ...]:
        """Return what others have put into the table local of the RDMA prefixes."""
        return tuple(
            route
            for family, number in rt.FAMILIES.items()
            for route in sorted(self._dump_routes(number, paths.LOCAL_TABLE, "", 0))
            if any(inside(route.dst.partition("/")[0], prefix) for prefix in want.prefixes_of(family))
        )

    def foreign(self, addresses: t.Sequence[str]) -> frozenset[str]:
        """Return which of these addresses the table local lacks."""
        ways = zip(addresses, self._lookups(addresses))
        return frozenset(address for address, way in ways if not way or way.other != "local")

    def hops(self, interface: str, family: int) -> int:
        """Return how many hops packets live; 255 where nobody knows."""
        key = "net/ipv4/ip_default_ttl" if family == 4 else f"net/ipv6/conf/{interface}/hop_limit"
        return int(self._read_sysctl(key) or 255)

    def asked(self, targets: t.Sequence[paths.Target], rules: t.Iterable[Rule], tos: int) -> t.Iterator[paths.Asked]:
        """Yield the answers to all questions."""
        selectors = [_selectors_of(rule) for rule in sorted(rules)]
        ports = paths.source_ports((have["sport"], have["last"], have["mask"]) for have in selectors if "last" in have)
        others = paths.others_of(selectors)
        pairs = [(target, flow) for target in targets for flow in paths.flows_of(target, ports, others)]
        kinds = (rt.RTM_F_FIB_MATCH, 0)
        questions = [
            self._question(*pair, tos, kind) for pair in pairs for kind in (kinds[:1] if pair[0].brief else kinds)
        ]
        answers = self._answers(questions)[::-1]
        for pair in pairs:
            match, error = answers.pop()
            plain, other_error = (match, 0) if pair[0].brief else answers.pop()
            yield paths.Asked(*pair, match, plain, error or other_error)

    def _question(self, target: paths.Target, flow: paths.Flow, tos: int, flags: int) -> bytes:
        # Packing is what takes the time, and only the destination differs.
        key = (flow, target.family, flags)
        if key not in self._packed:
            self._packed[key] = self._pack(flow, target.family, 0 if flow.whose else tos, flags)
        own = socket.inet_pton(rt.FAMILIES[target.family], target.address)
        return self._packed[key].replace(NOBODY[target.family], own, 1)

    def _pack(self, flow: paths.Flow, family: int, tos: int, flags: int) -> bytes:
        """Return the question with a destination to be replaced; nobody but RoCE has a traffic class."""
        attrs = {
            "RTA_DST": socket.inet_ntop(rt.FAMILIES[family], NOBODY[family]),
            "RTA_SRC": flow.source,
            "RTA_OIF": self._index_of(flow.interface) if flow.interface else None,
            "RTA_MARK": 0,
            "RTA_UID": flow.user,
            "RTA_IP_PROTO": flow.protocol,
            "RTA_SPORT": flow.sport,
            "RTA_DPORT": flow.dport,
        }
        length = 32 if family == 4 else 128
        # IPv6 tells the real table anyway, and refuses the flag under strict checking.
        head = {"flags": flags | (rt.RTM_F_LOOKUP_TABLE if family == 4 else 0), "tos": tos}
        lengths = {"dst_len": length, "src_len": length if flow.source else 0}
        return rt.packed("RTM_GETROUTE", nl.NLM_F_ACK, attrs, family=rt.FAMILIES[family], **lengths, **head)

    def _answers(self, questions: t.Sequence[bytes]) -> list[tuple[Route | None, int]]:
        return [
            (self._route(answers[0]) if answers and not error else None, error)
            for first in range(0, len(questions), BATCH)
            for error, answers, _why in self._ask(list(questions[first : first + BATCH]))
        ]


def _selectors_of(rule: Rule) -> dict[str, int]:
    """Return by what a rule tells packets apart: protocol, first ports and user, and the rest of the source ports."""
    message = rt.decoded("RULE", bytes.fromhex(rule.raw))
    found = {"protocol": message.get_attr("FRA_IP_PROTO") or 0}
    for key, name in (("sport", "FRA_SPORT_RANGE"), ("dport", "FRA_DPORT_RANGE"), ("user", "FRA_UID_RANGE")):
        if span := message.get_attr(name):
            first, last = map(int, span.split(":"))
            found[key] = first or min(last, paths.USER)
            if key == "sport":
                found |= {"last": last, "mask": message.get_attr("FRA_SPORT_MASK") or 0}
    return found


def prove(
    want: Want,
    host: Host,
    neighbours: t.Sequence[t.Mapping[str, t.Any]],
    tos: int,
    wire: Wire,
    more: t.Mapping[str, t.Sequence[str]] | None = None,
) -> tuple[list[paths.Target], paths.PathState]:
    """Return the ways of a host and what the kernel says of them. For checks: path_checks.checks_of().

    :param host: what Kernel.read() returned.
    :param neighbours: as neighbours_of() takes them.
    :param tos: the planned TOS, DSCP and ECN in one byte.
    :param wire: asks for the true hardware address, where a neighbour's was set by hand.
    :param more: addresses of other hosts by rail, to be asked for in brief.
    """
    near, links = neighbours_of(neighbours), [link for rail in want.rails for link in [link_of(rail, host)] if link]
    running = [link for link in links if link.up and link.carrier]
    with Asker() as asker:
        by_hand = {(link.name, address): mac for link in running for address, mac in asker.set_by_hand(link.name)}
        local = asker.local(want)
        named = paths.named_by_others(
            want, host, paths.targets_of(want, host, near, more), local, [key[1] for key in by_hand]
        )
        targets = list(paths.targets_of(want, host, near, more, named))
        used = {(target.interface, target.gateway or target.address) for target in targets}
        neighbours_of_hops = {key: mac for key, mac in by_hand.items() if key in used}
        there = [target for target in targets if target.interface in {link.name for link in links}]
        return targets, paths.PathState(
            host,
            tuple(asker.asked(there, host.snapshot.rules, tos)),
            neighbours_of_hops,
            wire(neighbours_of_hops),
            local,
            asker.foreign(sorted(host.planned)),
            takers(running),
            {(link.name, family): asker.hops(link.name, family) for link in running for family in rt.FAMILIES},
        )
