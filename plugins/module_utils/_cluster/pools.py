# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The allocations of a pool: each address and its pod.

Spiderpool's agents write them to a SpiderIPPool's status. No object lists those of a CIDRPool: each pod has its
addresses in the annotation that Multus writes.
"""

from __future__ import annotations

import itertools
import re
import typing as t

from .._fabric.facts import inside, status_rows
from .._formatting import shortened
from .._validation import parsed
from .model import Json
from .pod_state import finished, name_of


def allocated(live: Json) -> int:
    """Return how many addresses of a pool are in use."""
    return int((live.get("status") or {}).get("allocatedIPCount") or 0)


def listed(rows: t.Mapping[str, str], most: int = 3) -> str:
    """Return addresses and their pods in a few words."""
    if not rows:
        return ""
    held = [f"{address.partition(' ')[0]} by {pod}" for address, pod in rows.items()]
    return f" ({shortened(held, most)})"


def without(rows: t.Mapping[str, str], application: str) -> dict[str, str]:
    """Return addresses and their pods without those of a DaemonSet.

    :param application: its namespace and name, `default/fabric-test`; empty for none.
    """
    own = re.compile(rf"{re.escape(application)}-[a-z0-9]{{5}}")
    return {address: pod for address, pod in rows.items() if not own.fullmatch(pod)}


def allocations(live: Json) -> dict[str, str]:
    """Return the pod (`namespace/name`) that holds each address of a pool; nothing where that cannot be read."""
    try:
        rows = parsed((live.get("status") or {}).get("allocatedIPs") or "{}")
        return {
            address: str(row.get("pod", "a pod")) if isinstance(row, dict) else "a pod" for address, row in rows.items()
        }
    except (ValueError, AttributeError):
        return {}


def attached(pods: t.Iterable[Json]) -> dict[str, str]:
    """Return the pod (`namespace/name`) that has each address beside its first one, as Multus notes it.

    An interface without addresses is listed as its network and its pod, separated by a space. A pod that has ended
    keeps the note and no address.
    """
    found = {}
    for pod in itertools.filterfalse(finished, pods):
        name = name_of(pod)
        for row in status_rows(pod["metadata"]):
            if not row.get("default"):
                found.update(dict.fromkeys(row.get("ips") or [f"{row.get('name')} {name}"], name))
    return found


def prefixes(pool: Json) -> dict[str, tuple[str, t.Any]]:
    """Return what a CIDRPool gives to each node by name: prefix and offset of the gateway."""
    spec = pool.get("spec") or {}
    rows = [row for row in spec.get("staticAllocations") or () if row.get("nodeName")]
    return {row["nodeName"]: (row["prefix"], spec.get("gatewayIndex")) for row in rows}


def moved(live: Json, wanted: Json | None, holders: t.Callable[[], t.Mapping[str, str]]) -> dict[str, str]:
    """Return which pods hold addresses of node prefixes that a CIDRPool would no longer give to the same node.

    :param wanted: the pool as it is to be; None where it goes.
    :param holders: gives what `attached` returns.
    """
    keep = prefixes(wanted) if wanted else {}
    lost = [row[0] for node, row in prefixes(live).items() if keep.get(node) != row]
    return {text: pod for text, pod in holders().items() if inside(text, lost)} if lost else {}
