# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Write the host network of the rails as files of the host's own network manager.

The same rules and routes as the live change makes (_route/desired.py), one owned file per interface. No files are
touched here: everything is text. Also sysctl.d(5).
"""

from __future__ import annotations

import json
import typing as t

from .._errors import RdmaError
from .._route.desired import exclusion_rules, rail_routes, rail_rule
from .._route.managed_state import MANAGED_STATE
from .._route.model import KINDS, PROTOCOL, PROTOCOL_NAME, Address, Snapshot, as_data
from .model import HEADER, PUBLIC, File, Manager
from .netplan import Netplan
from .networkd import Networkd
from .networkmanager import NetworkManager

if t.TYPE_CHECKING:
    from .._route.route_options import RouteOptions
    from .machine import RootedHost

# The order in which they are looked for: where netplan is used, the others only read what it generates.
MANAGERS: dict[str, Manager] = {
    "netplan": Netplan(),
    "networkmanager": NetworkManager(),
    "networkd": Networkd(),
}
# networkd 252 does not know its own section [IPoIB], which netplan writes too: udev sets the mode before.
IPOIB_FILE = "/etc/udev/rules.d/90-railops-ipoib.rules"
IPOIB = 'ACTION=="add|move", SUBSYSTEM=="net", ATTR{{type}}=="32", {key}=="{name}", RUN+="/sbin/ip link set dev {name} '
IPOIB += 'type ipoib mode connected"\n'
SYSCTL_FILE = "/etc/sysctl.d/90-railops-rails.conf"
PROTOCOL_FILE = File("/etc/iproute2/rt_protos.d/railops.conf", f"{HEADER}{PROTOCOL}\t{PROTOCOL_NAME}\n", PUBLIC)
# All files that any version of this module has written: those that are not planned are removed.
OWNED = tuple(row for manager in MANAGERS.values() for row in manager.owned)
SHARED_FILES = (PROTOCOL_FILE, *(file for manager in MANAGERS.values() for file in manager.shared_files))
SINGLE = {SYSCTL_FILE, IPOIB_FILE, MANAGED_STATE, *(file.path for file in SHARED_FILES)}


def manager_of(host: RootedHost) -> str:
    """Return which of MANAGERS manages the host; raise when none does that this module can write for."""
    for name, manager in MANAGERS.items():
        if manager.manages(host):
            return name
    if host.ifupdown_interfaces():
        raise RdmaError(
            "This host's network is managed by ifupdown (/etc/network/interfaces), which has no policy rules.",
            "Move the host to systemd-networkd, NetworkManager or netplan, or run rail_network with"
            " rail_network_persist: false and at every boot. [ifupdown]",
        )
    # On a host without an active manager netplan works: it only has to be installed.
    if host.tool("netplan"):
        return "netplan"
    text = "Nothing on this host manages its network: neither netplan, NetworkManager nor systemd-networkd is in use."
    fix = "Install and enable one of them, or name it with rail_network_manager (the option manager). [manager_missing]"
    raise RdmaError(text, fix)


def files_of(want: RouteOptions, names: dict[str, str], manager: str) -> tuple[File, ...]:
    """Return all files that the wanted state needs.

    :param names: the interface name of each rail.
    :param manager: one of MANAGERS.
    """
    writer, infiniband = MANAGERS[manager], want.network == "infiniband"
    files: list[File] = [*writer.shared_files, PROTOCOL_FILE]
    named: dict[str, t.Any] = {part: set() for part in KINDS}
    for number, rail in enumerate(want.rails):
        port = names[rail.name]
        interface = rail.device if rail.vlan else port
        routes = [route for item in rail.addresses for route in rail_routes(want, rail, item, interface)]
        # The exclusion rules belong to no rail, and a manager knows only interfaces: the first rail's file has them.
        rules = [*(rail_rule(rail, item) for item in rail.addresses), *(exclusion_rules(want) if number == 0 else ())]
        if infiniband:
            routes, rules = [], []
        files += writer.files(rail, port, interface, routes, rules, infiniband=infiniband)
        addresses = [Address(interface, item.family, item.address, item.length) for item in rail.addresses]
        for part, more in zip(KINDS, (addresses, routes, rules)):
            named[part].update(more)
    files.append(File(MANAGED_STATE, state_text(**named), PUBLIC))
    connected = [names[rail.name] for rail in want.rails if infiniband and rail.ipoib_mode == "connected"]
    if connected and manager != "networkmanager":
        keys = ("KERNEL", "ENV{ID_NET_NAME}")
        lines = "".join(IPOIB.format(key=key, name=name) for name in connected for key in keys)
        files.append(File(IPOIB_FILE, HEADER + lines, PUBLIC))
    # networkd would wait for the end of duplicate address detection: without a carrier it has none, and netplan cannot
    # turn it off for an address. NetworkManager leaves routes out where it is off.
    six = [rail for rail in want.rails if any(item.family == 6 for item in rail.addresses)]
    dad = {f"net/ipv6/conf/{rail.device if rail.vlan else names[rail.name]}/accept_dad": "0" for rail in six}
    if settings := {**(dad if manager != "networkmanager" else {}), **dict(want.sysctls)}:
        lines = "".join(f"{key} = {value}\n" for key, value in sorted(settings.items()))
        files.append(File(SYSCTL_FILE, HEADER + lines, PUBLIC))
    return tuple(sorted(files, key=lambda file: file.path))


def state_text(**parts: t.Any) -> str:
    """Return the list of managed objects as its file has it."""
    return json.dumps(as_data(Snapshot({}, **parts, sysctls={}))) + "\n"


def owned(path: str) -> bool:
    """Whether a path is one of this module's files."""
    return path in SINGLE or any(manager.among([path]) for manager in MANAGERS.values())
