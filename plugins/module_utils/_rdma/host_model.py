# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The wanted and the present state of a host for rdma_host. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

if t.TYPE_CHECKING:
    from .._systemd import Section


class LinkFile(t.NamedTuple):
    """A .link file with its drop-ins: the sections in their order, each with its settings."""

    path: str
    sections: list[Section]

    @property
    def name(self) -> str:
        """The sort key."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class RdmaRail:
    """One rail of the host, as the plan has it."""

    name: str
    interface: str
    pci: str | None = None
    mtu: int | None = None


@dataclass(frozen=True)
class Netdev:
    """One network device with hardware behind it."""

    name: str
    pci: str
    infiniband: bool = False
    ipoib_mode: str | None = None
    port_mtu: int | None = None  # of the InfiniBand port, where a driver reports it
    mac: str = ""
    driver: str = ""


@dataclass(frozen=True)
class RdmaOptions:
    """The wanted state. `naming` is none or name."""

    network: str = "roce"
    rdma_mode: str | None = None
    rails: tuple[RdmaRail, ...] = ()
    modules: t.Sequence[str] | None = None
    naming: str = "name"
    present: bool = True
    out: frozenset[str] = frozenset()
    """The names of rails whose files stay as they are."""


@dataclass(frozen=True)
class RdmaState:
    """The current state.

    `available` are the modules that the kernel has, `builtin` those without a file of their own; `files` are the
    managed files by path, `link_files` the existing .link files, `rules` the existing rules of udev; `roles` has the
    other purposes of interfaces that get another name.
    """

    kernel: str = ""
    loaded: frozenset[str] = frozenset()
    available: frozenset[str] = frozenset()
    builtin: frozenset[str] = frozenset()
    files: dict[str, str] = field(default_factory=dict)
    link_files: tuple[LinkFile, ...] = ()
    rules: dict[str, str] = field(default_factory=dict)
    netdevs: tuple[Netdev, ...] = ()
    roles: dict[str, str] = field(default_factory=dict)
