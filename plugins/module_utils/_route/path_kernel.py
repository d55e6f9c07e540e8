# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Ask the kernel where packets would go (RTM_GETROUTE), and for the neighbours that somebody set by hand.

Changes nothing and sends nothing.
"""

from __future__ import annotations

import typing as t

from . import decode as rt
from . import netlink as nl
from .decode import FAMILIES, decoded, packed
from .model import link_of
from .paths import PORT, Asked, Flow, PathState, Target, flows_of, source_ports, targets_of
from .read import Reader
from .want import neighbours_of

if t.TYPE_CHECKING:
    from .model import Host, Route, Rule
    from .want import Want

UDP, NUD_PERMANENT = 17, 0x80
# Answers wait in the socket's buffer (212,992 bytes by default) until the last question of a batch is asked.
BATCH = 32

Wire = t.Callable[[str, t.Sequence[str]], t.Mapping[str, str]]
"""Asks the wire at an interface who has these addresses: the hardware address of each that somebody answers for."""


class Asker(Reader):
    """Asks over one socket."""

    def state(self, want: Want, host: Host, targets: t.Sequence[Target], tos: int, wire: Wire | None) -> PathState:
        """Ask for everything that the proof needs: as prove()."""
        neighbours, seen = {}, {}
        links = {rail.name: link for rail in want.rails for link in [link_of(rail, host)] if link}
        for name in [link.name for link in links.values() if link.up and link.carrier]:
            hops = {target.gateway or target.address for target in targets if target.interface == name}
            own = {address: mac for address, mac in self.set_by_hand(name).items() if address in hops}
            neighbours.update({(name, address): mac for address, mac in own.items()})
            if own and wire:
                seen.update({(name, address): mac for address, mac in wire(name, sorted(own)).items()})
        there = [target for target in targets if target.rail in links]
        return PathState(host, tuple(self._asked(there, host.snapshot.rules, tos)), neighbours, seen)

    def set_by_hand(self, interface: str) -> dict[str, str]:
        """Return the neighbours of an interface whose hardware address somebody set: by address."""
        index = self._index_of(interface)
        answers = self._dump(packed("RTM_GETNEIGH", nl.NLM_F_DUMP, {"NDA_IFINDEX": index}))
        found = {}
        for entry in (decoded("NEIGH", answer) for answer in answers):
            address, mac = entry.get_attr("NDA_DST"), entry.get_attr("NDA_LLADDR")
            if entry["state"] & NUD_PERMANENT and entry["ifindex"] == index and address and mac:
                found[address] = mac
        return found

    def _asked(self, targets: t.Sequence[Target], rules: t.Iterable[Rule], tos: int) -> t.Iterator[Asked]:
        ports = source_ports(port for rule in sorted(rules) for port in _ports_of(rule))
        pairs = [(target, flow) for target in targets for flow in flows_of(target, ports)]
        kinds = (rt.RTM_F_FIB_MATCH, 0)
        answers = self._answers([self._question(*pair, tos, kind) for pair in pairs for kind in kinds])
        for pair, (match, error), (plain, other_error) in zip(pairs, answers[::2], answers[1::2]):
            yield Asked(*pair, match, plain, error or other_error)

    def _question(self, target: Target, flow: Flow, tos: int, flags: int) -> bytes:
        length = 32 if target.family == 4 else 128
        attrs = {
            "RTA_DST": target.address,
            "RTA_SRC": flow.source,
            "RTA_OIF": self._index_of(flow.interface) if flow.interface else None,
            "RTA_MARK": 0,
            "RTA_UID": 0,
            "RTA_IP_PROTO": UDP,
            "RTA_SPORT": flow.sport,
            "RTA_DPORT": PORT,
        }
        # IPv6 tells the real table anyway, and refuses the flag under strict checking.
        head = {"flags": flags | (rt.RTM_F_LOOKUP_TABLE if target.family == 4 else 0), "tos": tos}
        lengths = {"dst_len": length, "src_len": length if flow.source else 0}
        family = FAMILIES[target.family]
        return packed("RTM_GETROUTE", nl.NLM_F_ACK, attrs, family=family, **lengths, **head)

    def _answers(self, questions: t.Sequence[bytes]) -> list[tuple[Route | None, int]]:
        return [
            (self._route(answers[0]) if answers and not error else None, error)
            for first in range(0, len(questions), BATCH)
            for error, answers, _why in self._ask(list(questions[first : first + BATCH]))
        ]


def _ports_of(rule: Rule) -> t.Iterator[tuple[int, int, int]]:
    """Return the selector by source port of a rule, where it has one."""
    message = decoded("RULE", bytes.fromhex(rule.raw))
    if span := message.get_attr("FRA_SPORT_RANGE"):
        first, last = map(int, span.split(":"))
        yield first, last, message.get_attr("FRA_SPORT_MASK") or 0


def prove(
    want: Want, host: Host, neighbours: t.Sequence[t.Mapping[str, t.Any]], tos: int = 0, wire: Wire | None = None
) -> tuple[list[Target], PathState]:
    """Return the ways of a host and what the kernel says of them. For checks: path_checks.checks_of().

    :param host: what Kernel.read() returned.
    :param neighbours: as neighbours_of() takes them.
    :param tos: the planned TOS, DSCP and ECN in one byte.
    :param wire: asks for the true hardware address, where a neighbour's was set by hand.
    """
    targets = targets_of(want, host, neighbours_of(neighbours))
    with Asker() as asker:
        return targets, asker.state(want, host, targets, tos, wire)
