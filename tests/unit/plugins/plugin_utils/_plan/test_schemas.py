# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The JSON Schemas in docs/reference describe plan.json, facts.json and the host plans."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.railops.rdma.plugins.module_utils._errors import InputError
from ansible_collections.railops.rdma.tests.unit.fabric_samples import CHECKOUT, SAMPLES, names, raw_of
from ansible_collections.railops.rdma.tests.unit.fabrics import plan
from ansible_collections.railops.rdma.tests.unit.random_fabrics import FABRICS, SETTINGS, fabrics, hosts_only

Validator = pytest.importorskip("jsonschema").Draft202012Validator
SCHEMAS = {
    name: Validator(json.loads((CHECKOUT / f"docs/reference/{name}.schema.json").read_text(encoding="utf-8")))
    for name in ("plan", "facts", "host-plan")
}
OPTIONS = {
    **{"table_base": 2000, "rule_base": 12000, "metric_base": 200, "neighbor_tables": True, "leaves": ["leaf1"]},
    **{"vlan": 100, "lossless": {"priority": 3, "dscp": 26, "cnp": 48}, "reserved_per_subnet": {"first": 3, "last": 0}},
    "out_of_service": {"node1": {"rails": ["rail1"], "reason": "RMA 4711"}, "node2": {"rails": "all"}},
}
PLANS = {
    **SAMPLES,
    "options": (raw_of(**OPTIONS), names(3)),
    "nv-ipam": (raw_of(ipam="nv-ipam", namespace="nvidia-network-operator", inject=None), names(3)),
}


def check(files):
    """Validate all JSON files of a plan."""
    for path, text in files.items():
        if path.endswith(".json") and not path.startswith("cluster/"):
            name = "host-plan" if path.startswith("hosts/") else path.removesuffix(".json")
            SCHEMAS[name].validate(json.loads(text))


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_valid(name):
    raw, nodes = PLANS[name]
    check(plan(raw, [node if isinstance(node, dict) else {"host": node, "groups": []} for node in nodes]).files)


def test_the_example_plan_is_valid():
    folder = CHECKOUT / "docs/example-plan/fabric"
    check({str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in folder.rglob("*.json")})


@given(st.one_of(fabrics(), hosts_only()))
@settings(max_examples=FABRICS // 10, **SETTINGS)
def test_random_plans_are_valid(case):
    try:
        files = plan(*case, report=False).files
    except InputError:
        return
    check(files)
