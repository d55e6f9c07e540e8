# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""The checks of an audit on a host, and those that it reports as skipped. Pure."""

from __future__ import annotations

import typing as t

# The groups of rail_audit that compare what a role sets, and the check that represents a skipped role.
ROLES: dict[str, tuple[tuple[str, ...], str]] = {
    "rdma_driver": (("driver",), ""),
    "nic_link_type": (("link_type",), "nic_role"),
    "rdma_host": (("mode",), "rdma_role"),
    "rail_network": (("network", "paths", "persist", "duplicates", "cabling"), "network_role"),
    "lossless_roce": (("qos",), "roce_role"),
    "gpudirect": (("gpudirect",), "gpudirect_role"),
}
ON_THE_WIRE = ("duplicates", "cabling", "pings")
# What pings and the kernel's answers cannot show.
UNSEEN = (
    "; not detected without it: filters for UDP, for single TCP ports or for another DSCP than the planned one; loss"
    " below one packet in ten; a rate limit; a rule for one mark, user or source port; a manual neighbor entry; a low"
    " hop limit; a pair of hosts between which no ping is sent"
)
QUIET = ("address_duplicate", "cable_leaf", "ping_rails", "traffic_rdma")


def scope(roles: t.Sequence[str], *, devices: bool, traffic: str, persist: bool) -> tuple[list[str], dict[str, str]]:
    """Return the groups to check, and the skipped checks with their reasons.

    :param roles: the roles whose state is compared.
    :param devices: whether RDMA devices and counters are checked.
    :param traffic: C(rdma), C(ping), or C(none) for no packet at all.
    :param persist: whether the role rail_network keeps files for the next boot.
    """
    groups = [group for role in roles for group in ROLES.get(role, ((), ""))[0]]
    groups += [*(("devices", "counters") if devices else ()), "pings"]
    unwanted = {*(() if persist else ("persist",)), *(ON_THE_WIRE if traffic == "none" else ())}
    left = {
        check: "the role is not in verify_roles of this host"
        for role, (_groups, check) in ROLES.items()
        if check and role not in roles
    }
    if not devices:
        left["rdma_devices"] = left["port_errors"] = "verify_devices is false for this host"
    if not persist and "rail_network" in roles:
        left["persist_file"] = "rail_network_persist is false for this host"
    for check in {"none": QUIET, "ping": ("traffic_rdma",)}.get(traffic, ()):
        left[check] = f"verify_traffic is {traffic} for this host{UNSEEN if check == 'traffic_rdma' else ''}"
    return [group for group in groups if group not in unwanted], left
