# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The interface of each rail in the last run, as the host keeps it: a rail that lacks it now has lost its card."""

from __future__ import annotations

import json

from ._files import HostFiles
from ._validation import INTERFACE

# The port that each rail had in the last run, as {rail: [interface, MAC address]}.
PORTS = "/var/lib/railops-rdma/rails.json"


def ports_of(root: str = "/") -> dict[str, tuple[str, str]]:
    """Return the interface and MAC address that each rail had in the last run."""
    try:
        rows = json.loads(HostFiles(root).read(PORTS) or "{}").items()
        return {rail: (row[0], row[1]) for rail, row in rows if INTERFACE.fullmatch(row[0])}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}
