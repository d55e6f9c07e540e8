# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of network managers, which restore the rails at the next boot: each in its own file."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from .._route.model import DEFAULT, Route, Rule

if t.TYPE_CHECKING:
    from .._route.route_options import RailOptions, RouteOptions
    from .machine import RootedHost

HEADER = "# Managed by Ansible: railops.rdma.rail_persist. This file is replaced; change the plan instead.\n"
PRIVATE = 0o600
PUBLIC = 0o644
# Of a file that is a symbolic link; its text is where that leads.
LINK = 0o777
Texts = dict[str, str]


@dataclass(frozen=True)
class File:
    """A file as it is or shall be; `rail` names the rail that it belongs to, or is empty."""

    path: str
    text: str
    mode: int
    rail: str = field(default="", compare=False)


@dataclass(frozen=True)
class Port:
    """The properties by which files match an interface. `lease` is an address that it has by DHCP, or empty."""

    name: str
    altnames: frozenset[str] = frozenset()
    mac: str = ""
    permanent: str = ""
    path: str = ""
    driver: str = ""
    type: str = "ether"
    kind: str = ""
    lease: str = ""


@dataclass(frozen=True)
class Profile:
    """A file that a daemon reads at boot: its part about an interface.

    :param daemon: the daemon that reads it; `rank` is its order there: the daemon uses the lowest rank that matches.
    :param holds: its settings as text, without defaults that have no effect: addresses, routes, MTU and the rest.
    """

    path: str
    daemon: str
    rank: t.Any
    matches: t.Callable[[Port], bool]
    holds: frozenset[str]
    dhcp: bool


class Manager:
    """A network manager. To add one: a file with its class, and its row in MANAGERS of plan.py."""

    owned: tuple[tuple[str, re.Pattern[str]], ...] = ()
    """Folders and names of the files that any version of this collection has written for it."""
    shared_files: tuple[File, ...] = ()
    """Files that it needs besides those of the rails."""
    folders: tuple[str, ...] = ()
    """Folders of the files that configure it at boot."""
    yields = ""
    """How an existing file sorts after the managed one; `keeps`: how its settings are kept with the managed ones."""
    keeps = ""

    def among(self, paths: t.Iterable[str]) -> list[str]:
        """Return those of the paths that are of its own files."""
        return [
            path
            for path in paths
            if any(path.startswith(f"{folder}/") and name.match(path[len(folder) + 1 :]) for folder, name in self.owned)
        ]

    def manages(self, host: RootedHost) -> bool:
        """Whether it manages that host's network."""
        raise NotImplementedError

    def files(
        self, rail: RailOptions, port: str, interface: str, routes: list[Route], rules: list[Rule], *, infiniband: bool
    ) -> t.Iterable[File]:
        """Return the files of one rail.

        :param infiniband: whether the rail is IP over InfiniBand.
        :param port: the interface's name, and `interface` that of its VLAN, or the same.
        """
        raise NotImplementedError

    def fitted(self, want: RouteOptions, host: RootedHost, files: tuple[File, ...]) -> tuple[File, ...]:
        """Return the files as this very host needs them; raise RdmaError for what the manager cannot express."""
        return files

    def at_boot(self, host: RootedHost, texts: Texts) -> Texts | None:
        """Return the files that its daemon will read at the next boot with these files; None when that is unknown."""
        return texts

    def loaded(self, host: RootedHost, written: t.Sequence[str], removed: t.Sequence[str]) -> None:
        """Notify it, where it runs, of written and removed files."""


def anywhere(route: Route) -> str:
    """Return the destination as netplan and networkd of every age understand it."""
    if route.dst != DEFAULT:
        return route.dst
    return "0.0.0.0/0" if route.family == 4 else "::/0"
