# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Turns what a run would do to the cluster's objects, and what nv-ipam did with its pools, into checks. Pure."""

from __future__ import annotations

import ipaddress
import typing as t

from .._check import Check, deviation, ok

_SITE = "Run the playbook railops.rdma.cluster."
# What a change of a dry run means for the object that is there.
_OBSERVED = {
    "create": ("not there", "the object was deleted, or never applied"),
    "delete": ("there, and not planned", "an earlier plan or a user made it with a managed label"),
    "replace": ("another one", "a field that cannot be changed in place differs"),
    "apply": ("different", "another user edited it, or the plan is newer than the cluster"),
}


def _name(entry: t.Mapping[str, t.Any]) -> str:
    space = f"{entry['namespace']}/" if entry["namespace"] else ""
    return f"{entry['kind']} {space}{entry['name']}"


def object_checks(result: t.Mapping[str, t.Any]) -> list[Check]:
    """Return one check for each object that differs, and one for all that do not.

    :param result: what cluster_objects returns in check mode.
    """
    checks: list[Check] = []
    for entry in result["changes"]:
        shown, cause = _OBSERVED[entry["action"]]
        fields = ", ".join(entry["fields"])
        planned = f"no {_name(entry)}" if entry["action"] == "delete" else _name(entry)
        checks.append(deviation("object_state", planned, f"{shown}: {fields}" if fields else shown, cause, _SITE))
    checks += [
        _stays("object_in_use", entry, "it is in use", "Move those pods away and run again.")
        for entry in result["kept"]
    ]
    for entry in result["conflicts"]:
        fix = "Remove the field from the other owner's declaration, or from the plan."
        checks.append(_stays("object_owner", entry, f"{entry['owner']} owns it", fix))
    if same := result["summary"]["unchanged"]:
        checks.append(ok("object_state", f"{same} objects", f"{same} objects as planned"))
    return checks


def _stays(check: str, entry: t.Mapping[str, t.Any], cause: str, fix: str) -> Check:
    field = f" {entry['field']}" if entry.get("field") else ""
    return deviation(check, f"{_name(entry)}{field}", entry["reason"], cause, fix)


def prefix_checks(pools: t.Iterable[t.Mapping[str, t.Any]]) -> list[Check]:
    """Return a check for each node that a CIDRPool's controller gave something else, and one for all others.

    :param pools: CIDRPools, as the API stores them.
    """
    checks: list[Check] = []
    good = 0
    for pool in pools:
        spec, name = pool["spec"], pool["metadata"]["name"]
        given = {row["nodeName"]: row for row in (pool.get("status") or {}).get("allocations") or ()}
        rows = {row["nodeName"]: row["prefix"] for row in spec.get("staticAllocations") or () if "nodeName" in row}
        inspect = f"See kubectl -n {pool['metadata']['namespace']} describe cidrpool {name}: its events show why."
        if rows and not given:
            cause = "nv-ipam's controller gave nothing of this pool to any node: it does not run, does not watch "
            cause += "this namespace, or found the pool invalid"
            checks.append(deviation("pool_prefix", f"{len(rows)} prefixes", "nothing", cause, inspect, object=name))
            continue
        for node in sorted(given.keys() - rows):
            cause = "the node has the fabric's label, and the plan does not name it"
            fix = "Remove the label, or plan the node; no other node may get that prefix meanwhile."
            where = {"node": node, "object": name}
            checks.append(deviation("pool_prefix", "nothing", given[node]["prefix"], cause, fix, **where))
        for node, prefix in rows.items():
            planned = _prefix(prefix, spec.get("gatewayIndex"))
            have = given.get(node)
            observed = f"{have['prefix']} via {have.get('gateway') or 'no gateway'}" if have else "nothing"
            if planned == observed:
                good += 1
                continue
            cause, fix = "the node lacks the fabric's label, or is not in the cluster", _SITE
            if have:
                cause, fix = "nv-ipam's controller does not run, or the pool changed a moment ago", inspect
            checks.append(deviation("pool_prefix", planned, observed, cause, fix, node=node, object=name))
    if good:
        checks.append(ok("pool_prefix", f"{good} prefixes of nodes", f"{good} prefixes of nodes as planned"))
    return checks


def _prefix(prefix: str, gateway: int | None) -> str:
    by = "no gateway" if gateway is None else str(ipaddress.ip_network(prefix)[gateway])
    return f"{prefix} via {by}"
