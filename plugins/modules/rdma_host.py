#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_host
short_description: Load the RDMA kernel modules and give the rails stable names
version_added: 1.0.0
description:
  - Loads the kernel modules that RDMA applications need, now and at every boot, from one owned file of modules-load.d.
  - Gives each rail that the plan knows by its PCI address the interface name that the plan has for it, by one owned
    C(.link) file a rail. The fabric's objects then have one name on every node.
  - Reports problems that no run can repair before it changes anything. Set the namespace mode before, by
    M(railops.rdma.rdma_netns) - an C(ib_core) that is loaded afterwards starts in it.
  - Reports an IPoIB interface that cannot carry the MTU of the plan.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: A problem that no run can repair is a failure; in check mode it is a deviation in RV(checks).
  diff_mode:
    support: full
  idempotent:
    support: full
options:
  plan_dir:
    description: The fabric's plan folder on the controller. The host's rails are read from it.
    type: path
  network:
    description: What kind of network the rails are. O(plan_dir) fills it in.
    type: str
    choices:
      - roce
      - infiniband
    default: roce
  rdma_mode:
    description:
      - The RDMA namespace mode that pods need, V(shared) where they share the node's RDMA devices. O(plan_dir) fills it
        in.
    type: str
    choices: [shared, exclusive]
  rails:
    description: The rails, in the form of the plan's host files. O(plan_dir) fills it in.
    type: list
    elements: dict
    default: []
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
        description: The PCI address of its card. A rail without one keeps the name that it has.
        type: str
      mtu:
        description: The MTU in bytes.
        type: int
  out_of_service:
    description:
      - Rails that are left as they are, in the form of the plan's host files. O(plan_dir) fills it in.
    type: list
    elements: dict
  modules:
    description:
      - The kernel modules. Without it, C(ib_uverbs) and C(rdma_ucm), C(ib_umad) where pods share the node's RDMA device
        (O(rdma_mode=shared)) or the network is InfiniBand, and for InfiniBand C(ib_ipoib) too.
    type: list
    elements: str
  naming:
    description:
      - V(name) renames the interface when the host starts next. V(none) does not.
    type: str
    choices:
      - name
      - none
    default: name
  rdma_prefixes:
    description: The networks of the fabric. Addresses inside of them are no reason to leave an interface its name.
    type: list
    elements: str
  adopt_ports:
    description: Interfaces that may be renamed although they have unmanaged addresses, which the renaming removes.
    type: list
    elements: str
    default: []
  state:
    description: V(absent) removes the owned files. Modules stay loaded until the next boot.
    type: str
    choices:
      - present
      - absent
    default: present
"""

EXAMPLES = r"""
---
- name: Modules and names as the plan has them
  railops.rdma.rdma_host:
    plan_dir: plan/fabric
  become: true

- name: The card in slot 1b is rail 1, whatever the distribution calls it
  railops.rdma.rdma_host:
    rails:
      - name: rail1
        interface: ens1np0
        pci: "0000:1b:00.0"
  become: true

- name: Take everything back
  railops.rdma.rdma_host:
    state: absent
  become: true
"""

RETURN = r"""
before:
  description: The owned files and the loaded modules that the task is about, as they were.
  returned: success
  type: dict
after:
  description: These files, modules and names as they are now, or would be in check mode.
  returned: success
  type: dict
modules:
  description: The kernel modules that are loaded at every boot.
  returned: success
  type: list
  elements: str
  sample: [ib_uverbs, rdma_ucm]
loaded:
  description: The modules that the task loaded, or would load.
  returned: success
  type: list
  elements: str
  sample: [rdma_ucm]
files:
  description: The files that the task wrote or removed, or would.
  returned: success
  type: list
  elements: str
  sample: [/etc/systemd/network/05-railops-rail1.link]
reboot_required:
  description: Whether an interface gets its name only when the host starts again.
  returned: success
  type: bool
  sample: true
reboot_reasons:
  description: Why, one sentence each.
  returned: success
  type: list
  elements: str
  sample: ["the interface at 0000:1b:00.0 is ens27np0 and becomes ens1np0 when the host starts"]
problems:
  description: Problems that the module refuses without check mode, each with C(place), C(problem) and C(fix).
  returned: success
  type: list
  elements: dict
  sample: []
checks:
  description: The comparison with the plan. In check mode, the state before any change.
  returned: success
  type: list
  elements: dict
  sample:
    - id: rdma_name
      rail: rail1
      status: ok
      planned: ens1np0
      observed: ens1np0
      cause: ""
      fix: ""
"""

from ..module_utils._module import run_room
from ..module_utils._rdma.host_run import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()
