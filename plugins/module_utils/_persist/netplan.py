# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""netplan: one file a rail, and what it has no word for beside what it generates. Format: netplan(5)."""

from __future__ import annotations

import json
import re
import tempfile
import typing as t
from dataclasses import replace

from .. import _systemd
from .._errors import RdmaError
from .._files import HostFiles
from .._route.model import MAIN_TABLE, SCOPE_LINK, Route, Rule
from . import networkd, networkmanager
from .model import HEADER, LINK, PRIVATE, PUBLIC, File, Manager, Texts, anywhere

if t.TYPE_CHECKING:
    from .._route.route_options import RailOptions, RouteOptions
    from .machine import RootedHost

FOLDER = "/etc/netplan"
# Files merge by the name of the interface, and what a later file says counts: ours sorts after 99-*.
MANAGED = f"{FOLDER}/zz-railops-{{}}.yaml"
OWN = re.compile(r"^zz-railops-.+\.yaml$")
GENERATED = re.compile(
    r"^(/usr)?/(lib|etc|run)/netplan/|^/run/.+/(10-)?netplan[-.]|^/run/NetworkManager/conf.d/10-globally-managed-devices"
)
MADE = "/run/systemd/network/10-netplan-{}.network"
# netplan generate reads these of its root; the rest of a host has no say in it.
SOURCES = ("/usr/lib/netplan", "/lib/netplan", "/etc/netplan", "/run/netplan")
DHCP = "      dhcp4: false\n"
# NetworkManager chooses by it. netplan 1.1 refuses the word where networkd is the renderer.
FIRST = "      renderer: NetworkManager\n      networkmanager:\n        passthrough:\n"
FIRST += f'          connection.autoconnect-priority: "{networkmanager.PRIORITY}"\n'
RENDERER = re.compile(r"^\s*renderer\s*:\s*[\"']?NetworkManager", re.MULTILINE)


class Netplan(Manager):
    """netplan, which renders for systemd-networkd or NetworkManager."""

    owned = ((FOLDER, OWN), (networkd.FOLDER, re.compile(r"^10-netplan-.+\.network\.d/90-railops\.conf$")))
    shared_files = (networkd.KEEP_FOREIGN,)
    folders = (*SOURCES, *_systemd.FOLDERS, *networkmanager.NetworkManager.folders)
    keeps = "Move it to the entry {port!r} of a file in /etc/netplan, with which the managed file merges"

    def manages(self, host: RootedHost) -> bool:
        """Whether it is there and has files: then the others only read what it generates."""
        return bool(host.tool("netplan") and self._sources(host))

    def fitted(self, want: RouteOptions, host: RootedHost, files: tuple[File, ...]) -> tuple[File, ...]:
        """Return the files with the priority that NetworkManager uses, where netplan renders for it.

        Refuse an exclusion rule there: NetworkManager has no file beside the generated one.
        """
        if not self._for_networkmanager(host):
            return files
        if want.policy == "default_route":
            raise RdmaError(
                "netplan with the renderer NetworkManager cannot express the exclusion rule of default_route.",
                "Use fabric_policy: prefixes (the default), which needs no exclusion rule. [netplan_exclusion]",
            )
        return tuple(replace(file, text=file.text.replace(DHCP, FIRST + DHCP)) for file in files)

    def _for_networkmanager(self, host: RootedHost) -> bool:
        if host.live and not (done := host.run(["netplan", "get", "renderer"])).status:
            return done.out.strip() == "NetworkManager"
        return any(RENDERER.search(text) for text in self._sources(host))

    def _sources(self, host: RootedHost) -> list[str]:
        names = ((folder, name) for folder in SOURCES for name in host.names(folder) if name.endswith(".yaml"))
        return [host.read(f"{folder}/{name}") or "" for folder, name in names]

    def files(
        self, rail: RailOptions, port: str, interface: str, routes: list[Route], rules: list[Rule], *, infiniband: bool
    ) -> t.Iterable[File]:
        """Yield the rail's files.

        :param port: the interface's name, and `interface` that of its VLAN, or the same.
        :param infiniband: whether the rail is IP over InfiniBand.
        """
        # A rail without a cable must not delay the boot, and has its configuration nevertheless.
        plain = [f"{DHCP}      dhcp6: false\n      accept-ra: false\n"]
        plain += ["      optional: true\n      ignore-carrier: true\n"]
        plain += [f"      mtu: {rail.mtu}\n"] if rail.mtu is not None else []
        # Older ones have no word for it, and datagram is the kernel's default.
        plain += ["      infiniband-mode: connected\n"] if infiniband and rail.ipoib_mode == "connected" else []
        # No renderer here: the host's own files say which.
        lines = [f"{HEADER}network:\n  version: 2\n  ethernets:\n    {json.dumps(port)}:\n", *plain]
        if rail.vlan:
            # Without this, NetworkManager below netplan gives the port an address of its own (169.254/16).
            lines.append("      link-local: []\n")
            lines.append(
                f"  vlans:\n    {json.dumps(interface)}:\n      id: {rail.vlan}\n      link: {json.dumps(port)}\n"
            )
            lines += plain
        if rail.addresses:
            lines.append("      addresses:\n")
            lines += [f"        - {json.dumps(f'{item.address}/{item.length}')}\n" for item in rail.addresses]
        if routes:
            lines.append("      routes:\n")
            for route in routes:
                pairs = [("to", json.dumps(anywhere(route)))]
                pairs += [("via", json.dumps(route.gateway))] if route.gateway else []
                pairs += [("from", json.dumps(route.source))] if route.source else []
                pairs += [("scope", "link")] if route.scope == SCOPE_LINK or not route.gateway else []
                pairs += [("table", str(route.table))] if route.table != MAIN_TABLE else []
                pairs += [("metric", str(route.metric))] if route.metric and route.table == MAIN_TABLE else []
                lines.append("        - " + "          ".join(f"{key}: {value}\n" for key, value in pairs))
        if straight := [rule for rule in rules if not rule.invert]:
            lines.append("      routing-policy:\n")
            for rule in straight:
                lines.append(f"        - from: {json.dumps(rule.source)}\n")
                lines.append(f"          table: {rule.table}\n          priority: {rule.priority}\n")
        yield File(MANAGED.format(port), "".join(lines), PRIVATE, rail.name)
        # What another entry matches as well (all-en: {match: {name: en*}}) is made into a file that may sort before.
        for name in dict.fromkeys((port, interface)):
            made, link = MADE.format(name), networkd.MANAGED.format(name)
            yield File(link, made, LINK, rail.name)
            yield File(f"{link}.d", f"10-netplan-{name}.network.d", LINK, rail.name)
        if inverted := [rule for rule in rules if rule.invert]:
            # netplan has no word for `not`; networkd, which it renders for, reads this beside what netplan generates.
            text = HEADER + "".join(networkd.rule_section(rule) for rule in inverted)
            yield File(f"{networkd.FOLDER}/10-netplan-{interface}.network.d/90-railops.conf", text, PUBLIC, rail.name)

    def at_boot(self, host: RootedHost, texts: Texts) -> Texts | None:
        """Return what `netplan generate` makes of these files in a root of its own, and what it leaves as it is."""
        if not host.tool("netplan") or not host.live:
            return None
        with tempfile.TemporaryDirectory(prefix="railops-netplan-") as root:
            made = HostFiles(root)
            for path, text in texts.items():
                if path.startswith(SOURCES):
                    made.put(path, text, PRIVATE)
            done = host.run(["netplan", "generate", "--root-dir", root])
            if done.status:
                raise RdmaError(
                    f"netplan refuses the files, and nothing was written: {done.reported(root)}",
                    "Correct the host's other files in /etc/netplan if the message is about them. [netplan_rejected]",
                )
            folders = (_systemd.FOLDERS[1], networkmanager.RUN, networkmanager.CONF[1])
            paths = [f"{folder}/{name}" for folder in folders for name in made.names(folder)]
            new = {path: made.read(path) or "" for path in paths}
        return {**{path: text for path, text in texts.items() if not GENERATED.match(path)}, **new}
