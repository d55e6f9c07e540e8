# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Hosts of either kind behind one face."""

from __future__ import annotations

import subprocess
import typing as t

import guests
import spaces
from shell import run

if t.TYPE_CHECKING:
    from collections.abc import Sequence

    from topology import Host, Lab


def backend(lab: Lab) -> t.Any:
    """Return the room that the hosts of a lab live in."""
    return spaces if lab.kind == "netns" else guests


def command(lab: Lab, host: Host, argv: Sequence[str]) -> list[str]:
    """Return what runs a command on a host."""
    return t.cast("list[str]", backend(lab).command(lab, host, argv))


def on(
    lab: Lab, host: Host, argv: Sequence[str], *, check: bool = True, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a command on a host to its end (seconds)."""
    return run(command(lab, host, argv), check=check, timeout=timeout)
