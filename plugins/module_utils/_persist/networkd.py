# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""systemd-networkd: one .network file a rail, and a .netdev file for its VLAN. Format: systemd.network(5)."""

from __future__ import annotations

import re
import typing as t

from .._route.model import MAIN_TABLE, SCOPE_LINK, Route, Rule
from .model import HEADER, PUBLIC, File, Manager, anywhere

if t.TYPE_CHECKING:
    from collections.abc import Iterable

    from .._route.want import WantRail
    from .host import Host

FOLDER = "/etc/systemd/network"
# networkd drops what it did not make, CNI rules included, at every restart unless told not to (systemd 248 and later).
TEXT = f"{HEADER}[Network]\nManageForeignRoutingPolicyRules=no\nManageForeignRoutes=no\n"
KEEP_FOREIGN = File("/etc/systemd/networkd.conf.d/90-railops.conf", TEXT, PUBLIC)


class Networkd(Manager):
    """systemd-networkd."""

    owned = ((FOLDER, re.compile(r"^05-railops-.+\.(network|netdev)$")),)
    beside = (KEEP_FOREIGN,)

    def manages(self, host: Host) -> bool:
        """Whether it has links, or will be started."""
        return host.is_folder("/run/systemd/netif/links") or host.enabled("systemd-networkd")

    def files(
        self, rail: WantRail, port: str, interface: str, routes: list[Route], rules: list[Rule], *, infiniband: bool
    ) -> Iterable[File]:
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
            yield File(f"{FOLDER}/05-railops-{interface}.netdev", made, PUBLIC, rail.name)
            below = f"{network(port)}LinkLocalAddressing=no\nVLAN={interface}\n"
            yield File(f"{FOLDER}/05-railops-{port}.network", below, PUBLIC, rail.name)
        text = network(interface)
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
        yield File(f"{FOLDER}/05-railops-{interface}.network", text, PUBLIC, rail.name)


def rule_section(rule: Rule) -> str:
    """Return a rule as networkd reads it."""
    text = f"\n[RoutingPolicyRule]\nPriority={rule.priority}\nTable={rule.table}\n"
    text += f"From={rule.source}\n" if rule.source else ""
    text += f"To={rule.dest}\n" if rule.dest else ""
    return text + ("InvertRule=yes\n" if rule.invert else "")
