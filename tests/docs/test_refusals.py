# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What a site is told before the first change: each finding has its row in docs/errors.md, and a test that saw it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/errors.md").read_text(encoding="utf-8").replace("\\", "")
UNIT, FILTER = "tests/unit/plugins/", "tests/unit/plugins/filter/"
PLAN = f"{UNIT}plugin_utils/_plan/"
CORPUS = f"{PLAN}test_bad_input.py::test_bad_input_is_one_clear_error_and_writes_nothing"
FINDINGS = {
    "hosts do not answer": "tests/site/test_site.py::test_an_unreachable_host_is_left_out_and_listed",
    "would do nothing: Spiderpool hands it to ib-kubernetes": CORPUS,
    "hosts have no Ethernet interface with a default route": (
        f"{FILTER}test_host_problems.py::test_an_infiniband_node_without_a_management_address_is_refused"
    ),
    "hosts are virtual machines or containers": (
        f"{FILTER}test_host_problems.py::test_sriov_on_virtual_machines_is_refused"
    ),
    "rdma_host_naming is altname": (
        "tests/site/test_left_alone.py::test_alternative_names_are_refused_before_anything_where_pods_use_the_rails"
    ),
    "is a bond": CORPUS,
    "is a port of": "tests/kernel/test_policy_route.py::test_a_port_of_a_bridge_is_no_rail_unless_forced",
    "Cilium would push Multus aside": (
        f"{UNIT}module_utils/_cluster/test_ground.py::test_cilium_that_would_push_multus_aside_is_refused"
    ),
    "its kubelet speaks over the fabric": (
        f"{UNIT}module_utils/_cluster/test_ground.py::test_a_node_whose_kubernetes_address_is_a_rails_is_refused"
    ),
    "The cluster does not know": "tests/cluster/test_roles.py::test_bad_situations_are_told_before_the_first_write",
    "The cluster has no network of its own": (
        f"{UNIT}module_utils/_cluster/test_ground.py::test_a_cluster_without_a_network_is_refused"
    ),
    "The cluster's network is not ready": (
        f"{UNIT}module_utils/_cluster/test_ground.py::test_a_network_that_is_there_and_not_ready_is_refused"
    ),
    "Two declarations of lossless RoCE differ": (
        f"{UNIT}action/test_verdict.py::test_variables_that_differ_from_the_plans_lossless_are_named_before_anything_is_changed"
    ),
}


@pytest.mark.parametrize("finding", FINDINGS)
def test_a_finding_has_its_row_and_its_test(finding):
    assert finding in PAGE
    path, _colons, name = FINDINGS[finding].partition("::")
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
