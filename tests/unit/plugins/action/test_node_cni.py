# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The action node_cni: nodes are named as people read them."""

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.action import node_cni
from ansible_collections.railops.rdma.tests.unit.actions import action_of


def test_names_of_nodes_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [f"gpu-{number:03}" for number in range(1, 100)]
    lacking = {**{node: ["macvlan"] for node in nodes}, "login1": ["macvlan", "tuning"]}
    answer = {"lacking": lacking, "left": nodes[1:], "down": ["gpu-001", "login1"]}
    action = action_of(node_cni, {})
    monkeypatch.setattr(action, "_execute_module", lambda **_more: dict(answer))
    said = action.run(task_vars={})
    assert said["unseen"] == "gpu-[001-099], login1"
    assert said["lacks"] == "gpu-[001-099]: macvlan; login1: macvlan, tuning"
    assert said["left"] == nodes[1:], "what is noted keeps each name"
