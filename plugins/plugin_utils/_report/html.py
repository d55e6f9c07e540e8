# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The plan as one HTML page: nothing in it leads outside of the file, and every text of the input is escaped.

In the script, texts are only ever set as text. Where a verdict goes, the page has slots: see `verdict`. Nothing
depends on the time, the machine or the collection's version.
"""

from __future__ import annotations

import math
from pathlib import Path

from ...module_utils._fabric.labels import DECLARED
from ...module_utils._words import count
from .._fabric.model import address_text, range_text
from .facts import (
    CODE_TITLES,
    PlanReport,
    SupernetFacts,
    ZoneFacts,
    rail_table,
    span_of,
    subtitle,
    table_data,
    used_columns,
)
from .verdict import NO_VERDICT, e, embedded, section, shorten, slot, table

DRAWN_ZONES = 12


def _beside(name: str) -> str:
    """Return a file of this folder without its license, which ends with the first empty line."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8").partition("\n\n")[2]


STYLE = _beside("page.css")
SCRIPT = _beside("page.js")
"""Style and script of the page: no font, no library and no address outside of the file itself."""


def hue(rail: int, rails: int) -> int:
    """Return a rail's color as an angle between blue-green and pink: red and green say how a rail stands."""
    step = next(number for number in range(rails // 2, 0, -1) if math.gcd(number, rails) == 1) if rails > 1 else 1
    return 185 + (rail * step % max(rails, 1)) * 135 // max(rails - 1, 1)


def _tiles(report: PlanReport) -> str:
    plan = report.plan
    tiles = [
        (f"{len(plan.nodes):,}", f"of {report.slots:,} slots are nodes"),
        (f"{report.free:,}", "more nodes still fit" if report.free != 1 else "more node still fits"),
        (f"{len(plan.fabric.rails):,}", "rails"),
    ]
    if plan.fabric.pod_addresses:
        tiles.append((f"{report.pods:,}", "pod addresses per node and rail"))
        tiles.append((f"{report.pools:,}", "pools in the cluster"))
    if report.retired:
        tiles.insert(2, (f"{report.retired:,}", "retired slots"))
    if len(report.zones) > 1:
        tiles.insert(2, (f"{len(report.zones):,}", "zones"))
    items = "".join(f"<li><b>{e(number)}</b><span>{e(label)}</span></li>" for number, label in tiles)
    return f'<ul class="tiles">{items}</ul>'


def _bar(zone: ZoneFacts) -> str:
    used = 100 * zone.used / zone.zone.max_nodes
    gone = 100 * zone.retired / zone.zone.max_nodes
    label = f"{zone.used} used, {zone.retired} retired, {zone.free} free"
    return (
        f'<div class="bar" role="img" aria-label="{e(label)}"><i class="used" style="width:{used:.2f}%"></i>'
        f'<i class="gone" style="width:{gone:.2f}%"></i></div>'
    )


def _zones_html(report: PlanReport) -> str:
    rows = []
    for zone in report.zones:
        nets = " ".join(f"<code>{e(prefix)}</code>" for prefix in zone.zone.supernets)
        numbers = (zone.used, zone.retired, zone.free, zone.zone.max_nodes)
        name = e(zone.zone.name) or "the whole fabric"
        rows.append([name, e(zone.zone.group), nets, _bar(zone), *(f"{number:,}" for number in numbers)])
    titles = ["Zone", "Group", "Supernets", "Slots in use", "Used", "Retired", "Still fit", "Slots"]
    titles, rows = used_columns(titles, rows)
    space = "".join(_space(item, len(report.plan.fabric.rails)) for item in report.supernets)
    why = ": a subnet can never change in Spiderpool" if report.plan.fabric.pod_addresses else ""
    note = f"Slots are reserved from day one{why}, so growth only fills free slots."
    return section("Capacity", note, table(titles, rows) + space, "keep")


def _space(item: SupernetFacts, rails: int) -> str:
    """Return a supernet as a bar: where the rails' networks lie in it."""
    parts = []
    for rail, first, last in item.parts:
        left = 1000 * (first - item.prefix.network) / item.prefix.size
        width = max(1.5, 1000 * (last - first + 1) / item.prefix.size - 0.6)
        text = range_text(item.prefix.family, (first, last))
        parts.append(
            f'<rect class="part" style="--h:{hue(rail, rails)}" x="{left:.2f}" width="{width:.2f}" height="18">'
            f"<title>{e(text)}</title></rect>"
        )
    more = f"; room for {count(item.more, 'more rail')} of this size" if item.more else ""
    zone = f" ({e(item.zone)})" if item.zone else ""
    share = f"{item.used:.1%}" if item.used >= 0.001 else "less than 0.1%"
    return (
        f"<figure><figcaption><b><code>{e(item.prefix)}</code></b>{zone}: {share} is given to rails{e(more)}"
        "</figcaption>"
        '<svg class="bars" viewBox="0 0 1000 18" preserveAspectRatio="none" role="img" aria-label="Address space">'
        f'<rect class="space" width="1000" height="18" rx="4"/>{"".join(parts)}</svg></figure>'
    )


LEAF_WIDTH = 148
ROW_RAILS = 8


def _drawing(report: PlanReport, index: int) -> str:
    """Draw one zone: its leaves, its rails, its nodes; more than eight rails in rows of equal length."""
    zone = report.zones[index].zone
    rails = range(len(report.plan.fabric.rails))
    length = -(-len(rails) // -(-len(rails) // ROW_RAILS))
    rows = [rails[start : start + length] for start in range(0, len(rails), length)]
    caption = f"<figcaption><b>{e(zone.name)}</b></figcaption>" if zone.name else ""
    return f"<figure>{caption}{''.join(_drawn_row(report, index, row) for row in rows)}</figure>"


def _drawn_row(report: PlanReport, index: int, row: range) -> str:
    plan, zone = report.plan, report.zones[index]
    width = LEAF_WIDTH * max(len(row), 4)
    step = width / len(row)
    single = len(zone.zone.leaves) == 1
    parts = []
    if single:
        parts.append(
            f'<rect class="one" x="4" y="4" width="{width - 8}" height="34" rx="6"/>'
            f'<text x="{width / 2}" y="26" text-anchor="middle">{e(shorten(zone.zone.leaves[0], 80))}</text>'
        )
    parts += [
        _drawn_rail(report, index, number, (place + 0.5) * step, step, not single) for place, number in enumerate(row)
    ]
    stack, top = max(min(zone.used, 3), 1), 176
    for offset in range(stack - 1, -1, -1):
        shift = offset * 5
        parts.append(
            f'<rect class="node" x="{4 + shift}" y="{top - shift}" width="{width - 8 - 5 * (stack - 1)}" height="52" '
            'rx="6"/>'
        )
    nodes = plan.nodes_of(index)
    ends = "no node yet"
    if len(nodes) == 1:
        ends = nodes[0].name
    elif nodes:
        ends = f"{shorten(nodes[0].name, 34)} … {shorten(nodes[-1].name, 34)}"
    summary = f"{ends}: {count(zone.used, 'node')}, {zone.free:,} more fit"
    parts.append(f'<text x="{width / 2}" y="{top + 40}" text-anchor="middle">{e(summary)}</text>')
    for place, number in enumerate(row):
        x = (place + 0.5) * step
        port = shorten(nodes[0].interfaces[number] if nodes else plan.fabric.rails[number].interface, 16)
        color = hue(number, len(plan.fabric.rails))
        parts.append(
            f'<rect class="port" style="--h:{color}" x="{x - 6}" y="{top - 6}" width="12" height="12" '
            f'rx="2"/><text class="small" x="{x}" y="{top + 20}" text-anchor="middle">{e(port)}</text>'
        )
    label = f"Leaves and rails {zone.zone.name}".strip()
    return f'<svg viewBox="0 0 {width} 236" width="{width}" role="img" aria-label="{e(label)}">{"".join(parts)}</svg>'


def _nets(report: PlanReport, zone: int, number: int) -> list[str]:
    """Return what a rail's leaf announces; in a flat fabric, where the rail's part of the subnet begins."""
    flat = report.plan.fabric.mode == "flat"
    return [
        f"from {address_text(block.family, span_of(block, True)[0])}" if flat else str(block.aggregate)
        for block in report.plan.blocks
        if block.zone == zone and block.rail == number
    ]


def _drawn_rail(report: PlanReport, zone: int, number: int, x: float, step: float, leaf: bool) -> str:
    """Draw one rail: leaf, networks, link, name and state."""
    plan = report.plan
    rail, color = plan.fabric.rails[number], hue(number, len(plan.fabric.rails))
    style = f'style="--h:{color}"'
    limit = int((step - 20) / 6.8)
    parts = []
    nets = _nets(report, zone, number)
    top = 38
    if leaf:
        name = plan.fabric.zones[zone].leaf(number) or "a leaf (no name)"
        height = 26 + 15 * max(len(nets), 1)
        top = height + 4
        parts.append(
            f'<rect class="leaf" {style} x="{x - step / 2 + 4}" y="4" width="{step - 8}" height="{height}" rx="6"/>'
            f'<text x="{x}" y="23" text-anchor="middle">{e(shorten(name, limit + 1))}<title>{e(name)}</title></text>'
        )
        parts += [
            f'<text class="small" x="{x}" y="{40 + 15 * line}" text-anchor="middle">{e(net)}</text>'
            for line, net in enumerate(nets)
        ]
    parts.append(f'<path class="link r{number}" {style} d="M{x} {top}V170"/>')
    text = shorten(rail.name, limit)
    box = 7.4 * (len(text) + 2) + 10
    parts.append(
        f'<rect class="tag" x="{x - box / 2}" y="112" width="{box}" height="20" rx="4"/>'
        f'<text class="name r{number}" x="{x}" y="127" text-anchor="middle">{slot(f"sign{number}")}{e(text)}</text>'
    )
    if not leaf:
        parts += [
            f'<rect class="tag" x="{x - 62}" y="{52 + 16 * line}" width="124" height="16"/>'
            f'<text class="small" x="{x}" y="{64 + 16 * line}" text-anchor="middle">{e(net)}</text>'
            for line, net in enumerate(nets)
        ]
    return "".join(parts)


def _drawings(report: PlanReport) -> str:
    body = "".join(_drawing(report, index) for index in range(min(len(report.zones), DRAWN_ZONES)))
    if len(report.zones) > DRAWN_ZONES:
        body += f'<p class="note">{count(len(report.zones) - DRAWN_ZONES, "more zone")} of the same kind.</p>'
    note = "Every rail is the same position of every node, cabled to its leaf"
    if report.plan.fabric.mode == "flat":
        note += "; all rails have one subnet, and each its own part of it." if report.plan.blocks else "."
    else:
        note += "; the leaf announces the network in its box." if report.plan.blocks else "."
    return section("Zones, leaves and rails", "", f'<p class="note">{e(note)}{slot("legend")}</p>' + body)


def _rails_html(report: PlanReport) -> str:
    titles, rows = rail_table(report)
    head = '<th class="state">As planned</th>' + "".join(f"<th>{e(title)}</th>" for title in titles)
    number, body = -1, []
    for row in rows:
        first = bool(row[0])
        number += first
        cells = [f'<td class="state">{slot(f"rail{number}") if first else ""}</td>']
        for title, value in zip(titles, row, strict=False):
            text = f"<code>{e(value)}</code>" if title in CODE_TITLES and value else e(value)
            if title == "Rail" and first:
                text = f'<span class="dot" style="--h:{hue(number, len(report.plan.fabric.rails))}"></span>{text}'
            cells.append(f"<td>{text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    shown = f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(body)}</tbody></table></div>'
    nets = ", ".join(str(prefix) for prefix in report.rdma)
    return section("Rails", f"Traffic to {nets} leaves through the rail of its source address." if nets else "", shown)


def _profiles_html(report: PlanReport) -> str:
    if len(report.profiles) == 1 and DECLARED in report.profiles:
        return ""
    rows = [
        [
            e(name),
            f"{len(nodes):,}",
            "<code>" + e(", ".join(nodes[0].interfaces) if nodes else "") + "</code>",
            e(", ".join(node.name for node in nodes[:6])) + (" …" if len(nodes) > 6 else ""),
        ]
        for name, nodes in report.profiles.items()
    ]
    note = "Nodes name their interfaces in several ways."
    note += " A pod's injection value fits the nodes of one profile." if report.plan.fabric.attached.pods else ""
    return section("Interface names", note, table(("Profile", "Nodes", "Interfaces, by rail", "Nodes' names"), rows))


def _nodes_html(report: PlanReport) -> str:
    total = count(len(report.plan.nodes), "node")
    note = "Type a part of a name, or any address to learn whose it is. A row opens to all addresses of the node."
    return (
        f'<section id="nodes"><h2>Nodes</h2><p class="note screen">{e(note)}</p>'
        "<noscript><p>The table needs JavaScript; report.md and the files in hosts/ have the same numbers.</p>"
        "</noscript>"
        '<div class="find"><input type="search" id="search" placeholder="node12, 172.17.0.35 or a zone" '
        f'aria-label="Search nodes and addresses" autocomplete="off" spellcheck="false">{slot("only")}'
        f'<span class="sub" id="count" role="status">{e(total)}</span></div>'
        '<p class="answer" id="answer" role="status"></p><div class="detail" id="detail"></div>'
        f'<p class="paper note">{e(total)}. More than 300 are not printed: filter them on the screen first, or see '
        'hosts/.</p><div class="grid" id="grid" tabindex="0"><div class="head" id="head"></div>'
        '<div class="body" id="rows"></div></div></section>\n'
    )


def _warnings_html(report: PlanReport) -> str:
    if not report.plan.warnings:
        return ""
    items = "".join(f"<li>{e(text)}</li>" for text in report.plan.warnings)
    return f'<section class="warnings"><h2>Warnings</h2><ul>{items}</ul></section>\n'


def render_html(report: PlanReport) -> str:
    """Return report.html."""
    plan = report.plan
    sections = (
        _warnings_html(report),
        slot("findings"),
        _nodes_html(report),
        _drawings(report),
        _zones_html(report),
        _rails_html(report),
        _profiles_html(report),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Fabric {e(plan.fabric.name)}</title>\n<style>\n{STYLE}</style>{slot('style')}\n</head>\n"
        "<body>\n<main>\n"
        f'<header><div><h1>{e(plan.fabric.name)}</h1><div class="sub">{e(subtitle(plan))}</div></div>'
        f"{slot('chip')}</header>\n"
        f"{_tiles(report)}\n{''.join(sections)}"
        "<footer>Made by railops.rdma from the plan beside this file. It asks no network for anything.</footer>\n"
        f'</main>\n<script type="application/json" id="data">{embedded(table_data(report))}</script>\n'
        f"{slot('data', NO_VERDICT)}\n"
        f"<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
