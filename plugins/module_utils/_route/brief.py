# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""A host's links and addresses as far as `ip` tells them: what a plan can be held against before pyroute2 is there."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from .._fabric.numbers import MANAGER, PRIORITIES, TABLES
from .devices import link_kind, standing
from .model import PROTOCOL, Address, Host, Link, Rule, Snapshot

if t.TYPE_CHECKING:
    from .._files import Sysfs
    from .._untouchable import Json, Untouchable
    from .want import Want


def host_of(want: Want, kept: Untouchable, sysfs: Sysfs) -> Host:
    """Return the host as `ip` told it; without routes, and with the settings of /proc/sys taken as they are wanted.

    :param kept: with what `ip` said of the host.
    """
    called = {
        name: link["ifname"] for link in kept.links.values() for name in (link["ifname"], *link.get("altnames", ()))
    }
    names = {rail.device: rail.device for rail in want.rails if rail.vlan}
    for rail in want.rails:
        at = sysfs.pci_interfaces(rail.pci) if rail.pci else []
        names[rail.asked] = called.get(rail.interface) or next(iter(at), rail.interface)
    asked = {*names.values()}
    ours = {name: link for name, link in kept.links.items() if name in asked or link.get("ifalias") == MANAGER}
    links = {name: _link(link, sysfs) for name, link in ours.items()}
    links.update(standing(want, {text: links[name] for text, name in names.items() if name in links}))
    addresses = frozenset(_address(name, item) for name, item in kept.held)
    rules = frozenset(
        Rule(4 if "." in rule["src"] else 6, rule["priority"], int(rule["table"]), f"{rule['src']}/{_length(rule)}")
        for _links, _held, rules in kept.seen
        for rule in rules
        if rule.get("priority") in PRIORITIES and str(rule.get("table")) in map(str, TABLES) and "src" in rule
    )
    return Host(
        snapshot=Snapshot(links, addresses, frozenset(), rules, dict(want.sysctls)),
        planned=frozenset(item.address for rail in want.rails for item in rail.addresses),
        names=names,
        addresses=addresses,
        untouchable=kept,
    )


def _link(link: Json, sysfs: Sysfs) -> Link:
    name = link["ifname"]
    vlan = re.search(r"VID: (\d+)", sysfs.text(f"/proc/net/vlan/{name}") or "")
    return Link(
        name=name,
        mtu=link.get("mtu", 0),
        index=link.get("ifindex", 0),
        up="UP" in link.get("flags", ()),
        kind="infiniband" if link.get("link_type") == "infiniband" else "ethernet",
        mode=sysfs.text(f"/sys/class/net/{name}/mode") or "",
        master=link.get("master", ""),
        parent=link.get("link", ""),
        vlan=int(vlan[1]) if vlan else 0,
        ours=link.get("ifalias") == MANAGER,
        made=link_kind(name),
    )


def _length(rule: Json) -> int:
    return int(rule.get("srclen", ipaddress.ip_address(rule["src"]).max_prefixlen))


def _address(interface: str, item: Json) -> Address:
    address = ipaddress.ip_address(item["local"])
    made = str(item.get("protocol", ""))
    return Address(
        interface,
        address.version,
        str(address),
        item.get("prefixlen", address.max_prefixlen),
        protocol=PROTOCOL if made in (str(PROTOCOL), "railops") else 0,
    )
