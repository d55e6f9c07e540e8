# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Compare an object with its live state: fields, their owners, a pool's addresses. Pure.

Ownership follows the server's own record (managedFields): what the plan foretells is what the server will answer.
"""

from __future__ import annotations

import ipaddress
import json
import typing as t

from .._fabric.labels import CIDR_POOL, CONFIG, LABEL_FABRIC, LABEL_MANAGER, POOL
from .._intervals import Intervals, merge, subtract
from .model import FIELD_MANAGER, Difference, Json, Ref, Retained
from .pools import allocated, allocations, listed, moved, without


def differences(desired: t.Any, live: t.Any, place: str = "") -> t.Iterator[Difference]:
    """Yield fields whose live value differs from the wanted one, without fields that only the server sets."""
    if isinstance(desired, dict) and isinstance(live, dict):
        for name, value in desired.items():
            below = f"{place}.{name}" if place else name
            if name in live:
                yield from differences(value, live[name], below)
            # A server may drop an empty list: this is no difference.
            elif value is not None and value != []:
                yield Difference(below, None, value)
    elif isinstance(desired, list) and isinstance(live, list) and len(desired) == len(live):
        if any(True for one, two in zip(desired, live) for _difference in differences(one, two)):
            yield Difference(place, live, desired)
    elif desired != live:
        yield Difference(place, live, desired)


def object_differences(desired: Json, live: Json) -> tuple[Difference, ...]:
    """Return an object's differences, including fields that we set before and no longer want."""
    found: list[Difference] = []
    for name, value in desired.items():
        if name == "metadata":
            for part in ("labels", "annotations"):
                found += differences(value.get(part) or {}, live["metadata"].get(part) or {}, f"metadata.{part}")
        elif name not in ("apiVersion", "kind", "status"):
            found += differences({name: value}, live)
    for fields in applied(live["metadata"]):
        found += dropped(fields, desired, live)
    return tuple(found)


def applied(meta: Json) -> list[Json]:
    """Return the fields that we applied, by the server's own record: nothing where an object was never ours."""
    rows = meta.get("managedFields") or ()
    managed = [row for row in rows if row.get("manager") == FIELD_MANAGER and row.get("operation") == "Apply"]
    return [row.get("fieldsV1") or {} for row in managed]


def writers(meta: Json) -> list[str]:
    """Return who wrote an object. Who only writes the status does not own it: any controller does that."""
    rows = [row for row in meta.get("managedFields") or () if not row.get("subresource")]
    return sorted({str(row.get("manager")) for row in rows if set(row.get("fieldsV1") or ()) - {"f:status"}})


def dropped(owned: Json, desired: t.Any, live: t.Any, place: str = "") -> t.Iterator[Difference]:
    """Return the managed fields on the server that the plan no longer has; of keyed lists the rows, as containers.

    :param owned: our part of managedFields, `f:` before each name.
    :param wanted: what is applied.
    :param live: what the server has.
    """
    if isinstance(desired, list) and isinstance(live, list):
        for step, below in owned.items():
            if step.startswith("k:"):
                key = json.loads(step[2:]).items()
                want, have = (next((row for row in side if key <= row.items()), None) for side in (desired, live))
                yield from dropped(below, want, have, place)
        return
    if not isinstance(desired, dict) or not isinstance(live, dict):
        return
    for step, below in owned.items():
        if not step.startswith("f:") or step[2:] not in live:
            continue
        name = step[2:]
        path = f"{place}.{name}" if place else name
        if below:
            yield from dropped(below, desired.get(name, {}), live[name], path)
        elif name not in desired:
            yield Difference(path, live[name], None)


def owners(live: Json, dotted: str) -> list[tuple[str, str]]:
    """Return (manager, operation) of everyone but us who owns a field, one above or one below it."""
    steps = _steps(dotted)
    found = []
    for row in live["metadata"].get("managedFields") or ():
        if row.get("subresource") or row.get("manager") == FIELD_MANAGER:
            continue
        node = row.get("fieldsV1") or {}
        for step in steps:
            node = node.get(step)
            if not node:
                break
        if node is not None:
            found.append((str(row.get("manager")), str(row.get("operation"))))
    return found


def _steps(dotted: str) -> list[str]:
    # Keys of labels and annotations hold dots of their own.
    for part in ("metadata.labels.", "metadata.annotations."):
        if dotted.startswith(part):
            return ["f:metadata", f"f:{part.split('.')[1]}", f"f:{dotted[len(part) :]}"]
    return [f"f:{name}" for name in dotted.split(".")]


def labels_of(obj: Json) -> dict[str, str]:
    """Return an object's labels."""
    return obj["metadata"].get("labels") or {}


def is_managed(obj: Json, fabric: str) -> bool:
    """Return whether an object's labels mark it as this collection's, and of this fabric."""
    labels = labels_of(obj)
    return labels.get(LABEL_MANAGER) == FIELD_MANAGER and labels.get(LABEL_FABRIC, "") == fabric


# Pools


def ranges(items: t.Iterable[str]) -> Intervals:
    """Return address ranges as sorted pairs of integers; the ends in any order, joined where they meet."""
    pairs = []
    for item in items:
        first, _dash, last = item.partition("-")
        one = int(ipaddress.ip_address(first.strip()))
        two = int(ipaddress.ip_address(last.strip())) if last else one
        pairs.append((min(one, two), max(one, two)))
    return merge(pairs)


def addresses(pool: Json) -> Intervals:
    """Return the addresses that a pool may give out."""
    spec = pool.get("spec") or {}
    return subtract(ranges(spec.get("ips") or ()), ranges(spec.get("excludeIPs") or ()))


def keep_pool(
    action: str,
    ref: Ref,
    live: Json,
    desired: Json | None,
    holders: t.Callable[[], t.Mapping[str, str]],
    application: str = "",
) -> Retained | None:
    """Return why a pool, or the config of a network without addresses, must stay; None when no pod uses it.

    :param action: what would be done: delete, narrow or replace.
    :param live: the pool as it is.
    :param wanted: the pool as it is to be; None where it goes.
    :param holders: gives the pod of each address, for pools that do not say it themselves.
    :param application: namespace and name of a DaemonSet whose pods go with the pool; empty for none.
    """
    if ref.kind == CIDR_POOL:
        rows = without(moved(live, desired, holders), application)
        count = len(rows)
    elif ref.kind == POOL:
        every = allocations(live)
        rows = without(every, application)
        # Addresses of unreadable allocations count as in use.
        count = max(len(rows), allocated(live) - len(every) + len(rows)) if application else allocated(live)
    elif ref.kind == CONFIG and desired is None and live["spec"].get("disableIPAM"):
        users = {text: pod for text, pod in holders().items() if text.startswith(f"{ref.namespace}/{ref.name} ")}
        who = listed(without(users, application))
        return Retained(action, ref, f"Pods use it{who}; move those pods away and run again.", who) if who else None
    else:
        return None
    noun, who = "address is" if count == 1 else "addresses are", listed(rows)
    reason = f"{count} {noun} in use{who}; move those pods away and run again."
    return Retained(action, ref, reason, who) if count else None
