# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict as a Markdown page and as a picture for a terminal. Pure."""

from __future__ import annotations

import typing as t

from ...module_utils._check import SKIPPED, WARNING
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._intake import shown
from ...module_utils._words import shortened
from .._report.equal import SECTIONS, Equal, differing, entries, equal, folded, places, section_of
from .._report.table import md, md_table
from .._report.verdict import utc
from .merge import deviations, left_out, summary, untested

# SGR codes (ECMA-48 8.3.117); the signs mean the same without color.
_COLORS = {"green": "32", "red": "31", "yellow": "33", "gray": "90", "bold": "1"}
_SIGNS = {
    "ok": ("●", "green"),
    "deviation": ("✗", "red"),
    "warning": ("▲", "yellow"),
    "skipped": ("·", "gray"),
    "unreachable": ("?", "yellow"),
    "error": ("!", "red"),
}
_STATUS_COLORS = {"pass": "green", "deviation": "red", "error": "red", "incomplete": "yellow"}
_LOST = ("unreachable", "error", "not_verified")
_ROWS = 40
_LISTED = 20
_EXPLAINED = 8
_WIDTH = 150
# What a person reads; verdict.json has all.
_LISTED_MARKDOWN = 2000


def _plain(value: t.Any) -> str:
    """Return a value as one line: it comes from hosts."""
    if value is None or value == "":
        return "-"
    if isinstance(value, (list, tuple)):
        value = ", ".join(_plain(item) for item in value) or "nothing"
    elif isinstance(value, dict):
        value = ", ".join(f"{key}={_plain(item)}" for key, item in value.items())
    return shown(str(value))


def _table(titles: t.Sequence[str], rows: t.Sequence[t.Sequence[t.Any]]) -> list[str]:
    return md_table(titles, [[_plain(cell) for cell in row] for row in rows])


def _head(verdict: Verdict) -> str:
    """Return the verdict in a few words, with how much was not looked at."""
    return ", ".join(filter(None, (verdict["status"], left_out(verdict))))


def markdown(verdict: Verdict, fabric: str) -> str:
    """Return the verdict as a Markdown page: where the fault is, what deviates, the hosts, what was not looked at."""
    lines = [f"# Verdict of fabric {md(fabric)}: {_head(verdict)}", "", summary(verdict), ""]
    when = f"Checked {utc(verdict['time'])}. " if verdict.get("time") else ""
    lines += [f"{when}Plan digest: `{verdict['plan_digest']}`", ""]
    if where := places(verdict):
        lines += ["## Where it is", "", *(f"- {md(_plain(line))}" for line in where[:_LISTED])]
        lines += [f"- and {len(where) - _LISTED:,} more in verdict.json"] if len(where) > _LISTED else []
        lines += [""]
    lines += _listed("Deviations", equal(deviations(verdict)))
    lines += _listed("Warnings", equal(deviations(verdict, WARNING)))
    if broken := [(name, row["status"], row["error"]) for name, row in entries(verdict) if row.get("error")]:
        lines += ["## Without a result", "", *_table(("where", "status", "why"), broken)]
    rails = verdict["rails"]
    states = [
        (name, entry["status"], *(entry["rails"].get(rail, "-") for rail in rails))
        for name, entry in verdict["hosts"].items()
    ]
    lines += ["## Hosts", "", *_table(("host", "status", *rails), states)]
    if left := untested(verdict):
        reasons = [(reason, ", ".join(sorted(ids)), shortened(names)) for reason, (ids, names) in left.items()]
        lines += ["## Not looked at", "", *_table(("why", "checks", "where"), reasons)]
    rows = [(name, row["status"], row.get("reason")) for name in SECTIONS for row in [section_of(verdict, name)]]
    lines += ["## Plan and cluster", "", *_table(("what", "status", "why"), rows)]
    return "\n".join(lines)


def _listed(title: str, found: t.Sequence[Equal]) -> list[str]:
    """Return a table of equal checks."""
    if not found:
        return []
    heading = ("where", "rail", "times", "check", "planned", "observed", "cause", "fix")
    rows = [
        (
            folded(row.hosts),
            shortened(row.rails),
            len(row.places),
            row.check["id"],
            *differing(row.check["planned"], row.check["observed"]),
            row.cause,
            row.check["fix"],
        )
        for row in found[:_LISTED_MARKDOWN]
    ]
    more = [f"{len(found) - len(rows):,} more are in verdict.json.", ""] if len(found) > len(rows) else []
    return [f"## {title}", "", *_table(heading, rows), *more]


class Painter:
    """Colors text, or leaves it as it is."""

    def __init__(self, color: bool) -> None:
        self._color = color

    def __call__(self, text: str, name: str) -> str:
        return f"\033[{_COLORS[name]}m{text}\033[0m" if self._color else text

    def sign(self, status: str) -> str:
        """Return the one-character picture of a rail's or host's status."""
        return self(*_SIGNS[status])


def _host_row(name: str, entry: t.Mapping[str, t.Any], rails: t.Sequence[str], width: int, paint: Painter) -> str:
    if entry["status"] in _LOST:
        sign = paint.sign("error" if entry["status"] == "error" else "unreachable")
        return f"  {name:<{width}}  {sign}  {_plain(entry.get('error'))}"[:_WIDTH]
    own = [check["status"] for check in entry["checks"] if check["rail"] is None]
    cells = [paint.sign(entry["rails"].get(rail, "skipped")) + " " * (max(2, len(rail)) + 1) for rail in rails]
    return f"  {name:<{width}}  {paint.sign('deviation' if 'deviation' in own else 'ok')}    {''.join(cells)}"


def _rows(hosts: t.Mapping[str, t.Mapping[str, t.Any]], rails: t.Sequence[str], paint: Painter) -> t.Iterator[str]:
    """Give the hosts by rails; of a large fleet those that do not pass. Who did not answer is one row a reason."""
    passed = [name for name, entry in hosts.items() if entry["status"] == "pass"]
    if len(passed) == len(hosts) > _ROWS:
        yield f"  {paint.sign('ok')} {len(hosts):,} x {len(rails)} rails as planned"
        return
    lost: dict[tuple[str, str], list[str]] = {}
    for name, entry in hosts.items():
        if entry["status"] in _LOST:
            lost.setdefault((entry["status"], _plain(entry.get("error"))), []).append(name)
    names = [name for name, entry in hosts.items() if entry["status"] not in _LOST]
    if len(names) > _ROWS:
        names = [name for name in names if hosts[name]["status"] != "pass"][:_ROWS]
    rows = {name: hosts[name] for name in names} | {folded(own, 4): hosts[own[0]] for own in lost.values()}
    width = min(60, max([7, *map(len, rows)]))
    yield f"  {'':<{width}}  all  " + "".join(f"{rail:<{max(2, len(rail)) + 2}}" for rail in rails)
    for name, entry in rows.items():
        yield _host_row(name, entry, rails, width, paint)
    if left := len(hosts) - len(names) - sum(map(len, lost.values())):
        fine = "all ok" if len(passed) == left else f"{len(passed):,} of them ok: see verdict.md"
        yield f"  ... and {left:,} more, {fine}"


def _reason(row: Equal, sign: str, paint: Painter) -> t.Iterator[str]:
    check = row.check
    many = len(row.places) > 1
    where = f"{len(row.places):,} times" if many else shown(row.where[0])
    thing = f" {_plain(check['object'])}" if check.get("object") and not many else ""
    such = "" if row.alike else "such as "
    planned, observed = map(_plain, differing(check["planned"], check["observed"]))
    found = f"{such}planned {planned}, observed {observed}"
    yield f"  {paint.sign(sign)} {paint(where, 'bold')} {_plain(check['id'])}{thing}: {found}"
    if many:
        yield f"      on:    {_plain(row.summary)}"
    if row.cause:
        yield f"      cause: {_plain(row.cause)}"
    if check["fix"]:
        yield f"      fix:   {_plain(check['fix'])}"


def _reasons(verdict: Verdict, status: str, paint: Painter) -> t.Iterator[str]:
    found = equal(deviations(verdict, status))
    for row in found[:_LISTED]:
        yield from _reason(row, status, paint)
    if len(found) > _LISTED:
        yield f"  ... and {len(found) - _LISTED} more {status}s: see verdict.md"
    if found:
        yield ""


def picture(verdict: Verdict, fabric: str, *, color: bool = False, report: str = "") -> str:
    """Return the verdict as lines for a terminal: hosts by rails, where the fault is, every deviation with its fix.

    Large fleets show the hosts that do not pass; at most 40 rows and 20 deviations, the files hold all.

    :param color: whether it has colors.
    :param report: the path of the page, for the last line, which says what was not done, too.
    """
    paint = Painter(color)
    rails, hosts = verdict["rails"], verdict["hosts"]
    when = f", checked {utc(verdict['time'])}" if verdict.get("time") else ""
    lines = ["", f"  {paint(f'fabric {fabric}', 'bold')}: {_head(verdict)}{when}", "", *_rows(hosts, rails, paint)]
    width = max(7, *(len(name) for name in SECTIONS))
    lines.append("")
    for name in SECTIONS:
        section = section_of(verdict, name)
        sign = {"pass": "ok", "skipped": "skipped", "error": "error"}.get(section["status"], "deviation")
        text = _plain(section.get("error") or section.get("reason") or section["status"])
        lines.append(f"  {name:<{width}}  {paint.sign(sign)}  {text}")
    lines.append("")
    where = places(verdict)
    lines += [f"  {paint('➤', 'bold')} {_plain(line)}" for line in where[:_EXPLAINED]]
    lines += [f"  ... and {len(where) - _EXPLAINED} more places: see verdict.md"] if len(where) > _EXPLAINED else []
    lines += [""] if where else []
    lines += [*_reasons(verdict, "deviation", paint), *_reasons(verdict, WARNING, paint)]
    said = [section_of(verdict, name).get("reason") for name in SECTIONS]
    for reason, (ids, names) in untested(verdict).items():
        if reason in said:
            continue
        what = _plain(f"{shortened(sorted(ids), 6)} on {folded(names, 4)}: {reason}")
        lines.append(f"  {paint.sign('skipped')} not looked at: {what}")
    legend = "  ".join(f"{paint.sign(status)} {status}" for status in _SIGNS if status != "error")
    status = paint(f" {verdict['status'].upper()} ", _STATUS_COLORS[verdict["status"]])
    lines += [f"  {legend}", "", f"  {status} {summary(verdict)}"]
    cluster = section_of(verdict, "cluster")
    rest = verdict["status"].upper()
    if cluster["status"] == SKIPPED:
        reason = _plain(cluster.get("reason"))
        why = "set fabric_kubeconfig" if "fabric_kubeconfig" in reason else reason
        rest += f", hosts only. The cluster was not touched: {why}"
    return "\n".join([*lines, *([f"   {rest}. Report: {report}"] if report else []), ""])
