#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_info
short_description: List the RDMA hardware of a host
version_added: 1.0.0
description:
  - Lists the RDMA devices of a host with their ports, link layers, states, interfaces, PCI and NUMA places,
    virtual functions, GID tables and firmware, and their distance from every GPU.
  - Computes the distance from the PCI tree, in the terms of C(nvidia-smi topo -m), without a vendor tool, for GPUs of
    any vendor.
  - Reads sysfs, and queries the devices themselves where C(ibv_devinfo) is installed. RV(info.missing) lists missing
    sources.
  - Changes nothing. With a plan it also compares the rails with what is there.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
    details: The module changes nothing.
  idempotent:
    support: full
options:
  plan_dir:
    description:
      - The fabric's plan folder on the controller. The host's rails are read from it, and RV(checks) compares them.
    type: path
  rails:
    description:
      - The rails to compare with, in the form of the plan's host files. O(plan_dir) fills it in.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the rail.
        type: str
        required: true
      interface:
        description: The name of its interface.
        type: str
        required: true
      pci:
        description: The PCI address of its NIC, where the name is not enough.
        type: str
      mtu:
        description: The planned MTU of the interface in bytes.
        type: int
  network:
    description: What kind of network the rails are. O(plan_dir) fills it in.
    type: str
    choices:
      - roce
      - infiniband
  rdma_mode:
    description:
      - The RDMA namespace mode that pods need, V(shared) where they share the node's RDMA devices. O(plan_dir) fills it
        in.
    type: str
    choices: [shared, exclusive]
  gids:
    description: Whether to return the GID tables. They grow with the pods of a node.
    type: bool
    default: true
seealso:
  - module: railops.rdma.rail_discover
"""

EXAMPLES = r"""
---
- name: See what there is
  railops.rdma.rdma_info:
  become: true
  register: __example_info

- name: Compare the rails with the plan
  railops.rdma.rdma_info:
    plan_dir: plan/fabric
    gids: false
  become: true
"""

RETURN = r"""
info:
  description: The hardware of the host.
  returned: success
  type: dict
  contains:
    netns_mode:
      description: The RDMA subsystem's namespace mode, C(shared) or C(exclusive); null when ib_core is not loaded.
      type: str
    default_interfaces:
      description:
        - The interfaces that carry a default route or Ansible's connection, and what these are stacked on, such as the
          parent of a VLAN and the members of a bond.
      type: list
      elements: str
    devices:
      description: The RDMA devices, in PCI order.
      type: list
      elements: dict
      contains:
        name:
          description: The name of the RDMA device.
          type: str
        pci:
          description: Its PCI address; null for a software device.
          type: str
        card:
          description: The card's PCI place without the function.
          type: str
        numa_node:
          description: The NUMA node, -1 when unknown.
          type: int
        driver:
          description: The driver of the PCI function.
          type: str
        vf:
          description: Whether this is a virtual function.
          type: bool
        physfn:
          description: The physical function of a virtual one.
          type: str
        total_vfs:
          description: How many virtual functions the firmware allows.
          type: int
        num_vfs:
          description: How many virtual functions there are.
          type: int
        vfs:
          description: Their PCI addresses.
          type: list
          elements: str
        gpu_distances:
          description: Each GPU's PCI address with its distance, C(PIX), C(PXB), C(PHB), C(NODE) or C(SYS).
          type: dict
        nearest_gpus:
          description: The nearest GPUs that share a PCIe switch with the device; empty when no GPU does.
          type: list
          elements: str
        node_guid:
          description: The node GUID.
          type: str
        firmware:
          description: The firmware's version.
          type: str
        hca_type:
          description: The type of the adapter, as the driver names it.
          type: str
        board_id:
          description: The board's identity (PSID).
          type: str
        serves:
          description: >-
            What it serves instead of being a NIC, such as C(serves the NVSwitches (VPD SMDL=SW_MNG)); null for a NIC,
            and where only root could read the vital product data.
          type: str
        ports:
          description: >-
            The ports, each with C(port), C(link_layer), C(state), C(phys_state), C(rate), C(lid), C(sm_lid),
            C(netdev), C(netdev_mtu), C(netdev_state), C(mac), C(active_mtu) in bytes, C(active_mtu_source)
            (C(verbs), or C(netdev) when it is derived from the interface's MTU), C(max_mtu) and C(gids)
            (C(index), C(gid), C(type), C(netdev)).
          type: list
          elements: dict
    nics_without_rdma:
      description: Network functions without an RDMA device, with C(pci), C(vendor), C(driver) and C(netdevs).
      type: list
      elements: dict
    gpus:
      description: The GPUs in PCI order, with C(pci), C(vendor), C(numa_node) and C(index).
      type: list
      elements: dict
    lldp:
      description: >-
        The neighbor of each interface, with C(switch), C(switch_id), C(port), C(description), C(is_switch), and
        in C(dcbx) the PFC, ETS and DSCP priorities that the switch announces. Where a port receives several neighbors,
        this is the most likely leaf, and C(others) has the rest. Null without lldpd.
      type: dict
    missing:
      description: Sources that were not available, and what they need.
      type: list
      elements: str
  sample:
    netns_mode: shared
    default_interfaces:
      - eno1
    devices:
      - name: mlx5_0
        pci: "0000:19:00.0"
        nearest_gpus:
          - "0000:18:00.0"
    gpus:
      - pci: "0000:18:00.0"
        index: 0
    lldp:
      ens1np0:
        switch: leaf1
        port: swp1
    missing: []
checks:
  description: The comparison with the plan; empty without one.
  returned: success
  type: list
  elements: dict
  sample:
    - id: rdma_port_state
      rail: rail1
      status: ok
      planned: ACTIVE
      observed: ACTIVE
      cause: ""
      fix: ""
"""

from ..module_utils._module import run_room
from ..module_utils._rdma.info_run import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC, required_by={"rails": "network"})


if __name__ == "__main__":
    main()
