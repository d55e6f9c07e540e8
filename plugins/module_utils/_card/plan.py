# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Decides, card by card, what of its firmware configuration is to be written and what that takes to count.

A value is there three times: the default, what is in force (current), what the next start brings (next). Only the
last one can be written. So: next differs -> write; next is right and current is not -> reset or reboot; both are
right -> done; still not in force after a reboot -> the card stayed powered, and only a power cycle helps.
"""

from __future__ import annotations

import enum
import typing as t
from dataclasses import dataclass, replace

from .._check import Check, by_role, compared, skipped, warning
from .._errors import RdmaError
from .mlxconfig import Configuration, Parameter, number
from .model import LINK_TYPES, Card, CardOptions

LINK_TYPE = "LINK_TYPE_P"
"""One parameter a port, numbered from 1."""
SRIOV, VFS, OWN_VFS = "SRIOV_EN", "NUM_OF_VFS", "PF_NUM_OF_VF_VALID"


@dataclass(frozen=True)
class Marker:
    """The values written to a card, and the host's boot at that time, to detect a reboot without effect."""

    boot: str
    values: dict[str, int]
    power_cycle: bool = False


class CardStep(enum.Enum):
    """The changes that one card needs."""

    DONE = "done"
    WRITE = "write"
    PENDING = "pending"
    POWER_CYCLE = "power_cycle"
    SKIPPED = "skipped"
    FAILED = "failed"


@dataclass(frozen=True)
class Value(Parameter):
    """One parameter of one card, compared with its options."""

    wanted: int = 0
    in_force: int | None = None  # the current value, or what the kernel shows where the firmware has none

    @property
    def written(self) -> bool:
        """Whether the next start has the desired value."""
        return number(self.next) == self.wanted

    @property
    def active(self) -> bool:
        """Whether the desired value is active."""
        return self.in_force == self.wanted


@dataclass(frozen=True)
class CardPlan:
    """The result of one card."""

    card: Card
    options: CardOptions
    step: CardStep
    values: tuple[Value, ...] = ()
    model: str = ""
    note: str = ""
    fix: str = ""
    was_written: bool = False
    power_cycle: bool = False

    @property
    def writes(self) -> dict[str, int]:
        """The values to write, all in one call."""
        if self.step is not CardStep.WRITE:
            return {}
        return {value.name: value.wanted for value in self.values if not value.written}

    @property
    def desired_values(self) -> dict[str, int]:
        """All desired values."""
        return {value.name: value.wanted for value in self.values}

    @property
    def waits(self) -> bool:
        """Whether something is written, or would be, and not in force."""
        return self.step in (CardStep.WRITE, CardStep.PENDING, CardStep.POWER_CYCLE)


def values_of(card: Card, options: CardOptions, configuration: Configuration) -> tuple[Value, ...]:
    """Return the parameters of the options that this card has."""
    desired = {f"{LINK_TYPE}{port}": LINK_TYPES[link_type] for port, link_type in options.links}
    if options.vfs is not None:
        desired[SRIOV] = int(options.vfs > 0)
        if options.vfs > 0:
            desired[VFS] = options.vfs
    have = [configuration.parameters[name] for name in desired if name in configuration.parameters]
    return tuple(Value(**vars(item), wanted=desired[item.name], in_force=_in_force(card, item)) for item in have)


def _in_force(card: Card, parameter: Parameter) -> int | None:
    if (current := number(parameter.current)) is not None:
        return current
    # Firmware that has no current values: the kernel shows what came up.
    if parameter.name.startswith(LINK_TYPE):
        return LINK_TYPES.get(card.layer(int(parameter.name[len(LINK_TYPE) :])) or "")
    return int(card.total_vfs > 0) if parameter.name == SRIOV else card.total_vfs


def decide(card: Card, options: CardOptions, config: Configuration, marker: Marker | None, boot: str) -> CardPlan:
    """Return what one card needs.

    :param marker: what was written to this card before, when it was not in force yet.
    :param boot: this boot's identifier (/proc/sys/kernel/random/boot_id).
    """
    model = config.name or config.device_type
    plan = CardPlan(card, options, CardStep.DONE, values_of(card, options, config), model)
    if config.dpu:
        note = "BlueField in DPU mode: its ports belong to its own cores, so it is skipped"
        return replace(plan, step=CardStep.SKIPPED, note=note)
    if card.bluefield and not config.reports_port_owner:
        note = "a BlueField that does not report whether its ports belong to its own cores: skipped"
        return replace(plan, step=CardStep.SKIPPED, note=note)
    for note, fix in _troubles(plan, config):
        return replace(plan, step=CardStep.FAILED, note=note, fix=fix)
    if all(value.written and value.active for value in plan.values):
        nothing = not plan.values and options.vfs is None
        return replace(plan, note="has a fixed link type, which is the wanted one") if nothing else plan
    if any(not value.written for value in plan.values):
        return replace(plan, step=CardStep.WRITE)
    if marker is not None and marker.values == plan.desired_values:
        if marker.boot != boot:
            return replace(plan, step=CardStep.POWER_CYCLE, note=not_in_force(plan, "the host was rebooted since"))
        if marker.power_cycle:
            note = not_in_force(plan, "the tool requested a power cycle")
            return replace(plan, step=CardStep.PENDING, power_cycle=True, note=note)
    return replace(plan, step=CardStep.PENDING, note=not_in_force(plan, "waits for a reset or a reboot"))


def without_tool(card: Card, options: CardOptions, problem: RdmaError) -> CardPlan:
    """Return the plan of a card that could not be queried: done when the kernel shows the options, else failed."""
    link_good = all(card.layer(port) == link_type for port, link_type in options.links)
    vfs_good = options.vfs is None or card.total_vfs == options.vfs
    if link_good and vfs_good:
        if problem.facts.get("kind") == "no_tool":
            return CardPlan(card, options, CardStep.DONE, note="as the kernel shows it; no tool to query the next boot")
        note = f"as the kernel shows it, and the settings of the next boot cannot be queried: {problem.problem}"
        return CardPlan(card, options, CardStep.DONE, note=note, fix=problem.fix)
    return CardPlan(card, options, CardStep.FAILED, note=problem.problem, fix=problem.fix)


def not_in_force(plan: CardPlan, why: str) -> str:
    """Return which values are not in force yet, and why."""
    return f"{_differing(plan)}: {why}"


def _differing(plan: CardPlan) -> str:
    """Return the values that are not in force, or will not be after the next start."""
    return ", ".join(
        f"{value.name} is {value.current or value.in_force}, wanted {value.wanted}"
        if not value.active
        else f"{value.name} will be {value.next}, wanted {value.wanted}"
        for value in plan.values
        if not value.active or not value.written
    )


def _troubles(plan: CardPlan, configuration: Configuration) -> t.Iterator[tuple[str, str]]:
    """Yield why a card cannot have its options, with the fix: the first one counts."""
    card, options, have = plan.card, plan.options, configuration.parameters
    fixed = [port for port, _type in options.links if f"{LINK_TYPE}{port}" not in have]
    if wrong := [port for port, link_type in options.links if port in fixed and card.layer(port) != link_type]:
        now = " and ".join(sorted({card.layer(port) or "unknown (no driver is bound)" for port in wrong}))
        note = f"the card has no link type to choose and its link layer is {now}, not {dict(options.links)[wrong[0]]}"
        yield note, "Remove the card from the selection, or set the link type that it has."
    if options.vfs and VFS not in have:
        fix = "Update its firmware, or leave vfs out for this card."
        yield "the card's firmware has no SR-IOV configuration", fix
    if options.vfs and OWN_VFS in have and number(have[OWN_VFS].next) == 1:
        note = f"{OWN_VFS} is {have[OWN_VFS].next}, so each function has a number of its own and {VFS} is not used"
        yield note, f"Set {OWN_VFS}=0 on the card manually: neither this module nor the SR-IOV operator knows it."
    if locked := [value.name for value in plan.values if not value.written and value.read_only]:
        fix = "Unlock it (zero-trust or restricted host mode) from the BMC or the DPU, then run again."
        yield f"{', '.join(locked)} is read-only on this card", fix
    wrong_values = [value.name for value in plan.values if not (value.written and value.active)]
    turned = any(name.startswith(LINK_TYPE) for name in wrong_values)
    if wrong_values and (role := card.role or (card.standing if turned else None)):
        note = f"{role}, so it is not changed, but it is not as wanted: {_differing(plan)}"
        yield (
            note,
            "Free it first (drain the node of pods and machines, unmount, remove other tools' links and addresses) or"
            " change it from the console.",
        )


def predicted(plan: CardPlan) -> CardPlan:
    """Return a card's plan as it looks after the write, when all goes well."""
    if not plan.waits:
        return plan
    values = tuple(replace(value, next=value.next if value.written else str(value.wanted)) for value in plan.values)
    step = plan.step if plan.step is CardStep.POWER_CYCLE else CardStep.PENDING
    after = replace(plan, step=step, values=values, was_written=bool(plan.writes))
    return replace(after, note=plan.note or not_in_force(after, "waits for a reset or a reboot"))


def reboot_reasons(plans: t.Iterable[CardPlan]) -> list[str]:
    """Return why a reboot is needed and would help, one sentence for each card."""
    return [
        f"card {plan.card.name}: {plan.note}"
        for plan in plans
        if plan.step is CardStep.PENDING and not plan.power_cycle
    ]


def checks(plans: t.Iterable[CardPlan]) -> t.Iterator[Check]:
    """Yield the check of each card against its options."""
    for plan in plans:
        good = plan.step is CardStep.DONE
        fix = {
            CardStep.WRITE: by_role("nic_link_type"),
            CardStep.PENDING: by_role("nic_link_type,reboot") + " Or reset the card when it is idle.",
            CardStep.FAILED: plan.fix,
        }.get(plan.step, "")
        if plan.power_cycle or plan.step is CardStep.POWER_CYCLE:
            fix = "Switch the host off and on again (a power cycle, not a reboot)."
        cause = plan.note or not_in_force(plan, "not written")
        desired, have = _wanted_text(plan), _observed_text(plan)
        if plan.step is CardStep.SKIPPED:
            yield skipped("nic_link_type", cause, fix, desired, object=plan.card.name)
        elif good and plan.fix:
            yield warning("nic_link_type", desired, have, cause, plan.fix, object=plan.card.name)
        else:
            yield compared("nic_link_type", desired, have, cause, fix, good=good, object=plan.card.name)


def _wanted_text(plan: CardPlan) -> str:
    words = [f"{name}={value}" for name, value in plan.desired_values.items()]
    return " ".join(words or [f"port {port} {link_type}" for port, link_type in plan.options.links])


def _observed_text(plan: CardPlan) -> str:
    if plan.values:
        return " ".join(f"{value.name}={value.current or value.in_force}" for value in plan.values)
    return " ".join(sorted(set(plan.card.layers.values())))
