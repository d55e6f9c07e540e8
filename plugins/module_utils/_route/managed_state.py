# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Entries in our own files for the next boot, and addresses that the rails had before us.

After a reboot the network manager makes rules and routes with a protocol number of its own, so that these files are
the proof of what is ours, with every manager.
"""

from __future__ import annotations

import json
import typing as t

from .._files import HostFiles
from .._ports import PORTS, ports_of
from .model import Snapshot, from_data

ROOT = "/"
# Planned addresses that a rail had before the first run, as [interface, address]: they are not managed.
ORIGINAL_STATE = "/var/lib/railops-rdma/original-state.json"
# The addresses, routes and rules of the rails' files for the next boot, whichever tool manages the network.
MANAGED_STATE = "/var/lib/railops-rdma/managed-state.json"


def read_retained(files: HostFiles | None = None) -> Snapshot:
    """Return the addresses, routes and rules that our own files name; a broken file names nothing.

    :raises RdmaError: when the file may not be read.
    """
    try:
        return from_data(json.loads((files or HostFiles(ROOT)).read(MANAGED_STATE) or ""))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return Snapshot({}, frozenset(), frozenset(), frozenset(), {})


def read_noted() -> frozenset[tuple[str, str]]:
    """Return the interface and address of planned addresses that existed before the first run."""
    try:
        return frozenset((row[0], row[1]) for row in json.loads(HostFiles(ROOT).read(ORIGINAL_STATE) or "[]"))
    except (ValueError, LookupError, TypeError, RecursionError):
        return frozenset()


def read_ports() -> dict[str, tuple[str, str]]:
    """Return the interface and MAC address that each rail had in the last run."""
    return ports_of(ROOT)


def note(original: t.AbstractSet[tuple[str, str]], ports: t.Mapping[str, tuple[str, str]]) -> None:
    """Record the addresses that existed before the first run and each rail's port. Nothing to record leaves no file."""
    files = HostFiles(ROOT)
    if original != read_noted():
        files.put(ORIGINAL_STATE, json.dumps(sorted(original)) + "\n" if original else None)
    if ports != read_ports():
        files.put(PORTS, json.dumps(ports, sort_keys=True) + "\n" if ports else None)
