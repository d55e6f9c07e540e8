# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import pytest

from ansible_collections.railops.rdma.plugins.module_utils._fabric.labels import GATE_TAINT
from ansible_collections.railops.rdma.plugins.module_utils._pods import scheduling

GPU = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
CORDON = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}


def node(*taints, ready="True", labels=None, **spec):
    return {
        "metadata": {"name": "node1", "labels": labels or {"zone": "a"}},
        "spec": {**spec, **({"taints": list(taints)} if taints else {})},
        "status": {"conditions": [{"type": "Ready", "status": ready}]},
    }


def tolerating(*rows):
    return {"tolerations": list(rows)}


@pytest.mark.parametrize(
    ("live", "spec", "why"),
    [
        pytest.param(node(), {}, "", id="nothing-in-the-way"),
        pytest.param(None, {}, "is not in the cluster", id="not-there"),
        pytest.param(node(ready="Unknown"), {}, "is down", id="down"),
        pytest.param(node(unschedulable=True), {}, "is cordoned", id="cordoned"),
        pytest.param(node(CORDON), {}, "is cordoned", id="cordoned-by-its-taint"),
        pytest.param(
            node(GPU), {}, "has the taint nvidia.com/gpu=present:NoSchedule, which is not tolerated", id="taint"
        ),
        pytest.param(node({**GPU, "effect": "NoExecute"}), {}, "has the taint", id="no-execute"),
        pytest.param(node({**GPU, "effect": "PreferNoSchedule"}), {}, "", id="only-preferred"),
        pytest.param(node(GPU), tolerating({"operator": "Exists"}), "", id="everything-tolerated"),
        pytest.param(node(GPU), tolerating({"key": GPU["key"], "operator": "Exists"}), "", id="key-tolerated"),
        pytest.param(node(GPU), tolerating({"key": GPU["key"], "value": "present"}), "", id="value-tolerated"),
        pytest.param(node(GPU), tolerating({"key": GPU["key"], "value": "x"}), "has the taint", id="another-value"),
        pytest.param(
            node(GPU),
            tolerating({"key": GPU["key"], "operator": "Exists", "effect": "NoExecute"}),
            "has the taint",
            id="another-effect",
        ),
        pytest.param(node(GATE_TAINT), {}, "has the taint fabric.railops.io/rails=broken", id="gate"),
        pytest.param(node(GATE_TAINT), tolerating(*scheduling.with_gate([])), "", id="gate-tolerated"),
        pytest.param(node(), {"nodeSelector": {"zone": "b"}}, "is left out", id="selector"),
        pytest.param(node(), {"nodeSelector": {"zone": "a"}}, "", id="selected"),
        pytest.param(node(), {"affinity": scheduling.by_name(["node2", "node1"])}, "", id="by-name"),
        pytest.param(node(), {"affinity": scheduling.by_name(["node2"])}, "is left out", id="not-by-name"),
    ],
)
def test_why_a_node_takes_no_pod(live, spec, why):
    found = scheduling.exclusion(live, spec)
    assert found.startswith(why)
    assert bool(found) == bool(why)
    assert bool(scheduling.fix_of(found)) == bool(why)


def test_a_daemon_set_goes_onto_cordoned_nodes_and_not_past_other_taints():
    assert scheduling.exclusion(node(CORDON, unschedulable=True), {}, daemon=True) == ""
    assert scheduling.exclusion(node(GPU), {}, daemon=True)


def test_the_gates_toleration_is_there_once():
    assert scheduling.with_gate([scheduling.GATE]) == [scheduling.GATE]
