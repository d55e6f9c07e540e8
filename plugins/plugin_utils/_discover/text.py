# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A proposal as an inventory, and as a report for a person. Pure."""

from __future__ import annotations

import typing as t

import yaml

from .._report.table import md_table
from .plan import Proposal


class Label(str):
    """Text of a host or a leaf: in YAML it is `!unsafe`, so that Ansible never takes it for a template."""


_Dumper: t.Any = type("_Dumper", (yaml.SafeDumper,), {})
_Dumper.add_representer(Label, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text), style="'"))
# Ansible's strings carry tags that YAML cannot represent.
_Dumper.add_multi_representer(str, lambda dumper, text: dumper.represent_str(str(text)))


def as_yaml(data: dict[str, t.Any]) -> str:
    """Return an inventory as YAML."""
    return str(yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=120))


def inventory(proposal: Proposal, group: str) -> dict[str, t.Any]:
    """Return the proposal as an inventory: variables that localhost reads too, and those of the hosts that differ."""
    rails = [
        {"name": rail.name, "interface": Label(rail.interface), **({} if rail.gpu is None else {"gpu": rail.gpu})}
        for rail in proposal.rails
    ]
    hosts = {
        host: {"fabric_interfaces": {rail: Label(name) for rail, name in names.items()}}
        for host, names in proposal.interfaces.items()
    }
    made = {"all": {"vars": {"fabric_network": proposal.network, "fabric_rails": rails}}}
    return {**made, group: {"hosts": hosts}} if hosts else made


def cables(proposal: Proposal, group: str) -> dict[str, t.Any] | None:
    """Return the leaf and port of every cable that was seen, as an inventory; None when none was."""
    names = [rail.name for rail in proposal.rails]
    hosts = {
        host: {
            "fabric_cables": {
                name: {"leaf": Label(nic.switch), **({"port": Label(nic.switch_port)} if nic.switch_port else {})}
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
    rails = [
        (rail.name, rail.interface, "" if rail.gpu is None else rail.gpu, rail.pci or "", ", ".join(rail.switches))
        for rail in proposal.rails
    ]
    lines = [
        "# Discovered cabling",
        "",
        f"{len(proposal.nics)} hosts answered; {len(proposal.rails)} rails; network {proposal.network}.",
        "",
        *md_table(("rail", "interface", "GPU", "PCI address, where all have the same", "switches"), rails),
        "## Hosts to check",
        "",
    ]
    if proposal.findings:
        rows = [(item.host, item.rail or "", item.kind, item.text, item.fix) for item in proposal.findings]
        lines += md_table(("host", "rail", "what", "seen", "to do"), rows)
    else:
        lines += ["None: all hosts are equal.", ""]
    if proposal.interfaces:
        others = [(host, *pair) for host, names in proposal.interfaces.items() for pair in names.items()]
        lines += ["## Hosts with other interface names", "", *md_table(("host", "rail", "interface"), others)]
    return "\n".join(lines)
