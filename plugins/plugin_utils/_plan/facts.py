# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""From the plan to facts.json: what this collection itself reads of a plan in the cluster and on hosts."""

from __future__ import annotations

from ...module_utils._fabric.backends import SPIDER
from ...module_utils._fabric.facts import Facts, LabelGroup, OutRow
from ...module_utils._fabric.labels import DECLARED, OUT_LABEL
from ...module_utils._fabric.numbers import vlan_interface
from .._fabric.model import FabricPlan
from .._fabric.names import interfaces_of, labeled, leaf_label, node_label, profiles
from .blocks import rails_out
from .configs import pod_networks
from .nodes import ALL
from .objects import node_resources
from .topology import label_value, topology_labels
from .workload import PODS, nccl, pod_templates


def facts_of(plan: FabricPlan) -> Facts:
    """Return the content of facts.json."""
    fabric = plan.fabric
    own_device, pods = fabric.attached.own_device, fabric.attached.pods
    made: Facts = {
        "fabric": fabric.name,
        "namespace": fabric.namespace if pods else "",
        "kinds": fabric.backend.kinds if pods else [],
        "own_device": own_device,
        "networks": pod_networks(plan),
        "resources": node_resources(plan),
        "interfaces": sorted(
            {
                vlan_interface(interface, 0 if own_device else rail.vlan)
                for nodes in profiles(plan).values()
                for rail, interface in zip(fabric.rails, interfaces_of(fabric, nodes), strict=True)
            }
        ),
        "prefixes": [
            {
                "zone": fabric.zones[block.zone].name,
                "rail": fabric.rails[block.rail].name,
                "leaf": fabric.zones[block.zone].leaf(block.rail),
                "aggregate": str(block.aggregate),
            }
            for block in plan.blocks
        ],
        "node_label": profile_label(plan),
        "node_labels": node_labels(plan),
    }
    if out := [
        OutRow(
            host=node.host,
            node=node.name,
            rails=[rail.name for rail in rails_out(fabric, node)],
            reason=node.reason,
            taint=node.taint,
            all_rails=len(node.out) == len(fabric.rails),
        )
        for node in plan.nodes
        if node.out
    ]:
        made["out_of_service"] = out
    if pods:
        made["pod_templates"] = pod_templates(plan)
        made["pod_environment"] = {one.name: one.value for one in nccl(plan, PODS) if one.name}
    return made


def profile_label(plan: FabricPlan) -> str:
    """Return the label by which objects select nodes; empty where none does."""
    fabric = plan.fabric
    chosen = fabric.attached.own_device or list(profiles(plan)) != [DECLARED] or fabric.ipam != SPIDER
    return node_label(fabric) if chosen and fabric.attached.pods else ""


def node_labels(plan: FabricPlan) -> list[LabelGroup]:
    """Return the labels of all nodes that have one, nodes with the same labels together."""
    label = profile_label(plan)
    own = {node.name: {label: value} for value, row in labeled(plan).items() for node in row[1]} if label else {}
    out = {node.name: rails_out(plan.fabric, node) for node in plan.nodes if node.out}
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for labels, nodes in topology_labels(plan):
        for node in nodes:
            found = {**own.get(node, {}), **labels}
            if rails := out.get(node):
                hidden = {leaf_label(rail) for rail in rails}
                found = {name: value for name, value in found.items() if name not in hidden}
                complete = len(rails) == len(plan.fabric.rails)
                found[OUT_LABEL] = ALL if complete else label_value(".".join(rail.name for rail in rails))
            groups.setdefault(tuple(found.items()), []).append(node)
    return [{"labels": dict(found), "nodes": nodes} for found, nodes in groups.items() if found]
