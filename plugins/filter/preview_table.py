# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a run would change on the hosts of a fleet, as one table."""

from __future__ import annotations

import typing as t

from ..module_utils._check import DEVIATION
from ..plugin_utils._report.equal import folded
from ..plugin_utils._verdict.intake import answer_in

DOCUMENTATION = r"""
name: preview_table
short_description: Count what a run would change on each host, in one table for the fleet
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - Counts what the tasks of the host roles found in check mode. Hosts with the same numbers share a row.
  - C(-) is what no task looked at, C(?) what cannot be previewed, since something is in the way or missing on the host.
options:
  _input:
    description: C(hostvars), with the registered results.
    type: dict
    required: true
  hosts:
    description: The hosts of the play.
    type: list
    elements: str
    required: true
  answering:
    description: Those of them that answer.
    type: list
    elements: str
    required: true
"""

EXAMPLES = r"""
---
- name: Show what a run would change
  railops.rdma.notice:
    heading: "What the run would change on each host:"
    lines: "{{ hostvars | railops.rdma.preview_table(ansible_play_hosts_all, ansible_play_hosts) }}"
"""

RETURN = r"""
_value:
  description: The lines of the table, the titles first.
  type: list
  elements: str
"""

PARTS = ("links", "addresses", "routes", "rules", "sysctls")
LIVE = "__rail_network_live"
FILES = "__rail_network_files"
DRIVER = "rdma_driver_result"
OTHERS = {
    "nic_mode_result": "nic_mode",
    "__rdma_host_netns": "rdma_host",
    "__rdma_host_result": "rdma_host",
    "gpudirect_result": "gpudirect",
    "__lossless_roce_result": "lossless_roce",
}
"""The registered results that change something else, each with its role."""


def _count(result: t.Any, count: t.Callable[[t.Any], int]) -> str:
    """Return the number of something in a result; the host says what is in there."""
    if not isinstance(result, dict) or result.get("skipped"):
        return "-"
    try:
        return "?" if result.get("failed") or result.get("problems") else str(count(result))
    except (TypeError, KeyError, AttributeError):
        return "?"


def _changed(part: str) -> t.Callable[[t.Any], int]:
    """Return what counts the lines of a part that go or come, whichever are more: one that changes does both."""
    sides = (("before", "after"), ("after", "before"))
    return lambda result: max(len(set(result[one][part]) - set(result[other][part])) for one, other in sides)


def _files(result: t.Any) -> int:
    return sum(check["status"] == DEVIATION for check in answer_in(result).checks)


def _cells(values: t.Mapping[str, t.Any]) -> tuple[str, ...]:
    """Return the row of a host."""
    cells = [_count(values.get(LIVE), _changed(part)) for part in PARTS]
    cells += [_count(values.get(FILES), _files), _count(values.get(DRIVER), lambda result: len(result["packages"]))]
    found = {name: values[name] for name in (DRIVER, *OTHERS) if isinstance(values.get(name), dict)}
    boots = any(one.get("reboot_required") is True for one in found.values())
    also = {role: True for name, role in OTHERS.items() if found.get(name, {}).get("changed") is True}
    return (*cells, "yes" if boots else "no", ", ".join(also))


def preview_table(hostvars: t.Any, hosts: t.Sequence[str], answering: t.Collection[str]) -> list[str]:
    """Return the lines."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for host in hosts:
        cells = _cells(hostvars.raw_get(host)) if host in answering else ("no answer", *[""] * (len(PARTS) + 3))
        rows.setdefault(cells, []).append(host)
    table: list[tuple[str, ...]] = [("host", *PARTS, "files", "packages", "reboot", "also")]
    table += [(folded(names, 4), *cells) for cells, names in rows.items()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """Return it by its name."""
        return {"preview_table": preview_table}
