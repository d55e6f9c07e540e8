# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The checks of the live host network: what was planned of it, and what is there. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from .._check import Check, by_role, compared, warning
from .desired import exclusion_rules
from .model import KINDS, Link, RouteHost, Snapshot, equivalent, link_of, missing, of_all, port_of
from .route_options import IPOIB_GROUP, NO_INTERFACE

if t.TYPE_CHECKING:
    from .route_options import RailOptions, RouteOptions

FIX = by_role("rail_network")
LOST_FIX = "Check the card with `dmesg` and `lspci`: the host had it in the last run. [interface_lost]"
DORMANT = "Check the program that has to authorize the port, such as an 802.1X supplicant, and the leaf's port."


def _check(name: str, rail: str | None, planned: t.Any, observed: t.Any, *, cause: str = "", fix: str = FIX) -> Check:
    return compared(name, planned, observed, cause, fix, good=not cause, rail=rail)


def checks_of(want: RouteOptions, host: RouteHost, target: Snapshot, stale: Snapshot) -> t.Iterator[Check]:
    """Return what is as planned and what is not, of every rail and of the host.

    :param target: the planned objects, and `stale` those to remove.
    """
    now = host.snapshot
    for rail in want.rails:
        port, link = port_of(rail, host), link_of(rail, host)
        if not want.present:
            continue
        if port is None:
            yield lost_interface_check(rail, host)
            continue
        name = link.name if link else rail.device
        yield from _link_checks(rail, link or replace(port, name=rail.device, up=False, mtu=0))
        for part in KINDS:
            have = getattr(now, part)
            key, value = ("priority", rail.priority) if part == "rules" else ("interface", name)
            items = {item for item in getattr(target, part) if getattr(item, key) == value}
            planned, present, missing = (sorted(map(str, some)) for some in (items, items & have, items - have))
            cause = f"missing: {'; '.join(missing)}" if missing else ""
            yield _check(f"network_{part}", rail.name, planned, present, cause=cause)
    yield from _sysctl_checks(want, host)
    yield from leaving_checks(want, host)
    extra = sorted(map(str, stale.links.values()))
    for part in KINDS:
        extra += map(str, sorted((getattr(stale, part) - getattr(target, part)) & getattr(now, part)))
    yield _check("network_stale", None, [], extra, cause="left over from an earlier plan" if extra else "")
    for rule in exclusion_rules(want) if want.present else ():
        there = rule in now.rules
        yield _check(
            "network_exclusion_rule", None, str(rule), str(rule) if there else "", cause="" if there else "missing"
        )


def lost_interface_check(rail: RailOptions, host: RouteHost) -> Check:
    """Return the check of a rail that has no interface: the only one of that rail."""
    cause = f"this host has no interface {rail.identifier!r}."
    known = missing(rail, host, known=True)
    return _check("network_link", rail.name, "up", "missing", cause=cause, fix=LOST_FIX if known else NO_INTERFACE)


def _link_checks(rail: RailOptions, link: Link) -> t.Iterator[Check]:
    state = "up" if link.up else "down"
    fix = FIX
    if link.up and not link.carrier:
        state, fix = "no carrier", "Look at cable, transceiver and switch port."
    elif link.up and link.dormant:
        state, fix = "dormant", DORMANT
    elif link.up and not link.arp:
        state, fix = "ARP off", f"Run `ip link set {link.name} arp on` on the host."
    cause = "" if state == "up" else f"{link.name}: {state}"
    yield _check("network_link", rail.name, "up", state, cause=cause, fix=fix)
    if rail.mtu is not None:
        cause = "" if link.mtu == rail.mtu else f"{link.name} has an MTU of {link.mtu}"
        limited = link.kind == "infiniband" and link.mtu < rail.mtu
        fix = f"{FIX} If it cannot set it: {IPOIB_GROUP}" if limited else FIX
        yield _check("network_mtu", rail.name, rail.mtu, link.mtu, cause=cause, fix=fix)


def leaving_checks(want: RouteOptions, host: RouteHost) -> t.Iterator[Check]:
    """Warn of addresses that a router's advertisements gave to a rail, where the run ends that by accept_ra=0."""
    for key, value in want.sysctls if want.present else ():
        name, _slash, setting = key.rpartition("/")
        if setting != "accept_ra" or value != "0" or host.snapshot.sysctls.get(key, "0") in ("", "0"):
            continue
        name = name.rpartition("/")[2]
        here = (item for item in host.snapshot.addresses if item.interface == name and item.family == 6 and item.ends)
        # DHCPv6 leases single addresses, and the module sets a planned one again.
        going = sorted(str(item) for item in here if item.length != 128 and item.usable)
        if going:
            cause = f"{name} has {', '.join(going)} by router advertisement, which ends with accept_ra=0."
            fix = "Nothing, if no service needs it; otherwise set it without a lifetime."
            yield warning("network_router_addresses", [], going, cause, fix, object=name)


def _sysctl_checks(want: RouteOptions, host: RouteHost) -> t.Iterator[Check]:
    if not want.sysctls or not want.present:
        return
    now = host.snapshot.sysctls
    planned = dict(want.sysctls)
    observed = {key: now.get(key, "") for key in planned}
    wrong = {key: value for key, value in observed.items() if not equivalent(key, value, planned[key])}
    causes = [f"{key} is {value}" for key, value in wrong.items()]
    # The role sets the interfaces' own and does not change `all`.
    fixes = dict.fromkeys([FIX] if wrong else [])
    for key, value in want.sysctls:
        wider, all_key = host.sysctls_all.get(key, ""), of_all(key)
        # The kernel takes the larger of the two, so `all` can undo what the interface says.
        if wider.isdigit() and value.isdigit() and int(wider) > int(value) and not equivalent(key, wider, value):
            planned[all_key], observed[all_key] = value, wider
            causes.append(f"{key.rpartition('/')[2]} of `all` is {wider}, and the kernel takes the larger of the two")
            settings = f"{all_key.replace('/', '.')}={value}"
            fixes[f"Set it for all: `sysctl -w {settings}`, and where sysctl.d has it."] = None
    if not causes:
        observed = planned
    yield _check(
        "network_sysctls",
        None,
        planned,
        observed,
        cause="; ".join(dict.fromkeys(causes)),
        fix=" ".join(fixes),
    )
