# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This module util is PRIVATE to the collection.

"""The report: report.md for a terminal and a code review, report.html for everybody else.

The page is one file without any address outside of itself. Every text of the input is escaped; in the script it is only
ever set as text. Nothing in it depends on the time, the machine or the collection's version.
"""

from __future__ import annotations

import html
import json
import re
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._fabric_facts import (
    MODES,
    NETWORKS,
    SIGNS,
    Report,
    collect,
    table_data,
)
from ansible_collections.railops.rdma.plugins.module_utils._fabric_model import address_text
from ansible_collections.railops.rdma.plugins.module_utils._fabric_names import DECLARED
from ansible_collections.railops.rdma.plugins.module_utils._fabric_page import SCRIPT, STYLE
from ansible_collections.railops.rdma.plugins.module_utils._fabric_switch import pods_per_node

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ansible_collections.railops.rdma.plugins.module_utils._fabric_facts import SupernetFacts, ZoneFacts
    from ansible_collections.railops.rdma.plugins.module_utils._fabric_model import Block, Plan, Rail

MARKDOWN_NODES = 256
"""Above this many nodes the Markdown lists none: they stand in report.html and in hosts/."""
DRAWN_ZONES = 12
SHOWN_FINDINGS = 500


def count(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun, thousands apart."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def subtitle(plan: Plan) -> str:
    """Return the fabric in one line."""
    fabric = plan.fabric
    families = " and ".join(f"IPv{family}" for family in fabric.families) or "LID only, no addresses"
    return ", ".join(
        (
            f"{NETWORKS[fabric.network]} with {fabric.attachment}",
            f"{fabric.mode}: {MODES[fabric.mode]}",
            families,
            f"MTU {fabric.mtu}",
        )
    )


def _per_rail(report: Report, rail: Rail) -> list[Block]:
    return [block for block in report.plan.blocks if block.rail == rail.index - 1]


def _zone_label(report: Report, zone: int) -> str:
    return report.plan.fabric.zones[zone].name


def _rail_rows(report: Report) -> list[list[str]]:
    """Return one row a rail, zone and family; the rail's own columns only in its first row."""
    rows = []
    for number, rail in enumerate(report.plan.fabric.rails):
        state = SIGNS[report.rail_states[number]] if report.rail_states else ""
        gpu = "" if rail.gpu is None else str(rail.gpu)
        own = [state, rail.name, rail.interface, gpu, str(rail.table), report.plan.fabric.resources[number]]
        blocks = _per_rail(report, rail)
        if not blocks:
            rows.append([*own, "", "", "", "", ""])
        for index, block in enumerate(blocks):
            zone = report.plan.fabric.zones[block.zone]
            gateway = ""
            if block.gateway_offset is not None:
                address = address_text(block.family, block.subnet_first(0) + block.gateway_offset)
                gateway = address if not block.per_node else f"{address} (first node's)"
            lead = own if index == 0 else [""] * len(own)
            pods = pods_per_node(block)
            rows.append([*lead, zone.name, zone.leaf(number), str(block.aggregate), gateway, f"{pods:,}"])
    return rows


RAIL_TITLES = ("", "Rail", "Interface", "GPU", "Table", "Resource", "Zone", "Leaf", "Network", "Gateway", "Pods a node")


def _used_columns(titles: Sequence[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Drop the columns in which nobody has anything."""
    kept = [index for index in range(len(titles)) if any(row[index] for row in rows)]
    return [titles[index] for index in kept], [[row[index] for index in kept] for row in rows]


# --- Markdown ---------------------------------------------------------------------------------------------------------


def md(value: t.Any) -> str:
    """Escape text for a Markdown table: no markup, no HTML, no line end."""
    text = re.sub(r"[\x00-\x1f]", " ", str(value))
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", text)


def _md_table(titles: Sequence[str], rows: Iterable[Sequence[t.Any]], code: Sequence[str] = ()) -> list[str]:
    def show(title: str, value: t.Any) -> str:
        return f"`{value}`" if title in code and value and "`" not in str(value) else md(value)

    lines = ["| " + " | ".join(titles) + " |", "|" + " --- |" * len(titles)]
    lines += ("| " + " | ".join(show(*pair) for pair in zip(titles, row)) + " |" for row in rows)
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
        row = [node.name, _zone_label(report, node.zone), str(node.slot)]
        for rail in range(len(plan.fabric.rails)):
            block = blocks.get((node.zone, rail))
            host = block.host(node.slot) if block else None
            row.append(node.interfaces[rail] if host is None else address_text(family, host))
        rows.append(row)
    return [*lines, *_md_table(*_used_columns(titles, rows))]


def _md_verdict(report: Report) -> list[str]:
    if not report.verdict:
        return []
    lines = [f"## Verification: {md(report.status)}", ""]
    if not report.findings:
        return [*lines, "Everything that was looked at is as planned.", ""]
    rows = [
        (item.host, item.rail, item.check, item.planned, item.observed, item.cause, item.fix)
        for item in report.findings[:SHOWN_FINDINGS]
    ]
    lines += _md_table(("Host", "Rail", "Check", "Planned", "Observed", "Cause", "Fix"), rows)
    if len(report.findings) > SHOWN_FINDINGS:
        lines += [f"{len(report.findings) - SHOWN_FINDINGS:,} more are in verdict.json.", ""]
    return lines


def render_markdown(report: Report) -> str:
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
    lines += _md_verdict(report)
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
    titles, rows = _used_columns(RAIL_TITLES, _rail_rows(report))
    lines += ["## Rails", "", *_md_table(titles, rows, code=("Network",))]
    if len(report.profiles) > 1 or list(report.profiles) != [DECLARED]:
        lines += ["## Interface names", ""]
        profiles = [
            (name, len(nodes), ", ".join(nodes[0].interfaces) if nodes else "")
            for name, nodes in report.profiles.items()
        ]
        lines += _md_table(("Profile", "Nodes", "Interfaces, by rail"), profiles)
    lines += _md_nodes(report)
    return "\n".join(lines).rstrip("\n") + "\n"


# --- HTML -------------------------------------------------------------------------------------------------------------


def e(value: t.Any) -> str:
    """Escape text for HTML, in elements and in quoted attributes."""
    return html.escape(str(value), quote=True)


def embedded(value: t.Any) -> str:
    """Return JSON that cannot end the script element it stands in."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def hue(rail: int, rails: int) -> int:
    """Return a rail's colour as an angle; neighbours are told apart."""
    return (212 + rail * 360 // max(rails, 1)) % 360


def _tiles(report: Report) -> str:
    plan = report.plan
    tiles = [
        (f"{len(plan.nodes):,}", f"of {report.slots:,} slots are nodes"),
        (f"{report.free:,}", "more nodes still fit" if report.free != 1 else "more node still fits"),
        (f"{len(plan.fabric.rails):,}", "rails"),
        (f"{report.pods:,}", "pod addresses per node and rail"),
        (f"{report.pools:,}", "pools in the cluster"),
    ]
    if report.retired:
        tiles.insert(2, (f"{report.retired:,}", "retired slots"))
    if len(report.zones) > 1:
        tiles.insert(2, (f"{len(report.zones):,}", "zones"))
    items = "".join(f"<li><b>{e(number)}</b><span>{e(label)}</span></li>" for number, label in tiles)
    return f'<ul class="tiles">{items}</ul>'


def _short(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are HTML already."""
    head = "".join(f"<th>{e(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{value}</td>" for value in row) + "</tr>" for row in rows)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _section(title: str, note: str, body: str, kind: str = "") -> str:
    told = f'<p class="note">{e(note)}</p>' if note else ""
    return f'<section class="{kind}"><h2>{e(title)}</h2>{told}{body}</section>\n'


def _bar(zone: ZoneFacts) -> str:
    used = 100 * zone.used / zone.zone.max_nodes
    gone = 100 * zone.retired / zone.zone.max_nodes
    label = f"{zone.used} used, {zone.retired} retired, {zone.free} free"
    return (
        f'<div class="bar" role="img" aria-label="{e(label)}"><i class="used" style="width:{used:.2f}%"></i>'
        f'<i class="gone" style="width:{gone:.2f}%"></i></div>'
    )


def _zones_html(report: Report) -> str:
    rows = []
    for zone in report.zones:
        nets = " ".join(f"<code>{e(prefix)}</code>" for prefix in zone.zone.supernets)
        numbers = (zone.used, zone.retired, zone.free, zone.zone.max_nodes)
        name = e(zone.zone.name) or "the whole fabric"
        rows.append([name, e(zone.zone.group), nets, _bar(zone), *(f"{number:,}" for number in numbers)])
    titles = ("Zone", "Group", "Supernets", "Slots in use", "Used", "Retired", "Still fit", "Slots")
    space = "".join(_space(item, len(report.plan.fabric.rails)) for item in report.supernets)
    note = "Slots are reserved from day one: a subnet can never change in Spiderpool, so growth only fills free slots."
    return _section("Capacity", note, _table(titles, rows) + space, "keep")


def _space(item: SupernetFacts, rails: int) -> str:
    """Return a supernet as a bar: where the rails' networks lie in it."""
    parts = []
    for rail, prefix in item.parts:
        left = 1000 * (prefix.first - item.prefix.first) / item.prefix.size
        width = max(1.5, 1000 * prefix.size / item.prefix.size - 0.6)
        parts.append(
            f'<rect class="part" style="--h:{hue(rail, rails)}" x="{left:.2f}" width="{width:.2f}" height="18">'
            f"<title>{e(prefix)}</title></rect>"
        )
    more = f"; room for {count(item.more, 'more rail')} of this size" if item.more else ""
    zone = f" ({e(item.zone)})" if item.zone else ""
    share = f"{item.used:.1%}" if item.used >= 0.001 else "less than 0.1%"
    return (
        f"<figure><figcaption><b><code>{e(item.prefix)}</code></b>{zone}: {share} is given to rails{e(more)}"
        "</figcaption>"
        '<svg class="bars" viewBox="0 0 1000 18" width="1000" role="img" aria-label="Address space">'
        f'<rect class="space" width="1000" height="18" rx="4"/>{"".join(parts)}</svg></figure>'
    )


LEAF_WIDTH = 148


def _drawing(report: Report, index: int) -> str:
    """Draw one zone: its leaves, its rails, its nodes."""
    plan, zone = report.plan, report.zones[index]
    rails = plan.fabric.rails
    width = LEAF_WIDTH * max(len(rails), 3)
    step = width / len(rails)
    single = len(zone.zone.leaves) == 1
    parts = []
    if single:
        parts.append(
            f'<rect class="one" x="4" y="4" width="{width - 8}" height="34" rx="6"/>'
            f'<text x="{width / 2}" y="26" text-anchor="middle">{e(_short(zone.zone.leaves[0], 80))}</text>'
        )
    for number in range(len(rails)):
        parts.append(_drawn_rail(report, index, number, (number + 0.5) * step, step, not single))
    stack = min(zone.used, 3)
    top = 176
    for offset in range(max(stack, 1) - 1, -1, -1):
        shift = offset * 5
        parts.append(f'<rect class="node" x="{4 + shift}" y="{top - shift}" width="{width - 18}" height="52" rx="6"/>')
    nodes = plan.nodes_of(index)
    told = "no node yet"
    if len(nodes) == 1:
        told = nodes[0].name
    elif nodes:
        told = f"{_short(nodes[0].name, 34)} … {_short(nodes[-1].name, 34)}"
    summary = f"{told}: {count(zone.used, 'node')}, {zone.free:,} more fit"
    parts.append(f'<text x="{width / 2 - 5}" y="{top + 40}" text-anchor="middle">{e(summary)}</text>')
    for number in range(len(rails)):
        x = (number + 0.5) * step
        port = _short(nodes[0].interfaces[number] if nodes else rails[number].interface, 16)
        parts.append(
            f'<rect class="port" style="--h:{hue(number, len(rails))}" x="{x - 6}" y="{top - 6}" width="12" '
            f'height="12" rx="2"/><text class="small" x="{x}" y="{top + 20}" text-anchor="middle">{e(port)}</text>'
        )
    kind = ' class="fixed"' if width > 1240 else ""
    caption = f"<figcaption><b>{e(zone.zone.name)}</b></figcaption>" if zone.zone.name else ""
    label = f"Leaves and rails {zone.zone.name}".strip()
    return (
        f'<figure>{caption}<svg{kind} viewBox="0 0 {width} 236" width="{width}" role="img" aria-label="{e(label)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def _drawn_rail(report: Report, zone: int, number: int, x: float, step: float, leaf: bool) -> str:
    """Draw one rail: leaf, networks, link, name and state."""
    plan = report.plan
    rail, colour = plan.fabric.rails[number], hue(number, len(plan.fabric.rails))
    style = f'style="--h:{colour}"'
    limit = int((step - 20) / 6.8)
    parts = []
    nets = [str(block.aggregate) for block in plan.blocks if block.zone == zone and block.rail == number]
    top = 38
    if leaf:
        name = plan.fabric.zones[zone].leaf(number) or f"leaf of {rail.name}"
        height = 26 + 15 * max(len(nets), 1)
        top = height + 4
        parts.append(
            f'<rect class="leaf" {style} x="{x - step / 2 + 4}" y="4" width="{step - 8}" height="{height}" rx="6"/>'
            f'<text x="{x}" y="23" text-anchor="middle">{e(_short(name, limit + 1))}<title>{e(name)}</title></text>'
        )
        for line, net in enumerate(nets):
            parts.append(f'<text class="small" x="{x}" y="{40 + 15 * line}" text-anchor="middle">{e(net)}</text>')
    state = report.rail_states[number] if report.rail_states else ""
    kind = f" state-{state}" if state else ""
    parts.append(f'<path class="link{kind}" {style} d="M{x} {top}V170"/>')
    label = f"{SIGNS[state]} {rail.name}" if state else rail.name
    text = _short(label, limit)
    box = 7.4 * len(text) + 10
    sign = f' class="sign-{state}"' if state else ""
    parts.append(
        f'<rect class="tag" x="{x - box / 2}" y="112" width="{box}" height="20" rx="4"/>'
        f'<text{sign} x="{x}" y="127" text-anchor="middle">{e(text)}</text>'
    )
    if not leaf:
        for line, net in enumerate(nets):
            parts.append(
                f'<rect class="tag" x="{x - 62}" y="{52 + 16 * line}" width="124" height="16"/>'
                f'<text class="small" x="{x}" y="{64 + 16 * line}" text-anchor="middle">{e(net)}</text>'
            )
    return "".join(parts)


def _drawings(report: Report) -> str:
    body = "".join(_drawing(report, index) for index in range(min(len(report.zones), DRAWN_ZONES)))
    if len(report.zones) > DRAWN_ZONES:
        body += f'<p class="note">{count(len(report.zones) - DRAWN_ZONES, "more zone")} of the same kind.</p>'
    note = (
        "Every rail is the same position of every node, cabled to its leaf; the leaf announces the network in its box."
    )
    if report.rail_states:
        note += (
            " A solid green link is as planned on every host, a broken red one deviates on some, a dotted grey one was "
        )
        note += "not looked at everywhere."
    return _section("Zones, leaves and rails", note, body)


def _rails_html(report: Report) -> str:
    titles, rows = _used_columns(RAIL_TITLES, _rail_rows(report))
    marked = {"Interface", "Resource", "Network", "Gateway"}
    number, shown = -1, []
    for row in rows:
        cells = []
        for title, value in zip(titles, row):
            if title == "":
                number_state = report.rail_states[number + 1] if value else ""
                cells.append(f'<b class="{number_state}">{e(value)}</b>' if value else "")
            elif title == "Rail" and value:
                number += 1
                dot = f'<span class="dot" style="--h:{hue(number, len(report.plan.fabric.rails))}"></span>'
                cells.append(f"{dot}{e(value)}")
            else:
                cells.append(f"<code>{e(value)}</code>" if title in marked and value else e(value))
        shown.append(cells)
    nets = ", ".join(str(prefix) for prefix in report.rdma)
    note = f"Traffic to {nets} leaves through the rail of its source address." if nets else ""
    return _section("Rails", note, _table(titles, shown))


def _verdict_html(report: Report) -> str:
    if not report.verdict:
        return ""
    hosts = report.verdict.get("hosts", {})
    tally: dict[str, int] = {}
    for entry in hosts.values():
        tally[str(entry.get("status"))] = tally.get(str(entry.get("status")), 0) + 1
    told = ", ".join(f"{number:,} {status}" for status, number in sorted(tally.items())) or "none"
    cluster = str((report.verdict.get("cluster") or {}).get("status", "skipped"))
    note = f"Hosts: {told}. Cluster: {cluster}."
    if not report.findings:
        return _section("Verification", note, '<p class="ok">Everything that was looked at is as planned.</p>')
    rows = [
        [
            f"<b>{e(item.host)}</b>",
            e(item.rail),
            f'<span class="{e(item.status)}">{e(item.check or item.status)}</span>',
            f"<span class=mono>{e(_short(item.planned, 60))}</span>",
            f"<span class=mono>{e(_short(item.observed, 60))}</span>",
            e(item.cause),
            e(item.fix),
        ]
        for item in report.findings[:SHOWN_FINDINGS]
    ]
    body = _table(("Host", "Rail", "Check", "Planned", "Observed", "Cause", "Fix"), rows)
    if len(report.findings) > SHOWN_FINDINGS:
        body += f'<p class="note">{len(report.findings) - SHOWN_FINDINGS:,} more are in verdict.json.</p>'
    return _section("Verification", note, body)


def _profiles_html(report: Report) -> str:
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
    note = "Nodes name their interfaces in several ways. A pod's injection value fits the nodes of one profile."
    return _section("Interface names", note, _table(("Profile", "Nodes", "Interfaces, by rail", "Nodes' names"), rows))


def _nodes_html(report: Report) -> str:
    only = ""
    if report.verdict:
        only = '<label><input type="checkbox" id="only"> only nodes with deviations</label>'
    total = count(len(report.plan.nodes), "node")
    note = "Type a part of a name, or any address to learn whose it is. A row opens to all addresses of the node."
    return (
        f'<section id="nodes"><h2>Nodes</h2><p class="note screen">{e(note)}</p>'
        "<noscript><p>The table needs JavaScript; report.md and the files in hosts/ have the same numbers.</p>"
        "</noscript>"
        '<div class="find"><input type="search" id="search" placeholder="node12, 172.17.0.35 or a zone" '
        f'aria-label="Search nodes and addresses" autocomplete="off" spellcheck="false">{only}'
        f'<span class="sub" id="count" role="status">{e(total)}</span></div>'
        '<p class="answer" id="answer" role="status"></p><div class="detail" id="detail"></div>'
        f'<p class="paper note">{e(total)}. More than 300 are not printed: filter them on the screen first, or see '
        'hosts/.</p><div class="grid" id="grid" tabindex="0"><div class="head" id="head"></div>'
        '<div class="body" id="rows"></div></div></section>\n'
    )


def _warnings_html(report: Report) -> str:
    if not report.warnings:
        return ""
    items = "".join(f"<li>{e(text)}</li>" for text in report.warnings)
    return f'<section class="warnings"><h2>Warnings</h2><ul>{items}</ul></section>\n'


def render_html(report: Report) -> str:
    """Return report.html."""
    plan = report.plan
    chip = ""
    if report.verdict:
        chip = f'<span class="chip {e(report.status)}">verification: {e(report.status)}</span>'
    sections = (
        _warnings_html(report),
        _verdict_html(report),
        _drawings(report),
        _zones_html(report),
        _rails_html(report),
        _profiles_html(report),
        _nodes_html(report),
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Fabric {e(plan.fabric.name)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f'<header><div><h1>{e(plan.fabric.name)}</h1><div class="sub">{e(subtitle(plan))}</div></div>{chip}</header>\n'
        f"{_tiles(report)}\n{''.join(sections)}"
        "<footer>Made by railops.rdma from the plan beside this file. It asks no network for anything.</footer>\n"
        f'</main>\n<script type="application/json" id="data">{embedded(table_data(report))}</script>\n'
        f"<script>{SCRIPT}</script>\n</body>\n</html>\n"
    )


def render_report(plan: Plan, verdict: Mapping[str, t.Any] | None = None) -> dict[str, str]:
    """Return report.md and report.html: name -> text. With a verdict they also show how rails and nodes stand."""
    report = collect(plan, verdict)
    return {"report.md": render_markdown(report), "report.html": render_html(report)}
