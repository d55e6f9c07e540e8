# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether TCP passes between rails: one connection per rail and neighbor, to a closed port. A reset is an answer."""

from __future__ import annotations

import errno
import os
import socket
import typing as t
from concurrent.futures import ThreadPoolExecutor

from .._check import Check, deviation, ok, skipped, warning
from .icmp import SO_BINDTODEVICE

if t.TYPE_CHECKING:
    from .icmp import EchoTarget

CHECK = "ping_neighbor_tcp"
# RoCE's number: no program listens there for TCP. The kernel sends SYN after 0, 1 and 3 seconds.
PORT, WAIT = 4791, 4.0
FIX = "Look for a filter on the neighbor, the leaf's port and beyond; let it reject what it does not allow."


def connect(targets: t.Collection[EchoTarget], wait: float = WAIT) -> dict[EchoTarget, str]:
    """Return what keeps TCP from each target: an error, or that no answer came; empty where one did."""
    with ThreadPoolExecutor(max(len(targets), 1)) as pool:
        return dict(zip(targets, pool.map(lambda target: _connect(target, wait), targets)))


def _connect(target: EchoTarget, wait: float) -> str:
    with socket.socket(socket.AF_INET if target.family == 4 else socket.AF_INET6) as sock:
        sock.settimeout(wait)
        try:
            sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, target.interface.encode() + b"\0")
            sock.bind((target.source, 0))
            code = sock.connect_ex((target.address, PORT))
        except OSError as exc:
            code = exc.errno or errno.EIO
    if code == errno.EAGAIN:
        return "no answer"
    return "" if code in (0, errno.ECONNREFUSED) else os.strerror(code)


def checks_of(targets: t.Sequence[EchoTarget], results: t.Mapping[EchoTarget, str]) -> list[Check]:
    """Return one check per target.

    A neighbor that answers on no rail may have a firewall that drops TCP, which stops no RDMA: that is a warning.

    :param targets: the neighbors' addresses.
    :param results: what `connect` returned for those that answered an echo request.
    """
    passes = {(target.peer, target.family) for target, why in results.items() if not why}
    checks = []
    for target in targets:
        planned = f"{target.address} answers TCP from {target.source} on {target.interface}"
        why = results.get(target)
        if why is None:
            checks.append(skipped(CHECK, "The neighbor answers no echo requests.", rail=target.rail))
        elif not why:
            checks.append(ok(CHECK, planned, "answer", rail=target.rail))
        else:
            made = deviation if (target.peer, target.family) in passes else warning
            cause = f"TCP to port {PORT} of {target.address}: {why}; its echo requests pass"
            where = {"rail": target.rail, "peers": (target.peer,) if target.peer else ()}
            checks.append(made(CHECK, planned, why, cause, FIX, **where))
    return checks
