# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Fabrics for tests: the example inventories, and one of every kind beside them."""

from __future__ import annotations

from configparser import ConfigParser
from pathlib import Path

import yaml

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.allocation import allocate
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.blocks import build_plan
from ansible_collections.railops.rdma.plugins.plugin_utils._plan.run import read_input

CHECKOUT = Path(__file__).resolve().parents[2]
EXAMPLES = (
    "shared",
    "exclusive",
    "sriov-roce",
    "sriov-roce-shared",
    "infiniband",
    "infiniband-ipoib",
    "two-zones-dual-stack",
    "guests",
)
INJECT = {"key": "cni.spidernet.io/rdma-resource-inject", "value": "rails"}


def plan_of(raw, nodes):
    """Plan a fabric from its raw values (names without fabric_) and its nodes (names, or dictionaries)."""
    given = [node if isinstance(node, dict) else {"host": node, "groups": []} for node in nodes]
    fabric, options, candidates = read_input(raw, given)
    allocation = allocate(fabric, candidates, None, options)
    return build_plan(fabric, allocation.nodes, allocation.retired, allocation.warnings)


def block_of(plan, zone, rail, family):
    """Return the block of a zone (index), rail (index from 0) and family."""
    return next(block for block in plan.blocks if (block.zone, block.rail, block.family) == (zone, rail, family))


def example(name):
    """Return (raw values, nodes) of an example inventory."""
    folder = CHECKOUT / "inventory" / name
    values = yaml.safe_load((folder / "group_vars/all/fabric.yml").read_text(encoding="utf-8"))
    raw = {key.removeprefix("fabric_"): value for key, value in values.items()}
    parser = ConfigParser(allow_no_value=True)
    parser.optionxform = str
    parser.read(folder / "hosts", encoding="utf-8")
    groups = {section: list(parser[section]) for section in parser.sections() if ":" not in section}
    zoned = {zone["group"] for zone in raw.get("zones", ())}
    nodes = [
        {"host": host, "groups": [group] if group in zoned else []} for group, hosts in groups.items() for host in hosts
    ]
    return raw, nodes


def rails(count=8, interface="ens{}np0", **more):
    """Return rails as people declare them."""
    return [{"interface": interface.format(number + 1), **more} for number in range(count)]


def names(count, first=1):
    """Return node names."""
    return [f"node{number}" for number in range(first, first + count)]


def raw_of(**more):
    """Return the values of the guides' exclusive fabric, with changes."""
    base = {"mode": "exclusive", "supernets": ["172.17.0.0/16"], "rails": rails(), "max_nodes": 8, "inject": INJECT}
    return {**base, **more}


SWAPPED = {"host": "node3", "groups": [], "interfaces": {"rail1": "ens2np0", "rail2": "ens1np0"}}
OTHER = {"host": "node4", "groups": [], "interfaces": {"rail1": "eth100"}}
ZONES = [
    {"name": "su1", "group": "su1", "supernets": ["172.20.0.0/16", "fd00:20::/48"], "max_nodes": 16},
    {"name": "su2", "group": "su2", "supernets": ["172.21.0.0/16", "fd00:21::/48"], "max_nodes": 16},
    {"name": "empty", "group": "empty", "supernets": ["172.22.0.0/16", "fd00:22::/48"], "max_nodes": 16},
]
ZONED = [{"host": f"node{number}", "groups": ["su1" if number < 4 else "su2"]} for number in range(1, 8)]
INFINIBAND = {"network": "infiniband", "attachment": "ib-sriov", "rails": rails(8, "ibs{}")}

SAMPLES = {
    **{name: example(name) for name in EXAMPLES},
    "guides shared": (
        raw_of(
            mode="shared",
            rails=[{"interface": "ens1np0", "subnets": ["172.16.11.0/24"]}],
            max_nodes=53,
            gateway="last",
            host_addresses="end",
        ),
        names(3),
    ),
    "ipvlan with vlan": (raw_of(attachment="ipvlan", vlan=100, mtu=9000), names(3)),
    "ipv6 only": (raw_of(supernets=["fd00:17::/48"]), names(3)),
    "dual stack shared": (raw_of(mode="shared", supernets=["172.17.0.0/16", "fd00:17::/48"]), names(3)),
    "zones shared": (raw_of(mode="shared", supernets=None, zones=ZONES), ZONED),
    "zones exclusive": (raw_of(supernets=None, zones=ZONES), ZONED),
    "sixteen rails": (raw_of(rails=rails(16)), names(2)),
    "reserved": (
        raw_of(reserved=["172.17.0.5-172.17.0.9", "172.17.2.40", "10.0.0.1", "10.9.0.0/16", "fd00::1"]),
        names(8),
    ),
    "large pools": (raw_of(node_prefix=18, supernets=["10.0.0.0/8"], rails=rails(2)), names(3)),
    "large shared": (raw_of(mode="shared", rail_prefix=18, supernets=["10.0.0.0/8"]), names(3)),
    "no gateway": (raw_of(gateway="none", inject=None), names(2)),
    "names with dots": (raw_of(), ["gpu1.example.com", "gpu2.example.com", "n" * 60 + "." + "m" * 60, "123", "null"]),
    "names differ": (raw_of(), ["node1", "node2", OTHER]),
    "names swapped": (raw_of(), ["node1", "node2", SWAPPED, OTHER]),
    "sriov names swapped": (raw_of(attachment="sriov"), ["node1", "node2", SWAPPED, OTHER]),
    "ib exclusive": (raw_of(**INFINIBAND), names(3)),
    "ib links": (raw_of(**INFINIBAND, node_prefix=31, gateway="last", inject=None), names(3)),
    "lid only": (raw_of(**INFINIBAND, supernets=[], inject=None), names(3)),
    "ipoib": (raw_of(network="infiniband", attachment="ipoib", rails=rails(8, "ibs{}"), mode="shared"), names(3)),
    "network injection": (
        raw_of(inject={"key": "cni.spidernet.io/network-resource-inject", "value": "v" * 63}),
        ["node1", OTHER],
    ),
    "words": (raw_of(name="on", namespace="123", resource_prefix="true", inject={"value": "1e3"}), ["1", "0x1f"]),
}
