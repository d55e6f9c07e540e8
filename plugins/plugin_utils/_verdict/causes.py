# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Says why a node offers too little of a rail's resource, where only the host can know it. Pure.

What the cluster knows, cluster_nodes has said already.
"""

from __future__ import annotations

import typing as t

from ...module_utils._check import DEVIATION, WARNING, Check, skipped
from ...module_utils._cluster.nodes import RESOURCES

NO_PORT = "Caused by network_link: the rail has no port."
# The host's checks that explain why the plugin finds nothing, the first cause first.
HOST_CHECKS = (
    "rdma_device",
    "rdma_device_files",
    "rdma_link_layer",
    "network_link",
    "rdma_port_state",
    "rdma_modules",
    "rdma_netns_current",
)


def with_host(check: Check, own: t.Iterable[t.Mapping[str, t.Any]]) -> Check:
    """Return a check of a short resource with the cause that the host's own checks found, if they found one.

    :param own: the host's checks.
    """
    if check.get("id") != RESOURCES or check.get("status") != DEVIATION:
        return check
    bad = [row for row in own if row.get("status") == DEVIATION and row.get("rail") in (check.get("rail"), None)]
    why = next((row for name in HOST_CHECKS for row in bad if row.get("id") == name), None)
    return {**check, "cause": f"{why['id']}: {why.get('cause')}", "fix": str(why.get("fix") or "")} if why else check


def missing_ports(checks: t.Iterable[t.Mapping[str, t.Any]]) -> set[str | None]:
    """Return the rails of a host that have no port."""
    wanted = ("network_link", DEVIATION, "missing")
    return {check["rail"] for check in checks if (check["id"], check["status"], check["observed"]) == wanted}


def below_missing_port(checks: t.Iterable[Check]) -> list[Check]:
    """Return the checks of a host, without what deviates on a rail because its port is missing: that one is counted."""
    checks = list(checks)
    gone = missing_ports(checks)
    return [
        skipped(check["id"], NO_PORT, "", check["planned"], check["observed"], rail=check["rail"])
        if check["rail"] in gone and check["id"] != "network_link" and check["status"] in (DEVIATION, WARNING)
        else check
        for check in checks
    ]


def short_names(names: t.Iterable[str | None]) -> frozenset[str]:
    """Return names as LLDP is compared with them: in lower case, without a domain."""
    return frozenset(name.lower().partition(".")[0] for name in names if name)


def without_host_as_leaf(check: Check, hosts: t.Collection[str]) -> Check:
    """Return `cable_leaf` as skipped where the neighbor heard is a host of the inventory.

    A switch without LLDP of its own floods the frames of a host that bridges or routes.

    :param hosts: the inventory's hosts, as `short_names` has them.
    """
    heard = str(check["observed"]).partition(" ")[0]
    if check["id"] != "cable_leaf" or check["status"] != DEVIATION or not short_names([heard]) & frozenset(hosts):
        return check
    why = f"Not seen: the neighbor heard is {heard}, a host of the inventory, and no leaf."
    fix = "Enable LLDP on the leaf, or disable it on that host."
    return skipped("cable_leaf", why, fix, check["planned"], check["observed"], rail=check["rail"])
