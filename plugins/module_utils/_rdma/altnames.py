# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Alternative names of network interfaces, over rtnetlink: they do not show in sysfs."""

from __future__ import annotations

import typing as t

from .._errors import RdmaError


class AltNames:
    """Reads, adds and removes alternative names."""

    def read(self) -> dict[str, tuple[str, ...]]:
        """Return all alternative names by interface; nothing when there is no library to ask with."""
        try:
            from pyroute2 import IPRoute
        except ImportError:
            return {}
        with IPRoute() as ipr:
            return {link.get_attr("IFLA_IFNAME"): tuple(_altnames(link)) for link in ipr.get_links()}

    def change(self, add: t.Iterable[tuple[str, str]], drop: t.Iterable[tuple[str, str]]) -> None:
        """Remove and add names, as (interface, alternative name)."""
        try:
            from pyroute2 import IPRoute
            from pyroute2.netlink.exceptions import NetlinkError
        except ImportError as exc:
            raise RdmaError(
                f"An alternative name needs the library pyroute2 (0.7.2 or newer), which is not there: {exc}.",
                "Install python3-pyroute2 on the managed node, or use naming: name.",
            ) from exc
        with IPRoute() as ipr:
            for command, pairs in (("property_del", drop), ("property_add", add)):
                for interface, name in pairs:
                    try:
                        ipr.link(command, index=ipr.link_lookup(ifname=interface)[0], altname=name)
                    except (NetlinkError, IndexError) as exc:
                        raise RdmaError(
                            f"The alternative name {name} of {interface} cannot be changed: {exc}.",
                            "See with ip link show whether another interface has it; kernels before 5.5 have none.",
                            interface=interface,
                        ) from exc


def _altnames(link: t.Any) -> list[str]:
    properties = link.get_attr("IFLA_PROP_LIST")
    return [value for name, value in properties["attrs"] if name == "IFLA_ALT_IFNAME"] if properties else []
