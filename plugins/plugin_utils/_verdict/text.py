# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The verdict as a Markdown page and as a picture for a terminal. Pure."""

from __future__ import annotations

import re
import typing as t

from .merge import PARTS, deviations, summary, untested

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .merge import Check

# SGR codes (ECMA-48 8.3.117); the signs tell the same without colour.
_COLOURS = {"green": "32", "red": "31", "yellow": "33", "grey": "90", "bold": "1"}
_SIGNS = {
    "ok": ("●", "green"),
    "deviation": ("✗", "red"),
    "skipped": ("·", "grey"),
    "unreachable": ("?", "yellow"),
    "error": ("!", "red"),
}
_STATUS_COLOURS = {"pass": "green", "deviation": "red", "error": "red", "incomplete": "yellow"}
_ROWS = 40
_LISTED = 20
_WIDTH = 150
# What a person reads; verdict.json has all.
_LISTED_MARKDOWN = 2000
_MARKUP = re.compile(r"([\\|<>`*_\[\]])")


def _plain(value: t.Any) -> str:
    """Return a value as one line without control characters: it comes from hosts."""
    if value is None or value == "":
        return "-"
    if isinstance(value, (list, tuple)):
        value = ", ".join(_plain(item) for item in value) or "nothing"
    elif isinstance(value, dict):
        value = ", ".join(f"{key}={_plain(item)}" for key, item in value.items())
    text = str(value)
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def _cell(value: t.Any) -> str:
    return _MARKUP.sub(r"\\\1", _plain(value))


def _table(heading: Sequence[str], rows: Sequence[Sequence[t.Any]]) -> list[str]:
    lines = ["| " + " | ".join(heading) + " |", "|" + " --- |" * len(heading)]
    return lines + ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in rows]


def _hosts(names: Sequence[str], limit: int = 8) -> str:
    shown = ", ".join(names[:limit])
    return shown if len(names) <= limit else f"{shown} and {len(names) - limit} more"


def markdown(verdict: Mapping[str, t.Any], fabric: str) -> str:
    """Return the verdict as a Markdown page: the deviations first, then the hosts, then what was not looked at."""
    lines = [f"# Verdict of fabric {_cell(fabric)}: {verdict['status']}", "", summary(verdict), ""]
    lines += [f"Plan digest: `{verdict['plan_digest']}`", ""]
    found = deviations(verdict)
    if found:
        worst = [
            (host, check["rail"], check["id"], check["planned"], check["observed"], check["cause"], check["fix"])
            for host, check in found[:_LISTED_MARKDOWN]
        ]
        heading = ("where", "rail", "check", "planned", "observed", "cause", "fix")
        lines += ["## Deviations", "", *_table(heading, worst), ""]
        if len(found) > len(worst):
            lines += [f"{len(found) - len(worst):,} more are in verdict.json.", ""]
    broken = [
        (name, entry["status"], entry.get("error")) for name, entry in verdict["hosts"].items() if "error" in entry
    ]
    broken += [(part, "error", verdict[part]["error"]) for part in PARTS if verdict[part].get("error")]
    if broken:
        lines += ["## Without a result", "", *_table(("where", "status", "why"), broken), ""]
    rails = verdict["rails"]
    states = [
        (name, entry["status"], *(entry["rails"].get(rail, "-") for rail in rails))
        for name, entry in verdict["hosts"].items()
    ]
    lines += ["## Hosts", "", *_table(("host", "status", *rails), states), ""]
    left = untested(verdict)
    if left:
        rows = [(check, reason, _hosts(names)) for (check, reason), names in left.items()]
        lines += ["## Not looked at", "", *_table(("check", "why", "where"), rows), ""]
    rows = [(name, verdict[name]["status"], verdict[name].get("reason")) for name in PARTS]
    lines += ["## Plan and cluster", "", *_table(("what", "status", "why"), rows), ""]
    return "\n".join(lines)


class Painter:
    """Colours text, or leaves it as it is."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour

    def __call__(self, text: str, name: str) -> str:
        return f"\033[{_COLOURS[name]}m{text}\033[0m" if self._colour else text

    def sign(self, status: str) -> str:
        """Return the one-character picture of a rail's or host's status."""
        sign, colour = _SIGNS.get(status, _SIGNS["skipped"])
        return self(sign, colour)


def _host_row(name: str, entry: Mapping[str, t.Any], rails: Sequence[str], width: int, paint: Painter) -> str:
    own = [check for check in entry["checks"] if check["rail"] is None]
    if entry["status"] in ("unreachable", "error", "not_verified"):
        signs = paint.sign("unreachable" if entry["status"] != "error" else "error")
        told = _plain(entry.get("error"))
        return f"  {name:<{width}}  {signs}  {told}"[:_WIDTH]
    host = "deviation" if any(check["status"] == "deviation" for check in own) else "ok"
    cells = [paint.sign(entry["rails"].get(rail, "skipped")) + " " * (max(2, len(rail)) + 1) for rail in rails]
    return f"  {name:<{width}}  {paint.sign(host)}     " + "".join(cells)


def _reason(host: str, check: Check, paint: Painter) -> list[str]:
    where = f"{host} {check['rail']}" if check["rail"] else host
    told = f"  {paint('✗', 'red')} {paint(where, 'bold')} {check['id']}: planned {_plain(check['planned'])}, "
    lines = [told + f"observed {_plain(check['observed'])}"]
    if check["cause"]:
        lines.append(f"      cause: {_plain(check['cause'])}")
    if check["fix"]:
        lines.append(f"      fix:   {_plain(check['fix'])}")
    return lines


def picture(verdict: Mapping[str, t.Any], fabric: str, *, colour: bool = False) -> str:
    """Return the verdict as lines for a terminal: hosts by rails, then every deviation with cause and fix.

    Large fleets show the hosts that do not pass; at most 40 rows and 20 deviations, the files hold all.
    """
    paint = Painter(colour)
    rails = verdict["rails"]
    hosts = verdict["hosts"]
    shown = list(hosts)
    if len(shown) > _ROWS:
        shown = [name for name in shown if hosts[name]["status"] != "pass"][:_ROWS]
    width = max([7, *(len(name) for name in shown)])
    lines = ["", f"  {paint(f'fabric {fabric}', 'bold')}", ""]
    lines.append(f"  {'':<{width}}  host  " + "".join(f"{rail:<{max(2, len(rail)) + 2}}" for rail in rails))
    lines += [_host_row(name, hosts[name], rails, width, paint) for name in shown]
    if len(shown) < len(hosts):
        lines.append(f"  ... and {len(hosts) - len(shown)} more hosts")
    lines.append("")
    for name in PARTS:
        part = verdict[name]
        sign = {"pass": "ok", "skipped": "skipped", "error": "error"}.get(part["status"], "deviation")
        told = _plain(part.get("error") or part.get("reason") or part["status"])
        lines.append(f"  {name:<{width}}  {paint.sign(sign)}     {told}")
    lines.append("")
    found = deviations(verdict)
    for host, check in found[:_LISTED]:
        lines += _reason(host, check, paint)
    if len(found) > _LISTED:
        lines.append(f"  ... and {len(found) - _LISTED} more deviations: see verdict.md")
    if found:
        lines.append("")
    grouped: dict[tuple[str, str], list[str]] = {}
    for (check_id, reason), names in untested(verdict).items():
        grouped.setdefault((reason, _hosts(names, 4)), []).append(check_id)
    for (reason, where), ids in grouped.items():
        told = f"{', '.join(sorted(ids))} on {where}: {_plain(reason)}"
        lines.append(f"  {paint.sign('skipped')} not looked at: {told}")
    legend = "  ".join(f"{paint.sign(status)} {status}" for status in ("ok", "deviation", "skipped", "unreachable"))
    status = paint(f" {verdict['status'].upper()} ", _STATUS_COLOURS[verdict["status"]])
    return "\n".join([*lines, f"  {legend}", "", f"  {status} {summary(verdict)}", ""])
