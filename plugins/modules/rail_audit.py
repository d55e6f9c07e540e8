#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_audit
short_description: Audit a host in one call, and prove the paths of its rails' packets
version_added: 1.0.0
description:
  - Compares a host with its host plan, by the same code as the modules of the roles in check mode, in one
    process.
  - Proves paths. Queries the kernel for the interface, gateway and table of RoCE's packets, from every rail's address
    to its gateway and to neighbors on the same rail, on the next one and in another zone. Reports each rule and route
    that leads elsewhere, with its creator.
  - Changes nothing. A difference is a deviation in RV(checks), not a failure. RV(errors) lists what the module could
    not check.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._host_plan
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
requirements:
  - pyroute2 >= 0.7.2 on the managed node, for V(network), V(paths) and V(preflight). Where there is none the action
    brings it in the task's temporary folder.
options:
  rdma_mode:
    description: The RDMA namespace mode that pods need. Comes from the host plan when O(plan_dir) is given.
    choices: [shared, exclusive]
    type: str
  checks:
    description:
      - The groups to check. V(network), V(persist), V(link_type), V(mode), V(qos), V(gpudirect) and V(driver) compare
        what the roles set; V(devices) the RDMA devices.
      - V(paths) queries the kernel for routes, V(duplicates) probes each rail for duplicate addresses, V(cabling)
        compares LLDP's data of each cable, V(pings) sends echo requests to gateways and a neighbor.
      - V(counters) detects failures early - counters since the last audit, links, PCIe.
      - V(preflight) checks before the first change for conflicts that would stop a run on this host, and for what the
        host would lose; it needs no RDMA tools.
    type: list
    elements: str
    choices:
      - driver
      - link_type
      - mode
      - network
      - persist
      - paths
      - duplicates
      - cabling
      - qos
      - gpudirect
      - devices
      - counters
      - pings
      - preflight
    default: [link_type, mode, network, persist, paths, duplicates, cabling, qos, gpudirect, devices, counters]
  settings:
    description:
      - The options of the roles' modules, by the module's name; each is checked as that module checks it.
      - Besides C(counters) with C(limits) and C(gbits), C(preflight) with the C(roles) that a run plays and whether it
        keeps files for the next boot (C(persist)), C(cni) with the CNI plugins that a node must have (C(needs)) below
        C(programs), where C(install) is V(auto), and the host C(ports) of Spiderpool by the Helm value that changes
        each.
      - C(ping) takes C(cross_rail_pairs), how many other rails of the neighbor each rail pings, drawn with C(seed);
        C(rails_reachable), whether they are to answer, by default where rails have gateways; C(full_size), whether
        packets of the rail's MTU are sent too, V(true) by default; C(count), the requests to an address; C(timeout),
        the seconds to wait after the last; C(loss_percent), how much may be lost between hosts, V(0) by default.
    type: dict
    default: {}
  neighbors:
    description:
      - Hosts to prove paths to, each with C(host), C(rails) as in O(rails), and C(zone) where it is another zone than
        this host's. By default the next host of the same zone and one of another zone, from O(plan_dir).
    type: list
    elements: dict
  addresses:
    description:
      - Addresses of other hosts by rail, for further path queries. The default is at most 64 addresses per rail of the
        hosts of O(plan_dir). Each host selects a different random sample, by C(seed) of C(ping) in O(settings).
    type: dict
  since:
    description:
      - The fact C(health) of the last audit of this host, which V(counters) compares with. By default what
        O(verify_dir) has of it.
    type: dict
  verify_dir:
    description:
      - The folder of the verification on the controller. With it the host's result is written there as
        M(railops.rdma.verify_result) writes it, and is not returned, so that the controller's memory does not grow with
        the fleet.
    type: path
  roles:
    description:
      - The roles whose state is compared. With it O(checks) is not read - the groups are those of these roles, RDMA
        devices, counters and pings - and with O(verify_dir) what is left out is reported as skipped, with the reason.
    type: list
    elements: str
  devices:
    description: With O(roles), whether to check RDMA devices and counters.
    type: bool
    default: true
  traffic:
    description:
      - With O(roles), V(none) leaves out every group that sends a packet. The module itself sends no RDMA traffic.
    type: str
    choices: [rdma, ping, none]
    default: rdma
  persist:
    description: With O(roles), whether to compare the files for the next boot.
    type: bool
    default: true
seealso:
  - module: railops.rdma.verdict
"""

EXAMPLES = r"""
---
- name: Audit the host, and keep the result for the verdict
  railops.rdma.rail_audit:
    plan_dir: plan/fabric
    verify_dir: verify/fabric
  become: true

- name: Prove the paths of the rails' packets
  railops.rdma.rail_audit:
    plan_dir: plan/fabric
    checks: [paths]
  become: true
"""

RETURN = r"""
checks:
  description: The comparison with the plan.
  returned: without O(verify_dir)
  type: list
  elements: dict
  sample:
    - id: route_path
      rail: rail1
      family: 4
      status: deviation
      planned: ["172.17.0.34 via 172.17.0.1 dev ens1np0 src 172.17.0.2 table 1001"]
      observed: []
      cause: >-
        to 172.17.0.34 (node2 rail1): it leaves by eth0 via 198.51.100.254 instead of ens1np0: rule
        `5000: from 172.17.0.2/32 lookup 77` (made by static) led to
        route `default via 198.51.100.254 dev eth0 table 77` (made by boot)
      fix: "Move that rule behind 10001, or remove it: `ip rule del priority 5000`."
facts:
  description: Other facts of the host.
  returned: without O(verify_dir)
  type: dict
  sample: {macs: {rail1: "02:00:00:00:00:01"}}
errors:
  description: What the module could not check, one sentence each.
  returned: always
  type: list
  elements: str
  sample: []
library_missing:
  description: Whether the module lacked pyroute2. The action brings it then, and runs the module once more.
  returned: where it did
  type: bool
  sample: true
path:
  description: The file that was written.
  returned: with O(verify_dir)
  type: str
  sample: verify/fabric/hosts/node1.json
status:
  description: The status of this host, V(pass), V(deviation) or V(error).
  returned: with O(verify_dir)
  type: str
  sample: pass
"""

from ..module_utils._audit.run import SPEC, run
from ..module_utils._module import run_module


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, SPEC)


if __name__ == "__main__":
    main()
