# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""NetworkManager: one keyfile profile a rail, and one for its VLAN. Format: nm-settings-keyfile(5)."""

from __future__ import annotations

import os
import re
import typing as t
import uuid

from .._errors import RdmaError
from .._route.model import MAIN_TABLE, Route, Rule
from .._route.want import IPOIB_DATAGRAM_MTU
from .model import HEADER, PRIVATE, File, Manager, Ran, anywhere

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .._route.want import WantRail
    from .host import Host

FOLDER = "/etc/NetworkManager/system-connections"
# For the names of the profiles, which are UUIDs: the same interface has the same one on every run.
NAMESPACE = uuid.UUID("5d1ce7a1-9c5f-4d0b-8f0b-7261696c6f70")


class NetworkManager(Manager):
    """NetworkManager.

    It waits for the carrier and for the end of duplicate address detection. Without one it takes the kernel's refusal
    of a route from an address that was tentative for a moment as final, and leaves the route out (seen with 1.42).
    """

    owned = ((FOLDER, re.compile(r"^railops-.+\.nmconnection$")),)
    detects_duplicates = False

    def manages(self, host: Host) -> bool:
        """Whether it runs, or will be started."""
        return host.is_folder("/run/NetworkManager") or host.enabled("NetworkManager")

    def files(
        self, rail: WantRail, port: str, interface: str, routes: list[Route], rules: list[Rule], *, infiniband: bool
    ) -> Iterable[File]:
        """Yield the rail's profile, and one for the port of its VLAN.

        :param port: the interface's name, and `interface` that of its VLAN, or the same.
        :param infiniband: whether the rail is IP over InfiniBand.
        """

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
            yield File(f"{FOLDER}/railops-{port}.nmconnection", head(port, kind) + link + none, PRIVATE, rail.name)
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
                text += f"route{number}={anywhere(route)},{route.gateway or nowhere},{route.metric}\n"
                options = [f"src={route.source}"] if route.source else []
                options += [f"table={route.table}"] if route.table != MAIN_TABLE else []
                text += f"route{number}_options={','.join(options)}\n" if options else ""
            for number, rule in enumerate((item for item in rules if item.family == family), 1):
                text += f"routing-rule{number}={_rule(rule)}\n"
        yield File(f"{FOLDER}/railops-{interface}.nmconnection", text, PRIVATE, rail.name)

    def check(self, host: Host, files: Sequence[File], write: Sequence[File]) -> None:
        """Let nmcli read each profile without the daemon, where it can (NetworkManager 1.40 and later)."""
        tool = host.tool("nmcli")
        if not tool:
            return
        for file in write:
            if file.path.startswith(FOLDER):
                argv = [tool, "--offline", "connection", "modify", "connection.autoconnect", "yes"]
                done = host.command(argv, file.text)
                # Its --help does not tell; older ones refuse the option itself.
                if done.status and "Option '--offline' is unknown" in done.err:
                    return
                if done.status:
                    raise RdmaError(
                        f"NetworkManager refuses {file.path}, and nothing was written: {done.said()}",
                        "Report this profile as a bug of the collection.",
                        profile=file.text,
                    )

    def loaded(self, host: Host, written: Sequence[str], removed: Sequence[str]) -> None:
        """Tell a running one of the profiles (a device that is up stays as it is), and of those that went.

        The next flap of the link would bring those back.
        """
        tool = self._running(host)
        if not tool:
            return
        for path in written:
            done = host.command([tool, "connection", "load", path], "")
            if done.status or "could not" in f"{done.out}{done.err}".lower():
                raise RdmaError(
                    f"NetworkManager does not load {path}: {done.said()}", "Look at `journalctl -u NetworkManager`."
                )
        done = host.command([tool, "connection", "reload"], "") if removed else Ran(0, "", "")
        if done.status:
            raise RdmaError(
                f"NetworkManager does not reload its profiles: {done.said()}",
                "Run `nmcli connection reload` on the host.",
            )

    def _running(self, host: Host) -> str | None:
        return host.tool("nmcli") if host.live and os.path.isdir("/run/NetworkManager") else None


def _rule(rule: Rule) -> str:
    words = ["priority", str(rule.priority)]
    words += ["not"] if rule.invert else []
    words += ["from", rule.source or ("0.0.0.0/0" if rule.family == 4 else "::/0")]
    words += ["to", rule.dest] if rule.dest else []
    return " ".join([*words, "table", str(rule.table)])
