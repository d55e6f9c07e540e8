# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The end of a dry run, in the order of a verdict: problems, what would change, the command that changes it. Pure."""

from __future__ import annotations

import shlex
import typing as t

from ...module_utils._check import DEVIATION, Check
from ...module_utils._formatting import count, group_by, shortened
from ...module_utils._validation import line
from .._report.equal import ADDRESS, folded
from .intake import answer_in
from .repairs import IMPACTS

PARTS = {"links": "link", "addresses": "address", "routes": "route", "rules": "rule", "sysctls": "sysctl"}
LIVE = "__rail_network_live"
FILES = "__rail_network_files"
REBOOT = "__rdma_host_reboot"
ROLES = {
    "rdma_driver_result": "rdma_driver",
    "nic_link_type_result": "nic_link_type",
    "__rdma_host_netns": "rdma_host",
    "__rdma_host_result": "rdma_host",
    "gpudirect_result": "gpudirect",
    LIVE: "rail_network",
    FILES: "rail_network",
    "__lossless_roce_result": "lossless_roce",
}
"""The registered results, each with its role."""
DISTURBS = {"restart ": "rail_restart", "drain: ": "drain", "reboot: ": "reboot", "power cycle ": "physical"}
"""The impact of a run, by the beginning of the line that says so."""
INVALID = "an invalid answer"
NOTES = ("note ", "skip ")
_LISTED = 6
_LINES = 24
_BLOCKS = 12
Values = t.Mapping[str, t.Any]


def report(
    hosts: t.Mapping[str, Values | None], problems: t.Iterable[str], command: t.Mapping[str, t.Any] | None
) -> list[str]:
    """Return the lines.

    :param hosts: by name the variables of a host with its registered results; none where it does not answer.
    :param problems: what the run would stop at, or leave out.
    :param command: playbook, limit, tags and skip_tags of this run; none where it would stop.
    """
    wrong = list(problems)
    silent = [host for host, values in hosts.items() if values is None]
    wrong += [f"{folded(silent)}: no answer"] if silent else []
    there = {host: values for host, values in hosts.items() if values is not None}
    groups = group_by((text, host) for host, values in there.items() for text in _problems(values))
    wrong += [f"{folded(names)}: the dry run failed: {text}" for text, names in groups.items()]
    blocks = _blocks({host: _lines(values) for host, values in there.items()})
    changing = {host for names, lines in blocks if any(not text.startswith(NOTES) for text in lines) for host in names}
    impacts = [_impact(lines) for _names, lines in blocks]
    most = max(impacts, key=IMPACTS.index, default="none")
    made = [f"{len(changing):,} of {count(len(hosts), 'host')} would change. Nothing was changed."]
    made += [f"✗ {text}" for text in wrong]
    for (names, lines), impact in list(zip(blocks, impacts, strict=True))[:_BLOCKS]:
        made += ["", f"{folded(names)}, impact: {impact}", *(f"  {text}" for text in lines[:_LINES])]
        made += [f"  and {len(lines) - _LINES} more"] if len(lines) > _LINES else []
    made += [f"and {len(blocks) - _BLOCKS} more groups of hosts"] if len(blocks) > _BLOCKS else []
    if command is not None and changing:
        made += ["", "Do this:", f"  impact: {most}", f"    {_command(command)}"]
    return made


def _impact(lines: t.Iterable[str]) -> str:
    found = [impact for text in lines for start, impact in DISTURBS.items() if text.startswith(start)]
    return max(found, key=IMPACTS.index, default="none")


def _command(given: t.Mapping[str, t.Any]) -> str:
    """Return the command of the same run without --check."""
    words = ["ansible-playbook", f"railops.rdma.{given['playbook']}"]
    words += ["--limit", str(given["limit"])] if given.get("limit") else []
    for option, tags in (("--tags", given.get("tags")), ("--skip-tags", given.get("skip_tags"))):
        words += [option, ",".join(map(str, tags))] if tags and list(tags) != ["all"] else []
    return shlex.join(words)


def _blocks(texts: t.Mapping[str, t.Iterable[str]]) -> list[tuple[tuple[str, ...], list[str]]]:
    """Return lines with the hosts that have them, apart from addresses; hosts with many first."""
    found = group_by((ADDRESS.sub("@", text), (text, host)) for host, rows in texts.items() for text in rows)
    blocks = group_by((tuple(dict.fromkeys(host for _text, host in rows)), rows[0][0]) for rows in found.values())
    return sorted(blocks.items(), key=lambda block: -len(block[0]))


def _results(values: Values) -> t.Iterator[tuple[str, str, Values]]:
    """Yield the results of roles that ran: name, role, result."""
    for name, role in ROLES.items():
        result = values.get(name)
        if isinstance(result, dict) and not result.get("skipped"):
            yield name, role, result


def _problems(values: Values) -> t.Iterator[str]:
    """Yield why a role cannot be previewed on a host."""
    for _name, role, result in _results(values):
        rows = result.get("problems")
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict):
                yield line(f"{row.get('problem')} {row.get('fix')}") or INVALID
        if result.get("failed"):
            yield f"{role} failed"


def _lines(values: Values) -> list[str]:
    """Return what a run would change on a host, a line each."""
    found: list[str] = []
    parts: list[str] = []
    for name, role, result in _results(values):
        if name in (LIVE, FILES):
            parts += _network(result) if name == LIVE else _files(result)
            continue
        found += [f"write ({role}): {text}" for text in _written(result)]
        disruptions = result.get("disruptions")
        if isinstance(disruptions, dict):
            texts = _texts(f"{rail}: {'; '.join(_list(disruptions, rail)) or INVALID}" for rail in disruptions)
            found += [f"restart ({role}): {shortened(texts, _LISTED)}"] if texts else []
        found += [f"note ({role}): {text}" for text in _list(result, "notes")]
    if isinstance(reboot := values.get(REBOOT), dict):
        found += _list(reboot, "lines")
    return [*([f"write (rail_network): {', '.join(parts)}"] if parts else []), *found]


def _written(result: Values) -> list[str]:
    """Return what a role writes: what it lists, else what its checks found to differ."""
    if listed := [*_list(result, "packages"), *_list(result, "changes")]:
        return [shortened(listed, _LISTED)]
    if result.get("changed") is not True:
        return []
    found = []
    for row in _differing(result):
        equal = row["observed"] == row["planned"]
        text = row["cause"] if equal else f"{row['observed'] or 'nothing'} -> {row['planned']}"
        found.append(f"{' '.join(filter(None, (row['id'], row['rail'], row.get('object'))))}: {text}")
    return _texts(found) or ["see its own task with --diff"]


def _differing(result: Values) -> list[Check]:
    return [check for check in answer_in({"checks": result.get("checks")}).checks if check["status"] == DEVIATION]


def _texts(values: t.Iterable[t.Any]) -> list[str]:
    return [line(value) or INVALID for value in values]


def _list(result: Values, name: str) -> list[str]:
    values = result.get(name)
    return _texts(values) if isinstance(values, list) else []


def _network(result: Values) -> list[str]:
    """Count the lines of each part that come or go, whichever are more: one that changes does both."""
    found = []
    for part, noun in PARTS.items():
        try:
            old, new = (set(result[side][part]) for side in ("before", "after"))
        except (TypeError, KeyError):
            continue
        if number := max(len(old - new), len(new - old)):
            found.append(count(number, noun, "addresses" if noun == "address" else ""))
    return found


def _files(result: Values) -> list[str]:
    number = len(_differing(result))
    return [count(number, "file")] if number else []
