#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: rdma_netns
short_description: Set the RDMA network namespace mode, now and for every boot
version_added: 1.0.0
description:
  - Sets the network namespace mode of the kernel's RDMA subsystem. In mode V(shared) every namespace sees every RDMA
    device (macvlan, ipvlan, ipoib); in mode V(exclusive) a device belongs to one namespace (SR-IOV).
  - Persistent in one owned file of modprobe.d, and in the initramfs images that hold ib_core. Live by RDMA netlink,
    where the kernel allows it.
  - The kernel refuses to change the mode while any other network namespace exists, that is, on every node with running
    pods. This is no failure - RV(live=busy) and RV(reboot_required=true) mean that the next boot has the mode.
  - Other files, or the kernel command line, that set the same option are reported. One that would override the owned
    file is a failure, because no reboot would help.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: A host that cannot reach the mode is a failure; in check mode it is a deviation in RV(checks).
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - rdma (iproute2 5.2 or newer) on the managed node, for a live change
options:
  plan_dir:
    description:
      - The fabric's plan folder on the controller. The mode that pods need is read from it, unless O(mode)
        is given.
    type: path
  mode:
    description:
      - The mode. Where neither this option nor the plan sets one (C(fabric_attachment) V(none)), the host keeps its
        own.
    type: str
    choices:
      - shared
      - exclusive
  live:
    description: Whether to change the running kernel too. With V(false) the module only writes the mode for a reboot.
    type: bool
    default: true
  state:
    description:
      - V(absent) removes the owned file and returns the host to the mode without it. That is the kernel's default
        V(shared), unless another file or the kernel command line sets a mode.
    type: str
    choices:
      - present
      - absent
    default: present
"""

EXAMPLES = r"""
---
- name: Give each pod its own RDMA device
  railops.rdma.rdma_netns:
    mode: exclusive
  become: true

- name: Write the mode for the next boot only
  railops.rdma.rdma_netns:
    mode: exclusive
    live: false
  become: true

- name: Take everything back
  railops.rdma.rdma_netns:
    state: absent
  become: true
"""

RETURN = r"""
before:
  description: The earlier modes, active and for the next boot, and the earlier managed file.
  returned: success
  type: dict
after:
  description: These modes and the file as they are now, or would be in check mode.
  returned: success
  type: dict
current:
  description: The active mode after the task, or predicted in check mode. Null when ib_core is not loaded.
  returned: success
  type: str
  sample: shared
persistent:
  description: The mode that the next boot has, or the next load of ib_core.
  returned: success
  type: str
  sample: exclusive
wanted:
  description: The mode wanted.
  returned: success
  type: str
  sample: exclusive
support:
  description:
    - The support of the running kernel - V(loaded), V(not_loaded), V(too_old) (no namespace mode), V(absent) (no RDMA).
  returned: success
  type: str
  sample: loaded
live:
  description:
    - The result on the running kernel - V(set), V(unchanged), V(busy) (other network namespaces exist), V(off) (not
      wanted), or as RV(support) when ib_core is not loaded, too old or absent.
  returned: success
  type: str
  sample: busy
namespaces:
  description: How many network namespaces were seen besides the initial one.
  returned: success
  type: int
  sample: 12
initramfs:
  description: The initramfs images that were rebuilt, or would be in check mode, because they hold ib_core.
  returned: success
  type: list
  elements: str
  sample: [/boot/initrd.img-6.8.0-60-generic]
conflicts:
  description: Places that are not this collection's and set another mode.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: The file; /proc/cmdline means the kernel command line.
      type: str
    line:
      description: The line, from 1; 0 for the kernel command line.
      type: int
    mode:
      description: The mode that it sets.
      type: str
  sample:
    - path: /etc/modprobe.d/ib_core.conf
      line: 1
      mode: shared
reboot_required:
  description: Whether a reboot is needed for the wanted mode to be active, and sufficient.
  returned: success
  type: bool
  sample: true
reboot_reasons:
  description: Why, one sentence each.
  returned: success
  type: list
  elements: str
  sample:
    - >-
      RDMA namespace mode is shared, wanted exclusive: the kernel refuses the change while other network namespaces
      exist (EBUSY); it is written for the next boot
problems:
  description: Problems that the module refuses without check mode, each with C(place), C(problem) and C(fix).
  returned: success, in check mode
  type: list
  elements: dict
  sample: []
checks:
  description: The comparison with the plan. In check mode, the state before any change.
  returned: success
  type: list
  elements: dict
  sample:
    - id: rdma_netns_current
      rail: null
      status: ok
      planned: exclusive
      observed: exclusive
      cause: ""
      fix: ""
"""

from ..module_utils._module import run_room
from ..module_utils._netns.run import SPEC, run


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()
