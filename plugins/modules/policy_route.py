#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: policy_route
short_description: Set addresses, policy routes and sysctls of all rails of a host in one transaction
version_added: 0.1.0
description:
  - Brings every rail of a host to its planned state in one call, for both address families. That is the link up with
    its MTU, the address, a routing table of the rail's own, the rule that sends what comes from the address by that
    table, the routes to the RDMA prefixes in the main table with a metric per rail, and the sysctls.
  - All or nothing. When anything fails, what was done is undone, and the host is as it was before.
  - With O(confirm_timeout), a guard on the host takes the change back unless a second call over a new connection
    confirms it.
  - What is this collection's is told by routing protocol 143, tables 1001 to 1099, rule priorities 10001 to 10099, and
    metrics 101 to 199 of the main table on a rail's interface. A foreign entry inside these ranges is an error;
    everything else is left alone.
  - The interface of the default route and of Ansible's own connection are refused unless listed in O(force).
  - InfiniBand interfaces get address and MTU only.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - pyroute2 >= 0.7.2 on the managed node
options:
  plan_dir:
    description:
      - The fabric's plan folder on the controller, which holds C(plan.json). The host's slice is read from it, and
        refused when it is not of that plan. The options given beside it take precedence.
    type: path
  rails:
    description: The rails of this host. Comes from the slice when O(plan_dir) is given.
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
      table:
        description: The routing table of the rail, 1001 to 1099. By default 1000 and its index.
        type: int
      rule_priority:
        description: The priority of the rail's rule, 10001 to 10099. By default 10000 and its index.
        type: int
      addresses:
        description: The addresses of the rail, at most one per family.
        type: list
        elements: dict
        default: []
        suboptions:
          family:
            description: The address family. The address itself tells it.
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
  rdma_prefixes:
    description: The networks of the whole fabric in CIDR notation.
    type: list
    elements: str
  policy:
    description:
      - V(prefixes) puts the RDMA prefixes into the rails' tables, and everything else falls through to main.
      - V(default_route) puts a default route there, and a guard rule of priority 2000 sends what is not RDMA to main.
        It needs exactly one RDMA prefix per family.
    type: str
    choices: [prefixes, default_route]
  network:
    description: The kind of fabric.
    type: str
    choices: [roce, infiniband]
  sysctls:
    description: Settings below C(/proc/sys), in slash notation, as interface names may hold dots.
    type: dict
  state:
    description: Whether the rails are to be set up, or what is this collection's is to be taken away.
    type: str
    choices: [present, absent]
    default: present
  purge:
    description: Whether entries of this collection that are not wanted any more are removed.
    type: bool
    default: true
  force:
    description:
      - Interfaces that may be touched although they carry the default route or Ansible's connection, or may have a
        network that overlaps the planned ones.
    type: list
    elements: str
    default: []
  confirm_timeout:
    description:
      - Seconds until a guard on the host takes the change back, unless O(confirm) comes before. V(0) is without.
    type: int
    default: 0
  confirm:
    description: The token of a change to keep. Nothing else is done then.
    type: str
notes:
  - The settings last until the next reboot; M(railops.rdma.rail_persist) writes them for the host's network manager.
seealso:
  - module: railops.rdma.rail_persist
"""

EXAMPLES = r"""
---
- name: Set up all rails as planned, and take it back in a minute unless confirmed
  railops.rdma.policy_route:
    plan_dir: plan/fabric
    confirm_timeout: 60
  register: result

- name: Open a new connection
  ansible.builtin.meta: reset_connection

- name: Keep the change
  railops.rdma.policy_route:
    confirm: "{{ result.token }}"
  when: result.token | default('') != ''

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

- name: Take everything of this collection away again
  railops.rdma.policy_route:
    plan_dir: plan/fabric
    state: absent
"""

RETURN = r"""
before:
  description: What is managed, as it was, written as C(ip) writes it.
  returned: success, without O(confirm)
  type: dict
  sample:
    links: [ens1np0 mtu 1500 up]
    addresses: []
    routes: []
    rules: []
    sysctls: []
after:
  description: What is managed, as it is now, or would be in check mode.
  returned: success, without O(confirm)
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
  description: One entry per rail and thing, as it was found before any change.
  returned: success, without O(confirm)
  type: list
  elements: dict
  sample:
    - id: network_mtu
      rail: rail1
      status: deviation
      planned: 4200
      observed: 1500
      cause: ens1np0 has an MTU of 1500
      fix: Run the role railops.rdma.rail_network on this host.
token:
  description: What to give to O(confirm); empty when there is nothing to confirm.
  returned: success, without O(confirm)
  type: str
  sample: 0123456789abcdef
confirmed:
  description: The change was kept.
  returned: with O(confirm)
  type: bool
  sample: true
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule, missing_required_lib

from ansible_collections.railops.rdma.plugins.module_utils._errors import RdmaError
from ansible_collections.railops.rdma.plugins.module_utils._route_guard import arm, change, confirm, pending
from ansible_collections.railops.rdma.plugins.module_utils._route_kernel import (
    PYROUTE2_ERROR,
    PYROUTE2_NEEDED,
    Kernel,
    connection_of,
    pyroute2_problem,
)
from ansible_collections.railops.rdma.plugins.module_utils._route_plan import decide
from ansible_collections.railops.rdma.plugins.module_utils._route_want import Want, parse_want

ADDRESS_SPEC = {
    "family": {"type": "int", "choices": [4, 6]},
    "address": {"type": "str", "required": True},
    "subnet": {"type": "str", "required": True},
    "gateway": {"type": "str"},
}
RAIL_SPEC = {
    "name": {"type": "str"},
    "index": {"type": "int"},
    "interface": {"type": "str"},
    "pci": {"type": "str"},
    "mtu": {"type": "int"},
    "table": {"type": "int"},
    "rule_priority": {"type": "int"},
    "addresses": {"type": "list", "elements": "dict", "default": [], "options": ADDRESS_SPEC},
}
ARGUMENT_SPEC = {
    "plan_dir": {"type": "path"},
    "rails": {"type": "list", "elements": "dict", "options": RAIL_SPEC},
    "rdma_prefixes": {"type": "list", "elements": "str"},
    "policy": {"type": "str", "choices": ["prefixes", "default_route"]},
    "network": {"type": "str", "choices": ["roce", "infiniband"]},
    "sysctls": {"type": "dict"},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "purge": {"type": "bool", "default": True},
    "force": {"type": "list", "elements": "str", "default": []},
    "confirm_timeout": {"type": "int", "default": 0},
    "confirm": {"type": "str"},
}


def run(want: Want, *, check_mode: bool, timeout: int = 0) -> dict[str, t.Any]:
    """Bring the host network to the wanted state and describe what happened.

    :param timeout: seconds until the guard takes the change back; 0 is without a guard.
    """
    token = ""
    with Kernel() as kernel:
        plan = decide(want, kernel.read(want, connection_of(os.environ)))
        waiting = None if check_mode else pending()
        if waiting and not timeout:
            raise RdmaError(
                f"A change of this host's network waits {waiting.seconds_left:.0f} s for its confirmation.",
                f"Confirm it (confirm: {waiting.token}), or wait until it is taken back, and run again.",
                token=waiting.token,
            )
        if timeout and not check_mode and (plan.changed or waiting):
            # What a run that was cut off left unconfirmed is not what was before.
            token = arm(plan.host, waiting.before if waiting else plan.now, plan.target, timeout)
            if waiting:
                confirm(waiting.token)
        if plan.changed and not check_mode:
            try:
                change(kernel, plan.host, plan.now, plan.target)
            except RdmaError:
                if token and not waiting:
                    confirm(token)
                raise
    return {
        "changed": plan.changed,
        "before": plan.before,
        "after": plan.after,
        "checks": list(plan.checks),
        "token": token,
        "diff": plan.diff,
    }


def main() -> None:
    """Read the parameters, run, and report."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    if PYROUTE2_ERROR:
        module.fail_json(msg=missing_required_lib(PYROUTE2_NEEDED), exception=PYROUTE2_ERROR, fix=INSTALL)
    old = pyroute2_problem()
    if old:
        module.fail_json(msg=old, fix=INSTALL)
    try:
        if module.params["confirm"]:
            if not module.check_mode:
                confirm(module.params["confirm"])
            result: dict[str, t.Any] = {"changed": False, "confirmed": not module.check_mode}
        else:
            want = parse_want(module.params)
            result = run(want, check_mode=module.check_mode, timeout=module.params["confirm_timeout"])
    except RdmaError as exc:
        module.fail_json(msg=str(exc), fix=exc.fix, **exc.facts)
    if not module._diff:
        result.pop("diff", None)
    module.exit_json(**result)


INSTALL = "Install python3-pyroute2 on the host; the role railops.rdma.rail_network does it."

if __name__ == "__main__":
    main()
