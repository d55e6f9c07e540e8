# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict as a Markdown page and as a picture for a terminal. Pure."""

from __future__ import annotations

import re
import typing as t
from itertools import takewhile
from textwrap import wrap

from ...module_utils._check import DEVIATION, SKIPPED, WARNING
from ...module_utils._fabric.shapes import Cause, Verdict
from ...module_utils._formatting import count, group_by, shortened
from .._report.equal import SECTIONS, differing
from .._report.table import md, md_table, plain
from .._report.verdict import utc
from .cards import commands_of, named
from .causes import FALLBACKS
from .merge import deviations, summary, untested

# SGR codes (ECMA-48 8.3.117); the signs mean the same without color.
_COLORS = {"green": "32", "red": "31", "yellow": "33", "gray": "90", "bold": "1"}
_SIGNS = {
    "ok": ("●", "green"),
    "deviation": ("✗", "red"),
    "affected": ("◌", "yellow"),
    "warning": ("▲", "yellow"),
    "skipped": ("·", "gray"),
    "unreachable": ("?", "yellow"),
    "error": ("!", "red"),
}
_STATUS_COLORS = {"pass": "green", "deviation": "red", "error": "red", "incomplete": "yellow"}
_LOST = ("unreachable", "error", "not_verified")
_ROWS = 24
_CARDS = 8
_REASONS = 4
NO_PODS = "fabric_attachment is none"
_WIDTH = 80
# What a person reads; verdict.json has all.
_LISTED_MARKDOWN = 2000


def _table(titles: t.Sequence[str], rows: t.Sequence[t.Sequence[t.Any]]) -> list[str]:
    return md_table(titles, [[plain(cell) or "-" for cell in row] for row in rows])


def coverage(verdict: Verdict) -> str:
    """Return how many checks ran and why others were skipped, in one sentence."""
    found = verdict.get("coverage")
    if not found:
        return ""
    text = f"{found['run']:,} of {count(found['planned'], 'check')} ran"
    names, rows = {check: name for name, check in FALLBACKS.items()}, []
    for row in verdict.get("skipped") or ():
        # A fabric without pod networks has no cluster.
        if row["reason"] != NO_PODS:
            reason = re.split(r" \(|[.:;]", row["reason"])[0]
            rows.append(f"{shortened([names.get(check, check) for check in row['checks']], 2)} ({reason})")
    return plain(f"{text}; skipped: {shortened(rows, _REASONS)}" if rows else text)


def _card(card: Cause) -> t.Iterator[str]:
    """Yield what is below a cause's sentence: what follows from it, and what repairs it."""
    rows = [f"{count(card['follows'], 'check follows', 'checks follow')} from this"] if card["follows"] else []
    rows += [f"affected: {named(card['affected'])}"] if card["affected"] else []
    if rows:
        yield f"{'; '.join(rows)}."
    if card["fix"] and not (card.get("command") and card["fix"].startswith("Run the playbook ")):
        yield card["fix"]


def repair_commands(verdict: Verdict) -> list[tuple[str, str]]:
    """Return the distinct commands that repair the causes, each with its impact before it."""
    return commands_of(card for card in verdict.get("causes") or () if card["status"] != WARNING)


def markdown(verdict: Verdict, fabric: str) -> str:
    """Return the verdict as a Markdown page: causes, commands, all deviations, the hosts, what was skipped."""
    lines = [f"# Verdict of fabric {md(fabric)}: {verdict['status']}", "", summary(verdict), ""]
    when = f"Checked {utc(verdict['time'])}. " if verdict.get("time") else ""
    lines += [f"{when}Plan digest: `{verdict['plan_digest']}`", ""]
    causes = verdict.get("causes") or []
    lines += ["## Causes", ""] if causes else []
    for card in causes[:_LISTED_MARKDOWN]:
        lines += [f"- {md(plain(card['sentence']))}", *(f"  {md(plain(line))}" for line in _card(card))]
    lines += [""] if causes else []
    if commands := repair_commands(verdict):
        lines += ["## Do this", ""]
        for impact, command in commands:
            lines += [f"Impact: {impact}.", "", "```sh", command, "```", ""]
    lines += _listed("Deviations", verdict, DEVIATION)
    lines += _listed("Warnings", verdict, WARNING)
    rails = verdict["rails"]
    states = [
        (name, entry["status"], *(entry["rails"].get(rail, "-") for rail in rails), entry.get("error"))
        for name, entry in verdict["hosts"].items()
    ]
    lines += ["## Hosts", "", *_table(("host", "status", *rails, "why"), states)]
    if left := untested(verdict):
        reasons = [(reason, ", ".join(sorted(ids)), shortened(names)) for reason, (ids, names) in left.items()]
        lines += ["## Skipped", "", *_table(("why", "checks", "where"), reasons)]
    rows = [(name, row["status"], row.get("reason")) for name in SECTIONS for row in [verdict[name]]]
    lines += ["## Plan and cluster", "", *_table(("what", "status", "why"), rows)]
    return "\n".join(lines)


def _listed(title: str, verdict: Verdict, status: str) -> list[str]:
    """Return a table of the checks of a status that follow from no other."""
    found = [row for row in deviations(verdict, status) if not row[1].get("caused_by")]
    if not found:
        return []
    heading = ("where", "rail", "check", "planned", "observed", "cause")
    rows = [
        (host, check["rail"], check["id"], *differing(check["planned"], check["observed"]), check["cause"])
        for host, check in found[:_LISTED_MARKDOWN]
    ]
    more = [f"{len(found) - len(rows):,} more are in verdict.json.", ""] if len(found) > len(rows) else []
    return [f"## {title}", "", *_table(heading, rows), *more]


Paint = t.Callable[[str, str], str]
"""Colors a text, or leaves it as it is."""


def _labels(rails: t.Sequence[str], width: int) -> list[str]:
    """Return the heads of the columns: rails, or where they are too wide what differs in their names."""
    if width + 7 + sum(max(2, len(rail)) + 2 for rail in rails) <= _WIDTH:
        return [f"{rail:<{max(2, len(rail)) + 2}}" for rail in rails]
    same = len(list(takewhile(lambda letters: len({*letters}) == 1, zip(*rails, strict=False))))
    short = [rail[same:] or rail[-1:] for rail in rails]
    return [f"{name:<{max(map(len, short)) + 1}}" for name in short]


def _rows(hosts: t.Mapping[str, t.Mapping[str, t.Any]], rails: t.Sequence[str], paint: Paint) -> t.Iterator[str]:
    """Yield the hosts by rails, of a large fleet those that do not pass.

    Hosts without a result are one row per reason.
    """
    fine = [name for name, entry in hosts.items() if entry["status"] == "pass" and "affected" not in entry["counts"]]
    if len(fine) == len(hosts) > _ROWS:
        yield f"  {paint(*_SIGNS['ok'])} {len(hosts):,} x {len(rails)} rails as planned"
        return
    silent_hosts = {name: entry for name, entry in hosts.items() if entry["status"] in _LOST}
    lost = group_by(((entry["status"], plain(entry.get("error"))), name) for name, entry in silent_hosts.items())
    names = [name for name, entry in hosts.items() if entry["status"] not in _LOST]
    if len(names) > _ROWS:
        others = set(names) - {*fine}
        names = sorted(filter(others.__contains__, names), key=lambda name: hosts[name]["status"] == "pass")
    # Equal rows are one.
    same: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        own = [check for check in hosts[name]["checks"] if check["rail"] is None and not check.get("caused_by")]
        states = {check["status"] for check in own}
        cells = [hosts[name]["rails"].get(rail, "skipped") for rail in rails]
        idle = "skipped" if hosts[name]["status"] == "skipped" else "ok"
        key = ("deviation" if "deviation" in states else idle, *cells)
        same.setdefault(key if len(names) > _ROWS else (*key, name), []).append(name)
    rows = [(named(members), key[: len(rails) + 1]) for key, members in same.items()]
    width = min(40, max([7, *(len(name) for name, _key in rows), *(len(named(own)) for own in lost.values())]))
    labels = _labels(rails, width)
    yield f"  {'':<{width}}  all  {''.join(labels)}".rstrip()
    for name, (own_sign, *cells) in rows[:_ROWS]:
        signs = "".join(
            paint(*_SIGNS[cell]) + " " * (len(label) - 1) for cell, label in zip(cells, labels, strict=True)
        )
        yield f"  {name:<{width}}  {paint(*_SIGNS[own_sign])}    {signs}".rstrip()
    for (status, error), silent in lost.items():
        sign = paint(*_SIGNS["error" if status == "error" else "unreachable"])
        yield f"  {named(silent):<{width}}  {sign}    {error}"[: 2 * _WIDTH]
    if len(rows) > _ROWS:
        yield f"  ... and {len(rows) - _ROWS:,} more rows: see verdict.md"
    if left := len(hosts) - len(names) - sum(map(len, lost.values())):
        yield f"  ... and {left:,} more, all ok"


def terminal(verdict: Verdict, fabric: str, *, color: bool = False, report: str = "") -> str:
    """Return the verdict as lines for a terminal: causes, hosts by rails, and the commands that repair them.

    At most 24 rows and 8 causes; the files have all.

    :param color: whether it has colors.
    :param report: the path of the page, for the last line.
    """

    def paint(text: str, name: str) -> str:
        return f"\033[{_COLORS[name]}m{text}\033[0m" if color else text

    causes = verdict.get("causes") or []
    when = f", checked {utc(verdict['time'])}" if verdict.get("time") else ""
    status = paint(verdict["status"].upper(), _STATUS_COLORS[verdict["status"]])
    lines = ["", f"  {paint(f'fabric {fabric}', 'bold')}: {status}{when}"]
    lines += [f"  {part}" for part in wrap(coverage(verdict), 100)]
    lines.append("")
    for card in causes[:_CARDS]:
        lines.append(f"  {paint(*_SIGNS[card['status']])} {paint(plain(card['sentence']), 'bold')}")
        lines += [f"      {part}" for line in _card(card) for part in wrap(plain(line), 100)]
    lines += [f"  ... and {len(causes) - _CARDS:,} more causes: see verdict.md"] if len(causes) > _CARDS else []
    lines += [""] if causes else []
    lines += [*_rows(verdict["hosts"], verdict["rails"], paint), ""]
    for name in SECTIONS:
        section = verdict[name]
        if section["status"] != SKIPPED:
            sign = {"pass": "ok", "error": "error"}.get(section["status"], "deviation")
            lines.append(f"  {name:<7}  {paint(*_SIGNS[sign])}  {plain(section.get('error') or section['status'])}")
    lines += ["  " + "  ".join(f"{paint(*_SIGNS[status])} {status}" for status in _SIGNS if status != "error"), ""]
    if commands := repair_commands(verdict):
        lines.append(f"  {paint('Do this:', 'bold')}")
        for impact in dict.fromkeys(impact for impact, _command in commands):
            lines.append(f"    impact: {impact}")
            lines += [f"      {command}" for one, command in commands if one == impact]
        lines.append("")
    lines.append(f"  {summary(verdict)}")
    return "\n".join([*lines, *([f"  Report: {report}"] if report else []), ""])
