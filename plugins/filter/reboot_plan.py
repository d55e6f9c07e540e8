# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: reboot_plan
short_description: Gather what the host roles say of a reboot
version_added: 0.1.0
description:
  - Takes the registered results of the host roles, by role, and says whether the host needs a reboot, why, which roles
    are waiting for it, and, line by line, what a run would do to the host.
author:
  - railops.rdma contributors (@railops)
options:
  _input:
    description: The results by role name; a list of them where a role has several. One that did not run is empty.
    type: dict
    required: true
  reboot:
    description: Whether a reboot is allowed.
    type: bool
    default: true
  drain:
    description: Whether the node is drained before.
    type: bool
    default: false
  due:
    description: Roles that want the reboot although their results do not, each with its reason.
    type: dict
    default: {}
    version_added: 1.0.0
"""

EXAMPLES = r"""
---
- name: Say what a run would do
  ansible.builtin.debug:
    msg: "{{ ({'nic_mode': nic_mode_result | default({})} | railops.rdma.reboot_plan).lines }}"
"""

RETURN = r"""
_value:
  description:
    - C(required) (bool), C(reasons) (list of str), C(roles) (those that wait for the reboot), C(power_cycle) (bool),
      and C(lines) (what a run would do, one line each).
  type: dict
"""

import typing as t


def reboot_plan(
    results: dict[str, t.Any], *, reboot: bool = True, drain: bool = False, due: t.Mapping[str, str] | None = None
) -> dict[str, t.Any]:
    """Return whether and why a host needs a reboot, and what a run would do to it.

    :param results: of the roles' modules, by role.
    :param reboot: whether one is allowed.
    :param drain: whether the node is drained before.
    :param due: who wants it in any case, with the reason.
    """
    reasons: list[str] = []
    waiting: list[str] = []
    lines: list[str] = []
    power_cycle = False
    asked = [
        (role, result)
        for role, given in results.items()
        for result in (given if isinstance(given, list) else [given])
        if isinstance(result, dict)
    ]
    for role, result in asked:
        lines += [
            f"leave alone ({role}): card {card['card']} ({', '.join(card['devices']) or 'no driver'}): {card['why']}"
            for card in result.get("left_alone", ())
        ]
        lines += [f"write ({role}): {what}" for what in _written(result)]
        if result.get("power_cycle_required"):
            power_cycle = True
            lines += [f"power cycle by hand ({role}): {why}" for why in _power_cycle(result)]
        if result.get("reboot_required"):
            waiting += [role] if role not in waiting else []
            reasons += [f"{role}: {why}" for why in result.get("reboot_reasons", [])]
    for role, why in (due or {}).items():
        if role not in waiting:
            waiting.append(role)
            reasons.append(f"{role}: {why}")
    if reasons:
        how = "reboot" if reboot else "no reboot (rdma_host_reboot is false), although one is needed"
        lines += ["drain: cordon the node and move its pods"] if drain and reboot else []
        lines += [f"{how}: {why}" for why in reasons]
        lines += ["uncordon: when all of it is in force"] if drain and reboot else []
    return {
        "required": bool(reasons),
        "reasons": reasons,
        "roles": waiting,
        "power_cycle": power_cycle,
        "lines": lines or ["nothing: the host is as planned"],
    }


def _written(result: dict[str, t.Any]) -> list[str]:
    """Return what is written: what the checks found to differ, or that there is something."""
    if not result.get("changed"):
        return []
    found = [
        f"{' '.join(filter(None, (check['id'], check.get('rail'), check.get('object'))))}: {_difference(check)}"
        for check in result.get("checks", ())
        if check.get("status") == "deviation"
    ]
    return found or ["changes that its own task shows (run with --diff)"]


def _difference(check: dict[str, t.Any]) -> str:
    if check["observed"] == check["planned"]:
        return str(check.get("cause") or check["planned"])
    return f"{check['observed'] or 'nothing'} -> {check['planned']}"


def _power_cycle(result: dict[str, t.Any]) -> list[str]:
    cards = [
        f"card {card['card']}: {card['note']}"
        for card in result.get("cards", ())
        if card.get("status") in ("pending", "power_cycle")
    ]
    return cards or ["a value that no reboot brings into force"]


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, t.Any]:
        """Return it by name."""
        return {"reboot_plan": reboot_plan}
