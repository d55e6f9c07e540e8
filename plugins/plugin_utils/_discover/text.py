# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A proposal as an inventory, and as a report for a person. Pure."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from .plan import Proposal


def inventory(proposal: Proposal, group: str) -> dict[str, t.Any]:
    """Return the proposal as an inventory: variables of the group, and of the hosts that differ."""
    rails = []
    for rail in proposal.rails:
        entry: dict[str, t.Any] = {"name": rail.name, "interface": rail.interface}
        if rail.gpu is not None:
            entry["gpu"] = rail.gpu
        rails.append(entry)
    body: dict[str, t.Any] = {"vars": {"fabric_network": proposal.network, "fabric_rails": rails}}
    if proposal.interfaces:
        body["hosts"] = {host: {"fabric_interfaces": names} for host, names in proposal.interfaces.items()}
    return {group: body}


def cables(proposal: Proposal, group: str) -> dict[str, t.Any] | None:
    """Return the leaf and port of every cable that was seen, as an inventory; None when none was."""
    names = [rail.name for rail in proposal.rails]
    hosts = {
        host: {
            "fabric_cables": {
                name: {"leaf": nic.switch, **({"port": nic.switch_port} if nic.switch_port else {})}
                for name, nic in zip(names, nics, strict=True)
                if nic and nic.switch
            }
        }
        for host, nics in proposal.nics.items()
    }
    seen = {host: found for host, found in hosts.items() if found["fabric_cables"]}
    return {group: {"hosts": seen}} if seen else None


def report(proposal: Proposal) -> str:
    """Return the proposal for a reader."""
    lines = [
        "# What is wired",
        "",
        f"{len(proposal.nics)} hosts answered; {len(proposal.rails)} rails; network {proposal.network}.",
        "",
        "| rail | interface | GPU | PCI address, where all have the same | switches |",
        "| --- | --- | --- | --- | --- |",
    ]
    for rail in proposal.rails:
        gpu = "" if rail.gpu is None else str(rail.gpu)
        lines.append(f"| {rail.name} | {rail.interface} | {gpu} | {rail.pci or ''} | {', '.join(rail.switches)} |")
    lines += ["", "## Hosts that need a look", ""]
    if proposal.findings:
        lines += ["| host | rail | what | seen | to do |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {item.host} | {item.rail or ''} | {item.kind} | {item.text} | {item.fix} |"
            for item in proposal.findings
        ]
    else:
        lines.append("None: all hosts are alike.")
    if proposal.interfaces:
        lines += [
            "",
            "## Hosts whose interfaces have other names",
            "",
            "| host | rail | interface |",
            "| --- | --- | --- |",
        ]
        lines += [
            f"| {host} | {rail} | {name} |"
            for host, names in proposal.interfaces.items()
            for rail, name in names.items()
        ]
    return "\n".join(lines) + "\n"
