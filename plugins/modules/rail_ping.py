#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rail_ping
short_description: Ask gateways and neighbours of all rails for an echo
version_added: 0.1.0
description:
  - Sends echo requests from every rail's address, bound to the rail's interface, to the rail's gateways and to other
    hosts' addresses on the same rail, all at the same time in one call.
  - Changes nothing. What does not answer is a deviation in RV(checks), not a failure.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
  - railops.rdma._slice
attributes:
  check_mode:
    support: full
  diff_mode:
    support: none
  idempotent:
    support: full
options:
  gateways:
    description: Whether to ask the gateways.
    type: bool
    default: true
  neighbours:
    description:
      - How many other hosts of the plan to ask, taken from O(plan_dir) in the order of their names after this host.
    type: int
    default: 1
  neighbour_hosts:
    description: Hosts to ask, given directly; each has C(rails) as in O(rails). By default read from O(plan_dir).
    type: list
    elements: dict
  full_size:
    description: Whether to ask with packets of the rail's MTU besides, which must not be fragmented.
    type: bool
    default: false
  across:
    description:
      - How many other rails of the neighbours each rail asks besides; which ones is drawn with O(seed), other ones on
        each host. Only a pair whose ends answer on their own rail is judged.
    type: int
    default: 0
  rails_meet:
    description:
      - Whether rails reach each other, which O(across) compares with. By default they are to where they have gateways;
        a pair that does not is a warning then. Nothing is asked on InfiniBand without it.
    type: bool
  seed:
    description: What the draw of O(across) begins with.
    type: int
    default: 0
  count:
    description: How many requests to send to an address at most; the first answer is enough.
    type: int
    default: 10
  timeout:
    description: Seconds to wait after the last request.
    type: float
    default: 1.0
seealso:
  - module: railops.rdma.policy_route
"""

EXAMPLES = r"""
---
- name: Ask the gateways and one neighbour on every rail
  railops.rdma.rail_ping:
    plan_dir: plan/fabric

- name: Ask one gateway without a plan
  railops.rdma.rail_ping:
    rails:
      - interface: ens1np0
        addresses:
          - address: 192.0.2.2
            subnet: 192.0.2.0/27
            gateway: 192.0.2.1
"""

RETURN = r"""
checks:
  description: One entry per address that was asked.
  returned: success
  type: list
  elements: dict
  sample:
    - id: ping_gateway
      rail: rail1
      status: ok
      planned: 192.0.2.1 answers 192.0.2.2 on ens1np0
      observed: answer in 0.2 ms
      cause: ""
      fix: ""
"""

from ..module_utils._module import run_module
from ..module_utils._route.ping import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_module(run, SPEC)


if __name__ == "__main__":
    main()
