# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The webhook's rules for SpiderIPPools: one object's own, and the flat partition of subnets and addresses.

Source: Spiderpool 1.2, pkg/ippoolmanager/ippool_validate.go. Addresses are integers here, so that one large range costs
what one address does.
"""

from __future__ import annotations

import json
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._intervals import merge, subtract

from .mutate import AdmissionError, Json
from .ranges import Cidr, parse_address, parse_cidr, parse_range

if t.TYPE_CHECKING:
    from ansible_collections.railops.rdma.plugins.module_utils._intervals import Intervals

UNPARSABLE = "is neither an address nor a range of the pool's family"


class Partition:
    """The pools of one family: disjoint subnets, and inside of each subnet disjoint addresses."""

    def __init__(self) -> None:
        self._pools: dict[str, tuple[int, int, str, Intervals]] = {}

    def overlapping_subnet(self, first: int, last: int, text: str) -> tuple[str, str] | None:
        """Return (pool, subnet) of another subnet that contains this one or lies in it."""
        for name, (start, end, other, _ranges) in self._pools.items():
            if other != text and start <= last and first <= end:
                return name, other
        return None

    def overlapping_pool(self, first: int, name: str, ranges: Intervals) -> tuple[str, Intervals] | None:
        """Return (pool, addresses) of the first other pool of the subnet that shares an address."""
        for other, (start, _end, _text, taken) in self._pools.items():
            shared = subtract(ranges, subtract(ranges, taken)) if start == first and other != name else ()
            if shared:
                return other, shared
        return None

    def add(self, name: str, first: int, last: int, text: str, ranges: Intervals) -> None:
        """Remember a pool.

        :param name: the pool's.
        :param first: address of its subnet.
        :param last: address of its subnet.
        :param text: the subnet as it is written.
        """
        self._pools[name] = first, last, text, ranges

    def remove(self, name: str) -> None:
        """Forget a pool."""
        self._pools.pop(name, None)


def effective_ranges(spec: Json) -> Intervals:
    """Return the addresses that a pool gives out; what does not parse counts nothing."""
    parsed = (parse_range(entry) for entry in spec.get("ips") or ())
    return merge([(min(item.first, item.last), max(item.first, item.last)) for item in parsed if item is not None])


def allocations(obj: Json) -> Json:
    """Return the allocated addresses of a pool: address -> {pod, podUid}."""
    return dict(json.loads((obj.get("status") or {}).get("allocatedIPs") or "{}"))


def check_unchanged(new: Json, old: Json, fields: tuple[str, ...]) -> None:
    for field in fields:
        before, after = old["spec"].get(field), new["spec"].get(field)
        if before != after and not (field == "ipVersion" and before is None):
            raise AdmissionError(new, f"spec.{field}", f"Forbidden: is not changeable (it is {before})")


def cidr_of(obj: Json) -> Cidr:
    text = obj["spec"]["subnet"]
    cidr = parse_cidr(text)
    if cidr is None:
        raise AdmissionError(obj, "spec.subnet", f'Invalid value: "{text}": invalid CIDR address')
    return cidr


def check_cidr(obj: Json) -> None:
    text, family = obj["spec"]["subnet"], obj["spec"]["ipVersion"]
    cidr = parse_cidr(text)
    if cidr is None or cidr.family != family:
        raise AdmissionError(obj, "spec.subnet", f'Invalid value: "{text}": invalid CIDR format in IPv{family}')
    if cidr.masked() != text:
        raise AdmissionError(
            obj,
            "spec.subnet",
            f'Invalid value: "{text}": unformatted subnet {text}, please change it to {cidr.masked()}',
        )


def check_ranges(obj: Json) -> None:
    """Every entry is an address or a range in the subnet. A single reversed range passes.

    As upstream's webhook lets it pass at creation; a pool that is changed to one is refused there (seen on 2026-11-23).
    """
    cidr = cidr_of(obj)
    for index, entry in enumerate(obj["spec"].get("ips") or ()):
        parsed = parse_range(entry)
        place = f"spec.ips[{index}]"
        if parsed is None or parsed.family != cidr.family:
            raise AdmissionError(
                obj, place, f'Invalid value: "{entry}": invalid IP range format in IPv{cidr.family}: it {UNPARSABLE}'
            )
        if min(parsed.first, parsed.last) < cidr.first or max(parsed.first, parsed.last) > cidr.last:
            raise AdmissionError(
                obj,
                place,
                f"Invalid value: \"{entry}\": not pertains to the 'spec.subnet' {obj['spec']['subnet']} of IPPool: "
                "it is not inside the subnet",
            )


def check_gateway(obj: Json) -> None:
    place, gateway = "spec.gateway", obj["spec"].get("gateway")
    if gateway is None:
        return
    cidr, address = cidr_of(obj), parse_address(gateway)
    if address is None or address[0] != cidr.family:
        raise AdmissionError(obj, place, f'Invalid value: "{gateway}": invalid IP')
    if not cidr.first <= address[1] <= cidr.last:
        raise AdmissionError(
            obj,
            place,
            f"Invalid value: \"{gateway}\": not pertains to the 'spec.subnet' {obj['spec']['subnet']} of IPPool",
        )
    for index, entry in enumerate(obj["spec"].get("ips") or ()):
        parsed = parse_range(entry)
        if parsed is not None and parsed.first <= address[1] <= parsed.last:
            raise AdmissionError(
                obj,
                f"spec.ips[{index}]",
                f"Invalid value: \"{entry}\": conflicts with 'spec.gateway' {gateway}, add the gateway IP address to "
                "'spec.excludeIPs' or remove it from 'spec.ips'",
            )


def check_in_use(new: Json, old: Json) -> None:
    used = allocations(new) or allocations(old)
    if not used:
        return
    ranges = effective_ranges(new["spec"])
    for text, record in used.items():
        address = parse_address(text)
        if address is not None and not any(first <= address[1] <= last for first, last in ranges):
            raise AdmissionError(
                new,
                "spec.ips",
                f"Forbidden: remove an IP address {text} that is being used by Pod {record['pod']}, total IP addresses "
                "of an IPPool are jointly determined by 'spec.ips' and 'spec.excludeIPs'",
            )
