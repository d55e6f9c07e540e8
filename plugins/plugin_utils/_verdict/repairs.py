# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Repairs of deviations: the command to paste, its impact, and the page that explains the check. Pure.

A host's text never becomes a command: this table has the playbooks and tags that may repair each check.
"""

from __future__ import annotations

import re
import shlex
import typing as t

from ...module_utils._formatting import group_by
from .._report.equal import NUMBERED

IMPACTS = ("none", "rail_restart", "drain", "reboot", "physical")
"""Impacts of a repair, the smallest first."""
RUNBOOK = "docs/reference/checks.md#{}"


Row = tuple[str, tuple[str, ...]]
"""The impact of a playbook's run with its tags, and the prefixes of the check IDs that it repairs."""
HOSTS: dict[str, Row] = {
    "rail_network": ("none", ("network_", "persist_")),
    "gpudirect": ("none", ("gpudirect_",)),
    "rdma_host": ("none", ("rdma_modules", "rdma_name", "rdma_netns_")),
    "lossless_roce": ("rail_restart", ("roce_",)),
    "nic_link_type": ("reboot", ("nic_link_type",)),
    "rdma_driver": ("reboot", ("driver_",)),
    "rdma_host,reboot": ("reboot", ("rdma_name", "rdma_netns_")),
    "nic_link_type,reboot": ("reboot", ("nic_link_type",)),
}
"""The tags of the playbook hosts."""
FABRIC: dict[str, Row] = {
    "plan": ("none", ("plan_inventory",)),
    "cluster": ("none", ("object_state", "pool_prefix")),
}
"""Playbooks that are run for all nodes at once."""
MANUAL = {
    "cable_": "physical",
    "card_present": "physical",
    "fleet_mac": "rail_restart",
    "fleet_speed": "physical",
    "network_link": "physical",
    "object_in_use": "drain",
    "pcie_link": "physical",
    "port_errors": "physical",
    "port_flaps": "physical",
    "port_speed": "physical",
    "rdma_ipoib_mtu": "drain",
    "rdma_link_layer": "reboot",
    "rdma_port_state": "physical",
    "traffic_errors": "physical",
}
"""The impact of repairs without a command, by the beginning of the ID; none of all others."""
_FIX = re.compile(r"Run the playbook railops\.rdma\.(\w+)(?: with the tags? ([a-z_,]+))?(?=[.:;,])")
LIMIT = " --limit "
# Longer lists of hosts are folded.
_LISTED = 10


class Repair(t.NamedTuple):
    """The repair of a deviation: a playbook with its tags; manual without a playbook."""

    playbook: str
    tags: str
    impact: str

    def command(self, hosts: t.Iterable[str], *, every: bool = False) -> str:
        """Return the command for these hosts; empty where no command repairs it.

        :param every: whether these are all hosts of the plan.
        """
        line = f"ansible-playbook railops.rdma.{self.playbook}{f' --tags {self.tags}' if self.tags else ''}"
        return "" if not self.playbook else line + (limited(hosts) if self.playbook == "hosts" and not every else "")


COMPLETE = Repair("hosts", "", "reboot")
"""The playbook hosts without tags, for a host that has nothing of the plan. Its reboot may be part of the run."""


def repair_of(check: t.Mapping[str, t.Any]) -> Repair:
    """Return what repairs a deviation, as far as its check's ID allows what its fix says."""
    name = str(check["id"])
    for playbook, tags in _FIX.findall(str(check.get("fix") or "")):
        impact, checks = (HOSTS.get(tags) if playbook == "hosts" else FABRIC.get(playbook)) or ("", ())
        if name.startswith(checks):
            return Repair(playbook, tags, impact)
    manual = {} if check.get("observed") == "ARP off" else MANUAL
    return Repair("", "", next((impact for start, impact in manual.items() if name.startswith(start)), "none"))


def limited(hosts: t.Iterable[str]) -> str:
    """Return the option that limits a command to these hosts."""
    return LIMIT + shlex.quote(pattern(hosts))


def pattern(hosts: t.Iterable[str]) -> str:
    """Return an Ansible pattern for exactly these hosts: a list, or of many a regular expression for each name form."""
    names = list(dict.fromkeys(hosts))
    if len(names) <= _LISTED:
        return ",".join(names)
    parts_of = [NUMBERED.fullmatch(name).groups() for name in names]  # type: ignore[union-attr]
    forms = group_by(((head, tail, len(number)), number) for head, number, tail in parts_of)
    return ",".join(
        f"~^{re.escape(head)}({'|'.join(_digits(sorted(numbers)))}){re.escape(tail)}$"
        for (head, tail, _width), numbers in forms.items()
    )


def _digits(numbers: t.Iterable[str]) -> list[str]:
    """Return regular expressions for exactly these numbers, all of one width."""
    tails = group_by((number[:1], number[1:]) for number in numbers)
    if "" in tails:
        return [""]
    groups = group_by((tuple(_digits(rest)), first) for first, rest in tails.items())
    return [f"{_one_of(digits)}{tail}" for rest, digits in groups.items() for tail in rest]


def _one_of(digits: t.Sequence[str]) -> str:
    run = int(digits[-1]) - int(digits[0]) == len(digits) - 1
    text = f"{digits[0]}-{digits[-1]}" if run else "".join(digits)
    return f"[{text}]" if len(digits) > 1 else digits[0]
