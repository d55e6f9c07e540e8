# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the vendor's configuration tool on one card at a time."""

from __future__ import annotations

import typing as t

from .._errors import RdmaError
from . import mlxconfig as formats

if t.TYPE_CHECKING:
    from .._files import Machine

# mstconfig first: it needs no kernel module of its own and comes with the distributions.
TOOLS = ("mstconfig", "mlxconfig")
MISSING_FIX = "Install the package mstflint on the managed node (role rdma_driver does), or MFT."


class MlxTool:
    """The configuration tool that this host has."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._tool = next(filter(None, map(machine.tool, TOOLS)), None)

    def query(self, address: str) -> formats.Configuration:
        """Return a card's configuration: default, current and next boot as far as its firmware tells them."""
        return formats.parse_text(self._call(address, "-e", "q"))

    def set(self, address: str, values: dict[str, int]) -> bool:
        """Write values for the next boot, all in one call. Return whether the tool asks for a power cycle."""
        words = (f"{name}={value}" for name, value in values.items())
        return formats.needs_power_cycle(self._call(address, "-y", "set", *words))

    def _call(self, address: str, *words: str) -> str:
        if self._tool is None:
            raise RdmaError("Neither mstconfig nor mlxconfig is on this host.", MISSING_FIX, kind="no_tool")
        argv = [self._tool, "-d", address, *words]
        done = self._machine.run(argv)
        if done.status:
            raise formats.failure(argv, done.status, done.out or done.err, address)
        return done.out
