# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What no webhook refuses and pods suffer from: two rails on one pool, pools for every node, names without an object.

The addresses themselves are for plan_checker.

Source: what Spiderpool's admission leaves unchecked, and what its allocation does with it (pkg/ipam/allocate.go,
pkg/ippoolmanager/ippool_manager.go): an address is looked up by the pod's UID per pool, so two interfaces of one pod on
one pool get the same address.
"""

from __future__ import annotations

import fnmatch
import re
import typing as t

from ansible_collections.railops.rdma.plugins.plugin_utils._fabric.options import INJECT_KEYS

from .mutate import BLOCKS, AdmissionError, key_of, mutate

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from .mutate import Json

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
        # As it was written: the webhook's mutation hides it.
        if obj.get("kind") == "SpiderIPPool" and obj["spec"].get("nodeName") == []:
            found.add(obj, "spec.nodeName", "An empty list opens the pool to every node.")
    pools = by_kind.get("SpiderIPPool", [])
    configs = by_kind.get("SpiderMultusConfig", [])
    for pool in pools:
        _pool_among_others(found, pool, configs, nodes)
    for config in configs:
        _config(found, config)
    _pools_of_configs(found, configs, {pool["metadata"]["name"]: pool for pool in pools})
    return found.problems


class _Findings:
    def __init__(self) -> None:
        self.problems: list[str] = []

    def add(self, obj: Json, place: str, problem: str) -> None:
        self.problems.append(f"{obj['kind']}/{obj['metadata']['name']} {place}: {problem}")


def _pool_among_others(found: _Findings, pool: Json, configs: list[Json], nodes: Collection[str] | None) -> None:
    spec = pool["spec"]
    if nodes is not None:
        for name in spec.get("nodeName") or ():
            if name not in nodes:
                found.add(pool, "spec.nodeName", f"There is no node {name!r}.")
    known = {"/".join(key_of(config)[1:]) for config in configs}
    for name in spec.get("multusName") or ():
        if "/" in name and name not in known:
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
