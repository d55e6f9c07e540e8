# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to the schedulers: labels of nodes, Slurm's topology and Kueue's.

All nodes of a zone hang on the same leaves, so the zone is the smallest group that a scheduler has to keep together.
In Slurm a node may be under one leaf switch only (slurmctld warns of a second one), and here it hangs on one leaf a
rail: a zone is one switch, which stands for all of its leaves. Formats: topology.conf(5) of Slurm 22.05,
topology.yaml(5) of 25.05; Kueue's Topology v1beta2.
"""

from __future__ import annotations

import hashlib
import re
import typing as t

from ...module_utils._fabric.names import ZONE_LABEL, labels, leaf_label, short_name
from .text import block as yaml_block

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...module_utils._fabric.model import Fabric, Plan, Zone

Json = dict[str, t.Any]

HOSTNAME = "kubernetes.io/hostname"
KUEUE = "kueue.x-k8s.io/v1beta2"
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_NUMBERED = re.compile(r"(.*[^0-9])(0|[1-9][0-9]{0,8}|0[0-9]{1,8})")


# --- labels ----------------------------------------------------------------------------------------------------------


def label_value(text: str) -> str:
    """Return text as the value of a label: itself where that is one, else what is left of it and a digest."""
    if _VALUE.fullmatch(text):
        return text
    kept = re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-")[:40].strip("-")
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{kept}-{digest}" if kept else digest


def zone_labels(fabric: Fabric, zone: Zone) -> dict[str, str]:
    """Return the labels that all nodes of a zone have; none without zones, and no leaf that nobody named."""
    if not fabric.zoned:
        return {}
    found = {ZONE_LABEL: zone.name}
    for position, rail in enumerate(fabric.rails):
        leaf = zone.leaf(position)
        if leaf:
            found[leaf_label(rail)] = label_value(leaf)
    return found


def topology_labels(plan: Plan) -> Json:
    """Return the labels of all nodes, those with the same ones together."""
    fabric = plan.fabric
    groups = [
        {"labels": zone_labels(fabric, zone), "nodes": [node.name for node in plan.nodes_of(index)]}
        for index, zone in enumerate(fabric.zones)
    ]
    return {"groups": [group for group in groups if group["labels"] and group["nodes"]]}


# --- Slurm -----------------------------------------------------------------------------------------------------------


def hostlist(names: Iterable[str]) -> str:
    """Write names as Slurm does: `node[1-4,7],login1`. Numbers at the end are joined, with their leading zeros."""
    groups: dict[tuple[str, int], list[int]] = {}
    single = []
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is None:
            single.append(name)
            continue
        digits = match[2]
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        groups.setdefault((match[1], width), []).append(int(digits))
    return ",".join([*(_range(head, width, found) for (head, width), found in groups.items()), *single])


def _range(head: str, width: int, numbers: list[int]) -> str:
    if len(numbers) == 1:
        return f"{head}{numbers[0]:0{width}d}"
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    parts = [f"{low:0{width}d}" + (f"-{high:0{width}d}" if high > low else "") for low, high in spans]
    return f"{head}[{','.join(parts)}]"


def _switches(plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Give the switches as (name, nodes, children): the zones, and over several of them the fabric."""
    fabric = plan.fabric
    if not fabric.zoned:
        if plan.nodes:
            yield short_name(f"fabric-{fabric.name}"), hostlist(node.name for node in plan.nodes), ""
        return
    zones = []
    for index, zone in enumerate(fabric.zones):
        nodes = plan.nodes_of(index)
        if nodes:
            zones.append(short_name(f"zone-{zone.name}"))
            yield zones[-1], hostlist(node.name for node in nodes), ""
    if len(zones) > 1:
        yield short_name(f"fabric-{fabric.name}"), "", ",".join(zones)


SLURM_HEAD = """\
# A switch stands for all leaves of a zone: in Slurm a node is under one leaf switch, here it hangs on one a rail.
# The names are those of the nodes in the plan (fabric_node_name), which must be Slurm's NodeName.
"""


def slurm_conf(plan: Plan) -> str:
    """Return topology.conf, for TopologyPlugin=topology/tree."""
    lines = [
        f"SwitchName={name} " + (f"Nodes={nodes}" if nodes else f"Switches={children}") + "\n"
        for name, nodes, children in _switches(plan)
    ]
    return SLURM_HEAD + "# For slurm.conf with TopologyPlugin=topology/tree.\n" + "".join(lines)


def slurm_yaml(plan: Plan) -> str:
    """Return topology.yaml, which Slurm 25.05 and later take in place of topology.conf."""
    switches = [
        {"switch": name, **({"nodes": nodes} if nodes else {"children": children})}
        for name, nodes, children in _switches(plan)
    ]
    head = SLURM_HEAD + "# For Slurm 25.05 and later: where it exists, topology.conf is not read.\n"
    if not switches:
        return head
    topology = {"topology": short_name(f"fabric-{plan.fabric.name}"), "cluster_default": True}
    return f"{head}---\n{yaml_block([{**topology, 'tree': {'switches': switches}}])}"


# --- Kueue -----------------------------------------------------------------------------------------------------------


def kueue_topology(plan: Plan) -> Json:
    """Return Kueue's Topology. It ends with the host name: only such a one can be changed later."""
    levels = [ZONE_LABEL] if plan.fabric.zoned else []
    return {
        "apiVersion": KUEUE,
        "kind": "Topology",
        "metadata": {"name": plan.fabric.name, "labels": labels(plan.fabric)},
        "spec": {"levels": [{"nodeLabel": label} for label in [*levels, HOSTNAME]]},
    }
