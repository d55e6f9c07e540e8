# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the host network of the rails as files of the host's own network manager.

The same rules and routes as the live change makes (_route_plan), one owned file per interface. No files are touched
here: everything is text. Formats: netplan(5), systemd.network(5), nm-settings-keyfile(5), sysctl.d(5).
"""

from __future__ import annotations

import json
import re
import typing as t
import uuid
from dataclasses import dataclass

from .._errors import RdmaError
from .._fabric.numbers import vlan_interface
from .._route.model import DEFAULT, MAIN_TABLE, PROTOCOL, SCOPE_LINK, Route, Rule
from .._route.plan import IPOIB_DATAGRAM_MTU, guards, rail_routes, rail_rule

if t.TYPE_CHECKING:
    from collections.abc import Iterable

    from .._route.want import Want, WantRail

HEADER = "# Managed by Ansible: railops.rdma.rail_persist. The whole file is replaced; change the plan instead.\n"
NETPLAN, NETWORKD, NETWORKMANAGER, IFUPDOWN = "netplan", "networkd", "networkmanager", "ifupdown"
MANAGERS = (NETPLAN, NETWORKMANAGER, NETWORKD)
SYSCTL_FILE = "/etc/sysctl.d/90-railops-rails.conf"
PROTOCOL_FILE = "/etc/iproute2/rt_protos.d/railops.conf"
NETWORKD_FILE = "/etc/systemd/networkd.conf.d/90-railops.conf"
NETPLAN_FOLDER = "/etc/netplan"
NETWORKD_FOLDER = "/etc/systemd/network"
KEYFILE_FOLDER = "/etc/NetworkManager/system-connections"
# Everything that any version of this module has written: what is not wanted of it goes.
OWNED = (
    (NETPLAN_FOLDER, re.compile(r"^90-railops-.+\.yaml$")),
    (NETWORKD_FOLDER, re.compile(r"^05-railops-.+\.(network|netdev)$")),
    (NETWORKD_FOLDER, re.compile(r"^10-netplan-.+\.network\.d/90-railops\.conf$")),
    (KEYFILE_FOLDER, re.compile(r"^railops-.+\.nmconnection$")),
)
SINGLE = (SYSCTL_FILE, PROTOCOL_FILE, NETWORKD_FILE)
PRIVATE = 0o600
PUBLIC = 0o644
# For the names of NetworkManager's profiles, which are UUIDs: the same interface has the same one on every run.
NAMESPACE = uuid.UUID("5d1ce7a1-9c5f-4d0b-8f0b-7261696c6f70")
# networkd drops what it did not make, CNI rules included, at every restart unless told not to (systemd 248 and later).
NETWORKD_TEXT = f"{HEADER}[Network]\nManageForeignRoutingPolicyRules=no\nManageForeignRoutes=no\n"
PROTOCOL_TEXT = f"{HEADER}{PROTOCOL}\trailops\n"


@dataclass(frozen=True)
class File:
    """A file as it shall be; `rail` names the rail that it belongs to, or is empty."""

    path: str
    text: str
    mode: int
    rail: str = ""


@dataclass(frozen=True)
class Found:
    """What of a host tells who manages its network."""

    netplan_tool: bool = False
    netplan_files: bool = False
    netplan_networkmanager: bool = False
    networkmanager: bool = False
    networkd: bool = False
    ifupdown_interfaces: tuple[str, ...] = ()


def manager_of(found: Found) -> str:
    """Return which of MANAGERS manages the host; raise when none does that this module can write for.

    netplan comes first: where it is used, the others only read what it generates.
    """
    if found.netplan_tool and found.netplan_files:
        return NETPLAN
    if found.networkmanager:
        return NETWORKMANAGER
    if found.networkd:
        return NETWORKD
    if found.ifupdown_interfaces:
        raise RdmaError(
            "This host's network is managed by ifupdown (/etc/network/interfaces), which has no policy rules.",
            "Move the host to systemd-networkd, NetworkManager or netplan, or run rail_network with"
            " rail_network_persist: false and at every boot.",
            manager=IFUPDOWN,
        )
    if found.netplan_tool:
        return NETPLAN
    raise RdmaError(
        "Nothing on this host manages its network: neither netplan, NetworkManager nor systemd-networkd is in use.",
        "Install and enable one of them, or name it with the option manager.",
        manager="",
    )


def interfaces_of(text: str) -> tuple[str, ...]:
    """Return the interfaces that an ifupdown file configures, without the loopback."""
    found = re.findall(r"^\s*iface\s+(\S+)\s+", text, re.MULTILINE)
    return tuple(dict.fromkeys(name for name in found if name != "lo"))


def files_of(want: Want, names: dict[str, str], manager: str) -> tuple[File, ...]:
    """Return all files that the wanted state needs.

    :param names: the interface name of each rail.
    :param manager: one of MANAGERS.
    """
    files: list[File] = []
    for number, rail in enumerate(want.rails):
        port = names[rail.name]
        interface = vlan_interface(port, rail.vlan)
        # The guards belong to no rail, and a manager knows only interfaces: the first rail's file has them.
        rules = [*_rules(want, rail), *(guards(want) if number == 0 and want.network != "infiniband" else ())]
        routes = _routes(want, rail, interface)
        if manager == NETPLAN:
            files += _netplan(rail, port, interface, routes, rules)
        elif manager == NETWORKD:
            files += _networkd(rail, port, interface, routes, rules)
        else:
            files += _keyfiles(rail, port, interface, routes, rules, want.network == "infiniband")
    if manager in (NETPLAN, NETWORKD):
        files.append(File(NETWORKD_FILE, NETWORKD_TEXT, PUBLIC))
    files.append(File(PROTOCOL_FILE, PROTOCOL_TEXT, PUBLIC))
    settings = _sysctls(want, names, manager)
    if settings:
        lines = "".join(f"{key} = {value}\n" for key, value in sorted(settings.items()))
        files.append(File(SYSCTL_FILE, HEADER + lines, PUBLIC))
    return tuple(sorted(files, key=lambda file: file.path))


def owned(path: str) -> bool:
    """Whether a path is one of this module's files."""
    folders = any(path.startswith(f"{folder}/") and name.match(path[len(folder) + 1 :]) for folder, name in OWNED)
    return path in SINGLE or folders


def _routes(want: Want, rail: WantRail, interface: str) -> list[Route]:
    if want.network == "infiniband":
        return []
    return [route for item in rail.addresses for route in rail_routes(want, rail, item, interface)]


def _rules(want: Want, rail: WantRail) -> list[Rule]:
    return [] if want.network == "infiniband" else [rail_rule(rail, item) for item in rail.addresses]


def _sysctls(want: Want, names: dict[str, str], manager: str) -> dict[str, str]:
    """Return the planned settings, and no duplicate address detection where a rail has IPv6.

    netplan has no setting for it per address, and without carrier it never ends. NetworkManager waits for the carrier
    and for the end of the detection. Without one it takes the kernel's refusal of a route from an address that was
    tentative for a moment as final, and leaves the route out (seen with 1.42).
    """
    if manager == NETWORKMANAGER:
        return dict(want.sysctls)
    six = [rail for rail in want.rails if any(item.family == 6 for item in rail.addresses)]
    dad = {f"net/ipv6/conf/{vlan_interface(names[rail.name], rail.vlan)}/accept_dad": "0" for rail in six}
    return {**dad, **dict(want.sysctls)}


def _text(value: t.Any) -> str:
    """Quote a value for YAML: JSON is YAML."""
    return json.dumps(value)


def _any(route: Route) -> str:
    """Return the destination as netplan and networkd of every age understand it."""
    if route.dst != DEFAULT:
        return route.dst
    return "0.0.0.0/0" if route.family == 4 else "::/0"


# --- netplan ----------------------------------------------------------------------------------------------------------


def _netplan(rail: WantRail, port: str, interface: str, routes: list[Route], rules: list[Rule]) -> Iterable[File]:
    # A rail without a cable must not delay the boot, and has its configuration nevertheless.
    plain = ["      dhcp4: false\n      dhcp6: false\n      accept-ra: false\n"]
    plain += ["      optional: true\n      ignore-carrier: true\n"]
    plain += [f"      mtu: {rail.mtu}\n"] if rail.mtu is not None else []
    # No renderer here: the host's own files say which.
    lines = [f"{HEADER}network:\n  version: 2\n  ethernets:\n    {_text(port)}:\n", *plain]
    if rail.vlan:
        # Without this, NetworkManager below netplan gives the port an address of its own (169.254/16).
        lines.append("      link-local: []\n")
        lines.append(f"  vlans:\n    {_text(interface)}:\n      id: {rail.vlan}\n      link: {_text(port)}\n")
        lines += plain
    if rail.addresses:
        lines.append("      addresses:\n")
        lines += [f"        - {_text(f'{item.address}/{item.length}')}\n" for item in rail.addresses]
    if routes:
        lines.append("      routes:\n")
        for route in routes:
            pairs = [("to", _text(_any(route)))]
            pairs += [("via", _text(route.gateway))] if route.gateway else []
            pairs += [("from", _text(route.source))] if route.source else []
            pairs += [("scope", "link")] if route.scope == SCOPE_LINK or not route.gateway else []
            pairs += [("table", str(route.table))] if route.table != MAIN_TABLE else []
            pairs += [("metric", str(route.metric))] if route.metric and route.table == MAIN_TABLE else []
            lines.append("        - " + "          ".join(f"{key}: {value}\n" for key, value in pairs))
    straight = [rule for rule in rules if not rule.invert]
    if straight:
        lines.append("      routing-policy:\n")
        for rule in straight:
            lines.append(f"        - from: {_text(rule.source)}\n")
            lines.append(f"          table: {rule.table}\n          priority: {rule.priority}\n")
    yield File(f"{NETPLAN_FOLDER}/90-railops-{port}.yaml", "".join(lines), PRIVATE, rail.name)
    inverted = [rule for rule in rules if rule.invert]
    if inverted:
        # netplan has no word for `not`; networkd, which it renders for, reads this beside what netplan generates.
        text = HEADER + "".join(_networkd_rule(rule) for rule in inverted)
        path = f"{NETWORKD_FOLDER}/10-netplan-{interface}.network.d/90-railops.conf"
        yield File(path, text, PUBLIC, rail.name)


# --- systemd-networkd -------------------------------------------------------------------------------------------------


def _networkd(rail: WantRail, port: str, interface: str, routes: list[Route], rules: list[Rule]) -> Iterable[File]:
    mtu = f"MTUBytes={rail.mtu}\n" if rail.mtu is not None else ""

    def network(name: str) -> str:
        text = f"{HEADER}[Match]\nName={name}\n\n[Link]\nRequiredForOnline=no\n{mtu}\n[Network]\n"
        return text + "DHCP=no\nIPv6AcceptRA=no\nConfigureWithoutCarrier=yes\nIgnoreCarrierLoss=yes\n"

    if rail.vlan:
        made = f"{HEADER}[NetDev]\nName={interface}\nKind=vlan\n{mtu}\n[VLAN]\nId={rail.vlan}\n"
        yield File(f"{NETWORKD_FOLDER}/05-railops-{interface}.netdev", made, PUBLIC, rail.name)
        below = f"{network(port)}LinkLocalAddressing=no\nVLAN={interface}\n"
        yield File(f"{NETWORKD_FOLDER}/05-railops-{port}.network", below, PUBLIC, rail.name)
    text = network(interface)
    for item in rail.addresses:
        text += f"\n[Address]\nAddress={item.address}/{item.length}\n"
        if item.family == 6:
            text += "DuplicateAddressDetection=none\n"
    for route in routes:
        text += f"\n[Route]\nDestination={_any(route)}\n"
        text += f"Gateway={route.gateway}\n" if route.gateway else ""
        text += "Scope=link\n" if route.scope == SCOPE_LINK else ""
        text += f"PreferredSource={route.source}\n" if route.source else ""
        text += f"Table={route.table}\n" if route.table != MAIN_TABLE else ""
        text += f"Metric={route.metric}\n" if route.metric and route.table == MAIN_TABLE else ""
    text += "".join(_networkd_rule(rule) for rule in rules)
    yield File(f"{NETWORKD_FOLDER}/05-railops-{interface}.network", text, PUBLIC, rail.name)


def _networkd_rule(rule: Rule) -> str:
    text = f"\n[RoutingPolicyRule]\nPriority={rule.priority}\nTable={rule.table}\n"
    text += f"From={rule.source}\n" if rule.source else ""
    text += f"To={rule.dest}\n" if rule.dest else ""
    return text + ("InvertRule=yes\n" if rule.invert else "")


# --- NetworkManager ---------------------------------------------------------------------------------------------------


def _keyfiles(
    rail: WantRail, port: str, interface: str, routes: list[Route], rules: list[Rule], infiniband: bool
) -> Iterable[File]:
    def head(name: str, kind: str) -> str:
        text = f"{HEADER}[connection]\nid=railops-{name}\nuuid={uuid.uuid5(NAMESPACE, name)}\ntype={kind}\n"
        # Another profile bound to the interface must not win at boot.
        return f"{text}interface-name={name}\nautoconnect=true\nautoconnect-priority=100\n\n"

    kind = "infiniband" if infiniband else "ethernet"
    # A VLAN's MTU is in the section of Ethernet too.
    link = f"[{kind}]\n" + (f"mtu={rail.mtu}\n" if rail.mtu is not None else "")
    text = head(interface, "vlan" if rail.vlan else kind) + link
    if rail.vlan:
        none = "\n[ipv4]\nmethod=disabled\n\n[ipv6]\nmethod=disabled\n"
        path = f"{KEYFILE_FOLDER}/railops-{port}.nmconnection"
        yield File(path, head(port, kind) + link + none, PRIVATE, rail.name)
        text += f"\n[vlan]\nflags=1\nid={rail.vlan}\nparent={port}\n"
    if infiniband:
        # NetworkManager sets the mode at boot: one that cannot carry the MTU would leave the rail without it.
        mode = "connected" if (rail.mtu or 0) > IPOIB_DATAGRAM_MTU else "datagram"
        text += f"transport-mode={mode}\n"
    # The connected routes' metrics as the kernel gives them, so that a reboot changes nothing.
    for family, section, metric in ((4, "ipv4", 0), (6, "ipv6", 256)):
        own = [item for item in rail.addresses if item.family == family]
        method = "manual" if own else ("disabled" if family == 4 else "link-local")
        text += f"\n[{section}]\nmethod={method}\n"
        for number, item in enumerate(own, 1):
            text += f"address{number}={item.address}/{item.length}\n"
        if not own:
            continue
        text += f"never-default=true\nroute-metric={metric}\n"
        nowhere = "0.0.0.0" if family == 4 else "::"
        for number, route in enumerate((item for item in routes if item.family == family), 1):
            text += f"route{number}={_any(route)},{route.gateway or nowhere},{route.metric}\n"
            options = [f"src={route.source}"] if route.source else []
            options += [f"table={route.table}"] if route.table != MAIN_TABLE else []
            text += f"route{number}_options={','.join(options)}\n" if options else ""
        for number, rule in enumerate((item for item in rules if item.family == family), 1):
            text += f"routing-rule{number}={_keyfile_rule(rule)}\n"
    yield File(f"{KEYFILE_FOLDER}/railops-{interface}.nmconnection", text, PRIVATE, rail.name)


def _keyfile_rule(rule: Rule) -> str:
    words = ["priority", str(rule.priority)]
    words += ["not"] if rule.invert else []
    words += ["from", rule.source or ("0.0.0.0/0" if rule.family == 4 else "::/0")]
    words += ["to", rule.dest] if rule.dest else []
    return " ".join([*words, "table", str(rule.table)])
