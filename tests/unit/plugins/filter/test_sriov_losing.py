# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

from ansible_collections.railops.rdma.plugins.filter.filters import sriov_losing

LABEL = "fabric.railops.io/fabric"
MARKS = [{"labels": {LABEL: value, "zone": "z"}, "nodes": [node]} for node, value in (("node1", "a"), ("node2", "b"))]


def policy(value, *names):
    return {"spec": {"nodeSelector": {LABEL: value}, "nicSelector": {"pfNames": list(names)}, "numVfs": 8}}


def state(node, *cards):
    return {"metadata": {"name": node}, "status": {"interfaces": list(cards)}}


def card(name, address, vfs, **more):
    return {"name": name, "pciAddress": address, "vendor": "15b3", "deviceID": "101d", "totalvfs": vfs, **more}


def test_the_operator_takes_the_functions_of_cards_that_no_policy_names():
    rail, storage = card("ens1np0", "0000:19:00.0", 8), card("ens20f0np0", "0000:5a:00.0", 16)
    states = [state("node1", rail, storage), state("node2", storage), state("node9", storage)]
    assert sriov_losing(states, [policy("a", "ens1np0#0-7")], MARKS) == [
        "node1: ens20f0np0 (0000:5a:00.0, 16 functions)"
    ]


def test_cards_without_functions_of_others_or_named_by_address_are_not_meant():
    cards = [
        card("a", "0000:01:00.0", 0),
        card("b", "0000:02:00.0", 8, vendor="8086"),
        card("c", "0000:03:00.0", 8, externallyManaged=True),
    ]
    assert sriov_losing([state("node1", *cards)], [policy("a", "ens1np0")], MARKS) == []


class Templated(dict):
    """A mapping as ansible-core 2.19 gives one of a template: its items are a generator."""

    def items(self):
        yield from super().items()


def test_mappings_of_templates_are_compared():
    groups = [{"labels": Templated(row["labels"]), "nodes": row["nodes"]} for row in MARKS]
    chosen = policy("b")
    chosen["spec"]["nodeSelector"] = Templated(chosen["spec"]["nodeSelector"])
    states = [state("node2", card("ens20f0np0", "0000:5a:00.0", 16))]
    assert sriov_losing(states, [chosen], groups) == ["node2: ens20f0np0 (0000:5a:00.0, 16 functions)"]
