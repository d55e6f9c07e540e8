# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-networkd: one .network file a rail, and a .netdev file for its VLAN. Format: systemd.network(5)."""

from __future__ import annotations

import re
import typing as t
from functools import partial

from .._route.model import MAIN_TABLE, SCOPE_LINK, Route, Rule
from .._systemd import FOLDERS, Pairs, Section, effective, fits, named, sections
from .model import HEADER, PUBLIC, File, Manager, Port, Profile, anywhere

if t.TYPE_CHECKING:
    from .._route.route_options import RailOptions
    from .machine import RootedHost

FOLDER = FOLDERS[0]
# The first file by name that matches is used: ours sorts before 00-*.
MANAGED = f"{FOLDER}/0-railops-{{}}.network"
OWN = re.compile(r"^0-railops-.+\.(network(\.d)?|netdev)$")
# networkd creates a stacked interface only when the file of its lower device lists it.
STACKED = ("VLAN", "Bridge", "Bond", "VRF", "MACVLAN", "MACVTAP", "IPVLAN", "IPVTAP", "VXLAN", "Tunnel", "Xfrm")
# Settings that our files omit without a loss: when the boot is done, DHCP's requests, and networkd's defaults.
ASIDE = {"Match", "Link", "Network", "DHCP", "DHCPv4", "DHCPv6", "IPv6AcceptRA"}
HARMLESS = {"RequiredForOnline", "RequiredFamilyForOnline", "Description", "DHCP"}
HARMLESS |= {"ConfigureWithoutCarrier", "IgnoreCarrierLoss"}
USUAL = {"LinkLocalAddressing=ipv6", "ActivationPolicy=up", "Unmanaged=no"}
SAME = {"true": "yes", "on": "yes", "1": "yes", "false": "no", "off": "no", "0": "no"}
SHAPES = {"Address": "address {1}", "Gateway": "route 0.0.0.0/0 gateway {1}", "MTUBytes": "MTU {1}"}
# Without these lines networkd removes unmanaged entries, CNI rules included, at each restart (systemd 248 and later).
TEXT = f"{HEADER}[Network]\nManageForeignRoutingPolicyRules=no\nManageForeignRoutes=no\n"
KEEP_FOREIGN = File("/etc/systemd/networkd.conf.d/90-railops.conf", TEXT, PUBLIC)


class Networkd(Manager):
    """systemd-networkd."""

    owned = ((FOLDER, OWN),)
    folders = FOLDERS
    yields = "Rename it so that it sorts after {path}, or leave {port} out of its [Match]"
    keeps = "Move it to {path}.d/NAME.conf, which is not managed"
    shared_files = (KEEP_FOREIGN,)

    def manages(self, host: RootedHost) -> bool:
        """Whether it has links, or will be started."""
        return host.is_folder("/run/systemd/netif/links") or host.enabled("systemd-networkd")

    def files(
        self, rail: RailOptions, port: str, interface: str, routes: list[Route], rules: list[Rule], *, infiniband: bool
    ) -> t.Iterable[File]:
        """Yield the rail's files.

        :param port: the interface's name, and `interface` that of its VLAN, or the same.
        :param infiniband: whether the rail is IP over InfiniBand.
        """
        mtu = f"MTUBytes={rail.mtu}\n" if rail.mtu is not None else ""

        def network(name: str) -> str:
            text = f"{HEADER}[Match]\nName={name}\n\n[Link]\nRequiredForOnline=no\n{mtu}\n[Network]\n"
            return text + "DHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nIgnoreCarrierLoss=yes\n"

        if rail.vlan:
            made = f"{HEADER}[NetDev]\nName={interface}\nKind=vlan\n{mtu}\n[VLAN]\nId={rail.vlan}\n"
            yield File(f"{FOLDER}/0-railops-{interface}.netdev", made, PUBLIC, rail.name)
            below = f"{network(port)}LinkLocalAddressing=no\nVLAN={interface}\n"
            yield File(MANAGED.format(port), below, PUBLIC, rail.name)
        text = network(interface)
        if infiniband:
            text += f"\n[IPoIB]\nMode={rail.ipoib_mode}\n"
        for item in rail.addresses:
            text += f"\n[Address]\nAddress={item.address}/{item.length}\n"
            if item.family == 6:
                text += "DuplicateAddressDetection=none\n"
        for route in routes:
            text += f"\n[Route]\nDestination={anywhere(route)}\n"
            text += f"Gateway={route.gateway}\n" if route.gateway else ""
            text += "Scope=link\n" if route.scope == SCOPE_LINK else ""
            text += f"PreferredSource={route.source}\n" if route.source else ""
            text += f"Table={route.table}\n" if route.table != MAIN_TABLE else ""
            text += f"Metric={route.metric}\n" if route.metric and route.table == MAIN_TABLE else ""
        text += "".join(rule_section(rule) for rule in rules)
        yield File(MANAGED.format(interface), text, PUBLIC, rail.name)


def profiles(texts: t.Mapping[str, str]) -> t.Iterator[Profile]:
    """Yield what networkd will make of these files; systemd.network(5)."""
    there = named(texts, FOLDERS)
    for name, path in there.items():
        kind = name.rpartition(".")[2]
        extras = [texts[other] for more, other in there.items() if more.startswith(f"{name}.d/") and kind == "network"]
        rows = sections("\n".join([texts[path], *extras]))
        match = partial(_matches, effective(rows, "Match"))
        if kind == "network":
            yield Profile(path, "networkd", name, match, *_holds(rows))
        elif kind == "link":
            pairs = [pair for section, pairs in rows if section == "Link" for pair in pairs]
            holds = frozenset("=".join(pair) for pair in pairs if pair[0] != "MTUBytes")
            yield Profile(path, "udev", name, match, holds, False)


def _matches(match: Pairs, port: Port) -> bool:
    """Whether a [Match] is met; what it asks beside the interface (its host, say) counts as met."""
    has = {
        "Name": {port.name, *port.altnames},
        "OriginalName": {port.name},
        "MACAddress": {port.mac},
        "PermanentMACAddress": {port.permanent},
        "Path": {port.path},
        "Driver": {port.driver},
        "Type": {port.kind if port.kind in ("vlan", "bridge", "bond") else port.type},
        "Kind": {port.kind},
    }
    return bool(match) and fits(match, has) is not False


def _holds(rows: list[Section]) -> tuple[frozenset[str], bool]:
    own = effective(rows, "Link", "Network")
    once = dict(own)
    words = {word for section, pairs in rows if section not in ASIDE for word in _words(section, dict(pairs))}
    for key, value in own:
        several = value.split() if key in STACKED else [value]
        shape = "{} {}" if key in STACKED else SHAPES.get(key, "{}={}")
        words |= {shape.format(key, SAME.get(word.lower(), word)) for word in several if key not in HARMLESS}
    words -= {f"MTU {value}" for key, value in own if key == "MTUBytes" and value != once[key]}
    return frozenset(words - USUAL), once.get("DHCP", "no").lower() not in ("no", "false", "none", "off", "0")


def _words(section: str, have: dict[str, str]) -> list[str]:
    """Return what a section that may be there several times says."""
    if section == "Address":
        own = f"address {have.pop('Address', '')}"
        return [own, *(f"{own} {key}={value}" for key, value in have.items())]
    if section == "Route":
        where = have.pop("Destination", "") or "0.0.0.0/0"
        keys = sorted(have, key=lambda key: (key not in ("Gateway", "Table"), key))
        return [" ".join(["route", where, *(f"{key.lower()} {have[key]}" for key in keys)])]
    if section == "RoutingPolicyRule":
        return [" ".join(["rule", *(f"{key.lower()} {have[key]}" for key in sorted(have))])]
    return [" ".join([f"[{section}]", *(f"{key}={value}" for key, value in have.items())])]


def rule_section(rule: Rule) -> str:
    """Return a rule as networkd reads it."""
    text = f"\n[RoutingPolicyRule]\nPriority={rule.priority}\nTable={rule.table}\n"
    text += f"From={rule.source}\n" if rule.source else ""
    text += f"To={rule.dest}\n" if rule.dest else ""
    return text + ("InvertRule=yes\n" if rule.invert else "")
