# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report: report.md for a terminal and a code review, report.html for everybody else.

The page is one file without any address outside of itself. Every text of the input is escaped; in the script it is only
ever set as text. Nothing in it depends on the time, the machine or the collection's version.
"""

from __future__ import annotations

import re
import typing as t

from ...module_utils._fabric.marks import DECLARED
from ...module_utils._fabric.model import address_text
from .facts import CODE_TITLES, Report, collect, count, rail_table, subtitle, used_columns
from .html import render_html
from .verdict import SHOWN_FINDINGS, findings, standings, with_verdict

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...module_utils._fabric.model import Plan
    from ...module_utils._fabric.shapes import Verdict

MARKDOWN_NODES = 256
"""Above this many nodes the Markdown lists none: they stand in report.html and in hosts/."""


def md(value: t.Any) -> str:
    """Escape text for a Markdown table: no markup, no HTML, no line end."""
    text = re.sub(r"[\x00-\x1f]", " ", str(value))
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\`*_\[\]|#~])", r"\\\1", text)


def _md_table(titles: Sequence[str], rows: Iterable[Sequence[t.Any]], code: Sequence[str] = ()) -> list[str]:
    def show(title: str, value: t.Any) -> str:
        return f"`{value}`" if title in code and value and "`" not in str(value) else md(value)

    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    lines += ("| " + " | ".join(show(*pair) for pair in zip(titles, row, strict=False)) + " |" for row in rows)
    return [*lines, ""]


def _md_nodes(report: Report) -> list[str]:
    plan = report.plan
    lines = ["## Nodes", ""]
    if not plan.nodes:
        return [*lines, "No node yet.", ""]
    if len(plan.nodes) > MARKDOWN_NODES:
        nodes = count(len(plan.nodes), "node")
        return [*lines, f"{nodes}: search them in report.html; each one's addresses are in its file in `hosts/`.", ""]
    family = plan.fabric.families[0] if plan.fabric.families else 0
    blocks = {(block.zone, block.rail): block for block in plan.blocks if block.family == family}
    titles = ["Node", "Zone", "Slot", *(md(rail.name) for rail in plan.fabric.rails)]
    rows = []
    for node in plan.nodes:
        row = [node.name, plan.fabric.zones[node.zone].name, str(node.slot)]
        for rail in range(len(plan.fabric.rails)):
            block = blocks.get((node.zone, rail))
            host = block.host(node.slot) if block else None
            row.append(node.interfaces[rail] if host is None else address_text(family, host))
        rows.append(row)
    return [*lines, *_md_table(*used_columns(titles, rows))]


def _md_verdict(report: Report, verdict: Verdict) -> list[str]:
    rails = [rail.name for rail in report.plan.fabric.rails]
    lines = [f"## Verification: {md(verdict.get('status', 'error'))}", ""]
    rows = zip(rails, (row.text for row in standings(verdict, rails)), strict=False)
    lines += _md_table(("Rail", "Hosts as planned"), rows)
    found = findings(verdict)
    if not found:
        return [*lines, "Everything that was looked at is as planned.", ""]
    shown = [
        (item.host, item.rail, item.check or item.status, item.planned, item.observed, item.cause, item.fix)
        for item in found[:SHOWN_FINDINGS]
    ]
    lines += _md_table(("Host", "Rail", "Check", "Planned", "Observed", "Cause", "Fix"), shown)
    if len(found) > SHOWN_FINDINGS:
        lines += [f"{len(found) - SHOWN_FINDINGS:,} more are in verdict.json.", ""]
    return lines


def render_markdown(report: Report, verdict: Verdict | None = None) -> str:
    """Return report.md."""
    plan = report.plan
    lines = [f"# Fabric {md(plan.fabric.name)}", "", md(subtitle(plan)) + ".", ""]
    lines += [
        f"- {count(len(plan.nodes), 'node')} on {count(len(plan.fabric.rails), 'rail')}; "
        f"**{count(report.free, 'more node')} still fit{'s' if report.free == 1 else ''}** "
        f"({report.slots:,} slots, {report.retired:,} retired)",
        f"- {count(report.pools, 'pool')}, {count(report.pods, 'pod address', 'pod addresses')} per node and rail",
        "- RDMA networks: " + (", ".join(f"`{prefix}`" for prefix in report.rdma) or "none (LID only)"),
        "",
    ]
    if report.warnings:
        lines += ["## Warnings", "", *(f"- {md(text)}" for text in report.warnings), ""]
    if verdict:
        lines += _md_verdict(report, verdict)
    zones = [
        (
            zone.zone.name or "(the whole fabric)",
            zone.zone.group,
            ", ".join(str(prefix) for prefix in zone.zone.supernets),
            zone.zone.max_nodes,
            zone.used,
            zone.retired,
            zone.free,
        )
        for zone in report.zones
    ]
    lines += ["## Zones", ""]
    lines += _md_table(("Zone", "Group", "Supernets", "Slots", "Used", "Retired", "Still fit"), zones)
    titles, rows = rail_table(report)
    lines += ["## Rails", "", *_md_table(titles, rows, code=CODE_TITLES)]
    if len(report.profiles) > 1 or list(report.profiles) != [DECLARED]:
        lines += ["## Interface names", ""]
        profiles = [
            (name, len(nodes), ", ".join(nodes[0].interfaces) if nodes else "")
            for name, nodes in report.profiles.items()
        ]
        lines += _md_table(("Profile", "Nodes", "Interfaces, by rail"), profiles)
    lines += _md_nodes(report)
    return "\n".join(lines).rstrip("\n") + "\n"


def render_report(plan: Plan, verdict: Verdict | None = None) -> dict[str, str]:
    """Return report.md and report.html: name -> text. With a verdict they also show how rails and nodes stand."""
    report = collect(plan)
    page = render_html(report)
    return {
        "report.md": render_markdown(report, verdict),
        "report.html": with_verdict(page, verdict) if verdict else page,
    }


__all__ = ["render_markdown", "render_report", "with_verdict"]
