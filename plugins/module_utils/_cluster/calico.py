# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How Calico finds a node's own address: whether that may be a rail's, what it is set to, and the way back. Pure."""

from __future__ import annotations

import ipaddress
import re
import typing as t

from .model import Json

METHOD, OPERATED = "kubernetes-internal-ip", "NodeInternalIP"
"""What it is set to: the node's Kubernetes address, as calico-node says it and as Tigera's operator does."""
# By family: calico-node's variable with the method, the one that says whether it is used; the operator's field.
FAMILIES = {
    4: ("IP_AUTODETECTION_METHOD", "IP", "nodeAddressAutodetectionV4"),
    6: ("IP6_AUTODETECTION_METHOD", "IP6", "nodeAddressAutodetectionV6"),
}
# The fields of the operator's choice; it refuses two at once.
CHOICES = {
    "firstFound": "first-found",
    "interface": "interface=",
    "skipInterface": "skip-interface=",
    "canReach": "can-reach=",
    "cidrs": "cidr=",
}


def may_choose_rail(method: str, interfaces: t.Collection[str], prefixes: t.Iterable[str]) -> bool:
    """Return whether a method of calico-node may choose a rail's address.

    :param interfaces: the rails' names on the nodes.
    :param prefixes: the rails' networks.
    """
    word, _equals, given = method.partition("=")
    networks = [ipaddress.ip_network(text) for text in prefixes]
    try:
        if word in ("interface", "skip-interface"):
            hit = [any(re.search(pattern, name) for pattern in given.split(",")) for name in interfaces]
            return any(hit) if word == "interface" else not all(hit)
        if word == "cidr":
            named = [ipaddress.ip_network(text.strip(), strict=False) for text in given.split(",")]
            return any(one.version == net.version and one.overlaps(net) for one in named for net in networks)
    except (re.error, ValueError):
        return True
    # By a name or address elsewhere (can-reach) it takes the way that the node's own routes have, never a rail.
    return word not in (METHOD, "can-reach")


def patches(
    daemon_set: Json, installation: Json | None, interfaces: t.Collection[str], prefixes: t.Collection[str]
) -> Json:
    """Return what is to be changed of Calico, and what brings that back; nothing where no rail can be chosen.

    :param daemon_set: calico-node.
    :param installation: Tigera's, where its operator owns Calico.
    :param interfaces: the rails' names on the nodes.
    :param prefixes: the rails' networks.
    """
    if installation is None:
        return _of_node(daemon_set, interfaces, prefixes)
    network = (installation.get("spec") or {}).get("calicoNetwork") or {}
    cidrs = [str(row.get("cidr")) for row in network.get("ipPools") or ()]
    # One for a family without addresses is refused as well.
    families = [
        family for family in FAMILIES if (not cidrs and family == 4) or any((":" in c) == (family == 6) for c in cidrs)
    ]
    had = {}
    for field in (FAMILIES[family][2] for family in families):
        row: t.Mapping[str, t.Any] = network.get(field) or {"firstFound": True}
        method = next((f"{text}{_joined(row[key])}" for key, text in CHOICES.items() if row.get(key)), METHOD)
        if may_choose_rail(method, interfaces, prefixes):
            had[field] = network.get(field)
    blank: Json = dict.fromkeys((*CHOICES, "kubernetes"))
    new = {field: {**blank, "kubernetes": OPERATED} for field in had}
    back = {field: None if row is None else {**blank, **row} for field, row in had.items()}
    return _made("Installation", "operator.tigera.io/v1", "", new, back, lambda rows: {"calicoNetwork": rows})


def _joined(value: t.Any) -> str:
    return "" if value is True else ",".join(value) if isinstance(value, list) else str(value)


def _of_node(daemon_set: Json, interfaces: t.Collection[str], prefixes: t.Collection[str]) -> Json:
    boxes = daemon_set["spec"]["template"]["spec"]["containers"]
    rows = {row["name"]: row for box in boxes if box["name"] == "calico-node" for row in box.get("env") or ()}
    had = {}
    for name, switch, _field in FAMILIES.values():
        # Where the family has an address that was typed, or none, nothing is looked for.
        looked = (rows.get(switch) or {}).get("value", "autodetect" if switch == "IP" else "none")
        method = (rows.get(name) or {}).get("value", "first-found") or "first-found"
        if looked == "autodetect" and may_choose_rail(method, interfaces, prefixes):
            had[name] = rows.get(name)
    new: Json = {}
    back: Json = {}
    for name, row in had.items():
        # What is in one of the two and not in the other has to be taken away by name.
        other = {"valueFrom": None} if row and "valueFrom" in row else {}
        new[name] = {"name": name, "value": METHOD, **other}
        back[name] = {**({"value": None} if other else {}), **row} if row else {"name": name, "$patch": "delete"}

    def body(env: Json) -> Json:
        return {"template": {"spec": {"containers": [{"name": "calico-node", "env": list(env.values())}]}}}

    return _made("DaemonSet", "apps/v1", daemon_set["metadata"]["namespace"], new, back, body)


def _made(kind: str, api_version: str, namespace: str, new: Json, back: Json, body: t.Callable[[Json], Json]) -> Json:
    if not new:
        return {}
    where = {"kind": kind, "api_version": api_version, "namespace": namespace, "names": sorted(new)}
    return {**where, "new": {"spec": body(new)}, "back": {"spec": body(back)}}
