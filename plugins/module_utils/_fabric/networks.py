# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How pods get to the rails, as cluster/networks.json says it: whoever made the objects behind it, and of what kind.

The planner writes it beside the objects. Whoever starts pods, or looks into them, reads it and no object.
"""

from __future__ import annotations

import json
import os
import typing as t

from .._errors import RdmaError
from .._intake import Nonsense, fitting, measured, parsed
from .labels import DECLARED, POD_STATUS, profile_name
from .lock import AGAIN

NETWORKS = "networks.json"
"""In the folder `cluster/`: `kinds` of the objects that give pods networks and addresses, and `networks` by profile."""


class PodNetwork(t.TypedDict):
    """What a pod gets of one rail on the nodes of one profile."""

    rail: str
    name: str
    """namespace/name, as the pod's annotation names it."""
    attachment: str
    """A name of `attachments.ATTACHMENTS`."""
    resource: str
    """What the pod asks for, prefix and all."""
    ask: bool
    """Whether it has to ask itself even where injection adds the resources of its networks."""
    addresses: bool
    """Whether it gets an address of the rail's subnet on its node."""
    routes: bool
    """Whether each rail leaves its subnet by a table of its own."""
    mtu: int
    """In bytes; 0: what the parent has."""


def networks_of(networks: dict[str, list[PodNetwork]], interfaces: t.Sequence[str]) -> list[PodNetwork]:
    """Return what pods get on a node with these interfaces: that of its profile, else that of all nodes."""
    return networks.get(profile_name(interfaces)) or networks.get(DECLARED) or []


def read_networks(folder: str) -> dict[str, list[PodNetwork]]:
    """Return the networks of a plan by profile.

    :param folder: the plan's folder.
    :raises RdmaError: when an older version made the plan, or it cannot be read.
    """
    path = os.path.join(folder, "cluster", NETWORKS)
    try:
        with open(path, encoding="utf-8") as stream:
            return t.cast("dict[str, list[PodNetwork]]", json.load(stream)["networks"])
    except FileNotFoundError:
        raise RdmaError(f"The plan does not say how pods get to the rails: {path!r} does not exist.", AGAIN) from None
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise RdmaError(f"{path!r} cannot be read: {exc}.", AGAIN) from exc


_STATUS = {"name": (None, str), "interface": (None, str), "ips": (None, [str]), "default": (None, bool)}


def status_rows(meta: t.Mapping[str, t.Any]) -> list[dict[str, t.Any]]:
    """Return what Multus noted of a pod's networks: name, interface, ips, default; nothing where that cannot be read.

    :param meta: the pod's metadata; whoever may change the pod may have written them.
    """
    try:
        rows = measured(parsed((meta.get("annotations") or {}).get(POD_STATUS) or "[]"))
        return t.cast("list[dict[str, t.Any]]", fitting(rows, [_STATUS], "what Multus noted"))
    except Nonsense:
        return []
