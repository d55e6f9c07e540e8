# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The ids of all checks, `subject_thing`. Hosts need no list: a test holds what they make.

tests/site/checks.yml has what each compares; tests/site/checks_doc.py makes docs/reference/checks.md of it.
"""

from __future__ import annotations

NAMES = """
accept_bandwidth accept_collective accept_fabric accept_gpu accept_hosts accept_latency accept_leaf accept_node
accept_zone
address_duplicate address_renumbered
cable_leaf cable_port
card_present
cluster_api
driver_modules driver_packages driver_source driver_versions
fleet_driver fleet_firmware fleet_mac fleet_speed
gpudirect_acs gpudirect_gdrcopy gpudirect_path gpudirect_role
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
