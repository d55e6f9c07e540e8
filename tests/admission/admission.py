# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What the cluster's admission answers to an object: the webhook of the API double, and an oracle for plans.

`Admission` holds a set of objects and answers create and update as the webhooks do; `check` puts a whole set through
it. `mutate` has what the server makes of an object, `pools` and `multus` the rules by kind, `schema` the fields.

Source of the rules here: Spiderpool 1.2 (pkg/subnetmanager, pkg/reservedipmanager); the others name theirs.
"""

from __future__ import annotations

import typing as t

from .multus import check_cni, check_written
from .mutate import AdmissionError, Json, Key, key_of, mutate
from .pools import (
    Partition,
    check_cidr,
    check_gateway,
    check_in_use,
    check_ranges,
    check_unchanged,
    cidr_of,
    effective_ranges,
)
from .ranges import parse_cidr, parse_range, ranges_text
from .schema import KINDS, copied
from .shape import check_labels, check_name, check_schema

if t.TYPE_CHECKING:
    from collections.abc import Iterable


class Admission:
    """A set of objects and the webhooks in front of it.

    Each call answers for one object against the set: what the server would store, or AdmissionError with the message
    that the webhook sends. The set changes only when the call succeeds; `dry_run` never changes it. What the CRDs'
    schemas refuse (unknown fields, wrong types) is refused, as server-side apply does.
    """

    def __init__(self, existing: Iterable[Json] = ()) -> None:
        self._pools = {4: Partition(), 6: Partition()}
        self._objects: dict[Key, Json] = {}
        for obj in existing:
            self.load(obj)

    def load(self, obj: Json) -> None:
        """Take an object that is in the cluster already, unchecked."""
        try:
            stored = mutate(obj)
        except AdmissionError:
            stored = t.cast("Json", copied(obj))
        self._forget(stored)
        self._remember(stored)

    def create(self, obj: Json, *, dry_run: bool = False) -> Json:
        """Return what the server would store for a new object."""
        new = self._admitted(obj, None)
        if not dry_run:
            self._remember(new)
        return new

    def update(self, old: Json, new: Json, *, dry_run: bool = False) -> Json:
        """Return what the server would store for a changed object."""
        after = self._admitted(new, old)
        if not dry_run:
            self._forget(old)
            self._remember(after)
        return after

    def delete(self, obj: Json) -> None:
        """Take an object out of the set."""
        self._forget(obj)

    def _admitted(self, obj: Json, old: Json | None) -> Json:
        if KINDS.get(str(obj.get("kind"))) is None:
            return t.cast("Json", copied(obj))
        check_name(obj)
        check_schema(obj)
        new = mutate(obj)
        check_labels(new)
        if new["kind"] != "SriovNetworkNodePolicy":
            getattr(self, f"_check_{new['kind'].lower()}")(new, old)
        return new

    def _remember(self, obj: Json) -> None:
        kind, _namespace, name = key = key_of(obj)
        self._objects[key] = obj
        if kind == "SpiderIPPool" and (cidr := parse_cidr(obj["spec"]["subnet"])) is not None:
            ranges = effective_ranges(obj["spec"])
            self._pools[cidr.family].add(name, cidr.first, cidr.last, obj["spec"]["subnet"], ranges)

    def _forget(self, obj: Json) -> None:
        kind, _namespace, name = key = key_of(obj)
        stored = self._objects.pop(key, None)
        if stored is None:
            return
        if kind == "SpiderIPPool" and (cidr := parse_cidr(stored["spec"]["subnet"])) is not None:
            self._pools[cidr.family].remove(name)

    # One method a kind; the order inside is the webhook's.

    def _check_spiderippool(self, new: Json, old: Json | None) -> None:
        spec, name = new["spec"], new["metadata"]["name"]
        if old is not None:
            if old["metadata"].get("deletionTimestamp"):
                raise AdmissionError(new, "metadata.deletionTimestamp", "cannot update a terminating IPPool", code=403)
            check_unchanged(new, old, ("ipVersion", "subnet"))
        self._check_family(new)
        if old is None:
            check_cidr(new)
            if key_of(new) in self._objects:
                raise AdmissionError(new, "spec.subnet", f"Internal error: IPPool {name} already exists", code=409)
        cidr = cidr_of(new)
        partition = self._pools[cidr.family]
        if old is None and (clash := partition.overlapping_subnet(cidr.first, cidr.last, spec["subnet"])):
            raise AdmissionError(
                new,
                "spec.subnet",
                f'Invalid value: "{spec["subnet"]}": overlap with IPPool {clash[0]} which '
                f"'spec.subnet' is {clash[1]}",
            )
        check_ranges(new)
        if shared := partition.overlapping_pool(cidr.first, name, effective_ranges(spec)):
            raise AdmissionError(
                new,
                "spec.ips",
                f"Forbidden: overlap with IPPool {shared[0]} in IP ranges "
                f"[{' '.join(ranges_text(shared[1], cidr.family))}], total IP addresses of an IPPool are jointly "
                "determined by 'spec.ips' and 'spec.excludeIPs'",
            )
        check_gateway(new)
        if old is not None:
            check_in_use(new, old)

    def _check_spiderreservedip(self, new: Json, old: Json | None) -> None:
        if old is not None:
            check_unchanged(new, old, ("ipVersion",))
        self._check_family(new)
        family = new["spec"]["ipVersion"]
        for index, entry in enumerate(new["spec"]["ips"]):
            if (parsed := parse_range(entry)) is None or parsed.family != family or parsed.first > parsed.last:
                raise AdmissionError(
                    new, f"spec.ips[{index}]", f'Invalid value: "{entry}": invalid IP range format in IPv{family}'
                )

    def _check_spidermultusconfig(self, new: Json, old: Json | None) -> None:
        check_cni(new)
        check_written(new)

    def _check_family(self, obj: Json) -> None:
        family = obj["spec"].get("ipVersion")
        if family not in (4, 6):
            raise AdmissionError(obj, "spec.ipVersion", f'Unsupported value: {family}: supported values: "4", "6"')


def check(objects: Iterable[Json]) -> list[str]:
    """Return what the API would refuse of a set of new objects, in their order; [] when all of it would be stored."""
    admission = Admission()
    problems = []
    for obj in objects:
        try:
            admission.create(obj)
        except AdmissionError as exc:
            problems.append(str(exc))
    return problems


__all__ = ["Admission", "AdmissionError", "check"]
