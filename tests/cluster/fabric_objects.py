# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Small fabrics as the planner makes them: a pool a node and rail, a config a rail, a reserved address."""

from __future__ import annotations

import ipaddress
import typing as t

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import LABEL_FABRIC, LABEL_MANAGER
from ansible_collections.railops.rdma.plugins.module_utils._fabric.numbers import MANAGER

Json = dict[str, t.Any]
SPIDERPOOL = "spiderpool.spidernet.io/v2beta1"
NAMESPACE = "spiderpool"


def labels(fabric: str) -> dict[str, str]:
    """Return the labels of ownership."""
    return {LABEL_MANAGER: MANAGER, LABEL_FABRIC: fabric}


def pool(fabric: str, rail: int, node: int, most: int = 64) -> Json:
    """Return the pool of a node and rail: a /27 of 172.17.0.0/16, gateway .1, node .2, pods .3 to .30."""
    base = int(ipaddress.ip_address("172.17.0.0")) + ((rail - 1) * most + node - 1) * 32

    def at(offset: int) -> str:
        return str(ipaddress.ip_address(base + offset))

    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderIPPool",
        "metadata": {"name": f"{fabric}-rail{rail}-v4-node{node}", "labels": labels(fabric)},
        "spec": {
            "subnet": f"{at(0)}/27",
            "ipVersion": 4,
            "ips": [f"{at(3)}-{at(30)}"],
            "gateway": at(1),
            "nodeName": [f"node{node}"],
            "multusName": [f"{NAMESPACE}/{fabric}-rail{rail}"],
        },
    }


def config(fabric: str, rail: int) -> Json:
    """Return the multus config of a rail."""
    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderMultusConfig",
        "metadata": {"name": f"{fabric}-rail{rail}", "namespace": NAMESPACE, "labels": labels(fabric)},
        "spec": {
            "cniType": "macvlan",
            "macvlan": {
                "master": [f"ens{rail}np0"],
                "ippools": {"ipv4": [f"{fabric}-rail{rail}-v4-*"]},
                "rdmaResourceName": f"spidernet.io/rail{rail}",
            },
        },
    }


def reserved(fabric: str) -> Json:
    """Return the reserved addresses of a fabric."""
    return {
        "apiVersion": SPIDERPOOL,
        "kind": "SpiderReservedIP",
        "metadata": {"name": f"{fabric}-reserved-v4", "labels": labels(fabric)},
        "spec": {"ipVersion": 4, "ips": ["172.17.255.1"]},
    }


def fabric_of(name: str, nodes: t.Iterable[int], rails: int) -> list[Json]:
    """Return all objects of a fabric."""
    rows = [pool(name, rail, node) for rail in range(1, rails + 1) for node in nodes]
    return [reserved(name), *rows, *(config(name, rail) for rail in range(1, rails + 1))]
