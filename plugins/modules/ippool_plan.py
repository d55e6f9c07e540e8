#!/usr/bin/python

# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: ippool_plan
short_description: Plan the addresses of a multi-rail RDMA fabric
version_added: 1.0.0
description:
  - Turns the declaration of a fabric into a plan, a folder with every host's addresses, Spiderpool's objects, the
    switches' prefixes and a report. It touches no host and no cluster.
  - Every address is arithmetic on the declaration and on a node's slot. The slots are kept in C(plan.json), the
    lock file, so that growth, removal, the order of the inventory and renamed groups renumber no node.
  - All input is checked before anything is written, and all problems are reported at once, each with its place and
    its fix.
  - Runs on the controller, whatever host the task names. It plans all hosts of the inventory group O(group), never
    only the play's hosts, so that C(--limit) cannot retire anyone. An option C(NAME) that is not set comes from the
    variable C(fabric_NAME).
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  name:
    description: Name of the fabric, a DNS-1123 label. It names the plan's folder and every cluster object.
    type: str
    default: fabric
  group:
    description: The inventory group whose hosts are the nodes.
    type: str
    default: gpu_nodes
  mode:
    description:
      - V(exclusive) gives each node and rail a subnet of its own. V(shared) gives each rail one subnet. V(flat),
        for InfiniBand, has one subnet with disjoint ranges for the rails.
      - Required, but for InfiniBand without addresses.
    type: str
    choices: [shared, exclusive, flat]
  network:
    description: The kind of network.
    type: str
    choices: [roce, infiniband]
    default: roce
  attachment:
    description:
      - How pods get to the rails. With O(network=roce) one of V(macvlan) (default), V(ipvlan) and V(sriov); with
        O(network=infiniband) one of V(ib-sriov) (default) and V(ipoib).
      - V(none) is for hosts only. The plan has no files for a cluster, subnets may be links (O(node_prefix) 31 and
        127), and hosts keep their RDMA namespace mode.
    type: str
    choices: [macvlan, ipvlan, sriov, ib-sriov, ipoib, none]
  supernets:
    description:
      - Networks in CIDR form that the rails' networks are cut from, at most one per family. Two are dual stack.
      - Empty with O(network=infiniband) and O(attachment=ib-sriov) or V(none) means LID only, without addresses and
        pools.
    type: list
    elements: str
    default: []
  rails:
    description: The rails, in order.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: DNS-1123 label; by default V(rail1) and so on, with leading zeros above nine rails.
        type: str
      interface:
        description: The rail's interface on every node without its own value.
        type: str
        required: true
      subnets:
        description:
          - Explicit networks instead of ones cut from O(supernets), at most one per family. With O(mode=shared) the
            rail's subnet, with O(mode=exclusive) what holds the subnets of all its nodes. Not with several zones.
        type: list
        elements: str
      gpu:
        description: Number of the GPU that the rail serves; for the report.
        type: int
      resource:
        description: >-
          Resource name without its prefix; by default made of the names of fabric and rail. Without virtual functions
          several rails can share one resource, of which a pod requests 1.
        type: str
      pci:
        description: PCI address of the NIC on every node without its own value.
        type: str
      vlan:
        description: The rail's VLAN, instead of O(vlan).
        type: int
      device:
        description:
          - Name of the NIC's RDMA device on every node, such as V(mlx5_0), for the environment of NCCL and UCX.
        type: str
  max_nodes:
    description:
      - Slots per zone from day one, for all the nodes that will come. Subnets can never be changed in Spiderpool, so
        it can be raised within limits only (docs/concepts/slots.md).
      - Required unless every zone has its own.
    type: int
  rail_prefix:
    description:
      - Length of a rail's subnet with O(mode=shared), a number for IPv4 or C({ipv4, ipv6}). Defaults to 24 and 64.
    type: raw
  node_prefix:
    description:
      - Length of the subnet of a node and rail with O(mode=exclusive), a number for IPv4 or C({ipv4, ipv6}).
        Defaults to 27 and 64.
    type: raw
  subnet_offset:
    description: Number of the first rail block inside the supernet.
    type: int
    default: 0
  gateway:
    description:
      - The switch's address in each subnet. V(first), V(last), V(none), or an offset from the network address;
        negative offsets count from the end, where -1 is the last address and so no host address.
      - One for both families, or C({ipv4, ipv6}). In a link (/31, /127) V(first) is the even and V(last) the odd
        address, and the host has the other one.
    type: raw
    default: first
  host_addresses:
    description: With O(mode=shared) and O(mode=flat), nodes at the start or at the end of the free addresses.
    type: str
    choices: [start, end]
    default: start
  pods_per_node:
    description:
      - Most pod addresses per node and rail; with O(mode=shared) and O(mode=flat) a rail's pool has this times
        O(max_nodes).
      - By default all that are free; IPv6 beside IPv4 has as many as IPv4, and 28 without it.
    type: int
  reserved:
    description: Addresses, ranges C(a-b) and networks that no node and no pod may get.
    type: list
    elements: str
    default: []
  reserved_per_subnet:
    description:
      - How many addresses of each subnet no node and no pod may get, counted from its C(first) and its C(last) usable
        address. Pairs of leaves (MLAG) use them for their own addresses beside the gateway.
    type: dict
    suboptions:
      first:
        description: Number of addresses from the first one on.
        type: int
      last:
        description: Number of addresses up to the last one.
        type: int
  existing_networks:
    description: Existing networks (pods, services, nodes, storage). The planner rejects any overlap.
    type: list
    elements: str
    default: []
  existing_plans:
    description: Paths of other clusters' C(plan.json); any overlap is refused.
    type: list
    elements: str
    default: []
  zones:
    description: Scalable units. A node is in exactly one.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: DNS-1123 label.
        type: str
        required: true
      group:
        description: The inventory group of its nodes; by default the zone's name.
        type: str
      supernets:
        description: Its networks, at most one per family; by default O(supernets).
        type: list
        elements: str
      max_nodes:
        description: Its slots; by default O(max_nodes).
        type: int
      leaves:
        description:
          - Names of its leaf switches as LLDP reports them, or patterns such as V(su1-leaf1*); one per rail, or one for
            all.
        type: list
        elements: str
  leaves:
    description: Names of the leaf switches of a fabric without O(zones), as in O(zones[].leaves).
    type: list
    elements: str
    default: []
  policy:
    description:
      - V(prefixes) has the rails' routing tables lead to the RDMA prefixes only. V(default_route) is the guides'
        way, a default route in each table and an exclusion rule, and needs exactly one RDMA prefix per family.
    type: str
    choices: [prefixes, default_route]
    default: prefixes
  table_base:
    description:
      - The rails' routing tables on each host come after this number, 1001 for the first rail. Only the numbers of the
        rails are claimed, up to the next multiple of 8.
      - Refused where they include the kernel's tables 253 to 255 or Spiderpool's 500.
    type: int
    default: 1000
  rule_base:
    description:
      - The priorities of the rails' rules come after this number, in the same way. Refused where they include
        Spiderpool's 1000, the exclusion rule's 2000 or the kernel's 32766.
    type: int
    default: 10000
  metric_base:
    description: The metrics of the rails' routes in the main table come after this number, in the same way.
    type: int
    default: 100
  neighbor_tables:
    description:
      - Whether hosts get neighbor tables that hold the other hosts on all rails, now and for the next boot, where these
        are more than 512 (C(gc_thresh1) to C(gc_thresh3) below C(net/ipv4/neigh/default)). Without it the plan only
        warns. A larger live value stays.
    type: bool
    default: false
  mtu:
    description:
      - MTU of the rails in bytes. Defaults to 4200 with O(network=roce) and to 2044 with O(network=infiniband).
    type: int
  vfs:
    description: Virtual functions per NIC, for the attachments V(sriov) and V(ib-sriov).
    type: int
    default: 8
  hca_max:
    description: Pods that can share a device, for the attachments without virtual functions.
    type: int
    default: 100
  vlan:
    description:
      - VLAN of the rails; 0 is untagged. Host, pods and gateway are in it. The host's address is on an interface
        C(INTERFACE.VLAN), whose name must fit into 15 characters. RoCE only.
    type: int
    default: 0
  namespace:
    description: Kubernetes namespace of the SpiderMultusConfigs.
    type: str
    default: spiderpool
  resource_prefix:
    description: Prefix of the device plugins' resource names.
    type: str
    default: spidernet.io
  inject:
    description: Pod resource injection, the annotation's C(key) and C(value); the value defaults to O(name).
    type: dict
    suboptions:
      key:
        description: The annotation.
        type: str
        choices: [cni.spidernet.io/rdma-resource-inject, cni.spidernet.io/network-resource-inject]
      value:
        description: A label value.
        type: str
  pod_default_rail:
    description:
      - The rail that is the default network of job pods in C(workload/), instead of the cluster's network. Such a pod
        has only the addresses of the rails, and C(eth0) is this rail. Spiderpool only, without O(inject).
    type: str
  ipam:
    description:
      - The IPAM backend of pods. V(nv-ipam) is that of NVIDIA's network operator; it supports O(mode=exclusive) and
        Ethernet only, and one pool for each rail lists all nodes.
    type: str
    choices: [spiderpool, nv-ipam]
    default: spiderpool
  lossless:
    description:
      - The settings of the site's switches for lossless RoCE. The role lossless_roce sets it on the hosts, and the
        environment of NCCL and UCX gets its traffic class from it; without it none is written.
    type: dict
    suboptions:
      priority:
        description: The priority of RoCE traffic, 0 to 7.
        type: int
        required: true
      dscp:
        description: The DSCP of RoCE traffic, 0 to 63.
        type: int
        required: true
      cnp:
        description: The DSCP of congestion notifications, 0 to 63.
        type: int
        default: 48
  rails_reachable:
    description:
      - Whether the NIC of one rail reaches those of other rails, for NCCL and UCX. By default it does where the rails
        have a gateway; for InfiniBand there is no default.
    type: bool
  retire:
    description:
      - Node names whose slots stay empty. A node that vanished from the inventory without being named here is an
        error.
    type: list
    elements: str
    default: []
  release:
    description: Names of retired nodes whose slots may be given to other nodes.
    type: list
    elements: str
    default: []
  out_of_service:
    description:
      - Rails and hosts that wait for a repair, by inventory name. C(rails) is a list of rails, or V(all);
        C(reason) is a text for people, such as a ticket; C(taint=true) keeps new pods off the node (NoSchedule).
      - Slots and addresses stay reserved. Roles leave these rails as they are, tests and the gate leave them out, and
        the verdict shows the reason. Playbooks do not connect to a host with V(all).
    type: dict
    default: {}
  rename:
    description:
      - New names of nodes by their old ones. Slots and addresses stay; only names of objects change.
      - An entry that is already applied has no effect, and may stay until that plan is applied to the cluster.
    type: dict
    default: {}
  allow_renumber:
    description:
      - Allow a change that gives nodes other addresses. Without it such a change is refused with the list of them.
    type: bool
    default: false
  accept_lock:
    description: Take a C(plan.json) whose digest does not match, after a merge that you have checked.
    type: bool
    default: false
  plan_locked:
    description:
      - Whether to fail when the plan would change, and report whether numbers change or only files; for pull requests.
        The playbook C(railops.rdma.site) sets it where a C(plan.json) exists, so that only C(railops.rdma.plan)
        allocates slots.
    type: bool
    default: false
  plan_from_cluster:
    description:
      - Start from the copy of C(plan.json) that the playbook C(railops.rdma.cluster) keeps in the cluster (ConfigMap
        C(railops-<fabric>-lock) in O(namespace)), where the file was lost or the checkout is older. Every node keeps
        the slot that it has there.
      - Refused where the plan that is here knows nodes or slots that the copy does not have.
    type: bool
    default: false
  plan_dir:
    description: Parent of the plan's folder, relative to the working directory.
    type: path
    default: plan
seealso:
  - module: railops.rdma.policy_route
author:
  - railops.rdma contributors (@railops)
"""

EXAMPLES = r"""
---
- name: Plan the fabric of the group gpu_nodes
  railops.rdma.ippool_plan:
    mode: exclusive
    supernets: [172.17.0.0/16]
    max_nodes: 8
    rails:
      - interface: ens1np0
      - interface: ens2np0

- name: Fail when the committed plan differs from the inventory
  railops.rdma.ippool_plan:
    mode: exclusive
    supernets: [172.17.0.0/16]
    max_nodes: 8
    rails:
      - interface: ens1np0
    plan_locked: true
  check_mode: true
"""

RETURN = r"""
checks:
  description: In check mode one entry, whether the plan that is there is the one that the inventory gives.
  returned: success
  type: list
  elements: dict
  sample:
    - id: plan_inventory
      rail: null
      status: ok
      planned: the plan that the inventory gives
      observed: the same plan
      cause: ""
      fix: ""
plan_dir:
  description: The folder to read the plan from.
  returned: success
  type: str
  sample: plan/fabric
digest:
  description: The plan's digest, which C(plan.json) has too.
  returned: success
  type: str
  sample: b75900b18f09651f8b722413d60d37c53caa603bb72a5af297685a792c457aa7
summary:
  description: The plan and the run's changes, as data.
  returned: success
  type: dict
  contains:
    text:
      description: The plan and the run's changes, in sentences.
      type: list
      elements: str
      sample: ["Fabric fabric: 8 nodes, 8 rails, exclusive, roce by macvlan."]
    added:
      description: Nodes that got a slot.
      type: list
      elements: str
      sample: [node9]
    retired:
      description: Nodes whose slots were retired.
      type: list
      elements: str
      sample: []
    released:
      description: Nodes whose slots were released.
      type: list
      elements: str
      sample: []
    renamed:
      description: Nodes that got another name, as old and new.
      type: list
      elements: str
      sample: [node1 to gpu-a01]
    moved:
      description: The renumbered nodes, with old and new slot.
      type: list
      elements: str
      sample: []
  sample:
    fabric: fabric
    nodes: 8
    rails: 8
    pools: 64
"""

# The work is done by the action plugin of this name, on the controller.
