# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A check: what was planned, what is there, and if they differ why and what to do. The only way to make one. Pure.

Modules return checks as plain data (`Check.data`), the verdict collects them, docs/verify.md lists their ids.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

OK, DEVIATION, WARNING, SKIPPED = "ok", "deviation", "warning", "skipped"

# Every id and what it compares: `subject_thing`. docs/verify.md lists them (python3 tests/site/checks_doc.py).
IDS = {
    "address_duplicate": "nobody else on the rail has the address",
    "cable_leaf": "the rail's cable ends in the planned leaf",
    "cable_port": "the rail's cable ends in the planned port of its leaf",
    "card_place": "the place that the plan names for the rail's card has one",
    "cluster_api": "the cluster was looked at",
    "driver_modules": "the kernel has the modules that RDMA needs",
    "driver_packages": "the packages of the driver are installed",
    "driver_pyroute2": "the host's Python has a pyroute2 that is new enough",
    "driver_source": "the running driver comes from where it should: kernel, DOCA-OFED, container",
    "fleet_driver": "the card's driver is that of most of its peers",
    "fleet_firmware": "the card's firmware is that of most of its peers",
    "fleet_speed": "the port runs at the speed of most of its peers on the rail",
    "gpudirect_acs": "access control on PCIe lets GPU and NIC talk below their switch",
    "gpudirect_gdrcopy": "gdrdrv is loaded, where it was asked for",
    "gpudirect_path": "a way from NIC to GPU memory is open: DMA-BUF or peermem",
    "gpudirect_role": "the role gpudirect was asked",
    "network_addresses": "the rail has its addresses",
    "network_guard": "the rule stands that keeps other traffic off the rails",
    "network_library": "pyroute2 can be imported on the host",
    "network_link": "the rail's interface is up and has a carrier",
    "network_mtu": "the rail's interface has the planned MTU",
    "network_preflight": "nothing on the host is in the way of the plan",
    "network_role": "the role rail_network was asked",
    "network_routes": "the rail has its routes",
    "network_rules": "the rail has its rules",
    "network_stale": "nothing of an earlier plan is left in the live network",
    "network_sysctls": "kernel settings of the rails are as planned",
    "nic_link_type": "the card's ports run the planned link type, and its other firmware values",
    "nic_role": "the role nic_mode was asked",
    "node_in_cluster": "the cluster has the node",
    "node_resources": "the node offers the planned RDMA resources",
    "node_sriov": "the SR-IOV operator is done with the node",
    "object_in_use": "nothing that should go is still in use",
    "object_owner": "no field of ours belongs to somebody else",
    "object_state": "objects in the cluster are as planned",
    "objects_admission": "admission takes the plan's objects",
    "pcie_link": "the card's PCIe link is as wide and fast as card and slot offer",
    "persist_file": "the file that brings the rail back at the next boot is as planned",
    "persist_preflight": "nothing is in the way of the files for the next boot",
    "persist_stale": "no file of an earlier plan or another network manager is left",
    "ping_gateway": "the rail's gateway answers",
    "ping_gateway_mtu": "the rail's gateway answers a packet of full size",
    "ping_neighbour": "the same rail of another host answers",
    "ping_neighbour_mtu": "the same rail of another host answers a packet of full size",
    "ping_rails": "the rails were pinged",
    "plan_inventory": "the inventory still gives the committed plan",
    "pod_application": "the test application runs",
    "pod_gid": "an active RDMA device has the GID of the pod's address",
    "pod_inside": "commands could be run in the pod",
    "pod_main_table": "default, service and pod networks leave the pod by no rail",
    "pod_network": "the pod is attached to the rail, with an address of its pool",
    "pod_nic": "the rail's interface in the pod is up, with planned MTU and addresses",
    "pod_rdma": "the pod sees the RDMA devices that it should",
    "pod_rdma_foreign": "the pod sees no RDMA device of others",
    "pod_read_lat": "a pod on another node answers RDMA reads over the rail",
    "pod_rule": "a rule chooses a table for packets from the pod's address",
    "pod_running": "the pod of the test application runs",
    "pod_table": "that table's default route is by the rail and its own gateway",
    "port_discards": "since the last audit the port threw no packets away, beyond the limit",
    "port_errors": "since the last audit the port saw no damaged or lost packets",
    "port_flaps": "since the last audit the link stayed up, beyond the limit",
    "port_order": "since the last audit no packets came out of order; a warning, unless a limit is set",
    "port_speed": "the port runs at the planned speed",
    "rdma_active_mtu": "the RDMA port moves packets of the planned size",
    "rdma_device": "the rail has its RDMA device",
    "rdma_device_files": "the RDMA device has its files in /dev/infiniband",
    "rdma_devices": "the RDMA devices were read",
    "rdma_ipoib_mtu": "IPoIB can carry the planned MTU",
    "rdma_link_layer": "the RDMA port runs Ethernet or InfiniBand as planned",
    "rdma_modules": "the kernel modules for RDMA are loaded, now and at the next boot",
    "rdma_mtu": "the RDMA port's interface has the planned MTU",
    "rdma_name": "the rail's interface has the planned name",
    "rdma_netns_current": "the running RDMA namespace mode is the planned one",
    "rdma_netns_persistent": "the RDMA namespace mode of the next boot is the planned one",
    "rdma_port_state": "the RDMA port is active",
    "rdma_role": "the role rdma_host was asked",
    "rdma_subnet_manager": "the InfiniBand port knows its subnet manager",
    "rdma_vf_guid": "each virtual function of an InfiniBand rail that is not in a pod has a GUID of its own",
    "rdma_vf_port": "the subnet manager brings virtual functions of an InfiniBand rail up",
    "roce_cable_length": "the cable's length is as declared; the driver keeps it also where it does not act",
    "roce_cnp": "congestion notifications have their DSCP and priority",
    "roce_declared": "the inventory says which priority and DSCP the switches have",
    "roce_dscp_map": "DSCP values map to the planned priorities",
    "roce_ecn": "congestion control is on for the priority of RDMA",
    "roce_ets": "RoCE has its class and share of the bandwidth, where they are declared",
    "roce_leaf": "the leaf announces the same flow control, DSCP and share by DCBX",
    "roce_persistence": "the settings of lossless RoCE come back at the next boot",
    "roce_pfc": "priority flow control is on for the planned priorities",
    "roce_role": "the role lossless_roce was asked",
    "roce_traffic_class": "RDMA connections get the planned traffic class",
    "roce_trust": "the port trusts DSCP",
    "route_path": "the kernel sends the rail's packets by the planned interface, gateway, table and source",
    "traffic_errors": "error counters stay while the rails carry tests",
    "traffic_rdma": "RDMA tests were run",
    "traffic_read_lat": "other hosts answer RDMA reads over the rail",
    "traffic_read_lat_server": "the server of the latency test starts",
    "traffic_write_bw": "other hosts take RDMA writes over the rail",
    "traffic_write_bw_server": "the server of the bandwidth test starts",
    "verify_require": "what verify_require names was looked at",
}


@dataclass(frozen=True)
class Check:
    """One comparison.

    :param id: `subject_thing`, such as `route_path`; one of `IDS`.
    :param status: OK, DEVIATION, WARNING (shown, and never a reason to fail) or SKIPPED (not looked at, for a reason).
    :param planned: what the plan has, and `observed` what is there: anything that JSON can hold.
    :param cause: why they differ, or why it was skipped; empty when they do not differ.
    :param fix: what to do about it; empty when there is nothing to do.
    :param rail: the rail that it is about; None when it is about the whole host, node or cluster.
    :param family: 4 or 6 where the families of one rail can differ; None where they cannot.
    :param node: the Kubernetes node, for checks that are made of the cluster and not on a host.
    :param object: what it is about beside rail and node: a card, a file, an object of the cluster.
    """

    id: str
    status: str
    planned: t.Any = None
    observed: t.Any = None
    cause: str = ""
    fix: str = ""
    rail: str | None = None
    family: int | None = None
    node: str | None = None
    object: str | None = None

    def __post_init__(self) -> None:
        """Refuse an id that nobody can look up."""
        if self.id not in IDS:
            raise ValueError(f"The check {self.id!r} is not in IDS of _check.py.")

    def data(self) -> dict[str, t.Any]:
        """Return it as modules return it: family, node and object only where they are set."""
        keys = ("id", "rail", "status", "planned", "observed", "cause", "fix")
        found = {key: getattr(self, key) for key in keys}
        more = {key: getattr(self, key) for key in ("family", "node", "object")}
        return {**found, **{key: value for key, value in more.items() if value is not None}}


def ok(name: str, planned: t.Any, observed: t.Any, **where: t.Any) -> Check:
    """Return a check that found what was planned. `where`: rail, family, node, object."""
    return Check(name, OK, planned, observed, **where)


def deviation(name: str, planned: t.Any, observed: t.Any, cause: str, fix: str, **where: t.Any) -> Check:
    """Return a check that found something else. `where`: rail, family, node, object."""
    return Check(name, DEVIATION, planned, observed, cause, fix, **where)


def warning(name: str, planned: t.Any, observed: t.Any, cause: str, fix: str, **where: t.Any) -> Check:
    """Return a check that found what a person should see, and what is no reason to fail."""
    return Check(name, WARNING, planned, observed, cause, fix, **where)


def skipped(name: str, cause: str, fix: str = "", planned: t.Any = None, **where: t.Any) -> Check:
    """Return a check that was not made, with the reason: nothing is green by silence."""
    return Check(name, SKIPPED, planned, None, cause, fix, **where)


def compared(
    name: str,
    planned: t.Any,
    observed: t.Any,
    cause: str,
    fix: str,
    *,
    good: bool | None = None,
    **where: t.Any,
) -> Check:
    """Return a check that is ok when both are equal, else a deviation.

    :param good: whether they count as equal, where that is more than `planned == observed`.
    """
    if planned == observed if good is None else good:
        return ok(name, planned, observed, **where)
    return deviation(name, planned, observed, cause, fix, **where)
