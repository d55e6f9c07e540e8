# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the hosts of a fleet answered before the first change, in sentences for people."""

from __future__ import annotations

import typing as t

from ..module_utils._audit.renumbered import FIX as RESTORE
from ..module_utils._check import DEVIATION, STRANGE
from ..module_utils._cluster.nodes import listed
from ..module_utils._errors import grouped
from ..module_utils._fabric.lock import read_host_plans
from ..module_utils._intake import line
from ..plugin_utils._verdict.intake import answer_in

DOCUMENTATION = r"""
name: preflight_problems
short_description: Tell what is in the way of a run, all hosts together
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Returns a text for each remedy, with the things that are in the way, a line each, and the hosts that have them.
options:
  _input:
    description: What M(railops.rdma.rail_audit) returned of the group V(preflight), by host.
    type: dict
    required: true
  status:
    description: The status of the checks that are told.
    type: str
    choices: [deviation, warning]
    default: deviation
  plan_dir:
    description: The plan folder of the fabric; with it, an address that the plan gives to another host is told, too.
    type: path
    default: ""
"""

EXAMPLES = r"""
---
- name: Show what is in the way of a run
  ansible.builtin.debug:
    msg: "{{ {inventory_hostname: looked} | railops.rdma.preflight_problems }}"
"""

RETURN = r"""
_value:
  description: The problems, each with its remedy.
  type: list
  elements: str
"""


def preflight_problems(
    results: t.Mapping[str, t.Mapping[str, t.Any]], status: str = DEVIATION, plan_dir: str = ""
) -> list[str]:
    """Return what the hosts' checks of that status say; a host that could not be looked at is in the way as well."""
    answers = {host: answer_in({"checks": None, **result}) for host, result in results.items()}
    strange = {host: answer.facts.get(STRANGE) or [] for host, answer in answers.items()}
    owners: dict[str, str] = {}
    if plan_dir and any(strange.values()):
        # Only where there are any: the fleet's plan is some thousand files.
        for piece in read_host_plans(plan_dir):
            owners.update({row["address"]: piece["node"] for rail in piece["rails"] for row in rail["addresses"]})
    hosts: dict[tuple[str, str], list[str]] = {}
    for host, result in results.items():
        for check in answers[host].checks:
            if check["status"] == status:
                place = f"{check['rail']}: " if check["rail"] and check["rail"] not in str(check["cause"]) else ""
                cause = str(check["cause"]).rstrip(".")
                hosts.setdefault((f"{place}{cause}.", str(check["fix"] or "")), []).append(host)
        failed = "" if "checks" in result else f"rail_audit: {line(result.get('msg')) or 'no answer'}"
        said = result.get("errors")
        errors = [failed, *(said if isinstance(said, list) else ()), answers[host].error]
        for error in filter(None, map(line, errors)) if status == DEVIATION else ():
            hosts.setdefault((error, ""), []).append(host)
        for address in strange[host]:
            if address in owners:
                text = f"{address} is here, and this plan gives it to {owners[address]}."
                hosts.setdefault((text, RESTORE), []).append(host)
    return grouped((f"{listed(dict.fromkeys(names))}: {text}", fix) for (text, fix), names in hosts.items())


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"preflight_problems": preflight_problems}
