# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What our own files for the next boot name, and which addresses stood on the rails before us.

After a reboot the network manager makes rules and routes with a protocol number of its own, so that these files are
the proof of what is ours, with every manager.
"""

from __future__ import annotations

import ipaddress
import json
import re
import typing as t

from .._files import HostFiles
from .model import DEFAULT, KINDS, MAIN_TABLE, Address, Route, Rule, Snapshot

ROOT = "/"
# Planned addresses that stood on a rail before the first run, as [interface, address]: they are not ours.
NOTE = "/var/lib/railops-rdma/stood-before.json"
# The port that each rail had in the last run, as {rail: [interface, MAC address]}.
PORTS = "/var/lib/railops-rdma/rails.json"
Found = t.Iterator[t.Any]
EVERYWHERE = {"0.0.0.0/0", "::/0"}
LISTED = re.compile(r"^        - ", re.MULTILINE)


def _address(interface: str, text: str) -> Address:
    item = ipaddress.ip_interface(text)
    return Address(interface, item.version, str(item.ip), item.network.prefixlen)


def _route(interface: str, dst: str, gateway: str, have: t.Mapping[str, str], source: str) -> Route:
    """Return a route of a file.

    :param have: its `table` and `metric`, where it names them; `source` is its own address.
    """
    family = 6 if ":" in dst else 4
    gateway = "" if gateway in ("0.0.0.0", "::") else gateway
    table, metric = int(have.get("table", MAIN_TABLE)), int(have.get("metric", 0))
    return Route(family, table, DEFAULT if dst in EVERYWHERE else dst, metric, interface, gateway, source)


def _rule(have: t.Mapping[str, str], *, invert: bool) -> Rule:
    source, dest = ("" if have.get(key, "") in EVERYWHERE else have.get(key, "") for key in ("from", "to"))
    family = 6 if ":" in source + dest else 4
    return Rule(family, int(have["priority"]), int(have["table"]), source, dest, invert)


def _networkd(interface: str, text: str) -> Found:
    for section in re.split(r"^\[", text, flags=re.MULTILINE)[1:]:
        have = {key.lower(): value for key, value in re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE)}
        if section.startswith("Address]"):
            yield _address(interface, have["address"])
        elif section.startswith("Route]"):
            gateway, source = have.get("gateway", ""), have.get("preferredsource", "")
            yield _route(interface, have["destination"], gateway, have, source)
        elif section.startswith("RoutingPolicyRule]"):
            yield _rule(have, invert="invertrule" in have)


def _keyfile(interface: str, text: str) -> Found:
    rows = re.findall(r"^([\w-]+)=(.*)$", text, re.MULTILINE)
    for (key, value), (after, options) in zip(rows, [*rows[1:], ("", "")]):
        if re.fullmatch(r"address\d+", key):
            yield _address(interface, value)
        elif re.fullmatch(r"route\d+", key):
            dst, gateway, metric = value.split(",")
            more = re.findall(r"(\w+)=([^,]+)", options) if after == f"{key}_options" else []
            have = {"metric": metric, **dict(more)}
            yield _route(interface, dst, gateway, have, have.get("src", ""))
        elif key.startswith("routing-rule"):
            have = dict(re.findall(r"(priority|from|to|table) (\S+)", value))
            yield _rule(have, invert=" not " in value)


def _netplan(_name: str, text: str) -> Found:
    for interface, body in re.findall(r'^    "([^"]+)":\n((?:      .*\n)*)', text, re.MULTILINE):
        for item in LISTED.split(body)[1:]:
            have = dict(re.findall(r'([\w-]+): "?([^"\n]+)"?', item))
            if "priority" in have:
                yield _rule(have, invert=False)
            elif "to" in have:
                yield _route(interface, have["to"], have.get("via", ""), have, have.get("from", ""))
            else:
                yield _address(interface, item.partition("\n")[0].strip('"'))


# Folders, the names of our files there with the interface's, and who reads them.
FILES: tuple[tuple[str, str, t.Callable[[str, str], Found]], ...] = (
    ("/etc/netplan", r"zz-railops-(.+)\.yaml", _netplan),
    ("/etc/systemd/network", r"0-railops-(.+)\.network", _networkd),
    ("/etc/systemd/network", r"10-netplan-(.+)\.network\.d", _networkd),
    ("/etc/NetworkManager/system-connections", r"railops-(.+)\.nmconnection", _keyfile),
)


def read_retained(files: HostFiles | None = None) -> Snapshot:
    """Return the addresses, routes and rules that our own files name; a line that somebody broke names nothing.

    :raises RdmaError: when a file may not be read.
    """
    files = files or HostFiles(ROOT)
    found: set[t.Any] = set()
    for folder, pattern, read in FILES:
        for name in files.names(folder):
            match = re.fullmatch(pattern, name)
            path = f"{folder}/{name}" + ("/90-railops.conf" if name.endswith(".d") else "")
            # netplan's link leads to what netplan makes of others' files too.
            if match and files.link(path) is None:
                try:
                    found |= set(read(match[1], files.read(path) or ""))
                except (ValueError, KeyError):
                    continue

    sets = {part: frozenset(item for item in found if isinstance(item, kind)) for part, kind in KINDS.items()}
    return Snapshot({}, **sets, sysctls={})


def read_noted() -> frozenset[tuple[str, str]]:
    """Return the interface and address of what stood on the rails before us."""
    try:
        return frozenset((row[0], row[1]) for row in json.loads(HostFiles(ROOT).read(NOTE) or "[]"))
    except (ValueError, LookupError, TypeError):
        return frozenset()


def read_ports() -> dict[str, tuple[str, str]]:
    """Return the interface and MAC address that each rail had in the last run."""
    try:
        return {rail: (row[0], row[1]) for rail, row in json.loads(HostFiles(ROOT).read(PORTS) or "{}").items()}
    except (ValueError, LookupError, TypeError, AttributeError):
        return {}


def note(stood: t.AbstractSet[tuple[str, str]], ports: t.Mapping[str, tuple[str, str]]) -> None:
    """Write down what stood on the rails before us, and the port of each rail; nothing leaves no file."""
    files = HostFiles(ROOT)
    if stood != read_noted():
        files.put(NOTE, json.dumps(sorted(stood)) + "\n" if stood else None)
    if ports != read_ports():
        files.put(PORTS, json.dumps(ports, sort_keys=True) + "\n" if ports else None)
