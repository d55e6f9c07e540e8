# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The IDs of all checks, `subject_thing`, and the checks of an audit on a host. Pure.

Hosts need no list: a test compares it with the IDs that they make.

tests/site/checks.yml has what each compares; tests/site/checks_doc.py makes docs/reference/checks.md of it.
"""

from __future__ import annotations

import typing as t

NAMES = """
accept_bandwidth accept_collective accept_fabric accept_gpu accept_hosts accept_latency accept_leaf accept_node
accept_zone
address_duplicate address_renumbered
cable_leaf cable_port
card_present
cluster_api
driver_modules driver_packages driver_role driver_source driver_versions
fleet_driver fleet_firmware fleet_mac fleet_speed
gpudirect_acs gpudirect_path gpudirect_role
host_cni host_in_use host_kernel host_port host_result host_root
network_addresses network_echo network_exclusion_rule network_existing_routes network_library network_link network_mtu
network_neighbors network_preflight network_role network_router_addresses network_routes network_rules network_stale
network_sysctls
nic_link_type nic_role
node_drain node_in_cluster node_resources node_sriov
object_in_use object_owner object_state
pcie_link
persist_existing persist_file persist_precedence persist_preflight persist_stale
ping_gateway ping_gateway_mtu ping_neighbor ping_neighbor_mtu ping_neighbor_tcp ping_rails
plan_inventory
pod_application pod_exec pod_gid pod_interface pod_main_table pod_network pod_ping pod_rdma pod_rdma_isolation
pod_read_lat pod_rule pod_running pod_table
pool_prefix
port_discards port_errors port_flaps port_order port_speed
rail_isolation rail_out_of_service
rdma_active_mtu rdma_device rdma_device_files rdma_devices rdma_ipoib_mtu rdma_link_layer rdma_modules rdma_mtu
rdma_name rdma_netns_current rdma_netns_persistent rdma_port_state rdma_rename rdma_role rdma_subnet_manager
rdma_vf_guid
roce_cnp roce_declared roce_dscp_map roce_ecn roce_ets roce_persistence roce_pfc roce_role roce_switch
roce_traffic_class roce_trust
route_path
traffic_errors traffic_rdma traffic_read_lat traffic_read_lat_server traffic_write_bw traffic_write_bw_server
verify_require
"""
IDS = frozenset(NAMES.split())

# The groups of rail_audit that compare what a role sets, and the check that represents a skipped role.
ROLES: dict[str, tuple[tuple[str, ...], str]] = {
    "rdma_driver": (("driver",), "driver_role"),
    "nic_link_type": (("link_type",), "nic_role"),
    "rdma_host": (("mode",), "rdma_role"),
    "rail_network": (("network", "paths", "persist", "duplicates", "cabling"), "network_role"),
    "lossless_roce": (("qos",), "roce_role"),
    "gpudirect": (("gpudirect",), "gpudirect_role"),
}
PACKET_GROUPS = ("duplicates", "cabling", "pings")
# Faults that pings and the kernel's answers cannot show.
UNDETECTED_FAULTS = (
    "; not detected without it: filters for UDP, for single TCP ports or for another DSCP than the planned one; loss"
    " below one packet in ten; a rate limit; a rule for one mark, user or source port; a manual neighbor entry; a low"
    " hop limit; a pair of hosts between which no ping is sent"
)
PACKET_CHECKS = ("address_duplicate", "cable_leaf", "ping_rails", "traffic_rdma")


def scope(roles: t.Sequence[str], *, devices: bool, traffic: str, persist: bool) -> tuple[list[str], dict[str, str]]:
    """Return the groups to check, and the skipped checks with their reasons.

    :param roles: the roles whose state is compared.
    :param devices: whether RDMA devices and counters are checked.
    :param traffic: C(rdma), C(ping), or C(none) for no packet at all.
    :param persist: whether the role rail_network keeps files for the next boot.
    """
    groups = [group for role in roles for group in ROLES.get(role, ((), ""))[0]]
    groups += [*(("devices", "counters") if devices else ()), "pings"]
    unwanted = {*(() if persist else ("persist",)), *(PACKET_GROUPS if traffic == "none" else ())}
    left = {
        check: "the role is not in verify_roles of this host"
        for role, (_groups, check) in ROLES.items()
        if role not in roles
    }
    if not devices:
        left["rdma_devices"] = left["port_errors"] = "verify_devices is false for this host"
    if not persist and "rail_network" in roles:
        left["persist_file"] = "rail_network_persist is false for this host"
    for check in {"none": PACKET_CHECKS, "ping": ("traffic_rdma",)}.get(traffic, ()):
        left[check] = f"verify_traffic is {traffic} for this host{UNDETECTED_FAULTS if check == 'traffic_rdma' else ''}"
    return [group for group in groups if group not in unwanted], left
