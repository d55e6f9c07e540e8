# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

# This plugin util is PRIVATE to the collection.

"""Read one host plan on the controller, and refuse one that is not of the plan beside it.

A host plan is read by the one task that needs it, when it needs it: thousands of them as inventory variables cost a
minute and gigabytes before the first task. The layout of the folder is that of docs/concepts/slots.md.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import typing as t

from ansible.errors import AnsibleActionFail

from ..module_utils._errors import RdmaError
from ..module_utils._fabric.facts import Leaf, OutRow
from ..module_utils._fabric.lock import FACTS, HOST_PLAN_SCHEMA, LOCK, RERUN_FIX, digest_of, load_lock, paths_of
from ..module_utils._fabric.shapes import HostPlan, Neighbor, PlanFile
from ..module_utils._formatting import group_by
from ..module_utils._validation import FILE, excerpt, parsed
from ._refusal import Refusal, fail

HOSTS_FOLDER = "hosts"
MOST_DRAWN = 64
"""Addresses of a rail that a host's kernel is asked for."""


def refuse_other_node(given: t.Any, host: str, node: str) -> None:
    """Refuse a name of a host's node that is not the plan's: another node would be drained.

    :param given: what rdma_host_node_name says; nothing is as good as the plan's.
    """
    if given not in (None, "", node):
        fail(
            f"rdma_host_node_name of {host} is {excerpt(str(given))}, and the plan calls its node {node}.",
            f"Remove it and set fabric_node_name of {host} to the name that `kubectl get nodes` shows; plan "
            "again. [node_name_differs]",
        )


@functools.lru_cache(maxsize=2)
def _loaded(folder: str, stamp: tuple[int, int, int]) -> PlanFile:
    return load_lock(folder)


def read_plan(plan_dir: str) -> PlanFile:
    """Return plan.json, parsed once as long as the file is the same; it must not be changed.

    The merge of ten thousand hosts' results asks for the plan with every host.

    :raises Refusal: as `load_lock` does.
    """
    folder = os.path.abspath(plan_dir)
    try:
        with contextlib.suppress(OSError):
            stat = os.stat(os.path.join(folder, LOCK))
            return _loaded(folder, (stat.st_ino, stat.st_size, stat.st_mtime_ns))
        return load_lock(folder)
    except RdmaError as exc:
        raise Refusal(str(exc)) from None


def read_host_plan(plan_dir: str, host: str) -> HostPlan:
    """Return the host plan of one host.

    :param plan_dir: the fabric's plan folder, the one that holds plan.json; relative to the working directory.
    :param host: the inventory name of the host.
    :raises AnsibleActionFail: when there is no plan or host plan, when the two do not belong together (frozen_digest,
        node or slot is not plan.json's), when the node is retired, or when the schema is another one.
    """
    plan_dir = os.path.abspath(plan_dir)
    again = f"Run the playbook railops.rdma.plan to complete {plan_dir!r}, and run this one again. [host_plan_stale]"
    plan = read_plan(plan_dir)
    path = os.path.join(plan_dir, HOSTS_FOLDER, f"{host}.json")
    what = f"host plan of {host!r}"
    try:
        have = _parse(path)
        own = (have["schema"], have["frozen_digest"], have["slot"])
        entry = plan["nodes"].get(have["node"]) or {"slot": ""}
    except FileNotFoundError:
        fail(f"There is no {what}: {path!r} does not exist.", again)
    except (OSError, ValueError, KeyError, TypeError) as exc:
        fail(f"The {what} {path!r} cannot be read: {exc!r}.", again)
    if own != (HOST_PLAN_SCHEMA, digest_of(plan.get("frozen")), entry.get("slot")):
        fail(f"The host plan {path!r} is stale: its schema, frozen_digest, node or slot is not plan.json's.", again)
    if entry.get("retired"):
        fail(
            f"Node {have['node']!r} of host {host!r} is retired in the plan.",
            "Remove the host from the play, or release the node (docs/concepts/slots.md) and plan again. [retired]",
        )
    return t.cast("HostPlan", have)


def leaves_of(plan_dir: str) -> list[Leaf]:
    """Return the leaves of all zones: each of a zone and rail once, without unnamed ones.

    :raises Refusal: the plan has no facts.
    """
    try:
        rows = _parse(os.path.join(plan_dir, FACTS))["prefixes"]
    except FileNotFoundError:
        fail(f"The plan in {plan_dir!r} is incomplete: {FACTS} does not exist.", RERUN_FIX)
    leaves = {(row["zone"], row["rail"]): Leaf(zone=row["zone"], rail=row["rail"], leaf=row["leaf"]) for row in rows}
    return [leaf for leaf in leaves.values() if leaf["leaf"]]


def _parse(path: str) -> t.Any:
    with open(path, encoding="utf-8") as stream:
        return parsed(stream.read(), FILE)


def out_of_service(plan_dir: str) -> list[OutRow]:
    """Return the rails of hosts that the plan has out of service; none where there is no plan."""
    with contextlib.suppress(OSError, ValueError):
        rows: list[OutRow] = _parse(os.path.join(plan_dir, FACTS)).get("out_of_service", [])
        return rows
    return []


def hosts_out_of_service(plan_dir: str) -> list[str]:
    """Return the hosts that are out of service with all their rails."""
    return [row["host"] for row in out_of_service(plan_dir) if row["all_rails"]]


def planned_hosts(plan_dir: str) -> list[str]:
    """Return the hosts that have a host plan, sorted."""
    return sorted(os.path.basename(path)[: -len(".json")] for path in paths_of(plan_dir, HOSTS_FOLDER))


def proving_neighbors(plan_dir: str, host: str, turn: int = 0) -> list[Neighbor]:
    """Return the hosts that paths are proven to: the next one of the same zone, and one of another zone with its name.

    The order is by slot, and the first host follows the last one: every host is a neighbor of another. From three hosts
    on a second host of the same zone follows, so that two hosts test each host.

    :param turn: rotates the second one.
    """
    plan = read_plan(plan_dir)
    own = read_host_plan(plan_dir, host)["node"]
    away = {row["node"] for row in out_of_service(plan_dir) if row["all_rails"]}
    used = {name: entry for name, entry in plan["nodes"].items() if not entry["retired"] and name not in away}
    zones = group_by((entry["zone"], (entry["slot"], name)) for name, entry in used.items())
    zone, slot = plan["nodes"][own]["zone"], plan["nodes"][own]["slot"]
    found: list[Neighbor] = []
    same = sorted(zones[zone])
    neighbor = next((name for place, name in same if place > slot), same[0][1])
    if neighbor != own:
        found.append({"host": neighbor, "rails": _rails_of(plan_dir, neighbor)})
    zone_names = sorted(zones)
    other = zone_names[(zone_names.index(zone) + 1) % len(zone_names)]
    if other != zone:
        there = sorted(zones[other])
        name = next((name for place, name in there if place >= slot), there[0][1])
        found.append({"host": name, "zone": other, "rails": _rails_of(plan_dir, name)})
    if len(same) > 2:
        step = 2 + turn % (len(same) - 2)
        second = same[(same.index((slot, own)) + step) % len(same)][1]
        found.append({"host": second, "rails": _rails_of(plan_dir, second)})
    # A node whose host has another name in the inventory is not found by it: then it is the next by name.
    found = [item for item in found if item["rails"]]
    names = (
        []
        if found
        else [name for name in planned_hosts(plan_dir) if name not in (host, *hosts_out_of_service(plan_dir))]
    )
    after = [name for name in names if name > host] or names
    return found or [{"host": name, "rails": read_host_plan(plan_dir, name)["rails"]} for name in after[:1]]


def drawn_addresses(plan_dir: str, host: str, seed: int) -> dict[str, list[str]]:
    """Return addresses of other hosts by rail, at most MOST_DRAWN of each; hosts draw differently, a seed the same."""
    own, plan = read_host_plan(plan_dir, host), read_plan(plan_dir)
    families = max((len(rail["addresses"]) for rail in own["rails"]), default=1) or 1
    # Hosts may have other names in the inventory than their nodes; ten thousand names are listed only then.
    names = plan["nodes"] if own["node"] == host else planned_hosts(plan_dir)
    others = [name for name in names if name != host]
    found: dict[str, list[str]] = {}
    for name in random.Random(f"{seed} {host}").sample(others, min(len(others), MOST_DRAWN // families)):
        try:
            have = _parse(os.path.join(plan_dir, HOSTS_FOLDER, f"{name}.json"))
        except (OSError, ValueError):
            continue
        entry = plan["nodes"].get(have.get("node"))
        if have.get("frozen_digest") == own["frozen_digest"] and entry and not entry["retired"]:
            for rail in have["rails"]:
                found.setdefault(rail["name"], []).extend(item["address"] for item in rail["addresses"])
    return found


def _rails_of(plan_dir: str, node: str) -> list[dict[str, t.Any]]:
    with contextlib.suppress(AnsibleActionFail):
        have = read_host_plan(plan_dir, node)
        if have["node"] == node:
            return [
                {"name": rail["name"], "addresses": [{"address": item["address"]} for item in rail["addresses"]]}
                for rail in have["rails"]
            ]
    return []
