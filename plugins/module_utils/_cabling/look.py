# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Determines the switch port of each rail's cable: queries lldpd, and can listen itself. Read-only."""

from __future__ import annotations

import socket
import struct
import time
import typing as t
from functools import partial

from .._files import Sysfs
from .._listen import PACKET_OUTGOING, PACKETS, Sockets
from .._programs import ask
from .lldp import ARGV, ETHERTYPE, Neighbor, best, parse_frame, parse_lldp
from .plan import Cable, cable_checks

if t.TYPE_CHECKING:
    from .._check import Check

SOL_PACKET, ADD_MEMBERSHIP, MULTICAST = 263, 1, 0
# Nearest bridge, nearest non-TPMR bridge, nearest customer bridge (802.1AB table 7-1).
GROUPS = ("01:80:c2:00:00:0e", "01:80:c2:00:00:03", "01:80:c2:00:00:00")
FIRMWARE = (
    "the leaf sends no LLDP, or the card's firmware keeps the frames "
    "(NVIDIA: LLDP_NB_RX_MODE_P1 of mlxconfig; Intel: ethtool --show-priv-flags, fw-lldp)."
)


def look(
    rails: t.Sequence[t.Mapping[str, t.Any]], options: t.Mapping[str, t.Any]
) -> tuple[list[Check], dict[str, t.Any]]:
    """Return the checks `cable_leaf` and `cable_port` of a host, and the neighbor of each rail that was seen.

    :param rails: the rails of the host plan.
    :param options: `cables` (of the host plan), `leaves` (those of all zones: `zone`, `rail`, `leaf`), `zone` (the
        host's own), `lldp_listen` (seconds to listen on the rails that lldpd knows nothing of; 0, the default: not at
        all; switches speak every 30 seconds).
    :raises RdmaError: when it is to listen and may not.
    """
    sysfs = options.get("sysfs") or Sysfs()
    cables = options.get("cables") or {}
    ports = {rail["name"]: sysfs.port_interface(sysfs.rail_interface(rail)) for rail in rails}
    unable = {name: why for name, port in ports.items() if (why := sysfs.unheard(port))}
    known, missing = ask_lldpd()
    listen = float(options.get("lldp_listen") or 0)
    quiet = {port for name, port in ports.items() if name not in unable and port not in known}
    if listen and quiet:
        known = {**known, **hear(sorted(quiet), listen)}
    made = []
    for rail in rails:
        name = rail["name"]
        planned, port = cables.get(name) or {}, ports[name]
        unseen = f"lldpd has heard nothing: {FIRMWARE}"
        if listen:
            unseen = f"nothing was heard in {listen:g} seconds: {FIRMWARE}"
        elif missing:
            unseen = f"{missing}, and the audit did not listen (verify_lldp_listen)."
        made.append(
            Cable(
                rail=name,
                interface=port,
                leaf=planned.get("leaf") or "",
                port=planned.get("port") or "",
                seen=None if name in unable else known.get(port),
                unseen=unable.get(name) or unseen,
            )
        )
    checks = cable_checks(made, options.get("leaves") or (), options.get("zone"))
    return checks, {"lldp": {cable.rail: cable.seen for cable in made if cable.seen}}


def ask_lldpd() -> tuple[dict[str, Neighbor], str]:
    """Return the neighbors that lldpd knows by interface, and why it knows none, as a clause; empty when it runs.

    No other function queries lldpd. This one never raises: a caller builds its sentence around the clause. Only the
    clause distinguishes a host without lldpd from one whose lldpd does not answer.
    """
    code, out, err = ask(ARGV)
    try:
        if code == 0:
            return parse_lldp(out), ""
    except ValueError as exc:
        err = f"its answer is not understood: {exc}"
    if code == 127:
        return {}, "lldpd is not installed"
    said = (err.strip() or f"exit code {code}").splitlines()
    return {}, f"lldpd does not answer ({said[-1]})"


def hear(interfaces: t.Iterable[str], seconds: float) -> dict[str, Neighbor]:
    """Listen on all interfaces at once, until each heard a switch; return the neighbors by interface."""
    heard: dict[str, list[Neighbor]] = {}
    with Sockets[str]("Listening for LLDP needs a packet socket") as sockets:
        # Of one that went down meanwhile nothing is heard.
        waiting = {name for name in interfaces if not sockets.open(name, PACKETS, partial(_join, name))}
        for name, frame, sender in sockets.received(time.monotonic() + seconds, lambda: not waiting):
            # What this host's own lldpd sends comes by as well.
            if sender[2] != PACKET_OUTGOING and (found := parse_frame(frame)):
                heard.setdefault(name, []).append(found)
                if found["is_switch"]:
                    waiting.discard(name)
    return {name: best(found) for name, found in heard.items()}


def _join(name: str, sock: socket.socket) -> None:
    sock.bind((name, ETHERTYPE))
    for group in GROUPS:
        # These addresses leave the interface again when the socket closes.
        member = struct.pack("iHH8s", socket.if_nametoindex(name), MULTICAST, 6, bytes.fromhex(group.replace(":", "")))
        sock.setsockopt(SOL_PACKET, ADD_MEMBERSHIP, member)
