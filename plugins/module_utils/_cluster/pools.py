# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which addresses a SpiderIPPool lends, and to whom: its status, as Spiderpool's agents write it."""

from __future__ import annotations

import json
import re
import typing as t

Json = dict[str, t.Any]


def allocated(live: Json) -> int:
    """Return how many addresses of a pool are in use."""
    return int((live.get("status") or {}).get("allocatedIPCount") or 0)


def users(live: Json, most: int = 3) -> str:
    """Return who uses a pool, in a few words."""
    rows = _lent(live)
    if not rows:
        return ""
    shown = [f"{address} by {pod}" for address, pod in list(rows.items())[:most]]
    more = f" and {len(rows) - most} more" if len(rows) > most else ""
    return f" ({', '.join(shown)}{more})"


def lent(live: Json, application: str) -> bool:
    """Say whether a pool lends addresses to pods that are not those of a DaemonSet.

    :param application: its namespace and name, `default/fabric-test`.
    """
    own = re.compile(rf"{re.escape(application)}-[a-z0-9]{{5}}")
    others = [pod for pod in _lent(live).values() if not own.fullmatch(pod)]
    # What cannot be read is somebody's.
    return bool(others) or allocated(live) > len(_lent(live))


def _lent(live: Json) -> dict[str, str]:
    """Return the pod (`namespace/name`) that holds each address of a pool; nothing where that cannot be read."""
    try:
        rows = json.loads((live.get("status") or {}).get("allocatedIPs") or "{}")
    except ValueError:
        return {}
    if not isinstance(rows, dict):
        return {}
    return {address: str((row or {}).get("pod", "a pod")) for address, row in rows.items()}
