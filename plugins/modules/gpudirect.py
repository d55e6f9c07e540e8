#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: gpudirect
short_description: Check and prepare GPUDirect RDMA on a host
version_added: 1.0.0
description:
  - Returns how GPU memory reaches the NICs, DMA-BUF or nvidia-peermem, and what is missing when neither works. A host
    without nvidia-peermem can still be as planned.
  - On request relaxes access control (ACS), only on the bridges above NICs and GPUs that share a PCIe switch; never
    in a virtual machine, on a host that passes devices through, or on a Direct-NIC platform, where C(rdma_topo) of
    rdma-core knows what is needed.
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
options:
  mode:
    description: The path to GPU memory. V(auto) prefers DMA-BUF.
    type: str
    choices:
      - auto
      - dmabuf
      - peermem
    default: auto
  acs:
    description:
      - Access control is read and written by C(setpci) of pciutils.
      - V(relax) lets traffic between a GPU and a NIC of one PCIe switch pass through the switch.
      - V(keep) does not change the bridges, and restores the values from before an earlier run.
    type: str
    choices:
      - keep
      - relax
    default: keep
"""

EXAMPLES = r"""
---
- name: Look how GPU memory reaches the NICs
  railops.rdma.gpudirect:
  become: true

- name: Relax access control between GPUs and NICs
  railops.rdma.gpudirect:
    acs: relax
  become: true
"""

RETURN = r"""
before:
  description: The ACS control of each bridge that the task is about, as it was.
  returned: success
  type: dict
after:
  description: The ACS control of each of these bridges as it is now, or would be in check mode.
  returned: success
  type: dict
path:
  description: The available path, C(dmabuf) or C(peermem); null when none is.
  returned: success
  type: str
  sample: dmabuf
changes:
  description: The values that the task wrote, in order.
  returned: success
  type: list
  elements: str
  sample: []
notes:
  description: What the module did not change, and why.
  returned: success
  type: list
  elements: str
  sample: []
checks:
  description: The comparison with the wanted state, before the task.
  returned: success
  type: list
  elements: dict
  sample:
    - id: gpudirect_path
      rail:
      status: ok
      planned: auto
      observed: dmabuf
      cause: ""
      fix: ""
"""

from ..module_utils._gpudirect.run import SPEC, run
from ..module_utils._module import run_room


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()
