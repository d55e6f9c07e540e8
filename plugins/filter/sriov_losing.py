# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""Which cards the SR-IOV operator would take the virtual functions from."""

from __future__ import annotations

import typing as t

DOCUMENTATION = r"""
name: sriov_losing
short_description: Name the cards whose virtual functions the SR-IOV operator would switch off
version_added: 1.0.0
author: railops.rdma contributors (@railops)
description:
  - On a node that one of its policies chooses, the operator (before upstream's change 734 of 2024) writes SRIOV_EN=0 to
    the firmware of every NVIDIA (Mellanox) card that no policy names, for the next boot.
  - Returns one sentence for each such card that offers virtual functions now.
options:
  _input:
    description: The SriovNetworkNodeStates of the cluster.
    type: list
    elements: dict
    required: true
  policies:
    description: The SriovNetworkNodePolicies of the plan.
    type: list
    elements: dict
    required: true
  labels:
    description: The plan's labels of nodes, as C(cluster/nodelabels.json) has them.
    type: dict
    required: true
"""

EXAMPLES = r"""
---
- name: Show which cards would lose their virtual functions
  ansible.builtin.debug:
    msg: "{{ states.resources | railops.rdma.sriov_losing(policies, labels) }}"
"""

RETURN = r"""
_value:
  description: One sentence for each card.
  type: list
  elements: str
"""

MELLANOX = "15b3"

Json = dict[str, t.Any]


def sriov_losing(states: t.Iterable[Json], policies: t.Sequence[Json], labels: Json) -> list[str]:
    """Return the cards that would lose their virtual functions."""
    found = []
    label, values = labels.get("label"), labels.get("nodes") or {}
    for state in states:
        node = state["metadata"]["name"]
        chosen = [
            row["spec"] for row in policies if (row["spec"].get("nodeSelector") or {}).get(label) == values.get(node)
        ]
        if not chosen or node not in values:
            continue
        named = {
            name.partition("#")[0]
            for spec in chosen
            for key in ("pfNames", "rootDevices")
            for name in (spec.get("nicSelector") or {}).get(key) or ()
        }
        found += [
            f"{node}: {card.get('name') or 'a card'} ({card['pciAddress']}, "
            f"{card.get('totalvfs') or card.get('numVfs')} functions)"
            for card in (state.get("status") or {}).get("interfaces") or ()
            if card.get("vendor") == MELLANOX
            and not card.get("externallyManaged")
            and not named & {card.get("name"), card["pciAddress"]}
            and (card.get("totalvfs") or card.get("numVfs"))
        ]
    return found


class FilterModule:
    """The filter."""

    def filters(self) -> dict[str, t.Any]:
        """Return the filter by its name."""
        return {"sriov_losing": sriov_losing}
