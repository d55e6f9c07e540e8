# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What no webhook refuses and pods suffer from: pools that give out nothing, two rails on one pool, names nobody has.

Source: what Spiderpool's admission leaves unchecked, and what its allocation does with it (pkg/ipam/allocate.go,
pkg/ippoolmanager/ippool_manager.go): an address is looked up by the pod's UID per pool, so two interfaces of one pod on
one pool get the same address.
"""

from __future__ import annotations

import fnmatch
import re
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._intervals import merge, size, subtract
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.model import WIDTH
from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS

from .mutate import BLOCKS, AdmissionError, key_of, mutate
from .pools import effective_ranges
from .ranges import parse_cidr, parse_range, ranges_text

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from ansible_collections.railops.rdma.plugins.module_utils._intervals import Interval, Intervals

    from .mutate import Json

MAX_ALLOCATED = 5000
"""Addresses that Spiderpool's agent allocates from one pool at most (SPIDERPOOL_IPPOOL_MAX_ALLOCATED_IPS)."""
_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def strict(objects: Iterable[Json], nodes: Collection[str] | None = None) -> list[str]:
    """Return what is wrong with a whole set beyond what admission refuses.

    :param objects: everything that is to be in the cluster.
    :param nodes: the names of the cluster's nodes, where they are known.
    """
    found = _Findings()
    made = []
    for obj in objects:
        try:
            made.append((obj, mutate(obj)))
        except AdmissionError as exc:
            found.problems.append(str(exc))
    by_kind: dict[str, list[Json]] = {}
    for obj, new in made:
        by_kind.setdefault(str(obj.get("kind")), []).append(new)
        if obj.get("kind") == "SpiderIPPool":
            _pool(found, obj)
    pools = by_kind.get("SpiderIPPool", [])
    configs = by_kind.get("SpiderMultusConfig", [])
    reserved = _reserved(by_kind.get("SpiderReservedIP", ()))
    for pool in pools:
        _pool_among_others(found, pool, reserved, configs, nodes)
    for config in configs:
        _config(found, config)
    _pools_of_configs(found, configs, {pool["metadata"]["name"]: pool for pool in pools})
    return found.problems


class _Findings:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, obj: Json, place: str, problem: str) -> None:
        self.problems.append(f"{obj['kind']}/{obj['metadata']['name']} {place}: {problem}")


def _pool(found: _Findings, pool: Json) -> None:
    """Check one pool as it was written: the webhook's mutation hides some of it."""
    spec = pool.get("spec") or {}
    if spec.get("nodeName") == []:
        found.add(pool, "spec.nodeName", "An empty list opens the pool to every node.")
    cidr = parse_cidr(spec.get("subnet"))
    if cidr is None:
        return
    entries = [parse_range(text) for text in spec.get("ips") or ()]
    spans = [(item.first, item.last) for item in entries if item is not None]
    if any(first > last for first, last in spans):
        found.add(
            pool,
            "spec.ips",
            "A range ends before it begins: the webhook takes a single one so, and nothing can be allocated.",
        )
    elif size(merge(spans)) < size(spans):
        found.add(pool, "spec.ips", "Its entries overlap each other.")
    ranges = effective_ranges(spec)
    if not ranges:
        found.add(pool, "spec.ips", "The pool has no address to give.")
    if size(ranges) > MAX_ALLOCATED:
        found.add(
            pool,
            "spec.ips",
            f"{size(ranges)} addresses are more than the {MAX_ALLOCATED} that one pool can hand out.",
        )
    _ends(found, pool, ranges)


def _ends(found: _Findings, pool: Json, ranges: Intervals) -> None:
    """Check the first and last address: network and broadcast, or IPv6's subnet-router anycast, are nobody's."""
    cidr = parse_cidr(pool["spec"]["subnet"])
    if cidr is None or cidr.length > WIDTH[cidr.family] - 2:
        return
    for address in [cidr.first] if cidr.family == 6 else [cidr.first, cidr.last]:
        text = ranges_text(((address, address),), cidr.family)[0]
        if any(first <= address <= last for first, last in ranges):
            found.add(pool, "spec.ips", f"{text} is an end of the subnet: no pod can use it.")
        if parse_range(pool["spec"].get("gateway")) == (cidr.family, address, address):
            found.add(pool, "spec.gateway", f"{text} is an end of the subnet.")


def _reserved(objects: Iterable[Json]) -> dict[int, Intervals]:
    spans: dict[int, list[Interval]] = {4: [], 6: []}
    for obj in objects:
        for text in obj["spec"].get("ips") or ():
            if (parsed := parse_range(text)) is not None:
                spans[parsed.family].append((parsed.first, parsed.last))
    return {family: merge(found) for family, found in spans.items()}


def _pool_among_others(
    found: _Findings,
    pool: Json,
    reserved: dict[int, Intervals],
    configs: list[Json],
    nodes: Collection[str] | None,
) -> None:
    spec = pool["spec"]
    ranges = effective_ranges(spec)
    if (taken := reserved.get(spec["ipVersion"], ())) and size(subtract(ranges, taken)) < size(ranges):
        found.add(
            pool,
            "spec.ips",
            "It has addresses that a SpiderReservedIP keeps from everybody: they count and are never given.",
        )
    if nodes is not None:
        for name in spec.get("nodeName") or ():
            if name not in nodes:
                found.add(pool, "spec.nodeName", f"There is no node {name!r}.")
    if spec.get("multusName"):
        known = {"/".join(key_of(config)[1:]): config for config in configs}
        for name in spec["multusName"]:
            config = known.get(name)
            if "/" in name and config is None:
                found.add(pool, "spec.multusName", f"There is no config {name!r}.")


def _block(config: Json) -> Json:
    block = config["spec"].get(BLOCKS.get(config["spec"]["cniType"], ""))
    return block if isinstance(block, dict) else {}


def _config(found: _Findings, config: Json) -> None:
    annotations = config["metadata"].get("annotations") or {}
    given = [key for key in INJECT_KEYS if key in annotations]
    name = config["metadata"]["name"]
    if given and not _DNS_LABEL.fullmatch(name):
        found.add(
            config,
            "metadata.name",
            f"{name!r} cannot be injected: only names of at most 63 letters, digits and hyphens can.",
        )
    if len(given) == 2:
        found.add(config, "metadata.annotations", f"Only {given[0]} counts.")
    ippools = _block(config).get("ippools") or {}
    for family in ("ipv4", "ipv6"):
        names = ippools.get(family) or []
        if len(set(names)) < len(names):
            found.add(config, f"ippools.{family}", "A pool is named twice.")


def _pools_of_configs(found: _Findings, configs: list[Json], pools: dict[str, Json]) -> None:
    """Each named pool exists and is of its family, and no two interfaces of one pod share a pool."""
    users: dict[tuple[str, str], str] = {}
    for config in configs:
        ippools = _block(config).get("ippools") or {}
        own: set[str] = set()
        for family in (4, 6):
            for pattern in ippools.get(f"ipv{family}") or ():
                # As Go's filepath.Match does.
                names = [pattern] if pattern in pools else fnmatch.filter(pools, pattern.replace("[^", "[!"))
                if not names:
                    found.add(config, f"ippools.ipv{family}", f"No pool fits {pattern!r}.")
                if wrong := [name for name in names if pools[name]["spec"]["ipVersion"] != family]:
                    found.add(config, f"ippools.ipv{family}", f"{wrong[0]} is no IPv{family} pool.")
                own.update(names)
        annotations = config["metadata"].get("annotations") or {}
        value = next((annotations[key] for key in INJECT_KEYS if key in annotations), "")
        if shared := sorted({users[value, name] for name in own if users.get((value, name))}):
            found.add(
                config,
                "ippools",
                f"It shares a pool with {shared[0]}: two interfaces of one pod would get the same address.",
            )
        users.update({(value, name): config["metadata"]["name"] for name in own})
