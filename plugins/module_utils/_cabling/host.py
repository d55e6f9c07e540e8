# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Determines the switch port of each rail's cable: queries lldpd. Read-only."""

from __future__ import annotations

import typing as t

from .._files import Sysfs
from .._programs import run_program
from .lldp import ARGV, INSTALL, Neighbor, parse_lldp
from .plan import Cable, cable_checks

if t.TYPE_CHECKING:
    from .._check import Check

FIRMWARE = (
    "lldpd received nothing: the leaf sends no LLDP, or the card's firmware keeps the frames "
    "(NVIDIA: LLDP_NB_RX_MODE_P1 of mlxconfig; Intel: ethtool --show-priv-flags, fw-lldp)."
)


def check_cables(
    rails: t.Sequence[t.Mapping[str, t.Any]], options: t.Mapping[str, t.Any]
) -> tuple[list[Check], dict[str, t.Any]]:
    """Return the checks `cable_leaf` and `cable_port` of a host.

    :param rails: the rails of the host plan.
    :param options: `cables` (of the host plan), `leaves` (those of all zones: `zone`, `rail`, `leaf`), `zone` (the
        host's own).
    """
    sysfs = options.get("sysfs") or Sysfs()
    cables = options.get("cables") or {}
    known, missing = ask_lldpd()
    made = []
    for rail in rails:
        planned, port = cables.get(rail["name"]) or {}, sysfs.port_interface(sysfs.rail_interface(rail))
        unable = sysfs.receive_problem(port)
        made.append(
            Cable(
                rail=rail["name"],
                interface=port,
                leaf=planned.get("leaf") or "",
                port=planned.get("port") or "",
                seen=None if unable else known.get(port),
                unseen=unable or (f"{missing}." if missing else FIRMWARE),
                unseen_fix=INSTALL if missing and not unable else "",
            )
        )
    return cable_checks(made, options.get("leaves") or (), options.get("zone")), {}


def ask_lldpd() -> tuple[dict[str, Neighbor], str]:
    """Return the neighbors that lldpd knows by interface, and why it knows none, as a clause; empty when it runs.

    No other function queries lldpd. This one never raises: a caller builds its sentence around the clause. Only the
    clause distinguishes a host without lldpd from one whose lldpd does not answer.
    """
    code, out, err = run_program(ARGV)
    try:
        if code == 0:
            return parse_lldp(out), ""
    except ValueError as exc:
        err = f"its answer is not understood: {exc}"
    if code == 127:
        return {}, "lldpd is not installed"
    reported = (err.strip() or f"exit code {code}").splitlines()
    return {}, f"lldpd does not answer ({reported[-1]})"
