# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Put a verdict (verdict.json) into a report that is already written: which rails and nodes are as planned.

The page has slots, `<!--v:NAME-->...<!--/v-->`; each call fills all of them, so a page can be given one verdict after
the other. No text of the input can hold a slot's mark, because `<` is always escaped.
"""

from __future__ import annotations

import html
import json
import re
import time
import typing as t
from collections import Counter
from dataclasses import dataclass

from ...module_utils._errors import RdmaError
from ...module_utils._fabric.shapes import Verdict
from ...module_utils._intake import shown
from .equal import differing, entries, equal, folded, places

# How a rail stands: its sign, for people who cannot see the colors, and the styles of its link and its name.
LOOKS = {
    "ok": ("✓", "stroke:var(--ok)", "fill:var(--ok)"),
    "few": ("▲", "stroke:var(--warn);stroke-dasharray:6 4", "fill:var(--warn);font-weight:700"),
    "bad": ("✗", "stroke:var(--bad);stroke-dasharray:6 4", "fill:var(--bad);font-weight:700"),
    "unknown": ("·", "stroke:var(--muted);stroke-dasharray:2 4", "fill:var(--muted)"),
}
# A rail is red where this share of its hosts deviates; one host of a thousand makes no rail red.
RED_SHARE = 0.05
SHOWN_FINDINGS = 500
SHOWN_PLACES = 20
SLOT = re.compile(r"<!--v:([a-z0-9]+)-->.*?<!--/v-->", re.DOTALL)
# A warning is no reason to paint a rail red; it stands in the table.
_STATES = {"deviation": "bad", "error": "bad", "ok": "ok", "warning": "ok", "pass": "ok"}
# Of one node in the page's data; verdict.json has all.
_NODE_FINDINGS = 20


@dataclass(frozen=True)
class Standing:
    """How one rail stands over all hosts."""

    state: str
    """ok, bad (5 % of the hosts or more deviate), few (less do) or unknown (not looked at on every host)."""
    good: int
    hosts: int

    @property
    def text(self) -> str:
        """A sign, and on how many hosts the rail is as planned."""
        return f"{LOOKS[self.state][0]} {self.good:,} of {self.hosts:,}"


def e(value: t.Any) -> str:
    """Escape text for HTML, in elements and in quoted attributes."""
    return html.escape(shown(str(value)), quote=True)


def embedded(value: t.Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def slot(name: str, content: str = "") -> str:
    """Return a slot of the page."""
    return f"<!--v:{name}-->{content}<!--/v-->"


def shorten(text: str, limit: int) -> str:
    """Return the text, cut with an ellipsis where it is longer."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def table(titles: t.Sequence[str], rows: t.Iterable[t.Sequence[str]]) -> str:
    """Return a table; the cells are HTML already."""
    head = "".join(f"<th>{e(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{value}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def section(title: str, note: str, body: str, kind: str = "") -> str:
    """Return a section of the page; the body is HTML already.

    :param title: its heading.
    :param note: a line below it; empty for none.
    :param body: HTML.
    :param kind: its class in page.css.
    """
    line = f'<p class="note">{e(note)}</p>' if note else ""
    return f'<section class="{kind}"><h2>{e(title)}</h2>{line}{body}</section>\n'


def _text(value: t.Any) -> str:
    if value is None or value == "":
        return ""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return ", ".join(value) or "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def utc(seconds: float | None) -> str:
    """Return a verdict's time for a person; empty where it has none."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds)) if seconds else ""


def findings(verdict: Verdict) -> list[tuple[int, str, t.Mapping[str, t.Any]]]:
    """Return every host without an answer, deviation and warning; what is equal is one: how many, where, and what."""
    rows = list(entries(verdict))
    silent: dict[tuple[str, str], dict[str, str]] = {}
    for name, entry in rows:
        if entry.get("error"):
            status = str(entry.get("status") or "error")
            # What an unreachable host's ssh said is its own; that it did not answer is the same for all.
            own = _text(entry["error"])
            text = "It did not answer." if status == "unreachable" else own
            silent.setdefault((status, text), {})[name] = own
    found: list[tuple[int, str, t.Mapping[str, t.Any]]] = []
    for (status, text), said in silent.items():
        cause = text if len(said) > 1 else next(iter(said.values()))
        found.append((len(said), folded(said, 12), {"status": status, "cause": cause}))
    for status in ("deviation", "warning"):
        checks = [(name, row) for name, entry in rows for row in entry.get("checks", ()) if row["status"] == status]
        for group in equal(checks):
            found.append((len(group.places), group.summary, {**group.check, "cause": group.cause}))
    return found


def _card(count: int, where: str, check: t.Mapping[str, t.Any]) -> str:
    """Return a card: where and what, then cause and fix, then what differs."""
    planned, observed = (_text(value) for value in differing(check.get("planned"), check.get("observed")))
    times = f' <span class="sub">{count:,} times</span>' if count > 1 else ""
    name, status = e(check.get("id") or check["status"]), e(check["status"])
    head = f'<h3>{e(where)} <span class="{status}">{name}</span>{times}</h3>'
    cause, fix = (e(_text(check.get(key))) for key in ("cause", "fix"))
    lines = f"<p>{cause}</p>" if cause else ""
    lines += f'<p class="fix">{fix}</p>' if fix else ""
    if planned or observed:
        rows = (("-", "planned", planned), ("+", "observed", observed))
        lines += "".join(
            f'<p class="mono {kind}">{sign} {kind} {e(shorten(text or "nothing", 600))}</p>'
            for sign, kind, text in rows
        )
    return f'<article class="card {status}">{head}{lines}</article>'


def host_states(entry: t.Mapping[str, t.Any], rails: t.Sequence[str]) -> tuple[str, ...]:
    """Return ok, bad or unknown for each rail of one host."""
    if entry.get("status") not in ("pass", "deviation"):
        return ("unknown",) * len(rails)
    return tuple(_STATES.get(str(entry["rails"].get(rail)), "unknown") for rail in rails)


def standings(verdict: Verdict, rails: t.Sequence[str]) -> tuple[Standing, ...]:
    """Return how each rail stands."""
    hosts = [host_states(entry, rails) for entry in verdict["hosts"].values()]
    found = []
    for number in range(len(rails)):
        column = [host[number] for host in hosts]
        good, bad = column.count("ok"), column.count("bad")
        state = "ok" if column and good == len(column) else "unknown"
        if bad:
            state = "bad" if bad >= RED_SHARE * len(column) else "few"
        found.append(Standing(state, good, len(column)))
    return tuple(found)


# --- HTML -------------------------------------------------------------------------------------------------------------

_LEGEND = (
    " A solid green link is as planned on every host, a broken red one deviates on 5 % of the hosts or more, a broken "
    "yellow one on fewer, a dotted gray one was not looked at on every host."
)


def with_verdict(page: str, verdict: Verdict) -> str:
    """Return report.html with a verdict in it.

    :raises RdmaError: when the text is no report of this collection.
    """
    if not SLOT.search(page):
        raise RdmaError(
            "This file is no report.html of this collection.", "Run the plan playbook to write one. [report_not_ours]"
        )
    contents = _contents(verdict)
    return SLOT.sub(lambda found: slot(found[1], contents.get(found[1], "")), page)


_DATA = '<script type="application/json" id="verdict">{}</script>'
NO_VERDICT = _DATA.format("null")


def _contents(verdict: Verdict) -> dict[str, str]:
    """Return what each slot holds."""
    rails = verdict["rails"]
    rows = standings(verdict, rails)
    style = [".state{display:table-cell}"]
    contents = {}
    for number, row in enumerate(rows):
        sign, link, name = LOOKS[row.state]
        style.append(f".link.r{number}{{{link}}}.name.r{number}{{{name}}}")
        contents[f"sign{number}"] = f"{sign} "
        contents[f"rail{number}"] = f'<b class="{row.state}">{e(row.text)}</b>'
    # The page knows each state by its first letter.
    states = {
        str(entry.get("node") or host): "".join(state[0] for state in host_states(entry, rails))
        for host, entry in verdict["hosts"].items()
    }
    status = verdict["status"]
    contents.update(
        style=f"<style>{''.join(style)}</style>",
        chip=f'<span class="chip {e(status)}">verification: {e(status)}</span>',
        findings=_findings_html(verdict),
        legend=e(_LEGEND),
        only='<label><input type="checkbox" id="only"> only nodes with deviations or without an answer</label>',
        data=_DATA.format(embedded({"states": states, **_by_node(verdict)})),
    )
    return contents


def _by_node(verdict: Verdict) -> dict[str, t.Any]:
    """Return what a node's own details show: its deviations and warnings; and who gave no answer, with the reason."""
    found: dict[str, list[list[str]]] = {}
    lost = {}
    for host, entry in verdict["hosts"].items():
        name = str(entry.get("node") or host)
        if entry.get("status") not in ("pass", "deviation"):
            lost[name] = shown(shorten(_text(entry.get("error")) or str(entry.get("status")), 300))
        rows = [row for row in entry.get("checks") or () if row["status"] in ("deviation", "warning")]
        if rows:
            found[name] = [
                [shown(shorten(_text(row.get(key)), 300)) for key in ("rail", "id", "cause", "fix")]
                for row in rows[:_NODE_FINDINGS]
            ]
    return {"findings": found, "lost": lost}


def _findings_html(verdict: Verdict) -> str:
    tally = Counter(entry["status"] for entry in verdict["hosts"].values())
    hosts = ", ".join(f"{number:,} {status}" for status, number in sorted(tally.items())) or "none"
    missed = sum((entry.get("counts") or {}).get("skipped", 0) for _name, entry in entries(verdict))
    when = utc(verdict.get("time"))
    note = f"Checked {when}. " if when else ""
    note += f"Hosts: {hosts}. Cluster: {verdict['cluster']['status']}."
    note += f" {missed:,} checks not made." if missed else ""
    where = "".join(f"<li>{e(line)}</li>" for line in places(verdict)[:SHOWN_PLACES])
    rows = findings(verdict)
    body = f'<ul class="where">{where}</ul>' if where and rows else ""
    body += "".join(_card(*row) for row in rows[:SHOWN_FINDINGS])
    body = body or '<p class="ok">Everything that was looked at is as planned.</p>'
    if len(rows) > SHOWN_FINDINGS:
        body += f'<p class="note">{len(rows) - SHOWN_FINDINGS:,} more are in verdict.json.</p>'
    return section("Verification", note, body + _left_out(verdict))


def _left_out(verdict: Verdict) -> str:
    """Return what was not looked at, a line a reason."""
    rows = [
        f"<li>{e(', '.join(row['checks']))} on {row['hosts']:,}: {e(row['reason'])}</li>"
        for row in (verdict.get("skipped") or ())[:SHOWN_PLACES]
    ]
    return f'<p class="note">Not looked at:</p><ul class="note">{"".join(rows)}</ul>' if rows else ""
