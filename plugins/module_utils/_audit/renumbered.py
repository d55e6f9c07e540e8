# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Whether the plan would take an address from this host: the sign of a plan that was lost and created again.

It reads the kernel, for all addresses inside the fabric's networks (after a reboot the network manager has made them,
with its own protocol number), and our own files, for an interface that is down and for a fabric of other networks.
"""

from __future__ import annotations

import contextlib
import ipaddress
import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from .._check import STRANGE, deviation
from .._errors import RdmaError
from .._fabric.numbers import vlan_interface
from .._files import Sysfs
from .._management_network import read_management_network
from .._persist.host import PersistHost
from .._route.managed_state import read_retained
from .._route.model import PROTOCOL, PROTOCOL_NAME

if t.TYPE_CHECKING:
    from .._management_network import ManagementNetwork
    from .._route.model import Snapshot
    from .groups import Checks, Facts, Request

    Here = set[tuple[str, str]]

NAME = "address_renumbered"
FIX = (
    "If plan.json was lost, restore it (git log -- plan) and run again. After a renumbering on purpose run with "
    "-e fabric_allow_renumber=true; see docs/concepts/slots.md."
)
# How `ip` shows protocol 143, with and without our name for it.
MARKS = {str(PROTOCOL), hex(PROTOCOL), PROTOCOL_NAME}


def proved(management: ManagementNetwork, named: Snapshot) -> Here:
    """Return the addresses that are ours: our own files name them, or they or a rule for them have our protocol."""
    found = {(item.interface, item.address) for item in named.addresses}
    rules = [rule for _links, _held, rules in management.seen for rule in rules if str(rule.get("protocol")) in MARKS]
    sources = {rule.get("src") for rule in rules}
    marked = [row for row in management.held if row[1]["local"] in sources or str(row[1].get("protocol")) in MARKS]
    return found | {(name, item["local"]) for name, item in marked}


def look(request: Request) -> tuple[Checks, Facts]:
    """Compare what is here with the plan."""
    if boolean(request.settings.get(NAME, {}).get("allow") or False):
        return [], {}
    host = PersistHost()
    ports = [(rail, _port(host, rail)) for rail in request.params.get("rails") or []]
    rails = [{**rail, "port": port, "interface": vlan_interface(port, rail.get("vlan") or 0)} for rail, port in ports]
    networks = [ipaddress.ip_network(text) for text in request.params.get("rdma_prefixes") or []]
    management = read_management_network(Sysfs())
    live = {(name, item["local"]) for name, item in management.held}
    out = [(_port(host, rail), rail.get("vlan") or 0) for rail in request.params.get("out_of_service") or []]
    apart = {name for port, vlan in out for name in (port, vlan_interface(port, vlan))}
    here, ours = ({row for row in some if row[0] not in apart} for some in (live, proved(management, read_retained())))
    return decide(rails, networks, here, ours)


def _port(host: PersistHost, rail: t.Any) -> str:
    """Return the name of a rail's port; empty where a card has none before its driver is there."""
    with contextlib.suppress(RdmaError):
        return host.interface(rail["interface"], rail.get("pci") or "")
    return ""


def decide(rails: t.Any, networks: t.Any, live: Here, ours: Here) -> tuple[Checks, Facts]:
    """Return a deviation for each address that its rail would lose for another, and all strange ones as a fact.

    :param networks: the fabric's, inside which an address of the kernel's counts.
    :param live: all that the host has, and `ours` what of it, or of the next boot, is ours by proof.
    """
    planned: dict[tuple[str, int], tuple[str, str]] = {}
    for rail in rails:
        for item in rail.get("addresses") or []:
            own = ipaddress.ip_interface(item["address"]).ip
            planned[rail["interface"], own.version] = (rail["name"], str(own))
    addresses = {address for _rail, address in planned.values()}
    inside = {row for row in live if any(ipaddress.ip_address(row[1]) in network for network in networks)}
    strange = {row for row in inside | ours if row[1] not in addresses}
    checks = []
    for interface, address in sorted(strange):
        family = ipaddress.ip_address(address).version
        rail, now = planned.get((interface, family), ("", ""))
        # Another address, also in the planned subnet, may be intended.
        if now and (interface, address) in ours:
            cause = f"{interface} has {address}, and this plan gives it {now}: it would be renumbered"
            checks.append(deviation(NAME, now, address, cause, FIX, rail=rail, family=family))
    return checks, {STRANGE: sorted({address for _interface, address in strange})}
