#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: policy_route
short_description: Set addresses, policy routes and sysctls of all rails of a host in one transaction
version_added: 1.0.0
description:
  - Brings every rail of a host to its planned state in one call, for both address families. That is the link up with
    its MTU, the address, a routing table of the rail's own, the rule that routes packets from the address by that
    table, the routes to the RDMA prefixes in the main table with a metric per rail, and the sysctls.
  - All or nothing. After any failure the module reverts its changes, and the host is as it was before.
  - With O(confirm_timeout), a rollback timer on the host rolls the change back unless a new connection confirms it.
  - This collection owns entries with routing protocol 143, and entries that the plan or its own files for the next
    boot list. Any other entry that uses a table or a rule priority of these rails, or their metric in the main table on
    a rail's interface, is an error. It stays when the rails are removed. The module changes no other entry.
  - The interfaces of the default route and of Ansible's own connection, and their lower devices, are refused unless
    listed in O(force).
  - InfiniBand interfaces get address and MTU only.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._host_plan
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - pyroute2 >= 0.7.2 on the managed node. Where there is none the action brings it, and keeps it in
    C(/var/lib/railops-rdma/library) until the rails are taken away.
  - iproute2 on the managed node
options:
  state:
    description: Whether to set up the rails, or to remove this collection's entries.
    type: str
    choices: [present, absent]
    default: present
  force:
    description:
      - Interfaces that may be touched although they carry the default route or Ansible's connection, or may have a
        network that overlaps the planned ones.
    type: list
    elements: str
    default: []
  adopt_ports:
    description:
      - Ports whose MTU the module may lower although that lowers the MTU of an unmanaged interface stacked on them,
        such as a VLAN interface or a pod's macvlan. Without this option the module refuses the change.
    type: list
    elements: str
    default: []
  confirm_timeout:
    description:
      - Seconds until a rollback timer on the host reverts the change, unless O(confirm) comes before. V(0) is
        without.
    type: int
    default: 0
  on_conflict:
    description:
      - How check mode handles a conflict with the wanted state. V(report) returns it in RV(checks) instead of failing;
        C(verify) uses this. Outside of check mode a conflict is always a failure.
    type: str
    choices: [fail, report]
    default: fail
  confirm:
    description:
      - With V(new_connection) and O(confirm_timeout), this task closes its connection after the change, opens a new one
        and confirms over that. So the timer does not count what the controller does with other hosts meanwhile.
      - Otherwise the token of a change to keep. Nothing is changed then.
    type: str
  rollback_token:
    description:
      - The token of the host's last confirmed change. The module only restores the earlier state, under a separate
        rollback timer (O(confirm_timeout), 60 seconds by default).
    type: str
  gateways:
    description:
      - How O(confirm) uses the rails' gateways. V(require) pings all of them from the rails' addresses, bound to their
        interfaces, and confirms only if all answer; otherwise the rollback timer rolls the change back.
    type: str
    choices: [ignore, require]
    default: ignore
notes:
  - The settings last until the next reboot; M(railops.rdma.rail_persist) writes them for the host's network manager.
seealso:
  - module: railops.rdma.rail_persist
"""

EXAMPLES = r"""
---
- name: Set up all rails as planned, and roll back in a minute unless a new connection confirms it
  railops.rdma.policy_route:
    plan_dir: plan/fabric
    confirm_timeout: 60
    confirm: new_connection
  become: true

- name: Set up two rails without a plan
  railops.rdma.policy_route:
    rdma_prefixes:
      - 192.0.2.0/24
    rails:
      - interface: ens1np0
        mtu: 4200
        addresses:
          - address: 192.0.2.2
            subnet: 192.0.2.0/27
            gateway: 192.0.2.1
      - interface: ens2np0
        mtu: 4200
        addresses:
          - address: 192.0.2.34
            subnet: 192.0.2.32/27
            gateway: 192.0.2.33
  become: true

- name: Take everything of this collection away again
  railops.rdma.policy_route:
    plan_dir: plan/fabric
    state: absent
  become: true
"""

RETURN = r"""
before:
  description: The managed entries before the change, in the format of C(ip).
  returned: success, without a token in O(confirm)
  type: dict
  sample:
    links: [ens1np0 mtu 1500 up]
    addresses: []
    routes: []
    rules: []
    sysctls: []
after:
  description: The managed entries after the change, in check mode the expected ones.
  returned: success, without a token in O(confirm)
  type: dict
  sample:
    links: [ens1np0 mtu 4200 up]
    addresses: [192.0.2.2/27 dev ens1np0]
    routes:
      - 192.0.2.0/24 via 192.0.2.1 dev ens1np0 src 192.0.2.2 metric 101
      - 192.0.2.0/24 via 192.0.2.1 dev ens1np0 table 1001 src 192.0.2.2
      - 192.0.2.0/27 dev ens1np0 table 1001 scope link src 192.0.2.2
    rules: ["10001: from 192.0.2.2 lookup 1001"]
    sysctls: []
checks:
  description:
    - One entry per rail and thing, as it was found before any change; with a confirmation, also one per gateway.
  returned: success
  type: list
  elements: dict
  sample:
    - id: network_mtu
      rail: rail1
      status: deviation
      planned: 4200
      observed: 1500
      cause: ens1np0 has an MTU of 1500
      fix: Run the playbook railops.rdma.hosts with the tag rail_network.
problems:
  description: Conflicts that the module refuses, each with C(place), C(problem) and C(fix).
  returned: failure, and with O(on_conflict=report) where there is a conflict
  type: list
  elements: dict
  sample: []
library_missing:
  description: Whether the module lacked pyroute2. The action brings it then, and runs the module once more.
  returned: failure
  type: bool
  sample: false
token:
  description: What to give to O(confirm); empty when there is nothing to confirm.
  returned: success, without a token in O(confirm)
  type: str
  sample: 0123456789abcdef
confirmed:
  description: The change was kept.
  returned: after a confirmation
  type: bool
  sample: true
"""

from ..module_utils._module import run_room
from ..module_utils._route.options import SPEC
from ..module_utils._route.run import run


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()
