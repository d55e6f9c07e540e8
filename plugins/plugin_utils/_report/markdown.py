# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Renders report.md, for a terminal and a code review, and returns it with the page that `html` renders. Pure."""

from __future__ import annotations

from ...module_utils._fabric.labels import DECLARED
from ...module_utils._formatting import count
from .._fabric.model import FabricPlan
from .facts import CODE_TITLES, PlanReport, rail_table, subtitle, used_columns
from .html import render_html
from .table import md, md_table

MARKDOWN_NODES = 256
"""Above this many nodes the Markdown lists none: they are in report.html and in hosts/."""


def _md_nodes(report: PlanReport) -> list[str]:
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
            row.append(block.texts(node.slot)[0] if block else node.interfaces[rail])
        rows.append(row)
    return [*lines, *md_table(*used_columns(titles, rows))]


def render_markdown(report: PlanReport) -> str:
    """Return report.md."""
    plan = report.plan
    lines = [f"# Fabric {md(plan.fabric.name)}", "", md(subtitle(plan)) + ".", ""]
    lines += [
        f"- {count(len(plan.nodes), 'node')} on {count(len(plan.fabric.rails), 'rail')}; "
        f"**{count(report.free, 'more node')} still fit{'s' if report.free == 1 else ''}** "
        f"({report.slots:,} slots, {report.retired:,} retired)",
        *(
            [f"- {count(report.pools, 'pool')}, {count(report.pods, 'pod address', 'pod addresses')} per node and rail"]
            if plan.fabric.pod_addresses
            else []
        ),
        "- RDMA networks: " + (", ".join(f"`{prefix}`" for prefix in report.rdma) or "none (LID only)"),
        "",
    ]
    if report.plan.warnings:
        lines += ["## Warnings", "", *(f"- {md(text)}" for text in report.plan.warnings), ""]
    zones = [
        [zone.name or "(entire fabric)", zone.group, ", ".join(zone.supernets), str(slots), *map(str, counts)]
        for zone in report.zones
        for *counts, slots in [zone.slots]
    ]
    zone_titles = ("Zone", "Group", "Supernets", "Slots", "Used", "Retired", "Still fit")
    lines += ["## Zones", "", *md_table(*used_columns(zone_titles, zones))]
    titles, rows = rail_table(report)
    lines += ["## Rails", "", *md_table(titles, rows, code=CODE_TITLES)]
    if len(report.profiles) > 1 or list(report.profiles) != [DECLARED]:
        lines += ["## Interface names", ""]
        profiles = [
            (name, len(nodes), ", ".join(nodes[0].interfaces) if nodes else "")
            for name, nodes in report.profiles.items()
        ]
        lines += md_table(("Profile", "Nodes", "Interfaces, by rail"), profiles)
    lines += _md_nodes(report)
    return "\n".join(lines).rstrip("\n") + "\n"


def render_report(plan: FabricPlan) -> dict[str, str]:
    """Return report.md and report.html: name -> text."""
    report = PlanReport(plan)
    return {"report.md": render_markdown(report), "report.html": render_html(report)}
