#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_link_type
short_description: Set link type and SR-IOV in the firmware of NVIDIA (Mellanox) network cards
version_added: 1.0.0
description:
  - Sets Ethernet or InfiniBand for single ports of a card, and the number of virtual functions, in the card's own
    configuration, by C(mstconfig) (package mstflint) or C(mlxconfig) (MFT), whichever is installed.
  - The rails of the plan decide which cards and which of their ports that is; the other port of a card stays as it is.
  - A value takes effect after a reset of the card or a reboot of the host. The module distinguishes the current value,
    the value of the next start and the default. It reports a pending change and does not repeat it.
  - A value that is still not active after a reboot needs a power cycle. The module then fails, instead of
    requesting reboot after reboot.
  - Never changed is a card that carries the default route, Ansible's connection or storage of the host,
    one with a virtual function in use, one that serves NVSwitches (by its vital product data), and a BlueField in DPU
    mode or one that does not say. A card without a choice of link type is fine when its link layer is the one wanted.
  - The link type stays also where a port is a bond's or bridge's, carries a VLAN or macvlan, or has an address outside
    of the fabric.
  - One card that fails does not stop the others. All failures come together at the end.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: A card that cannot be queried or changed is a failure; in check mode it is a deviation in RV(checks).
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - mstflint or MFT on the managed node, when a card is selected
  - iproute2 on the managed node, when it has cards
options:
  plan_dir:
    description: The fabric's plan folder on the controller. The host's rails are read from it.
    type: path
  rails:
    description: The rails, in the form of the plan's host files. O(plan_dir) fills it in.
    type: list
    elements: dict
    suboptions:
      name:
        description: The name of the rail.
        type: str
        required: true
      interface:
        description: The rail's interface, by which its card is found when there is no PCI address.
        type: str
        required: true
      pci:
        description: The PCI address of the rail's function.
        type: str
  out_of_service:
    description:
      - Rails that are left as they are, in the form of the plan's host files. O(plan_dir) fills it in.
    type: list
    elements: dict
  rdma_prefixes:
    description: The networks of the fabric. Addresses in them are no reason to skip a card.
    type: list
    elements: str
  cards:
    description:
      - The cards and their settings. A selection by address counts more than the one by rails. Two selections of
        one rank that want a port or a card differently are an error.
    type: list
    elements: dict
    required: true
    suboptions:
      select:
        description:
          - Ports that the O(rails) are on (V(rails)), all ports of cards without a rail and without another role on the
            host (V(others)), or those listed in O(cards[].pci).
        type: str
        choices:
          - rails
          - others
          - pci
        required: true
      pci:
        description:
          - PCI addresses. That of a function means its port, V(0000:5a:00.1) the second one; that of a card, without
            the function, means all of its ports. Names change with the link type, addresses do not.
        type: list
        elements: str
      link_type:
        description: The link type of the selected ports. Left as it is when not given.
        type: str
        choices:
          - eth
          - ib
      vfs:
        description:
          - How many virtual functions each port of the card offers, exactly, since the SR-IOV operator reboots a node
            whose firmware has another number than its policies want. V(0) switches SR-IOV off. Left as it is when not
            given.
        type: int
"""

EXAMPLES = r"""
---
- name: RoCE on the rails, InfiniBand for storage, and eight virtual functions on each rail
  railops.rdma.nic_link_type:
    plan_dir: plan/fabric
    cards:
      - select: rails
        link_type: eth
        vfs: 8
      - select: pci
        pci: ["0000:5a:00.0"]
        link_type: ib
  become: true

- name: Show pending values, and change nothing
  railops.rdma.nic_link_type:
    plan_dir: plan/fabric
    cards:
      - select: rails
        link_type: eth
  become: true
  check_mode: true
  register: link_types
"""

RETURN = r"""
before:
  description: What each parameter of the selected cards has in force and for the next start, as it was.
  returned: success
  type: dict
after:
  description: What each parameter has in force and for the next start now, or would have in check mode.
  returned: success
  type: dict
cards:
  description: The selected cards after the task, or predicted in check mode.
  returned: success, and with a failure
  type: list
  elements: dict
  contains:
    card:
      description: Domain, bus and device of the card's PCI address.
      type: str
    model:
      description: The model, as its firmware reports it.
      type: str
    status:
      description:
        - V(done), V(pending) (waits for a reset or a reboot), V(power_cycle) (a reboot did not help), V(skipped),
          V(failed).
      type: str
    parameters:
      description: Each parameter's default, current, next and wanted value; null where the firmware reports none.
      type: dict
    note:
      description: The reason.
      type: str
  sample:
    - card: "0000:1b:00"
      model: MCX75310AAS-NEA_Ax
      status: pending
      parameters:
        LINK_TYPE_P1: {default: IB(1), current: IB(1), next: ETH(2), wanted: 2}
      note: "LINK_TYPE_P1 is IB(1), wanted 2: written, waits for a reset or a reboot"
skipped_cards:
  description: The cards that are not selected.
  returned: success, and with a failure
  type: list
  elements: dict
  contains:
    card:
      description: Domain, bus and device of the card's PCI address.
      type: str
    devices:
      description: Its RDMA devices, or its interfaces.
      type: list
      elements: str
    why:
      description: Its other role, or that it carries no rail.
      type: str
  sample:
    - card: "0000:05:00"
      devices: [mlx5_8]
      why: serves the NVSwitches (VPD SMDL=SW_MNG)
notes:
  description: Rails that are on no card of NVIDIA's, or that no card is selected.
  returned: success
  type: list
  elements: str
  sample:
    - "rail8: on no NVIDIA (Mellanox) card of this host: the firmware is not changed."
reset_required:
  description: Whether a card needs a reset or a reboot. You reset a card manually (docs/guides/link-type.md).
  returned: success
  type: bool
  sample: true
reboot_required:
  description: Whether a card waits and a reboot is expected to help.
  returned: success
  type: bool
  sample: true
reboot_reasons:
  description: Why, one sentence for each card.
  returned: success
  type: list
  elements: str
  sample: ["card 0000:1b:00: LINK_TYPE_P1 is IB(1), wanted 2: written, waits for a reset or a reboot"]
power_cycle_required:
  description: Whether a card needs the host to be switched off and on again.
  returned: success, and with a failure
  type: bool
  sample: false
problems:
  description: Problems that the module refuses without check mode, each with C(place), C(problem) and C(fix).
  returned: success
  type: list
  elements: dict
  sample: []
checks:
  description: Each card against its wish. In check mode, what is observed before any change.
  returned: success, and with a failure
  type: list
  elements: dict
  sample:
    - id: nic_link_type
      rail: null
      status: ok
      planned: LINK_TYPE_P1=2
      observed: LINK_TYPE_P1=ETH(2)
      cause: ""
      fix: ""
      object: "0000:1b:00"
"""

from ..module_utils._card.run import SPEC, run
from ..module_utils._module import run_room


def main() -> None:
    """Read the parameters, run, and report."""
    run_room(run, SPEC)


if __name__ == "__main__":
    main()
