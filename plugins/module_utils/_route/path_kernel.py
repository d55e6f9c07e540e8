# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Query the kernel for where packets would go (RTM_GETROUTE).

Changes nothing and sends nothing.
"""

from __future__ import annotations

import ipaddress
import struct
import typing as t

from .._fabric.numbers import TEST_PORT
from . import decode as rt
from . import netlink as nl
from . import paths
from .desired import covers
from .model import MAIN_TABLE, PROTOCOL
from .read import Reader

if t.TYPE_CHECKING:
    from .model import Route
    from .route_options import RouteOptions

# The protocol with its ports: RoCE v2's destination (IANA) and the first of its source ports (RFC 6056's range).
UDP, TCP = (17, 4791), (6, TEST_PORT)
SOURCE_PORT = 49152
RTA_DST = 1


class PathLookup(Reader):
    """Reads a host's network, and where its packets would go."""

    def existing_routes(self, want: RouteOptions) -> list[Route]:
        """Return the unmanaged routes of the tables local and main into the RDMA prefixes."""
        return [
            route
            for table in (paths.LOCAL_TABLE, MAIN_TABLE)
            for family, number in rt.FAMILIES.items()
            for route in sorted(self._dump_routes(number, table, "", 0, marks_of(want.prefixes_of(family))))
            if route.protocol != PROTOCOL
            if any(covers(prefix, route.dst) for prefix in want.prefixes_of(family))
        ]

    def lookups(self, targets: t.Iterable[paths.PathTarget], tos: int) -> t.Iterator[paths.LookupResult]:
        """Yield the answers to all queries."""
        pairs = [(target, flow) for target in targets for flow in target.flows]
        for pair, (error, answers, _why) in zip(pairs, self._exchange([self._query(*pair, tos) for pair in pairs])):
            route = self._route(answers[0]) if answers and not error else None
            yield paths.LookupResult(*pair, route, error)

    def _query(self, target: paths.PathTarget, flow: str, tos: int) -> bytes:
        """Return the query; only RoCE has a traffic class."""
        protocol, port = TCP if flow == paths.TCP else UDP
        attrs = {
            "RTA_DST": target.address,
            "RTA_SRC": target.source,
            "RTA_OIF": self._index_of(target.interface) if flow == paths.BOUND else None,
            "RTA_MARK": 0,
            "RTA_UID": 0,
            "RTA_IP_PROTO": protocol,
            "RTA_SPORT": SOURCE_PORT,
            "RTA_DPORT": port,
        }
        length = 32 if target.family == 4 else 128
        # IPv6 returns the real table anyway, and refuses the flag under strict checking.
        flags = rt.RTM_F_FIB_MATCH | (rt.RTM_F_LOOKUP_TABLE if target.family == 4 else 0)
        head = {"dst_len": length, "src_len": length, "flags": flags, "tos": 0 if flow == paths.TCP else tos}
        return rt.packed("RTM_GETROUTE", nl.NLM_F_ACK, attrs, family=rt.FAMILIES[target.family], **head)


def marks_of(prefixes: t.Iterable[str]) -> list[bytes]:
    """Return how the destination of a route in one of the prefixes begins in a message."""
    marks = []
    for net in map(ipaddress.ip_network, prefixes):
        size = net.max_prefixlen // 8
        marks.append(struct.pack("=HH", 4 + size, RTA_DST) + net.network_address.packed[: net.prefixlen // 8])
    return marks
