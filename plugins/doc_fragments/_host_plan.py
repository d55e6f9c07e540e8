# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This doc fragment is PRIVATE to the collection.

from __future__ import annotations


class ModuleDocFragment:
    """The options of modules that work from a host plan."""

    DOCUMENTATION = r"""
options:
  plan_dir:
    description:
      - The fabric's plan folder on the controller, which holds C(plan.json). The host plan is read from it, and
        refused when it is not of that plan. The options given beside it take precedence.
    type: path
  rails:
    description:
      - All rails of this host, in order, in one call. Comes from the host plan when O(plan_dir) is given.
      - M(railops.rdma.policy_route) and M(railops.rdma.rail_persist) refuse none with C(state=present).
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the rail. By default V(rail) and its index.
        type: str
      index:
        description: The number of the rail, from 1. By default its place in the list.
        type: int
      interface:
        description: The interface, by its name or an alternative name.
        type: str
      pci:
        description: The PCI address of the interface, used when no name is given.
        type: str
      mtu:
        description: The MTU in bytes. Left as it is when not given.
        type: int
      vlan:
        description:
          - ID of the VLAN that the rail's addresses are in, on an interface C(INTERFACE.VLAN) that is made where it is
            missing. V(0), the default, is untagged.
        type: int
      table:
        description: The routing table of the rail. By default 1000 and its index.
        type: int
      rule_priority:
        description: The priority of the rail's rule. By default 10000 and its index.
        type: int
      metric:
        description: The metric of the rail's routes in the main table. By default 100 and its index.
        type: int
      addresses:
        description: The addresses of the rail, at most one per family.
        type: list
        elements: dict
        default: []
        suboptions:
          family:
            description: The address family. The address determines it.
            type: int
            choices: [4, 6]
          address:
            description: The address.
            type: str
            required: true
          subnet:
            description: The network of the address in CIDR notation.
            type: str
            required: true
          gateway:
            description: The switch's address inside the subnet. Without one there is no route beyond the subnet.
            type: str
  out_of_service:
    description:
      - Rails of this host that are left as they are, in the form of O(rails). Comes from the host plan when O(plan_dir)
        is given. C(state=absent) removes them too.
    type: list
    elements: dict
  rdma_prefixes:
    description: The networks of the complete fabric in CIDR notation.
    type: list
    elements: str
  policy:
    description:
      - V(prefixes) puts the RDMA prefixes into the rails' tables, and everything else falls through to main.
      - V(default_route) puts a default route there, and an exclusion rule of priority 2000 sends what is not RDMA to
        main. It needs exactly one RDMA prefix per family.
    type: str
    choices: [prefixes, default_route]
  network:
    description: The kind of fabric.
    type: str
    choices: [roce, infiniband]
  sysctls:
    description: Settings below C(/proc/sys), in slash notation, as interface names may hold dots.
    type: dict
"""
