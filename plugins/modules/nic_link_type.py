#!/usr/bin/python
# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: nic_link_type
short_description: Set link type and SR-IOV in the firmware of NVIDIA (Mellanox) network cards
version_added: 0.1.0
description:
  - Sets Ethernet or InfiniBand for all ports of a card, and the number of virtual functions, in the card's own
    configuration, by C(mstconfig) (package mstflint) or C(mlxconfig) (MFT), whichever is installed.
  - A value counts after a reset of the card or a reboot of the host. What is in force, what the next start brings and
    the default are told apart; a change that already waits is reported and not made again.
  - A value that is still not in force after a reboot needs a power cycle. The module then fails and says so, instead of
    asking for reboot after reboot.
  - The card that carries the default route or Ansible's connection is never changed and never reset. A BlueField in DPU
    mode is left alone. A card without a choice of link type is fine when its link layer is the one wanted.
  - One card that fails does not stop the others. All failures come together at the end.
author:
  - railops.rdma contributors (@railops)
extends_documentation_fragment:
  - railops.rdma._attributes
attributes:
  check_mode:
    support: full
    details: A card that cannot be asked or changed is a failure; in check mode it is a deviation in RV(checks).
  diff_mode:
    support: full
  idempotent:
    support: full
requirements:
  - mstflint or MFT on the managed node, when a card is selected
options:
  cards:
    description:
      - Which cards, and what they shall be. A selection by address counts more than one by place, and that more than
        V(all). Two selections of one rank that want a card differently are an error.
    type: list
    elements: dict
    required: true
    suboptions:
      select:
        description:
          - V(all) cards; those that share a PCIe switch with a GPU (V(gpu_affine)); the V(others); or those listed in
            O(cards[].pci).
        type: str
        choices:
          - all
          - gpu_affine
          - others
          - pci
        required: true
      pci:
        description: The PCI addresses of the cards, of any function of each. Names change with the link type.
        type: list
        elements: str
      link_type:
        description: The link type of all ports of the card. Left as it is when not given.
        type: str
        choices:
          - eth
          - ib
      vfs:
        description:
          - How many virtual functions a port offers at least. V(0) switches SR-IOV off. Left as it is when not given.
        type: int
  reset:
    description:
      - Whether to reset the firmware of cards whose values wait, so that they count without a reboot.
      - A reset takes down every function of the card. Do it on drained nodes only. A card with virtual functions in
        use is not reset, nor one whose firmware does not offer the level (driver restart and PCI reset).
    type: bool
    default: false
"""

EXAMPLES = r"""
---
- name: RoCE on the GPU rails, InfiniBand for storage, and room for eight virtual functions on each rail
  railops.rdma.nic_link_type:
    cards:
      - select: gpu_affine
        link_type: eth
        vfs: 8
      - select: pci
        pci: ["0000:5a:00.0"]
        link_type: ib

- name: See what is pending, and change nothing
  railops.rdma.nic_link_type:
    cards:
      - select: all
        link_type: eth
  check_mode: true
  register: link_types
"""

RETURN = r"""
before:
  description: What each parameter of the selected cards has in force and for the next start, as it was.
  returned: success
  type: dict
after:
  description: The same, as it is now, or would be in check mode.
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
      description: The model, as its firmware says.
      type: str
    status:
      description:
        - V(done), V(pending) (waits for a reset or a reboot), V(power_cycle) (a reboot did not help), V(skipped),
          V(failed).
      type: str
    parameters:
      description: Each parameter with its default, current, next and wanted value; null where the firmware tells none.
      type: dict
    note:
      description: Why it is so.
      type: str
    was_reset:
      description: Whether the card was reset, or would be in check mode.
      type: bool
  sample:
    - card: "0000:1b:00"
      model: MCX75310AAS-NEA_Ax
      status: pending
      parameters:
        LINK_TYPE_P1: {default: IB(1), current: IB(1), next: ETH(2), wanted: 2}
      note: "LINK_TYPE_P1 is IB(1), wanted 2: written, waits for a reset or a reboot"
      was_reset: false
notes:
  description: What else is worth knowing, for example that no card is near a GPU.
  returned: success
  type: list
  elements: str
  sample: []
reset_required:
  description: Whether a card waits for a reset or a reboot.
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
checks:
  description: Each card against its wish. In check mode, what is observed before any change.
  returned: success, and with a failure
  type: list
  elements: dict
  sample:
    - id: nic_link_type.0000:1b:00
      rail: null
      status: ok
      planned: LINK_TYPE_P1=2
      observed: LINK_TYPE_P1=ETH(2)
      cause: null
      fix: null
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils._card.firmware import LinkTypeHost
from ..module_utils._card.host import boot_id, read_cards
from ..module_utils._card.mlxtool import MlxTool
from ..module_utils._card.plan import CardPlan, Selection, Step, checks, choose, reboot_reasons
from ..module_utils._errors import RdmaError
from ..module_utils._files import HostFiles, Sysfs

ROOT = "/"
ARGUMENT_SPEC = {
    "cards": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "select": {"type": "str", "choices": ["all", "gpu_affine", "others", "pci"], "required": True},
            "pci": {"type": "list", "elements": "str"},
            "link_type": {"type": "str", "choices": ["eth", "ib"]},
            "vfs": {"type": "int"},
        },
        "required_if": [("select", "pci", ["pci"])],
        "required_one_of": [("link_type", "vfs")],
    },
    "reset": {"type": "bool", "default": False},
}


def run(module: t.Any, *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the selected cards to what they shall be and describe what happened."""
    sysfs = Sysfs(ROOT)
    selections = [
        Selection(item["select"], tuple(item["pci"] or ()), item["link_type"], item["vfs"])
        for item in module.params["cards"]
    ]
    cards, has_gpu = read_cards(sysfs, lambda argv: _iproute(module, argv))
    wishes = choose(selections, cards)
    tool = MlxTool(module.get_bin_path, module.run_command)
    host = LinkTypeHost(HostFiles(ROOT, module.atomic_move), tool, boot_id(sysfs))
    before = host.plan(cards, wishes)
    reset = module.params["reset"]
    if check_mode:
        after = [host.predict(plan, reset=reset) for plan in before]
    else:
        after = [host.apply(plan, reset=reset) for plan in before]
        host.remember(after)
    result = {
        "changed": any(plan.was_written or plan.was_reset for plan in after),
        "cards": [_card(plan) for plan in after],
        "notes": _notes(selections, wishes, has_gpu, any(card.gpu_affine for card in cards)),
        "reset_required": any(plan.step in (Step.PENDING, Step.POWER_CYCLE) for plan in after),
        "reboot_required": bool(reboot_reasons(after)),
        "reboot_reasons": reboot_reasons(after),
        "power_cycle_required": any(plan.power_cycle or plan.step is Step.POWER_CYCLE for plan in after),
        "checks": checks(before if check_mode else after),
        "diff": {"before": _shown(before), "after": _shown(after)},
    }
    if not check_mode:
        _raise_failures(after, result)
    return result


def _iproute(module: t.Any, argv: list[str]) -> tuple[int, str, str]:
    tool = module.get_bin_path("ip")
    if not tool:
        raise RdmaError(
            "This host has no program `ip`: which card carries its own network cannot be told.", "Install iproute2."
        )
    return t.cast("tuple[int, str, str]", module.run_command([tool, *argv[1:]]))


def _raise_failures(plans: list[CardPlan], result: dict[str, t.Any]) -> None:
    failed = [plan for plan in plans if plan.step in (Step.FAILED, Step.POWER_CYCLE)]
    if not failed:
        return
    lines = "\n".join(f"  - card {plan.card.name}: {plan.note}" for plan in failed)
    fixes = list(
        dict.fromkeys(
            "Switch the host off and on again (a power cycle): a reboot did not help and is not asked for again."
            if plan.step is Step.POWER_CYCLE
            else plan.fix
            for plan in failed
        )
    )
    raise RdmaError(
        f"{len(failed)} of {len(plans)} selected cards are not as wanted:\n{lines}\n",
        " ".join(fixes),
        **{key: value for key, value in result.items() if key != "diff"},
    )


def _notes(selections: list[Selection], wishes: dict[str, t.Any], has_gpu: bool, near: bool) -> list[str]:
    notes = []
    if any(item.select in ("gpu_affine", "others") for item in selections) and not near:
        why = "No card shares a PCIe switch with a GPU" if has_gpu else "There is no GPU on this host"
        notes.append(f"{why}: gpu_affine selects no card, and others selects all.")
    if not wishes:
        notes.append("No card is selected: nothing to do.")
    return notes


def _card(plan: CardPlan) -> dict[str, t.Any]:
    return {
        "card": plan.card.name,
        "model": plan.model,
        "status": plan.step.value,
        "parameters": {
            value.name: {
                "default": value.default,
                "current": value.current,
                "next": value.next,
                "wanted": value.wanted,
            }
            for value in plan.values
        },
        "note": plan.note,
        "was_reset": plan.was_reset,
    }


def _shown(plans: list[CardPlan]) -> dict[str, t.Any]:
    # Numbers, since the words around them are the tool's: ETH(2) after the write is 2 in the prediction.
    return {
        plan.card.name: {value.name: {"current": value.in_force, "next": value.next_number} for value in plan.values}
        for plan in plans
    }


def main() -> None:
    """Read the parameters, run, and report."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module, check_mode=module.check_mode)
    except RdmaError as exc:
        module.fail_json(msg=str(exc), fix=exc.fix, **exc.facts)
    result.update(result["diff"])
    if not module._diff:
        del result["diff"]
    module.exit_json(**result)


if __name__ == "__main__":
    main()
