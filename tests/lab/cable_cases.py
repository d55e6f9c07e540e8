# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The case of the matrix about cables: leaves that speak LLDP, and hosts that hear it."""

from __future__ import annotations

import json
import re
import time
import typing as t

import fabric
import state
from fleet import DUAL_STACK, CaseError, Fleet
from leaves import speaking

if t.TYPE_CHECKING:
    from collections.abc import Collection

    from topology import Lab

SWAPPED = {("node1", "rail1"), ("node1", "rail2")}


def cables(fleet: Fleet) -> str:
    """Two cables of node1 swapped: lldpd on leaves and hosts, then hosts that only listen."""
    fleet.up()
    lab = state.load(fleet.name)
    names = [f"leaf{rail}" for rail in lab.rails]
    fleet.declare("exclusive", **DUAL_STACK, site_host_roles=["rdma_host", "rail_network"], fabric_leaves=names)
    fleet.converge()
    listen = ("-e", "verify_lldp_listen=20")
    rails = {name: number for number, name in enumerate(lab.interfaces, start=1)}
    swapped = {**rails, lab.interfaces[0]: 2, lab.interfaces[1]: 1}
    with speaking(lab, fleet.folder / "leaves"):
        for host in fleet.hosts:
            fleet.on(host, "systemctl", "start", "lldpd")
            _hears(fleet, host, rails)
        fleet.play("audit")
        _accused_cables(fleet, {})
        _swap(fleet, lab)
        _hears(fleet, "node1", swapped)
        fleet.play("audit", fails=True)
        said = _accused_cables(fleet, SWAPPED)
        for host in fleet.hosts:
            fleet.on(host, "systemctl", "stop", "lldpd")
        fleet.play("audit", *listen, fails=True)
        _accused_cables(fleet, SWAPPED)
        _swap(fleet, lab)
        fleet.play("audit", *listen)
        _accused_cables(fleet, {})
    return f"by lldpd and by listening: {said}; as planned before and after: every cable seen and green"


def _swap(fleet: Fleet, lab: Lab) -> None:
    """Swap the first two cables of node1, at the leaves' end."""
    fabric.swap(lab, lab.host("node1"), 1, 2)
    fleet.lab("gateways", fleet.name, "--plan", str(fleet.plan))


def _hears(fleet: Fleet, host: str, leaves: dict[str, int]) -> None:
    """Wait until a guest's lldpd knows these leaves alone, by interface; what it knew lives on for four intervals."""
    wanted = {interface: {f"leaf{rail}.dc.example"} for interface, rail in leaves.items()}
    deadline = time.monotonic() + 120
    while True:
        heard: dict[str, set[str]] = {}
        told = fleet.on(host, "lldpcli", "-f", "keyvalue", "show", "neighbors")
        for interface, name in re.findall(r"^lldp\.(\S+)\.chassis\.name=(.*)$", told, re.MULTILINE):
            heard.setdefault(interface, set()).add(name)
        if heard == wanted:
            return
        if time.monotonic() > deadline:
            raise CaseError(f"lldpd of {host} hears {heard}, not {wanted}")
        time.sleep(3)


def _accused_cables(fleet: Fleet, wanted: Collection[tuple[str, str]]) -> str:
    """Insist that every cable was seen, and that the verdict names these alone; return the first one's cause."""
    folder = fleet.folder / "verify/fabric"
    seen = {host: json.loads((folder / f"hosts/{host}.json").read_text(encoding="utf-8")) for host in fleet.hosts}
    statuses = {place: check["status"] for place, check in _leaves(seen).items()}
    places = [(host, f"rail{rail}") for host in fleet.hosts for rail in range(1, fleet.rails + 1)]
    if statuses != {place: "deviation" if place in wanted else "ok" for place in places}:
        raise CaseError(f"the hosts say of their cables {statuses}")
    named = _leaves(json.loads((folder / "verdict.json").read_text(encoding="utf-8"))["hosts"])
    if set(named) != set(wanted):
        raise CaseError(f"the verdict names the cables of {sorted(named)}, not {sorted(wanted)}")
    return next((str(named[place]["cause"]) for place in sorted(wanted)), "")


def _leaves(results: dict[str, t.Any]) -> dict[tuple[str, str], dict[str, t.Any]]:
    """Return the checks of cables, by host and rail."""
    return {
        (host, check["rail"]): check
        for host, entry in results.items()
        for check in entry["checks"]
        if check["id"] == "cable_leaf"
    }
