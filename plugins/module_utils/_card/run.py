# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Link type and SR-IOV of a host's cards: read, plan, write or predict, and report."""

from __future__ import annotations

import typing as t
from dataclasses import asdict

from ansible.module_utils.basic import AnsibleModule

from .._check import deviation
from .._errors import InputError, RdmaError
from .._management_network import read_management_network
from .._module import rails_spec
from .._programs import Machine
from .firmware import LinkTypeHost
from .host import place_rails, read_cards
from .mlxconfig import number
from .model import OTHERS, RAILS, Card, CardOptions, PlacedRail, rails_without_card, select_cards, unselected_cards
from .plan import CardPlan, CardStep, checks, predicted, reboot_reasons

SPEC = {
    # Read by the action plugin, on the controller.
    "plan_dir": {"type": "path"},
    "rails": rails_spec(pci="str"),
    "out_of_service": {"type": "list", "elements": "dict"},
    "rdma_prefixes": {"type": "list", "elements": "str"},
    "cards": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "select": {"type": "str", "choices": ["rails", "others", "pci"], "required": True},
            "pci": {"type": "list", "elements": "str"},
            "link_type": {"type": "str", "choices": ["eth", "ib"]},
            "vfs": {"type": "int"},
        },
        "required_if": [("select", "pci", ["pci"])],
        "required_one_of": [("link_type", "vfs")],
    },
}


def run(module: AnsibleModule, params: dict[str, t.Any], *, check_mode: bool) -> dict[str, t.Any]:
    """Bring the selected cards to their options and describe the changes."""
    machine = Machine(module=module)
    prefixes = params["rdma_prefixes"] or []
    cards = read_cards(machine, lambda: read_management_network(machine), prefixes)
    by_rails = any(item["select"] in (RAILS, OTHERS) for item in params["cards"])
    if by_rails and params["rails"] is None:
        raise RdmaError("The rails are selected, and none are given.", "Set plan_dir (or rails). [cards_missing]")
    rails = tuple(place_rails(machine, params["rails"] or [])) if by_rails else ()
    problems = rails_without_card(rails, cards)
    if problems and not check_mode:
        raise InputError(problems)
    unknown = [
        deviation("card_present", "a card", None, item.problem, item.fix, rail=item.place.partition(" ")[2])
        for item in problems
    ]
    out = {rail.address for rail in place_rails(machine, params["out_of_service"] or [])}
    out -= {address for card in cards for rail in rails if rail.address in card.addresses for address in card.addresses}
    out_of_service = {card.name for card in cards if not out.isdisjoint(card.addresses)}
    selected = select_cards(params["cards"], cards, rails)
    selected = {name: options for name, options in selected.items() if name not in out_of_service}
    host = LinkTypeHost(machine)
    before = list(host.plan(cards, selected))
    if check_mode:
        after = [predicted(plan) for plan in before]
    else:
        after = [host.apply(plan) for plan in before]
        host.remember(after)
    result = {
        "changed": any(plan.was_written for plan in after),
        "cards": [_card(plan) for plan in after],
        "skipped_cards": unselected_cards(cards, selected),
        "notes": list(_notes(cards, rails, selected)),
        "reset_required": any(plan.step in (CardStep.PENDING, CardStep.POWER_CYCLE) for plan in after),
        "reboot_required": bool(reboot_reasons(after)),
        "reboot_reasons": reboot_reasons(after),
        "power_cycle_required": any(plan.power_cycle or plan.step is CardStep.POWER_CYCLE for plan in after),
        "checks": [*checks(before if check_mode else after), *unknown],
        "problems": [asdict(problem) for problem in problems],
        "warnings": [
            f"Card {plan.card.name}: {plan.note} {plan.fix}"
            for plan in after
            if plan.step is CardStep.DONE and plan.fix
        ],
        "before": _shown(before),
        "after": _shown(after),
    }
    if not check_mode:
        _raise_failures(after, result)
    return result


def _raise_failures(plans: list[CardPlan], result: dict[str, t.Any]) -> None:
    failed = [plan for plan in plans if plan.step in (CardStep.FAILED, CardStep.POWER_CYCLE)]
    if not failed:
        return
    lines = "\n".join(f"  - card {plan.card.name}: {plan.note}" for plan in failed)
    cycle = "Switch the host off and on again (a power cycle): a reboot did not help. [power_cycle]"
    fixes = dict.fromkeys(cycle if plan.step is CardStep.POWER_CYCLE else plan.fix for plan in failed)
    raise RdmaError(
        f"{len(failed)} of {len(plans)} selected cards are not as wanted:\n{lines}\n",
        " ".join(fixes),
        **{key: value for key, value in result.items() if key not in ("before", "after")},
    )


def _notes(cards: t.Sequence[Card], rails: t.Sequence[PlacedRail], selected: dict[str, CardOptions]) -> t.Iterator[str]:
    """Yield the rails that are on no card of NVIDIA's, and whether no card is selected."""
    nvidia = {address for card in cards for address in card.addresses}
    if other := [rail.name for rail in rails if rail.address and rail.address not in nvidia]:
        yield f"{', '.join(other)}: on no NVIDIA (Mellanox) card of this host: the firmware is not changed."
    if not selected:
        yield "No card is selected: nothing to do."


def _card(plan: CardPlan) -> dict[str, t.Any]:
    return {
        "card": plan.card.name,
        "model": plan.model,
        "status": plan.step.value,
        "parameters": {
            value.name: {key: getattr(value, key) for key in ("default", "current", "next", "wanted")}
            for value in plan.values
        },
        "note": plan.note,
    }


def _shown(plans: list[CardPlan]) -> dict[str, t.Any]:
    # Numbers, since the words around them are the tool's: ETH(2) after the write is 2 in the prediction.
    return {
        plan.card.name: {value.name: {"current": value.in_force, "next": number(value.next)} for value in plan.values}
        for plan in plans
    }
