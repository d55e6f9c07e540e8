# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Runs the vendor's configuration tool on one card at a time."""

from __future__ import annotations

import typing as t

from .._errors import RdmaError
from . import mlxconfig as formats

if t.TYPE_CHECKING:
    from .._module import Run

# mstconfig first: it needs no kernel module of its own and comes with the distributions.
TOOLS = ("mstconfig", "mlxconfig")
MISSING_FIX = "Install the package mstflint on the managed node (role rdma_driver does), or MFT."


class MlxTool:
    """The configuration tool that this host has.

    :param which: returns the full path of a command, or None.
    :param run: runs an argument vector; returns exit code, standard output and standard error.
    """

    def __init__(self, which: t.Callable[[str], str | None], run: Run) -> None:
        self._run = run
        self.config = next(filter(None, map(which, TOOLS)), None)

    def query(self, address: str) -> formats.Configuration:
        """Return a card's configuration: default, current and next boot as far as its firmware tells them."""
        argv = [self._config(), "-d", address, "-e", "q"]
        code, output, errors = self._run(argv)
        if code:
            raise formats.failure(argv, code, output or errors, address)
        return formats.parse_text(output)

    def set(self, address: str, values: dict[str, int]) -> bool:
        """Write values for the next boot, all in one call. Return whether the tool asks for a power cycle."""
        argv = [self._config(), "-d", address, "-y", "set", *(f"{name}={value}" for name, value in values.items())]
        code, output, errors = self._run(argv)
        if code:
            raise formats.failure(argv, code, output or errors, address)
        return formats.needs_power_cycle(output)

    def _config(self) -> str:
        if self.config is None:
            raise RdmaError("Neither mstconfig nor mlxconfig is on this host.", MISSING_FIX, kind="no_tool")
        return self.config
