# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the schedulers: labels of nodes, and Slurm's topology.

In Slurm a node may be under one leaf switch only (slurmctld warns of a second one), and here it is on one leaf per
rail: nodes that share all leaves form one switch, which represents these. Format: topology.conf(5) of Slurm 22.05.
"""

from __future__ import annotations

import hashlib
import re
import typing as t

from ...module_utils._fabric.labels import ZONE_LABEL, short_name
from ...module_utils._formatting import group_by
from .._fabric.model import Fabric, FabricPlan, Node
from .._fabric.names import leaf_label
from .._report.equal import number_ranges
from .check import LABEL_VALUE

_NUMBERED = re.compile(r"(.*[^0-9])([0-9]{1,9})")


# --- labels ----------------------------------------------------------------------------------------------------------


def label_value(text: str) -> str:
    """Return text as the value of a label: itself where that is one, else what is left of it and a digest."""
    if LABEL_VALUE.fullmatch(text):
        return text
    stem = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{stem}-{digest}" if stem else digest


Leaves = tuple[str, ...]


def leaves_of(fabric: Fabric, node: Node) -> Leaves:
    """Return the name of each rail's leaf: what the node says itself, else what its zone says, else nothing."""
    zone = fabric.zones[node.zone]
    own = [leaf for leaf, _port in node.cables] or [""] * len(fabric.rails)
    return tuple(leaf or zone.leaf(position) for position, leaf in enumerate(own))


def leaf_groups(plan: FabricPlan) -> dict[int, dict[Leaves, list[str]]]:
    """Return the nodes of each zone (index) by the leaves that they hang on, zones without nodes left out."""
    found: dict[int, dict[Leaves, list[str]]] = {}
    for node in sorted(plan.nodes, key=lambda node: node.zone):
        found.setdefault(node.zone, {}).setdefault(leaves_of(plan.fabric, node), []).append(node.name)
    return found


def is_tree(groups: dict[int, dict[Leaves, list[str]]]) -> bool:
    """Whether the groups of all rails coincide: every leaf is named, and in one group only."""
    every = [leaves for zone in groups.values() for leaves in zone]
    return all("" not in names and len(set(names)) == len(names) for names in zip(*every, strict=True))


def topology_labels(plan: FabricPlan) -> t.Iterator[tuple[dict[str, str], list[str]]]:
    """Yield the labels of zone and named leaves, each with its nodes; every node is in one group."""
    fabric = plan.fabric
    for index, groups in leaf_groups(plan).items():
        for leaves, nodes in groups.items():
            found = {ZONE_LABEL: fabric.zones[index].name} if fabric.zoned else {}
            for rail, leaf in zip(fabric.rails, leaves, strict=True):
                if leaf:
                    found[leaf_label(rail)] = label_value(leaf)
            yield found, nodes


# --- Slurm -----------------------------------------------------------------------------------------------------------


def hostlist(names: t.Iterable[str]) -> str:
    """Write names as Slurm does: `node[1-4,7],login1`. Numbers at the end are joined, with their leading zeros."""
    found = [(name, _NUMBERED.fullmatch(name)) for name in names]
    groups = group_by((match[1], match[2]) for _name, match in found if match)
    single = [name for name, match in found if not match]
    return ",".join([*(text for head, numbers in groups.items() for text in number_ranges(head, "", numbers)), *single])


def _switches(plan: FabricPlan) -> t.Iterator[tuple[str, str, str]]:
    """Yield the switches as (name, nodes, children), from the leaves to the top.

    Where the rails' groups of nodes coincide, a switch is such a group and has the name of its first rail's leaf; over
    the groups are the zones, over several zones the fabric. Elsewhere the zones are the lowest switches.
    """
    fabric, groups = plan.fabric, leaf_groups(plan)
    out = {node.name for node in plan.nodes if len(node.out) == len(fabric.rails)}
    fine = is_tree(groups) and any(len(zone) > 1 for zone in groups.values())
    top = []
    for index, zone in groups.items():
        used = {leaves: left for leaves, nodes in zone.items() if (left := [name for name in nodes if name not in out])}
        if not used:
            continue
        name = short_name(f"zone-{fabric.zones[index].name}" if fabric.zoned else f"fabric-{fabric.name}")
        top.append(name)
        if not fine:
            yield name, hostlist(node for nodes in used.values() for node in nodes), ""
            continue
        names = []
        for leaves, nodes in used.items():
            names.append(short_name(f"leaf-{label_value(leaves[0])}"))
            yield names[-1], hostlist(nodes), ""
        yield name, "", ",".join(names)
    if len(top) > 1:
        yield short_name(f"fabric-{fabric.name}"), "", ",".join(top)


SLURM_HEAD = """\
# The lowest switches stand for all leaves of their nodes: in Slurm a node is under one, here it has one per rail.
# The names are those of the nodes in the plan (fabric_node_name), which must be Slurm's NodeName.
"""


def slurm_conf(plan: FabricPlan) -> str:
    """Return topology.conf, for TopologyPlugin=topology/tree."""
    lines = [
        f"SwitchName={name} " + (f"Nodes={nodes}" if nodes else f"Switches={children}") + "\n"
        for name, nodes, children in _switches(plan)
    ]
    return SLURM_HEAD + "# For slurm.conf with TopologyPlugin=topology/tree.\n" + "".join(lines)
