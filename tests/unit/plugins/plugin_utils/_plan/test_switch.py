# Copyright (c) 2026 railops.rdma contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import csv
import io

import pytest

from ansible_collections.railops.rdma.plugins.plugin_utils._plan.switch import cell, render_switch
from ansible_collections.railops.rdma.tests.unit.fabric_samples import SAMPLES, names, plan_of, raw_of


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_a_shared_rail_has_one_gateway():
    gateways = rows(render_switch(plan_of(*SAMPLES["guides shared"]))["gateways.csv"])
    assert [(row["gateway"], row["subnet"], row["node"]) for row in gateways] == [
        ("172.16.11.254", "172.16.11.0/24", "")
    ]


def test_without_gateway_there_is_no_row():
    assert rows(render_switch(plan_of(*SAMPLES["no gateway"]))["gateways.csv"]) == []


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "|cmd", "%x"])
def test_cells_are_no_formulas(text):
    assert cell(text) == f"'{text}"
    zones = [{"name": "su1", "group": "su1", "supernets": ["172.20.0.0/16"], "leaves": [text.strip()]}]
    raw = raw_of(supernets=None, zones=zones)
    for row in rows(render_switch(plan_of(raw, [{"host": "a", "groups": ["su1"]}]))["prefixes.csv"]):
        assert not row["leaf"].startswith(("=", "+", "-", "@", "|", "%"))


def test_commas_and_quotes_in_names_survive():
    zones = [{"name": "su1", "group": "su1", "supernets": ["172.20.0.0/16"], "leaves": ['a, "b"']}]
    raw = raw_of(supernets=None, zones=zones)
    text = render_switch(plan_of(raw, [{"host": "a", "groups": ["su1"]}]))["prefixes.csv"]
    assert rows(text)[0]["leaf"] == 'a, "b"'


def test_the_order_of_nodes_is_natural_and_a_host_may_have_its_own_leaf():
    own = {"host": "node1", "groups": [], "cables": {"rail1": {"leaf": "leaf9"}}}
    files = render_switch(plan_of(raw_of(max_nodes=16, leaves=["leaf1"]), [own, *names(11, 2)]))
    found = [(row["node"], row["leaf"]) for row in rows(files["gateways.csv"])]
    assert found[:13] == [("node1", "leaf9"), *((name, "leaf1") for name in [*names(11, 2), "node1"])]
